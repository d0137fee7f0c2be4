use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::ids::{BucketNo, ContactId, Tenant};
use crate::task::{Reference, TaskKind, TaskStatus};

const HOUR: Duration = Duration::from_secs(3600);
const RULE: Chances = Chances { reconcile_for: Duration::from_secs(600), other_spelling: false };

fn now() -> Timestamp {
    "2026-12-02T15:00:00Z".parse().unwrap()
}

fn task() -> Task {
    Task {
        id: "hotmart:pix:HP1:t15".into(),
        tenant: Tenant::default(),
        bucket: BucketNo(0),
        contact: ContactId(Uuid::nil()),
        conversation: None,
        flow: "vendas".into(),
        kind: TaskKind::Touch,
        cadence: None,
        touch: None,
        touch_no: None,
        message: "lembrete_pix".into(),
        text: None,
        class: MessageClass::Reminder,
        channel: "zap".into(),
        reference: Reference::default(),
        scheduled_for: now(),
        next_attempt_at: now(),
        handed: true,
        max_late: None,
        on_ambiguous: None,
        cancel_on: Vec::new(),
        status: TaskStatus::Sending,
        reason: None,
        avoided: false,
        attempts: 1,
        cancel_reason: None,
        reconcile_until: None,
        resent: false,
        respelled: false,
        local_time: None,
        created_at: now(),
        updated_at: now(),
    }
}

fn end(outcome: Outcome) -> AttemptEnd {
    AttemptEnd { outcome, http_status: None, error: None, response: None, provider_message_id: None, retry_after: None }
}

fn asks(outcome: Outcome, seconds: u64) -> AttemptEnd {
    AttemptEnd { retry_after: Some(Duration::from_secs(seconds)), ..end(outcome) }
}

fn policy() -> RetryPolicy {
    RetryPolicy { jitter: 0.0, ..RetryPolicy::recovery() }
}

fn next(task: &Task, used: u32, end: &AttemptEnd) -> NextStep {
    after_attempt(task, used, end, &policy(), RULE, now())
}

/// `sent`, `dead`, `retry 60 counted`, `retry 0 free`, `unsure 600`, `held ..`, `cancelled ..`.
fn shown(next: &NextStep) -> String {
    let seconds = |at: &Timestamp| at.duration_since(now()).as_secs();
    match next {
        NextStep::Sent => "sent".into(),
        NextStep::Dead => "dead".into(),
        NextStep::Respell { at } => format!("respell {}", seconds(at)),
        NextStep::Retry { at, counts } => format!("retry {} {}", seconds(at), if *counts { "counted" } else { "free" }),
        NextStep::Unsure { until } => format!("unsure {}", seconds(until)),
        NextStep::Held(reason) => format!("held {reason}"),
        NextStep::Cancelled(reason) => format!("cancelled {reason}"),
    }
}

// C11, whatsapp-providers 5: RECIPIENT
#[test]
fn a_number_nobody_has_is_tried_once_under_its_other_spelling() {
    let chances = Chances { other_spelling: true, ..RULE };
    let end = end(Outcome::Recipient);
    let next = |task: &Task| shown(&after_attempt(task, 1, &end, &policy(), chances, now()));
    assert_eq!(next(&task()), "respell 0");
    assert_eq!(next(&Task { respelled: true, ..task() }), "dead");
    assert_eq!(next(&Task { cancel_reason: Some(Reason::Paid), ..task() }), "cancelled paid");
    assert_eq!(shown(&after_attempt(&task(), 1, &end, &policy(), RULE, now())), "dead");
}

// E2, E3, E4, whatsapp-providers 5
#[test]
fn each_outcome_leads_somewhere() {
    use Outcome::*;
    let table = [
        (1, end(Accepted), "sent"),
        (1, end(Transient), "retry 60 counted"),
        (5, end(Transient), "retry 960 counted"),
        (6, end(Transient), "dead"),
        (7, end(Transient), "dead"),
        (1, asks(Transient, 5), "retry 60 counted"),
        (1, asks(RatePair, 7), "retry 7 free"),
        (6, asks(RateNumber, 7), "retry 7 free"),
        (6, asks(RateAccount, 7), "retry 7 free"),
        (1, asks(RateNumber, 0), "retry 1 free"),
        (6, end(Ambiguous), "unsure 600"),
        (1, end(Recipient), "dead"),
        (1, end(Content), "dead"),
        (1, end(Template), "dead"),
        (1, end(Window), "held window_closed"),
        (1, end(Marketing), "dead"),
        (6, end(Credentials), "retry 30 free"),
        (6, end(Account), "retry 30 free"),
        (6, end(NotSent), "retry 0 free"),
    ];
    for (used, end, expected) in table {
        assert_eq!(shown(&next(&task(), used, &end)), expected, "{} after {used}", end.outcome);
    }
}

// FC-64: "next try not before the wish (+ jitter)", capped.
#[test]
fn a_wish_to_wait_is_kept_spread_and_capped() {
    for (outcome, asked, least) in [
        (Outcome::Transient, 300, 300),
        (Outcome::RateNumber, 120, 120),
        (Outcome::RateNumber, 86_400, 3600),
        (Outcome::Transient, 604_800, 3600),
    ] {
        let mut waits = std::collections::BTreeSet::new();
        for n in 0..100 {
            let task = Task { id: format!("t{n}").into(), ..task() };
            let NextStep::Retry { at, .. } = next(&task, 1, &asks(outcome, asked)) else { panic!("it is tried again") };
            let wait = at.duration_since(now()).as_millis();
            assert!((least * 1000..=least * 1100).contains(&wait), "{outcome} {asked} {wait}");
            waits.insert(wait);
        }
        assert!(waits.len() > 50, "{outcome}");
    }
}

