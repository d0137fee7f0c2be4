//! The shipped flow against REQUIREMENTS C1, row by row.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::template;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The table of C1 as it is written there, with the rows "of ours", and the cadence that a row arms.
const TABLE: &str = "
    NOVO             msg_recebida         ENGAJADO          boas_vindas
    ENGAJADO         msg_recebida         ENGAJADO          responder_duvida
    ENGAJADO         pediu_preco          NEGOCIANDO        mandar_oferta
    ENGAJADO         timeout              RECUPERANDO       retomar_conversa        retomada
    NEGOCIANDO       msg_recebida         NEGOCIANDO        tratar_objecao
    NEGOCIANDO       quer_comprar         CHECKOUT_ENVIADO  mandar_link
    NEGOCIANDO       timeout              RECUPERANDO       retomar_oferta          retomada
    CHECKOUT_ENVIADO msg_recebida         CHECKOUT_ENVIADO  ajudar_no_checkout
    CHECKOUT_ENVIADO pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    CHECKOUT_ENVIADO pagamento_recusado   RECUPERANDO       ajuda_cartao            cartao_recusado
    CHECKOUT_ENVIADO checkout_abandonado  RECUPERANDO       retomar_checkout        carrinho
    CHECKOUT_ENVIADO timeout              RECUPERANDO       retomar_checkout        carrinho
    AGUARDANDO_PIX   msg_recebida         AGUARDANDO_PIX    reenviar_pix
    AGUARDANDO_PIX   timeout              RECUPERANDO       lembrete_pix
    RECUPERANDO      msg_recebida         NEGOCIANDO        retomar_de_onde_parou
    RECUPERANDO      timeout              RECUPERANDO       proximo_toque
    RECUPERANDO      regua_esgotada       PERDIDO           -
    PERDIDO          msg_recebida         ENGAJADO          boas_vindas_de_volta
    PAGO             msg_recebida         PAGO              pos_venda
    NOVO             pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    ENGAJADO         pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    NEGOCIANDO       pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    AGUARDANDO_PIX   pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    RECUPERANDO      pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    PERDIDO          pix_gerado           AGUARDANDO_PIX    -                       pix_pendente
    NOVO             pagamento_recusado   RECUPERANDO       ajuda_cartao            cartao_recusado
    ENGAJADO         pagamento_recusado   RECUPERANDO       ajuda_cartao            cartao_recusado
    NEGOCIANDO       pagamento_recusado   RECUPERANDO       ajuda_cartao            cartao_recusado
    AGUARDANDO_PIX   pagamento_recusado   RECUPERANDO       ajuda_cartao            cartao_recusado
    PERDIDO          pagamento_recusado   RECUPERANDO       ajuda_cartao            cartao_recusado
    NOVO             checkout_abandonado  RECUPERANDO       retomar_checkout        carrinho
    ENGAJADO         checkout_abandonado  RECUPERANDO       retomar_checkout        carrinho
    NEGOCIANDO       checkout_abandonado  RECUPERANDO       retomar_checkout        carrinho
    PERDIDO          checkout_abandonado  RECUPERANDO       retomar_checkout        carrinho
";

const STATES: [&str; 9] = [
    "NOVO",
    "ENGAJADO",
    "NEGOCIANDO",
    "CHECKOUT_ENVIADO",
    "AGUARDANDO_PIX",
    "RECUPERANDO",
    "PERDIDO",
    "PAGO",
    "OPT_OUT",
];

/// State, sent message and armed cadence after a row; `-` for none.
fn told(state: &str, row: &Row) -> (String, String, String) {
    let sent = row.actions.iter().find_map(|action| match action {
        Action::Send(message) => Some(message.as_str()),
        _ => None,
    });
    let text = |name: Option<&str>| name.unwrap_or("-").to_owned();
    (text(Some(row.to.as_deref().unwrap_or(state))), text(sent), text(row.arms()))
}

