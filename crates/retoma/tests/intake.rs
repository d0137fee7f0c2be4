//! Receiving on the real binary: a configured door of the Cloud API, what the operator is told that the sender is not, and
//! what a person does with events that wait for one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "harness/harness.rs"]
mod harness;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use harness::http;
use harness::process::{Running, run};
use harness::{free_port, wait_until};
use serde_json::{Value, json};

const SECRET: &str = "segredo-de-teste";
/// Non-ASCII and some ASCII escaped, as Meta writes and signs it.
const BODY: &str = r#"{"object":"whatsapp_business_account","entry":[{"id":"100000000000001","changes":[{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"554133330000","phone_number_id":"200000000000002"},"contacts":[{"profile":{"name":"Jo\u00e3o Teste"},"wa_id":"554199990001"}],"messages":[{"from":"554199990001","id":"wamid.TESTE0001","timestamp":"1790000000","text":{"body":"Ol\u00e1 \ud83d\ude00 fale com ana\u0040exemplo.test em https:\/\/exemplo.test"},"type":"text"}]},"field":"messages"}]}]}"#;
const RIGHT: &str = "sha256=d8496bcc8753a530a339bce4cabb661dc3d2b0cf67c272ce41a0ccf28d441f95";
/// Over the same JSON, parsed and written again.
const REWRITTEN: &str = "sha256=155f230b402ed55bc75db07a50c5b8f4a19e6a010500adb4a34d5db4f19dca13";

const SOURCES: &str = r#"
[sources.meta]
provider = "whatsapp_cloud"
secrets = [{ env = "NEW_SECRET" }, { env = "APP_SECRET" }]
verify_token = { env = "VERIFY" }
phone_number_id = "200000000000002"
flow = "vendas"
[sources.pedidos]
provider = "generic"
auth = { header = "X-Token", secret = { env = "APP_SECRET" } }
id = "$.id"
type = "$.event"
contact = "$.phone"
order = "$.order"
flow = "vendas"
"#;

const ENV: [(&str, &str); 3] = [("APP_SECRET", SECRET), ("NEW_SECRET", "o-proximo"), ("VERIFY", "confirma")];

struct Shop {
    dir: tempfile::TempDir,
    port: u16,
}

impl Shop {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (code, _, err) = run(dir.path(), &["init", "loja"], &[]);
        assert_eq!(code, Some(0), "{err}");
        let shop = Self { dir, port: free_port() };
        let path = shop.folder().join("retoma.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", shop.port));
        std::fs::write(&path, text.replace("127.0.0.1:8081", &format!("127.0.0.1:{}", free_port())) + SOURCES).unwrap();
        shop
    }

    /// With a platform that lists its orders on that port.
    fn listing(self, port: u16) -> Self {
        let path = self.folder().join("retoma.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("allow = [", &format!("allow = [\"127.0.0.1:{port}\", "));
        let list = format!(
            "[sources.pedidos.reconcile]\nurl = \"http://127.0.0.1:{port}/orders?since={{since}}\"\nitems = \"$.orders[*]\"\n\
             header = \"X-Key\"\nprefix = \"k \"\nsecret = {{ env = \"NEW_SECRET\" }}\n"
        );
        std::fs::write(&path, text + &list).unwrap();
        self
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("loja")
    }

    fn serve(&self) -> Running {
        Running::start("serve", &self.folder(), &["serve"], &ENV).ready(self.port, "/healthz/ready")
    }

    fn signed(&self, signature: &str) -> http::Answer {
        http::post(self.port, "/in/meta", &[("X-Hub-Signature-256", signature)], BODY.as_bytes()).unwrap()
    }

    /// An event without an id: a person must look at it.
    fn held(&self, order: &str) -> String {
        let body = json!({ "event": "pix.created", "phone": "5541999990001", "order": order });
        let answer = http::post(self.port, "/in/pedidos", &[("X-Token", SECRET)], body.to_string().as_bytes()).unwrap();
        assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("held")));
        answer.json()["event_id"].as_str().unwrap().to_owned()
    }

    /// Exit code, the object on the last line of stdout, and stderr.
    fn json(&self, args: &[&str]) -> (Option<i32>, Value, String) {
        let (code, out, err) = run(&self.folder(), &[args, &["--json"]].concat(), &ENV);
        let last = out.lines().last().map(|line| serde_json::from_str(line).unwrap()).unwrap_or_default();
        (code, last, err)
    }

    fn statuses(&self, ids: &[&String]) -> Vec<String> {
        let status = |id: &&String| self.json(&["event", "show", id]).1["status"].as_str().unwrap().to_owned();
        ids.iter().map(status).collect()
    }
}

