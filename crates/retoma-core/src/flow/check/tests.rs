mod exemplo;

use crate::finding::Level::{self, Error, Warning};
use crate::flow::{CODES, RECUPERACAO, VENDAS, load};

/// A small flow without findings. Tests plant one mistake in it.
const GOOD: &str = r#"flow: pequeno
events:
  msg: message.received
  pix: pix.created
  pago: payment.approved
inbound: { bot_loop_guard: { most: { max: 20, per: 10m } } }
classifier:
  rules:
    - { emit: parar, opt_out: true, match: whole, any: [sair, parar] }
    - { emit: preco, priority: 5, match: words, any: [preco, "quanto custa"] }
states:
  NOVO: { initial: true }
  CONVERSA: { timeout: { after: 2h, jitter: 5m } }
  PIX: {}
  PERDIDO: {}
  PAGO: { final: true }
  FORA: { final: true }
globals:
  - { event: pago, to: PAGO, do: [send: obrigado] }
  - { event: parar, to: FORA, do: [send: tchau] }
transitions:
  - { from: [NOVO, PERDIDO], event: msg, to: CONVERSA, do: [send: oi] }
  - { from: CONVERSA, event: preco, to: CONVERSA, do: [send: oferta] }
  - { from: CONVERSA, event: timeout, to: PERDIDO }
  - { from: [NOVO, CONVERSA, PERDIDO], event: pix, to: PIX, do: [start_cadence: lembrar] }
  - { from: PIX, event: timeout, to: PIX, do: [send: lembrete] }
  - { from: PIX, event: regua_esgotada, to: PERDIDO }
cadences:
  lembrar:
    runs_in: [PIX]
    cancel_on: [payment.approved]
    touches:
      - { id: t15, at: 15m, jitter: 2m, send: lembrete }
      - { id: t4h, at: 4h, jitter: 10m, send: lembrete }
messages:
  oi: { class: reply, text: "Oi!" }
  oferta: { class: reply, text: "Custa {{ order.total | default('pouco') }}" }
  lembrete: { class: reminder, text: "Falta pagar {{ offer.name }}" }
  obrigado: { class: receipt, text: "Obrigado" }
  tchau: { class: optout_ack, text: "Pronto" }
"#;

/// A mistake and the finding it must give: code, level, text of the line that is named, parts of message and fix.
struct Planted {
    edits: &'static [(&'static str, &'static str)],
    code: &'static str,
    level: Level,
    at: &'static str,
    message: &'static str,
    fix: &'static str,
}

/// The line of the file, from 1, that contains the text; 0 for the whole file.
fn line_of(file: &str, text: &str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    let place = file.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text:?} is not there"));
    u32::try_from(place).unwrap() + 1
}

fn plant(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(GOOD.to_owned(), |file, (old, new)| {
        assert_eq!(file.matches(old).count(), 1, "{old:?} must stand once");
        file.replacen(old, new, 1)
    })
}

/// Each mistake gives exactly one finding.
fn check(table: &[Planted]) {
    for Planted { edits, code, level, at, message, fix } in table {
        let file = plant(edits);
        let (flow, findings) = load(&file, "pequeno.yaml");
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings.len(), 1, "planted {edits:?}: {told:#?}");
        let finding = &findings[0];
        assert_eq!((finding.code, finding.level, finding.line), (*code, *level, line_of(&file, at)), "{finding}");
        assert!(finding.message.contains(message) && finding.fix.contains(fix), "planted {edits:?}: {finding}");
        assert_eq!(flow.is_some(), *level == Warning, "errors refuse the flow, warnings do not");
        assert!(CODES.iter().any(|(known, _)| known == code), "{code} is explained nowhere");
    }
}

macro_rules! planted {
    ($($code:literal $level:ident at $at:literal: $message:literal / $fix:literal <- $($edit:expr),+;)*) => {
        check(&[$(Planted { edits: &[$($edit),+], code: $code, level: $level, at: $at, message: $message, fix: $fix }),*])
    };
}

