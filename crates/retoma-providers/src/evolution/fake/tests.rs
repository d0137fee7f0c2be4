use std::collections::BTreeMap;

use retoma_core::identity::Identity;
use retoma_core::ids::TaskId;
use retoma_core::outcome::Outcome;

use super::*;
use crate::inbound::shown::{request, source};
use crate::inbound::{PartEntry, Provider, Secret};
use crate::outbound::{Channel, ChannelKind, Outbound, Outgoing, WireEnd, WireRequest};

const KEY: &str = "SECRET-80-A";

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_100).unwrap()
}

fn fake(faults: Faults) -> Fake {
    faults.check().unwrap();
    Fake::new("loja-a", KEY, faults, 7)
}

fn channel() -> Channel {
    Channel {
        name: "zap".into(),
        tenant: "default".into(),
        kind: ChannelKind::Evolution {
            base_url: "http://fake".into(),
            instance: "loja-a".into(),
            api_key: Secret(KEY.as_bytes().to_vec()),
        },
        on_ambiguous: None,
        deadline: Duration::from_secs(30),
        concurrency: 1,
        rate: None,
        pair_every: None,
    }
}

fn wire(number: &str, text: &str) -> WireRequest {
    channel()
        .request(&Outgoing {
            other_spelling: false,
            task: &TaskId::new("t"),
            attempt: 1,
            identities: &[Identity::from_jid(&format!("{number}@s.whatsapp.net")).unwrap()],
            text,
            message: "m",
            vars: &BTreeMap::new(),
            unix_seconds: 0,
        })
        .unwrap()
}

fn post(fake: &mut Fake, request: &WireRequest) -> FakeAnswer {
    let path = request.url.strip_prefix("http://fake").unwrap();
    fake.handle(now(), "POST", path, &request.headers, &request.body)
}

/// Sends as the deliverer would, and judges what comes back.
fn send(fake: &mut Fake, number: &str, text: &str) -> (FakeAnswer, Outcome) {
    let answer = post(fake, &wire(number, text));
    let end = match answer.drop {
        Some(Drop::Hang) => WireEnd::NoAnswer { what: "timeout".into() },
        Some(Drop::Reset) => WireEnd::NoAnswer { what: "reset".into() },
        None => WireEnd::Answer { status: answer.status, headers: HeaderMap::new(), body: answer.body.clone() },
    };
    let outcome = channel().judge(&end, Timestamp::UNIX_EPOCH).outcome;
    (answer, outcome)
}

fn webhooks(answer: &FakeAnswer) -> Vec<(Duration, Value)> {
    answer
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Webhook { after, body } => Some((*after, serde_json::from_slice(body).unwrap())),
            Effect::Delivered(_) => None,
        })
        .collect()
}

#[test]
fn a_send_is_accepted_delivered_echoed_and_receipted() {
    let mut fake = fake(Faults::default());
    let (answer, outcome) = send(&mut fake, "5541999990001", "Olá");
    assert_eq!((outcome, answer.status), (Outcome::Accepted, 201));
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    // WhatsApp spells the number its own way.
    assert_eq!(body["key"]["remoteJid"], "554199990001@s.whatsapp.net");
    let id = body["key"]["id"].as_str().unwrap();
    assert_eq!(
        fake.delivered(),
        [Delivered { at: now(), to: "5541999990001".into(), text: "Olá".into(), id: id.into() }]
    );
    let said: Vec<_> = webhooks(&answer)
        .into_iter()
        .map(|(after, body)| (after.as_millis(), body["event"].to_string(), body["data"]["status"].to_string()))
        .collect();
    let row = |after, event: &str, status: &str| (after, format!("\"{event}\""), format!("\"{status}\""));
    assert_eq!(
        said,
        [
            row(0, "send.message", "PENDING"),
            row(200, "messages.update", "SERVER_ACK"),
            row(400, "messages.update", "DELIVERY_ACK"),
            row(600, "messages.update", "READ"),
        ]
    );
}

#[test]
fn its_webhooks_are_read_as_echo_and_receipts_of_that_message() {
    let mut fake = fake(Faults::default());
    let (answer, _) = send(&mut fake, "5541999990001", "Olá");
    let id = fake.delivered()[0].id.clone();
    let read: Vec<_> = webhooks(&answer)
        .into_iter()
        .flat_map(|(_, body)| source(Provider::Evolution).read(&request(body.to_string())).unwrap())
        .map(|part| {
            assert!(matches!(part.entry, PartEntry::Ignored("own_echo" | "receipt")));
            assert_eq!(part.data.message_id.as_ref(), Some(&id));
            part.receipt.unwrap().status
        })
        .collect();
    assert_eq!(read, ["accepted", "sent", "delivered", "read"]);
}