#[test]
fn vendas_is_the_table_of_c1_and_nothing_else() {
    let flow = Flow::vendas();
    let mut expected: BTreeMap<(String, String), (String, String, String)> = BTreeMap::new();
    for line in TABLE.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next().unwrap_or_else(|| "-".to_owned());
        let key = (next(), next());
        expected.insert(key, (next(), next(), next()));
    }
    // "any state, first".
    for state in STATES {
        for (event, to, sent) in
            [("pagamento_aprovado", "PAGO", "entregar_acesso"), ("pediu_parar", "OPT_OUT", "confirmar_saida")]
        {
            expected.insert((state.into(), event.into()), (to.into(), sent.into(), "-".into()));
        }
    }
    let mut words: Vec<&str> = flow.words.keys().map(String::as_str).collect();
    words.extend(BUILT_IN_WORDS);
    words.extend(["pediu_preco", "quer_comprar", "pediu_parar", "voltar"]);
    let mut found = BTreeMap::new();
    for state in STATES {
        for word in &words {
            if let Some(row) = flow.row(state, word) {
                found.insert((state.to_owned(), (*word).to_owned()), told(state, row));
            }
        }
    }
    assert_eq!(found, expected);
    assert_eq!(flow.states.keys().map(String::as_str).collect::<Vec<_>>(), {
        let mut sorted = STATES.to_vec();
        sorted.sort_unstable();
        sorted
    });
    assert_eq!(flow.initial, "NOVO");
}

#[test]
fn vendas_keeps_the_clock_rules_of_c5_and_d2() {
    let flow = Flow::vendas();
    let own: Vec<_> = flow.states.iter().filter_map(|(name, state)| Some((name.as_str(), state.timeout?))).collect();
    let five = 5 * MINUTE;
    assert_eq!(
        own,
        [
            ("CHECKOUT_ENVIADO", Timeout { after: 30 * MINUTE, jitter: five }),
            ("ENGAJADO", Timeout { after: 2 * HOUR, jitter: five }),
            ("NEGOCIANDO", Timeout { after: 4 * HOUR, jitter: five }),
        ]
    );
    let firsts = [
        ("pix_pendente", "pix", "lembrete_pix"),
        ("cartao_recusado", "cartao", "ajuda_cartao"),
        ("carrinho", "carrinho", "retomar_checkout"),
        ("retomada", "retomada", "retomar_conversa"),
    ];
    assert_eq!(flow.cadences.len(), firsts.len());
    for (name, prefix, first) in firsts {
        let cadence = &flow.cadences[name];
        assert_eq!(
            (cadence.prefix.as_str(), cadence.runs_in.join(" ").as_str()),
            (prefix, "AGUARDANDO_PIX RECUPERANDO")
        );
        assert_eq!(
            cadence.cancel_on,
            [
                EventKind::PaymentApproved,
                EventKind::PaymentRefunded,
                EventKind::PaymentCancelled,
                EventKind::PaymentChargeback
            ]
        );
        let touches: Vec<_> =
            cadence.touches.iter().map(|t| (t.id.as_str(), t.at, t.jitter, t.max_late, t.send.as_str())).collect();
        assert_eq!(
            touches,
            [
                ("t15", 15 * MINUTE, 2 * MINUTE, 40 * MINUTE, first),
                ("t4h", 4 * HOUR, 10 * MINUTE, 6 * HOUR, "proximo_toque"),
                ("t20h", 20 * HOUR, 20 * MINUTE, 26 * HOUR, "proximo_toque"),
            ]
        );
        // The gap must never hold back a touch of the cadence itself.
        let gaps = cadence.touches.windows(2).map(|pair| pair[1].at - pair[0].at - pair[0].jitter);
        assert!(gaps.into_iter().all(|gap| gap > cadence.min_gap));
    }
}

#[test]
fn vendas_knows_its_words_and_roles() {
    let flow = Flow::vendas();
    let table = [
        (EventKind::MessageReceived, Some("msg_recebida")),
        (EventKind::PixCreated, Some("pix_gerado")),
        (EventKind::PaymentRefused, Some("pagamento_recusado")),
        (EventKind::CheckoutAbandoned, Some("checkout_abandonado")),
        (EventKind::PaymentApproved, Some("pagamento_aprovado")),
        (EventKind::PaymentRefunded, None),
    ];
    for (kind, word) in table {
        assert_eq!(flow.word_of(kind), word, "{kind}");
    }
    assert_eq!((flow.opt_out_word.as_deref(), flow.opt_in_word.as_deref()), (Some("pediu_parar"), Some("voltar")));
    let finals: Vec<_> =
        flow.states.iter().filter(|(_, state)| state.is_final).map(|(name, _)| name.as_str()).collect();
    assert_eq!(finals, ["OPT_OUT", "PAGO"]);
}

