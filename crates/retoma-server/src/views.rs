//! Rows of the store as JSON, with the field names of INTERFACE.md ("Fields that others rely on"). Message texts are never
//! part of a view.

use jiff::Timestamp;
use retoma_core::receipt::{NO_RECEIPT, SILENT_AFTER};
use retoma_core::send_check::Reason;
use retoma_core::state::{ContactView, Conversation};
use retoma_core::task::{Reference, Task};
use retoma_store::{ApiKey, AttemptRow, EventRow, Evidence, Paged, ReceiptStatus, ReceiptTimes, TaskRow};
use serde_json::{Value, json};

/// An event.
pub(crate) fn event(row: &EventRow) -> Value {
    serde_json::to_value(row).expect("an event row is plain data")
}

/// A task, with what is known of its attempts.
pub(crate) fn task(row: &TaskRow, now: Timestamp) -> Value {
    let mut view = bare_task(&row.task);
    view["outcome"] = json!(row.outcome.map(|outcome| outcome.as_str()));
    view["last_error"] = json!(row.last_error);
    view["provider_message_id"] = json!(row.provider_message_id);
    view["receipt"] = json!(receipt(row, now));
    view["detail"] = json!(row.detail);
    view["resent"] = json!(row.task.resent);
    view["reconcile_until"] = time(row.task.reconcile_until);
    view["receipt_times"] = receipt_times(&row.receipt_times);
    view
}

/// What was last heard of the message; `no_receipt` where nothing was for so long that nothing will be (FC-78).
fn receipt(row: &TaskRow, now: Timestamp) -> Option<&'static str> {
    let is_silent = row.receipt == Some(ReceiptStatus::Accepted)
        && row.receipt_times.accepted_at.is_some_and(|accepted| accepted + SILENT_AFTER <= now);
    if is_silent { Some(NO_RECEIPT) } else { row.receipt.map(ReceiptStatus::as_str) }
}

/// When each receipt was first said; those that never came are left out.
fn receipt_times(times: &ReceiptTimes) -> Value {
    let all = [
        ("accepted", times.accepted_at),
        ("sent", times.sent_at),
        ("delivered", times.delivered_at),
        ("read", times.read_at),
        ("played", times.played_at),
        ("failed", times.failed_at),
    ];
    let said = all.into_iter().filter_map(|(name, at)| Some((name.to_owned(), json!(at?.to_string()))));
    Value::Object(said.collect())
}

/// A row of evidence of an outcome that nobody knew.
pub(crate) fn evidence(row: &Evidence) -> Value {
    serde_json::to_value(row).expect("evidence is plain data")
}

/// A task as it was promised.
pub(crate) fn bare_task(task: &Task) -> Value {
    json!({
        "id": task.id.as_str(),
        "contact_id": task.contact.to_string(),
        "conversation_id": task.conversation.map(|id| id.to_string()),
        "kind": task.kind.as_str(),
        "flow": task.flow.as_str(),
        "cadence": task.cadence,
        "touch": task.touch,
        "touch_no": task.touch_no,
        "message": task.message,
        "class": task.class.as_str(),
        "channel": task.channel.as_str(),
        "status": task.status.as_str(),
        "reason": task.reason.or(task.cancel_reason).map(Reason::as_str),
        "avoided": task.avoided,
        "scheduled_for": task.scheduled_for.to_string(),
        "local_time": task.local_time,
        "next_attempt_at": task.next_attempt_at.to_string(),
        "attempts": task.attempts,
        "outcome": null,
        "last_error": null,
        "provider_message_id": null,
        "receipt": null,
        "reference": reference(&task.reference),
        "created_at": task.created_at.to_string(),
        "updated_at": task.updated_at.to_string(),
    })
}

fn reference(reference: &Reference) -> Value {
    let order = reference.order.as_ref();
    json!({
        "platform": order.map(|order| &order.platform),
        "account": order.map(|order| &order.account),
        "transaction": order.map(|order| &order.transaction),
        "amount": reference.amount,
        "link": reference.link,
    })
}

/// An attempt.
pub(crate) fn attempt(row: &AttemptRow) -> Value {
    serde_json::to_value(row).expect("an attempt row is plain data")
}

/// A contact with its open cycles.
pub(crate) fn contact(view: &ContactView) -> Value {
    let identities: Vec<_> = view
        .identities
        .iter()
        .map(|identity| json!({ "kind": identity.kind.as_str(), "value": identity.value }))
        .collect();
    json!({
        "id": view.contact.id.to_string(),
        "identities": identities,
        "opted_out": view.contact.opted_out_at.is_some(),
        "opted_out_at": time(view.contact.opted_out_at),
        "paused_until": time(view.contact.paused_until),
        "last_inbound_at": time(view.contact.last_inbound_at),
        "conversations": view.conversations.iter().map(conversation).collect::<Vec<_>>(),
    })
}

fn conversation(conversation: &Conversation) -> Value {
    json!({
        "id": conversation.id.to_string(),
        "flow": conversation.flow.as_str(),
        "offer": conversation.offer,
        "state": conversation.state,
        "version": conversation.version,
        "deadline_at": time(conversation.deadline_at),
        "cadence": conversation.cadence.as_ref().map(|cadence| &cadence.name),
        "opened_at": conversation.opened_at.to_string(),
        "updated_at": conversation.updated_at.to_string(),
    })
}

/// An API key without its secret.
pub(crate) fn api_key(key: &ApiKey) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "created_at": key.created_at.to_string(),
        "revoked_at": time(key.revoked_at),
    })
}

/// A time, or null.
pub(crate) fn time(at: Option<Timestamp>) -> Value {
    json!(at.map(|at| at.to_string()))
}

/// A list's page.
pub(crate) fn page<T>(paged: &Paged<T>, view: impl Fn(&T) -> Value) -> Value {
    json!({ "items": paged.items.iter().map(view).collect::<Vec<_>>(), "next_cursor": paged.next_cursor })
}

/// A list that fits on one page.
pub(crate) fn list(items: Vec<Value>) -> Value {
    json!({ "items": items, "next_cursor": null })
}