#[test]
fn every_fault_looks_to_the_deliverer_as_it_should() {
    // FC-32, FC-70, FC-78: fault, outcome, delivered, stored.
    let cases = [
        (Fault::None, Outcome::Accepted, true, true),
        (Fault::Slow, Outcome::Accepted, true, true),
        (Fault::Sent400, Outcome::Ambiguous, true, false),
        (Fault::Sent500, Outcome::Ambiguous, true, false),
        (Fault::HangSent, Outcome::Ambiguous, true, true),
        (Fault::HangUnsent, Outcome::Ambiguous, false, false),
        (Fault::ResetSent, Outcome::Ambiguous, true, true),
        (Fault::ResetUnsent, Outcome::Ambiguous, false, false),
        (Fault::NoId, Outcome::Ambiguous, true, true),
        (Fault::Closed400, Outcome::Ambiguous, false, false),
        (Fault::Closed500, Outcome::Transient, false, false),
        (Fault::TooMany, Outcome::RateNumber, false, false),
        (Fault::Unauthorized, Outcome::Credentials, false, false),
        (Fault::NotOnWhatsapp, Outcome::Recipient, false, false),
        (Fault::Proxy502, Outcome::Ambiguous, true, true),
        (Fault::Stored400, Outcome::Ambiguous, true, true),
        (Fault::NeverArrives, Outcome::Accepted, false, false),
    ];
    assert_eq!(cases.map(|case| case.0), Fault::ALL);
    for (fault, expected, delivered, stored) in cases {
        let mut fake = fake(Faults { chances: BTreeMap::from([(fault, 1.0)]), ..Faults::default() });
        let (answer, outcome) = send(&mut fake, "5541999990001", "Olá");
        assert_eq!(outcome, expected, "{fault:?}");
        assert_eq!(fake.delivered().len(), usize::from(delivered), "{fault:?}");
        let expected = if fault == Fault::Stored400 { 3 } else { 4 };
        assert_eq!(webhooks(&answer).len(), if stored { expected } else { 0 }, "{fault:?}");
        assert_eq!(fault.delivers(), delivered);
        assert_eq!(fault.is_ambiguous(), outcome == Outcome::Ambiguous, "{fault:?}");
        assert_eq!(answer.after, Duration::from_millis(if fault == Fault::Slow { 5_000 } else { 0 }));
        assert_eq!(answer.retry_after, (fault == Fault::TooMany).then_some(2));
    }
}

#[test]
fn numbers_meet_their_faults_by_their_last_digits() {
    let mut fake = fake(Faults::by_number());
    for (number, outcome) in [
        ("5541999990001", Outcome::Accepted),
        ("5541999999902", Outcome::Ambiguous),
        ("554199999912", Outcome::Credentials),
        ("5541999999913", Outcome::Recipient),
    ] {
        assert_eq!(send(&mut fake, number, "Olá").1, outcome, "{number}");
    }
}

#[test]
fn guards_and_validations_answer_in_the_real_ones_order_and_shape() {
    let mut fake = fake(Faults::default());
    let mut key = HeaderMap::new();
    key.insert("apikey", KEY.parse().unwrap());
    let none = HeaderMap::new();
    let cases = [
        ("GET", "/", &none, "", 200, json!(null)),
        ("POST", "/message/sendText/outra", &none, "{}", 404, json!(["The \"outra\" instance does not exist"])),
        ("POST", "/message/sendText/loja-a", &none, "{}", 401, json!("Unauthorized")),
        (
            "POST",
            "/message/sendText/loja-a?x=1",
            &key,
            "{}",
            400,
            json!([["instance requires property \"number\"", "instance requires property \"text\""]]),
        ),
        ("POST", "/message/sendText/loja-a", &key, r#"{"number":"1","text":""}"#, 400, json!(["Text is required"])),
        ("POST", "/message/sendTexto/loja-a", &key, "{}", 404, json!(["Cannot POST /message/sendTexto/loja-a"])),
        ("GET", "/message/sendText/loja-a", &key, "", 404, json!(["Cannot GET /message/sendText/loja-a"])),
        ("GET", "/instance/connectionState/loja%2Da", &key, "", 200, json!(null)),
    ];
    for (method, path, headers, body, status, message) in cases {
        let answer = fake.handle(now(), method, path, headers, body.as_bytes());
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &body["response"]["message"]), (status, &message), "{method} {path}");
    }
    assert!(fake.delivered().is_empty());
}

#[test]
fn a_delay_blocks_the_call() {
    let mut fake = fake(Faults { latency_ms: 30, ..Faults::default() });
    let request = wire("5541999990001", "Olá");
    let body = br#"{"number":"5541999990001","text":"oi","delay":31000}"#;
    let answer = fake.handle(now(), "POST", "/message/sendText/loja-a", &request.headers, body);
    assert_eq!(answer.after, Duration::from_millis(31_030));
    assert_eq!(webhooks(&answer)[0].0, Duration::from_millis(31_000));
}

