//! An own message that comes back after the policy had judged its send (E4): the truth may come late, and it counts.
//!
//! Part of intake. While a send is `unsure`, the reconciler looks for its echo; here is what comes after that.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use retoma_core::event::EventKind;
use retoma_core::evidence::{Sighting, Wanted, Witness, find, text_key};
use retoma_core::ids::{ContactId, TaskId};
use retoma_core::keys::Key16;
use retoma_core::task::TaskStatus;
use retoma_store::NewEvent;
use rusqlite::params;

use crate::codec::{ms, name_at, time_at};
use crate::database::Database;
use crate::error::Result;
use crate::receipts::ACCEPTED_RANK;

/// How long after the start an echo still finds its send.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The longest that a request of a channel takes: how long after its start a message may have gone out.
const DEADLINE: Duration = Duration::from_secs(60);

struct GivenUp {
    seq: i64,
    ord: i64,
    task: TaskId,
    started_at: Timestamp,
}

impl Database {
    /// Settles the send that this own message proves, if the policy had given one up that said just this.
    pub(crate) fn settle_by_late_echo(&self, contact: ContactId, event: &NewEvent) -> Result<()> {
        let data = &event.data;
        let (Some(text), Some(message), Some(channel)) = (&data.text, &data.message_id, &data.channel) else {
            return Ok(());
        };
        if !matches!(event.kind, EventKind::MessageStatus | EventKind::MessageHuman) {
            return Ok(());
        }
        let said = text_key(text);
        let given_up = self.given_up(contact, channel.as_str(), said, event.received_at)?;
        if given_up.is_empty() || self.is_claimed_message(&event.tenant, channel, message)? {
            return Ok(());
        }
        let seen = [Sighting {
            message_id: message.clone(),
            at: event.occurred_at,
            heard_at: event.received_at,
            said: Some(said),
            claimed: false,
        }];
        let is_it = |send: &&GivenUp| {
            find(&Wanted { said: Some(said), started_at: send.started_at, deadline: DEADLINE }, &seen).is_some()
        };
        match given_up.iter().find(is_it) {
            Some(send) => self.was_sent_after_all(send, event, message),
            None => Ok(()),
        }
    }

    /// Ambiguous last attempts of a contact that said just this and whose message nobody found, oldest first.
    fn given_up(&self, contact: ContactId, channel: &str, said: Key16, now: Timestamp) -> Result<Vec<GivenUp>> {
        let since = now.saturating_sub(LOOK_BACK).map_or(0, ms);
        let mut look = self.connection.prepare_cached(
            "SELECT t.seq, a.ord, t.id, a.started_at
             FROM attempt AS a INDEXED BY attempt_contact JOIN task AS t ON t.seq = a.task
             WHERE a.counts = 1 AND a.contact = ?1 AND a.started_at > ?2 AND a.outcome = 'ambiguous' AND a.said = ?3
               AND a.provider_message_id IS NULL AND a.ord = t.starts AND t.channel = ?4
               AND (t.status = 'sent' OR (t.status = 'held' AND t.reason = 'unconfirmed'))
             ORDER BY a.started_at",
        )?;
        let mut rows = look.query(params![&contact.as_bytes()[..], since, &said.0[..], channel])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(GivenUp {
                seq: row.get(0)?,
                ord: row.get(1)?,
                task: name_at(row, 2)?,
                started_at: time_at(row, 3)?,
            });
        }
        Ok(found)
    }

    fn was_sent_after_all(&self, send: &GivenUp, event: &NewEvent, message: &str) -> Result<()> {
        let said = "its own echo came after the policy had decided: it was sent";
        self.note_evidence(&event.tenant, &send.task, event.received_at, Witness::Echo, said)?;
        self.connection
            .prepare_cached("UPDATE attempt SET provider_message_id = ?3 WHERE task = ?1 AND ord = ?2")?
            .execute(params![send.seq, send.ord, message])?;
        let Some(mut at) = self.find_task(event.tenant.as_str(), &send.task)? else { return Ok(()) };
        self.link_message(&at.task, message, ACCEPTED_RANK, event.occurred_at)?;
        let before = at.task.status;
        at.move_to(TaskStatus::Sent, None, event.received_at);
        self.update_task(before, &at)?;
        self.connection
            .prepare_cached("UPDATE task SET provider_message_id = ?2, last_error = NULL, detail = ?3 WHERE seq = ?1")?
            .execute(params![send.seq, message, said])?;
        Ok(())
    }
}
