//! Two contacts become one, and a person is forgotten (C11, C12, H2; DESIGN.md, "Merge").

use retoma_core::decision::{Close, CloseScope, Decision, Handover};
use retoma_core::event::{Event, EventKind};
use retoma_core::ids::ContactId;
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::state::{Contact, ContactView, Conversation, Merged};
use retoma_core::task::{Task, TaskStatus};

use super::world::*;
use crate::*;

const FIRST: &str = "5541999990001";
const SECOND: &str = "5541999990002";

/// Lets one contact give way to another, as the decision of an `operator.link` would.
async fn give_way<S: Store>(store: &S, goes: ContactId, stays: ContactId, n: u64) {
    let seen = view(store, goes, at(10)).await;
    let tasks: Vec<Task> = seen.tasks.iter().filter(|task| task.status.is_waiting()).cloned().collect();
    let scope = CloseScope::Tasks(tasks.iter().map(|task| task.id.clone()).collect());
    let ended = |cycle: &Conversation| Conversation { closed: true, deadline_at: None, cadence: None, ..cycle.clone() };
    let decision = Decision {
        events: Vec::new(),
        close: vec![Close { scope, except: Vec::new(), reason: Reason::Superseded }],
        conversations: seen.conversations.iter().map(ended).collect(),
        handover: Some(Handover {
            into: stays,
            because_of: event_id(n),
            merged: Merged { contact: seen.contact.clone(), conversations: seen.conversations.clone(), tasks },
        }),
        ..decide(&seen)
    };
    commit(store, &seen, decision, at(10)).await;
}

fn merged_in(view: &ContactView) -> &Event {
    let found = view.undecided.iter().find(|event| event.kind == EventKind::ContactMerged);
    found.expect("the merge is in the inbox of the contact that stays")
}

/// Identities, history, attempts and what is not decided yet go along, under the same ids.
pub async fn a_contact_that_gives_way_takes_everything_along<S: Store>(store: &S) {
    let stays = contact_with(store, 1, vec![]).await;
    let goes = contact_with(store, 2, vec![reminder("sent", 0), reminder("waits", 500)]).await;
    open_cycle(store, goes, "curso", None).await;
    start(store, "sent", goes, at(1)).await;
    finish(store, finish_of("sent", 1, end(Outcome::Accepted), NextStep::Sent, at(2))).await;
    append_new(store, message(30, SECOND)).await;
    give_way(store, goes, stays, 40).await;

    let seen = view(store, stays, at(11)).await;
    assert_eq!(seen.identities.iter().filter(|held| [FIRST, SECOND].contains(&held.value.as_str())).count(), 2);
    let mut undecided: Vec<_> = seen.undecided.iter().map(|event| (event.kind, event.contact)).collect();
    undecided.sort();
    assert_eq!(undecided, [(EventKind::MessageReceived, Some(stays)), (EventKind::ContactMerged, Some(stays))]);
    assert!(seen.undecided.iter().any(|event| event.id == event_id(30)), "under the same id");
    assert_eq!(seen.sends.len(), 1, "what was sent counts for the person");
    let merged = merged_in(&seen).data.merged.clone().expect("it says what is handed over");
    assert_eq!((merged.contact.id, merged.conversations.len(), merged.tasks.len()), (goes, 1, 1));
    assert_eq!((status(store, "sent").await, status(store, "waits").await), (TaskStatus::Sent, TaskStatus::Cancelled));
    assert_eq!(task(store, "waits").await.task.reason, Some(Reason::Superseded));
}

/// "What lands later at the loser is forwarded under the same id", and so is who asks for it by its id.
pub async fn what_names_the_one_that_gave_way_reaches_the_one_that_stays<S: Store>(store: &S) {
    let (stays, goes) = (contact_with(store, 1, vec![]).await, contact_with(store, 2, vec![]).await);
    give_way(store, goes, stays, 40).await;
    assert_eq!(append_new(store, message(50, SECOND)).await, stays);
    let late =
        NewEvent { kind: EventKind::OperatorPause, subject: Subject::Contact(goes), urgent: true, ..message(51, "") };
    assert_eq!(append_new(store, late).await, stays);
    assert_eq!(store.find_contacts(tenant(), FindContact::Id(goes)).await.unwrap(), [stays]);
    assert_eq!(view(store, goes, at(60)).await.contact.id, stays);
    // A chain ends at its end.
    let oldest = contact_with(store, 3, vec![]).await;
    give_way(store, stays, oldest, 60).await;
    assert_eq!(view(store, goes, at(70)).await.contact.id, oldest);
}

