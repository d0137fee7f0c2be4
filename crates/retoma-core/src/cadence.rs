//! Cadences ("réguas"): which ids touches have, when they fall due, and how far a running one has come (D1, D2).
//!
//! Pure helpers of [`decide`](crate::decide). Nothing here decides whether a cadence may run, and nothing sends: a touch is
//! a promise until its `timeout` hands it over and the check before sending lets it pass.

use std::time::Duration;

use jiff::Timestamp;

use crate::event::OrderRef;
use crate::flow::Cadence;
use crate::ids::{ConversationId, TaskId};
use crate::keys;
use crate::state::{RunningCadence, RunningTouch};

/// What the ids of a cadence's touches share: `hotmart:pix:HP0000000001`; where no order is known, the cycle and the
/// version that armed it. Derived, so that the same PIX told twice promises the same touches (D2).
pub fn key(cadence: &Cadence, order: Option<&OrderRef>, conversation: ConversationId, version: u64) -> String {
    match order {
        Some(order) => format!("{}:{}:{}", order.scope(), cadence.prefix, order.transaction),
        None => format!("{}:{conversation}.{version}", cadence.prefix),
    }
}

/// The task of a touch: `hotmart:pix:HP0000000001:t15`.
pub fn touch_id(key: &str, touch: &str) -> TaskId {
    TaskId::from(format!("{key}:{touch}"))
}

/// A delay between nothing and `up_to`, drawn once and for all by `seed`: whoever asks again gets the same, so that
/// replaying history gives the stored instants.
pub fn jitter(seed: &str, up_to: Duration) -> Duration {
    let hash = keys::digest16("jitter", &[seed.as_bytes()]).0;
    let mut draw = [0; 8];
    draw.copy_from_slice(&hash[..8]);
    let span = u64::try_from(up_to.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(u64::from_be_bytes(draw) % span.saturating_add(1))
}

/// Cut to whole milliseconds. Deadlines are compared for equality after a journey through a store, so they carry nothing
/// finer than every store keeps.
pub fn whole_ms(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).expect("an instant cut to milliseconds is still an instant")
}

/// A cadence just armed: every touch at its time after the anchor, none handed over.
///
/// A touch that counts back from a value (D10) falls due that long before it; its jitter only makes it earlier. Without the
/// value it is not promised: `None`.
///
/// With `at_once`, the action of the arming row stands for the first touch: it is due, and handed over, then (C1).
pub fn arm(
    name: &str,
    cadence: &Cadence,
    key: String,
    anchor: Timestamp,
    at_once: Option<Timestamp>,
    value: impl Fn(&str) -> Option<Timestamp>,
) -> RunningCadence {
    let anchor = whole_ms(anchor);
    let touches = cadence.touches.iter().enumerate().filter_map(|(position, touch)| {
        let task = touch_id(&key, &touch.id);
        if let Some(now) = at_once.filter(|_| position == 0) {
            return Some(RunningTouch { task, due_at: whole_ms(now), handed: true });
        }
        let jitter = jitter(task.as_str(), touch.jitter);
        let due_at = match &touch.before {
            Some(name) => value(name)? - touch.at - jitter,
            None => anchor + touch.at + jitter,
        };
        Some(RunningTouch { task, due_at: whole_ms(due_at), handed: false })
    });
    RunningCadence { name: name.to_owned(), touches: touches.collect(), key, anchor }
}

/// Whether a cadence lives in a state; one that names no states lives in all of them.
pub fn runs_in(cadence: &Cadence, state: &str) -> bool {
    cadence.runs_in.is_empty() || cadence.runs_in.iter().any(|word| word == state)
}

/// When the next touch that was not handed over falls due. By time, not by position: jitter may swap two touches.
pub fn next_due(running: &RunningCadence) -> Option<Timestamp> {
    running.touches.iter().filter(|touch| !touch.handed).map(|touch| touch.due_at).min()
}

/// When the last touch falls due.
pub fn last_due(running: &RunningCadence) -> Timestamp {
    running.touches.iter().map(|touch| touch.due_at).max().unwrap_or(running.anchor)
}