// A3, FC-43, FC-80
#[test]
fn meta_proves_itself_and_only_the_operator_is_told_why_a_signature_failed() {
    let shop = Shop::new();
    let server = shop.serve();
    let ask = |token: &str| {
        let query = format!("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={token}");
        http::get(shop.port, &format!("/in/meta?{query}"), &[]).unwrap()
    };
    assert_eq!((ask("confirma").status, ask("confirma").text().as_str()), (200, "1158201444"));
    assert_eq!(ask("errado").status, 403);

    assert_eq!((shop.signed(RIGHT).status, shop.signed(RIGHT).json()["duplicate"].clone()), (200, json!(true)));
    let refused = shop.signed(REWRITTEN);
    assert_eq!(refused.status, 401);
    let why = "something parsed the JSON and wrote it again";
    assert!(!refused.text().contains(why) && !refused.text().contains("altered"), "{}", refused.text());
    let log = std::fs::read_to_string(&server.stderr).unwrap() + &std::fs::read_to_string(&server.stdout).unwrap();
    assert!(log.contains(why) && log.contains("query parameter hub.verify_token matches none"), "{log}");
    for private in [SECRET, "confirma&", "errado", "554199990001", "fale com", "155f230b"] {
        assert!(!log.contains(private), "the log says {private:?}:\n{log}");
    }
}

// A4, G2
#[test]
fn events_that_wait_for_a_person_are_released_discarded_and_replayed() {
    let shop = Shop::new();
    let _server = shop.serve();
    let held: Vec<String> = (0..5).map(|n| shop.held(&format!("P-{n}"))).collect();
    let (code, listed, _) = shop.json(&["event", "list", "--status", "held"]);
    assert_eq!((code, listed["items"].as_array().unwrap().len()), (Some(0), 5));

    let (code, released, err) = shop.json(&["event", "release", &held[0], "--reason", "conferido"]);
    assert_eq!((code, &released["id"], &released["status"]), (Some(0), &json!(held[0]), &json!("decided")), "{err}");
    let (code, _, err) = shop.json(&["event", "release", &held[0]]);
    assert!(code == Some(1) && err.contains("the event is decided"), "{err}");
    // One that cannot be moved holds up no other.
    let (code, some, err) = shop.json(&["event", "release", &held[0], &held[1]]);
    assert_eq!((code, some["items"].as_array().unwrap().len()), (Some(1), 1), "{err}");
    assert!(err.contains("1 of 2") && err.contains(&held[0]), "{err}");
    assert_eq!(shop.statuses(&[&held[1], &held[2]]), ["decided", "held"]);

    let (code, again, _) = shop.json(&["event", "replay", &held[0]]);
    assert_eq!((code, &again["status"]), (Some(0), &json!("decided")));
    let tasks = shop.json(&["task", "list", "--contact", "5541999990001"]).1;
    let of_first =
        tasks["items"].as_array().unwrap().iter().filter(|task| task["id"].as_str().unwrap().contains("P-0"));
    assert_eq!(of_first.count(), 3, "replayed, not repeated: {tasks}");

    let (code, one, _) = shop.json(&["event", "discard", &held[2], "--reason", "teste da loja"]);
    assert_eq!((code, &one["status"], &one["reason"]), (Some(0), &json!("discarded"), &json!("teste da loja")));
    let (code, none, _) = shop.json(&["event", "discard", "--status", "held", "--source", "outra"]);
    assert_eq!((code, &none["items"]), (Some(0), &json!([])));
    let (code, rest, _) = shop.json(&["event", "discard", "--status", "held", "--source", "pedidos", "--reason", "x"]);
    assert_eq!((code, rest["items"].as_array().unwrap().len()), (Some(0), 2));
    assert_eq!(shop.statuses(&[&held[3], &held[4]]), ["discarded", "discarded"]);
    assert_eq!(shop.json(&["event", "release"]).0, Some(2), "which?");
    let audit = run(&shop.folder(), &["audit", "list"], &ENV).1;
    for action in ["event.release", "event.discard", "event.replay"] {
        assert!(audit.contains(action), "{audit}");
    }
}

