//! Values in messages: where they come from, how long they live, where their links lead (V1, V2, V3).

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use super::{Checker, messages};
use crate::duration;
use crate::finding::{nearest, suggest};
use crate::flow::around::is_host;
use crate::flow::{Message, Touch, Variable};
use crate::template::{self, RenderError};

/// Where values come from: the person, the platform's event, the cycle itself.
const PLACES: [&str; 6] = ["contact", "offer", "order", "pix", "checkout", "previous"];

/// Values that perish even where the file says nothing of them (D10), and how long one lives at least as a rule: platforms
/// give their codes 15 minutes to an hour.
const PERISHABLE: [&str; 2] = ["pix.code", "pix.qrcode"];
const LIFE: Duration = Duration::from_secs(30 * 60);

pub(super) fn check(checker: &mut Checker<'_>) {
    declared(checker);
    unknown(checker);
    perished(checker);
    foreign_links(checker);
}

fn place(name: &str) -> Option<&str> {
    name.split_once('.').map(|(place, _)| place).filter(|place| PLACES.contains(place))
}

/// V1: declarations that leave open what happens where nobody gives the value.
fn declared(checker: &mut Checker<'_>) {
    for (name, variable) in &checker.flow.vars {
        let line = checker.lines.vars[name];
        let Variable { fallback, is_required, source, perishable, refresh, .. } = variable;
        if fallback.is_none() && !is_required && perishable.is_none() && refresh.is_none() {
            let message = format!("nothing says what happens where nobody gave `{name}`");
            checker.reader.error("V1", line, message, "write a `fallback`, or `required: true`");
        } else if *is_required && fallback.is_none() && source.is_none() && place(name).is_none() {
            let message = format!("`{name}` is required, and no source gives it");
            let fix = format!("write `source:`, who gives it, or a `fallback`; known places: {}", PLACES.join(", "));
            checker.reader.error("V1", line, message, fix);
        }
    }
}

/// V1: names that neither the file nor the places that values come from know. A file that declares its values declares all
/// of them; where a conversation came from (`previous.*`) is ours to say.
fn unknown(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let mut asked: Vec<(&str, String, u32)> = Vec::new();
    for (message, text, line) in messages::texts(checker) {
        asked.extend(template::variables(text).into_iter().map(|name| (message, name, line)));
    }
    for (message, declared) in &flow.messages {
        let template = declared.template.iter();
        asked.extend(
            template.flat_map(|template| {
                template.params.iter().map(|name| (message.as_str(), name.clone(), template.line))
            }),
        );
    }
    for (message, name, line) in asked {
        if flow.vars.contains_key(&name) || name.starts_with("previous.") {
            continue;
        }
        if !flow.vars.is_empty() {
            let fix = match nearest(&name, flow.vars.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("declare it under `vars`, such as `{name}: {{ type: text, fallback: .. }}`"),
            };
            checker.reader.error("V1", line, format!("`{name}`, which {message} asks for, is not declared"), fix);
        } else if place(&name).is_none() {
            let near = suggest(name.split('.').next().unwrap_or_default(), PLACES);
            let fix = format!("{near} A value of your own is declared under `vars`");
            checker.reader.error("V1", line, format!("no source knows `{name}`, which {message} asks for"), fix);
        }
    }
}

/// V2: a touch whose message cannot do without a value that may be dead by then.
fn perished(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (name, cadence) in &flow.cadences {
        for (touch, line) in cadence.touches.iter().zip(&checker.lines.cadences[name].touches) {
            let Some(message) = flow.messages.get(&touch.send) else { continue };
            let values = flow
                .vars
                .keys()
                .map(String::as_str)
                .chain(PERISHABLE.into_iter().filter(|name| !flow.vars.contains_key(*name)));
            for value in values.filter(|value| needs(message, value)) {
                let variable = flow.vars.get(value);
                if let Some(life) = dead_after(value, variable, message, touch) {
                    let message = format!(
                        "touch {} sends `{value}` {} after it was made, and it may be dead after {}",
                        touch.id,
                        duration::format(touch.at),
                        duration::format(life)
                    );
                    let fix = format!(
                        "write `{{% if {value} %}}` around it, `life` at the variable, or another message; a `refresh` renews it"
                    );
                    checker.reader.error("V2", *line, message, fix);
                }
            }
        }
    }
}

/// After how long the value may be dead, where the touch comes later than that and nothing renews it.
fn dead_after(name: &str, variable: Option<&Variable>, message: &Message, touch: &Touch) -> Option<Duration> {
    let expiry = match variable {
        Some(variable) => variable.perishable.as_deref()?,
        None => "pix.expires_at",
    };
    let is_renewed = message.refresh.iter().any(|renewed| renewed == name)
        && variable.is_none_or(|variable| variable.refresh.is_some());
    // One that counts back from the expiry is in time by its own words.
    if is_renewed || touch.before.as_deref() == Some(expiry) {
        return None;
    }
    let life = match variable {
        Some(variable) => variable.life.unwrap_or_default(),
        None => LIFE,
    };
    (touch.at + touch.jitter > life).then_some(life)
}

/// Whether a message cannot be written without the value.
fn needs(message: &Message, value: &str) -> bool {
    if message.template.as_ref().is_some_and(|template| template.params.iter().any(|name| name == value)) {
        return true;
    }
    let names = template::variables(&message.text);
    let others: BTreeMap<String, String> =
        names.into_iter().filter(|name| name != value).map(|name| (name, "1".to_owned())).collect();
    matches!(template::render(&message.text, &others), Err(RenderError::Missing(missing)) if missing == value)
}

/// V3: a link that leads elsewhere than the file allows.
fn foreign_links(checker: &mut Checker<'_>) {
    static LINK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(?i)https?://([^/\s{}"'<>?#]+)"#).expect("the pattern is a constant"));
    let flow = checker.flow;
    let allowed: Vec<&str> =
        flow.vars.values().flat_map(|variable| &variable.allow_hosts).map(String::as_str).collect();
    if allowed.is_empty() {
        return;
    }
    for (message, text, line) in messages::texts(checker) {
        for link in LINK.captures_iter(text) {
            let host = &link[1];
            if !allowed.iter().any(|allowed| is_host(host, allowed)) {
                let message = format!("the text of {message} leads to {host}, which no `allow_hosts` names");
                let fix = format!(
                    "use a variable such as {{{{ checkout.url }}}}, or add it; allowed: {}",
                    allowed.join(", ")
                );
                checker.reader.error("V3", line, message, fix);
            }
        }
    }
}
