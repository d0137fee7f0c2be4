//! Leases and epochs, as several nodes on one store see them.

use retoma_core::decision::Decision;
use retoma_core::ids::{BUCKETS, BucketNo, ContactId, Epoch};

use super::world::*;
use crate::*;

async fn lease<S: Store>(store: &S, node: &str, lasts: u64, max_buckets: usize) -> Owner {
    let request = LeaseRequest { node: node.to_owned(), lease: seconds(lasts), max_buckets, explicit: true };
    store.acquire_leases(request).await.unwrap().owner
}

fn buckets(owner: &Owner) -> Vec<(BucketNo, Epoch)> {
    match &owner.buckets {
        Buckets::Some(owned) => owned.clone(),
        Buckets::All => panic!("an explicit lease names its buckets"),
    }
}

/// Every bucket has one owner.
pub async fn two_nodes_share_the_buckets<S: Store>(store: &S) {
    let half = usize::from(BUCKETS / 2);
    let mut all = buckets(&lease(store, "a", 600, half).await);
    assert_eq!(all.len(), half);
    all.extend(buckets(&lease(store, "b", 600, 5000).await));
    let mut numbers: Vec<u16> = all.iter().map(|(bucket, _)| bucket.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..BUCKETS).collect::<Vec<_>>());
    assert!(buckets(&lease(store, "c", 600, 5000).await).is_empty());
    // Wanting less gives some back.
    assert_eq!(buckets(&lease(store, "a", 600, 10).await).len(), 10);
    assert_eq!(buckets(&lease(store, "c", 600, 5000).await).len(), half - 10);
}

/// Rows change on handover only.
pub async fn renewing_changes_no_epoch<S: Store>(store: &S) {
    let first = lease(store, "a", 600, 100).await;
    assert_eq!(lease(store, "a", 600, 100).await, first);
    assert!(buckets(&first).windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted");
}

/// A node that stopped renewing loses its buckets, and learns so from the epoch.
pub async fn a_lapsed_lease_is_taken_under_a_higher_epoch<S: Store>(store: &S) {
    let lapsed = lease(store, "a", 0, 5000).await;
    let taken = lease(store, "b", 600, 5000).await;
    for ((bucket, old), (same, new)) in buckets(&lapsed).iter().zip(buckets(&taken)) {
        assert!(*bucket == same && *old < new, "{bucket:?}: {old:?}, then {new:?}");
    }
    assert!(buckets(&lease(store, "a", 600, 5000).await).is_empty());
}

/// S13: a paused node cannot commit after takeover, nor start.
pub async fn a_stale_epoch_commits_and_starts_nothing<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    let stale = lease(store, "a", 0, 5000).await;
    append(store, message(2, "5541999990001")).await;
    let seen = view(store, contact, at(3)).await;
    let fresh = lease(store, "b", 600, 5000).await;
    let deciding = || vec![commit_of(&seen, Decision { ..decide(&seen) }, at(3))];
    let answers = store.commit_decisions(stale.clone(), deciding()).await.unwrap();
    assert_eq!(answers, [Committed::NotOwner]);
    // Nor does knowing the present epoch make another node the owner.
    let other = Owner { node: "c".to_owned(), buckets: fresh.buckets.clone() };
    assert_eq!(store.commit_decisions(other, deciding()).await.unwrap(), [Committed::NotOwner]);
    assert_eq!(view(store, contact, at(3)).await, seen);
    let answers = store.commit_decisions(fresh.clone(), deciding()).await.unwrap();
    assert_eq!(answers, [Committed::Done { already_claimed: Vec::new() }]);
    let wish = start_of(store, "touch", contact, at(4)).await;
    assert_eq!(store.start_attempts(stale, vec![wish.clone()], at(4)).await.unwrap(), [Started::NotOwner]);
    assert_eq!(store.start_attempts(fresh, vec![wish], at(4)).await.unwrap(), [Started::Started { attempt: 1 }]);
}

/// A graceful stop leaves nobody waiting.
pub async fn released_buckets_are_free_at_once<S: Store>(store: &S) {
    let first = lease(store, "a", 600, 5000).await;
    store.release_leases("a".to_owned()).await.unwrap();
    let second = lease(store, "b", 600, 5000).await;
    assert_eq!(buckets(&second).len(), usize::from(BUCKETS));
    assert!(buckets(&second).iter().zip(buckets(&first)).all(|(new, old)| new.1 > old.1));
}

/// Each loads its own.
pub async fn a_node_sees_pending_events_of_its_buckets_only<S: Store>(store: &S) {
    let mut contacts: Vec<ContactId> = Vec::new();
    for n in 1..=20 {
        contacts.push(append_new(store, message(n, &format!("55419999900{n:02}"))).await);
    }
    let mut seen = 0;
    for (node, max) in [("a", 500), ("b", 5000)] {
        let owner = lease(store, node, 600, max).await;
        let owned: Vec<BucketNo> = buckets(&owner).into_iter().map(|(bucket, _)| bucket).collect();
        let query = PendingQuery { owner, after: None, rescan_from: None, limit: 100 };
        let events = store.load_pending(query).await.unwrap();
        assert!(events.iter().all(|event| owned.contains(&event.bucket)));
        seen += events.len();
    }
    assert_eq!(seen, contacts.len());
}
