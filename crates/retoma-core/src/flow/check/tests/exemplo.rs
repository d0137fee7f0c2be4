//! The format's own example with one fault at a time: each is named by its code at its line, and what else is an error then
//! follows from it. So flows by other authors are judged, who use keys that the shipped flow does not need (C15).

use std::collections::BTreeSet;

use super::line_of;
use crate::finding::Finding;
use crate::flow::{Flow, load};

const EXEMPLO: &str = include_str!("../../../../tests/flows/exemplo.yaml");

/// What is replaced, by what, the code it must give, and text of the line that is named (in the file as planted).
type Fault = (&'static [(&'static str, &'static str)], &'static str, &'static str);

const FAULTS: &[Fault] = &[
    (
        &[("{ from: NEGOCIANDO, event: intent.objection,", "{ from: NEGOCIANDOO, event: intent.objection,")],
        "N1",
        "NEGOCIANDOO",
    ),
    (&[("event: pix.expired, do", "event: pix.expird, do")], "N1", "pix.expird, do"),
    (&[("pix.created, pix.expired,", "pix.creatd, pix.expired,")], "N1", "pix.creatd"),
    (&[("{ emit: intent.human,", "{ emit: intent.humano,")], "N1", "intent.humano"),
    (&[("do: [send: preco] }", "do: [send: prco] }")], "N1", "prco"),
    (&[("max_wait: 40s", "max_wit: 40s")], "N1", "max_wit"),
    (&[("provider: whatsapp_cloud", "provider: whatsapp_clod")], "N1", "whatsapp_clod"),
    (&[("class: receipt", "class: receit")], "N1", "receit"),
    (&[("window_closed: template ", "window_closed: modelo ")], "N1", "modelo"),
    (
        &[(
            "category: marketing, params: [offer.name, checkout.url] }\n  checkout",
            "category: venda, params: [offer.name, checkout.url] }\n  checkout",
        )],
        "N1",
        "category: venda",
    ),
    (&[("  outside: defer", "  on: defer\n  outside: defer")], "N2", "  on: defer"),
    (&[("sat: [\"09:00-14:00\"]", "sat: [09:00-14:00]")], "N2", "sat: ["),
    (
        &[("  PERDIDO:          {", "  ILHA: { timeout: { after: 1h, to: PERDIDO } }\n  PERDIDO:          {")],
        "S1",
        "ILHA",
    ),
    (
        &[("  ENGAJADO:         { timeout: { after: 48h, jitter: 1h, to: PERDIDO } }", "  ENGAJADO:         {}")],
        "S2",
        "  ENGAJADO:  ",
    ),
    (
        &[("  RECUPERANDO:      { timeout: { after: 60h, jitter: 1h, to: PERDIDO } }", "  RECUPERANDO:      {}")],
        "S2",
        "  RECUPERANDO:  ",
    ),
    (
        &[("  CHECKOUT_ENVIADO: { timeout: { after: 30m, jitter: 5m, to: RECUPERANDO } }", "  CHECKOUT_ENVIADO: {}")],
        "S2",
        "  CHECKOUT_ENVIADO:",
    ),
    (&[("initial: true, ", "")], "S3", ""),
    (
        &[(
            "  PAGO:             { final: cycle }",
            "  PAGO:             { final: cycle, timeout: { after: 1h, to: PERDIDO } }",
        )],
        "S3",
        "  PAGO:  ",
    ),
    (
        &[(
            "  - { from: PAGO,       event: payment.refunded",
            "  - { from: PAGO, event: payment.refunded, to: NOVO }\n  - { from: PAGO,       event: payment.refunded",
        )],
        "S4",
        "PAGO,       event",
    ),
    (
        &[("  - { from: [AGUARDANDO_PIX, RECUPERANDO], event: pix.expired, do: [note: pix_vencido] }\n", "")],
        "S5",
        "external:",
    ),
    (
        &[("AGUARDANDO_PIX:   { timeout: { after: 60h", "AGUARDANDO_PIX:   { timeout: { after: 20h")],
        "T1",
        "  AGUARDANDO_PIX:  ",
    ),
    (&[("at: 15m, jitter: 2m", "at: 15m, jitter: 10m")], "T2", "id: t15"),
    (
        &[
            ("max_late: 40m", "max_late: 5h"),
            ("    when_piled_up: keep_latest             # two deferred touches become one\n", ""),
        ],
        "T3",
        "id: t4h",
    ),
    (
        &[("    template: { name: pix_pendente_3, category: marketing, params: [offer.name, checkout.url] }\n", "")],
        "W1",
        "id: t20h",
    ),
    (
        &[("    template: { name: carrinho_1, category: marketing, params: [offer.name, checkout.url] }\n", "")],
        "W2",
        "id: c40",
    ),
    (&[("pix_pendente_3, category: marketing", "pix_pendente_3, category: utility")], "W4", "Última chamada"),
    (&[("{{offer.name}} está por", "{{offer.nome}} está por")], "V1", "{{offer.nome}}"),
    (&[("params: [contact.first_name] }", "params: [contact.nome] }")], "V1", "contact.nome"),
    (
        &[("order.total:        { type: money_brl, required: true }", "order.total:        { type: money_brl }")],
        "V1",
        "order.total:  ",
    ),
    (&[("    refresh: [pix.code]\n", "")], "V2", "id: t15"),
    (&[("perishable: pix.expires_at, refresh: pix.renew }", "perishable: pix.expires_at }")], "V2", "id: t15"),
    (&[("Aqui está: {{checkout.url}}", "Aqui está: https://pagar.exemplo.net/x")], "V3", "pagar.exemplo.net"),
    (
        &[
            (
                "RECUPERANDO:      { timeout: { after: 60h, jitter: 1h, to: PERDIDO } }",
                "RECUPERANDO:      { timeout: { after: 60h, jitter: 1h, to: CHECKOUT_ENVIADO } }",
            ),
            (
                "  - { from: AGUARDANDO_PIX, event: touch.sent",
                "  - { from: RECUPERANDO, event: timeout, to: CHECKOUT_ENVIADO, do: [send: link] }\n  - { from: AGUARDANDO_PIX, event: touch.sent",
            ),
        ],
        "L1",
        "do: [send: link] }\n  - { from: AGUARDANDO_PIX",
    ),
    (
        &[("do: [send: objecao], max_times: 2 }", "do: [send: objecao] }")],
        "L2",
        "{ from: NEGOCIANDO, event: intent.objection",
    ),
    (&[("{ max: 3, per: 24h }", "{ max: 2, per: 24h }")], "L3", "  pix_pendente:"),
    (
        &[(
            "cancel_on: [payment.approved, intent.opt_out, offer.closed]\n    wait_after_inbound: 45m                # never",
            "cancel_on: [intent.opt_out, offer.closed]\n    wait_after_inbound: 45m                # never",
        )],
        "C1",
        "  pix_pendente:",
    ),
    (
        &[(
            "cancel_on: [payment.approved, intent.opt_out, offer.closed]\n    wait_after_inbound: 45m                # never",
            "cancel_on: [payment.approved, offer.closed]\n    wait_after_inbound: 45m                # never",
        )],
        "C1",
        "  pix_pendente:",
    ),
    (
        &[("intent.human, intent.maybe_opt_out]\n    redact", "intent.human, intent.opt_out]\n    redact")],
        "C2",
        "may_emit",
    ),
    (&[("scope: contact", "scope: cycle")], "C2", "scope: cycle"),
    (&[("OPT_OUT:          { final: contact }", "OPT_OUT:          { final: cycle }")], "C2", "event: intent.opt_out"),
    (
        &[(
            "  - { event: intent.opt_out, scope: contact, to: OPT_OUT, do: [cancel_everything, send: saida_ok] }\n",
            "",
        )],
        "C2",
        "",
    ),
    (&[("priority: 100, match: whole", "priority: 100, match: words")], "C2", "priority: 100"),
    (&[(r"'\b(pare|para|parem) de", r"'\b(pare|para|parem de")], "C3", "priority: 95"),
    (&[(r"fiz o pix|transferi)\b'],", r"fiz o pix|transferi).*\b'],")], "C3", "priority: 70"),
    (&[(r"\bnao (me )?(mande", r"\bnão (me )?(mande")], "C3", "priority: 95"),
    (&[("priority: 45", "priority: 50")], "C4", "emit: intent.buy"),
    (&[("{ emit: intent.already_paid,", "{ emit: payment.approved,")], "C5", "emit: payment.approved"),
    (
        &[("    mon-fri: [\"08:00-20:00\"]\n    sat: [\"09:00-14:00\"]\n", "    mon-fri: []\n    sat: []\n")],
        "Q1",
        "  allowed:",
    ),
    (&[("total_timeout: 20s", "total_timeout: 3s")], "P1", "  whatsapp:"),
    (&[("schema: 1 ", "schema: 9 ")], "Y2", "schema: 9"),
];

fn errors(findings: &[Finding]) -> Vec<String> {
    findings.iter().filter(|finding| finding.is_error()).map(ToString::to_string).collect()
}

fn as_it_stands() -> (Flow, Vec<Finding>) {
    let (flow, findings) = load(EXEMPLO, "exemplo.yaml");
    (flow.unwrap_or_else(|| panic!("{:#?}", errors(&findings))), findings)
}

#[test]
fn the_example_is_usable_and_what_has_no_effect_says_so() {
    let (flow, findings) = as_it_stands();
    let codes: BTreeSet<&str> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, BTreeSet::from(["Y3"]), "{findings:#?}");
    // What its names and lists mean here.
    assert_eq!(flow.opt_out_word.as_deref(), Some("intent.opt_out"));
    assert_eq!(flow.word_of(crate::event::EventKind::MessageReceived), Some("intent.unclear"));
    let armed: Vec<&str> = flow.transitions.iter().filter_map(|row| row.arms()).collect();
    assert_eq!(armed, ["checkout_parado", "pix_pendente"]);
    assert_eq!(flow.deadline_row("CHECKOUT_ENVIADO").and_then(|row| row.to.as_deref()), Some("RECUPERANDO"));
    assert_eq!(flow.touch_row("AGUARDANDO_PIX").and_then(|row| row.to.as_deref()), Some("RECUPERANDO"));
}

#[test]
fn every_fault_in_the_example_is_named_with_its_code_and_line() {
    let before: BTreeSet<String> = as_it_stands().1.into_iter().map(|finding| finding.message).collect();
    let mut missed = Vec::new();
    for (edits, code, at) in FAULTS {
        let mut file = EXEMPLO.to_owned();
        for (old, new) in *edits {
            assert_eq!(file.matches(old).count(), 1, "{old:?} must stand once");
            file = file.replacen(old, new, 1);
        }
        let line = match at.split_once('\n') {
            Some((first, next)) => file
                .lines()
                .zip(file.lines().skip(1))
                .position(|(a, b)| a.contains(first) && b.contains(next))
                .map_or(0, |place| u32::try_from(place + 1).unwrap()),
            None => line_of(&file, at),
        };
        let findings = load(&file, "exemplo.yaml").1;
        let new: Vec<&Finding> = findings.iter().filter(|finding| !before.contains(&finding.message)).collect();
        if !new.iter().any(|finding| finding.code == *code && finding.line == line) {
            missed.push(format!("{code} at {line} for {edits:?}: {new:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
