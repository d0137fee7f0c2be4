//! What a burst of messages is taken for (C2, C7): the words its texts propose, and whether it asks for silence.

use crate::event::{Event, EventKind};
use crate::flow::{Flow, Row};

use super::draft::Cause;

/// What the contact wishes to get from us at all (C12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    /// Nothing any more.
    Silence,
    /// Messages again.
    Return,
}

/// A burst, read.
pub(super) struct Burst<'a> {
    /// Its last message.
    pub(super) last: &'a Event,
    /// The last wish it states.
    pub(super) wish: Option<Wish>,
    /// The rule that the wish was read by.
    pub(super) wish_rule: Option<String>,
    /// Whether a sentence of it may have meant silence, and did not clearly say so (FC-58).
    flag: Option<&'static str>,
    /// Words proposed, the highest priority first.
    proposals: Vec<Proposal<'a>>,
    /// The flow's word for any message.
    any_message: &'a str,
}

struct Proposal<'a> {
    word: &'a str,
    rule: Option<String>,
    priority: i64,
}

/// Reads a burst. Never empty.
pub(super) fn read<'a>(flow: &'a Flow, messages: &'a [Event]) -> Burst<'a> {
    let texts: Vec<&str> = messages.iter().filter_map(|message| message.data.text.as_deref()).collect();
    let classifier = &flow.classifier;
    // Each raw message is asked for a wish, since "sair" between two other lines is still the whole of its message
    // (FC-58). The last one counts: who writes SAIR and then VOLTAR wants to stay.
    let wish_of = |text: &&str| match (classifier.is_opt_out(text), classifier.is_opt_in(text)) {
        (true, _) => Some((Wish::Silence, classifier.classify(text).rule)),
        (_, true) => Some((Wish::Return, classifier.classify(text).rule)),
        _ => None,
    };
    let (wish, wish_rule) = texts.iter().rev().find_map(wish_of).unzip();
    let is_unclear = wish.is_none() && texts.iter().any(|text| classifier.hints_at_opt_out(text));
    let joined = (texts.len() > 1).then(|| texts.join("\n"));
    let mut proposals: Vec<Proposal<'a>> = texts
        .iter()
        .copied()
        .chain(joined.as_deref())
        .filter_map(|text| {
            let hit = classifier.classify(text);
            Some(Proposal { word: hit.word?, rule: hit.rule, priority: hit.priority })
        })
        // A wish has its own way. One that was taken back in the same breath must not come in through the table.
        .filter(|proposal| flow.opt_out_word.as_deref() != Some(proposal.word))
        .collect();
    // Stable: of two words with one priority, the one said first.
    proposals.sort_by_key(|proposal| -proposal.priority);
    Burst {
        last: messages.last().expect("a burst holds a message"),
        wish,
        wish_rule: wish_rule.flatten(),
        flag: is_unclear.then_some("maybe_opt_out"),
        proposals,
        any_message: flow.word_of(EventKind::MessageReceived).unwrap_or(EventKind::MessageReceived.as_str()),
    }
}

impl<'a> Burst<'a> {
    /// The row that the burst takes in a state, and what the log says of it. The first word that has a row here; else the
    /// strongest word is tried as any message, and the log names both (C2).
    pub(super) fn ask(&self, flow: &'a Flow, state: &str) -> (Option<&'a Row>, Cause<'a>) {
        for proposal in &self.proposals {
            if let Some(row) = flow.row(state, proposal.word) {
                let word = Cause::word(self.last, proposal.word);
                let cause = Cause { rule: proposal.rule.clone(), flag: self.flag, ..word };
                return (Some(row), cause);
            }
        }
        let cause = match self.proposals.first() {
            Some(strongest) => Cause {
                taken_as: Some(self.any_message.to_owned()),
                rule: strongest.rule.clone(),
                ..Cause::word(self.last, strongest.word)
            },
            None => Cause::word(self.last, self.any_message),
        };
        let cause = Cause { flag: self.flag, ..cause };
        (flow.row(state, self.any_message), cause)
    }

    /// The cause of a wish: its word, tried as any message where `taken_as_message`.
    pub(super) fn wish_cause(&self, word: &str, taken_as_message: bool) -> Cause<'a> {
        let taken_as = taken_as_message.then(|| self.any_message.to_owned());
        Cause { taken_as, rule: self.wish_rule.clone(), ..Cause::word(self.last, word) }
    }

    /// The flow's word for any message.
    pub(super) fn any_message(&self) -> &'a str {
        self.any_message
    }
}
