//! A flow as a picture: states and rows, each state with its clock and the touches that run in it. Mermaid for whoever reads
//! Markdown, DOT for Graphviz. Both say the same; names are quoted, so that any word of a flow can be drawn.

use std::fmt::Write as _;

use super::{Action, Cadence, Flow, Row, State, Touch};
use crate::duration;

/// How a picture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A `stateDiagram-v2` for Mermaid.
    Mermaid,
    /// A `digraph` for Graphviz.
    Dot,
}

/// The drawn name of "whatever the state": where globals start.
const ANY: &str = "any state";

/// Draws the flow.
pub fn draw(flow: &Flow, format: Format) -> String {
    let picture = Picture::of(flow);
    match format {
        Format::Mermaid => picture.mermaid(),
        Format::Dot => picture.dot(flow),
    }
}

struct Picture<'a> {
    initial: Option<&'a str>,
    nodes: Vec<Node<'a>>,
    arrows: Vec<Arrow<'a>>,
    /// Cadences that no state owns (flows without a bot).
    free: Vec<String>,
}

struct Node<'a> {
    name: &'a str,
    is_final: bool,
    /// Its clock and its touches, a line each.
    notes: Vec<String>,
}

struct Arrow<'a> {
    from: &'a str,
    to: &'a str,
    label: String,
}

impl<'a> Picture<'a> {
    fn of(flow: &'a Flow) -> Self {
        let nodes: Vec<Node<'_>> = flow
            .states
            .iter()
            .map(|(name, state)| Node { name, is_final: state.is_final, notes: notes(flow, name, state) })
            .collect();
        let mut arrows = Vec::new();
        for row in flow.globals.iter().chain(&flow.transitions).chain(&flow.clock_rows) {
            let from: Vec<&str> =
                if row.from.is_empty() { vec![ANY] } else { row.from.iter().map(String::as_str).collect() };
            arrows.extend(from.into_iter().map(|from| Arrow {
                from,
                to: row.to.as_deref().unwrap_or(from),
                label: label(row),
            }));
        }
        let free = flow.cadences.iter().filter(|(_, cadence)| cadence.runs_in.is_empty());
        let initial = Some(flow.initial.as_str()).filter(|name| flow.states.contains_key(*name));
        Self { initial, nodes, arrows, free: free.map(|(name, cadence)| timeline(name, cadence)).collect() }
    }

    fn has_any(&self) -> bool {
        self.arrows.iter().any(|arrow| arrow.from == ANY)
    }

    /// The number of a node, for formats whose names may not be words of a flow. The last one is [`ANY`].
    fn number(&self, name: &str) -> usize {
        self.nodes.iter().position(|node| node.name == name).unwrap_or(self.nodes.len())
    }

    fn mermaid(&self) -> String {
        let mut out = "stateDiagram-v2\n  direction LR\n".to_owned();
        let mut line = |text: String| {
            out.push_str("  ");
            out.push_str(&text);
            out.push('\n');
        };
        for node in &self.nodes {
            line(format!("state \"{}\" as s{}", plain(node.name), self.number(node.name)));
        }
        if self.has_any() {
            line(format!("state \"{ANY}\" as s{}", self.nodes.len()));
        }
        if let Some(initial) = self.initial {
            line(format!("[*] --> s{}", self.number(initial)));
        }
        for arrow in &self.arrows {
            let (from, to) = (self.number(arrow.from), self.number(arrow.to));
            line(format!("s{from} --> s{to}: {}", plain(&arrow.label)));
        }
        for node in &self.nodes {
            let number = self.number(node.name);
            if node.is_final {
                line(format!("s{number} --> [*]"));
            }
            for note in &node.notes {
                line(format!("note right of s{number}: {}", plain(note)));
            }
        }
        for (number, cadence) in self.free.iter().enumerate() {
            line(format!("state \"{}\" as c{number}", plain(cadence)));
        }
        out
    }

    fn dot(&self, flow: &Flow) -> String {
        let mut out =
            format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box, style=rounded];\n", quoted(flow.name.as_str()));
        let mut line = |text: String| {
            let _ = writeln!(out, "  {text}");
        };
        for node in &self.nodes {
            let text = std::iter::once(node.name).chain(node.notes.iter().map(String::as_str));
            let label = text.collect::<Vec<_>>().join("\n");
            let shape = if node.is_final { ", peripheries=2" } else { "" };
            line(format!("{} [label={}{shape}];", quoted(node.name), quoted(&label)));
        }
        if self.has_any() {
            line(format!("{} [shape=plaintext];", quoted(ANY)));
        }
        if let Some(initial) = self.initial {
            line("start [shape=point];".to_owned());
            line(format!("start -> {};", quoted(initial)));
        }
        for arrow in &self.arrows {
            line(format!("{} -> {} [label={}];", quoted(arrow.from), quoted(arrow.to), quoted(&arrow.label)));
        }
        for cadence in &self.free {
            line(format!("{} [shape=note];", quoted(cadence)));
        }
        out.push_str("}\n");
        out
    }
}

/// What runs in a state: its own deadline, and the cadences that live there.
fn notes(flow: &Flow, name: &str, state: &State) -> Vec<String> {
    let own = state.timeout.map(|timeout| match timeout.jitter.is_zero() {
        true => format!("timeout after {}", duration::format(timeout.after)),
        false => {
            format!("timeout after {} + up to {}", duration::format(timeout.after), duration::format(timeout.jitter))
        }
    });
    let lives_here = |cadence: &Cadence| cadence.runs_in.iter().any(|state| state == name);
    let cadences = flow.cadences.iter().filter(|(_, cadence)| lives_here(cadence));
    own.into_iter().chain(cadences.map(|(name, cadence)| timeline(name, cadence))).collect()
}

