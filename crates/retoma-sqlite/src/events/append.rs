//! `append_events`: recognise, resolve, store; one pass over the whole batch.
//!
//! Order within the transaction (DESIGN.md, "Intake transaction"): delivery keys, business keys (both sorted, so that
//! neighbours share pages), then per part its contact, payment fact, event row, inbox row and receipt, and last the
//! repetitions, which may repeat a part of this very batch.

use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind, OrderRef};
use retoma_core::ids::{BucketNo, ContactId, EventId, Tenant};
use retoma_core::keys::digest16;
use retoma_store::{Appended, Entry, EventStatus, Intake, NewEvent, RawRequest, Subject};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::codec::{event_at, ms, word_at};
use crate::database::Database;
use crate::error::{Failure, Result};
use crate::events::spread::Told;

/// Kinds of events whose reach is wider than one contact start here (paid, given back, ..).
pub(crate) const PAID_RANK: u8 = 30;

/// The reason of a fact that another delivery key said first.
const REPEATED_FACT: &str = "repeated_fact";

/// What became of a part so far.
enum Fate {
    New,
    Duplicate,
    RepeatedFact { first: EventId },
}

struct Part<'a> {
    intake: usize,
    event: &'a NewEvent,
    /// Row number if it is new.
    seq: i64,
    fate: Fate,
}

/// The subject that stands for an order where no contact is known.
pub(crate) fn order_subject(order: &OrderRef) -> [u8; 16] {
    digest16("order", &[order.platform.as_bytes(), order.account.as_bytes(), order.transaction.as_bytes()]).0
}

impl Database {
    /// See [`Store::append_events`](retoma_store::Store::append_events).
    pub fn append_events(&self, batch: &[Intake]) -> retoma_store::Result<Vec<Vec<Appended>>> {
        Ok(self.append(batch)?)
    }

    pub(crate) fn append(&self, batch: &[Intake]) -> Result<Vec<Vec<Appended>>> {
        let first_seq = self.last_event()? + 1;
        let mut parts: Vec<Part<'_>> = batch
            .iter()
            .enumerate()
            .flat_map(|(intake, request)| request.events.iter().map(move |event| (intake, event)))
            .zip(first_seq..)
            .map(|((intake, event), seq)| Part { intake, event, seq, fate: Fate::New })
            .collect();
        self.merge_recent(parts.len())?;
        self.claim_deliveries(&mut parts)?;
        self.claim_facts(&mut parts)?;
        let next_seq = parts.last().map_or(first_seq, |part| part.seq + 1);
        let mut appender = Appender::new(self, next_seq, batch.len())?;
        let mut answers: Vec<Vec<Option<Appended>>> =
            batch.iter().map(|intake| Vec::with_capacity(intake.events.len())).collect();
        for part in &parts {
            let answer = match part.fate {
                Fate::Duplicate => None,
                Fate::New => Some(appender.store_new(part, batch[part.intake].request.as_ref())?),
                Fate::RepeatedFact { first } => {
                    Some(appender.store_repeated(part, first, batch[part.intake].request.as_ref())?)
                }
            };
            answers[part.intake].push(answer);
        }
        let mut position = vec![0_usize; batch.len()];
        for part in &parts {
            let at = position[part.intake];
            position[part.intake] += 1;
            if matches!(part.fate, Fate::Duplicate) {
                let repeated = appender.count_repetition(part, batch[part.intake].request.as_ref())?;
                answers[part.intake][at] = Some(repeated);
            }
        }
        Ok(answers.into_iter().map(|parts| parts.into_iter().flatten().collect()).collect())
    }

    /// Claims delivery keys in key order; equal keys within the batch in the order they came, so that the first wins.
    fn claim_deliveries(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|&index| (parts[index].event.delivery_key, index));
        for index in order {
            let Part { event, seq, .. } = parts[index];
            if !self.claim_delivery(&event.delivery_key.0, seq, Some(event.digest.0))? {
                parts[index].fate = Fate::Duplicate;
            }
        }
        Ok(())
    }

    /// Claims the business keys of new parts. What is held, quarantined or ignored has not happened yet as a fact.
    fn claim_facts(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let mut order: Vec<_> = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| matches!(part.fate, Fate::New) && part.event.entry == Entry::Received)
            .filter_map(|(index, part)| Some((part.event.business_key?, index)))
            .collect();
        order.sort_unstable();
        for (key, index) in order {
            if let Some(first) = self.claim_fact(&key.0, parts[index].event.id)? {
                parts[index].fate = Fate::RepeatedFact { first };
            }
        }
        Ok(())
    }

    /// One more event was read from a request's bytes.
    pub(super) fn refer_to_raw(&self, raw: i64) -> Result<()> {
        self.connection.prepare_cached("UPDATE raw_request SET refs = refs + 1 WHERE seq = ?1")?.execute([raw])?;
        Ok(())
    }

    /// Records what was said of an order's money. The first word of each kind stays.
    pub(super) fn record_fact_of(
        &self,
        id: EventId,
        tenant: &Tenant,
        kind: EventKind,
        occurred_at: Timestamp,
        data: &EventData,
    ) -> Result<()> {
        let (Some(order), Some(rank)) = (&data.order, kind.payment_rank()) else { return Ok(()) };
        self.connection
            .prepare_cached(
                "INSERT INTO payment_fact (txn, platform, account, tenant, kind, rank, occurred_at, event)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                order.transaction,
                order.platform,
                order.account,
                tenant.as_str(),
                kind.as_str(),
                rank,
                ms(occurred_at),
                &id.as_bytes()[..]
            ])?;
        Ok(())
    }

    fn record_fact(&self, event: &NewEvent) -> Result<()> {
        self.record_fact_of(event.id, &event.tenant, event.kind, event.occurred_at, &event.data)
    }
}

