//! The check before sending (D4): whether a promised message may leave now.
//!
//! The deliverer asks [`check`] for every due task, right before it commits the start; `contact plan` asks it for instants to
//! come. It looks at the contact as the last commit left it, at events that are stored but not decided yet, and at payment
//! facts of whichever contact. It sends nothing, waits for nothing and closes nothing: the answer is a [`Verdict`].
//!
//! What took a reason away is told by `gone`, how close together messages may be by `pace`.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::calendar;
use crate::event::EventKind;
use crate::flow::Flow;
use crate::state::ContactView;
use crate::task::{MessageClass, Task, words};

mod gone;
mod pace;

words!(
    /// Why a task was closed, put off or held. In the order of the check.
    Reason {
        /// The contact asked for silence.
        OptedOut = "opted_out",
        /// The cycle ended.
        CycleClosed = "cycle_closed",
        /// Paid.
        Paid = "paid",
        /// Money given back.
        Refunded = "refunded",
        /// Cancelled by the platform, a person or the API.
        Cancelled = "cancelled",
        /// Another cadence, or another state, took over.
        Superseded = "superseded",
        /// A person is in the chat.
        HumanActive = "human_active",
        /// Past its maximum lateness.
        TooLate = "too_late",
        /// The HTTP guard says paid.
        GuardPaid = "guard_paid",
        /// The HTTP guard cannot tell.
        GuardUnknown = "guard_unknown",
        /// Nobody is written to at this hour.
        QuietHours = "quiet_hours",
        /// The contact just wrote.
        JustWrote = "just_wrote",
        /// Too close to the message before.
        MinGap = "min_gap",
        /// A later touch of the same cadence stands for it.
        PiledUp = "piled_up",
        /// Too many reminders in a day or a week.
        FrequencyCap = "frequency_cap",
        /// Too many automatic messages without an answer.
        UnansweredLimit = "unanswered_limit",
        /// The last messages to this contact were accepted, and no receipt ever came (FC-78).
        NoReceipt = "no_receipt",
        /// The message needs a value that nobody gave.
        MissingVariable = "missing_variable",
        /// The message would carry a value past its life.
        Perished = "perished",
        /// The 24 h window is closed and the message has no template.
        WindowClosed = "window_closed",
        /// The channel is stopped.
        ChannelStopped = "channel_stopped",
        /// Not a step of the check: the outcome of a send stayed unknown, and a person decides (E4).
        Unconfirmed = "unconfirmed",
    }
);

/// What the check says about one task at one instant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Send it now.
    Send,
    /// Close it: `cancelled`, `avoided = true`.
    Avoid(Reason),
    /// Look again at that time; it stays `scheduled`.
    Defer(Reason, Timestamp),
    /// A person decides. The text says what is missing.
    Hold(Reason, String),
}

impl Reason {
    /// The code written into what an event of this kind closes.
    pub fn closing(kind: EventKind) -> Self {
        match kind {
            EventKind::PaymentApproved | EventKind::SubscriptionRenewed | EventKind::OrderCompleted => Reason::Paid,
            EventKind::PaymentRefunded
            | EventKind::PaymentPartiallyRefunded
            | EventKind::PaymentRefundRequested
            | EventKind::PaymentChargeback => Reason::Refunded,
            EventKind::OperatorOptOut => Reason::OptedOut,
            _ => Reason::Cancelled,
        }
    }
}

/// Everything that the check looks at.
#[derive(Clone, Debug)]
pub struct CheckInput<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its contact.
    pub view: &'a ContactView,
    /// The flow whose messages it uses.
    pub flow: &'a Flow,
    /// Whether its channel is stopped, or there is none of that name.
    pub channel_stopped: bool,
    /// Whether its channel tells what became of messages, so that one without a receipt means something.
    pub receipts_told: bool,
    /// What the HTTP guard of its cadence said of it, where one was asked and the answer still holds.
    pub guard: Option<Guard>,
    /// What composing found missing: a template value, a message, an address to write to.
    pub missing: Option<String>,
    /// Whether what is missing was there once, and perished (D10).
    pub perished: bool,
}

/// What the HTTP guard says (D4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// Not paid, as far as it knows.
    Unpaid,
    /// Paid.
    Paid,
    /// It did not answer, or not in words that we know.
    Unknown,
}

/// A stopped channel is looked at again after this time.
const CHANNEL_LOOK: Duration = Duration::from_secs(30);

/// Where no hour of the week is open, the calendar is looked at again after this time; at last the task is too late.
const CLOSED_LOOK: Duration = Duration::from_secs(24 * 3600);

