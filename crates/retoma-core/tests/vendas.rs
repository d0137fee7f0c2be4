//! The shipped flow, row by row: every state of C1 meets every event of C1.

#[path = "support/case.rs"]
mod case;

use case::Case;
use retoma_core::event::EventKind;

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

const EVENTS: [&str; 10] = [
    "msg_recebida",
    "pediu_preco",
    "quer_comprar",
    "pix_gerado",
    "pagamento_recusado",
    "checkout_abandonado",
    "pagamento_aprovado",
    "pediu_parar",
    "timeout",
    "regua_esgotada",
];

/// A row of C1: from, event, to, what goes out now, the cadence it arms.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// The table of REQUIREMENTS C1, the shipped flow's own rows after it. What is not here has no transition.
const C1: [Row; 34] = [
    ("NOVO", "msg_recebida", "ENGAJADO", "boas_vindas", ""),
    ("ENGAJADO", "msg_recebida", "ENGAJADO", "responder_duvida", ""),
    ("ENGAJADO", "pediu_preco", "NEGOCIANDO", "mandar_oferta", ""),
    ("ENGAJADO", "timeout", "RECUPERANDO", "retomar_conversa", "retomada"),
    ("NEGOCIANDO", "msg_recebida", "NEGOCIANDO", "tratar_objecao", ""),
    ("NEGOCIANDO", "quer_comprar", "CHECKOUT_ENVIADO", "mandar_link", ""),
    ("NEGOCIANDO", "timeout", "RECUPERANDO", "retomar_oferta", "retomada"),
    ("CHECKOUT_ENVIADO", "msg_recebida", "CHECKOUT_ENVIADO", "ajudar_no_checkout", ""),
    ("CHECKOUT_ENVIADO", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("CHECKOUT_ENVIADO", "pagamento_recusado", "RECUPERANDO", "ajuda_cartao", "cartao_recusado"),
    ("CHECKOUT_ENVIADO", "checkout_abandonado", "RECUPERANDO", "retomar_checkout", "carrinho"),
    ("CHECKOUT_ENVIADO", "timeout", "RECUPERANDO", "retomar_checkout", "carrinho"),
    ("AGUARDANDO_PIX", "msg_recebida", "AGUARDANDO_PIX", "reenviar_pix", ""),
    ("AGUARDANDO_PIX", "timeout", "RECUPERANDO", "lembrete_pix", ""),
    ("RECUPERANDO", "msg_recebida", "NEGOCIANDO", "retomar_de_onde_parou", ""),
    ("RECUPERANDO", "timeout", "RECUPERANDO", "proximo_toque", ""),
    ("RECUPERANDO", "regua_esgotada", "PERDIDO", "", ""),
    ("PERDIDO", "msg_recebida", "ENGAJADO", "boas_vindas_de_volta", ""),
    ("PAGO", "msg_recebida", "PAGO", "pos_venda", ""),
    // Straight from the checkout.
    ("NOVO", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("ENGAJADO", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("NEGOCIANDO", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("AGUARDANDO_PIX", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("RECUPERANDO", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("PERDIDO", "pix_gerado", "AGUARDANDO_PIX", "", "pix_pendente"),
    ("NOVO", "pagamento_recusado", "RECUPERANDO", "ajuda_cartao", "cartao_recusado"),
    ("ENGAJADO", "pagamento_recusado", "RECUPERANDO", "ajuda_cartao", "cartao_recusado"),
    ("NEGOCIANDO", "pagamento_recusado", "RECUPERANDO", "ajuda_cartao", "cartao_recusado"),
    ("AGUARDANDO_PIX", "pagamento_recusado", "RECUPERANDO", "ajuda_cartao", "cartao_recusado"),
    ("PERDIDO", "pagamento_recusado", "RECUPERANDO", "ajuda_cartao", "cartao_recusado"),
    ("NOVO", "checkout_abandonado", "RECUPERANDO", "retomar_checkout", "carrinho"),
    ("ENGAJADO", "checkout_abandonado", "RECUPERANDO", "retomar_checkout", "carrinho"),
    ("NEGOCIANDO", "checkout_abandonado", "RECUPERANDO", "retomar_checkout", "carrinho"),
    ("PERDIDO", "checkout_abandonado", "RECUPERANDO", "retomar_checkout", "carrinho"),
];

/// The row that answers an event in a state: the two globals, else the table.
fn row(from: &'static str, event: &'static str) -> Option<Row> {
    match (from, event) {
        (_, "pagamento_aprovado") => Some((from, event, "PAGO", "entregar_acesso", "")),
        // A second request for silence is not confirmed again (C12).
        (state, "pediu_parar") if state != "OPT_OUT" => Some((from, event, "OPT_OUT", "confirmar_saida", "")),
        _ => C1.into_iter().find(|row| (row.0, row.1) == (from, event)),
    }
}

/// What came of an event: the state after, what went out, the cadence that was armed, the words of the log row.
#[derive(Debug, PartialEq)]
struct Came {
    to: String,
    sent: Vec<String>,
    arms: Option<String>,
    words: (String, Option<String>),
    reason: Option<String>,
}

fn meet(from: &str, event: &str) -> Option<Came> {
    let mut case = Case::vendas();
    case.walk_to(from);
    let before = case.view.conversations.last().and_then(|cycle| cycle.cadence.clone()).map(|running| running.key);
    let decision = match event {
        "msg_recebida" => case.say("tudo bem?"),
        "pediu_preco" => case.say("quanto custa?"),
        "quer_comprar" => case.say("quero comprar"),
        "pediu_parar" => case.say("sair"),
        "pix_gerado" => case.fact(EventKind::PixCreated, "HP2", "curso"),
        "pagamento_recusado" => case.fact(EventKind::PaymentRefused, "HP2", "curso"),
        "checkout_abandonado" => case.fact(EventKind::CheckoutAbandoned, "", "curso"),
        "pagamento_aprovado" => case.fact(EventKind::PaymentApproved, "HP2", "curso"),
        "timeout" => {
            case.view.conversations.last()?.deadline_at?;
            case.ring()
        }
        "regua_esgotada" => {
            case.view.conversations.last()?.cadence.as_ref()?;
            // Every touch was sent, and nobody answered for a day.
            while case.log.last()?.event != "regua_esgotada" {
                case.deliver();
                case.ring();
            }
            let last = case.log.last()?;
            let words = (last.event.clone(), last.taken_as.clone());
            let (to, reason) = (last.to.clone(), last.reason.clone());
            return Some(Came { to, sent: Vec::new(), arms: None, words, reason });
        }
        other => panic!("no event {other}"),
    };
    assert_eq!(decision.events.len(), 1);
    let last = decision.transitions.last().expect("every decided event leaves a row in the log");
    let running = case.cycle().cadence.as_ref();
    Some(Came {
        to: case.state().to_owned(),
        sent: case.let_go(&decision),
        arms: running.filter(|running| Some(&running.key) != before.as_ref()).map(|running| running.name.clone()),
        words: (last.event.clone(), last.taken_as.clone()),
        reason: last.reason.clone(),
    })
}

/// C1, C2, C4: the whole matrix, so that neither a row is missing nor one too many.
#[test]
fn every_state_answers_every_event_as_the_table_says() {
    let silent_clocks = ["NOVO", "PERDIDO", "PAGO", "OPT_OUT"];
    for from in STATES {
        for event in EVENTS {
            let came = meet(from, event);
            if (event == "timeout" && silent_clocks.contains(&from))
                || (event == "regua_esgotada" && !["AGUARDANDO_PIX", "RECUPERANDO"].contains(&from))
            {
                // These have no clock at all, so the event cannot happen.
                assert_eq!(came, None, "{from} {event}");
                continue;
            }
            let came = came.unwrap_or_else(|| panic!("{from} {event} did not happen"));
            // AGUARDANDO_PIX is left by the first touch, long before a cadence can be exhausted.
            let from = if event == "regua_esgotada" { "RECUPERANDO" } else { from };
            let is_intent = ["pediu_preco", "quer_comprar"].contains(&event);
            let taken_as = (is_intent && row(from, event).is_none()).then(|| "msg_recebida".to_owned());
            let found = row(from, event).or_else(|| row(from, taken_as.as_ref().map(|_| "msg_recebida")?));
            let (to, message, arms) = found.map_or((from, "", ""), |row| (row.2, row.3, row.4));
            let expected = Came {
                to: to.to_owned(),
                sent: Some(message.to_owned()).filter(|message| !message.is_empty()).into_iter().collect(),
                arms: Some(arms.to_owned()).filter(|arms| !arms.is_empty()),
                words: (event.to_owned(), taken_as),
                reason: found.is_none().then(|| "no_transition".to_owned()),
            };
            assert_eq!(came, expected, "{from} {event}");
        }
    }
}