#[test]
fn a_sound_flow_has_no_findings_and_neither_have_the_shipped_ones() {
    for (file, text) in [("pequeno.yaml", GOOD), ("vendas.yaml", VENDAS), ("recuperacao.yaml", RECUPERACAO)] {
        let (flow, findings) = load(text, file);
        assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
        assert!(flow.is_some());
    }
}

#[test]
fn unknown_names_are_found_with_the_nearest_known_one() {
    planted! {
        "N1" Error at "cadencias": "unknown key `cadencias`" / "`cadences`" <- ("flow: pequeno", "flow: pequeno\ncadencias: {}");
        "N1" Error at "clas:": "unknown key `clas`" / "`class`" <- ("{ class: reply, text: \"Oi!\" }", "{ clas: x, class: reply, text: a }");
        "N1" Error at "CONVERSAA": "state `CONVERSAA`" / "`CONVERSA`" <- ("CONVERSA, do: [send: oi]", "CONVERSAA, do: [send: oi]");
        "N1" Error at "  lembrar:": "state `PIXX`" / "`PIX`" <- ("runs_in: [PIX]", "runs_in: [PIXX]");
        "N1" Error at "precos": "event `precos`" / "`preco`" <- ("event: preco, to", "event: precos, to");
        "N1" Error at "pix.expired": "event `pix.expired`" / "pix_expired: pix.expired" <- ("event: preco, to", "event: pix.expired, to");
        "N1" Error at "ofertas": "`ofertas` is missing" / "`oferta`" <- ("do: [send: oferta]", "do: [send: ofertas]");
        "N1" Error at "t4h": "`lembretes` is missing" / "`lembrete`" <- ("jitter: 10m, send: lembrete", "jitter: 10m, send: lembretes");
        "N1" Error at "start_cadence": "cadence `lembra`" / "`lembrar`" <- ("[start_cadence: lembrar]", "[start_cadence: lembra]");
        "N1" Error at "start:": "action `start`" / "start_cadence" <- ("[start_cadence: lembrar]", "[start: lembrar]");
        "N1" Error at "pix.expire": "event `pix.expire`" / "`pix.expired`" <- ("[payment.approved]", "[payment.approved, pix.expire]");
        "N1" Error at "pix.create": "event type `pix.create`" / "`pix.created`" <- ("pix: pix.created", "pix: pix.create");
        "N1" Error at "recibo": "`class: recibo`" / "reminder, reply, receipt, optout_ack" <- ("class: receipt", "class: recibo");
        "N1" Error at "match: word,": "`match: word`" / "`words`" <- ("match: words", "match: word");
    }
}

#[test]
fn names_in_scenarios_are_checked_too() {
    let table = [
        ("state: PAGOO", "unknown state `PAGOO`", "`PAGO`"),
        ("sent: [oi, lembrte]", "unknown message `lembrte`", "`lembrete`"),
        ("avoided: { t5h: paid }", "unknown touch or message `t5h`", "`t4h`"),
        ("avoided: { outra.t4h: paid }", "unknown touch or message `outra.t4h`", "known here"),
        ("avoided: { t4h: paid, lembrar.t15: too_late, oi: human_active }", "", ""),
    ];
    for (expect, message, fix) in table {
        let start = "2026-12-02T10:00:00-03:00";
        let file = format!("{GOOD}tests:\n  - {{ name: a, start: \"{start}\", steps: [], expect: {{ {expect} }} }}\n");
        let findings = load(&file, "pequeno.yaml").1;
        assert_eq!(findings.len(), usize::from(!message.is_empty()), "{expect}: {findings:?}");
        for finding in findings {
            assert_eq!((finding.code, finding.line), ("N1", line_of(&file, "name: a")));
            assert!(finding.message.contains(message) && finding.fix.contains(fix), "{finding}");
        }
    }
}

