//! What the owner knows of the inbox: a hint in memory of rows in the store. Pure; says what may be decided now.
//!
//! Events of one contact are decided one at a time, in the order in which they were seen committed, a burst of chat
//! messages standing at its end (DESIGN.md, "Loading"; C7). Events without a contact stand alone.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use retoma_core::burst::burst_ready_at;
use retoma_core::event::Event;
use retoma_core::flow::Debounce;
use retoma_core::ids::{ContactId, EventId, Tenant};

/// What is decided together: one fact, or one burst.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub(crate) tenant: Tenant,
    pub(crate) contact: Option<ContactId>,
    pub(crate) events: Vec<Event>,
}

/// The undecided events that this owner has seen.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    lanes: HashMap<(Tenant, ContactId), Vec<Event>>,
    alone: BTreeMap<EventId, Event>,
    /// Where each known event stands.
    known: HashMap<EventId, Option<(Tenant, ContactId)>>,
}

impl Inbox {
    /// Takes note of rows seen in the store; rows already known are skipped.
    pub(crate) fn offer(&mut self, events: Vec<Event>) {
        for event in events {
            let lane = event.contact.map(|contact| (event.tenant.clone(), contact));
            if self.known.contains_key(&event.id) {
                continue;
            }
            self.known.insert(event.id, lane.clone());
            match lane {
                Some(lane) => self.lanes.entry(lane).or_default().push(event),
                None => {
                    self.alone.insert(event.id, event);
                }
            }
        }
    }

    /// Forgets events that left the store's inbox.
    pub(crate) fn forget(&mut self, ids: &[EventId]) {
        for id in ids {
            let Some(lane) = self.known.remove(id) else { continue };
            let Some(lane) = lane else {
                self.alone.remove(id);
                continue;
            };
            if let Entry::Occupied(mut events) = self.lanes.entry(lane) {
                events.get_mut().retain(|event| event.id != *id);
                if events.get().is_empty() {
                    events.remove();
                }
            }
        }
    }

