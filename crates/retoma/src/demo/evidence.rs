//! What is left when the shop has closed: the store's rows and the fake provider's delivery log, and which delivery belongs
//! to which attempt.

use std::collections::BTreeMap;

use jiff::Timestamp;
use retoma_core::event::EventKind;
use retoma_core::flow::Flow;
use retoma_core::identity::Identity;
use retoma_core::ids::{ContactId, Tenant};
use retoma_core::outcome::Outcome;
use retoma_server::fake::{Delivery, DeliveryLog};
use retoma_sqlite::SqliteStore;
use retoma_store::{AttemptRow, EventFilter, EventRow, EventStatus, Page, Store, TaskFilter, TaskRow};

/// Everything that the promises are checked against.
pub(super) struct Evidence {
    pub(super) flow: Flow,
    pub(super) events: Vec<EventRow>,
    pub(super) promises: Vec<Promise>,
    pub(super) deliveries: Vec<Delivery>,
    /// Who holds a phone or a LID, by match key.
    pub(super) people: BTreeMap<String, ContactId>,
}

/// A task with its attempts.
pub(super) struct Promise {
    pub(super) row: TaskRow,
    pub(super) attempts: Vec<AttemptRow>,
}

/// Where a delivery belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Belongs {
    /// Place in [`Evidence::promises`].
    pub(super) promise: usize,
    /// Number of the attempt.
    pub(super) attempt: u32,
}

const PAGE: usize = 500;

/// Reads what is left. The loops must have ended.
pub(super) async fn read(store: &SqliteStore, log: &DeliveryLog, flow: Flow) -> anyhow::Result<Evidence> {
    let mut events = Vec::new();
    let mut page = Page { cursor: None, limit: PAGE };
    loop {
        let rows = store.list_events(Tenant::default(), EventFilter::default(), page).await?;
        events.extend(rows.items);
        let Some(cursor) = rows.next_cursor else { break };
        page = Page { cursor: Some(cursor), limit: PAGE };
    }
    let (mut promises, mut people) = (Vec::new(), BTreeMap::new());
    let mut page = Page { cursor: None, limit: PAGE };
    loop {
        let rows = store.list_tasks(Tenant::default(), TaskFilter::default(), page).await?;
        let contacts = rows.items.iter().map(|row| (Tenant::default(), row.task.contact)).collect();
        for view in store.load_contacts(contacts, Timestamp::MAX).await? {
            people.extend(view.identities.into_iter().map(|identity| (identity.match_key, view.contact.id)));
        }
        for row in rows.items {
            let found = store.get_task(Tenant::default(), row.task.id.clone()).await?;
            let attempts = found.map(|(_, attempts)| attempts).unwrap_or_default();
            promises.push(Promise { row, attempts });
        }
        let Some(cursor) = rows.next_cursor else { break };
        page = Page { cursor: Some(cursor), limit: PAGE };
    }
    Ok(Evidence { flow, events, promises, deliveries: log.all(), people })
}

impl Evidence {
    /// Which attempt each delivery belongs to, in the order of the log.
    ///
    /// By the provider's id where we heard it. Of an ambiguous send we never did; there the recipient and the time tell, since
    /// one request per contact is under way at a time: it is the latest ambiguous attempt that had started and has no
    /// delivery yet.
    pub(super) fn attribute(&self) -> Vec<Option<Belongs>> {
        let mut by_id: BTreeMap<&str, Belongs> = BTreeMap::new();
        for (promise, one) in self.promises.iter().enumerate() {
            // Evidence that came late stands with the task alone, and is about its last ambiguous attempt.
            let unsure = one.attempts.iter().rev().find(|attempt| attempt.outcome == Some(Outcome::Ambiguous));
            if let (Some(id), Some(attempt)) = (&one.row.provider_message_id, unsure) {
                by_id.insert(id, Belongs { promise, attempt: attempt.n });
            }
            for attempt in &one.attempts {
                if let Some(id) = &attempt.provider_message_id {
                    by_id.insert(id, Belongs { promise, attempt: attempt.n });
                }
            }
        }
        let known: Vec<Option<Belongs>> =
            self.deliveries.iter().map(|delivery| by_id.get(delivery.id.as_str()).copied()).collect();
        let mut taken: Vec<Belongs> = known.iter().copied().flatten().collect();
        let mut found = known;
        for (belongs, delivery) in found.iter_mut().zip(&self.deliveries).filter(|(belongs, _)| belongs.is_none()) {
            *belongs = self.unnamed(delivery, &taken);
            taken.extend(*belongs);
        }
        found
    }

    fn unnamed(&self, delivery: &Delivery, taken: &[Belongs]) -> Option<Belongs> {
        let contact = self.contact_of(&delivery.number)?;
        let mut candidates: Vec<(Timestamp, Belongs)> = Vec::new();
        for (promise, one) in self.promises.iter().enumerate().filter(|(_, one)| one.row.task.contact == contact) {
            for attempt in &one.attempts {
                let belongs = Belongs { promise, attempt: attempt.n };
                let is_unknown = attempt.outcome.is_none_or(|outcome| outcome == Outcome::Ambiguous);
                if is_unknown && attempt.started_at <= delivery.at && !taken.contains(&belongs) {
                    candidates.push((attempt.started_at, belongs));
                }
            }
        }
        candidates.into_iter().max_by_key(|(at, _)| *at).map(|(_, belongs)| belongs)
    }

    /// Whose number that is, as a channel writes it.
    pub(super) fn contact_of(&self, number: &str) -> Option<ContactId> {
        let jid = if number.contains('@') { number.to_owned() } else { format!("{number}@s.whatsapp.net") };
        self.people.get(&Identity::from_jid(&jid)?.match_key).copied()
    }

    /// Whether the contact ever said something.
    pub(super) fn wrote(&self, contact: ContactId) -> bool {
        let mut events = self.events.iter().filter(|event| event.contact_id == Some(contact));
        events.any(|event| event.kind == EventKind::MessageReceived && event.status == EventStatus::Decided)
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        let (tasks, people) = (self.promises.len(), self.people.len());
        let attempts: usize = self.promises.iter().map(|promise| promise.attempts.len()).sum();
        format!(
            "checked: {} events, {tasks} messages with {attempts} attempts, {} deliveries to phones, {people} identities",
            self.events.len(),
            self.deliveries.len(),
        )
    }
}
