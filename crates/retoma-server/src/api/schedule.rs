//! `POST /v1/tasks`: a message asked for from outside (n8n, a script), under a key of the caller's. The same key twice is
//! one task (D9); it goes through the same check before sending as everything else.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use retoma_core::event::{EventKind, OrderRef};
use retoma_core::flow::Flow;
use retoma_core::ids::{ChannelName, ContactId, EventId, FlowName, SourceName, TaskId};
use retoma_core::keys::{body_digest, digest16};
use retoma_core::local_time::LocalTime;
use retoma_core::state::{ContactView, Conversation};
use retoma_core::task::{MessageClass, OnAmbiguous, Reference, Task, TaskKind, TaskStatus};
use retoma_store::{Appended, Entry, Intake, NewEvent, Store, Subject};
use serde_json::json;

use crate::auth::{Caller, Writer};
use crate::fields::Fields;
use crate::problem::{Code, Problem};
use crate::state::AppState;
use crate::views;

use super::contact_ref::{ContactRef, view};
use super::{Answer, JsonBody, with};

/// What is asked for, read but not yet resolved.
struct Wish {
    key: String,
    contact: ContactRef,
    flow: Option<FlowName>,
    channel: Option<ChannelName>,
    message: Option<String>,
    text: Option<String>,
    class: Option<MessageClass>,
    at: Option<Timestamp>,
    local_time: Option<LocalTime>,
    cancel_on: Vec<EventKind>,
    reference: Reference,
}

/// `POST /v1/tasks {key, contact, channel?, message|text, at?, cancel_on?, class?, flow?, reference?}`.
pub(crate) async fn post<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let wish = Wish::read(&fields)?;
    fields.finish()?;
    if let Some(channel) = wish.channel.as_ref().filter(|channel| !state.channels.contains(channel)) {
        let known = state.channels.iter().map(ChannelName::as_str);
        let suggestion = retoma_core::finding::suggest(channel.as_str(), known);
        return Err(Problem::invalid(format!("channel is none of those configured: {suggestion}")));
    }
    let contact = contact_of(&state, &caller, &wish).await?;
    let view = view(&state, contact).await?;
    let task = task_of(&state, &caller, wish, &view)?;
    let stored = state.engine.store().schedule_tasks(vec![task], caller.actor.clone()).await?;
    let (task, is_new) = stored.into_iter().next().ok_or_else(|| Problem::new(Code::Internal, "no task came back"))?;
    state.engine.wake();
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut shown = views::bare_task(&task);
    shown["created"] = json!(is_new);
    with(status, shown)
}

impl Wish {
    fn read(fields: &Fields<'_>) -> Result<Self, Problem> {
        let key = fields.required_text("key")?.trim().to_owned();
        if key.len() > 200 {
            return Err(fields.wrong("key", "at most 200 bytes long"));
        }
        let contact = fields.object("contact")?.ok_or_else(|| fields.wrong("contact", "{id}, {phone} or {email}"))?;
        let named = ContactRef::of(&contact)?.ok_or_else(|| fields.wrong("contact", "{id}, {phone} or {email}"))?;
        contact.finish()?;
        if fields.value("body").is_some() {
            return Err(Problem::new(Code::NotAvailable, "body is not available in this version: use message or text"));
        }
        let own = |key| fields.text(key).map(|text| text.map(str::to_owned));
        let (message, text) = (own("message")?, own("text")?);
        if message.is_some() == text.is_some() {
            return Err(Problem::invalid("say what to send: either message (a name of the flow) or text"));
        }
        let class = match fields.text("class")? {
            None => None,
            Some(word) => {
                let class = MessageClass::OF_MESSAGES.iter().copied().find(|class| class.as_str() == word);
                Some(class.ok_or_else(|| fields.wrong("class", "reminder, reply, receipt or optout_ack"))?)
            }
        };
        let (at, local_time) = match fields.text("at")? {
            Some(text) if LocalTime::is_meant(text) => {
                let local = LocalTime::parse(text).map_err(|error| fields.wrong("at", &error.to_string()))?;
                (local.instant_here(), Some(local))
            }
            _ => (fields.time("at")?, None),
        };
        let kinds = fields.texts("cancel_on")?;
        let cancel_on = kinds.iter().map(|word| word.parse::<EventKind>());
        let cancel_on =
            cancel_on.collect::<Result<_, _>>().map_err(|_| fields.wrong("cancel_on", "canonical types"))?;
        let reference = fields.object("reference")?.map(read_reference).transpose()?;
        Ok(Self {
            key,
            contact: named,
            flow: fields.text("flow")?.map(FlowName::new),
            channel: fields.text("channel")?.map(ChannelName::new),
            message,
            text,
            class,
            at,
            local_time,
            cancel_on,
            reference: reference.unwrap_or_default(),
        })
    }
}

fn read_reference(fields: Fields<'_>) -> Result<Reference, Problem> {
    let own = |key| fields.text(key).map(|text| text.map(str::to_owned));
    let (platform, account) = (own("platform")?, own("account")?);
    let order = own("transaction")?.map(|transaction| OrderRef {
        platform: platform.unwrap_or_else(|| "api".to_owned()),
        account: account.unwrap_or_else(|| "api".to_owned()),
        transaction,
    });
    let reference = Reference { order, amount: own("amount")?, link: own("link")? };
    fields.finish()?;
    Ok(reference)
}

