//! The decision: one event, or one burst of messages, becomes a new state, log rows, tasks and a deadline (C1 to C9).
//!
//! Called by the owner of the contact's bucket, by the scenario player and by whoever replays history. Pure: the same
//! arguments give the same [`Decision`], and [`Decision::apply`] says what it means. It never sends, never looks at a
//! clock, and never asks whether a promised message may still leave: that is [`check`](crate::send_check::check), later.
//!
//! Read [`decide`] and the three stories below it; each step is a small function of a submodule.

use jiff::Timestamp;

use crate::decision::Decision;
use crate::event::{Event, EventKind};
use crate::flow::Flow;
use crate::ids::ChannelName;
use crate::state::ContactView;

mod burst_words;
mod clock;
mod cycle;
mod draft;
mod human;
mod merge;
mod operator;
mod payment;
mod ping_pong;
mod renewal;
mod silence;
mod table;

use burst_words::Wish;
use draft::{Cause, Draft};
use ping_pong::Guess;

/// What a decision needs from the installation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Where tasks are delivered to when neither the contact nor the event names a channel.
    pub default_channel: ChannelName,
}

/// Decides one event, or one burst of chat messages of the same contact, in the order in which they were committed.
pub fn decide(flow: &Flow, view: &ContactView, events: &[Event], setup: &Setup, now: Timestamp) -> Decision {
    let Some(last) = events.last() else { return Decision::default() };
    if last.contact.is_none() {
        return Decision::recorded(events, "no_contact");
    }
    // Who stood in a state that this version of the flow no longer has stands where the flow says (M1).
    let settled = flow.settle(view);
    let mut draft = Draft::open(flow, view, &settled, setup, now);
    // What the API promised "unless this happens" is closed whatever cycle, state or flow the event ends up in.
    draft.close_asked_for(last.kind);
    match last.kind {
        EventKind::MessageReceived => hear(&mut draft, events),
        EventKind::ClockTimeout => clock::ring(&mut draft, last),
        EventKind::MessageHuman => human::step_in(&mut draft, last),
        EventKind::ContactMerged => merge::take_over(&mut draft, last),
        EventKind::ValuesRenewed => renewal::take(&mut draft, last),
        kind if kind.is_command() => operator::obey(&mut draft, last),
        _ => learn(&mut draft, last),
    }
    draft.close(events)
}

/// The contact wrote.
fn hear(draft: &mut Draft<'_>, messages: &[Event]) {
    // That the contact wrote is true whatever the table answers: it opens the 24 h window and the silence of D5.
    draft.remember_inbound(messages);
    let burst = burst_words::read(draft.flow, messages);
    // Whoever writes may be another robot (C10). Told from what was known before this burst, and used last: a robot's message
    // is recorded like any other, and may opt out.
    let guess = ping_pong::guess(draft, messages);
    // Opt-out and opt-in belong to the person, not to a cycle (C12), so they come before any cycle is looked for. Whoever
    // opted out gets no answer from the table; what was said is recorded.
    let opted_out = draft.contact.opted_out_at.is_some();
    match burst.wish {
        Some(Wish::Silence) => return silence::opt_out(draft, &burst),
        Some(Wish::Return) if opted_out => return silence::opt_in(draft, &burst),
        _ if opted_out => return silence::record_only(draft, &burst),
        _ => {}
    }
    // What was said long ago and comes again after a reconnect is no word to answer; that the contact replied is true all
    // the same (FC-24).
    let fresh: Vec<Event> = messages.iter().filter(|message| !message.is_history()).cloned().collect();
    if fresh.is_empty() {
        return cycle::replied_long_ago(draft, messages);
    }
    let burst = burst_words::read(draft.flow, &fresh);
    // Only a flow that answers a first message opens a cycle for one.
    let opens = burst.ask(draft.flow, &draft.flow.initial).0.is_some();
    let found = cycle::of_chat(draft);
    let Some(mut conversation) = found.or_else(|| opens.then(|| cycle::open(draft, None))) else {
        return draft.ignore("no_transition");
    };
    // Before the table, since the row may arm the very cadence anew.
    payment::close_declared(draft, &mut conversation, burst.last);
    draft.remember_in(&mut conversation, burst.last, false);
    let (row, cause) = burst.ask(draft.flow, &conversation.state);
    match (guess, row) {
        (Guess::Person, Some(row)) => table::follow(draft, &mut conversation, row, &cause),
        (Guess::Person, None) => draft.note(&conversation, &cause, "no_transition"),
        _ => ping_pong::fall_silent(draft, &conversation, &cause, guess),
    }
    draft.keep(conversation);
}

/// A platform, a channel or the gateway told us something.
fn learn(draft: &mut Draft<'_>, event: &Event) {
    let cause = Cause::of_fact(draft.flow, event);
    let is_late = payment::is_late(draft, event);
    draft.remember_person(event, !is_late);
    // A fact that the flow has no answer to opens no cycle: there is nothing to remember it for.
    let found = cycle::of_fact(draft, event);
    let opens = !is_late && table::answers(draft.flow, &draft.flow.initial, event.kind);
    let Some(mut conversation) = found.or_else(|| opens.then(|| cycle::open(draft, event.data.offer.clone()))) else {
        return draft.ignore(if is_late { "late_fact" } else { cause.missing() });
    };
    // What cadences declare holds in any state, for late facts too (C4); before the table, since a row may arm anew.
    payment::close_declared(draft, &mut conversation, event);
    payment::take_back(draft, event);
    let is_repeated = payment::is_repeated(draft, &conversation, event);
    if is_late || is_repeated {
        // Nothing moves, and older values overwrite nothing (FC-08, FC-37).
        draft.note(&conversation, &cause, if is_late { "late_fact" } else { "repeated_fact" });
        return draft.keep(conversation);
    }
    draft.remember_in(&mut conversation, event, true);
    // Paid is paid, whether or not the table has a row for it.
    payment::settle(draft, &mut conversation, event);
    match table::row_for_fact(draft.flow, &conversation.state, event.kind) {
        Some(row) => {
            // Only what moves it says what the cycle is about: the refund of an older sale does not.
            cycle::adopt(&mut conversation, event);
            table::follow(draft, &mut conversation, &row, &cause);
        }
        None => draft.note(&conversation, &cause, cause.missing()),
    }
    draft.keep(conversation);
}
