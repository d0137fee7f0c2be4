//! `messages:` and `vars:`.

use std::collections::BTreeMap;

use super::{Lines, MessageLines, word_of};
use crate::flow::{Message, Template, Variable};
use crate::task::{MessageClass, OnAmbiguous};
use crate::yaml::{Node, Reader, Value};

/// What a variable may hold.
const TYPES: [&str; 8] = ["text", "money_brl", "money", "url", "date", "time", "number", "phone"];

/// Reads `vars:`: every value that a message may use.
pub(super) fn read_vars(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, Variable> {
    const KEYS: [&str; 9] =
        ["type", "pii", "fallback", "required", "source", "allow_hosts", "perishable", "life", "refresh"];
    let mut vars = BTreeMap::new();
    for entry in node.and_then(|node| reader.entries(node, "`vars`")).unwrap_or_default() {
        let Some(fields) = reader.fields(&entry.value, &format!("variable {}", entry.key), &KEYS) else { continue };
        if let Some(node) = fields.get("type") {
            word_of(node, "type", |word| TYPES.contains(&word).then_some(()), TYPES.into_iter(), reader);
        }
        if let Some(node) = fields.get("pii") {
            reader.flag(node, "`pii`");
        }
        let hosts = fields.get("allow_hosts").map(|node| reader.one_or_list(node)).unwrap_or_default();
        let text = |key: &str, reader: &mut Reader<'_>| {
            fields.get(key).and_then(|node| reader.text(node, &format!("`{key}`")))
        };
        let variable = Variable {
            fallback: text("fallback", reader),
            is_required: fields.get("required").and_then(|node| reader.flag(node, "`required`")).unwrap_or(false),
            source: text("source", reader),
            allow_hosts: hosts.iter().filter_map(|item| reader.name(item, "`allow_hosts`")).collect(),
            perishable: text("perishable", reader),
            life: fields.get("life").and_then(|node| reader.duration(node, "`life`")),
            refresh: text("refresh", reader),
        };
        lines.vars.insert(entry.key.clone(), entry.line);
        vars.insert(entry.key.clone(), variable);
    }
    vars
}

pub(super) fn read(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, Message> {
    let mut messages = BTreeMap::new();
    let entries = node.and_then(|node| reader.entries(node, "`messages`")).unwrap_or_default();
    for entry in entries {
        let what = format!("message {}", entry.key);
        let keys = ["class", "text", "template", "on_ambiguous", "refresh", "ab"];
        let Some(fields) = reader.fields(&entry.value, &what, &keys) else { continue };
        let class = fields.need("class", &what, reader).and_then(|node| {
            let parse = |word: &str| MessageClass::OF_MESSAGES.iter().copied().find(|class| class.as_str() == word);
            word_of(node, "class", parse, MessageClass::OF_MESSAGES.iter().map(|class| class.as_str()), reader)
        });
        let text = fields.need("text", &what, reader);
        let text_line = text.map_or(entry.line, |node| node.line);
        let text = text.and_then(|node| match (&node.value, fields.get("ab")) {
            (Value::List(variants), Some(_)) if !variants.is_empty() => reader.text(&variants[0], "`text`"),
            _ => reader.text(node, "`text`"),
        });
        let on_ambiguous = fields.get("on_ambiguous").and_then(|node| {
            word_of(node, "on_ambiguous", OnAmbiguous::parse, OnAmbiguous::ALL.iter().map(|way| way.as_str()), reader)
        });
        let template = fields.get("template").and_then(|node| read_template(node, reader));
        let refresh = fields.get("refresh").map(|node| reader.one_or_list(node)).unwrap_or_default();
        let refresh: Vec<String> = refresh.iter().filter_map(|item| reader.name(item, "`refresh`")).collect();
        if let Some(node) = fields.get("ab") {
            reader.no_effect_yet(node.line, "`ab` (the first text is sent; it)");
        }
        // Also where the message itself is broken: its name is known, so nothing else needs to complain.
        let text = text.unwrap_or_default().trim_end().to_owned();
        let variants = fields.get("text").and_then(|node| read_variants(node, reader)).unwrap_or_default();
        lines.messages.insert(entry.key.clone(), MessageLines { message: entry.line, text: text_line, variants });
        let class = class.unwrap_or(MessageClass::Reminder);
        messages.insert(entry.key.clone(), Message { class, text, template, refresh, on_ambiguous });
    }
    messages
}

/// Every text of a list of them (`ab`), with its line.
fn read_variants(node: &Node, reader: &mut Reader<'_>) -> Option<Vec<(u32, String)>> {
    let Value::List(items) = &node.value else { return None };
    Some(items.iter().skip(1).filter_map(|item| Some((item.line, reader.text(item, "`text`")?))).collect())
}

/// `template: {name, category, language, params}`, or its name alone.
fn read_template(node: &Node, reader: &mut Reader<'_>) -> Option<Template> {
    reader.no_effect_yet(node.line, "`template` (no channel here needs one; it)");
    if matches!(node.value, Value::Text(_)) {
        let name = reader.name(node, "`template`")?;
        return Some(Template { name, category: None, language: None, params: Vec::new(), line: node.line });
    }
    let fields = reader.fields(node, "`template`", &["name", "category", "language", "params"])?;
    let name = fields.need("name", "the template", reader).and_then(|node| reader.name(node, "`name`"))?;
    let category = fields.get("category").and_then(|node| {
        word_of(
            node,
            "category",
            |word| Template::CATEGORIES.iter().copied().find(|known| *known == word),
            Template::CATEGORIES.into_iter(),
            reader,
        )
    });
    let language = fields.get("language").and_then(|node| reader.name(node, "`language`"));
    let params = fields.get("params").map(|node| reader.one_or_list(node)).unwrap_or_default();
    let params = params.iter().filter_map(|item| reader.name(item, "`params`")).collect();
    Some(Template { name, category, language, params, line: node.line })
}
