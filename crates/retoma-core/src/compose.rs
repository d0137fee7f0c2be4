//! Composing a message: which template values a task has, and its text. Used by the deliverer and by scenarios alike.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::flow::Flow;
use crate::state::ContactView;
use crate::task::{MessageClass, Task};
use crate::template;

/// The values that a task's message may use: the contact's, then its conversation's, then where the conversation came
/// from (`previous.state`, `previous.event`, `previous.reason`, C9), then the task's own reference.
///
/// A PIX code past its life is left out (D10), and the answer says so: a message that can do without it leaves without it,
/// one that cannot is avoided as `perished`.
///
/// Other values that the flow calls `perishable` are left out by [`compose`].
pub fn vars_of(view: &ContactView, task: &Task, now: Timestamp) -> (BTreeMap<String, String>, bool) {
    let mut vars = view.contact.vars.clone();
    if let Some(conversation) = task.conversation.and_then(|id| view.conversation(id)) {
        vars.extend(conversation.vars.iter().map(|(name, value)| (name.clone(), value.clone())));
        let previous = &conversation.previous;
        let named = [
            ("previous.state", &previous.state),
            ("previous.event", &previous.event),
            ("previous.reason", &previous.reason),
        ];
        vars.extend(named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
    }
    if task.class == MessageClass::Internal {
        vars.insert("contact.id".to_owned(), view.contact.id.to_string());
        let cycle = task.conversation.and_then(|id| view.conversation(id));
        let said = cycle.map(|cycle| {
            [("id", Some(cycle.id.to_string())), ("state", Some(cycle.state.clone())), ("offer", cycle.offer.clone())]
        });
        let said = said.into_iter().flatten();
        vars.extend(said.filter_map(|(name, value)| Some((format!("conversation.{name}"), value?))));
    }
    if let Some(amount) = &task.reference.amount {
        vars.entry("order.total".to_owned()).or_insert_with(|| amount.clone());
    }
    if let Some(link) = &task.reference.link {
        vars.entry("checkout.url".to_owned()).or_insert_with(|| link.clone());
    }
    let expires_at = vars.get("pix.expires_at").and_then(|text| text.parse::<Timestamp>().ok());
    let perished = expires_at.is_some_and(|at| at <= now);
    if perished {
        vars.remove("pix.code");
        vars.remove("pix.qrcode");
    }
    (vars, perished)
}

/// A task's message, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    /// The values used.
    pub vars: BTreeMap<String, String>,
    /// The text; `Err` names what is missing.
    pub text: Result<String, String>,
    /// Whether what is missing was there, and perished.
    pub perished: bool,
    /// A value that perished and that the message wants renewed before it leaves.
    pub renew: Option<Renew>,
}

/// What is to be renewed, and who does it (D10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renew {
    /// The value's name: `pix.code`.
    pub value: String,
    /// The name of the value that says when it perishes.
    pub expiry: String,
    /// The `http` channel that is asked.
    pub ask: String,
}

/// Composes a task's message.
pub fn compose(flow: &Flow, view: &ContactView, task: &Task, now: Timestamp) -> Composed {
    let (mut vars, mut perished) = vars_of(view, task, now);
    perished |= remove_perished(flow, &mut vars, now);
    let renew = flow.messages.get(&task.message).and_then(|message| {
        message.refresh.iter().find_map(|name| {
            let declared = flow.vars.get(name)?;
            let expiry = declared.perishable.clone()?;
            let is_dead = is_past(&vars, &expiry, now);
            is_dead.then(|| declared.refresh.clone()).flatten().map(|ask| Renew { value: name.clone(), expiry, ask })
        })
    });
    fill(flow, &mut vars);
    let text = match (&task.text, flow.messages.get(&task.message)) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(message)) => template::render(&message.text, &vars).map_err(|error| error.to_string()),
        (None, None) => Err(format!("message {:?} is not in the flow", task.message)),
    };
    let perished = perished && text.is_err();
    Composed { vars, text, perished, renew }
}

fn is_past(vars: &BTreeMap<String, String>, expiry: &str, now: Timestamp) -> bool {
    vars.get(expiry).and_then(|text| text.parse::<Timestamp>().ok()).is_some_and(|at| at <= now)
}

/// Takes out what the flow calls perishable and is past its life. Answers whether anything was.
fn remove_perished(flow: &Flow, vars: &mut BTreeMap<String, String>, now: Timestamp) -> bool {
    let is_dead = |expiry: Option<&String>| expiry.is_some_and(|expiry| is_past(vars, expiry, now));
    let declared = flow.vars.iter().filter(|(_, declared)| is_dead(declared.perishable.as_ref()));
    let dead: Vec<String> = declared.map(|(name, _)| name.clone()).collect();
    // Every one of them goes, not only the first that was there.
    dead.iter().filter(|name| vars.remove(*name).is_some()).count() > 0
}

/// What the flow says of its values: a `fallback` stands for one that nobody gave, and a link to a host that the flow does
/// not allow counts as none, so that nobody is led to somebody else's page by whoever wrote into an event.
fn fill(flow: &Flow, vars: &mut BTreeMap<String, String>) {
    for (name, declared) in &flow.vars {
        let is_foreign = |value: &String| !declared.allow_hosts.is_empty() && !declared.allows(value);
        if vars.get(name).is_some_and(is_foreign) {
            vars.remove(name);
        }
        if let (false, Some(fallback)) = (vars.contains_key(name), &declared.fallback) {
            vars.insert(name.clone(), fallback.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D6, C15
    #[test]
    fn a_fallback_stands_for_what_is_missing_and_a_foreign_link_is_missing() {
        let flow = "flow: f\nvars:\n  contact.first_name: { fallback: \"amigo(a)\" }\n  checkout.url: { required: true, allow_hosts: [loja.exemplo, \"*.pagar.exemplo\"] }\n\
             classifier: { rules: [{ emit: parar, opt_out: true, match: whole, any: sair }] }\n\
             cadences: { pix: { starts_with: pix.created, cancel_on: [payment.approved], touches: [{ id: a, at: 15m, send: m }] } }\n\
             messages: { m: { class: reminder, text: \"{{ contact.first_name }} {{ checkout.url }}\" } }\n";
        let (flow, findings) = crate::flow::load(flow, "f.yaml");
        let flow = flow.unwrap_or_else(|| panic!("{findings:?}"));
        let table = [
            ("https://loja.exemplo/a", Some("https://loja.exemplo/a")),
            ("HTTPS://br.pagar.exemplo:443/a", Some("HTTPS://br.pagar.exemplo:443/a")),
            ("https://pagar.exemplo/", None),
            ("https://loja.exemplo@outra.exemplo/", None),
            ("https://loja.exemplo.outra.exemplo/", None),
            ("https:\\\\loja.exemplo/", None),
            ("loja.exemplo/a", None),
            ("javascript:alert(1)", None),
        ];
        for (url, expected) in table {
            let mut vars = BTreeMap::from([("checkout.url".to_owned(), url.to_owned())]);
            fill(&flow, &mut vars);
            assert_eq!(vars.get("checkout.url").map(String::as_str), expected, "{url}");
            assert_eq!(vars["contact.first_name"], "amigo(a)");
        }
        let mut known = BTreeMap::from([("contact.first_name".to_owned(), "Ana".to_owned())]);
        fill(&flow, &mut known);
        assert_eq!(known["contact.first_name"], "Ana");
    }
}
