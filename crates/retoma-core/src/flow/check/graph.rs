//! What leads where (S1 to S4, L1, L2).

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Checker};
use crate::cadence::runs_in;
use crate::event::EventKind;
use crate::flow::parse::is_silent;
use crate::flow::{BUILT_IN_WORDS, REGUA_ESGOTADA, Row, TIMEOUT, TOUCH_SENT};

pub(super) fn check(checker: &mut Checker<'_>) {
    covered_rows(checker);
    if checker.flow.states.is_empty() {
        if !checker.flow.transitions.is_empty() || checker.flow.cadences.is_empty() {
            checker.reader.error("S3", 0, "the flow has no state", "add `states:` with one that is `initial: true`");
        }
        return;
    }
    ends(checker);
    if !checker.lines.initials.is_empty() {
        unreachable(checker);
    }
    silent_clocks(checker);
    endless(checker);
    echoing(checker);
}

/// S3 and S2: one way in, and a way out of whatever is not final.
fn ends(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let initials = &checker.lines.initials;
    if initials.len() != 1 {
        let message = match initials.len() {
            0 => "no state is the initial one".to_owned(),
            _ => format!("more than one state is initial: {}", initials.join(", ")),
        };
        let line = initials.get(1).map_or(0, |name| checker.lines.states[name]);
        checker.reader.error("S3", line, message, "write `initial: true` at one state");
    }
    for (name, state) in &flow.states {
        let line = checker.lines.states[name];
        let cadence = flow.cadences.iter().find(|(_, cadence)| cadence.runs_in.contains(name));
        if state.is_final && (state.timeout.is_some() || cadence.is_some()) {
            let message = match cadence {
                Some((cadence, _)) => format!("state {name} is final, and cadence {cadence} runs there"),
                None => format!("state {name} is final, and has a timeout"),
            };
            checker.reader.error("S3", line, message, "take `final` out, or the clock");
        }
        // Globals lead out of every state; a state that lives by them alone is one that nobody thought of.
        let leads_out = |row: &&Row| row.from.contains(name) && row.to.as_ref().is_some_and(|to| to != name);
        let own_rows = || flow.transitions.iter().chain(&flow.clock_rows);
        if !state.is_final && !own_rows().any(|row| leads_out(&row)) {
            let message = format!("nothing leads out of state {name}");
            checker.reader.error("S2", line, message, "add a row that does, or write `final: true`");
        } else if !state.is_final && state.timeout.is_some() && flow.deadline_row(name).is_none() {
            let message = format!("state {name} has a deadline, and no row answers it");
            let fix = format!("add a row {{ from: {name}, event: timeout, .. }}, or take the timeout out");
            checker.reader.error("S2", line, message, fix);
        } else if !state.is_final && *name != flow.initial && is_forgotten(checker, name) {
            let message = format!("whoever falls silent in state {name} stays there for ever: no clock runs in it");
            let fix =
                format!("write `timeout: {{ after: 48h }}` at {name} with a row that answers it, or `final: true`");
            checker.reader.error("S2", line, message, fix);
        }
    }
}

/// Whether somebody is led there by what they do, and nothing but what they do next leads on; or a cadence runs there whose
/// end nobody answers. Where the clock itself led (PERDIDO), it has said what it had to say.
fn is_forgotten(checker: &Checker<'_>, state: &str) -> bool {
    let flow = checker.flow;
    let is_clock = |row: &Row| BUILT_IN_WORDS.contains(&row.event.as_str()) || row.event == TOUCH_SENT;
    let leads_there = |row: &Row| row.to.as_deref() == Some(state) && row.from.iter().any(|from| from != state);
    let goes_on = |row: &Row| row.arms().is_some() || row.to.as_deref().is_some_and(|to| to != state);
    let leads_on = |row: &Row| is_clock(row) && row.applies(state, &row.event) && goes_on(row);
    let (by_clock, by_others): (Vec<_>, Vec<_>) =
        checker.rows().map(|(row, _)| row).filter(|row| leads_there(row)).partition(|row| is_clock(row));
    let is_talk = by_clock.is_empty() && !by_others.is_empty();
    let has_cadence = flow.cadences.values().any(|cadence| cadence.runs_in.iter().any(|word| word == state));
    let leads_nowhere = !has_cadence || !checker.rows().any(|(row, _)| leads_on(row));
    flow.states[state].timeout.is_none() && leads_nowhere && (is_talk || has_cadence)
}

