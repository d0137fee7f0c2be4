//! A weaker sign than an opt-out (FC-58): a word of asking for silence inside a sentence that as a whole asks for something
//! else, or for nothing clear. It silences nobody; a person may want to look.

use super::{Classifier, Patterns};

/// A verb for stopping, and the commonest preposition of the language.
const TOO_COMMON: [&str; 1] = ["para"];
/// Shorter words stand in too many sentences.
const LETTERS_MIN: usize = 4;

impl Classifier {
    /// Whether the text may ask for silence without clearly doing so: a rule with `maybe_opt_out: true` hits or, in a flow
    /// with no such rule, a word stands in it that alone would be an opt-out.
    pub fn hints_at_opt_out(&self, text: &str) -> bool {
        let Some(opt_out) = self.opt_out.as_deref() else { return false };
        let message = self.message(text);
        if self.has_role(Some(opt_out), &message) {
            return false;
        }
        if self.maybe.is_some() {
            return self.has_role(self.maybe.as_deref(), &message);
        }
        let rules = self.rules.iter().filter(|rule| rule.emit == opt_out);
        let mut words =
            rules.filter_map(|rule| if let Patterns::Whole(all) = &rule.patterns { Some(all) } else { None });
        words.any(|all| all.iter().any(|words| is_telling(words) && message.words.contains(&words[0])))
    }
}

fn is_telling(words: &[String]) -> bool {
    matches!(words, [word] if word.len() >= LETTERS_MIN && !TOO_COMMON.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use crate::flow::Flow;

    // FC-58: "whole-message match and configured phrases opt out; sentences only flag for a person".
    #[test]
    fn a_sentence_with_the_word_is_a_hint_and_no_opt_out() {
        let vendas = Flow::vendas();
        let table = [
            ("não quero sair do grupo, obrigado", false, true),
            ("como faço para cancelar o pedido?", false, true),
            ("SAIR", true, false),
            (" sair ", true, false),
            ("Sair.", true, false),
            ("PARAR", true, false),
            ("stop", true, false),
            ("quero sair da lista", true, false),
            ("pare de mandar mensagem", true, false),
            ("descadastrar", true, false),
            ("como faço para comprar?", false, false),
            ("quanto custa?", false, false),
            ("", false, false),
        ];
        for (text, is_opt_out, hints) in table {
            let classifier = &vendas.classifier;
            let found = (classifier.is_opt_out(text), classifier.hints_at_opt_out(text));
            assert_eq!(found, (is_opt_out, hints), "{text}");
        }
    }
}
