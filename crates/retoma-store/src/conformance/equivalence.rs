//! A store leaves what `Decision::apply` leaves: generated decisions, committed one after another, against the fold.

use jiff::{SignedDuration, Timestamp};
use retoma_core::decision::{Close, CloseScope, Decision, Spread, Transition};
use retoma_core::ids::{ContactId, TaskId};
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::state::{Contact, ContactView, Conversation, PingPong, Previous, RunningCadence, RunningTouch};
use retoma_core::task::{MessageClass, OnAmbiguous, Reference, Task, TaskKind, TaskStatus};

use super::dice::Dice;
use super::world::*;
use crate::*;

const CONTACTS: u64 = 6;
const ROUNDS: i64 = 25;

/// C3, S11: state is the fold of decisions.
pub async fn a_decision_leaves_what_apply_leaves<S: Store>(store: &S) {
    for n in 1..=CONTACTS {
        let contact = append_new(store, message(n * 1000, &format!("554199999000{n}"))).await;
        walk(store, contact, n).await;
    }
}

async fn walk<S: Store>(store: &S, contact: ContactId, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut names = 0;
    for round in 0..ROUNDS {
        let now = at(round * 60);
        if dice.once_in(2) {
            let mut event = message(seed * 1000 + 1 + u64::try_from(round).unwrap(), &format!("554199999000{seed}"));
            event.urgent = dice.once_in(3);
            append(store, event).await;
        }
        start_something(store, &mut dice, contact, now).await;
        let mut folded = view(store, contact, now).await;
        let decision = invent(&mut dice, &folded, &mut names, now);
        let owner = owner(store).await;
        let answers = store.commit_decisions(owner, vec![commit_of(&folded, decision.clone(), now)]).await.unwrap();
        assert_eq!(answers, [Committed::Done { already_claimed: Vec::new() }], "seed {seed}, round {round}");
        decision.apply(&mut folded, now);
        let stored = view(store, contact, now).await;
        assert_eq!(visible(&stored), visible(&folded), "seed {seed}, round {round}: {decision:#?}");
    }
}

/// What a load shows of a view, in an order of its own: tasks that ended show while a running cadence names them.
fn visible(view: &ContactView) -> ContactView {
    let mut view = view.clone();
    let named = |id: &TaskId| {
        view.conversations
            .iter()
            .filter_map(|conversation| conversation.cadence.as_ref())
            .any(|cadence| cadence.touches.iter().any(|touch| touch.task == *id))
    };
    let tasks = view.tasks.iter().filter(|task| !task.status.is_final() || named(&task.id)).cloned().collect();
    view.tasks = tasks;
    view.tasks.sort_by(|a, b| a.id.cmp(&b.id));
    view.conversations.sort_by_key(|conversation| conversation.ordinal);
    // Which orders are asked for follows from the rest.
    view.facts.clear();
    view
}

/// Leaves some tasks `sending`, `unsure`, `failed`, `held` or ended, so that closes meet every status.
async fn start_something<S: Store>(store: &S, dice: &mut Dice, contact: ContactId, now: Timestamp) {
    let due: Vec<Task> = due(store, now, 100).await;
    let mine: Vec<&Task> = due.iter().filter(|task| task.contact == contact && task.status.is_waiting()).collect();
    let Some(task) = mine.first().filter(|_| !dice.once_in(3)) else { return };
    let mut wish = start_of(store, task.id.as_str(), contact, now).await;
    (wish.block_on_chat, wish.block_on_paid) = (false, false);
    let Started::Started { attempt } = try_start(store, wish, now).await else { return };
    let (outcome, next) = match dice.below(6) {
        0 => return,
        1 => (Outcome::Accepted, NextStep::Sent),
        2 => (Outcome::Transient, NextStep::Retry { at: now, counts: true }),
        3 => (Outcome::Ambiguous, NextStep::Unsure { until: now + SignedDuration::from_hours(9) }),
        4 => (Outcome::Window, NextStep::Held(Reason::WindowClosed)),
        _ => (Outcome::Content, NextStep::Dead),
    };
    assert!(finish(store, finish_of(task.id.as_str(), attempt, end(outcome), next, now)).await);
}

fn invent(dice: &mut Dice, view: &ContactView, names: &mut u32, now: Timestamp) -> Decision {
    let contact = Contact {
        version: view.contact.version + 1,
        opted_out_at: dice.once_in(6).then_some(now),
        paused_until: dice.once_in(4).then_some(now),
        last_inbound_at: dice.once_in(2).then_some(now),
        last_channel: dice.once_in(2).then(|| "zap".into()),
        vars: if dice.once_in(2) { view.contact.vars.clone() } else { [var(dice), var(dice)].into() },
        cycles: view.contact.cycles,
        ping_pong: invent_ping_pong(dice),
        ..view.contact.clone()
    };
    let mut decision = Decision {
        events: view.undecided.iter().filter(|_| !dice.once_in(4)).map(|event| outcome(event.id)).collect(),
        ..Decision::default()
    };
    if !view.tasks.is_empty() && dice.once_in(2) {
        let scope = invent_scope(dice, view);
        let except = if dice.once_in(3) { vec![MessageClass::Receipt] } else { Vec::new() };
        decision.close.push(Close { scope, except, reason: dice.pick(&[Reason::Paid, Reason::OptedOut]) });
        if dice.once_in(3) {
            let scope = invent_scope(dice, view);
            decision.close.push(Close { scope, except: Vec::new(), reason: Reason::Superseded });
        }
    }
    for _ in 0..dice.below(4) {
        *names += 1;
        decision.new_tasks.push(invent_task(dice, view, *names, now));
    }
    let mut cycles = contact.cycles;
    if cycles == 0 || dice.once_in(5) {
        cycles += 1;
        decision.conversations.push(invent_cycle(dice, view, cycles, &decision.new_tasks, now));
    } else if let Some(old) = view.conversations.first() {
        let ordinal = old.ordinal;
        decision.conversations.push(invent_cycle(dice, view, ordinal, &decision.new_tasks, now));
    }
    decision.contact = Some(Contact { cycles, ..contact });
    decision.transitions = decision.conversations.iter().map(|cycle| log(view, cycle, now)).collect();
    let waiting = view.tasks.iter().chain(&decision.new_tasks).filter(|task| !task.handed);
    decision.handed = waiting.filter(|_| dice.once_in(3)).map(|task| task.id.clone()).collect();
    decision.spread = decision.handed.iter().filter(|_| dice.once_in(2)).map(|task| later(task, now)).collect();
    let open = view.tasks.iter().chain(&decision.new_tasks).filter(|_| dice.once_in(4));
    decision.replanned = open.map(|task| later(&task.id, now)).collect();
    decision
}