#[test]
fn what_other_yaml_tools_read_differently_is_refused() {
    planted! {
        "N2" Error at "on: x": "`on` is true or false" / "another word" <- ("class: reply, text: \"Oi!\"", "on: x, class: reply, text: a");
        "N2" Error at "08:00-20:00": "08:00-20:00 without quotes" / "\"08:00-20:00\"" <- ("states:", "calendar: { allowed: { all: 08:00-20:00 } }\nstates:");
        "N2" Error at "22:00": "22:00 without quotes" / "\"22:00\"" <- ("text: \"Oi!\"", "text: 22:00");
    }
}

#[test]
fn states_need_one_way_in_and_a_way_out() {
    planted! {
        "S1" Error at "ILHA": "nothing leads to state ILHA" / "to: ILHA" <- ("  FORA: {", "  ILHA: { final: true }\n  FORA: {");
        // Globals lead out of every state; that alone is no way on.
        "S2" Error at "BECO: {}": "nothing leads out of state BECO" / "final: true" <-
            ("  FORA: {", "  BECO: {}\n  FORA: {"), ("event: timeout, to: PERDIDO }", "event: timeout, to: BECO }\n  - { from: BECO, event: msg, to: BECO }");
        "S2" Error at "  NOVO: {": "has a deadline, and no row answers it" / "event: timeout" <- ("{ initial: true }", "{ initial: true, timeout: 2h }");
        "S3" Error at "": "no state is the initial one" / "initial: true" <- ("NOVO: { initial: true }", "NOVO: { initial: false }");
        "S3" Error at "PERDIDO: {": "NOVO, PERDIDO" / "one state" <- ("PERDIDO: {}", "PERDIDO: { initial: true }");
        "S3" Error at "PAGO: {": "final, and has a timeout" / "clock" <- ("PAGO: { final: true }", "PAGO: { final: true, timeout: 2h }");
        "S3" Error at "  PIX: {": "final, and cadence lembrar runs there" / "clock" <- ("PIX: {}", "PIX: { final: true }");
    }
}

#[test]
fn rows_that_never_get_their_turn_are_named() {
    planted! {
        "S4" Warning at "event: msg, to: NOVO": "never matches: an earlier row covers it" / "move it up" <-
            ("  - { from: PIX, event: timeout", "  - { from: PERDIDO, event: msg, to: NOVO }\n  - { from: PIX, event: timeout");
        "S4" Warning at "event: msg, to: PERDIDO": "never matches in NOVO" / "move it up" <-
            ("  - { from: PIX, event: timeout", "  - { from: [NOVO, PIX], event: msg, to: PERDIDO }\n  - { from: PIX, event: timeout");
        "S4" Warning at "from: NOVO, event: pago": "an earlier row covers it" / "move it up" <-
            ("  - { from: PIX, event: timeout", "  - { from: NOVO, event: pago, to: PERDIDO }\n  - { from: PIX, event: timeout");
        "S4" Warning at "from: NOVO, event: timeout": "never matches in NOVO: no clock runs there" / "timeout: { after: 2h }` at NOVO" <-
            ("  - { from: PIX, event: timeout", "  - { from: NOVO, event: timeout, to: PERDIDO }\n  - { from: PIX, event: timeout");
        "S4" Warning at "[PIX, NOVO]": "`regua_esgotada` never matches in NOVO" / "add NOVO to `runs_in`" <-
            ("from: PIX, event: regua", "from: [PIX, NOVO], event: regua");
    }
}

#[test]
fn what_is_declared_and_unused_is_named() {
    planted! {
        "S5" Warning at "boleto": "no row answers `boleto`" / "take the word out" <- ("  pix: pix.created", "  pix: pix.created\n  boleto: boleto.created");
        "S5" Warning at "emit: humano": "no row answers `humano`" / "add a row" <-
            ("states:", "    - { emit: humano, match: words, any: [atendente] }\nstates:");
        "S5" Warning at "  outra:": "nothing arms cadence outra" / "start_cadence: outra" <-
            ("messages:", "  outra: { cancel_on: [pago], touches: [{ id: a, at: 1h, send: lembrete }] }\nmessages:");
        "V4" Warning at "  sobra:": "nothing sends the message `sobra`" / "take it out" <- ("  tchau:", "  sobra: { class: reply, text: a }\n  tchau:");
        "Y3" Warning at "lembrar:": "`starts_with` of cadence lembrar has no effect" / "start_cadence: lembrar" <- ("    runs_in: [PIX]", "    runs_in: [PIX]\n    starts_with: boleto.created");
    }
}

