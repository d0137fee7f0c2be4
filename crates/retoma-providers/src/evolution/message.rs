//! What a WhatsApp message says: its wrappers taken off, its text found, and what is no message told apart.

use serde_json::{Map, Value};

use crate::inbound::content::Content;
use crate::inbound::json::plain_id;

/// Messages around a message.
const WRAPPERS: [&str; 9] = [
    "ephemeralMessage",
    "viewOnceMessage",
    "viewOnceMessageV2",
    "viewOnceMessageV2Extension",
    "documentWithCaptionMessage",
    "deviceSentMessage",
    "associatedChildMessage",
    "groupMentionedMessage",
    "botInvokeMessage",
];
/// Wrappers nest once or twice in practice.
const WRAPPED_MAX: usize = 8;
/// What stands beside the content and is none.
const BESIDE: [&str; 4] = ["messageContextInfo", "senderKeyDistributionMessage", "base64", "mediaUrl"];
/// `messageStubType` of a message that could not be decrypted yet (CIPHERTEXT).
const STUB_CIPHERTEXT: &str = "2";

/// Reads the content of an item of `messages.upsert`.
pub(super) fn content(item: &Value) -> Content<'_> {
    let Some(message) = item.get("message").and_then(Value::as_object).map(unwrapped) else { return stub(item) };
    let Some((name, body)) = message.iter().find(|(name, body)| !BESIDE.contains(&name.as_str()) && !body.is_null())
    else {
        return stub(item);
    };
    if let Some(reason) = no_message(name, body) {
        return Content::Nothing { reason };
    }
    said(name, body, message)
}

fn unwrapped(mut message: &Map<String, Value>) -> &Map<String, Value> {
    for _ in 0..WRAPPED_MAX {
        let inner = WRAPPERS.iter().find_map(|name| message.get(*name)?.get("message")?.as_object());
        match inner {
            Some(inner) => message = inner,
            None => break,
        }
    }
    message
}

/// A message without content. One that waits for decryption may come again with its text and the same id, so it stays
/// upgradeable (FC-06); an empty object is treated alike, since nobody knows what it was (FC-22).
fn stub<'a>(item: &Value) -> Content<'a> {
    let stub = item.get("messageStubType").and_then(plain_id);
    let reason = match stub.as_deref() {
        None | Some(STUB_CIPHERTEXT | "CIPHERTEXT") => "content_pending",
        // Missed calls, changed security codes and the like.
        Some(_) => "system_notice",
    };
    Content::Nothing { reason }
}

/// What comes as a message and is none (FC-22).
fn no_message(name: &str, body: &Value) -> Option<&'static str> {
    Some(match name {
        "reactionMessage" | "encReactionMessage" => "reaction",
        "pollUpdateMessage" => "poll_update",
        "editedMessage" => "edited",
        "keepInChatMessage" | "pinInChatMessage" | "fastRatchetKeySenderKeyDistributionMessage" => "protocol",
        "protocolMessage" => match body.get("type").and_then(plain_id).as_deref() {
            // The type is left out where it is the first of its enumeration.
            Some("REVOKE" | "0") | None => "deleted",
            Some("MESSAGE_EDIT" | "14") => "edited",
            Some(_) => "protocol",
        },
        _ => return None,
    })
}