/// Where an event row ends, or that it has not.
pub(super) struct RowEnd<'a> {
    pub(super) status: EventStatus,
    pub(super) reason: Option<&'a str>,
}

/// The statements and cursors of one `append_events`.
struct Appender<'a> {
    database: &'a Database,
    /// Row numbers of child events start here.
    next_seq: i64,
    /// Row of each request's bytes, once they are stored.
    raw: Vec<Option<i64>>,
    insert_event: CachedStatement<'a>,
    insert_inbox: CachedStatement<'a>,
}

const INSERT_EVENT: &str = "INSERT INTO event (seq, id, tenant, bucket, source, kind, key, delivery_key, contact, raw,
    occurred_at, received_at, urgent, data, status, reason, completed_at, result, business_key, said_first, digest)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

pub(super) const INSERT_INBOX: &str = "INSERT INTO inbox (id, seq, tenant, bucket, contact, urgent, received_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";

impl<'a> Appender<'a> {
    fn new(database: &'a Database, next_seq: i64, requests: usize) -> Result<Self> {
        let connection: &Connection = &database.connection;
        Ok(Self {
            database,
            next_seq,
            raw: vec![None; requests],
            insert_event: connection.prepare_cached(INSERT_EVENT)?,
            insert_inbox: connection.prepare_cached(INSERT_INBOX)?,
        })
    }

    fn store_new(&mut self, part: &Part<'_>, request: Option<&RawRequest>) -> Result<Appended> {
        let event = part.event;
        let received = event.entry == Entry::Received;
        // An ignored event tells us nothing about a person that we would act on; it only shows up with whoever is known.
        let contact = match &event.subject {
            Subject::Contact(contact) => Some(self.database.standing(*contact)?),
            Subject::Person { identities, .. } if identities.is_empty() => None,
            Subject::Person { identities, .. } if matches!(event.entry, Entry::Ignored(_)) => {
                self.database.known_contact(&event.tenant, identities)?
            }
            Subject::Person { candidate, identities } => {
                Some(self.database.resolve(&event.tenant, *candidate, identities, event.received_at)?)
            }
            Subject::Nobody => None,
        };
        let end = match &event.entry {
            Entry::Received => RowEnd { status: EventStatus::Received, reason: None },
            Entry::Ignored(reason) => RowEnd { status: EventStatus::Ignored, reason: Some(reason) },
            Entry::Held(reason) => RowEnd { status: EventStatus::Held, reason: Some(reason) },
            Entry::Quarantined(reason) => RowEnd { status: EventStatus::Quarantined, reason: Some(reason) },
        };
        let raw = self.store_raw(part, request, None)?;
        self.insert(event, part.seq, contact, raw, &end)?;
        if let Some(contact) = contact {
            self.database.note_stub(contact, event)?;
            self.database.settle_by_late_echo(contact, event)?;
        }
        if let Some(receipt) = &event.receipt {
            self.database.merge_receipt(receipt)?;
        }
        if received {
            self.database.record_fact(event)?;
            self.spread(part, contact)?;
        }
        Ok(Appended::New { event: event.id, contact })
    }

    fn store_repeated(&mut self, part: &Part<'_>, first: EventId, request: Option<&RawRequest>) -> Result<Appended> {
        let event = part.event;
        let contact = match &event.subject {
            Subject::Contact(contact) => Some(*contact),
            Subject::Person { identities, .. } => self.database.known_contact(&event.tenant, identities)?,
            Subject::Nobody => None,
        };
        let raw = self.store_raw(part, request, None)?;
        let end = RowEnd { status: EventStatus::Ignored, reason: Some(REPEATED_FACT) };
        self.insert(event, part.seq, contact, raw, &end)?;
        if let Some(receipt) = &event.receipt {
            self.database.merge_receipt(receipt)?;
        }
        self.database.record_fact(event)?;
        Ok(Appended::RepeatedFact { event: event.id, first })
    }