/// Takes out every touch that has fallen due and not been handed over, earliest first. They count as handed from now on.
pub fn take_due(running: &mut RunningCadence, now: Timestamp) -> Vec<RunningTouch> {
    let mut due = Vec::new();
    for touch in running.touches.iter_mut().filter(|touch| !touch.handed && touch.due_at <= now) {
        touch.handed = true;
        due.push(touch.clone());
    }
    due.sort_by_key(|touch| touch.due_at);
    due
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::flow::Touch;

    const MINUTE: Duration = Duration::from_secs(60);

    fn touch(id: &str, at_minutes: u32) -> Touch {
        let (at, jitter, max_late) = (MINUTE * at_minutes, 2 * MINUTE, 40 * MINUTE);
        Touch { id: id.to_owned(), at, before: None, jitter, max_late, send: "lembrete_pix".to_owned() }
    }

    fn pix() -> Cadence {
        Cadence {
            prefix: "pix".to_owned(),
            starts_with: None,
            runs_in: vec!["AGUARDANDO_PIX".to_owned()],
            cancel_on: Vec::new(),
            grace: Duration::from_secs(86_400),
            wait_after_inbound: 45 * MINUTE,
            min_gap: 120 * MINUTE,
            revalidate: None,
            touches: vec![touch("t15", 15), touch("t4h", 240)],
        }
    }

    fn noon() -> Timestamp {
        "2026-12-02T15:00:00Z".parse().unwrap()
    }

    #[test]
    fn ids_derive_from_the_transaction_and_without_one_from_the_cycle() {
        let order =
            OrderRef { platform: "hotmart".into(), account: "loja".into(), transaction: "HP0000000001".to_owned() };
        let own = OrderRef { platform: "generic".into(), account: "pedidos".into(), transaction: "7".to_owned() };
        let cycle = ConversationId(Uuid::nil());
        let table = [
            (Some(&order), "hotmart:pix:HP0000000001:t15"),
            (Some(&own), "generic.pedidos:pix:7:t15"),
            (None, "pix:00000000-0000-0000-0000-000000000000.7:t15"),
        ];
        for (order, expected) in table {
            assert_eq!(touch_id(&key(&pix(), order, cycle, 7), "t15").as_str(), expected);
        }
    }

    #[test]
    fn touches_count_from_the_anchor_with_a_jitter_that_never_changes() {
        let armed = arm("pix_pendente", &pix(), "hotmart:pix:HP1".to_owned(), noon(), None, |_| None);
        assert_eq!(armed, arm("pix_pendente", &pix(), "hotmart:pix:HP1".to_owned(), noon(), None, |_| None));
        for (touch, minutes) in armed.touches.iter().zip([15, 240]) {
            let earliest = noon() + MINUTE * minutes;
            assert!(touch.due_at >= earliest && touch.due_at <= earliest + 2 * MINUTE, "{touch:?}");
            assert!(!touch.handed);
        }
        // 300 leads of one campaign do not leave in one second (D5).
        let due = |n: u32| {
            arm("pix_pendente", &pix(), format!("hotmart:pix:HP{n}"), noon(), None, |_| None).touches[0].due_at
        };
        let distinct: std::collections::BTreeSet<_> = (0..300).map(|n| due(n).as_second()).collect();
        assert!(distinct.len() > 80, "{}", distinct.len());
    }

    #[test]
    fn a_send_at_once_takes_the_place_of_the_first_touch() {
        let now = noon() + MINUTE;
        let armed = arm("pix_pendente", &pix(), "k".to_owned(), noon(), Some(now), |_| None);
        assert_eq!((armed.touches[0].due_at, armed.touches[0].handed), (now, true));
        assert!(!armed.touches[1].handed);
        assert_eq!(next_due(&armed), Some(armed.touches[1].due_at));
    }

    // D10
    #[test]
    fn a_touch_may_count_back_from_an_expiry() {
        let mut cadence = pix();
        cadence.touches[1].before = Some("pix.expires_at".to_owned());
        let expires = noon() + 600 * MINUTE;
        let armed = arm("pix_pendente", &cadence, "k".to_owned(), noon(), None, |_| Some(expires));
        let due = armed.touches[1].due_at;
        assert!(due <= expires - 240 * MINUTE && due >= expires - 242 * MINUTE, "{due}");
        let unknown = arm("pix_pendente", &cadence, "k".to_owned(), noon(), None, |_| None);
        assert_eq!(unknown.touches.len(), 1, "what counts back from nothing is not promised");
    }

    #[test]
    fn what_fell_due_is_taken_once_earliest_first() {
        let mut armed = arm("pix_pendente", &pix(), "k".to_owned(), noon(), None, |_| None);
        assert_eq!(take_due(&mut armed, noon()), []);
        assert_eq!(take_due(&mut armed, noon() + 300 * MINUTE).len(), 2);
        assert_eq!(take_due(&mut armed, noon() + 300 * MINUTE), []);
        assert_eq!(next_due(&armed), None);
        assert_eq!(last_due(&armed), armed.touches[1].due_at);
    }

    #[test]
    fn a_jitter_stays_within_its_bound_and_may_be_nothing() {
        for n in 0..1_000 {
            let drawn = jitter(&format!("seed {n}"), Duration::from_millis(3));
            assert!(drawn <= Duration::from_millis(3));
        }
        assert_eq!(jitter("any", Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_cadence_without_states_lives_in_all_of_them() {
        let everywhere = Cadence { runs_in: Vec::new(), ..pix() };
        assert!(runs_in(&pix(), "AGUARDANDO_PIX") && !runs_in(&pix(), "PAGO"));
        assert!(runs_in(&everywhere, "PAGO"));
    }
}
