use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

fn jid(text: &str) -> Identity {
    Identity::from_jid(text).unwrap()
}

fn lookup(identities: &[Identity]) -> Lookup<'_> {
    Lookup { identities, from: at(-5), to: at(90), spelling: 0, page: 1 }
}

fn record(id: &str, jid: &str, from_me: bool, text: &str, seconds: i64) -> Value {
    json!({
        "id": "cmtest0000000000000000001",
        "key": {"id": id, "fromMe": from_me, "remoteJid": jid},
        "messageType": "conversation",
        "message": {"conversation": text},
        "messageTimestamp": 1_790_000_000 + seconds,
        "MessageUpdate": [{"status": "SERVER_ACK"}],
    })
}

fn answer(records: &[Value], pages: u32) -> Vec<u8> {
    let body = json!({"messages": {"total": records.len(), "pages": pages, "currentPage": 1, "records": records}});
    body.to_string().into_bytes()
}

fn body_of(request: &WireRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

// whatsapp-providers 2.7
#[test]
fn the_question_names_both_spellings_and_both_ends_of_the_time() {
    let identities = [jid("5541999990001@s.whatsapp.net"), jid("200000000000014@lid")];
    let key = Secret(b"SECRET-80-A".to_vec());
    let ask = |spelling| request("http://e/", "loja a", &key, &Lookup { spelling, page: 2, ..lookup(&identities) });
    let first = ask(0).unwrap();
    assert_eq!(first.url, "http://e/chat/findMessages/loja%20a");
    assert_eq!(first.headers["apikey"], "SECRET-80-A");
    let body = body_of(&first);
    assert_eq!(body["where"]["key"]["remoteJid"], "5541999990001@s.whatsapp.net");
    assert_eq!(body["where"]["key"]["remoteJidAlt"], "554199990001@s.whatsapp.net");
    assert_eq!(body["where"]["messageTimestamp"]["gte"], at(-5).to_string());
    assert_eq!(body["where"]["messageTimestamp"]["lte"], at(90).to_string());
    assert_eq!((&body["page"], &body["offset"]), (&json!(2), &json!(PAGE)));
    assert_eq!(body_of(&ask(1).unwrap())["where"]["key"]["remoteJid"], "200000000000014@lid");
    assert!(ask(2).is_none());
    assert!(request("http://e", "a", &key, &lookup(&[Identity::email("a@example.com").unwrap()])).is_none());
}

#[test]
fn nothing_of_the_answer_is_believed_before_recipient_and_direction_are_looked_at() {
    let ana = [jid("5541999990001@s.whatsapp.net"), jid("200000000000014@lid")];
    let records = [
        record("OTHER", "5541999990002@s.whatsapp.net", true, "Oi", 1),
        record("THEIRS", "5541999990001@s.whatsapp.net", false, "Oi", 1),
        record("SHORT", "554199990001@s.whatsapp.net", true, "Oi", 1),
        record("LID", "200000000000014@lid", true, "Oi", 2),
        record("GROUP", "5541999990001-1@g.us", true, "Oi", 1),
        record("PHOTO", "5541999990001@s.whatsapp.net", true, " ", 1),
    ];
    let seen = read(&lookup(&ana), &answer(&records, 1), at(100)).unwrap();
    let shape: Vec<_> = seen.sightings.iter().map(|seen| (seen.message_id.as_str(), seen.said.is_some())).collect();
    assert_eq!(shape, [("SHORT", true), ("LID", true), ("PHOTO", false)]);
    assert_eq!((seen.records, seen.more), (6, false));
    assert_eq!(seen.sightings[0].at, at(1));
}

#[test]
fn pages_are_read_until_they_reach_back_far_enough() {
    let ana = [jid("5541999990001@s.whatsapp.net")];
    let more = |seconds| {
        let records = [record("X", "5541999990002@s.whatsapp.net", true, "Oi", seconds)];
        read(&lookup(&ana), &answer(&records, 9), at(100)).unwrap().more
    };
    assert!(more(50), "filters are ignored, and what we look for may stand behind");
    assert!(!more(-6));
    assert!(!read(&Lookup { page: 9, ..lookup(&ana) }, &answer(&[], 9), at(100)).unwrap().more);
}

#[test]
fn an_answer_that_is_none_says_so() {
    let ana = [jid("5541999990001@s.whatsapp.net")];
    for body in ["", "<html>", r#"{"messages":{"records":[{"#, r#"{"messages":{}}"#, r#"{"error":true}"#] {
        assert!(read(&lookup(&ana), body.as_bytes(), at(0)).is_err(), "{body}");
    }
    // Older versions answer with the bare list.
    let bare = json!([record("A", "5541999990001@s.whatsapp.net", true, "Oi", 1)]).to_string();
    assert_eq!(read(&lookup(&ana), bare.as_bytes(), at(0)).unwrap().sightings.len(), 1);
}