#[test]
fn clocks_must_not_contradict_each_other() {
    planted! {
        "T1" Error at "  PIX: {": "shorter than cadence lembrar" / "10h10m" <-
            ("PIX: {}", "PIX: { timeout: { after: 5h } }"), ("event: timeout, to: PIX, do", "event: timeout, to: PERDIDO, do");
        "T2" Error at "CONVERSA: {": "jitter of state CONVERSA" / "at most 1h" <- ("jitter: 5m", "jitter: 61m");
        "T2" Error at "t15": "jitter of touch t15" / "at most 7m30s" <- ("jitter: 2m", "jitter: 8m");
        "T2" Error at "t4h": "touch t4h may fall due before touch t15" / "in order of time" <- ("at: 4h, jitter: 10m", "at: 15m");
        "T3" Warning at "t4h": "touch t15 may be as late as touch t4h" / "keep_latest" <- ("at: 4h", "at: 40m");
        "C6" Error at "start_cadence": "does not run in PERDIDO" / "add PERDIDO to `runs_in`" <-
            ("event: pix, to: PIX, do", "event: pix, to: PERDIDO, do"), ("event: timeout, to: PERDIDO }", "event: timeout, to: PIX }");
        "C7" Error at "t15, at: 4h": "two touches `t15`" / "id of its own" <- ("id: t4h", "id: t15");
        "C7" Error at "  outra:": "share the prefix `pix`" / "prefix" <-
            ("    runs_in: [PIX]", "    prefix: pix\n    runs_in: [PIX]"),
            ("messages:", "  outra: { prefix: pix, runs_in: [PIX], cancel_on: [pago], touches: [{ id: a, at: 1h, send: lembrete }] }\nmessages:"),
            ("[NOVO, CONVERSA, PERDIDO], event: pix, to: PIX, do: [start_cadence: lembrar] }",
             "[NOVO, CONVERSA], event: pix, to: PIX, do: [start_cadence: lembrar] }\n  - { from: PERDIDO, event: pix, to: PIX, do: [start_cadence: outra] }");
        "Q1" Error at "  allowed:": "no hour of the week" / "mon-fri" <- ("states:", "calendar:\n  allowed: { sun: [] }\nstates:");
    }
    // A pile-up rule of the file's own is an answer to T3.
    let file =
        plant(&[("at: 4h", "at: 40m"), ("    runs_in: [PIX]", "    runs_in: [PIX]\n    when_piled_up: keep_latest")]);
    assert_eq!(load(&file, "").1, []);
}

#[test]
fn a_circle_of_the_clock_that_sends_for_ever_is_refused() {
    planted! {
        // A deadline that answers itself.
        "L1" Error at "event: timeout, to: CONVERSA": "from CONVERSA the clock alone" / "without a clock" <-
            ("event: timeout, to: PERDIDO }", "event: timeout, to: CONVERSA, do: [send: lembrete] }"), ("event: regua_esgotada, to: PERDIDO", "event: regua_esgotada, to: FORA"),
            ("[NOVO, PERDIDO], event: msg", "[NOVO, PIX], event: msg"), ("  PERDIDO: {}\n", ""), ("[NOVO, CONVERSA, PERDIDO]", "[NOVO, CONVERSA]");
        // Two cadences that hand over to each other: the end of one arms it again.
        "L1" Error at "event: regua_esgotada, to: PIX": "from PIX the clock alone" / "without a clock" <-
            ("regua_esgotada, to: PERDIDO }", "regua_esgotada, to: PIX, do: [start_cadence: lembrar] }\n  - { from: PIX, event: msg, to: PERDIDO }");
    }
    // The touches of a cadence run out: `PIX timeout -> PIX` alone is no circle, and neither is a silent one.
    let file = plant(&[
        ("event: timeout, to: PERDIDO }", "event: timeout, to: CONVERSA }"),
        ("[NOVO, CONVERSA, PERDIDO]", "[CONVERSA, NOVO, PERDIDO]"),
    ]);
    assert_eq!(load(&file, "").1, []);
}