#[test]
fn too_many_sends_in_a_second_are_answered_429() {
    // FC-57.
    let mut fake = fake(Faults { rate_per_s: Some(2), ..Faults::default() });
    let outcomes: Vec<_> = (0..4).map(|_| send(&mut fake, "5541999990001", "Olá").1).collect();
    assert_eq!(outcomes, [Outcome::Accepted, Outcome::Accepted, Outcome::RateNumber, Outcome::RateNumber]);
    let later = now() + jiff::SignedDuration::from_secs(1);
    let request = wire("5541999990001", "Olá");
    assert_eq!(fake.handle(later, "POST", "/message/sendText/loja-a", &request.headers, &request.body).status, 201);
}

#[test]
fn find_messages_ignores_filters_unless_told_otherwise_and_pages_newest_first() {
    let find = |fake: &mut Fake, body: &Value| -> Vec<String> {
        let headers = wire("5541999990001", "x").headers;
        let answer = fake.handle(now(), "POST", "/chat/findMessages/loja-a", &headers, body.to_string().as_bytes());
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let records = body["messages"]["records"].as_array().unwrap().clone();
        records.iter().map(|record| record["message"]["conversation"].as_str().unwrap().to_owned()).collect()
    };
    let only_first = json!({"where": {"key": {"remoteJid": "554199990001@s.whatsapp.net", "fromMe": true}}});
    for (ignores, expected) in [(true, vec!["b", "a"]), (false, vec!["a"])] {
        let mut fake = fake(Faults { find_ignores_filters: ignores, ..Faults::default() });
        send(&mut fake, "5541999990001", "a");
        send(&mut fake, "5541999990002", "b");
        assert_eq!(find(&mut fake, &only_first), expected);
        assert_eq!(find(&mut fake, &json!({"page": 2, "offset": 1})), ["a"]);
    }
    let mut lying = fake(Faults { chances: BTreeMap::from([(Fault::Sent400, 1.0)]), ..Faults::default() });
    send(&mut lying, "5541999990001", "a");
    assert!(find(&mut lying, &json!({})).is_empty(), "what could not be stored cannot be found");
}

#[test]
fn whatsapp_numbers_tells_the_canonical_spelling() {
    let mut fake = fake(Faults::by_number());
    let headers = wire("5541999990001", "x").headers;
    let body = br#"{"numbers":["5541999990001","5511999990001","5541333300001","5541999999913"]}"#;
    let answer = fake.handle(now(), "POST", "/chat/whatsappNumbers/loja-a", &headers, body);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let found: Vec<_> =
        body.as_array().unwrap().iter().map(|n| (n["jid"].as_str().unwrap(), n["exists"] == true)).collect();
    assert_eq!(
        found,
        [
            ("554199990001@s.whatsapp.net", true),
            ("5511999990001@s.whatsapp.net", true),
            ("5541333300001@s.whatsapp.net", true),
            ("554199999913@s.whatsapp.net", false),
        ]
    );
}