/// S1: states that no row leads to, from the initial one on.
fn unreachable(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let reached = reachable_from(&flow.initial, &edges(flow.states.keys(), checker));
    for name in flow.states.keys().filter(|name| !reached.contains(name.as_str())) {
        let message = format!("nothing leads to state {name}");
        checker.reader.error(
            "S1",
            checker.lines.states[name],
            message,
            format!("add a row with `to: {name}`, or take it out"),
        );
    }
}

type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Where each state leads, whatever happens.
fn edges<'a>(states: impl Iterator<Item = &'a String>, checker: &Checker<'a>) -> Edges<'a> {
    let leads = |state: &'a String| {
        let rows = checker.rows().filter(|(row, _)| row.applies(state, &row.event));
        (state.as_str(), rows.filter_map(|(row, _)| row.to.as_deref()).collect())
    };
    states.map(leads).collect()
}

/// The states on some way from `start`, itself included.
fn reachable_from<'a>(start: &'a str, edges: &Edges<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::from([start]);
    let mut todo = vec![start];
    while let Some(state) = todo.pop() {
        for next in edges.get(state).into_iter().flatten() {
            if reached.insert(next) {
                todo.push(next);
            }
        }
    }
    reached
}

/// S4: rows that never get their turn, in all of their states or in some.
fn covered_rows(checker: &mut Checker<'_>) {
    let rows: Vec<_> = checker.rows().collect();
    for (place, (row, lines)) in rows.iter().enumerate() {
        let own: Vec<&String> = match row.from.is_empty() {
            true => checker.flow.states.keys().filter(|state| !row.except.contains(state)).collect(),
            false => row.from.iter().collect(),
        };
        let is_covered = |state: &str| rows[..place].iter().any(|(earlier, _)| earlier.applies(state, &row.event));
        let covered: Vec<&str> = own.iter().map(|state| state.as_str()).filter(|state| is_covered(state)).collect();
        if !covered.is_empty() {
            let message = match covered.len() == own.len() {
                true => format!("the row for `{}` never matches: an earlier row covers it", row.event),
                false => {
                    format!("the row for `{}` never matches in {}: an earlier row does", row.event, covered.join(", "))
                }
            };
            checker.reader.warn("S4", lines.row, message, "take it out, or move it up");
        }
    }
}

/// S4: rows for the clock in states where it never speaks.
fn silent_clocks(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let has_cadence = |state: &str| flow.cadences.values().any(|cadence| runs_in(cadence, state));
    let has_deadline = |state: &str| flow.states.get(state).is_some_and(|state| state.timeout.is_some());
    for (row, lines) in checker.rows() {
        let speaks = |state: &&String| match row.event.as_str() {
            TIMEOUT => has_deadline(state) || has_cadence(state),
            REGUA_ESGOTADA => has_cadence(state),
            _ => true,
        };
        for state in row.from.iter().filter(|state| !speaks(state)) {
            let message = format!("the row for `{}` never matches in {state}: no clock runs there", row.event);
            let fix = match row.event.as_str() {
                TIMEOUT => format!("write `timeout: {{ after: 2h }}` at {state}, or add it to `runs_in` of a cadence"),
                _ => format!("add {state} to `runs_in` of a cadence"),
            };
            checker.reader.warn("S4", lines.row, message, fix);
        }
    }
}

