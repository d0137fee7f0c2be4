//! A new version of a flow under conversations that are under way (C15, rule M1).
//!
//! A conversation follows the flow as it is now, whatever version it was decided with before: no replay, and nothing that
//! was promised is promised again. What a new version may not do is leave somebody in a state that it does not have, since
//! no row answers there. So whoever takes a state away says where its conversations go (`migrate`), and they go there when
//! they are next looked at.

use std::borrow::Cow;

use crate::finding::{Finding, Level, suggest};
use crate::ids::FlowName;
use crate::state::ContactView;

use super::Flow;

/// How many conversations stand in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The flow they follow.
    pub flow: FlowName,
    /// The state's word.
    pub state: String,
    /// How many that are not closed.
    pub live: u64,
}

impl Flow {
    /// Where a conversation stands under this version that stood in `state` under another one. `None`: nowhere.
    pub fn place_of<'a>(&'a self, state: &'a str) -> Option<&'a str> {
        // Without a table there are no states to be missing.
        let has = |state: &str| self.states.is_empty() || self.states.contains_key(state);
        if has(state) {
            return Some(state);
        }
        self.migrate.get(state).map(String::as_str).filter(|to| has(to))
    }

    /// The contact with each of its conversations where it stands under this version.
    pub fn settle<'v>(&self, view: &'v ContactView) -> Cow<'v, ContactView> {
        let moves = |flow: &FlowName, state: &str| {
            *flow == self.name && self.place_of(state).is_some_and(|place| place != state)
        };
        if !view.conversations.iter().any(|cycle| moves(&cycle.flow, &cycle.state)) {
            return Cow::Borrowed(view);
        }
        let mut settled = view.clone();
        for cycle in settled.conversations.iter_mut().filter(|cycle| cycle.flow == self.name) {
            if let Some(place) = self.place_of(&cycle.state).map(str::to_owned) {
                cycle.state = place;
            }
        }
        Cow::Owned(settled)
    }

    /// M1: conversations that this version would leave without a state.
    pub fn stranded(&self, standing: &[Standing], file: &str) -> Vec<Finding> {
        let mine = standing.iter().filter(|standing| standing.flow == self.name && standing.live > 0);
        let lost = mine.filter(|standing| self.place_of(&standing.state).is_none());
        lost.map(|standing| {
            let near = suggest(&standing.state, self.states.keys().map(String::as_str));
            Finding {
                code: "M1",
                level: Level::Error,
                file: file.to_owned(),
                line: 1,
                message: format!(
                    "{} live conversation(s) stand in state {}, which version {} does not have",
                    standing.live, standing.state, self.version
                ),
                fix: format!(
                    "say where they go, in the file: `migrate: {{ {}: STATE }}` ({near}); or keep the state",
                    standing.state
                ),
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(migrate: &str) -> Flow {
        let text = super::super::VENDAS.replace("\nversion: 1\n", &format!("\nversion: 2\n{migrate}\n"));
        Flow::parse(&text, "vendas.yaml").expect("the shipped flow has no errors")
    }

    fn standing(state: &str, live: u64) -> Standing {
        Standing { flow: "vendas".into(), state: state.to_owned(), live }
    }

    /// C15, M1.
    #[test]
    fn who_would_be_stranded_is_counted_unless_the_file_says_where_they_go() {
        let all = [standing("PAGO", 7), standing("ESPERANDO_PIX", 3), standing("VELHO", 0)];
        let found = flow("").stranded(&all, "flows/vendas.yaml");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].code, found[0].level), ("M1", Level::Error));
        assert!(found[0].message.contains("3 live conversation(s)") && found[0].message.contains("ESPERANDO_PIX"));
        assert!(found[0].fix.contains("migrate") && found[0].fix.contains("AGUARDANDO_PIX"), "{}", found[0].fix);
        assert!(flow("migrate: { ESPERANDO_PIX: AGUARDANDO_PIX }").stranded(&all, "f").is_empty());
        assert!(Flow::vendas().stranded(&[Standing { flow: "outro".into(), ..standing("X", 9) }], "f").is_empty());
    }

    /// A flow without a table asks nobody where they stand.
    #[test]
    fn a_flow_of_cadences_alone_strands_nobody() {
        let flow = Flow::parse(super::super::RECUPERACAO, "recuperacao.yaml").expect("shipped");
        let all = [Standing { flow: flow.name.clone(), ..standing("AGUARDANDO_PIX", 3) }];
        assert_eq!(flow.place_of("AGUARDANDO_PIX").is_some(), flow.states.is_empty());
        assert_eq!(flow.stranded(&all, "f").is_empty(), flow.states.is_empty());
    }
}
