use std::collections::{BTreeMap, BTreeSet};

use retoma_core::event::EventKind;
use retoma_core::identity::IdentityKind;
use retoma_core::keys::Key16;

use super::*;
use crate::inbound::shown::{request, source};
use crate::inbound::{Part, PartEntry, Provider};

fn schedule(seed: u64, buyers: u32) -> Schedule {
    Generator::new(seed).schedule(&Plan { buyers, ..Plan::default() })
}

/// Reads a hook as it would be read when it is posted.
fn read(plan: &Plan, hook: &Hook) -> Part {
    let provider = if hook.source == "hotmart" { Provider::Hotmart } else { Provider::Evolution };
    let mut request = request(hook.body.to_string());
    request.received_at = plan.starts_at.saturating_add(SignedDuration::try_from(hook.after).unwrap()).unwrap();
    let mut parts = source(provider).read(&request).unwrap();
    assert_eq!(parts.len(), 1);
    parts.remove(0)
}

#[test]
fn equal_seeds_make_equal_schedules_and_others_differ() {
    assert_eq!(schedule(1, 60), schedule(1, 60));
    assert_ne!(schedule(1, 60), schedule(2, 60));
}

#[test]
fn every_story_is_lived_and_hooks_are_in_order() {
    let schedule = schedule(1, 60);
    assert!(schedule.hooks.is_sorted_by_key(|hook| hook.after));
    assert_eq!(schedule.length(), schedule.hooks.last().unwrap().after);
    let stories: Vec<Story> = schedule.buyers.iter().take(17).map(|buyer| buyer.story).collect();
    assert_eq!(stories, Story::ALL);
    let phones: BTreeSet<&str> = schedule.buyers.iter().map(|buyer| buyer.phone.as_str()).collect();
    assert_eq!(phones.len(), 60);
    assert!(phones.iter().all(|phone| phone.len() == 13 && phone.starts_with("55419999")));
}

#[test]
fn every_body_is_understood_and_says_what_the_truth_says() {
    let plan = Plan { buyers: 120, ..Plan::default() };
    let schedule = Generator::new(3).schedule(&plan);
    let mut paid: BTreeMap<String, Duration> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    for hook in &schedule.hooks {
        let part = read(&plan, hook);
        match &part.entry {
            PartEntry::Received => {}
            PartEntry::Ignored(reason) => {
                assert!(["group", "status_broadcast", "reaction", "connecting"].contains(reason), "{reason}");
                continue;
            }
            other => panic!("{other:?}: {}", hook.body),
        }
        assert!(part.data.flags.is_empty(), "{:?} {}", part.data.flags, hook.body);
        assert!(part.identities.iter().any(|who| who.kind == IdentityKind::Phone), "{}", hook.body);
        kinds.insert(part.kind);
        if part.kind == EventKind::PaymentApproved && hook.repeats == Repeats::No {
            paid.insert(part.data.order.unwrap().transaction, hook.after);
        }
    }
    let expected = [
        EventKind::MessageReceived,
        EventKind::PaymentApproved,
        EventKind::PaymentRefused,
        EventKind::PaymentRefunded,
        EventKind::PixCreated,
        EventKind::CheckoutAbandoned,
    ];
    assert_eq!(kinds, BTreeSet::from(expected));
    let truth: BTreeMap<String, Duration> =
        schedule.buyers.iter().filter_map(|buyer| Some((buyer.paid_transaction.clone()?, buyer.paid_at?))).collect();
    assert_eq!(paid, truth);
}

#[test]
fn copies_are_recognised_by_delivery_key_and_repeated_facts_by_business_key() {
    // FC-01, FC-08.
    let plan = Plan { buyers: 120, ..Plan::default() };
    let schedule = Generator::new(4).schedule(&plan);
    assert!(schedule.copies() > 20 && schedule.repeated_facts() > 10);
    let (mut deliveries, mut facts): (BTreeMap<Key16, Key16>, BTreeSet<Key16>) = Default::default();
    let (mut copies, mut repeated) = (0, 0);
    // Whichever copy comes first counts as the first, so originals are looked at in no special order.
    for hook in &schedule.hooks {
        let part = read(&plan, hook);
        if let Some(digest) = deliveries.insert(part.delivery_key, part.digest) {
            copies += 1;
            assert_eq!(digest, part.digest, "a copy looks altered: {}", hook.body);
        } else if let Some(fact) = part.business_key
            && !facts.insert(fact)
        {
            repeated += 1;
        }
    }
    assert_eq!((copies, repeated), (schedule.copies(), schedule.repeated_facts()));
}

#[test]
fn both_spellings_of_a_buyer_are_one_person() {
    // FC-16.
    let plan = Plan { buyers: 60, ..Plan::default() };
    let schedule = Generator::new(5).schedule(&plan);
    let mut spellings: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for hook in &schedule.hooks {
        for who in read(&plan, hook).identities.into_iter().filter(|who| who.kind == IdentityKind::Phone) {
            spellings.entry(who.match_key).or_default().insert(who.value);
        }
    }
    assert_eq!(spellings.len(), 60);
    assert!(spellings.values().any(|values| values.len() == 2));
}

#[test]
fn payments_fall_before_at_between_and_after_the_touches() {
    let schedule = schedule(6, 400);
    let plan = Plan::default();
    let begins = |buyer: &Buyer| -> Option<Duration> {
        let first = buyer.transactions.first()?;
        schedule.hooks.iter().find(|h| h.body["data"]["purchase"]["transaction"] == *first.as_str()).map(|h| h.after)
    };
    for buyer in &schedule.buyers {
        let (Some(paid), Some(begin)) = (buyer.paid_at, begins(buyer)) else { continue };
        let wait = paid.saturating_sub(begin);
        let [first, second, last] = plan.touches;
        match buyer.story {
            Story::PaysBeforeTouches => assert!(wait < first),
            Story::PaysBetweenTouches => assert!(wait > first && wait <= second),
            Story::PaysAtTouch => {
                assert!([first, second, last].iter().any(|t| wait >= *t - *t / 50 && wait <= *t + *t / 50))
            }
            Story::PaysAfterTouches => assert!(wait > last),
            Story::PaysOtherTransaction => {
                assert_eq!(buyer.paid_transaction.as_ref(), buyer.transactions.get(1));
            }
            Story::OptsOut | Story::OptsOutAndBack | Story::PixForgotten | Story::CartLeft => panic!("{buyer:?}"),
            _ => {}
        }
    }
    let silent = schedule.buyers.iter().filter(|buyer| buyer.opted_out_at.is_some());
    assert!(silent.clone().count() > 10);
    assert!(silent.clone().any(|buyer| buyer.opted_in_at > buyer.opted_out_at));
}
