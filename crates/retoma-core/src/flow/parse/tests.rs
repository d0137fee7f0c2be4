use std::time::Duration;

use crate::event::EventKind;
use crate::flow::{Action, Calendar, Debounce, Flow, Frequency, Timeout, load};
use crate::task::{MessageClass, OnAmbiguous};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The least that a flow without states needs, with more keys before it.
fn stateless(more: &str) -> String {
    format!(
        "{more}\nflow: recuperacao\nclassifier: {{ rules: [{{ emit: parar, opt_out: true, match: whole, any: sair }}] }}\n\
         cadences: {{ pix: {{ starts_with: pix.created, cancel_on: [payment.approved], touches: [\n  \
         {{ id: a, at: 15m, send: lembrete }}, {{ id: b, at: 4h, send: lembrete }},\n  \
         {{ id: c, at: 20h, send: lembrete }}, {{ id: d, at: 50h, send: lembrete }}] }} }}\n\
         messages: {{ lembrete: {{ class: reminder, text: Oi }} }}\n"
    )
}

fn read(file: &str) -> Flow {
    match load(file, "recuperacao.yaml") {
        (Some(flow), findings) if findings.is_empty() => flow,
        (_, findings) => panic!("{findings:#?}"),
    }
}

#[test]
fn what_the_file_leaves_out_has_the_written_defaults() {
    // C5, C7, D5, D8.
    let flow = read(&stateless(""));
    assert_eq!(
        (flow.version, flow.locale.as_str(), flow.timezone.iana_name()),
        (1, "pt-BR", Some("America/Sao_Paulo"))
    );
    assert_eq!(flow.debounce, Debounce { quiet: Duration::from_secs(4), max_wait: Duration::from_secs(40) });
    let day = [(8 * 60, 23 * 60)];
    assert!(flow.calendar.allowed.iter().all(|hours| *hours == day), "quiet from 23:00 to 08:00: {:?}", flow.calendar);
    assert_eq!(flow.limits.frequency, [Frequency { max: 3, per: 24 * HOUR }, Frequency { max: 6, per: 7 * 24 * HOUR }]);
    assert_eq!((flow.limits.unanswered_automatic, flow.limits.receipts_after_opt_out), (8, true));
    assert_eq!(flow.limits.without_receipt, 3);
    let cadence = &flow.cadences["pix"];
    assert_eq!(cadence.prefix, "pix");
    assert_eq!(
        (cadence.starts_with, &cadence.cancel_on[..]),
        (Some(EventKind::PixCreated), &[EventKind::PaymentApproved][..])
    );
    assert_eq!((cadence.grace, cadence.wait_after_inbound, cadence.min_gap), (24 * HOUR, 45 * MINUTE, 30 * MINUTE));
    let lateness: Vec<Duration> = cadence.touches.iter().map(|touch| touch.max_late).collect();
    assert_eq!(lateness, [40 * MINUTE, 6 * HOUR, 26 * HOUR, 26 * HOUR]);
    assert!(cadence.touches.iter().all(|touch| touch.jitter.is_zero()), "what is not written is not drawn");
    assert_eq!(flow.messages["lembrete"].on_ambiguous, None);
    assert_eq!((flow.opt_out_word.as_deref(), flow.opt_in_word.as_deref()), (Some("parar"), None));
}