#[test]
fn silence_and_payment_are_never_left_to_chance() {
    planted! {
        "C1" Error at "  lembrar:": "goes on after the payment" / "payment.approved" <- ("[payment.approved]", "[payment.refunded]");
        "C2" Error at "event: parar, to": "no rule emits `parar`" / "opt_out: true" <-
            ("    - { emit: parar, opt_out: true, match: whole, any: [sair, parar] }\n", "    - { emit: preco, match: whole, any: [valor] }\n");
        "C2" Error at "": "nobody can ask for silence" / "opt_out: true" <-
            ("opt_out: true, ", ""), ("  - { event: parar, to: FORA, do: [send: tchau] }\n", "  - { event: parar, to: FORA, do: [send: oi] }\n"), ("class: optout_ack", "class: reply"), ("[NOVO, PERDIDO], event: msg, to: CONVERSA, do: [send: oi]", "[NOVO, PERDIDO], event: msg, to: CONVERSA, do: [send: tchau]");
        "C2" Error at "emit: parar": "in some states only" / "globals" <-
            ("  - { event: parar, to: FORA, do: [send: tchau] }\n", ""), ("  - { from: PIX, event: timeout", "  - { from: PIX, event: parar, to: FORA, do: [send: tchau] }\n  - { from: PIX, event: timeout");
        "C2" Error at "match: words, any: [sair": "`sair` anywhere in a sentence" / "match: whole" <-
            ("match: whole, any: [sair, parar]", "match: words, any: [sair, \"quero parar\"]");
        "C2" Error at "emit: preco, opt_out": "stands at two words, `parar` and `preco`" / "one word" <- ("emit: preco,", "emit: preco, opt_out: true,");
        "C3" Error at "match: regex": "unclosed group" / "regex syntax" <- ("match: words, any: [preco, \"quanto custa\"]", "match: regex, any: ['(preco']");
        "C3" Error at "match: regex": "without accents" / "without accents" <- ("match: words, any: [preco, \"quanto custa\"]", "match: regex, any: ['preço']");
        "C4" Warning at "emit: compra": "\"quanto custa?\" is both `preco` and `compra`" / "higher priority" <-
            ("states:", "    - { emit: compra, priority: 5, match: words, any: [custa] }\nstates:"),
            ("  - { from: PIX, event: timeout", "  - { from: CONVERSA, event: compra, to: PERDIDO }\n  - { from: PIX, event: timeout");
        "C1" Warning at "  outra:": "does not name `parar`" / "add parar" <-
            ("cancel_on: [payment.approved]", "cancel_on: [payment.approved, parar]"),
            ("messages:", "  outra: { runs_in: [PIX], cancel_on: [pago], touches: [{ id: a, at: 1h, send: lembrete }] }\nmessages:"),
            ("[NOVO, CONVERSA, PERDIDO], event: pix, to: PIX, do: [start_cadence: lembrar] }",
             "[NOVO, CONVERSA], event: pix, to: PIX, do: [start_cadence: lembrar] }\n  - { from: PERDIDO, event: pix, to: PIX, do: [start_cadence: outra] }");
        "C2" Error at "may_emit": "a model may propose `parar`" / "may_emit" <- ("classifier:\n", "classifier:\n  llm: { may_emit: [parar] }\n");
        "C2" Error at "event: parar, scope": "silences one sale only" / "scope: contact" <- ("event: parar, to: FORA", "event: parar, scope: cycle, to: FORA");
        "C2" Error at "event: parar, to": "silences one sale only" / "final: contact" <- ("FORA: { final: true }", "FORA: { final: cycle }");
        "C3" Error at "match: regex": "unbounded" / ".{0,30}" <- ("match: words, any: [preco, \"quanto custa\"]", "match: regex, any: ['quanto.*custa']");
        "C5" Error at "may_emit": "can never be `pago`" / "word of its own" <- ("classifier:\n", "classifier:\n  llm: { may_emit: [pago] }\n");
        "C5" Error at "emit: pago": "a message can never be `pago`" / "word of its own" <-
            ("states:", "    - { emit: pago, match: words, any: [\"ja paguei\"] }\nstates:");
    }
}

