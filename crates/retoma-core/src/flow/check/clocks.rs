//! Time: deadlines, cadences, touches, the calendar (T1, T2, T3, C1, C6, C7, Q1), and cadences that nothing arms (S5).

use std::collections::BTreeMap;
use std::time::Duration;

use super::Checker;
use crate::cadence::runs_in;
use crate::duration;
use crate::event::EventKind;

pub(super) fn check(checker: &mut Checker<'_>) {
    state_jitter(checker);
    own_deadlines(checker);
    cancelling(checker);
    touches(checker);
    task_ids(checker);
    if checker.is_whole {
        arming(checker);
    }
    open_hours(checker);
}

/// T2: a deadline whose jitter is larger than half of it.
fn state_jitter(checker: &mut Checker<'_>) {
    for (name, state) in &checker.flow.states {
        let Some(timeout) = state.timeout else { continue };
        if timeout.jitter > timeout.after / 2 {
            let message = format!("the jitter of state {name} is larger than half of its deadline");
            let fix = format!("write at most {}", duration::format(timeout.after / 2));
            checker.reader.error("T2", checker.lines.states[name], message, fix);
        }
    }
}

/// T1: a state leaves by its own deadline while a cadence still runs there.
fn own_deadlines(checker: &mut Checker<'_>) {
    for (name, cadence) in &checker.flow.cadences {
        let Some(last) = cadence.touches.last() else { continue };
        let worst = last.at + last.jitter + last.max_late;
        for state in &cadence.runs_in {
            // A deadline that leads to where the cadence goes on ends nothing.
            let leads_to = checker.flow.deadline_row(state).and_then(|row| row.to.as_deref());
            if leads_to.is_some_and(|to| to != state && runs_in(cadence, to)) {
                continue;
            }
            let after = checker.flow.states.get(state).and_then(|state| state.timeout).map(|timeout| timeout.after);
            if after.is_some_and(|after| after < worst) {
                let message =
                    format!("state {state} has a deadline of its own, shorter than cadence {name} that runs there");
                let fix = format!(
                    "take the timeout out (the cadence is the clock there), or write {} or more",
                    duration::format(worst)
                );
                checker.reader.error("T1", checker.lines.states[state], message, fix);
            }
        }
    }
}

/// C1: who paid is never reminded.
fn cancelling(checker: &mut Checker<'_>) {
    for (name, cadence) in &checker.flow.cadences {
        if !cadence.cancel_on.contains(&EventKind::PaymentApproved) {
            let message = format!("cadence {name} goes on after the payment");
            let fix = "add payment.approved to `cancel_on`";
            checker.reader.error("C1", checker.lines.cadences[name].cadence, message, fix);
        }
    }
    // An opt-out closes everything anyway. A file that says so at one cadence and not at another is a slip.
    let Some(word) = checker.flow.opt_out_word.as_deref() else { return };
    let says_so = |name: &String| checker.lines.cadences[name].cancel_on.iter().any(|(_, named)| named == word);
    let (said, unsaid): (Vec<&String>, Vec<&String>) = checker.flow.cadences.keys().partition(|name| says_so(name));
    for name in unsaid.into_iter().filter(|_| !said.is_empty()) {
        let message = format!("cadence {name} does not name `{word}` in `cancel_on`, as others here do");
        let line = checker.lines.cadences[name].cadence;
        checker.reader.warn("C1", line, message, format!("add {word}; an opt-out closes what is unsent either way"));
    }
}

/// T2, T3 and the order of touches.
fn touches(checker: &mut Checker<'_>) {
    for (name, cadence) in &checker.flow.cadences {
        let lines = &checker.lines.cadences[name];
        if cadence.touches.is_empty() {
            let message = format!("cadence {name} has no touch");
            checker.reader.error("Y2", lines.cadence, message, "add a touch: { id: t15, at: 15m, send: MESSAGE }");
        }
        let mut before = Duration::ZERO;
        for (touch, line) in cadence.touches.iter().zip(&lines.touches) {
            // What counts back from an expiry has an order of its own.
            if touch.before.is_some() {
                continue;
            }
            if !touch.at.is_zero() && touch.jitter > touch.at.saturating_sub(before) / 2 {
                let message = format!("the jitter of touch {} is larger than half of its delay", touch.id);
                let fix = format!("write at most {}", duration::format(touch.at.saturating_sub(before) / 2));
                checker.reader.error("T2", *line, message, fix);
            }
            before = touch.at;
        }
        for (pair, line) in cadence.touches.windows(2).zip(lines.touches.iter().skip(1)) {
            let [first, second] = pair else { continue };
            if first.before.is_some() || second.before.is_some() {
                continue;
            }
            if second.at <= first.at + first.jitter {
                let message = format!("touch {} may fall due before touch {}", second.id, first.id);
                checker.reader.error(
                    "T2",
                    *line,
                    message,
                    "put touches in order of time, farther apart than the jitter",
                );
            } else if first.max_late > second.at - first.at && !lines.says_piled_up {
                let message = format!(
                    "touch {} may be as late as touch {}; then only the later one is sent",
                    first.id, second.id
                );
                let fix = "write a shorter `max_late`, or `when_piled_up: keep_latest`";
                checker.reader.warn("T3", *line, message, fix);
            }
        }
    }
}