/// Whether the task may start now. The order is fixed and cannot be configured; the first step that objects decides.
///
/// Steps that end a task for good come before those that put it off, so that nothing waits for the morning only to be
/// dropped; among the former, what the person wants comes before what the money says, and that before our own manners.
/// Which class is held to which step is D4's table: a `reminder` to all; a `reply`, which the contact asked for, to those that
/// are not about nagging; a `receipt`, which the contact paid for, and an `optout_ack` only to what makes them wrong or
/// impossible.
pub fn check(input: &CheckInput<'_>, now: Timestamp) -> Verdict {
    use MessageClass::{Internal, OptOutAck, Receipt, Reminder, Reply};
    let CheckInput { task, view, flow, .. } = *input;
    let class = task.class;
    let talks = matches!(class, Reminder | Reply);
    let sells = talks || class == Receipt;
    let known = gone::Known::about(input);

    // The person's own word stands above everything that follows. Only what was paid is still delivered, if so configured
    // (C12), and the confirmation itself.
    // What goes to the seller's own people is nobody's message: only a stopped channel keeps it.
    let is_excepted = matches!(class, OptOutAck | Internal) || (class == Receipt && flow.limits.receipts_after_opt_out);
    if !is_excepted && known.is_opted_out() {
        return Verdict::Avoid(Reason::OptedOut);
    }
    // Is there still a sale to talk about? The cycle first, since without it there is no state to look at; then money, in
    // the order in which it moves. Events received but not decided count (FC-36): the decision may be milliseconds away.
    if talks && known.is_cycle_closed() {
        return Verdict::Avoid(Reason::CycleClosed);
    }
    if class == Reminder && known.is_paid() {
        return Verdict::Avoid(Reason::Paid);
    }
    if sells && known.is_refunded() {
        return Verdict::Avoid(Reason::Refunded);
    }
    if sells && known.is_cancelled() {
        return Verdict::Avoid(Reason::Cancelled);
    }
    // Whoever asked for this very task, or marked it while it was under way, named what takes it back.
    if let Some(reason) = known.taken_back() {
        return Verdict::Avoid(reason);
    }
    // The sale goes on, but elsewhere: another cadence, or a state in which this one does not run.
    if talks && known.is_superseded() {
        return Verdict::Avoid(Reason::Superseded);
    }
    // A person is in the chat; a robot that talks over them is worse than silence (C8).
    if talks && pace::paused_until(view).is_some_and(|until| until > now) {
        return Verdict::Avoid(Reason::HumanActive);
    }
    if class == Reminder {
        // Before all that puts off: what is too late now will not be less so in the morning.
        if task.max_late.is_some_and(|late| task.scheduled_for + late < now) {
            return Verdict::Avoid(Reason::TooLate);
        }
        // The HTTP guard: after everything that is known for nothing, before everything that only asks for patience. One that
        // was not asked yet is asked while the task waits; no answer never means "send".
        if let Some(revalidate) = known.cadence.and_then(|cadence| cadence.revalidate.as_ref()) {
            match input.guard {
                Some(Guard::Unpaid) => {}
                Some(Guard::Paid) => return Verdict::Avoid(Reason::GuardPaid),
                Some(Guard::Unknown) => return Verdict::Defer(Reason::GuardUnknown, now + revalidate.retry_in),
                None => return Verdict::Defer(Reason::GuardUnknown, now + revalidate.timeout),
            }
        }
        let zone = calendar::zone_of_contact(view, flow);
        if !flow.calendar.allows(now, &zone) {
            let opening = flow.calendar.deferred_to(now, &zone, task.id.as_str());
            return Verdict::Defer(Reason::QuietHours, opening.unwrap_or(now + CLOSED_LOOK));
        }
        // From the outside in: the talk that is going on, the message before, the day, the week.
        if let Some(until) = pace::silent_until(&known, now) {
            return Verdict::Defer(Reason::JustWrote, until);
        }
        if let Some(until) = pace::gap_ends(&known, now) {
            return Verdict::Defer(Reason::MinGap, until);
        }
        if pace::is_piled_up(&known, now) {
            return Verdict::Avoid(Reason::PiledUp);
        }
        if pace::is_capped(&known, now) {
            return Verdict::Avoid(Reason::FrequencyCap);
        }
    }
    // The last line against a loop of two robots: it holds for answers, too.
    if talks && pace::is_unanswered(&known) {
        return Verdict::Avoid(Reason::UnansweredLimit);
    }
    // Accepted, and then nothing for ever: more of the same helps nobody and costs the number its reputation (FC-78).
    if talks && input.receipts_told && pace::vanishes(&known, now) {
        return Verdict::Avoid(Reason::NoReceipt);
    }
    // Whether the message can be written at all. Late, so that nobody is asked to fill a gap in what would not be sent
    // anyway. It holds for every class, since without a text or an address there is nothing to send. A value that perished
    // is not one that somebody forgot: no person can supply it.
    if let Some(missing) = input.missing.as_ref().filter(|_| !input.perished) {
        return Verdict::Hold(Reason::MissingVariable, missing.clone());
    }
    if input.perished {
        return Verdict::Avoid(Reason::Perished);
    }
    // Here stands `window_closed` (D6), for official channels: no channel has a 24 h window yet. It comes after the text,
    // because a template may take its place.
    //
    // Last, since it says nothing about this message: everything else may have changed when the channel is back.
    if input.channel_stopped {
        return Verdict::Defer(Reason::ChannelStopped, now + CHANNEL_LOOK);
    }
    Verdict::Send
}

#[cfg(test)]
mod tests;