/// L2: answers that lead back to themselves, as often as somebody writes, and nothing in the file that ends it.
fn echoing(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    if checker.lines.says_most {
        return;
    }
    let is_chat = |row: &Row| {
        let kind = flow.words.get(&row.event);
        let is_word = kind.is_none() || kind == Some(&EventKind::MessageReceived);
        is_word && !BUILT_IN_WORDS.contains(&row.event.as_str()) && !is_silent(&row.event)
    };
    let speaks = |row: &Row| row.actions.iter().any(|action| matches!(action, Action::Send(_) | Action::Call(_)));
    let table = flow.transitions.iter().zip(&checker.lines.transitions);
    let answers: Vec<_> = table.filter(|(row, lines)| is_chat(row) && speaks(row) && !lines.says_max_times).collect();
    let mut edges: Edges<'_> = BTreeMap::new();
    for (row, _) in &answers {
        for from in &row.from {
            edges.entry(from).or_default().insert(row.to.as_deref().unwrap_or(from));
        }
    }
    let comes_back =
        |row: &Row, from: &String| reachable_from(row.to.as_deref().unwrap_or(from), &edges).contains(from.as_str());
    let looping: Vec<_> = answers.iter().filter(|(row, _)| row.from.iter().any(|from| comes_back(row, from))).collect();
    let Some((first, lines)) = looping.first() else { return };
    let others = match looping.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let message = format!(
        "two robots could answer each other here for ever, from {} on `{}`{others}: nothing in the file ends it",
        first.from.join(", "),
        first.event
    );
    let fix = "write `inbound: { bot_loop_guard: { most: { max: 20, per: 10m } } }`, or `max_times` at the row";
    checker.reader.warn("L2", lines.row, message, fix);
}

/// A step that the clock takes by itself.
struct Tick<'a> {
    from: &'a str,
    to: &'a str,
    line: u32,
    /// It says something: by a message or a call of its own, or by the touches it arms.
    speaks: bool,
    /// It can be taken any number of times. The touches of a cadence run out; a deadline, an arming and the end of a
    /// cadence do not.
    renews: bool,
}

/// L1: circles of clock steps that speak and never run out.
fn endless(checker: &mut Checker<'_>) {
    let ticks = ticks(checker);
    let mut edges: Edges<'_> = BTreeMap::new();
    for tick in &ticks {
        edges.entry(tick.from).or_default().insert(tick.to);
    }
    let is_in_circle = |tick: &&Tick<'_>| reachable_from(tick.to, &edges).contains(tick.from);
    let circling: Vec<&Tick<'_>> = ticks.iter().filter(is_in_circle).collect();
    for tick in circling.iter().filter(|tick| tick.speaks) {
        let on_the_way = reachable_from(tick.to, &edges);
        let renewed = |other: &&&Tick<'_>| other.renews && on_the_way.contains(other.from);
        if circling.iter().any(|other| renewed(&other)) {
            let message = format!("from {} the clock alone comes back here and sends again, for ever", tick.from);
            let fix = "let one step of the circle lead to a state without a clock";
            checker.reader.error("L1", tick.line, message, fix);
        }
    }
}

fn ticks<'a>(checker: &Checker<'a>) -> Vec<Tick<'a>> {
    let flow = checker.flow;
    let mut ticks = Vec::new();
    for (name, state) in &flow.states {
        let has_cadence = flow.cadences.values().any(|cadence| runs_in(cadence, name));
        for word in [TIMEOUT, REGUA_ESGOTADA, TOUCH_SENT] {
            let happens = if word == TIMEOUT { state.timeout.is_some() || has_cadence } else { has_cadence };
            let row = checker.rows().find(|(row, _)| row.applies(name, word));
            let Some((row, lines)) = row.filter(|_| happens) else { continue };
            let sends = row.actions.iter().any(|action| matches!(action, Action::Send(_) | Action::Call(_)));
            // Without a deadline of its own the state's `timeout` is a touch that falls due, and names it.
            let is_touch = word == TOUCH_SENT || (word == TIMEOUT && state.timeout.is_none());
            ticks.push(Tick {
                from: name,
                to: row.to.as_deref().unwrap_or(name),
                line: lines.row,
                speaks: row.arms().is_some() || (sends && !is_touch),
                renews: row.arms().is_some() || !is_touch,
            });
        }
    }
    ticks
}
