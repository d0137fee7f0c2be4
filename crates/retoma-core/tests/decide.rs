//! Decisions that the table alone does not show: whose cycle, what is closed, which ids, which deadline.

#[path = "support/case.rs"]
mod case;
#[path = "decide/clock.rs"]
mod clock;
#[path = "decide/cycles.rs"]
mod cycles;
#[path = "decide/merges.rs"]
mod merges;
#[path = "decide/messages.rs"]
mod messages;
#[path = "decide/money.rs"]
mod money;
#[path = "decide/people.rs"]
mod people;
#[path = "decide/promises.rs"]
mod promises;
#[path = "decide/shapes.rs"]
mod shapes;
#[path = "decide/silence.rs"]
mod silence;
#[path = "decide/takeover.rs"]
mod takeover;

use case::{Case, HOUR, MINUTE, order};
use retoma_core::cadence;
use retoma_core::decide::{Setup, decide};
use retoma_core::decision::{CloseScope, Decision};
use retoma_core::event::{EventData, EventKind, Operator, Renewed};
use retoma_core::ids::{ChannelName, ConversationId};
use retoma_core::send_check::Reason;
use retoma_core::state::Conversation;
use retoma_core::task::{MessageClass, TaskKind, TaskStatus};

fn ids(decision: &Decision) -> Vec<String> {
    decision.new_tasks.iter().map(|task| task.id.to_string()).collect()
}

fn reason(decision: &Decision) -> Option<&str> {
    decision.events[0].reason.as_deref()
}

/// Why each touch of the case ended or waits: `t4h paid`.
fn touches(case: &Case) -> Vec<String> {
    let touches = case.view.tasks.iter().filter(|task| task.kind == TaskKind::Touch);
    let shown = touches.map(|task| {
        let why = task.reason.map_or(task.status.as_str(), Reason::as_str);
        format!("{} {why}", task.touch.as_deref().unwrap_or("?"))
    });
    shown.collect()
}

fn command(actor: &str) -> Operator {
    Operator { actor: actor.to_owned(), until: None, conversation: None, to: None, with: None, reason: None }
}