#[test]
fn a_state_without_a_clock_forgets_whoever_falls_silent_in_it() {
    planted! {
        "S2" Error at "CONVERSA: {}": "falls silent in state CONVERSA" / "timeout: { after: 48h }" <-
            ("{ timeout: { after: 2h, jitter: 5m } }", "{}"),
            ("  - { from: CONVERSA, event: timeout, to: PERDIDO }\n", "  - { from: CONVERSA, event: preco, to: PERDIDO }\n"),
            ("  - { from: CONVERSA, event: preco, to: CONVERSA, do: [send: oferta] }\n", "  - { from: PERDIDO, event: preco, to: CONVERSA, do: [send: oferta] }\n");
        "S2" Error at "  PIX: {}": "falls silent in state PIX" / "final: true" <-
            ("  - { from: PIX, event: regua_esgotada, to: PERDIDO }\n", "  - { from: PIX, event: msg, to: PERDIDO }\n");
    }
    // A deadline may name its state itself.
    let file = plant(&[
        ("{ timeout: { after: 2h, jitter: 5m } }", "{ timeout: { after: 2h, jitter: 5m, to: PERDIDO } }"),
        ("  - { from: CONVERSA, event: timeout, to: PERDIDO }\n", ""),
    ]);
    let (flow, findings) = load(&file, "");
    assert_eq!(findings, []);
    let flow = flow.unwrap();
    assert_eq!(flow.deadline_row("CONVERSA").and_then(|row| row.to.as_deref()), Some("PERDIDO"));
    assert!(flow.touch_row("CONVERSA").is_none(), "a touch that falls due does not end the state");
}

const CHANNEL: (&str, &str) = ("states:\n", "channels: { zap: { provider: whatsapp_cloud } }\nstates:\n");

// D6
#[test]
fn touches_outside_the_window_need_a_template_or_a_word() {
    planted! {
        "W2" Error at "t15": "counts from what is no message" / "`template`" <- CHANNEL, ("      - { id: t4h, at: 4h, jitter: 10m, send: lembrete }\n", "");
        "W1" Error at "t23h": "23h55m" / "window_closed: skip" <- CHANNEL,
            ("event: pix, to: PIX, do: [start_cadence: lembrar]", "event: preco, to: PIX, do: [start_cadence: lembrar]"), ("  pix: pix.created\n", ""),
            ("  - { from: CONVERSA, event: preco, to: CONVERSA, do: [send: oferta] }\n", "  - { from: CONVERSA, event: msg, to: CONVERSA, do: [send: oferta] }\n"),
            ("id: t4h, at: 4h, jitter: 10m", "id: t23h, at: 23h, max_late: 55m");
        "P1" Error at "zap: {": "before the provider can have sent it" / "total_timeout: 36s" <-
            ("states:\n", "channels:\n  zap: { send: { total_timeout: 20s, typing_delay: 31s } }\nstates:\n");
    }
    let skipping = ("states:\n", "channels: { zap: { provider: whatsapp_cloud, window_closed: skip } }\nstates:\n");
    assert_eq!(load(&plant(&[skipping]), "").1, []);
}

#[test]
fn more_than_the_caps_let_through_is_named() {
    planted! {
        "L3" Warning at "  lembrar:": "2 reminders within 1d, and only 1" / "`limits.frequency`" <-
            ("states:\n", "limits: { frequency: [{ max: 1, per: 24h }] }\nstates:\n");
    }
}

