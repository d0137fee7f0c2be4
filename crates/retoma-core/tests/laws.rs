//! Laws of the decision, over invented lives of a contact: whatever happens in whatever order.

#[path = "support/case.rs"]
mod case;

use std::collections::BTreeSet;
use std::time::Duration;

use case::Case;
use jiff::Timestamp;
use proptest::prelude::*;
use retoma_core::decide::{Setup, decide};
use retoma_core::decision::Decision;
use retoma_core::event::{Event, EventData, EventKind, Operator};
use retoma_core::state::ContactView;
use retoma_core::task::{MessageClass, Task, TaskKind, TaskStatus};

/// Something that happens.
#[derive(Clone, Debug)]
enum Act {
    /// The contact writes these, in one burst.
    Say(Vec<&'static str>),
    /// A platform tells a fact, so many minutes late.
    Fact(EventKind, Option<&'static str>, Option<&'static str>, u16),
    /// An operator's command.
    Operator(EventKind, Option<&'static str>),
    /// Time passes.
    Wait(u16),
    /// The clock jumps to the next deadline, and so many minutes past it.
    Ring(u16),
    /// What is handed over ends like this.
    End(TaskStatus),
}

const TEXTS: [&str; 9] =
    ["oi", "quanto custa?", "quero comprar", "SAIR", "voltar", "tá caro", "pare de mandar mensagem", "já paguei", ""];

const FACTS: [EventKind; 15] = [
    EventKind::PixCreated,
    EventKind::PixCreated,
    EventKind::CheckoutAbandoned,
    EventKind::PaymentRefused,
    EventKind::PaymentApproved,
    EventKind::PaymentApproved,
    EventKind::OrderCompleted,
    EventKind::PaymentRefunded,
    EventKind::PaymentPartiallyRefunded,
    EventKind::PaymentChargeback,
    EventKind::PaymentCancelled,
    EventKind::PaymentExpired,
    EventKind::SubscriptionRenewed,
    EventKind::SubscriptionLate,
    EventKind::Unknown,
];

fn act() -> impl Strategy<Value = Act> {
    let texts = prop::collection::vec(prop::sample::select(TEXTS.as_slice()), 1..4);
    let order = prop::option::weighted(0.8, prop::sample::select(["HP1", "HP2", "HP3"].as_slice()));
    let offer = prop::option::weighted(0.7, prop::sample::select(["curso", "mentoria"].as_slice()));
    let fact = (prop::sample::select(FACTS.as_slice()), order, offer, 0..600_u16);
    let command = prop_oneof![
        Just(Act::Operator(EventKind::OperatorPause, None)),
        Just(Act::Operator(EventKind::OperatorResume, None)),
        Just(Act::Operator(EventKind::OperatorOptOut, None)),
        prop::sample::select(["NEGOCIANDO", "RECUPERANDO", "PERDIDO", "PAGO", "NADA"].as_slice())
            .prop_map(|to| Act::Operator(EventKind::OperatorMove, Some(to))),
    ];
    const ENDS: [TaskStatus; 5] =
        [TaskStatus::Sent, TaskStatus::Sent, TaskStatus::Held, TaskStatus::Unsure, TaskStatus::Sending];
    prop_oneof![
        4 => texts.prop_map(Act::Say),
        6 => fact.prop_map(|(kind, order, offer, late)| Act::Fact(kind, order, offer, late)),
        1 => command,
        3 => (1..900_u16).prop_map(Act::Wait),
        8 => prop_oneof![Just(0), 0..1_500_u16].prop_map(Act::Ring),
        4 => prop::sample::select(ENDS.as_slice()).prop_map(Act::End),
    ]
}

fn minutes(count: u16) -> Duration {
    Duration::from_secs(60 * u64::from(count))
}

/// What an act brings to decide; time and deliveries happen on the way.
fn events_of(case: &mut Case, act: &Act) -> Vec<Event> {
    match act {
        Act::Say(texts) => {
            let data = |text: &str| EventData { text: Some(text.to_owned()), ..EventData::default() };
            texts.iter().map(|text| case.event(EventKind::MessageReceived, data(text))).collect()
        }
        Act::Fact(kind, order, offer, late) => {
            let mut event = case.fact_event(*kind, order.unwrap_or_default(), offer.unwrap_or_default());
            event.occurred_at -= minutes(*late);
            vec![event]
        }
        Act::Operator(kind, to) => {
            let operator = Operator {
                actor: "ana".to_owned(),
                until: (*kind == EventKind::OperatorPause).then_some(case.now + minutes(240)),
                conversation: None,
                to: to.map(str::to_owned),
                with: None,
                reason: None,
            };
            vec![case.event(*kind, EventData { operator: Some(operator), ..EventData::default() })]
        }
        Act::Wait(count) => {
            case.wait(minutes(*count));
            Vec::new()
        }
        Act::Ring(past) => {
            let Some(timeout) = case.next_timeout() else { return Vec::new() };
            case.now = case.now.max(timeout.occurred_at) + minutes(*past);
            vec![Event { received_at: case.now, ..timeout }]
        }
        Act::End(status) => {
            let now = case.now;
            for task in case.view.tasks.iter_mut().filter(|task| task.handed && task.status.is_waiting()) {
                task.status = *status;
                task.updated_at = now;
            }
            Vec::new()
        }
    }
}

/// A decided step, with what it was decided on.
struct Step {
    events: Vec<Event>,
    before: ContactView,
    decision: Decision,
    now: Timestamp,
}

/// Lives a life, handing every decided step to `look`.
fn live(
    acts: &[Act],
    mut look: impl FnMut(&mut Case, &Step) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut case = Case::vendas();
    for act in acts {
        let events = events_of(&mut case, act);
        if events.is_empty() {
            continue;
        }
        events.iter().for_each(|event| case.record(event));
        let (before, now) = (case.view.clone(), case.now);
        let decision = case.decide(&events);
        look(&mut case, &Step { events, before, decision, now })?;
    }
    Ok(())
}

fn waiting_reminders(view: &ContactView) -> impl Iterator<Item = &Task> {
    view.tasks.iter().filter(|task| task.status.is_waiting() && task.class == MessageClass::Reminder)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same arguments give the same decision, and folding the decisions again gives the same contact.
    #[test]
    fn replay_is_deterministic(acts in prop::collection::vec(act(), 1..40)) {
        let setup = Setup { default_channel: "zap".into() };
        live(&acts, |case, step| {
            let mut again = decide(&case.flow, &step.before, &step.events, &setup, step.now);
            again.new_tasks.retain(|task| step.decision.new_tasks.iter().any(|first| first.id == task.id));
            prop_assert_eq!(&again, &step.decision);
            let mut view = step.before.clone();
            again.apply(&mut view, step.now);
            prop_assert_eq!(&view, &case.view);
            Ok(())
        })?;
    }

    /// Every event of a decision ends exactly once, and the contact counts its decisions.
    #[test]
    fn every_event_has_one_end(acts in prop::collection::vec(act(), 1..40)) {
        live(&acts, |case, step| {
            let decided: Vec<_> = step.events.iter().map(|event| event.id).collect();
            let ended: Vec<_> = step.decision.events.iter().map(|outcome| outcome.event).collect();
            prop_assert_eq!(decided, ended);
            prop_assert!(step.decision.events.iter().all(|outcome| outcome.decided || outcome.reason.is_some()));
            prop_assert_eq!(case.view.contact.version, step.before.contact.version + 1);
            for cycle in &case.view.conversations {
                prop_assert!(case.flow.states.contains_key(&cycle.state));
            }
            Ok(())
        })?;
    }

    /// A fact of an order told again promises nothing, closes nothing and moves no timer (FC-01, D2, C9).
    #[test]
    fn a_repeated_fact_is_a_no_op(acts in prop::collection::vec(act(), 1..30)) {
        live(&acts, |case, step| {
            let event = &step.events[0];
            let is_fact = event.data.order.is_some() && event.kind.payment_rank().is_some();
            if !is_fact && event.kind != EventKind::ClockTimeout {
                return Ok(());
            }
            let mut again = case.clone();
            let repeated = again.decide(&step.events);
            prop_assert!(repeated.new_tasks.is_empty() && repeated.handed.is_empty(), "{:?}", repeated);
            prop_assert_eq!(&again.view.tasks, &case.view.tasks);
            let shape = |case: &Case| -> Vec<_> {
                let cycles = case.view.conversations.iter();
                cycles.map(|cycle| (cycle.id, cycle.state.clone(), cycle.deadline_at, cycle.paid_orders.len())).collect()
            };
            prop_assert_eq!(shape(&again), shape(case));
            Ok(())
        })?;
    }

    /// After a payment nothing in its cycle reminds; after an opt-out nothing reminds at all (never 3, C12).
    #[test]
    fn whoever_paid_or_opted_out_is_not_reminded(acts in prop::collection::vec(act(), 1..40)) {
        live(&acts, |case, step| {
            if case.view.contact.opted_out_at.is_some() {
                prop_assert_eq!(waiting_reminders(&case.view).count(), 0);
                prop_assert!(case.view.conversations.iter().all(|cycle| cycle.deadline_at.is_none()));
            }
            for cycle in case.view.conversations.iter().filter(|cycle| cycle.state == "PAGO") {
                let reminders = waiting_reminders(&case.view).filter(|task| task.conversation == Some(cycle.id));
                prop_assert_eq!(reminders.count(), 0, "{:?}", step.decision);
            }
            Ok(())
        })?;
    }

    /// Nothing is promised for a time before its cause; a touch is handed over when it is due, never before.
    #[test]
    fn tasks_are_never_before_their_cause(acts in prop::collection::vec(act(), 1..40)) {
        live(&acts, |case, step| {
            let cause = step.events.iter().map(|event| event.occurred_at.min(event.received_at)).min();
            let cause = cause.map(retoma_core::cadence::whole_ms);
            for task in &step.decision.new_tasks {
                prop_assert!(Some(task.scheduled_for) >= cause, "{task:?}");
                prop_assert!(!task.handed || task.scheduled_for <= step.now, "{task:?}");
            }
            for id in &step.decision.handed {
                prop_assert!(case.task(id).scheduled_for <= step.now);
            }
            Ok(())
        })?;
    }

    /// One cadence runs per cycle, of at most three reminders; none of its touches is forgotten by the clock (never 6).
    #[test]
    fn a_cadence_is_at_most_three_reminders_and_none_is_forgotten(acts in prop::collection::vec(act(), 1..40)) {
        live(&acts, |case, _| {
            let touches = || case.view.tasks.iter().filter(|task| task.kind == TaskKind::Touch);
            let armed: BTreeSet<&str> = touches().filter_map(|task| Some(task.id.as_str().rsplit_once(':')?.0)).collect();
            for key in armed {
                let of_key = touches().filter(|task| task.id.as_str().rsplit_once(':').is_some_and(|id| id.0 == key));
                prop_assert!(of_key.count() <= 3);
            }
            for task in touches().filter(|task| task.status.is_waiting()) {
                let cycle = task.conversation.and_then(|id| case.view.conversation(id)).expect("its cycle is open");
                let running = cycle.cadence.as_ref().expect("its cadence runs");
                let touch = running.touches.iter().find(|touch| touch.task == task.id).expect("it is one of its touches");
                prop_assert_eq!(touch.handed, task.handed);
                let is_awaited = cycle.deadline_at.is_some_and(|at| at <= touch.due_at);
                prop_assert!(task.handed || is_awaited, "{:?} {:?}", cycle, task);
            }
            Ok(())
        })?;
    }

    /// Whoever is left alone comes to an end: after the last act the clock runs dry within a few rounds.
    #[test]
    fn every_life_comes_to_rest(acts in prop::collection::vec(act(), 1..25)) {
        let Some(mut case) = last_of(&acts)? else { return Ok(()) };
        prop_assert!(run_dry(&mut case), "still ringing: {:?}", case.view.conversations);
    }

    /// Without an opt-out, an operator, or facts that say paid but never "approved", that end is PAGO or PERDIDO: no cycle is
    /// forgotten on the way (never 6).
    #[test]
    fn every_sale_ends_in_paid_or_lost(acts in prop::collection::vec(act(), 1..25)) {
        let is_plain = |act: &&Act| match act {
            Act::Say(texts) => !texts.iter().any(|text| ["SAIR", "pare de mandar mensagem"].contains(text)),
            Act::Fact(EventKind::PaymentApproved, ..) => true,
            Act::Fact(kind, ..) => kind.payment_rank().is_none_or(|rank| rank < 30),
            Act::Operator(..) => false,
            Act::Wait(_) | Act::Ring(_) | Act::End(_) => true,
        };
        let acts: Vec<Act> = acts.iter().filter(is_plain).cloned().collect();
        let Some(mut case) = last_of(&acts)? else { return Ok(()) };
        run_dry(&mut case);
        for cycle in &case.view.conversations {
            prop_assert!(["PAGO", "PERDIDO"].contains(&cycle.state.as_str()), "{:?} {:#?}", cycle, case.log);
        }
    }

    /// FC-37, C1: once one of them is the approval, any order and any repetition of what is said of one transaction ends in
    /// PAGO, with one delivery promised and nothing that reminds.
    #[test]
    fn any_order_of_the_facts_of_a_paid_order_ends_alike(
        facts in prop::sample::subsequence(&FACTS_OF_ONE_ORDER[..], 0..FACTS_OF_ONE_ORDER.len()).prop_shuffle(),
        place in any::<prop::sample::Index>(),
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut facts = facts;
        facts.insert(place.index(facts.len() + 1), EventKind::PaymentApproved);
        for index in again {
            facts.push(facts[index.index(facts.len())]);
        }
        let case = told(&facts);
        prop_assert_eq!(case.view.conversations.len(), 1, "{:?}", facts);
        prop_assert_eq!((case.state(), &case.cycle().paid_orders), ("PAGO", &vec![case::order("HP1")]), "{:?}", facts);
        prop_assert_eq!(waiting_reminders(&case.view).count(), 0, "{:?}", facts);
        let deliveries = case.claimed.iter().filter(|id| id.as_str() == "hotmart:entregar_acesso:HP1");
        prop_assert_eq!(deliveries.count(), 1, "{:?}", facts);
    }

    /// Without a payment the highest fact says where the sale stands, in whatever order it was told.
    #[test]
    fn any_order_of_unpaid_facts_ends_in_the_state_of_the_highest(
        facts in prop::collection::vec(prop::sample::select(UNPAID.as_slice()), 1..6),
    ) {
        let highest = facts.iter().copied().max_by_key(|kind| kind.payment_rank()).expect("there is one");
        let expected = if highest == EventKind::PixCreated { "AGUARDANDO_PIX" } else { "RECUPERANDO" };
        let case = told(&facts);
        prop_assert_eq!((case.view.conversations.len(), case.state()), (1, expected), "{:?}", facts);
    }

    /// C12, C1: nothing new is promised to whoever opted out, nor in a paid cycle, but the confirmation, what was paid, and
    /// answers in a paid cycle; the seller's own people may be told of anything.
    #[test]
    fn no_decision_promises_what_it_must_not(acts in prop::collection::vec(act(), 1..40)) {
        live(&acts, |case, step| {
            let promised = step.decision.new_tasks.iter().chain(&step.decision.adopted);
            for task in promised.filter(|task| !task.class.outlives_the_sale()) {
                prop_assert!(case.view.contact.opted_out_at.is_none(), "{task:?}");
                let cycle = task.conversation.and_then(|id| case.view.conversation(id)).expect("its cycle is open");
                let is_reminder = task.class == MessageClass::Reminder;
                prop_assert!(!is_reminder || cycle.state != "PAGO", "{task:?}");
                let order = task.reference.order.as_ref().filter(|_| is_reminder);
                let is_paid = order.is_some_and(|order| cycle.paid_orders.contains(order));
                prop_assert!(!is_paid, "{task:?}");
            }
            for id in &step.decision.handed {
                prop_assert!(case.view.contact.opted_out_at.is_none(), "{id}");
            }
            Ok(())
        })?;
    }
}

/// What platforms say of one transaction; the cart has none.
const FACTS_OF_ONE_ORDER: [EventKind; 9] = [
    EventKind::CheckoutAbandoned,
    EventKind::PixCreated,
    EventKind::PaymentRefused,
    EventKind::PaymentExpired,
    EventKind::PaymentCancelled,
    EventKind::OrderCompleted,
    EventKind::PaymentPartiallyRefunded,
    EventKind::PaymentRefunded,
    EventKind::PaymentChargeback,
];

const UNPAID: [EventKind; 3] = [EventKind::CheckoutAbandoned, EventKind::PixCreated, EventKind::PaymentRefused];

/// A contact of whom these facts were told, one after the other.
fn told(facts: &[EventKind]) -> Case {
    let mut case = Case::vendas();
    for kind in facts {
        let transaction = if *kind == EventKind::CheckoutAbandoned { "" } else { "HP1" };
        case.wait(minutes(1)).fact(*kind, transaction, "curso");
    }
    case
}

/// A life's last state.
fn last_of(acts: &[Act]) -> Result<Option<Case>, TestCaseError> {
    let mut last = None;
    live(acts, |case, _| {
        last = Some(case.clone());
        Ok(())
    })?;
    Ok(last)
}

/// Lets the clock ring until it has nothing to say, while every task that hangs is sent. Answers whether it fell silent.
fn run_dry(case: &mut Case) -> bool {
    for _ in 0..200 {
        let Some(timeout) = case.next_timeout() else { return true };
        case.now = case.now.max(timeout.occurred_at);
        case.decide(&[timeout]);
        let now = case.now;
        for task in case.view.tasks.iter_mut().filter(|task| task.status == TaskStatus::Sending) {
            (task.status, task.updated_at) = (TaskStatus::Sent, now);
        }
        case.deliver();
    }
    false
}