    /// Forgets what the store no longer has: after a full rescan that saw `alive` of everything.
    pub(crate) fn keep_only(&mut self, alive: &HashSet<EventId>) {
        let dead: Vec<_> = self.known.keys().filter(|id| !alive.contains(id)).copied().collect();
        self.forget(&dead);
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Groups that may be decided at `now`, at most one per contact and `limit` in all; and when the next one will be.
    pub(crate) fn ready(
        &self,
        now: Timestamp,
        debounce: impl Fn(&Event) -> Debounce,
        limit: usize,
    ) -> (Vec<Group>, Option<Timestamp>) {
        let mut groups: Vec<Group> = self
            .alone
            .values()
            .take(limit)
            .map(|event| Group { tenant: event.tenant.clone(), contact: None, events: vec![event.clone()] })
            .collect();
        let mut next = None;
        for ((tenant, contact), lane) in &self.lanes {
            if groups.len() >= limit {
                return (groups, Some(now));
            }
            match next_of_lane(lane, now, &debounce) {
                Ok(events) => groups.push(Group { tenant: tenant.clone(), contact: Some(*contact), events }),
                Err(at) => next = Some(next.map_or(at, |earlier: Timestamp| earlier.min(at))),
            }
        }
        (groups, next)
    }
}

/// What one contact's lane decides next, or when it will.
fn next_of_lane(
    lane: &[Event],
    now: Timestamp,
    debounce: &impl Fn(&Event) -> Debounce,
) -> Result<Vec<Event>, Timestamp> {
    let is_chat = |event: &&Event| !event.kind.bypasses_debounce();
    // Facts pass a waiting burst at once; the burst stands at its end.
    if let Some(fact) = lane.iter().find(|event| !is_chat(event)) {
        return Ok(vec![fact.clone()]);
    }
    let chat: Vec<&Event> = lane.iter().filter(is_chat).collect();
    // An opt-out takes effect now, and takes along what was said before it, so that nothing is answered afterwards.
    if chat.iter().any(|event| event.urgent) {
        return Ok(chat.into_iter().cloned().collect());
    }
    let Some(first) = chat.first() else { return Err(Timestamp::MAX) };
    let rule = debounce(first);
    let received: Vec<Timestamp> = chat.iter().map(|event| event.received_at).collect();
    let ready_at = burst_ready_at(&received, rule);
    if ready_at > now {
        return Err(ready_at);
    }
    // What arrived after the burst had closed starts the next one.
    Ok(chat.into_iter().filter(|event| event.received_at <= ready_at).cloned().collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use retoma_core::event::{EventData, EventKind};
    use retoma_core::ids::BucketNo;
    use uuid::Uuid;

    use super::*;

    const RULE: Debounce = Debounce { quiet: Duration::from_secs(4), max_wait: Duration::from_secs(40) };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn event(n: u128, contact: Option<u128>, kind: EventKind, seconds: i64, urgent: bool) -> Event {
        Event {
            id: EventId(Uuid::from_u128(n)),
            tenant: Tenant::default(),
            bucket: BucketNo(0),
            source: "zap".into(),
            kind,
            contact: contact.map(|id| ContactId(Uuid::from_u128(id))),
            occurred_at: at(seconds),
            received_at: at(seconds),
            urgent,
            data: EventData::default(),
        }
    }

    fn ready_ids(inbox: &Inbox, seconds: i64) -> (Vec<Vec<u128>>, Option<Timestamp>) {
        let (groups, next) = inbox.ready(at(seconds), |_| RULE, 100);
        let mut ids: Vec<Vec<u128>> =
            groups.iter().map(|group| group.events.iter().map(|event| event.id.0.as_u128()).collect()).collect();
        ids.sort();
        (ids, next)
    }

    #[test]
    fn a_burst_is_decided_once_at_its_end() {
        let mut inbox = Inbox::default();
        inbox.offer(vec![
            event(1, Some(7), EventKind::MessageReceived, 0, false),
            event(2, Some(7), EventKind::MessageReceived, 3, false),
        ]);
        assert_eq!(ready_ids(&inbox, 5), (vec![], Some(at(7))));
        assert_eq!(ready_ids(&inbox, 7), (vec![vec![1, 2]], None));
    }

    #[test]
    fn a_payment_passes_a_waiting_burst_and_the_burst_stays() {
        let mut inbox = Inbox::default();
        inbox.offer(vec![
            event(1, Some(7), EventKind::MessageReceived, 0, false),
            event(2, Some(7), EventKind::PaymentApproved, 1, true),
        ]);
        assert_eq!(ready_ids(&inbox, 1).0, vec![vec![2]]);
        inbox.forget(&[EventId(Uuid::from_u128(2))]);
        assert_eq!(ready_ids(&inbox, 1), (vec![], Some(at(4))));
    }

    #[test]
    fn an_opt_out_is_decided_at_once_with_what_was_said_before_it() {
        let mut inbox = Inbox::default();
        inbox.offer(vec![
            event(1, Some(7), EventKind::MessageReceived, 0, false),
            event(2, Some(7), EventKind::MessageReceived, 1, true),
        ]);
        assert_eq!(ready_ids(&inbox, 1).0, vec![vec![1, 2]]);
    }

    #[test]
    fn contacts_do_not_wait_for_each_other_and_known_rows_are_not_taken_twice() {
        let mut inbox = Inbox::default();
        inbox.offer(vec![
            event(1, Some(7), EventKind::MessageReceived, 0, false),
            event(2, Some(8), EventKind::PixCreated, 0, true),
            event(3, None, EventKind::ChannelConnected, 0, true),
        ]);
        inbox.offer(vec![event(2, Some(8), EventKind::PixCreated, 0, true)]);
        assert_eq!(ready_ids(&inbox, 0), (vec![vec![2], vec![3]], Some(at(4))));
        assert_eq!(inbox.len(), 3);
        inbox.keep_only(&HashSet::from([EventId(Uuid::from_u128(3))]));
        assert_eq!(inbox.len(), 1);
    }
}
