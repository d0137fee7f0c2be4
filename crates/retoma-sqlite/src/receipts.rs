//! What providers say of our messages (E6). One row per message, moved forward only, in whatever order news arrives.

use jiff::Timestamp;
use retoma_core::task::Task;
use retoma_store::{Receipt, ReceiptStatus};
use rusqlite::params;

use crate::codec::ms;
use crate::database::Database;
use crate::error::Result;

/// `provider_message.rank` of `accepted`.
pub(crate) const ACCEPTED_RANK: i64 = 1;
/// From here on a failure is only noted.
const DELIVERED_RANK: i64 = 3;

/// The forward part of the lattice; 0 for the side state.
fn rank(status: ReceiptStatus) -> i64 {
    match status {
        ReceiptStatus::Failed => 0,
        ReceiptStatus::Accepted => ACCEPTED_RANK,
        ReceiptStatus::Sent => 2,
        ReceiptStatus::Delivered => DELIVERED_RANK,
        ReceiptStatus::Read => 4,
        ReceiptStatus::Played => 5,
    }
}

/// What a row says as one word: delivered or more overrides `failed`, which overrides less.
pub(crate) fn word(rank: i64, failed: bool) -> Option<ReceiptStatus> {
    match rank {
        DELIVERED_RANK => Some(ReceiptStatus::Delivered),
        4 => Some(ReceiptStatus::Read),
        5 => Some(ReceiptStatus::Played),
        _ if failed => Some(ReceiptStatus::Failed),
        2 => Some(ReceiptStatus::Sent),
        ACCEPTED_RANK => Some(ReceiptStatus::Accepted),
        _ => None,
    }
}

const MERGE: &str = "INSERT INTO provider_message (message_id, channel, tenant, task, rank, rank_at, failed_at,
        accepted_at, sent_at, delivered_at, read_at, played_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, iif(?5 = 1, ?6, NULL), iif(?5 = 2, ?6, NULL), iif(?5 = 3, ?6, NULL),
        iif(?5 = 4, ?6, NULL), iif(?5 = 5, ?6, NULL))
    ON CONFLICT (message_id, channel, tenant) DO UPDATE SET
        task = coalesce(task, excluded.task),
        rank_at = CASE WHEN excluded.rank > rank THEN excluded.rank_at ELSE rank_at END,
        rank = max(rank, excluded.rank),
        accepted_at = min(coalesce(accepted_at, excluded.accepted_at), coalesce(excluded.accepted_at, accepted_at)),
        sent_at = min(coalesce(sent_at, excluded.sent_at), coalesce(excluded.sent_at, sent_at)),
        delivered_at = min(coalesce(delivered_at, excluded.delivered_at), coalesce(excluded.delivered_at, delivered_at)),
        read_at = min(coalesce(read_at, excluded.read_at), coalesce(excluded.read_at, read_at)),
        played_at = min(coalesce(played_at, excluded.played_at), coalesce(excluded.played_at, played_at)),
        failed_at = min(coalesce(failed_at, excluded.failed_at), coalesce(excluded.failed_at, failed_at))";

impl Database {
    /// See [`Store::merge_receipts`](retoma_store::Store::merge_receipts).
    pub fn merge_receipts(&self, batch: &[Receipt]) -> retoma_store::Result<()> {
        batch.iter().try_for_each(|receipt| Ok(self.merge_receipt(receipt)?))
    }

    pub(crate) fn merge_receipt(&self, receipt: &Receipt) -> Result<()> {
        let failed = receipt.status == ReceiptStatus::Failed;
        self.connection.prepare_cached(MERGE)?.execute(params![
            receipt.provider_message_id,
            receipt.channel.as_str(),
            receipt.tenant.as_str(),
            None::<&str>,
            rank(receipt.status),
            (!failed).then(|| ms(receipt.at)),
            failed.then(|| ms(receipt.at)),
        ])?;
        Ok(())
    }

    /// Our own result's half: which task the message belongs to. Whoever comes second sees both.
    pub(crate) fn link_message(&self, task: &Task, message: &str, rank: i64, at: Timestamp) -> Result<()> {
        self.connection.prepare_cached(MERGE)?.execute(params![
            message,
            task.channel.as_str(),
            task.tenant.as_str(),
            task.id.as_str(),
            rank,
            (rank > 0).then(|| ms(at)),
            None::<i64>,
        ])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stands_beside_the_ladder_until_the_message_arrives() {
        use ReceiptStatus::{Accepted, Delivered, Failed, Read, Sent};
        for (rank, failed, expected) in [
            (0, false, None),
            (0, true, Some(Failed)),
            (1, false, Some(Accepted)),
            (2, true, Some(Failed)),
            (2, false, Some(Sent)),
            (3, true, Some(Delivered)),
            (4, true, Some(Read)),
        ] {
            assert_eq!(word(rank, failed), expected, "rank {rank}, failed {failed}");
        }
    }
}
