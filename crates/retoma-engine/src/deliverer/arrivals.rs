//! What becomes of messages after they were accepted (FC-78): looked at now and then, so that the check knows whether a message
//! without a receipt means something, and a channel that swallows messages is slowed down and told.

use jiff::{SignedDuration, Timestamp};
use retoma_core::receipt::Arrivals;
use retoma_store::{Error, Store};

use crate::shared::Shared;

/// Between two looks. Shorter than what the pace needs to recover, so that a channel that is eased stays eased.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(20);

/// When the channels were looked at last.
#[derive(Debug, Default)]
pub(crate) struct ArrivalLooks {
    last: Option<Timestamp>,
}

impl ArrivalLooks {
    /// Looks where it is time to. Where too many messages vanish, the channel slows down for as long as it is so: whatever
    /// swallows them, a blocked number or a dead socket, is made worse by haste.
    pub(crate) async fn refresh<S: Store>(&mut self, store: &S, shared: &Shared, now: Timestamp) -> Result<(), Error> {
        if self.last.is_some_and(|last| now.duration_since(last) < LOOK_EVERY) {
            return Ok(());
        }
        self.last = Some(now);
        let channels: Vec<_> = shared.setup.channels.keys().cloned().collect();
        let seen = store.arrivals(shared.setup.tenant.clone(), channels.clone(), now).await?;
        for (channel, seen) in channels.iter().zip(seen) {
            let before = shared.note_arrivals(channel, seen);
            if seen.vanish() {
                shared.traffic.ease(channel, shared.clock.monotonic());
            }
            match (before.vanish(), seen.vanish()) {
                (false, true) => {
                    let Arrivals { accepted, silent, .. } = seen;
                    tracing::error!(
                        event = "messages_vanish", channel = %channel, accepted, silent,
                        "accepted messages are not heard of again: look at the instance, and at the webhook that tells of receipts"
                    );
                }
                (true, false) => {
                    tracing::info!(event = "messages_arrive_again", channel = %channel, "receipts come again");
                }
                _ => {}
            }
        }
        Ok(())
    }
}