#[test]
fn vendas_gives_each_message_its_class() {
    let flow = Flow::vendas();
    let reminders =
        ["retomar_conversa", "retomar_oferta", "ajuda_cartao", "retomar_checkout", "lembrete_pix", "proximo_toque"];
    for (name, message) in &flow.messages {
        let class = match name.as_str() {
            "entregar_acesso" => MessageClass::Receipt,
            "confirmar_saida" => MessageClass::OptOutAck,
            name if reminders.contains(&name) => MessageClass::Reminder,
            _ => MessageClass::Reply,
        };
        assert_eq!(message.class, class, "{name}");
        let on_ambiguous = (name == "reenviar_pix").then_some(OnAmbiguous::ResendOnce);
        assert_eq!(message.on_ambiguous, on_ambiguous, "{name}");
    }
}

#[test]
fn every_message_of_vendas_reads_well_with_much_known_and_with_nothing() {
    let flow = Flow::vendas();
    let known = [
        ("contact.first_name", "Ana"),
        ("offer.name", "Curso de Violão"),
        ("order.total", "R$ 97,00"),
        ("order.access_url", "https://exemplo.com.br/aula"),
        ("checkout.url", "https://exemplo.com.br/pagar"),
        ("pix.code", "00020126580014br.gov.bcb.pix"),
    ];
    let known: BTreeMap<String, String> = known.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    for (name, message) in &flow.messages {
        // Each value alone and each value missing, besides all and none of them.
        let mut cases = vec![known.clone(), BTreeMap::new()];
        for (value, text) in &known {
            cases.push(BTreeMap::from([(value.clone(), text.clone())]));
            let mut without = known.clone();
            without.remove(value);
            cases.push(without);
        }
        for vars in cases {
            let text = template::render(&message.text, &vars).unwrap_or_else(|error| panic!("{name}: {error}"));
            let slips = ["  ", " ,", " .", " !", "{", "}", ",,", "..", " \n", "\n\n\n", "::"];
            let slip = slips.iter().find(|slip| text.contains(**slip));
            assert!(slip.is_none(), "{name} has {slip:?} with {:?}:\n{text}", vars.keys());
            assert!(text.trim() == text && text.len() > 20, "{name} with {:?}:\n{text}", vars.keys());
            assert!(
                text.ends_with(['.', '?', '!']) || text.contains("https://") || text.contains("000201"),
                "{name}:\n{text}"
            );
        }
    }
    // A code that has run out is a dead link: later touches never carry it (D10).
    assert!(!template::variables(&flow.messages["proximo_toque"].text).contains(&"pix.code".to_owned()));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// People edit this file by hand: lines go missing, are doubled, moved, or broken in the middle.
    #[test]
    fn a_damaged_file_gives_findings_or_a_flow_and_never_a_panic(
        damage in proptest::collection::vec((0_usize..4, proptest::num::usize::ANY, proptest::num::usize::ANY), 1..6)
    ) {
        let mut lines: Vec<String> = VENDAS.lines().map(str::to_owned).collect();
        for (kind, one, other) in damage {
            let (one, other) = (one % lines.len(), other % lines.len());
            match kind {
                0 => drop(lines.remove(one)),
                1 => lines.insert(other, lines[one].clone()),
                2 => lines.swap(one, other),
                _ => {
                    let middle = lines[one].chars().count() / 2;
                    lines[one] = lines[one].chars().take(middle).collect();
                }
            }
        }
        let (flow, findings) = load(&lines.join("\n"), "vendas.yaml");
        proptest::prop_assert_eq!(flow.is_none(), findings.iter().any(Finding::is_error));
    }
}

#[test]
fn every_scenario_of_vendas_comes_true() {
    let flow = Flow::vendas();
    assert!(flow.tests.len() >= 12, "the shipped flow has a dozen scenarios");
    for scenario in &flow.tests {
        let failures = crate::play::judge(&flow, scenario);
        let log = crate::play::play(&flow, scenario).log;
        assert!(failures.is_empty(), "{}: {failures:#?}\n{log:#?}", scenario.name);
    }
}
