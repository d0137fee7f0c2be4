use super::*;
use crate::flow::Flow;

fn rule(emit: &str, priority: i64, matching: Match, any: &[&str], unless: &[&str]) -> Rule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Rule { emit: emit.to_owned(), priority, matching, any: owned(any), unless: owned(unless) }
}

fn compile(rules: &[Rule], opt_out: Option<&str>, opt_in: Option<&str>) -> Result<Classifier, Vec<PatternError>> {
    Classifier::compile(Lexicon::default(), rules, Roles { opt_out, opt_in, maybe: None })
}

#[test]
fn phrases_of_buyers_are_taken_for_what_they_mean() {
    // C2 and FC-58, over the rules of the shipped flow. `-` is any message.
    let table = [
        ("SAIR", "pediu_parar"),
        (" sair ", "pediu_parar"),
        ("Sair.", "pediu_parar"),
        ("sair!!! 😡", "pediu_parar"),
        ("𝗦𝗔𝗜𝗥", "pediu_parar"),
        ("PARAR", "pediu_parar"),
        ("Pare", "pediu_parar"),
        ("pareeee", "pediu_parar"),
        ("stop", "pediu_parar"),
        ("Stop!", "pediu_parar"),
        ("OPTOUT", "pediu_parar"),
        ("descadastrar", "pediu_parar"),
        ("Cancelar", "pediu_parar"),
        ("quero sair da lista", "pediu_parar"),
        ("Me tira da lista", "pediu_parar"),
        ("pare de mandar mensagem", "pediu_parar"),
        ("Parem de me mandar mensagens, por favor", "pediu_parar"),
        ("por favor, para de me mandar msg", "pediu_parar"),
        ("vocês podem parar de ligar", "pediu_parar"),
        ("não me mande mais mensagens", "pediu_parar"),
        ("nao me manda mais nada", "pediu_parar"),
        ("Não quero mais receber mensagens", "pediu_parar"),
        ("eu não quero receber mais mensagens de vocês, obrigada", "pediu_parar"),
        ("NÃO QUERO MAIS", "pediu_parar"),
        // A sentence that only contains the word is no wish.
        // It may be a person's business.
        ("não quero sair do grupo, obrigado", "talvez_parar"),
        ("vou sair agora, depois te respondo", "-"),
        ("posso parar de pagar quando quiser?", "-"),
        ("meu marido não para de mandar eu estudar", "-"),
        ("quero cancelar o pedido de ontem", "talvez_parar"),
        ("como faço pra sair da página de erro?", "-"),
        ("não me mande mais o link errado", "-"),
        ("para quem é o curso?", "-"),
        ("stop motion faz parte do curso?", "-"),
        ("VOLTAR", "voltar"),
        ("quero voltar a receber", "voltar"),
        ("vou voltar a estudar", "-"),
        ("quanto custa?", "pediu_preco"),
        ("Quanto custa o curso?", "pediu_preco"),
        ("quanto é?", "pediu_preco"),
        ("QUANTO QUE É", "pediu_preco"),
        ("qual o valor", "pediu_preco"),
        ("Qual é o preço?", "pediu_preco"),
        ("preçooooo", "pediu_preco"),
        ("valor?", "pediu_preco"),
        ("tem desconto à vista?", "pediu_preco"),
        ("dá pra parcelar?", "pediu_preco"),
        ("em quantas vezes posso fazer", "pediu_preco"),
        ("quais as formas de pagamento", "pediu_preco"),
        ("bom dia! gostaria de saber o valor", "pediu_preco"),
        ("quanto tempo dura?", "-"),
        ("quanto é o prazo de entrega?", "-"),
        ("dou muito valor ao estudo", "-"),
        ("quero comprar", "quer_comprar"),
        ("Quero!!", "quer_comprar"),
        ("quero sim 😍", "quer_comprar"),
        ("me manda o link por favor", "quer_comprar"),
        ("Como faço para comprar?", "quer_comprar"),
        ("como pago?", "quer_comprar"),
        ("pode mandar", "quer_comprar"),
        ("fechado, manda o pix", "quer_comprar"),
        ("bora", "quer_comprar"),
        ("vou querer", "quer_comprar"),
        ("não quero comprar agora", "-"),
        ("ainda não vou comprar", "-"),
        ("eu quero saber se tem certificado", "-"),
        ("eu quero meu dinheiro de volta", "-"),
        ("já paguei, eu quero o acesso", "-"),
        ("oi", "-"),
        ("bom dia, tudo bem?", "-"),
        ("vou pensar", "-"),
        ("achei caro", "-"),
        ("já paguei", "-"),
        ("ok obrigado", "-"),
        ("👍", "-"),
        ("", "-"),
    ];
    let flow = Flow::vendas();
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let hit = flow.classifier.classify(text);
            let found = hit.word.unwrap_or("-");
            (found != *expected).then(|| format!("{text:?}: {found} instead of {expected}, by {:?}", hit.rule))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (text, expected) in table {
        assert_eq!(flow.classifier.is_opt_out(text), expected == "pediu_parar", "{text:?}");
        assert_eq!(flow.classifier.is_opt_in(text), expected == "voltar", "{text:?}");
    }
}