#[test]
fn what_the_file_says_is_what_the_flow_does() {
    let flow = read(
        r#"
flow: loja
schema: 1
version: 7
locale: en
timezone: { default: America/Manaus, from: [contact.timezone, phone.area_code] }
events: { msg: message.received, pago: payment.approved }
inbound: { debounce: { quiet: 8s, max_wait: 1m }, bot_loop_guard: { most: { max: 20, per: 10m } } }
classifier:
  rules:
    - { emit: chega, match: whole, any: chega }
    - { emit: volta, opt_in: true, match: whole, any: [volta], unless: ['nunca'] }
calendar: { allowed: { mon-fri: ["08:00-12:00", "14:00-18:00"], sab: "09:00-14:00" }, outside: defer, release_spread: 5m }
limits: { frequency: [{ max: 1, per: 2d }], unanswered_automatic: 3, without_receipt: 0, receipts_after_opt_out: false }
states:
  NOVO: { initial: true, timeout: { after: 1h30m, jitter: 2m } }
  A: { timeout: 6m }
  FIM: { final: true }
globals:
  - { event: pago, except: [FIM], to: FIM }
  - { event: chega, to: FIM, do: { send: tchau } }
transitions:
  - from: [NOVO]
    event: timeout
    to: A
    do:
      - send: oi
      - call: n8n
      - notify: dono
      - start_cadence: lembrar
      - cancel_cadence: lembrar
  - { from: A, event: timeout, to: FIM }
  - { from: A, event: msg, do: [send: oi] }
cadences:
  lembrar:
    prefix: l
    runs_in: A
    cancel_on: [pago, chega]
    grace: 1h
    wait_after_inbound: 10m
    min_gap: 5m
    when_piled_up: keep_latest
    touches: [{ id: t1, at: 0s, jitter: 30s, max_late: 1m, send: oi }]
messages:
  oi: { class: reminder, on_ambiguous: hold, text: "Oi\n\n" }
  tchau: { class: optout_ack, text: Tchau }
"#,
    );
    assert_eq!((flow.name.as_str(), flow.version, flow.locale.as_str()), ("loja", 7, "en"));
    assert_eq!(flow.timezone.iana_name(), Some("America/Manaus"));
    assert_eq!(flow.debounce, Debounce { quiet: Duration::from_secs(8), max_wait: MINUTE });
    assert_eq!(flow.opt_out_word.as_deref(), Some("chega"), "the global row that sends an optout_ack says so");
    assert_eq!(flow.opt_in_word.as_deref(), Some("volta"));
    let Calendar { allowed, release_spread } = &flow.calendar;
    assert_eq!(*release_spread, 5 * MINUTE);
    assert!(allowed[..5].iter().all(|day| *day == [(480, 720), (840, 1080)]), "{allowed:?}");
    assert_eq!((&allowed[5][..], &allowed[6][..]), (&[(540, 840)][..], &[][..]), "days that are not named are closed");
    assert_eq!(flow.limits.frequency, [Frequency { max: 1, per: 48 * HOUR }]);
    assert_eq!((flow.limits.unanswered_automatic, flow.limits.receipts_after_opt_out), (3, false));
    assert_eq!(flow.limits.without_receipt, 0);
    assert_eq!(flow.initial, "NOVO");
    assert_eq!(flow.states["NOVO"].timeout, Some(Timeout { after: 90 * MINUTE, jitter: 2 * MINUTE }));
    assert_eq!(
        flow.states["A"].timeout,
        Some(Timeout { after: 6 * MINUTE, jitter: 3 * MINUTE }),
        "at most half by default"
    );
    assert_eq!(
        flow.transitions[0].actions,
        [
            Action::Send("oi".into()),
            Action::Call("n8n".into()),
            Action::Notify("dono".into()),
            Action::StartCadence("lembrar".into()),
            Action::CancelCadence("lembrar".into()),
        ]
    );
    assert_eq!((flow.transitions[2].to.as_deref(), flow.globals[0].except.as_slice()), (None, &["FIM".to_owned()][..]));
    let cadence = &flow.cadences["lembrar"];
    assert_eq!((cadence.prefix.as_str(), &cadence.cancel_on[..]), ("l", &[EventKind::PaymentApproved][..]));
    assert_eq!((cadence.grace, cadence.wait_after_inbound, cadence.min_gap), (HOUR, 10 * MINUTE, 5 * MINUTE));
    let message = &flow.messages["oi"];
    assert_eq!(
        (message.class, message.text.as_str(), message.on_ambiguous),
        (MessageClass::Reminder, "Oi", Some(OnAmbiguous::Hold))
    );
}

#[test]
fn hours_are_joined_cut_and_carried_over_midnight() {
    // FC-53.
    let everyday = |hours: &[(u16, u16)]| vec![hours.to_vec(); 7];
    let mut sunday_quiet = everyday(&[(480, 1260)]);
    sunday_quiet[6] = vec![];
    let mut night = vec![vec![]; 7];
    (night[0], night[1]) = (vec![(1320, 1440)], vec![(0, 120)]);
    let mut over_sunday = vec![vec![]; 7];
    (over_sunday[6], over_sunday[0]) = (vec![(1320, 1440)], vec![(0, 120)]);
    let table = [
        ("quiet: [\"21:00-08:00\"]", everyday(&[(480, 1260)])),
        ("quiet: \"12:00-13:00\"", everyday(&[(0, 720), (780, 1440)])),
        ("quiet: [\"21:00-08:00\", \"12:00-13:00\"]", everyday(&[(480, 720), (780, 1260)])),
        ("quiet: []", everyday(&[(0, 1440)])),
        // Two equal times mean no time at all.
        ("quiet: [\"22:00-22:00\"]", everyday(&[(0, 1440)])),
        ("allowed: { all: \"00:00-24:00\" }", everyday(&[(0, 1440)])),
        ("allowed: { mon-sat: \"00:00-24:00\" }\n  quiet: \"21:00-08:00\"", sunday_quiet),
        ("allowed: { mon: \"22:00-02:00\" }", night),
        ("allowed: { dom: \"22:00-02:00\" }", over_sunday),
        ("allowed: { sat-mon: [\"10:00-12:00\", \"11:00-13:00\"] }", {
            let mut days = vec![vec![]; 7];
            for day in [5, 6, 0] {
                days[day] = vec![(600, 780)];
            }
            days
        }),
    ];
    for (calendar, expected) in table {
        let (flow, findings) = load(&stateless(&format!("calendar:\n  {calendar}")), "");
        // With a single open night a touch may miss it (Q1); the hours are read all the same.
        assert!(findings.iter().all(|finding| finding.code == "Q1"), "{calendar}: {findings:?}");
        let flow = flow.unwrap_or_else(|| panic!("{calendar}: {findings:?}"));
        assert_eq!(flow.calendar.allowed.to_vec(), expected, "{calendar}");
    }
}