#[test]
fn a_rate_limit_without_a_wait_gets_one_that_tells_tasks_apart() {
    for (outcome, usual) in [(Outcome::RatePair, 15), (Outcome::RateNumber, 30), (Outcome::RateAccount, 300)] {
        let mut waits = std::collections::BTreeSet::new();
        for n in 0..100 {
            let task = Task { id: format!("t{n}").into(), ..task() };
            let NextStep::Retry { at, counts: false } = next(&task, 6, &end(outcome)) else { panic!("a free retry") };
            let wait = at.duration_since(now()).as_millis();
            assert!((usual * 800..=usual * 1200).contains(&wait), "{outcome} {wait}");
            waits.insert(wait);
        }
        assert!(waits.len() > 50, "{outcome}");
    }
}

// D2: "any end but accepted makes it cancelled, never a retry".
#[test]
fn a_task_cancelled_under_way_is_sent_or_cancelled() {
    let marked = Task { cancel_reason: Some(Reason::Paid), ..task() };
    for outcome in Outcome::ALL {
        let expected = if *outcome == Outcome::Accepted { "sent" } else { "cancelled paid" };
        assert_eq!(shown(&next(&marked, 1, &end(*outcome))), expected, "{outcome}");
    }
}

// FC-31: no retry before 24 h, growing gaps, never outside the touch's own life.
#[test]
fn a_recipient_that_takes_no_marketing_is_left_alone_for_a_day_or_for_good() {
    let living = |hours: u32| Task { max_late: Some(HOUR * hours), ..task() };
    let day = 24..=26;
    let hours = |next: NextStep| match next {
        NextStep::Retry { at, counts: true } => Some(at.duration_since(now()).as_hours()),
        NextStep::Dead => None,
        other => panic!("{other:?}"),
    };
    assert!(hours(next(&living(72), 1, &end(Outcome::Marketing))).is_some_and(|wait| day.contains(&wait)));
    assert!(hours(next(&living(72), 2, &end(Outcome::Marketing))).is_some_and(|wait| (48..=52).contains(&wait)));
    assert_eq!(hours(next(&living(72), 3, &end(Outcome::Marketing))), None);
    assert_eq!(hours(next(&living(6), 1, &end(Outcome::Marketing))), None);
    assert_eq!(hours(next(&living(100_000), 6, &end(Outcome::Marketing))), None);
}

// E4
#[test]
fn what_nobody_could_learn_falls_to_the_channel_then_the_message_then_the_class() {
    use MessageClass::*;
    use OnAmbiguous as On;
    let table = [
        (Reminder, None, None, Settled::AssumeSent),
        (Reply, None, None, Settled::Hold),
        (Receipt, None, None, Settled::Hold),
        (OptOutAck, None, None, Settled::Hold),
        (Reply, Some(On::ResendOnce), None, Settled::ResendOnce),
        (Reminder, Some(On::Hold), None, Settled::Hold),
        (Reminder, None, Some(On::Hold), Settled::Hold),
        (Reply, Some(On::ResendOnce), Some(On::Hold), Settled::Hold),
        (Receipt, Some(On::Hold), Some(On::AssumeSent), Settled::AssumeSent),
        (Reminder, None, Some(On::ResendOnce), Settled::ResendOnce),
    ];
    for (class, on_ambiguous, channel, expected) in table {
        let task = Task { class, on_ambiguous, ..task() };
        assert_eq!(settle_unsure(&task, channel), expected, "{class} {on_ambiguous:?} {channel:?}");
        // Never 2: whatever the policy, there is no second resend.
        let resent = Task { resent: true, ..task };
        let once = if expected == Settled::ResendOnce { Settled::Hold } else { expected };
        assert_eq!(settle_unsure(&resent, channel), once, "{class} {on_ambiguous:?} {channel:?} resent");
    }
}

proptest! {
    /// Nothing is tried again in the past, later than an hour and a fifth after a passing failure, or for ever.
    #[test]
    fn a_retry_lies_ahead_and_within_bounds(
        outcome in proptest::sample::select(Outcome::ALL), used in 1..20u32, asked in proptest::option::of(0..100_000u64), id in "[a-z0-9:]{1,16}",
    ) {
        let task = Task { id: id.into(), ..task() };
        let end = AttemptEnd { retry_after: asked.map(Duration::from_secs), ..end(outcome) };
        let policy = RetryPolicy::recovery();
        match after_attempt(&task, used, &end, &policy, RULE, now()) {
            NextStep::Retry { at, counts } => {
                let wait = at.duration_since(now());
                prop_assert!(!wait.is_negative() && wait.as_secs() <= 3600 * 6 / 5);
                prop_assert_eq!(counts, outcome == Outcome::Transient);
                prop_assert!(!counts || used < policy.attempts);
                prop_assert!(wait.as_secs() >= 1 || outcome == Outcome::NotSent);
            }
            NextStep::Respell { .. } => prop_assert!(false, "no number of this law has another spelling"),
            NextStep::Sent => prop_assert_eq!(outcome, Outcome::Accepted),
            NextStep::Unsure { .. } => prop_assert_eq!(outcome, Outcome::Ambiguous),
            NextStep::Held(_) => prop_assert_eq!(outcome, Outcome::Window),
            NextStep::Dead | NextStep::Cancelled(_) => {}
        }
    }
}
