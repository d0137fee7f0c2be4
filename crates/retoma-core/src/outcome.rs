//! Outcomes of an attempt, and what each one leads to (E2-E4). Types first; [`after_attempt`] is the whole rule.
//!
//! The completer asks it when a request has ended, recovery after a crash for requests that were left open. Which answer of
//! which provider is which outcome is said in that provider's `outbound.rs`, not here.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::retry::{self, RetryPolicy};
use crate::send_check::Reason;
use crate::task::{MessageClass, OnAmbiguous, Task, words};

words!(
    /// The class of an attempt's end (reference/whatsapp-providers.md, 5).
    Outcome {
        /// The provider took it.
        Accepted = "accepted",
        /// Surely not sent; try again.
        Transient = "transient",
        /// Too many messages to this recipient.
        RatePair = "rate_pair",
        /// Too many messages from this number.
        RateNumber = "rate_number",
        /// Too many messages from this account.
        RateAccount = "rate_account",
        /// Nobody knows whether it was sent.
        Ambiguous = "ambiguous",
        /// This address cannot be written to.
        Recipient = "recipient",
        /// This content cannot be sent.
        Content = "content",
        /// This template cannot be sent.
        Template = "template",
        /// The 24 h window is closed.
        Window = "window",
        /// The recipient takes no marketing now.
        Marketing = "marketing",
        /// Our credentials are wrong: the channel stops.
        Credentials = "credentials",
        /// The account is blocked or unpaid: the channel stops.
        Account = "account",
        /// Closed before a byte left, because the reason was gone.
        NotSent = "not_sent",
    }
);

/// What an attempt ended with, as a provider's table reads it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// Its class.
    pub outcome: Outcome,
    /// The status of the answer, where there was one.
    pub http_status: Option<u16>,
    /// A sentence for people, without phone, text or secret.
    pub error: Option<String>,
    /// The answer's body: masked, at most 2 KiB.
    pub response: Option<String>,
    /// The provider's id of the message.
    pub provider_message_id: Option<String>,
    /// How long the provider asked us to wait.
    pub retry_after: Option<Duration>,
}

/// Where the task goes after an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum NextStep {
    /// `sent`.
    Sent,
    /// `failed`; tried again at that time. `counts` is false where the attempt does not count against the policy.
    Retry {
        /// When.
        at: Timestamp,
        /// Whether the attempt counts.
        counts: bool,
    },
    /// `failed`; tried at once under the number's other spelling. Happens once in a task's life and counts as no attempt.
    Respell {
        /// When.
        at: Timestamp,
    },
    /// `dead`.
    Dead,
    /// `unsure` until then.
    Unsure {
        /// When the policy decides.
        until: Timestamp,
    },
    /// `held`.
    Held(Reason),
    /// `cancelled`.
    Cancelled(Reason),
}

/// What may follow an end, beside what the task itself says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chances {
    /// How long evidence is waited for after an ambiguous end (E4). Echoes and status webhooks take minutes; after this the
    /// policy decides.
    pub reconcile_for: Duration,
    /// Whether the number that was written to has another spelling (Brazil's ninth digit, C11).
    pub other_spelling: bool,
}

/// What becomes of a task whose outcome nobody could learn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Taken as sent.
    AssumeSent,
    /// A person decides.
    Hold,
    /// Sent once more, on record.
    ResendOnce,
}

/// The longest wait that a provider may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Waits without a `Retry-After`. They do not grow, since these attempts are not counted; the sender's own rate is what
/// keeps them rare.
const PAIR_WAIT: Duration = Duration::from_secs(15);
const NUMBER_WAIT: Duration = Duration::from_secs(30);
const ACCOUNT_WAIT: Duration = Duration::from_secs(300);
/// A task of a stopped channel looks again after this time; the check puts it off further while the channel is stopped.
const STOPPED_WAIT: Duration = Duration::from_secs(30);
/// Trying a recipient that takes no marketing again any sooner makes it worse (FC-31).
const MARKETING_WAIT: Duration = Duration::from_secs(24 * 3600);
/// How much of the waits that follow no policy is drawn.
const JITTER: f64 = 0.2;