#[test]
fn the_same_seed_gives_the_same_run_and_webhooks_repeat_or_overtake_if_asked() {
    let faults = Faults {
        chances: BTreeMap::from([(Fault::Sent400, 0.3), (Fault::HangSent, 0.2)]),
        duplicates: 0.5,
        out_of_order: true,
        ..Faults::default()
    };
    let run = |seed| {
        let mut fake = Fake::new("loja-a", KEY, faults.clone(), seed);
        let answers: Vec<_> = (0..50).map(|_| format!("{:?}", post(&mut fake, &wire("5541999990001", "oi")))).collect();
        answers
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let mut fake = Fake::new("loja-a", KEY, Faults { duplicates: 1.0, ..faults.clone() }, 3);
    let answers: Vec<_> = (0..50).map(|_| post(&mut fake, &wire("5541999990001", "oi"))).collect();
    assert!(answers.iter().any(|answer| webhooks(answer).len() == 8));
    let overtaken = answers.iter().any(|answer| webhooks(answer).windows(2).any(|pair| pair[1].0 < pair[0].0));
    assert!(overtaken);
}

#[test]
fn knobs_are_plain_data() {
    let faults: Faults = serde_json::from_str(
        r#"{"chances":{"sent400":0.1,"hang_sent":0.05},"numbers":{"07":"reset_sent"},"duplicates":0.2}"#,
    )
    .unwrap();
    assert_eq!(faults.chances[&Fault::HangSent], 0.05);
    assert_eq!(faults.numbers["07"], Fault::ResetSent);
    assert!(faults.check().is_ok());
    for broken in [
        r#"{"chances":{"sent400":1.5}}"#,
        r#"{"chances":{"sent400":0.6,"sent500":0.6}}"#,
        r#"{"duplicates":-1}"#,
        r#"{"numbers":{"x":"slow"}}"#,
    ] {
        assert!(serde_json::from_str::<Faults>(broken).unwrap().check().is_err(), "{broken}");
    }
    assert!(serde_json::from_str::<Faults>(r#"{"tipo":1}"#).is_err());
    assert_eq!("hang_sent".parse(), Ok(Fault::HangSent));
    assert!("pendura".parse::<Fault>().unwrap_err().contains("\"hang_sent\""));
}

fn events(answer: &FakeAnswer) -> Vec<String> {
    let name = |body: &Value| match body["data"]["status"].as_str() {
        Some(status) if body["event"] == "messages.update" => status.to_owned(),
        _ => body["event"].as_str().unwrap().to_owned(),
    };
    webhooks(answer).iter().map(|(_, body)| name(body)).collect()
}

// whatsapp-providers 6: echoes first, never; receipts backwards; both webhooks; searches that lie.
#[test]
fn every_knob_does_what_its_help_says() {
    let run = |faults: Faults| send(&mut fake(faults), "5541999990001", "oi").0;
    let first = run(Faults { echo_first: true, ..Faults::default() });
    assert!(webhooks(&first).iter().all(|(after, _)| *after < first.after), "every webhook overtakes the answer");
    assert_eq!(events(&run(Faults { echoes: false, receipts: false, ..Faults::default() })), [""; 0]);
    let backwards = run(Faults { receipts_backwards: true, ..Faults::default() });
    assert_eq!(events(&backwards), ["send.message", "READ", "DELIVERY_ACK", "SERVER_ACK"]);
    assert_eq!(events(&run(Faults { both_webhooks: true, ..Faults::default() })).len(), 8);
    assert_eq!(run(Faults { only_spelling: Some(Spelling::Short), ..Faults::default() }).status, 400);
    assert_eq!(run(Faults { only_spelling: Some(Spelling::Long), ..Faults::default() }).status, 201);
    let headers = wire("5541999990001", "x").headers;
    for (faults, status, found) in [
        (Faults { find_nothing: true, ..Faults::default() }, 200, 0),
        (Faults { find_fails: true, ..Faults::default() }, 500, 0),
        (Faults::default(), 200, 1),
    ] {
        let mut fake = fake(faults);
        send(&mut fake, "5541999990001", "oi");
        let answer = fake.handle(now(), "POST", "/chat/findMessages/loja-a", &headers, b"{}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, status);
        assert_eq!(body["messages"]["records"].as_array().map_or(0, Vec::len), found);
    }
}

#[test]
fn hidden_chats_are_named_as_each_version_does_and_read_as_one_person_where_that_is_possible() {
    let phone = Identity::from_jid("554199990001@s.whatsapp.net").unwrap();
    for (lid, knows_phone, in_update) in [
        (Lid::None, true, "554199990001@s.whatsapp.net"),
        (Lid::Only, false, "2100099991455@lid"),
        (Lid::SenderPn, true, "2100099991455@lid"),
        (Lid::Alt, true, "2100099991455@lid"),
        (Lid::Overwritten, true, "554199990001@s.whatsapp.net"),
    ] {
        let mut fake = fake(Faults { lid, ..Faults::default() });
        let (answer, _) = send(&mut fake, "5541999990001", "oi");
        let update = &webhooks(&answer)[1].1;
        assert_eq!(update["data"]["remoteJid"], in_update, "{lid:?}");
        let said = fake.customer_says(now(), "5541999990001", "oi");
        let parts = source(Provider::Evolution).read(&request(String::from_utf8(said.to_vec()).unwrap())).unwrap();
        let known = parts[0].identities.iter().any(|identity| identity.match_key == phone.match_key);
        assert_eq!(known, knows_phone, "{lid:?}");
    }
}

#[test]
fn people_write_and_the_connection_comes_and_goes_on_request() {
    let mut fake = fake(Faults::default());
    let read = |body: Bytes| {
        source(Provider::Evolution).read(&request(String::from_utf8(body.to_vec()).unwrap())).unwrap().remove(0)
    };
    let said = read(fake.customer_says(now(), "5541999990001", "quanto custa?"));
    assert_eq!((said.kind.as_str(), said.data.text.as_deref()), ("message.received", Some("quanto custa?")));
    let typed = read(fake.owner_types(now(), "5541999990001", "deixa comigo"));
    assert_eq!(typed.kind.as_str(), "message.human");
    assert_eq!(read(fake.connection(now(), "close")).kind.as_str(), "channel.disconnected");
    assert_eq!(read(fake.connection(now(), "open")).kind.as_str(), "channel.connected");
}
