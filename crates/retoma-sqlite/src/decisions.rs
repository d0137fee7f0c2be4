//! `commit_decisions`: leaves the rows that [`Decision::apply`](retoma_core::decision::Decision::apply) would leave.
//!
//! Each decision looks first (owner, version, its events still in the inbox) and writes after: a stale one has written
//! nothing, so no savepoint is needed and its neighbours commit.

use jiff::Timestamp;
use retoma_core::decision::{CloseScope, Decision, EventOutcome, Spread, Transition};
use retoma_core::ids::{BucketNo, ContactId, TaskId, Tenant};
use retoma_core::state::{Contact, Conversation};
use retoma_core::task::TaskStatus;
use retoma_store::{Buckets, Committed, DecisionCommit, EventStatus, Owner};
use rusqlite::{OptionalExtension, params};

use crate::codec::{cut_conversation, ms, ms_or_null};
use crate::database::Database;
use crate::error::Result;

impl Database {
    /// See [`Store::commit_decisions`](retoma_store::Store::commit_decisions).
    pub fn commit_decisions(&self, owner: &Owner, batch: &[DecisionCommit]) -> retoma_store::Result<Vec<Committed>> {
        batch.iter().map(|commit| Ok(self.commit_decision(owner, commit)?)).collect()
    }

    fn commit_decision(&self, owner: &Owner, commit: &DecisionCommit) -> Result<Committed> {
        if !self.owns(owner, commit.bucket)? {
            return Ok(Committed::NotOwner);
        }
        let decision = &commit.decision;
        if let Some(contact) = &decision.contact
            && self.contact_version(&commit.tenant, contact.id)? != Some(commit.expected_version)
        {
            return Ok(Committed::Stale);
        }
        let mut seqs = Vec::with_capacity(decision.events.len());
        for outcome in &decision.events {
            let Some(seq) = self.inbox_seq(outcome)? else { return Ok(Committed::Stale) };
            seqs.push(seq);
        }
        for (outcome, seq) in decision.events.iter().zip(seqs) {
            self.end_event(outcome, seq, commit.now)?;
        }
        if let Some(contact) = &decision.contact {
            self.update_contact(contact)?;
            self.close_tasks(contact.id, decision, commit.now)?;
            self.adopt_tasks(contact.id, decision)?;
            for conversation in &decision.conversations {
                self.put_conversation(&commit.tenant, contact.id, conversation)?;
            }
        }
        for transition in &decision.transitions {
            self.log_transition(&commit.tenant, transition)?;
        }
        let mut already_claimed = Vec::new();
        for task in &decision.new_tasks {
            if !self.promise(task)? {
                already_claimed.push(task.id.clone());
            }
        }
        for task in &decision.handed {
            let not_before = decision.spread.iter().find(|spread| spread.task == *task).map(|spread| spread.at);
            self.hand_over(&commit.tenant, task, not_before)?;
        }
        for moved in &decision.replanned {
            self.plan_again(&commit.tenant, moved, commit.now)?;
        }
        // Last, since both move what was just written.
        if let (Some(contact), Some(handover)) = (&decision.contact, &decision.handover) {
            self.hand_contact_over(&commit.tenant, contact.id, handover, commit.now)?;
        }
        if let Some(contact) = decision.contact.as_ref().filter(|_| decision.erase) {
            self.erase_contact(&commit.tenant, contact, commit.now)?;
        }
        Ok(Committed::Done { already_claimed })
    }

    /// Whether the caller's epoch still holds the bucket. One process that was granted everything pays no look.
    pub(crate) fn owns(&self, owner: &Owner, bucket: BucketNo) -> Result<bool> {
        let Buckets::Some(owned) = &owner.buckets else { return Ok(true) };
        let Ok(found) = owned.binary_search_by_key(&bucket, |(owned, _)| *owned) else { return Ok(false) };
        let epoch = owned[found].1.0;
        let held = self
            .connection
            .prepare_cached("SELECT 1 FROM lease_bucket WHERE bucket = ?1 AND node = ?2 AND epoch = ?3")?
            .exists(params![bucket.0, owner.node, i64::try_from(epoch).unwrap_or(i64::MAX)])?;
        Ok(held)
    }

    pub(crate) fn contact_version(&self, tenant: &Tenant, contact: ContactId) -> Result<Option<u64>> {
        let version: Option<i64> = self
            .connection
            .prepare_cached("SELECT version FROM contact WHERE id = ?1 AND tenant = ?2")?
            .query_row(params![&contact.as_bytes()[..], tenant.as_str()], |row| row.get(0))
            .optional()?;
        Ok(version.map(i64::unsigned_abs))
    }

