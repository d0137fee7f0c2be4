//! The loop guard (C10, FC-12): two robots that answer each other end on the second turn; what looks less certain ends after
//! a few. Everything goes on being recorded, and a person is told.

use jiff::Timestamp;

use crate::classify::fold::fold;
use crate::event::Event;
use crate::keys::digest16;
use crate::state::{Conversation, PingPong};
use crate::task::MessageClass;

use super::draft::{Cause, Draft};
use super::table;

/// Why a burst gets no answer.
const LOOP: &str = "bot_loop";

/// What the guard says of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Guess {
    /// A person, as far as one can see.
    Person,
    /// The same words, faster than anybody types them: an auto-reply. It gets no answer, and that ends it.
    AutoReply,
    /// A loop that went on for too long: automatic messages stay away for as long as in a takeover.
    Loop,
}

/// Takes note of a burst, and says who seems to be writing.
pub(super) fn guess(draft: &mut Draft<'_>, messages: &[Event]) -> Guess {
    let guard = &draft.flow.loop_guard;
    let texts: Vec<&str> = messages.iter().filter_map(|message| message.data.text.as_deref()).collect();
    let words = fold(&texts.join("\n"));
    let said = (!words.is_empty()).then(|| format!("{:?}", digest16("said", &[words.as_bytes()])));
    let heard_at = messages.iter().map(|message| message.received_at).min().unwrap_or(draft.now);
    let before = &draft.view.contact;
    // Only what answers a message of ours can be part of a loop; somebody who insists is none.
    let answered = our_sends(draft)
        .filter(|sent| *sent <= heard_at)
        .max()
        .filter(|sent| before.last_inbound_at.is_none_or(|heard| heard <= *sent));
    let is_quick = answered.is_some_and(|sent| heard_at < sent + guard.reply_under);
    let is_same = answered.is_some() && said.is_some() && said == before.ping_pong.said;
    let same = if is_same { before.ping_pong.same + 1 } else { 0 };
    let quick = if is_quick { before.ping_pong.quick + 1 } else { 0 };
    let lately = our_sends(draft).filter(|sent| *sent + guard.most.per > draft.now).count();
    let goes_on = quick >= guard.times || same + 1 >= guard.times || lately >= guard.most.max as usize;
    draft.contact.ping_pong = PingPong { said, same, quick };
    match (goes_on, is_quick && is_same) {
        (true, _) => Guess::Loop,
        (false, true) => Guess::AutoReply,
        (false, false) => Guess::Person,
    }
}

fn our_sends(draft: &Draft<'_>) -> impl Iterator<Item = Timestamp> {
    draft.view.sends.iter().filter(|send| send.class != MessageClass::Internal).map(|send| send.at)
}

/// The burst is recorded and not answered. A loop that went on for long keeps automatic messages away like a takeover.
pub(super) fn fall_silent(draft: &mut Draft<'_>, conversation: &Conversation, cause: &Cause<'_>, guess: Guess) {
    if guess == Guess::Loop {
        let until = draft.now + draft.flow.takeover.auto_end;
        let is_new = draft.contact.paused_until.is_none_or(|paused| paused <= draft.now);
        draft.contact.paused_until = draft.contact.paused_until.max(Some(until));
        // A loop that is broken starts from nothing.
        draft.contact.ping_pong = PingPong { said: draft.contact.ping_pong.said.clone(), same: 0, quick: 0 };
        if let Some(whom) = draft.flow.loop_guard.notify.as_deref().filter(|_| is_new) {
            table::tell(draft, Some(conversation), whom, cause);
        }
    }
    draft.note(conversation, cause, LOOP);
}