#[test]
fn the_highest_priority_wins_and_then_the_first_in_the_file() {
    let rules = [
        rule("a", 10, Match::Words, &["link"], &[]),
        rule("b", 50, Match::Words, &["manda"], &[]),
        rule("c", 50, Match::Words, &["manda"], &[]),
    ];
    let classifier = compile(&rules, None, None).unwrap();
    let hit = classifier.classify("manda o link");
    assert_eq!(hit.word, Some("b"));
    assert_eq!(hit.rule.as_deref(), Some("b#2 \"manda\""));
    assert_eq!(hit.priority, 50);
    assert_eq!(classifier.classify("o link").word, Some("a"));
    assert_eq!(classifier.classify("oi"), Hit::default());
}

#[test]
fn a_wish_for_silence_outranks_every_priority() {
    // C12: a shop that gives `quero` priority 900 must not sell to who wants to stop.
    let rules = [
        rule("compra", 900, Match::Words, &["quero"], &[]),
        rule("parar", 1, Match::Words, &["quero sair"], &[]),
        rule("voltar", 5, Match::Words, &["quero"], &[]),
    ];
    let classifier = compile(&rules, Some("parar"), Some("voltar")).unwrap();
    assert_eq!(classifier.classify("quero sair").word, Some("parar"));
    assert!(classifier.is_opt_out("Quero sair!"));
    assert!(!classifier.is_opt_in("quero sair"), "a text that asks for silence takes nothing back");
    assert!(classifier.is_opt_in("quero"));
    assert!(!classifier.is_opt_out("quero"));
}

#[test]
fn a_veto_turns_one_rule_off_and_leaves_the_others() {
    let rules = [
        rule("pago", 70, Match::Regex, &[r"\bpaguei\b"], &[r"\bnao paguei\b"]),
        rule("oi", 1, Match::Words, &["paguei"], &[]),
    ];
    let classifier = compile(&rules, None, None).unwrap();
    for (text, expected) in [("Já PAGUEI!", "pago"), ("ainda não paguei", "oi")] {
        assert_eq!(classifier.classify(text).word, Some(expected), "{text}");
    }
}

#[test]
fn words_match_whole_words_in_a_row() {
    let rules = [rule("x", 0, Match::Words, &["o Preço", "pix"], &[])];
    let classifier = compile(&rules, None, None).unwrap();
    let table = [
        ("qual o preco?", true),
        ("qual o, preço", true),
        ("o preço", true),
        ("o precoce", false),
        ("preço o", false),
        ("pixel", false),
        ("(pix)", true),
    ];
    for (text, expected) in table {
        assert_eq!(classifier.classify(text).word.is_some(), expected, "{text}");
    }
}

#[test]
fn patterns_that_cannot_work_are_refused() {
    let table = [
        (Match::Regex, "(", "unclosed group"),
        (Match::Regex, "preço", "without accents"),
        (Match::Regex, "a*", "matches every message"),
        (Match::Regex, r"a{1000}{1000}", "size"),
        (Match::Whole, "?!", "never matches"),
        (Match::Words, "", "never matches"),
    ];
    for (matching, pattern, expected) in table {
        let good = rule("a", 0, Match::Words, &["ok"], &[]);
        let errors = compile(&[good, rule("b", 0, matching, &[pattern], &[])], None, None).unwrap_err();
        assert_eq!((errors.len(), errors[0].rule, errors[0].pattern.as_str()), (1, 1, pattern));
        assert!(errors[0].to_string().contains(expected), "{pattern}: {}", errors[0]);
    }
    let errors = compile(&[rule("a", 0, Match::Words, &["ok"], &["["])], None, None).unwrap_err();
    assert_eq!(errors[0].pattern, "[");
}

#[test]
fn a_hostile_message_costs_no_more_than_its_first_page() {
    // Linear time: this pattern takes for ever where regular expressions backtrack.
    let rules = [rule("x", 0, Match::Regex, &["(a+)+b"], &[])];
    let classifier = compile(&rules, None, None).unwrap();
    let text = "aa ".repeat(1_000_000);
    assert_eq!(classifier.classify(&text).word, None);
}

proptest::proptest! {
    /// Whatever people send: folding is stable, and classifying has an answer.
    #[test]
    fn any_text_can_be_classified(text in "\\PC{0,60}", flags in "[\\u{300}-\\u{36f}\\u{200b}-\\u{200f}\\u{fe00}-\\u{fe0f}a-z ]{0,20}") {
        let text = format!("{text}{flags}");
        let folded = fold::fold(&text);
        proptest::prop_assert_eq!(&fold::fold(&folded), &folded);
        let rules = [rule("x", 0, Match::Words, &["a"], &["b"])];
        let classifier = compile(&rules, Some("x"), None).unwrap();
        let hit = classifier.classify(&text).word.is_some();
        proptest::prop_assert_eq!(hit, classifier.is_opt_out(&text));
        proptest::prop_assert_eq!(hit, fold::words(&folded).any(|word| word == "a") && !folded.contains('b'));
    }
}
