//! From the parts of a request to events that ask to be recognised: ids, urgency, receipts. No I/O.

use bytes::Bytes;
use jiff::Timestamp;
use retoma_core::event::EventKind;
use retoma_core::ids::{ChannelName, ContactId, EventId, RequestId, SourceName, Tenant};
use retoma_providers::inbound::{Part, PartEntry, PartReceipt};
use retoma_store::{Entry, Intake, NewEvent, RawRequest, Receipt, ReceiptStatus, Store, Subject};

use crate::state::AppState;

/// Through which door parts came.
pub(crate) struct Origin<'a> {
    pub(crate) tenant: &'a Tenant,
    pub(crate) source: &'a SourceName,
    /// The channel whose messages the receipts are about.
    pub(crate) channel: Option<&'a ChannelName>,
}

/// The intake of a request.
pub(crate) fn intake<S: Store>(
    state: &AppState<S>,
    origin: &Origin<'_>,
    parts: Vec<Part>,
    raw: Option<RawRequest>,
    received_at: Timestamp,
) -> Intake {
    let events = parts.into_iter().map(|part| event_of(state, origin, part, received_at)).collect();
    Intake { request: raw, events }
}

/// The bytes as they came, with the headers that may be kept.
pub(crate) fn raw<S: Store>(state: &AppState<S>, headers: Vec<(String, String)>, body: Bytes) -> RawRequest {
    RawRequest { id: RequestId(state.engine.new_id()), headers, body }
}

fn event_of<S: Store>(state: &AppState<S>, origin: &Origin<'_>, part: Part, received_at: Timestamp) -> NewEvent {
    let urgent = is_urgent(state, &part);
    let subject = if part.identities.is_empty() {
        Subject::Nobody
    } else {
        Subject::Person { candidate: ContactId(state.engine.new_id()), identities: part.identities }
    };
    NewEvent {
        id: EventId(state.engine.new_id()),
        tenant: origin.tenant.clone(),
        source: origin.source.clone(),
        kind: part.kind,
        key: part.key,
        delivery_key: part.delivery_key,
        business_key: part.business_key,
        digest: part.digest,
        entry: match part.entry {
            PartEntry::Received => Entry::Received,
            PartEntry::Ignored(reason) => Entry::Ignored(reason.to_owned()),
            PartEntry::Held(reason) => Entry::Held(reason.to_owned()),
            PartEntry::Quarantined(reason) => Entry::Quarantined(reason),
        },
        subject,
        occurred_at: part.occurred_at,
        received_at,
        urgent,
        data: part.data,
        receipt: part.receipt.and_then(|receipt| receipt_of(origin, receipt)),
    }
}

/// Payments, operators and receipts are decided at once, and so is a message that asks for silence; other messages wait for
/// their burst to end (C7, C12).
fn is_urgent<S: Store>(state: &AppState<S>, part: &Part) -> bool {
    if part.kind != EventKind::MessageReceived {
        return part.kind.bypasses_debounce();
    }
    let Some(text) = part.data.text.as_deref() else { return false };
    state.flow(part.data.flow.as_ref()).is_some_and(|flow| flow.classifier.is_opt_out(text))
}

fn receipt_of(origin: &Origin<'_>, receipt: PartReceipt) -> Option<Receipt> {
    let status = ReceiptStatus::parse(&receipt.status)?;
    Some(Receipt {
        tenant: origin.tenant.clone(),
        channel: origin.channel?.clone(),
        provider_message_id: receipt.provider_message_id,
        status,
        at: receipt.at,
    })
}