fn said<'a>(name: &'a str, body: &'a Value, message: &'a Map<String, Value>) -> Content<'a> {
    let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let (kind, text, choice) = match name {
        "conversation" => ("text", body.as_str(), None),
        "extendedTextMessage" => ("text", at("/text"), None),
        "buttonsResponseMessage" => ("button", at("/selectedDisplayText"), at("/selectedButtonId")),
        "templateButtonReplyMessage" => ("button", at("/selectedDisplayText"), at("/selectedId")),
        "listResponseMessage" => ("list", at("/title"), at("/singleSelectReply/selectedRowId")),
        "interactiveResponseMessage" => ("button", at("/body/text"), at("/nativeFlowResponseMessage/name")),
        other => (other.strip_suffix("Message").unwrap_or(other), at("/caption"), None),
    };
    // Older versions put the text beside other content.
    let beside = || message.get("conversation").and_then(Value::as_str);
    let text = text.or_else(beside).filter(|text| !text.trim().is_empty()).or(choice);
    if kind == "text" && text.is_none() {
        return Content::Nothing { reason: "content_pending" };
    }
    Content::Said { kind: kind.to_owned(), text, choice }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_is_found_wherever_a_version_puts_it() {
        let cases = [
            (json!({"conversation": "oi"}), "text", Some("oi")),
            (json!({"extendedTextMessage": {"text": "oi https://a.test"}}), "text", Some("oi https://a.test")),
            (json!({"imageMessage": {"caption": "comprovante"}, "base64": "AAAA"}), "image", Some("comprovante")),
            (json!({"videoMessage": {}}), "video", None),
            (json!({"audioMessage": {"seconds": 3}}), "audio", None),
            (json!({"stickerMessage": {}}), "sticker", None),
            (json!({"locationMessage": {"degreesLatitude": 1}}), "location", None),
            (json!({"ephemeralMessage": {"message": {"conversation": "some"}}}), "text", Some("some")),
            (
                json!({"ephemeralMessage": {"message": {"viewOnceMessageV2": {"message": {"imageMessage": {"caption": "x"}}}}}}),
                "image",
                Some("x"),
            ),
            (
                json!({"documentWithCaptionMessage": {"message": {"documentMessage": {"caption": "nota", "fileName": "n.pdf"}}}}),
                "document",
                Some("nota"),
            ),
            (
                json!({"buttonsResponseMessage": {"selectedDisplayText": "Quero", "selectedButtonId": "b1"}}),
                "button",
                Some("Quero"),
            ),
            (json!({"buttonsResponseMessage": {"selectedButtonId": "OPTOUT"}}), "button", Some("OPTOUT")),
            (
                json!({"listResponseMessage": {"title": "Segunda via", "singleSelectReply": {"selectedRowId": "r2"}}}),
                "list",
                Some("Segunda via"),
            ),
            (json!({"listResponseMessage": {"singleSelectReply": {"selectedRowId": "r2"}}}), "list", Some("r2")),
            (
                json!({"templateButtonReplyMessage": {"selectedId": "t1", "selectedDisplayText": "Sair"}}),
                "button",
                Some("Sair"),
            ),
            (json!({"interactiveResponseMessage": {"body": {"text": "Sim"}}}), "button", Some("Sim")),
            (json!({"messageContextInfo": {"x": 1}, "conversation": "com contexto"}), "text", Some("com contexto")),
        ];
        for (message, kind, text) in cases {
            let item = json!({ "message": message });
            match content(&item) {
                Content::Said { kind: found, text: said, .. } => {
                    assert_eq!((found.as_str(), said), (kind, text), "{message}");
                }
                nothing => panic!("{message}: {nothing:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_message_has_its_reason() {
        // FC-06, FC-22.
        let cases = [
            (json!({"message": {"reactionMessage": {"key": {"id": "OLD22"}, "text": "👍"}}}), "reaction"),
            (json!({"message": {"reactionMessage": {"key": {"id": "OLD22"}, "text": ""}}}), "reaction"),
            (json!({"message": {"protocolMessage": {"type": "REVOKE", "key": {"id": "OLD22"}}}}), "deleted"),
            (json!({"message": {"protocolMessage": {"type": 0}}}), "deleted"),
            (json!({"message": {"protocolMessage": {"type": "MESSAGE_EDIT"}}}), "edited"),
            (json!({"message": {"protocolMessage": {"type": "EPHEMERAL_SETTING"}}}), "protocol"),
            (json!({"message": {"editedMessage": {"message": {"protocolMessage": {}}}}}), "edited"),
            (json!({"message": {"pollUpdateMessage": {}}}), "poll_update"),
            (json!({"message": {"ephemeralMessage": {"message": {"reactionMessage": {}}}}}), "reaction"),
            (json!({"message": {}}), "content_pending"),
            (json!({"message": {"messageContextInfo": {}}}), "content_pending"),
            (json!({"message": {"conversation": "  "}}), "content_pending"),
            (json!({"message": null}), "content_pending"),
            (json!({}), "content_pending"),
            (json!({"messageStubType": 2, "messageStubParameters": ["No session record"]}), "content_pending"),
            (json!({"messageStubType": "CIPHERTEXT"}), "content_pending"),
            (json!({"messageStubType": 40}), "system_notice"),
        ];
        for (item, reason) in cases {
            assert_eq!(content(&item), Content::Nothing { reason }, "{item}");
        }
    }

    #[test]
    fn endless_wrapping_ends() {
        let mut message = json!({"conversation": "fundo"});
        for _ in 0..40 {
            message = json!({"ephemeralMessage": {"message": message}});
        }
        let item = json!({ "message": message });
        assert!(matches!(content(&item), Content::Said { text: None, .. }));
    }
}
