//! The timeline of a contact: what came in, what was decided and by which rule, what was promised, stopped and sent, in one
//! list ("why did the robot send me this?", C14). Sentences for people, without message texts.

use jiff::Timestamp;
use retoma_core::decision::Transition;
use retoma_core::ids::ContactId;
use retoma_core::send_check::Reason;
use retoma_core::task::{TaskKind, TaskStatus};
use retoma_store::{AttemptRow, EventFilter, EventRow, Page, Store, TaskFilter, TaskRow};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::state::AppState;

use super::contact_ref;

/// Rows of each kind; older ones are found through the lists.
const ROWS_MAX: usize = 500;

/// One line of the timeline. The derived order is the order of causes at one instant.
struct Line {
    at: Timestamp,
    kind: Kind,
    summary: String,
    reason: Option<String>,
    rule: Option<String>,
    event_id: Option<String>,
    task_id: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Event,
    Transition,
    Task,
    Attempt,
    TaskEnd,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Event => "event",
            Kind::Transition => "transition",
            Kind::Task => "task",
            Kind::Attempt => "attempt",
            Kind::TaskEnd => "task_end",
        }
    }
}

/// `[{at, kind, summary, reason, rule, event_id, task_id}]`, oldest first.
pub(crate) async fn of<S: Store>(state: &AppState<S>, id: ContactId) -> Result<Vec<Value>, Problem> {
    contact_ref::view(state, id).await?;
    let store = state.engine.store();
    let tenant = || state.tenant.clone();
    let page = || Page { cursor: None, limit: ROWS_MAX };
    let events = EventFilter { contact: Some(id), ..EventFilter::default() };
    let events = store.list_events(tenant(), events, page()).await?.items;
    let transitions = store.list_transitions(tenant(), id).await?;
    let tasks = TaskFilter { tenant: tenant(), contact: Some(id), ..TaskFilter::default() };
    let tasks = store.list_tasks(tenant(), tasks, page()).await?.items;

    let mut lines: Vec<Line> = events.iter().map(event_line).collect();
    lines.extend(transitions.iter().map(transition_line));
    // Lists are newest first; what was promised together is told in the order of its times.
    for row in tasks.iter().rev() {
        lines.push(task_line(row));
        if row.task.attempts > 0
            && let Some((_, attempts)) = store.get_task(tenant(), row.task.id.clone()).await?
        {
            lines.extend(attempts.iter().map(|attempt| attempt_line(row, attempt)));
        }
        lines.extend(end_line(row));
    }
    lines.sort_by_key(|line| (line.at, line.kind));
    Ok(lines.iter().map(shown).collect())
}

fn shown(line: &Line) -> Value {
    json!({
        "at": line.at.to_string(),
        "kind": line.kind.as_str(),
        "summary": line.summary,
        "reason": line.reason,
        "rule": line.rule,
        "event_id": line.event_id,
        "task_id": line.task_id,
    })
}

fn event_line(row: &EventRow) -> Line {
    let mut summary = format!("{} through {}", row.kind, row.source);
    if let Some(operator) = &row.data.operator {
        summary = format!("{} by {}", row.kind, operator.actor);
        if let Some(until) = operator.until {
            summary.push_str(&format!(" until {until}"));
        }
    }
    if row.duplicates > 0 {
        summary.push_str(&format!(" (repeated {} times, stopped)", row.duplicates));
    }
    match (&row.result, &row.reason) {
        (Some(result), _) => summary.push_str(&format!(": {result}")),
        (None, Some(reason)) => summary.push_str(&format!(": {} ({reason})", row.status.as_str())),
        (None, None) => summary.push_str(&format!(": {}", row.status.as_str())),
    }
    Line {
        at: row.received_at,
        kind: Kind::Event,
        summary,
        reason: row.reason.clone(),
        rule: None,
        event_id: Some(row.id.to_string()),
        task_id: None,
    }
}

fn transition_line(row: &Transition) -> Line {
    let mut summary = if row.reason.is_some() {
        format!("{} in {}: nothing moves", row.event, row.from)
    } else {
        format!("{} -> {} on {}", row.from, row.to, row.event)
    };
    if let Some(taken_as) = &row.taken_as {
        summary.push_str(&format!(" (taken as {taken_as})"));
    }
    if !row.actions.is_empty() {
        summary.push_str(&format!(", {}", row.actions.join(", ")));
    }
    Line {
        at: row.at,
        kind: Kind::Transition,
        summary,
        reason: row.reason.clone(),
        rule: row.rule.clone(),
        event_id: Some(row.event_id.to_string()),
        task_id: None,
    }
}

fn task_line(row: &TaskRow) -> Line {
    let task = &row.task;
    let what = match (task.kind, &task.cadence, &task.touch) {
        (TaskKind::Touch, Some(cadence), Some(touch)) => format!("{} (touch {touch} of {cadence})", task.message),
        _ => task.message.clone(),
    };
    line_of(row, task.created_at, Kind::Task, format!("promised {what} for {}", task.scheduled_for))
}

fn attempt_line(row: &TaskRow, attempt: &AttemptRow) -> Line {
    let outcome = attempt.outcome.map_or("under way", |outcome| outcome.as_str());
    let mut summary = format!("attempt {} of {} through {}: {outcome}", attempt.n, row.task.message, row.task.channel);
    if let Some(status) = attempt.http_status {
        summary.push_str(&format!(" (HTTP {status})"));
    }
    if let Some(error) = &attempt.error {
        summary.push_str(&format!(", {error}"));
    }
    line_of(row, attempt.started_at, Kind::Attempt, summary)
}

fn end_line(row: &TaskRow) -> Option<Line> {
    let task = &row.task;
    let what = match task.status {
        TaskStatus::Sent => match row.receipt {
            Some(receipt) => format!("sent {}, {} by the provider's word", task.message, receipt.as_str()),
            None => format!("sent {}", task.message),
        },
        TaskStatus::Cancelled if task.avoided => format!("avoided {}", task.message),
        TaskStatus::Cancelled => format!("cancelled {}", task.message),
        TaskStatus::Dead => format!("gave up on {}", task.message),
        TaskStatus::Held => format!("{} is held for a person", task.message),
        TaskStatus::Unsure => format!("nobody knows yet whether {} was sent", task.message),
        TaskStatus::Scheduled | TaskStatus::Failed | TaskStatus::Sending => return None,
    };
    let why = task.reason.map_or(String::new(), |reason| format!(": {reason}"));
    Some(line_of(row, task.updated_at, Kind::TaskEnd, format!("{what}{why}")))
}

fn line_of(row: &TaskRow, at: Timestamp, kind: Kind, summary: String) -> Line {
    Line {
        at,
        kind,
        summary,
        reason: row.task.reason.map(Reason::as_str).filter(|_| kind == Kind::TaskEnd).map(str::to_owned),
        rule: None,
        event_id: None,
        task_id: Some(row.task.id.to_string()),
    }
}