#[test]
fn values_that_cannot_be_meant_are_refused_with_line_and_fix() {
    let table = [
        ("schema: 2", "version of the file format", "schema: 1"),
        ("version: 0", "`version` is 0", "1 or more"),
        ("version: um", "`version` must be a whole number, not text", "a whole number"),
        ("timezone: Brasil", "unknown time zone `Brasil`", "America/Sao_Paulo"),
        ("timezone: { from: [contact.zone] }", "source of a time zone `contact.zone`", "contact.timezone"),
        ("inbound: { debounce: { quiet: 50s, max_wait: 10s } }", "shorter than `quiet`", "longer"),
        ("inbound: { debounce: { quiet: 4 } }", "\"4\" is not a duration", "ms, s, m, h or d"),
        ("inbound: [debounce]", "`inbound` must be a map of keys, not a list", "a map of keys"),
        ("calendar: { allowed: { lun: \"08:00-20:00\" } }", "weekday `lun`", "sun"),
        ("calendar: { allowed: { mon: \"8h-20h\" } }", "hours are written from and to", "\"08:00-20:00\""),
        ("calendar: { allowed: { mon: \"08:00-25:00\" } }", "hours are written from and to", "\"08:00-20:00\""),
        ("calendar: { outside: skip }", "`outside` can only be defer", "defer"),
        ("limits: { frequency: [{ max: 3, per: 8d }] }", "at most 7d", "7d"),
        ("limits: { frequency: [{ max: -1, per: 1d }] }", "`max` is -1", "0 or more"),
        ("limits: { receipts_after_opt_out: talvez }", "must be true or false", "true or false"),
        ("events: { timeout: pix.created }", "the clock's own word", "another word"),
        ("events: { a: pix.created, b: pix.created }", "`a` and `b` are both pix.created", "one word"),
        ("globals: [{ event: timeout, do: [oi] }]", "verb with a name", "send: NAME"),
        ("transitions: [{ event: timeout, to: A }]", "names no state", "`globals`"),
        ("states: { A: { initial: sim } }", "must be true or false", "true or false"),
    ];
    for (mistake, message, fix) in table {
        let (flow, findings) = load(&stateless(&format!("\n{mistake}")), "recuperacao.yaml");
        assert!(flow.is_none(), "{mistake}");
        let finding = &findings[0];
        let told = format!("{mistake}: {findings:#?}");
        assert!(finding.is_error() && finding.line == 2 && finding.file == "recuperacao.yaml", "{told}");
        assert!(finding.message.contains(message) && finding.fix.contains(fix), "{told}");
    }
}

#[test]
fn broken_pieces_of_cadences_and_messages_are_refused() {
    let table = [
        ("id: a, at: 15m", "id: a", "the touch has no `at`"),
        ("id: a, at: 15m", "id: a b, at: 15m", "\"a b\" is no name"),
        ("id: a, at: 15m", "id: a, at: 15m, max_late: 10s", "never sent"),
        ("starts_with: pix.created,", "starts_with: pix.created, when_piled_up: send_all,", "can only be keep_latest"),
        ("starts_with: pix.created,", "starts_with: pix.created, prefix: \"a:b\",", "leave the colon out"),
        ("class: reminder, text: Oi", "class: reminder", "message lembrete has no `text`"),
        ("class: reminder, text: Oi", "text: Oi", "message lembrete has no `class`"),
        ("class: reminder, text: Oi", "class: reminder, text: [a, b]", "`text` must be text, not a list"),
        (
            "class: reminder, text: Oi",
            "class: reminder, text: Oi, on_ambiguous: resend",
            "unknown `on_ambiguous: resend`",
        ),
        ("any: sair", "any: []", "the rule has no pattern"),
        ("flow: recuperacao\n", "", "the file has no `flow`"),
    ];
    for (old, new, expected) in table {
        let file = stateless("").replacen(old, new, 1);
        let (flow, findings) = load(&file, "");
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(flow.is_none() && told.iter().any(|line| line.contains(expected)), "{new}: {told:#?}");
    }
}