/// Where a task goes after an attempt. `used` counts the attempts that count, this one included; the wait of a
/// `Retry` says what it means for the next count.
///
/// A task that was cancelled while it was under way survives that mark only if it was accepted (D2): what failed is not tried
/// again, and what is ambiguous is not waited for, since whatever the evidence said, nothing would be done about it.
pub fn after_attempt(
    task: &Task,
    used: u32,
    end: &AttemptEnd,
    policy: &RetryPolicy,
    chances: Chances,
    now: Timestamp,
) -> NextStep {
    if end.outcome == Outcome::Accepted {
        return NextStep::Sent;
    }
    if let Some(reason) = task.cancel_reason {
        return NextStep::Cancelled(reason);
    }
    // Never before the wish, and not all at the very moment of it (FC-64).
    let asked = end.retry_after.map(|wait| {
        let wait = wait.min(RETRY_AFTER_MAX);
        wait + retry::jittered(wait / 20, 1.0, task.id.as_str())
    });
    let again = |wait: Duration, counts: bool| NextStep::Retry { at: now + wait, counts };
    // A provider may ask for less than its limit needs, never for a loop.
    let limited = |usual: Duration| {
        let usual = retry::jittered(usual, JITTER, task.id.as_str());
        again(asked.unwrap_or(usual).max(Duration::from_secs(1)), false)
    };
    match end.outcome {
        Outcome::Accepted => NextStep::Sent,
        Outcome::Transient if used >= policy.attempts => NextStep::Dead,
        Outcome::Transient => again(policy.delay(used, task.id.as_str()).max(asked.unwrap_or_default()), true),
        Outcome::RatePair => limited(PAIR_WAIT),
        Outcome::RateNumber => limited(NUMBER_WAIT),
        Outcome::RateAccount => limited(ACCOUNT_WAIT),
        Outcome::Ambiguous => NextStep::Unsure { until: now + chances.reconcile_for },
        // Both spellings of a Brazilian mobile are valid, and only the provider knows which one is the account.
        Outcome::Recipient if chances.other_spelling && !task.respelled => NextStep::Respell { at: now },
        Outcome::Recipient | Outcome::Content | Outcome::Template => NextStep::Dead,
        Outcome::Window => NextStep::Held(Reason::WindowClosed),
        Outcome::Marketing => after_marketing_limit(task, used, policy, now),
        // The channel stops, and with it every try: none of that is this message's fault (E3).
        Outcome::Credentials | Outcome::Account => again(STOPPED_WAIT, false),
        // No byte left. The check, asked again at once, finds out whether there is still a reason.
        Outcome::NotSent => again(Duration::ZERO, false),
    }
}

/// The recipient takes no marketing now (131049): never again within a day, each wait twice as long, and never past the
/// task's own life (FC-31). A task that has no life of its own, or whose life is over by then, is dead: what nobody wants to
/// read is not worth a place in a queue.
fn after_marketing_limit(task: &Task, used: u32, policy: &RetryPolicy, now: Timestamp) -> NextStep {
    let wait = MARKETING_WAIT * 2u32.saturating_pow(used.saturating_sub(1).min(10));
    // Only later than a day, never sooner.
    let at = now + wait + retry::jittered(wait / 20, 1.0, task.id.as_str());
    let is_alive = task.max_late.is_some_and(|late| at <= task.scheduled_for + late);
    if is_alive && used < policy.attempts { NextStep::Retry { at, counts: true } } else { NextStep::Dead }
}

/// What the policy says of a task whose time for evidence is over: the channel's, if it is configured (it knows best what its
/// provider is like), else the message's, else the class's: another reminder is worse than one that was lost, and everything
/// else is for a person to judge (E4). A resend happens once in a task's life.
pub fn settle_unsure(task: &Task, channel: Option<OnAmbiguous>) -> Settled {
    let by_class = match task.class {
        MessageClass::Reminder => OnAmbiguous::AssumeSent,
        MessageClass::Reply | MessageClass::Receipt | MessageClass::OptOutAck | MessageClass::Internal => {
            OnAmbiguous::Hold
        }
    };
    match channel.or(task.on_ambiguous).unwrap_or(by_class) {
        OnAmbiguous::AssumeSent => Settled::AssumeSent,
        OnAmbiguous::ResendOnce if !task.resent => Settled::ResendOnce,
        OnAmbiguous::ResendOnce | OnAmbiguous::Hold => Settled::Hold,
    }
}

#[cfg(test)]
mod tests;
