//! The plan of a contact: what will be sent, when, and what would stop it as things stand. It asks the same pure check that
//! runs before every send, once for now and once for the task's own time.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use retoma_core::compose::{Composed, compose};
use retoma_core::flow::Flow;
use retoma_core::ids::ContactId;
use retoma_core::send_check::{CheckInput, Guard, Reason, Verdict, check};
use retoma_core::state::ContactView;
use retoma_core::task::{Task, TaskStatus};
use retoma_store::{Page, Store, TaskFilter};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::state::AppState;
use crate::views;

use super::contact_ref;

/// Ended tasks that are listed beside the plan.
const CLOSED_MAX: usize = 50;

/// `{items: [{at, local, task_id, message, would_avoid, ..}], closed: [..]}`.
pub(crate) async fn of<S: Store>(state: &AppState<S>, id: ContactId) -> Result<Value, Problem> {
    let view = contact_ref::view(state, id).await?;
    let now = state.engine.clock().now();
    let stopped = stopped_channels(state).await?;
    let mut live: Vec<&Task> = view.tasks.iter().filter(|task| !task.status.is_final()).collect();
    live.sort_by_key(|task| when(task, now));
    let zone = zone_of(&view, state);
    let items = live.into_iter().map(|task| {
        let at = when(task, now);
        let flow = state.flow(Some(&task.flow));
        let ask = |at| {
            let channel = ChannelStands {
                stopped: stopped.contains(&task.channel.to_string()),
                receipts_told: state.engine.arrivals_of(&task.channel).told,
            };
            flow.as_ref().and_then(|flow| ask(&view, task, flow, channel, at))
        };
        let (today, then) = (ask(now), ask(at));
        json!({
            "at": at.to_string(),
            "local": local(at, &zone),
            "task_id": task.id.as_str(),
            "message": task.message,
            "would_avoid": then.as_ref().map(|stop| stop.reason.as_str()),
            "would": then.as_ref().map(|stop| stop.how),
            "until": then.as_ref().and_then(|stop| stop.until).map(|until| until.to_string()),
            "until_local": then.as_ref().and_then(|stop| stop.until).map(|until| local(until, &zone)),
            "would_avoid_now": today.map(|stop| stop.reason.as_str()),
            "status": task.status.as_str(),
            "cadence": task.cadence,
            "touch": task.touch,
            "channel": task.channel.as_str(),
        })
    });
    let items: Vec<Value> = items.collect();
    let closed = closed(state, id, &zone, now).await?;
    Ok(json!({ "items": items, "next_cursor": null, "closed": closed }))
}

/// When the task is looked at next.
fn when(task: &Task, now: Timestamp) -> Timestamp {
    match task.status {
        TaskStatus::Scheduled | TaskStatus::Failed => task.next_attempt_at.max(task.scheduled_for).max(now),
        _ => task.next_attempt_at,
    }
}

/// What would keep a message from leaving at its time.
struct Stop {
    reason: Reason,
    /// `avoid`: for good; `defer`: until a time; `hold`: until a person decides.
    how: &'static str,
    until: Option<Timestamp>,
}

/// What the check asks of a task's channel.
#[derive(Clone, Copy)]
struct ChannelStands {
    stopped: bool,
    receipts_told: bool,
}

/// What the check would say at that time, if it is not "send".
fn ask(view: &ContactView, task: &Task, flow: &Flow, channel: ChannelStands, at: Timestamp) -> Option<Stop> {
    let view = &*flow.settle(view);
    let Composed { text, perished, .. } = compose(flow, view, task, at);
    // A plan asks nobody outside: it shows what holds as things stand.
    let guard = Some(Guard::Unpaid);
    let ChannelStands { stopped: channel_stopped, receipts_told } = channel;
    let input = CheckInput { task, view, flow, channel_stopped, receipts_told, guard, missing: text.err(), perished };
    match check(&input, at) {
        Verdict::Send => None,
        Verdict::Avoid(reason) => Some(Stop { reason, how: "avoid", until: None }),
        Verdict::Defer(reason, until) => Some(Stop { reason, how: "defer", until: Some(until) }),
        Verdict::Hold(reason, _) => Some(Stop { reason, how: "hold", until: None }),
    }
}

async fn stopped_channels<S: Store>(state: &AppState<S>) -> Result<Vec<String>, Problem> {
    let states = state.engine.store().channel_states(state.tenant.clone()).await?;
    Ok(states.into_iter().filter(|state| state.stopped.is_some()).map(|state| state.channel.to_string()).collect())
}

/// What came to its end, newest first: "nothing is planned" is half an answer without the reasons.
async fn closed<S: Store>(
    state: &AppState<S>,
    id: ContactId,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<Vec<Value>, Problem> {
    let filter = TaskFilter { tenant: state.tenant.clone(), contact: Some(id), ..TaskFilter::default() };
    let page = Page { cursor: None, limit: CLOSED_MAX };
    let rows = state.engine.store().list_tasks(state.tenant.clone(), filter, page).await?.items;
    let ended = rows.iter().filter(|row| row.task.status.is_final());
    Ok(ended
        .map(|row| {
            let mut shown = views::task(row, now);
            shown["task_id"] = shown["id"].clone();
            shown["local"] = json!(local(row.task.scheduled_for, zone));
            shown
        })
        .collect())
}

/// The contact's zone, where one is known, else the configured one.
fn zone_of<S: Store>(view: &ContactView, state: &AppState<S>) -> TimeZone {
    let own = view.contact.vars.get("contact.timezone").and_then(|name| TimeZone::get(name).ok());
    let flow = view.conversations.last().and_then(|cycle| state.flow(Some(&cycle.flow)));
    own.or_else(|| flow.map(|flow| flow.timezone.clone())).unwrap_or_else(|| state.timezone.clone())
}

/// `2026-12-02 10:15 -03`.
fn local(at: Timestamp, zone: &TimeZone) -> String {
    format!("{} {}", zone.to_datetime(at).strftime("%Y-%m-%d %H:%M"), zone.to_offset(at))
}