    /// Child events for everybody else whom a payment or a cancel concerns (C11).
    fn spread(&mut self, part: &Part<'_>, decided_by: Option<ContactId>) -> Result<()> {
        let event = part.event;
        let Subject::Person { identities, .. } = &event.subject else { return Ok(()) };
        let told = Told {
            id: event.id,
            tenant: &event.tenant,
            kind: event.kind,
            data: &event.data,
            delivery_key: &event.delivery_key.0,
            decided_by,
        };
        for child in self.database.children(&told, identities)? {
            if self.database.insert_child(&told, part.seq, &child, self.next_seq)? {
                self.next_seq += 1;
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        event: &NewEvent,
        seq: i64,
        contact: Option<ContactId>,
        raw: Option<i64>,
        end: &RowEnd<'_>,
    ) -> Result<()> {
        let tenant = event.tenant.as_str();
        let bucket = bucket_of(event, contact).0;
        let contact = contact.as_ref().map(|contact| &contact.as_bytes()[..]);
        let completed = end.status.is_completed();
        // A held fact keeps its business key until a person releases it; what is ignored states none.
        let business_key = match event.entry {
            Entry::Received | Entry::Held(_) | Entry::Quarantined(_) => {
                event.business_key.as_ref().map(|key| &key.0[..])
            }
            Entry::Ignored(_) => None,
        };
        let said_first = business_key.is_some() && end.status == EventStatus::Received;
        self.insert_event.execute(params![
            seq,
            &event.id.as_bytes()[..],
            tenant,
            bucket,
            event.source.as_str(),
            event.kind.as_str(),
            event.key,
            &event.delivery_key.0[..],
            contact,
            raw,
            ms(event.occurred_at),
            ms(event.received_at),
            event.urgent,
            serde_json::to_string(&event.data)?,
            end.status.as_str(),
            end.reason,
            completed.then(|| ms(event.received_at)),
            if completed { end.reason } else { None },
            business_key,
            said_first,
            &event.digest.0[..],
        ])?;
        if end.status == EventStatus::Received {
            self.insert_inbox.execute(params![
                &event.id.as_bytes()[..],
                seq,
                tenant,
                bucket,
                contact,
                event.urgent,
                ms(event.received_at)
            ])?;
        }
        self.database.count("events", end.status.as_str(), 1);
        Ok(())
    }

    /// Stores the request's bytes once; answers their row.
    fn store_raw(
        &mut self,
        part: &Part<'_>,
        request: Option<&RawRequest>,
        altered_of: Option<i64>,
    ) -> Result<Option<i64>> {
        let Some(request) = request else { return Ok(None) };
        if altered_of.is_none()
            && let Some(stored) = self.raw[part.intake]
        {
            self.database.refer_to_raw(stored)?;
            return Ok(Some(stored));
        }
        let connection = &self.database.connection;
        connection
            .prepare_cached(
                "INSERT INTO raw_request (id, received_at, refs, altered_of, headers, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                &request.id.as_bytes()[..],
                ms(part.event.received_at),
                i64::from(altered_of.is_none()),
                altered_of,
                serde_json::to_string(&request.headers)?,
                &request.body[..]
            ])?;
        let row = connection.last_insert_rowid();
        if altered_of.is_none() {
            self.raw[part.intake] = Some(row);
        }
        Ok(Some(row))
    }

    /// Counts a repetition on the first event, and keeps bytes that differ.
    fn count_repetition(&mut self, part: &Part<'_>, request: Option<&RawRequest>) -> Result<Appended> {
        let connection = &self.database.connection;
        let (seq, same) = self.database.delivered(&part.event.delivery_key.0, &part.event.digest.0)?;
        let same = same || self.database.says_the_same(seq, part.event)?;
        let fills = self.database.waits_for_content(seq, part.event)?;
        let mut update = connection.prepare_cached(
            "UPDATE event SET duplicates = duplicates + 1, altered = altered OR ?2 WHERE seq = ?1
             RETURNING id, status, result, duplicates",
        )?;
        let found = update
            .query_row(params![seq, !same && !fills], |row| {
                Ok((|| {
                    Ok(Appended::Duplicate {
                        event: event_at(row, 0)?,
                        status: word_at(row, 1, EventStatus::parse)?,
                        result: row.get(2)?,
                        duplicates: row.get::<_, i64>(3)?.unsigned_abs(),
                        altered: !same,
                    })
                })())
            })
            .optional()?
            .ok_or_else(|| Failure::Row("a delivery key without its event".to_owned()))?;
        drop(update);
        if fills {
            self.database.count("events", "duplicates", 1);
            let raw = self.store_raw(part, request, None)?;
            return self.database.fill_stub(seq, part.event, raw);
        }
        if !same {
            self.store_raw(part, request, Some(seq))?;
        }
        self.database.count("events", "duplicates", 1);
        found
    }
}

/// Who decides it: the contact's bucket, else the order's, else its own.
fn bucket_of(event: &NewEvent, contact: Option<ContactId>) -> BucketNo {
    match (contact, &event.data.order) {
        (Some(contact), _) => BucketNo::of_contact(&event.tenant, contact),
        (None, Some(order)) => BucketNo::of(&event.tenant, &order_subject(order)),
        (None, None) => BucketNo::of(&event.tenant, event.id.as_bytes()),
    }
}
