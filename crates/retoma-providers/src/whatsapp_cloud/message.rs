//! What an item of `messages` says, and what comes as a message and is none (FC-22).

use serde_json::Value;

use crate::inbound::content::Content;
use crate::inbound::json::plain_id;

/// Reads the content of a message. A type that nobody knows yet is recorded, never an error: Meta adds some every year.
pub(super) fn content(item: &Value) -> Content<'_> {
    let Some(kind) = item.get("type").and_then(Value::as_str) else {
        return Content::Nothing { reason: "unknown_type" };
    };
    let body = item.get(kind).unwrap_or(&Value::Null);
    let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let (kind, text, choice) = match kind {
        "text" => match at("/body") {
            Some(text) => ("text", Some(text), None),
            None => return Content::Nothing { reason: "content_pending" },
        },
        "button" => ("button", at("/text").or_else(|| at("/payload")), at("/payload")),
        "interactive" => interactive(body),
        "image" | "video" | "document" | "audio" | "sticker" => (kind, at("/caption"), None),
        "location" => (kind, at("/name"), None),
        "contacts" => (kind, None, None),
        "order" => (kind, at("/text"), None),
        "reaction" => return Content::Nothing { reason: "reaction" },
        "edit" => return Content::Nothing { reason: "edited" },
        "revoke" => return Content::Nothing { reason: "deleted" },
        "unsupported" | "errors" => return Content::Nothing { reason: "unsupported" },
        "system" => return Content::Nothing { reason: "system_notice" },
        "request_welcome" => return Content::Nothing { reason: "request_welcome" },
        _ => return Content::Nothing { reason: "unknown_type" },
    };
    Content::Said { kind: kind.to_owned(), text, choice }
}

/// A tapped button or row, or a form that was filled in. `response_json` of a form is a text that holds JSON: data for
/// whoever asked for it, and nothing a person said.
fn interactive(body: &Value) -> (&'static str, Option<&str>, Option<&str>) {
    let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let form = ("form", at("/nfm_reply/body"), at("/nfm_reply/name"));
    let found = [
        ("button", at("/button_reply/title"), at("/button_reply/id")),
        ("list", at("/list_reply/title"), at("/list_reply/id")),
        form,
    ]
    .into_iter()
    .find(|(_, text, choice)| text.is_some() || choice.is_some());
    let (kind, text, choice) = found.unwrap_or(("interactive", None, None));
    (kind, text.or(choice), choice)
}

/// The first error that an item names: its code alone, since titles and details are prose.
pub(super) fn error_code(item: &Value) -> Option<String> {
    item.pointer("/errors/0/code").and_then(plain_id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_message_gives_its_text_or_its_reason() {
        // FC-22.
        let cases = [
            (json!({"type": "text", "text": {"body": "oi"}}), "text: oi"),
            (json!({"type": "text", "text": {"body": " "}}), "content_pending"),
            (json!({"type": "text"}), "content_pending"),
            (
                json!({"type": "button", "button": {"payload": "SIM-1", "text": "Confirmar"}}),
                "button: Confirmar (SIM-1)",
            ),
            (json!({"type": "button", "button": {"payload": "SIM-1"}}), "button: SIM-1 (SIM-1)"),
            (
                json!({"type": "interactive", "interactive": {"type": "button_reply", "button_reply": {"id": "a", "title": "Sim"}}}),
                "button: Sim (a)",
            ),
            (
                json!({"type": "interactive", "interactive": {"type": "list_reply", "list_reply": {"id": "r", "title": "Boleto"}}}),
                "list: Boleto (r)",
            ),
            (
                json!({"type": "interactive", "interactive": {"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent", "response_json": "{\"a\":1}"}}}),
                "form: Sent (flow)",
            ),
            (json!({"type": "interactive", "interactive": {"type": "new_reply"}}), "interactive: -"),
            (json!({"type": "image", "image": {"id": "3", "caption": "comprovante"}}), "image: comprovante"),
            (json!({"type": "audio", "audio": {"id": "3", "voice": true}}), "audio: -"),
            (json!({"type": "document", "document": {"filename": "n.pdf"}}), "document: -"),
            (json!({"type": "location", "location": {"latitude": 1}}), "location: -"),
            (json!({"type": "contacts", "contacts": []}), "contacts: -"),
            (json!({"type": "order", "order": {"text": "quero estes"}}), "order: quero estes"),
            (json!({"type": "reaction", "reaction": {"message_id": "x", "emoji": "👍"}}), "reaction"),
            (json!({"type": "reaction", "reaction": {"message_id": "x"}}), "reaction"),
            (json!({"type": "edit", "edit": {"message": {"text": {"body": "outro"}}}}), "edited"),
            (json!({"type": "revoke", "revoke": {"original_message_id": "x"}}), "deleted"),
            (json!({"type": "unsupported", "errors": [{"code": 131051}]}), "unsupported"),
            (json!({"type": "system", "system": {"type": "user_changed_number"}}), "system_notice"),
            (json!({"type": "request_welcome"}), "request_welcome"),
            (json!({"type": "hologram", "hologram": {"caption": "oi"}}), "unknown_type"),
            (json!({"type": 7}), "unknown_type"),
            (json!({}), "unknown_type"),
        ];
        for (item, expected) in cases {
            let shown = match content(&item) {
                Content::Nothing { reason } => reason.to_owned(),
                Content::Said { kind, text, choice } => {
                    let choice = choice.map(|id| format!(" ({id})")).unwrap_or_default();
                    format!("{kind}: {}{choice}", text.unwrap_or("-"))
                }
            };
            assert_eq!(shown, expected, "{item}");
        }
    }
}