/// Answers one request on the listener with that list, and hands its head over.
fn list_once(listener: &TcpListener, list: &Value) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let body = list.to_string();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    String::from_utf8(head).unwrap()
}

// A11
#[test]
fn what_a_platform_lists_and_never_sent_is_brought_in_and_decided() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let shop = Shop::new().listing(listener.local_addr().unwrap().port());
    let order = json!({ "id": "e1", "event": "pix.created", "phone": "5541999990007", "order": "P-7" });
    let platform = std::thread::spawn(move || list_once(&listener, &json!({ "orders": [order] })));
    let server = shop.serve();
    let head = platform.join().unwrap().to_lowercase();
    assert!(head.starts_with("get /orders?since=20") && head.contains("x-key: k o-proximo"), "{head}");
    let tasks = || shop.json(&["task", "list", "--contact", "5541999990007"]);
    wait_until("the missing order is decided", Duration::from_secs(30), || {
        tasks().1["items"].as_array().is_some_and(|tasks| tasks.len() == 3)
    });
    let log = std::fs::read_to_string(&server.stderr).unwrap() + &std::fs::read_to_string(&server.stdout).unwrap();
    assert!(log.contains("had never arrived") && !log.contains("o-proximo"), "{log}");
}

/// A body of that many bytes in chunks, whose length nobody says before. Answers the status, or nothing where the connection
/// was closed on us while we wrote.
fn pour(port: u16, path: &str, headers: &str, byte: u8, mebibytes: usize) -> Option<u16> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [format!("{:x}\r\n", 64 << 10).into_bytes(), vec![byte; 64 << 10], b"\r\n".to_vec()].concat();
    for _ in 0..mebibytes * 16 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let _ = stream.write_all(b"0\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

// FC-52, never 7: fifty megabytes without a length, a hundred thousand brackets, strings of megabytes, from many at once and
// before anybody has proved who he is.
#[test]
fn hostile_bodies_cost_a_bounded_amount_of_memory() {
    let shop = Shop::new();
    let server = shop.serve();
    let before = server.peak_memory_mib();
    let (token, deep) = (format!("x-token: {SECRET}\r\n"), "[".repeat(100_000));
    std::thread::scope(|scope| {
        for n in 0..24 {
            let (token, deep, port) = (&token, &deep, shop.port);
            scope.spawn(move || match n % 4 {
                0 => assert!(matches!(pour(port, "/in/pedidos", token, b'a', 50), Some(413) | None)),
                1 => assert!(matches!(pour(port, "/in/pedidos", "", b'[', 50), Some(401 | 413) | None)),
                2 => {
                    let answer = http::post(port, "/in/pedidos", &[("X-Token", SECRET)], deep.as_bytes()).unwrap();
                    assert_eq!(answer.status, 400);
                }
                _ => {
                    let body = json!({ "id": format!("s{n}"), "event": "order.odd", "note": "x".repeat(3 << 20) });
                    let answer = http::post(port, "/in/pedidos", &[("X-Token", SECRET)], body.to_string().as_bytes());
                    assert_eq!(answer.unwrap().status, 202);
                }
            });
        }
    });
    let used = server.peak_memory_mib() - before;
    assert!(used < 150, "{used} MiB more for 24 hostile bodies, {} MiB of them poured", 12 * 50);
    let body = json!({ "id": "depois", "event": "pix.created", "phone": "5541999990001", "order": "P-9" });
    let answer = http::post(shop.port, "/in/pedidos", &[("X-Token", SECRET)], body.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 202, "the server lives");
}