/// `pix_pendente: +15m lembrete, +4h oferta; 1d later: regua_esgotada`.
fn timeline(name: &str, cadence: &Cadence) -> String {
    let at = |touch: &Touch| match &touch.before {
        Some(value) => format!("-{} ({value})", duration::format(touch.at)),
        None => format!("+{}", duration::format(touch.at)),
    };
    let touches: Vec<String> = cadence.touches.iter().map(|touch| format!("{} {}", at(touch), touch.send)).collect();
    let armed = cadence.starts_with.map(|kind| format!(" from {kind}")).unwrap_or_default();
    format!(
        "{name}{armed}: {}; {} later: {}",
        touches.join(", "),
        duration::format(cadence.grace),
        super::REGUA_ESGOTADA
    )
}

/// `pix_gerado / start pix_pendente`.
fn label(row: &Row) -> String {
    let actions: Vec<String> = row.actions.iter().map(said).collect();
    let but = if row.except.is_empty() { String::new() } else { format!(" (not in {})", row.except.join(", ")) };
    match actions.is_empty() {
        true => format!("{}{but}", row.event),
        false => format!("{}{but} / {}", row.event, actions.join(", ")),
    }
}

fn said(action: &Action) -> String {
    match action {
        Action::Send(message) => format!("send {message}"),
        Action::Call(channel) => format!("call {channel}"),
        Action::Notify(what) => format!("notify {what}"),
        Action::StartCadence(cadence) => format!("start {cadence}"),
        Action::CancelCadence(cadence) => format!("cancel {cadence}"),
    }
}

/// Mermaid ends a text at a line break, a quote, a semicolon or a hash; a second colon is read as text.
fn plain(text: &str) -> String {
    text.chars()
        .map(|char| match char {
            '"' => '\'',
            ';' => ',',
            '\n' | '\r' | '#' => ' ',
            char => char,
        })
        .collect()
}

/// A DOT string.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn flow() -> Flow {
        let mut flow = Flow::vendas();
        flow.name = "pequeno".into();
        flow.states.retain(|name, _| ["NOVO", "AGUARDANDO_PIX", "PAGO"].contains(&name.as_str()));
        flow.cadences.retain(|name, _| name == "pix_pendente");
        flow.globals.truncate(1);
        flow.transitions.retain(|row| {
            row.from.iter().all(|from| from == "NOVO" || from == "AGUARDANDO_PIX")
                && row.to.as_deref().is_none_or(|to| flow.states.contains_key(to))
        });
        flow.transitions.truncate(3);
        flow
    }

    fn check(format: Format, expected: &Expect) {
        expected.assert_eq(&draw(&flow(), format));
    }

    #[test]
    fn mermaid_shows_states_rows_clocks_and_touches() {
        check(
            Format::Mermaid,
            &expect![[r#"
            stateDiagram-v2
              direction LR
              state "AGUARDANDO_PIX" as s0
              state "NOVO" as s1
              state "PAGO" as s2
              state "any state" as s3
              [*] --> s1
              s3 --> s2: pagamento_aprovado / send entregar_acesso
              s0 --> s0: msg_recebida / send reenviar_pix
              note right of s0: pix_pendente: +15m lembrete_pix, +4h proximo_toque, +20h proximo_toque, 1d later: regua_esgotada
              s2 --> [*]
        "#]],
        );
    }

    #[test]
    fn dot_shows_the_same() {
        check(
            Format::Dot,
            &expect![[r#"
            digraph "pequeno" {
              rankdir=LR;
              node [shape=box, style=rounded];
              "AGUARDANDO_PIX" [label="AGUARDANDO_PIX\npix_pendente: +15m lembrete_pix, +4h proximo_toque, +20h proximo_toque; 1d later: regua_esgotada"];
              "NOVO" [label="NOVO"];
              "PAGO" [label="PAGO", peripheries=2];
              "any state" [shape=plaintext];
              start [shape=point];
              start -> "NOVO";
              "any state" -> "PAGO" [label="pagamento_aprovado / send entregar_acesso"];
              "AGUARDANDO_PIX" -> "AGUARDANDO_PIX" [label="msg_recebida / send reenviar_pix"];
            }
        "#]],
        );
    }

    /// Every state, row and cadence of the shipped flow is in its picture.
    #[test]
    fn nothing_of_the_shipped_flow_is_left_out() {
        let flow = Flow::vendas();
        for picture in [draw(&flow, Format::Mermaid), draw(&flow, Format::Dot)] {
            for name in flow.states.keys().chain(flow.cadences.keys()) {
                assert!(picture.contains(name.as_str()), "{name}");
            }
            let rows = flow.globals.iter().chain(&flow.transitions);
            let arrows: usize = rows.map(|row| row.from.len().max(1)).sum();
            let drawn = picture.lines().filter(|line| line.contains("-->") || line.contains("->")).count();
            assert!(drawn >= arrows, "{drawn} of {arrows}");
        }
    }

    #[test]
    fn words_that_would_end_a_text_are_drawn_all_the_same() {
        assert_eq!(plain("a \"b\"; c\nd #e"), "a 'b', c d  e");
        assert_eq!(quoted("a \"b\"\n\\c"), r#""a \"b\"\n\\c""#);
    }
}
