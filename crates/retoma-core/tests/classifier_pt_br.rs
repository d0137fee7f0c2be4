//! C2, C12 and FC-58 in numbers: labelled phrases of Brazilian buyers, all invented, over the rules of the shipped flow.
//!
//! `classifier_pt_br.tsv` holds `word<TAB>phrase`; `outra` is any message that neither asks for silence nor takes that back.
//! It is a regression test: rules were widened with it, so its figures say nothing about phrases that nobody has seen yet.

use std::collections::BTreeMap;

use retoma_core::flow::Flow;

const PHRASES: &str = include_str!("classifier_pt_br.tsv");
/// Any word but those with a role in the wish for silence, or none.
const OTHER: &str = "outra";

fn phrases() -> impl Iterator<Item = (&'static str, &'static str)> {
    PHRASES.lines().map(|line| line.split_once('\t').expect("a word, a tab and a phrase"))
}

/// What share of the phrases with one label came out right, and which did not.
#[derive(Default)]
struct Score {
    right: usize,
    wrong: Vec<String>,
}

impl Score {
    fn add(&mut self, is_right: bool, miss: impl FnOnce() -> String) {
        if is_right { self.right += 1 } else { self.wrong.push(miss()) }
    }

    fn check(&self, label: &str, least_per_mille: usize) {
        let all = self.right + self.wrong.len();
        assert!(self.right * 1_000 >= all * least_per_mille, "{label}: {} of {all}, {:#?}", self.right, self.wrong);
    }
}

/// C12: nobody who asks for silence is written to again. "sair" in a sentence may still be a person's business (FC-58), so
/// the few phrases that are only flagged are counted apart.
#[test]
fn who_asks_for_silence_is_understood() {
    let classifier = Flow::vendas().classifier;
    let (mut silenced, mut noticed) = (Score::default(), Score::default());
    for (_, phrase) in phrases().filter(|(label, _)| *label == "pediu_parar") {
        let is_silenced = classifier.is_opt_out(phrase);
        silenced.add(is_silenced, || format!("only flagged, if that: {phrase}"));
        noticed.add(is_silenced || classifier.hints_at_opt_out(phrase), || format!("missed: {phrase}"));
    }
    silenced.check("silenced at once", 990);
    noticed.check("silenced, or shown to a person", 995);
}

/// A wish for silence that nobody had loses a sale without a sound.
#[test]
fn nobody_is_silenced_by_mistake() {
    let classifier = Flow::vendas().classifier;
    let mut left_alone = Score::default();
    for (_, phrase) in phrases().filter(|(label, _)| *label != "pediu_parar") {
        left_alone.add(!classifier.is_opt_out(phrase), || format!("{phrase}: {:?}", classifier.classify(phrase).rule));
    }
    left_alone.check("not silenced", 1_000);
}

#[test]
fn every_intent_of_the_shipped_flow_is_told_apart() {
    let classifier = Flow::vendas().classifier;
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for (label, phrase) in phrases().filter(|(label, _)| *label != "pediu_parar") {
        let hit = classifier.classify(phrase);
        let is_right = match label {
            OTHER => !classifier.is_opt_out(phrase) && !classifier.is_opt_in(phrase),
            word => hit.word == Some(word),
        };
        scores.entry(label).or_default().add(is_right, || format!("{phrase}: {:?} by {:?}", hit.word, hit.rule));
    }
    assert_eq!(scores.keys().copied().collect::<Vec<_>>(), [OTHER, "pediu_preco", "quer_comprar", "voltar"]);
    for (label, score) in scores {
        score.check(label, 970);
    }
}

#[test]
fn there_are_enough_phrases_and_each_stands_once() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (label, phrase) in phrases() {
        *counts.entry(label).or_default() += 1;
        assert_eq!(seen.insert(phrase.to_lowercase(), label), None, "{phrase} stands twice");
    }
    assert!(counts.values().sum::<usize>() >= 600 && counts["pediu_parar"] >= 300, "{counts:?}");
}