fn later(task: &TaskId, now: Timestamp) -> Spread {
    Spread { task: task.clone(), at: now + SignedDuration::from_secs(90) }
}

fn invent_ping_pong(dice: &mut Dice) -> PingPong {
    let said = dice.once_in(2).then(|| "0123".to_owned());
    if dice.once_in(3) { PingPong::default() } else { PingPong { said, same: 1, quick: 2 } }
}

fn var(dice: &mut Dice) -> (String, String) {
    let name = dice.pick(&["contact.first_name", "contact.timezone", "pix.code"]);
    (name.to_owned(), format!("válor {}", dice.below(9)))
}

fn invent_scope(dice: &mut Dice, view: &ContactView) -> CloseScope {
    let contact = view.contact.id;
    match dice.below(4) {
        0 => CloseScope::Contact(contact),
        1 => CloseScope::Order(contact, order(dice.pick(&["HP1", "HP2"]))),
        2 => match view.conversations.first() {
            Some(conversation) => CloseScope::Conversation(conversation.id),
            None => CloseScope::Contact(contact),
        },
        _ => CloseScope::Tasks(view.tasks.iter().filter(|_| dice.once_in(2)).map(|task| task.id.clone()).collect()),
    }
}

fn invent_task(dice: &mut Dice, view: &ContactView, name: u32, now: Timestamp) -> Task {
    let due = now + SignedDuration::from_secs(i64::try_from(dice.below(600)).unwrap());
    let touch = dice.once_in(2);
    Task {
        conversation: view.conversations.first().map(|cycle| cycle.id).filter(|_| touch),
        kind: if touch { TaskKind::Touch } else { TaskKind::Message },
        cadence: touch.then(|| "carrinho".to_owned()),
        touch: touch.then(|| "t15".to_owned()),
        touch_no: touch.then_some(2),
        message: "retomar_checkout".to_owned(),
        text: dice.once_in(5).then(|| "texto próprio".to_owned()),
        class: dice.pick(MessageClass::ALL),
        reference: Reference {
            order: (!dice.once_in(3)).then(|| order(dice.pick(&["HP1", "HP2"]))),
            amount: None,
            link: dice.once_in(2).then(|| "https://loja.example/c".to_owned()),
        },
        scheduled_for: due,
        next_attempt_at: due,
        handed: dice.once_in(2),
        max_late: dice.once_in(2).then(|| seconds(2400)),
        on_ambiguous: dice.once_in(2).then_some(OnAmbiguous::ResendOnce),
        cancel_on: if dice.once_in(4) { vec![retoma_core::event::EventKind::PaymentApproved] } else { Vec::new() },
        status: TaskStatus::Scheduled,
        created_at: now,
        updated_at: now,
        ..of(view.contact.id, reminder(&format!("{}:{name:04}", view.contact.id), 0))
    }
}

fn invent_cycle(dice: &mut Dice, view: &ContactView, ordinal: u32, touches: &[Task], now: Timestamp) -> Conversation {
    let running = view.tasks.iter().chain(touches).take(3);
    let touches: Vec<RunningTouch> = running
        .map(|task| RunningTouch { task: task.id.clone(), due_at: task.scheduled_for, handed: task.handed })
        .collect();
    let cadence = RunningCadence { name: "carrinho".to_owned(), key: "HP1".to_owned(), anchor: now, touches };
    let previous = Previous { state: Some("NOVO".to_owned()), event: Some("timeout".to_owned()), reason: None };
    Conversation {
        offer: dice.once_in(2).then(|| "curso".to_owned()),
        version: view.contact.version,
        closed: dice.once_in(6),
        deadline_at: dice.once_in(2).then_some(now),
        cadence: dice.once_in(2).then_some(cadence),
        order: dice.once_in(2).then(|| order("HP1")),
        paid_orders: if dice.once_in(4) { vec![order("HP2")] } else { Vec::new() },
        previous: if dice.once_in(2) { previous } else { Previous::default() },
        opened_at: now,
        updated_at: now,
        ..conversation(view.contact.id, ordinal, dice.pick(&["NEGOCIANDO", "PAGO"]))
    }
}

fn log(view: &ContactView, cycle: &Conversation, now: Timestamp) -> Transition {
    Transition {
        contact: view.contact.id,
        conversation: cycle.id,
        from: "NOVO".to_owned(),
        event: "msg_recebida".to_owned(),
        taken_as: None,
        to: cycle.state.clone(),
        reason: None,
        actions: Vec::new(),
        rule: None,
        event_id: event_id(1),
        at: now,
    }
}