/// C7: task ids are `prefix:transaction:touch`, and are claimed once for ever.
fn task_ids(checker: &mut Checker<'_>) {
    let mut prefixes: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, cadence) in &checker.flow.cadences {
        let lines = &checker.lines.cadences[name];
        if let Some(other) = prefixes.insert(&cadence.prefix, name) {
            let message = format!("cadences {other} and {name} share the prefix `{}`", cadence.prefix);
            checker.reader.error("C7", lines.cadence, message, "give each cadence a `prefix` of its own");
        }
        for (place, (touch, line)) in cadence.touches.iter().zip(&lines.touches).enumerate() {
            if cadence.touches[..place].iter().any(|earlier| earlier.id == touch.id) {
                let message = format!("cadence {name} has two touches `{}`", touch.id);
                checker.reader.error("C7", *line, message, "give each touch an id of its own");
            }
        }
    }
}

/// C6: a cadence that is armed and closed in one breath. S5: one that nothing arms. Y3: two ways to arm one.
fn arming(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (row, lines) in checker.rows() {
        let Some((name, cadence)) = row.arms().and_then(|name| Some((name, flow.cadences.get(name)?))) else {
            continue;
        };
        let reached: Vec<&String> = row.to.as_ref().map_or_else(|| row.from.iter().collect(), |to| vec![to]);
        for state in reached.into_iter().filter(|state| !runs_in(cadence, state)) {
            let message = format!("the row arms cadence {name}, which does not run in {state}");
            checker.reader.error("C6", lines.row, message, format!("add {state} to `runs_in` of {name}"));
        }
        if row.actions.iter().filter(|action| matches!(action, super::Action::StartCadence(_))).count() > 1 {
            let message = "the row arms two cadences, and one conversation runs one";
            checker.reader.error("C6", lines.row, message, "keep one `start_cadence`");
        }
    }
    for (name, cadence) in &flow.cadences {
        let line = checker.lines.cadences[name].cadence;
        let is_armed = checker.rows().any(|(row, _)| row.arms() == Some(name));
        let by_type = |row: &crate::flow::Row| {
            row.arms() == Some(name) && flow.words.get(&row.event).copied() == cadence.starts_with
        };
        let starts = checker.rows().any(|(row, _)| by_type(row));
        if cadence.starts_with.is_some() && flow.has_table() && !starts {
            let message = format!("`starts_with` of cadence {name} has no effect: here rows arm cadences");
            checker.reader.warn("Y3", line, message, format!("add `start_cadence: {name}` to a row"));
        } else if !is_armed && cadence.starts_with.is_none() {
            let message = format!("nothing arms cadence {name}");
            checker.reader.warn("S5", line, message, format!("add `start_cadence: {name}` to a row"));
        }
    }
}

/// Q1: an hour in the week at which a reminder may leave, and for each touch a day on which it can.
fn open_hours(checker: &mut Checker<'_>) {
    let week = &checker.flow.calendar.allowed;
    if week.iter().all(Vec::is_empty) {
        let fix = "open some hours, such as mon-fri: [\"08:00-20:00\"]";
        checker.reader.error(
            "Q1",
            checker.lines.calendar,
            "no hour of the week is open, so no reminder ever leaves",
            fix,
        );
        return;
    }
    let opening = openings(week);
    for (name, cadence) in &checker.flow.cadences {
        let touches = cadence.touches.iter().zip(&checker.lines.cadences[name].touches);
        for (touch, line) in touches.filter(|(touch, _)| touch.before.is_none()) {
            let (at, late) = (minutes(touch.at), minutes(touch.max_late));
            // Whoever comes while we are open, on whatever day and at whatever minute. Who comes at night may be reached, so
            // it is no error.
            let comes = (0..WEEK).filter(|minute| opening[*minute] == 0);
            let leaves = |came: usize| opening[(came + at) % WEEK] <= late;
            if !comes.into_iter().any(leaves) {
                let message = format!(
                    "touch {} falls due outside the open hours on every weekday, and by the next ones it is too late",
                    touch.id
                );
                checker.reader.warn(
                    "Q1",
                    *line,
                    message,
                    "write another `at`, a longer `max_late`, or open more hours",
                );
            }
        }
    }
}

const DAY: usize = 24 * 60;
const WEEK: usize = 7 * DAY;

fn minutes(duration: Duration) -> usize {
    usize::try_from(duration.as_secs() / 60).unwrap_or(usize::MAX / 4)
}

/// For each minute of the week, how many minutes later the hours are open; 0 where they are.
fn openings(week: &[Vec<(u16, u16)>; 7]) -> Vec<usize> {
    let mut open = vec![false; WEEK];
    for (day, hours) in week.iter().enumerate() {
        for (from, to) in hours {
            open[day * DAY + usize::from(*from)..day * DAY + usize::from(*to)].fill(true);
        }
    }
    let mut wait = vec![0; WEEK];
    // Twice backwards, so that the end of the week knows its beginning.
    for minute in (0..2 * WEEK).rev() {
        let next = wait[(minute + 1) % WEEK];
        wait[minute % WEEK] = if open[minute % WEEK] { 0 } else { next + 1 };
    }
    wait
}