/// "Only an id closed by this merge may be taken again, once."
pub async fn only_what_the_merge_closed_is_taken_over_and_once<S: Store>(store: &S) {
    let stays = contact_with(store, 1, vec![reminder("own", 500)]).await;
    let goes = contact_with(store, 2, vec![reminder("waits", 500), reminder("sent", 0)]).await;
    start(store, "sent", goes, at(1)).await;
    finish(store, finish_of("sent", 1, end(Outcome::Accepted), NextStep::Sent, at(2))).await;
    give_way(store, goes, stays, 40).await;
    let seen = view(store, stays, at(11)).await;
    let stored = |id: &'static str| async move { task(store, id).await.task };
    let again = Task { status: TaskStatus::Scheduled, reason: None, ..stored("waits").await };
    let sent = Task { status: TaskStatus::Scheduled, reason: None, ..stored("sent").await };
    let adopted = vec![again.clone(), sent, Task { text: Some("x".to_owned()), ..stored("own").await }];
    commit(store, &seen, Decision { adopted, ..decide(&seen) }, at(12)).await;
    let row = stored("waits").await;
    assert_eq!((row.status, row.reason, row.contact), (TaskStatus::Scheduled, None, stays));
    assert_eq!((stored("sent").await.status, stored("own").await.text), (TaskStatus::Sent, None));
    assert_eq!(due_ids(store, at(600)).await, ["own", "waits"]);
    // Sent, it is not taken a second time.
    start(store, "waits", stays, at(600)).await;
    finish(store, finish_of("waits", 1, end(Outcome::Accepted), NextStep::Sent, at(601))).await;
    let seen = view(store, stays, at(602)).await;
    commit(store, &seen, Decision { adopted: vec![again], ..decide(&seen) }, at(603)).await;
    assert_eq!(stored("waits").await.status, TaskStatus::Sent);
}

/// "Its mere presence blocks starts", and what was checked for the other contact starts no more.
pub async fn the_merge_blocks_every_start_until_it_is_decided<S: Store>(store: &S) {
    let stays = contact_with(store, 1, vec![reminder("own", 0)]).await;
    let goes = contact_with(store, 2, vec![]).await;
    let wish = start_of(store, "own", stays, at(1)).await;
    give_way(store, goes, stays, 40).await;
    let wish = Start { block_on_chat: false, block_on_paid: false, ..wish };
    assert_eq!(try_start(store, wish.clone(), at(11)).await, Started::LookAgain);
    let seen = view(store, stays, at(12)).await;
    commit(store, &seen, decide(&seen), at(12)).await;
    assert_eq!(try_start(store, wish, at(13)).await, Started::LookAgain, "it was checked before");
    start(store, "own", stays, at(14)).await;
}

/// Commits what an erasure decides.
async fn forget<S: Store>(store: &S, contact: ContactId) {
    let seen = view(store, contact, at(20)).await;
    let close = vec![Close { scope: CloseScope::Contact(contact), except: Vec::new(), reason: Reason::Cancelled }];
    let bare = Decision { erase: true, close, ..decide(&seen) };
    let contact =
        bare.contact.clone().map(|contact| Contact { vars: Default::default(), last_channel: None, ..contact });
    commit(store, &seen, Decision { contact, ..bare }, at(20)).await;
}

/// H2: proof, no data.
pub async fn whoever_is_forgotten_leaves_no_data_behind<S: Store>(store: &S) {
    let written = Task { text: Some("Oi Ana".to_owned()), ..reminder("touch", 0) };
    let contact = contact_with(store, 1, vec![written]).await;
    store.append_events(vec![request(7, b"{\"nome\":\"Ana\"}", vec![message(7, FIRST)])]).await.unwrap();
    forget(store, contact).await;
    let seen = view(store, contact, at(21)).await;
    assert!(seen.identities.is_empty() && seen.contact.vars.is_empty() && seen.undecided.is_empty());
    assert!(store.find_contacts(tenant(), FindContact::Identity(phone(FIRST))).await.unwrap().is_empty());
    let row = event(store, 7).await;
    assert_eq!(
        (row.data.text, row.key.as_str(), row.contact_id),
        (None, "erased", Some(contact)),
        "that it came stays"
    );
    let raw = store.get_raw(tenant(), event_id(7)).await.unwrap();
    assert!(raw.is_none_or(|raw| raw.body.is_empty() && raw.headers.is_empty()));
    let row = task(store, "touch").await.task;
    assert_eq!((row.status, row.text, row.reference.amount), (TaskStatus::Cancelled, None, None));
    // Somebody with that phone who writes later is somebody new, and an old delivery is still a repetition.
    assert_ne!(append_new(store, message(90, FIRST)).await, contact);
    assert!(matches!(append(store, message(7, FIRST)).await, Appended::Duplicate { .. }));
}

/// C12: "outlives states, merges, erasure and imports".
pub async fn silence_outlives_forgetting<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![]).await;
    let seen = view(store, contact, at(10)).await;
    let silent = Contact { opted_out_at: Some(at(10)), version: seen.contact.version + 1, ..seen.contact.clone() };
    commit(store, &seen, Decision { contact: Some(silent), ..decide(&seen) }, at(10)).await;
    forget(store, contact).await;
    let back = append_new(store, message(90, FIRST)).await;
    assert_eq!(view(store, back, at(91)).await.contact.opted_out_at, Some(at(10)));
    let other = append_new(store, message(91, SECOND)).await;
    assert_eq!(view(store, other, at(92)).await.contact.opted_out_at, None);
}
