//! What channels and caps allow: the 24 h window, templates, time-outs, how much is said in a day (W1, W2, W4, P1, L3).

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use super::{Checker, messages};
use crate::classify::fold;
use crate::duration;
use crate::event::EventKind;
use crate::flow::{Cadence, Window};
use crate::task::MessageClass;

/// What a request takes beside the provider's "typing": the way there, its queue, the way back.
const SEND_MARGIN: Duration = Duration::from_secs(5);

/// Words of discount and of urgency, folded. To the provider a text with one of them is marketing.
const SELLING: [&str; 28] = [
    "desconto",
    "descontos",
    "promocao",
    "promocoes",
    "oferta",
    "ofertas",
    "cupom",
    "gratis",
    "imperdivel",
    "liquidacao",
    "brinde",
    "off",
    "black friday",
    "ultima chance",
    "ultima chamada",
    "ultimas vagas",
    "ultimas unidades",
    "ultimo dia",
    "ultimas horas",
    "so hoje",
    "somente hoje",
    "apenas hoje",
    "corra",
    "aproveite",
    "tempo limitado",
    "nao perca",
    "preco especial",
    "condicao especial",
];

pub(super) fn check(checker: &mut Checker<'_>) {
    windows(checker);
    selling(checker);
    time_outs(checker);
    caps(checker);
}

/// W1, W2: touches that may come when free text is not allowed any more, and have no template.
fn windows(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    // The narrowest window of those that the file knows: a contact may be in any of its channels.
    let open = flow.channels.values().filter(|rules| !rules.skips_when_closed).filter_map(|rules| rules.window);
    let Some(Window { lasts, margin }) = open.min_by_key(|window| window.lasts.saturating_sub(window.margin)) else {
        return;
    };
    for (name, cadence) in &flow.cadences {
        let is_answer = follows_a_message(checker, name, cadence);
        for (touch, line) in cadence.touches.iter().zip(&checker.lines.cadences[name].touches) {
            if flow.messages.get(&touch.send).is_none_or(|message| message.template.is_some()) {
                continue;
            }
            let fix = format!("give {} a `template`, or write `window_closed: skip` at the channel", touch.send);
            if !is_answer {
                let message = format!(
                    "touch {} counts from what is no message of the contact's, so the window may be closed, and {} has no template",
                    touch.id, touch.send
                );
                checker.reader.error("W2", *line, message, fix.as_str());
            }
            let worst = touch.at + touch.jitter + touch.max_late;
            if worst > lasts.saturating_sub(margin) {
                let message = format!(
                    "touch {} may leave {} after the contact's last message; the window is closed then, and {} has no template",
                    touch.id,
                    duration::format(worst),
                    touch.send
                );
                checker.reader.error("W1", *line, message, fix);
            }
        }
    }
}

/// Whether only messages of the contact's arm the cadence.
fn follows_a_message(checker: &Checker<'_>, name: &str, cadence: &Cadence) -> bool {
    let flow = checker.flow;
    let is_chat = |word: &str| match flow.words.get(word) {
        Some(kind) => *kind == EventKind::MessageReceived,
        None => checker.lines.rules.iter().any(|(_, entry)| entry.rule.emit == word),
    };
    let mut arming = checker.rows().filter(|(row, _)| row.arms() == Some(name)).peekable();
    match arming.peek() {
        Some(_) => arming.all(|(row, _)| is_chat(&row.event)),
        None => cadence.starts_with == Some(EventKind::MessageReceived),
    }
}

/// W4: a template called utility whose text sells. The provider reclassifies it, or refuses it.
fn selling(checker: &mut Checker<'_>) {
    static CODE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{\{.*?\}\}|\{%.*?%\}").expect("the pattern is a constant"));
    for (name, text, line) in messages::texts(checker) {
        let template = checker.flow.messages[name].template.as_ref();
        if template.is_none_or(|template| template.category != Some("utility")) {
            continue;
        }
        let said = fold::fold(&CODE.replace_all(text, " "));
        let said: Vec<&str> = fold::words(&said).collect();
        let sells = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            said.windows(words.len()).any(|window| window == words)
        };
        if let Some(words) = SELLING.into_iter().find(|words| sells(words)) {
            let message = format!("the template of {name} is called utility, and its text says \"{words}\"");
            checker.reader.warn("W4", line, message, "write `category: marketing`, or leave the wording out");
        }
    }
}

/// P1: a request that is given up while the provider still shows "typing" ends as unknown, every time.
fn time_outs(checker: &mut Checker<'_>) {
    for (name, rules) in &checker.flow.channels {
        let least = rules.typing_delay + SEND_MARGIN;
        if rules.send_timeout.is_some_and(|timeout| timeout < least) {
            let message = format!("channel {name} gives a request up before the provider can have sent it");
            let fix = format!("write `total_timeout: {}` or more", duration::format(least));
            checker.reader.error("P1", checker.lines.channels[name], message, fix);
        }
    }
}

/// L3: one cadence alone has more to say than the caps let through.
fn caps(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let is_reminder =
        |name: &str| flow.messages.get(name).is_some_and(|message| message.class == MessageClass::Reminder);
    for (name, cadence) in &flow.cadences {
        let counted = cadence.touches.iter().filter(|touch| touch.before.is_none() && is_reminder(&touch.send));
        let at: Vec<Duration> = counted.map(|touch| touch.at).collect();
        let most_within = |per: Duration| {
            let from = |start: &Duration| at.iter().filter(|other| **other >= *start && **other - *start < per).count();
            at.iter().map(from).max().unwrap_or(0)
        };
        for cap in &flow.limits.frequency {
            let most = most_within(cap.per);
            if most > usize::try_from(cap.max).unwrap_or(usize::MAX) {
                let per = duration::format(cap.per);
                let message =
                    format!("cadence {name} has {most} reminders within {per}, and only {} may leave", cap.max);
                let fix = "take touches out, put them farther apart, or raise `limits.frequency`";
                checker.reader.warn("L3", checker.lines.cadences[name].cadence, message, fix);
                break;
            }
        }
    }
}
