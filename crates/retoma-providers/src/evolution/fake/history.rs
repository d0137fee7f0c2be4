//! `findMessages`, with the real one's paging and, if asked for, its habit of ignoring filters.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Fake;
use super::bodies::Message;

/// Messages that the fake remembers.
pub(super) const STORED_MAX: usize = 1000;

impl Fake {
    /// Newest first. `offset` is the size of a page.
    pub(super) fn find_messages(&self, body: &Value) -> Value {
        let filter = &body["where"];
        let found: Vec<&Message> = self
            .stored
            .iter()
            .filter(|_| !self.faults.find_nothing)
            .filter(|message| self.faults.find_ignores_filters || fits(message, filter))
            .collect();
        let size = usize::try_from(body["offset"].as_u64().unwrap_or(50)).unwrap_or(50).clamp(1, STORED_MAX);
        let page = usize::try_from(body["page"].as_u64().unwrap_or(1)).unwrap_or(1).max(1);
        let records: Vec<Value> =
            found.iter().skip((page - 1).saturating_mul(size)).take(size).map(|message| message.record()).collect();
        json!({"messages": {
            "total": found.len(),
            "pages": found.len().div_ceil(size),
            "currentPage": page,
            "records": records,
        }})
    }
}

impl Fake {
    /// `findStatusMessage`: what is known of one message, by its WhatsApp id.
    pub(super) fn find_status(&self, body: &Value) -> Value {
        let id = body["where"]["id"].as_str().unwrap_or_default();
        let found = self.stored.iter().filter(|message| message.id == id);
        let rows = found.map(|message| {
            json!({"id": format!("st{}", message.id.to_ascii_lowercase()), "keyId": message.id, "remoteJid": message.jid,
                "fromMe": true, "status": "SERVER_ACK"})
        });
        Value::Array(rows.collect())
    }
}

fn fits(message: &Message, filter: &Value) -> bool {
    let key = &filter["key"];
    let jids: Vec<&str> = ["remoteJid", "remoteJidAlt"].iter().filter_map(|name| key[*name].as_str()).collect();
    let right_chat = jids.is_empty() || jids.contains(&message.jid.as_str());
    let right_id = key["id"].as_str().is_none_or(|id| id == message.id);
    // The real one tests for truth, so that `fromMe: false` filters nothing.
    let time = |name: &str| filter["messageTimestamp"][name].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    // And it looks at times only where both ends are given.
    let in_time = match (time("gte"), time("lte")) {
        (Some(from), Some(to)) => (from..=to).contains(&message.at),
        _ => true,
    };
    right_chat && right_id && in_time
}