    /// Moves a touch that was not handed over to another time.
    fn plan_again(&self, tenant: &Tenant, moved: &Spread, now: Timestamp) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE task SET scheduled_for = ?3, next_attempt_at = ?3, updated_at = ?4
                 WHERE id = ?1 AND tenant = ?2 AND handed = 0 AND status IN ('scheduled', 'failed', 'held')",
            )?
            .execute(params![moved.task.as_str(), tenant.as_str(), ms(moved.at), ms(now)])?;
        Ok(())
    }

    fn inbox_seq(&self, outcome: &EventOutcome) -> Result<Option<i64>> {
        let seq = self
            .connection
            .prepare_cached("SELECT seq FROM inbox WHERE id = ?1")?
            .query_row([&outcome.event.as_bytes()[..]], |row| row.get(0))
            .optional()?;
        Ok(seq)
    }

    fn end_event(&self, outcome: &EventOutcome, seq: i64, now: Timestamp) -> Result<()> {
        let status = if outcome.decided { EventStatus::Decided } else { EventStatus::Ignored };
        self.connection
            .prepare_cached(
                "UPDATE event SET status = ?2, reason = ?3, result = ?4, completed_at = ?5, error = NULL WHERE seq = ?1",
            )?
            .execute(params![seq, status.as_str(), outcome.reason, outcome.result, ms(now)])?;
        self.connection.prepare_cached("DELETE FROM inbox WHERE id = ?1")?.execute([&outcome.event.as_bytes()[..]])?;
        self.count("events", EventStatus::Received.as_str(), -1);
        self.count("events", status.as_str(), 1);
        Ok(())
    }

    fn update_contact(&self, contact: &Contact) -> Result<()> {
        let vars = if contact.vars.is_empty() { None } else { Some(serde_json::to_string(&contact.vars)?) };
        let ping_pong = &contact.ping_pong;
        let ping_pong = if ping_pong.is_empty() { None } else { Some(serde_json::to_string(ping_pong)?) };
        self.connection
            .prepare_cached(
                "UPDATE contact SET version = ?2, opted_out_at = ?3, paused_until = ?4, last_inbound_at = ?5,
                    last_channel = ?6, vars = ?7, cycles = ?8, ping_pong = ?9 WHERE id = ?1",
            )?
            .execute(params![
                &contact.id.as_bytes()[..],
                i64::try_from(contact.version).unwrap_or(i64::MAX),
                ms_or_null(contact.opted_out_at),
                ms_or_null(contact.paused_until),
                ms_or_null(contact.last_inbound_at),
                contact.last_channel.as_ref().map(|channel| channel.as_str()),
                vars,
                contact.cycles,
                ping_pong,
            ])?;
        Ok(())
    }

    /// Asks the core which tasks a close concerns, over the contact's live ones.
    fn close_tasks(&self, contact: ContactId, decision: &Decision, now: Timestamp) -> Result<()> {
        if decision.close.is_empty() {
            return Ok(());
        }
        for mut at in self.live_tasks(contact)? {
            let Some(close) = decision.close.iter().find(|close| close.concerns(&at.task)) else { continue };
            let before = at.task.status;
            if before.is_waiting() {
                at.move_to(TaskStatus::Cancelled, Some(close.reason), now);
            } else {
                at.task.cancel_reason.get_or_insert(close.reason);
            }
            self.update_task(before, &at)?;
        }
        debug_assert!(
            decision.close.iter().all(|close| match &close.scope {
                CloseScope::Contact(id) | CloseScope::Order(id, _) => *id == contact,
                CloseScope::Tasks(_) | CloseScope::Conversation(_) => true,
            }),
            "a decision closes tasks of its own contact only"
        );
        Ok(())
    }

    fn put_conversation(&self, tenant: &Tenant, contact: ContactId, conversation: &Conversation) -> Result<()> {
        let conversation = cut_conversation(conversation);
        self.connection
            .prepare_cached(
                "INSERT INTO conversation (id, contact, tenant, ordinal, flow, offer, state, version, closed, deadline_at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT (contact, id) DO UPDATE SET flow = excluded.flow, offer = excluded.offer,
                    state = excluded.state, version = excluded.version, closed = excluded.closed,
                    deadline_at = excluded.deadline_at, body = excluded.body",
            )?
            .execute(params![
                &conversation.id.as_bytes()[..],
                &contact.as_bytes()[..],
                tenant.as_str(),
                conversation.ordinal,
                conversation.flow.as_str(),
                conversation.offer,
                conversation.state,
                i64::try_from(conversation.version).unwrap_or(i64::MAX),
                conversation.closed,
                ms_or_null(conversation.deadline_at),
                serde_json::to_string(&conversation)?,
            ])?;
        Ok(())
    }

    fn log_transition(&self, tenant: &Tenant, transition: &Transition) -> Result<()> {
        let actions = match transition.actions.as_slice() {
            [] => None,
            actions => Some(serde_json::to_string(actions)?),
        };
        self.connection
            .prepare_cached(
                "INSERT INTO transition_log (tenant, contact, conversation, from_state, event, taken_as, to_state, reason,
                    actions, rule, event_id, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                tenant.as_str(),
                &transition.contact.as_bytes()[..],
                &transition.conversation.as_bytes()[..],
                transition.from,
                transition.event,
                transition.taken_as,
                transition.to,
                transition.reason,
                actions,
                transition.rule,
                &transition.event_id.as_bytes()[..],
                ms(transition.at),
            ])?;
        Ok(())
    }

    fn hand_over(&self, tenant: &Tenant, task: &TaskId, not_before: Option<Timestamp>) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE task SET handed = 1, next_attempt_at = coalesce(?3, next_attempt_at)
                 WHERE id = ?1 AND tenant = ?2 AND handed = 0",
            )?
            .execute(params![task.as_str(), tenant.as_str(), ms_or_null(not_before)])?;
        Ok(())
    }
}