// C10
#[test]
fn two_robots_must_come_to_an_end() {
    planted! {
        "L2" Warning at "event: preco, to: CONVERSA": "from CONVERSA on `preco`" / "most: { max: 20, per: 10m }" <-
            ("inbound: { bot_loop_guard: { most: { max: 20, per: 10m } } }\n", "");
    }
}

// D10
#[test]
fn a_dead_code_is_never_sent_hours_later() {
    planted! {
        "V2" Error at "t4h": "touch t4h sends `pix.code` 4h after" / "{% if pix.code %}" <-
            ("      - { id: t15, at: 15m, jitter: 2m, send: lembrete }\n", ""),
            ("Falta pagar {{ offer.name }}", "Falta pagar {{ pix.code }}");
    }
    let table = [
        // One that can do without it, one that lives long enough, one that counts back from the end.
        [
            ("Falta pagar {{ offer.name }}", "{% if pix.code %}{{ pix.code }}{% else %}Oi{% endif %}"),
            ("states:\n", "states:\n"),
        ],
        [
            ("Falta pagar {{ offer.name }}", "{{ pix.code }}"),
            (
                "states:\n",
                "vars: { pix.code: { perishable: pix.expires_at, life: 24h }, order.total: { fallback: x } }\nstates:\n",
            ),
        ],
        [("Falta pagar {{ offer.name }}", "{{ pix.code }}"), ("at: 4h, jitter: 10m", "at: 5m, before: pix.expires_at")],
    ];
    for edits in table {
        assert_eq!(load(&plant(&edits), "").1, [], "{edits:?}");
    }
}

#[test]
fn declared_values_are_all_declared_and_none_is_left_open() {
    planted! {
        "V1" Error at "order.total: {}": "nobody gave `order.total`" / "`fallback`" <-
            ("states:\n", "vars:\n  order.total: {}\n  offer.name: { required: true }\nstates:\n");
        "V1" Error at "loja.cidade: {": "no source gives it" / "`source:`" <-
            ("states:\n", "vars:\n  loja.cidade: { required: true }\n  order.total: { fallback: x }\n  offer.name: { required: true }\nstates:\n");
        "V1" Error at "lembrete: { class": "`offer.name`, which lembrete asks for" / "`offer.nome`" <-
            ("states:\n", "vars: { offer.nome: { required: true }, order.total: { fallback: x } }\nstates:\n");
        "V3" Error at "oi: { class": "leads to pix.exemplo.net" / "loja.exemplo.com.br" <-
            ("states:\n", "vars: { checkout.url: { required: true, allow_hosts: [loja.exemplo.com.br] }, offer.name: { required: true }, order.total: { fallback: x } }\nstates:\n"),
            ("\"Oi!\"", "\"Oi! https://pix.exemplo.net/a e https://loja.exemplo.com.br/b\"");
    }
}

#[test]
fn a_touch_that_no_day_lets_through_is_named() {
    planted! {
        "Q1" Warning at "t4h": "outside the open hours on every weekday" / "longer `max_late`" <-
            ("states:\n", "calendar: { allowed: { all: \"08:00-12:00\" } }\nstates:\n"), ("at: 4h, jitter: 10m", "at: 5h, max_late: 1h");
    }
}

#[test]
fn messages_must_be_templates_over_known_values() {
    planted! {
        "V1" Error at "text: \"{{ contato.nome }}\"": "`contato.nome`" / "`contact`" <- ("\"Oi!\"", "\"{{ contato.nome }}\"");
        "V1" Error at "text: \"{{ nome }}\"": "`nome`" / "known here" <- ("\"Oi!\"", "\"{{ nome }}\"");
        "V5" Error at "text: \"{{ contact.first_name\"": "no template, in its line 1" / "close every" <- ("\"Oi!\"", "\"{{ contact.first_name\"");
        "Y2" Error at "text: \"\"": "is empty" / "write a text" <- ("\"Oi!\"", "\"\"");
    }
}