#[test]
fn keys_without_effect_say_so_and_do_not_stop_the_flow() {
    let table = [
        ("starts_with: pix.created,", "starts_with: pix.created, anchor: order.paid_at,", "`anchor`"),
        ("class: reminder,", "class: reminder, template: { name: lembrete_1 },", "`template`"),
        ("flow: rec", "timezone: { from: [phone.area_code] }\nflow: rec", "`from` has no effect"),
    ];
    for (old, new, expected) in table {
        let (flow, findings) = load(&stateless("").replacen(old, new, 1), "");
        assert!(flow.is_some(), "{findings:?}");
        let found: Vec<_> = findings.iter().map(|finding| (finding.code, finding.message.contains(expected))).collect();
        assert_eq!(found, [("Y3", true)], "{new}: {findings:?}");
    }
}

// D4, D10, C8, C10
#[test]
fn guards_takeovers_and_touches_before_an_expiry_are_read() {
    let cadence =
        "starts_with: pix.created, revalidate: { payment: { ask: loja, timeout: 2s, on_error: retry_in 4m } },";
    let head = "takeover: { auto_end: 90m }\ninbound: { bot_loop_guard: { times: 3, reply_under: 1s } }\nflow: rec";
    let file = stateless("").replacen("starts_with: pix.created,", cadence, 1).replacen("flow: rec", head, 1);
    let (flow, findings) = load(&file, "");
    let flow = flow.unwrap_or_else(|| panic!("{findings:?}"));
    let revalidate = flow.cadences.values().next().and_then(|cadence| cadence.revalidate.clone()).unwrap();
    let seconds = |count| Duration::from_secs(count);
    assert_eq!((revalidate.ask.as_str(), revalidate.max_age), ("loja", seconds(60)));
    assert_eq!((revalidate.timeout, revalidate.retry_in), (seconds(2), seconds(240)));
    assert_eq!((flow.takeover.auto_end, flow.loop_guard.times), (seconds(5400), 3));
    for wrong in ["on_error: send", "on_error: retry_in nada"] {
        let (flow, findings) = load(&file.replace("on_error: retry_in 4m", wrong), "");
        assert!(flow.is_none() && findings.iter().any(|finding| finding.code == "Y2"), "{wrong}: {findings:?}");
    }
}

#[test]
fn a_file_that_is_no_yaml_names_the_line() {
    let table = [
        ("flow: a\nflow: b\n", 2),
        ("flow: a\n  b: c\n", 2),
        ("flow: 'a\n", 1),
        ("- a\n", 1),
        ("", 0),
        ("flow: !x {}\n", 1),
    ];
    for (file, line) in table {
        let (flow, findings) = load(file, "f.yaml");
        assert!(flow.is_none(), "{file:?}");
        assert!(findings.iter().any(|finding| finding.line.abs_diff(line) <= 1), "{file:?}: {findings:?}");
    }
    let deep = "[".repeat(10_000);
    assert_eq!(load(&deep, "").1[0].code, "Y1");
}

#[test]
fn one_run_reports_every_mistake() {
    let file = stateless("locale: [x]\nversion: -1\ncadenses: 1").replace("at: 4h", "at: 4x");
    let lines: Vec<_> = load(&file, "").1.iter().map(|finding| (finding.line, finding.code)).collect();
    assert_eq!(lines, [(1, "Y2"), (2, "Y2"), (3, "N1"), (7, "Y2")]);
}

#[test]
fn json_is_read_too() {
    let flow = read(
        r#"{"flow": "j", "classifier": {"rules": [{"emit": "p", "opt_out": true, "match": "whole", "any": ["sair"]}]},
            "cadences": {"c": {"starts_with": "pix.created", "cancel_on": ["payment.approved"],
            "touches": [{"id": "a", "at": "1h", "send": "m"}]}}, "messages": {"m": {"class": "reminder", "text": "Oi"}}}"#,
    );
    assert_eq!(flow.cadences["c"].touches[0].at, HOUR);
}