/// The contact that is meant; a phone or an e-mail that nobody holds yet becomes one, through an event on record.
async fn contact_of<S: Store>(state: &AppState<S>, caller: &Caller, wish: &Wish) -> Result<ContactId, Problem> {
    if let Some(known) = wish.contact.find(state).await?.first() {
        return Ok(*known);
    }
    let ContactRef::Identity(identity) = &wish.contact else { return Err(Problem::not_found("contact")) };
    let id = EventId(state.engine.new_id());
    let now = state.engine.clock().now();
    let tenant = caller.tenant.as_str().as_bytes();
    let event = NewEvent {
        id,
        tenant: caller.tenant.clone(),
        source: SourceName::new("api"),
        kind: EventKind::Unknown,
        key: format!("contact-of/{}", wish.key),
        delivery_key: digest16(
            "delivery",
            &[tenant, b"contact-of", wish.key.as_bytes(), identity.match_key.as_bytes()],
        ),
        business_key: None,
        digest: body_digest(wish.key.as_bytes()),
        // Of no type that a flow answers: it makes the contact known, and moves nothing.
        entry: Entry::Received,
        subject: Subject::Person { candidate: ContactId(state.engine.new_id()), identities: vec![identity.clone()] },
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: retoma_core::event::EventData::default(),
        receipt: None,
    };
    let appended = state.engine.submit(Intake { request: None, events: vec![event] }).await?;
    if let Some(Appended::New { contact: Some(contact), .. }) = appended.first() {
        return Ok(*contact);
    }
    // Somebody else was faster with the same key: the contact is there now.
    wish.contact.find(state).await?.first().copied().ok_or_else(|| Problem::not_found("contact"))
}

fn task_of<S: Store>(state: &AppState<S>, caller: &Caller, wish: Wish, view: &ContactView) -> Result<Task, Problem> {
    let now = state.engine.clock().now();
    let cycle = view.conversations.iter().max_by_key(|cycle| cycle.ordinal);
    let flow = flow_of(state, &wish, cycle)?;
    let class = class_of(&wish, &flow)?;
    let channel = wish.channel.or_else(|| view.contact.last_channel.clone()).or_else(|| state.default_channel.clone());
    let channel = channel.ok_or_else(|| Problem::invalid("channel is missing, and there is no default"))?;
    let at = wish.at.unwrap_or(now).max(now);
    let mut reference = wish.reference;
    if reference.order.is_none() {
        reference.order = cycle.and_then(|cycle| cycle.order.clone());
    }
    Ok(Task {
        id: TaskId::from(format!("api:{}", wish.key)),
        tenant: caller.tenant.clone(),
        bucket: view.contact.bucket,
        contact: view.contact.id,
        conversation: cycle.map(|cycle| cycle.id),
        flow: flow.name.clone(),
        kind: TaskKind::Scheduled,
        cadence: None,
        touch: None,
        touch_no: None,
        on_ambiguous: on_ambiguous(&flow, wish.message.as_deref()),
        message: wish.message.unwrap_or_else(|| "text".to_owned()),
        text: wish.text,
        class,
        channel,
        reference,
        scheduled_for: at,
        local_time: wish.local_time.map(|local| local.to_string()),
        next_attempt_at: at,
        handed: true,
        max_late: None,
        cancel_on: wish.cancel_on,
        status: TaskStatus::Scheduled,
        reason: None,
        avoided: false,
        attempts: 0,
        cancel_reason: None,
        reconcile_until: None,
        resent: false,
        respelled: false,
        created_at: now,
        updated_at: now,
    })
}

fn flow_of<S: Store>(
    state: &AppState<S>,
    wish: &Wish,
    cycle: Option<&Conversation>,
) -> Result<std::sync::Arc<Flow>, Problem> {
    let name = wish.flow.as_ref().or_else(|| cycle.map(|cycle| &cycle.flow));
    let detail = if wish.flow.is_some() { "there is no such flow" } else { "say which flow: there are several" };
    state.flow(name).ok_or_else(|| Problem::invalid(detail))
}

/// The message's own class. A text without one is a reminder if it is for later, since the reason may be gone by then, and
/// a reply if it is for now.
fn class_of(wish: &Wish, flow: &Flow) -> Result<MessageClass, Problem> {
    if let Some(name) = &wish.message {
        let message = flow.messages.get(name);
        let message = message.ok_or_else(|| Problem::invalid(format!("the flow {} has no such message", flow.name)))?;
        return Ok(wish.class.unwrap_or(message.class));
    }
    let by_time = if wish.at.is_some() { MessageClass::Reminder } else { MessageClass::Reply };
    Ok(wish.class.unwrap_or(by_time))
}

fn on_ambiguous(flow: &Flow, message: Option<&str>) -> Option<OnAmbiguous> {
    message.and_then(|name| flow.messages.get(name)).and_then(|message| message.on_ambiguous)
}
