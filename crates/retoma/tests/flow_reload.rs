//! A flow that changes under a running shop (C15, M1), on the real binary: what fits takes effect, what is broken or would
//! strand somebody changes nothing, and what took effect is on record.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(dead_code, reason = "the harness serves other tests, too")]

#[path = "harness/harness.rs"]
mod harness;

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::process::{Running, run};
use harness::{free_port, http, wait_until};
use serde_json::{Value, json};

const FLOW: &str = r#"
flow: vendas
schema: 1
version: 1
timezone: America/Sao_Paulo
events: { msg_recebida: message.received, pix_gerado: pix.created, pagamento_aprovado: payment.approved }
classifier: { rules: [{ emit: pediu_parar, opt_out: true, priority: 100, match: whole, any: [sair] }] }
states:
  NOVO: { initial: true }
  ESPERA: { timeout: { after: 20h } }
  PERDIDO: { timeout: { after: 900h } }
  PAGO: { final: true }
  FORA: { final: true }
globals:
  - { event: pagamento_aprovado, to: PAGO }
  - { event: pediu_parar, to: FORA, do: [send: saida] }
transitions:
  - { from: [NOVO, ESPERA, PERDIDO], event: pix_gerado, to: ESPERA }
  - { from: NOVO, event: msg_recebida, to: NOVO }
  - { from: ESPERA, event: timeout, to: PERDIDO }
  - { from: PERDIDO, event: timeout, to: PERDIDO }
messages:
  saida: { class: optout_ack, text: "ok" }
"#;

const SOURCE: &str = r#"
[sources.pedidos]
provider = "generic"
auth = { header = "X-Token", secret = { env = "TOKEN" } }
id = "$.id"
type = "$.event"
contact = "$.phone"
order = "$.order"
flow = "vendas"
"#;

const ENV: [(&str, &str); 1] = [("TOKEN", "segredo-de-teste")];

struct Shop {
    _dir: tempfile::TempDir,
    folder: PathBuf,
    port: u16,
}

impl Shop {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (code, out, err) = run(dir.path(), &["init", "loja"], &[]);
        assert_eq!(code, Some(0), "{out}{err}");
        let shop = Self { folder: dir.path().join("loja"), _dir: dir, port: free_port() };
        let path = shop.folder.join("retoma.toml");
        let text =
            std::fs::read_to_string(&path).unwrap().replace("127.0.0.1:8080", &format!("127.0.0.1:{}", shop.port));
        std::fs::write(&path, text.replace("127.0.0.1:8081", &format!("127.0.0.1:{}", free_port())) + SOURCE).unwrap();
        shop.flow(FLOW);
        shop
    }

    fn flow(&self, text: &str) {
        std::fs::write(self.folder.join("flows/vendas.yaml"), text).unwrap();
    }

    fn serve(&self) -> Running {
        Running::start("serve", &self.folder, &["serve"], &ENV).ready(self.port, "/healthz/ready")
    }

    /// A fact about an order of this buyer, decided when this returns.
    fn tell(&self, id: &str, event: &str, phone: &str) {
        let body = json!({ "id": id, "event": event, "phone": phone, "order": format!("P-{phone}") }).to_string();
        let headers = [("X-Token", "segredo-de-teste"), ("Content-Type", "application/json")];
        let answer = http::post(self.port, "/in/pedidos", &headers, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(&answer.body));
        wait_until("the event is decided", Duration::from_secs(20), || {
            let events = self.json(&["event", "list"], 0);
            events["items"].as_array().unwrap().iter().all(|event| event["status"] != "received")
        });
    }

    fn state(&self, phone: &str) -> String {
        let shown = self.json(&["contact", "show", phone], 0);
        shown["conversations"][0]["state"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn json(&self, args: &[&str], code: i32) -> Value {
        json_of(&self.folder, args, code)
    }
}

#[track_caller]
fn json_of(folder: &Path, args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let (ended, out, err) = run(folder, &args, &ENV);
    assert_eq!(ended, Some(code), "{args:?}: {out}{err}");
    serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap_or_else(|_| panic!("{args:?}: {out}"))
}

/// The flow with its waiting state under another name.
fn renamed() -> String {
    FLOW.replace("ESPERA", "AGUARDA").replace("version: 1", "version: 2")
}

fn with_map() -> String {
    renamed().replace("timezone:", "migrate: { ESPERA: AGUARDA }\ntimezone:")
}

// C15, M1
#[test]
fn a_reload_takes_effect_whole_or_not_at_all() {
    let shop = Shop::new();
    let mut server = shop.serve();
    shop.tell("e1", "pix.created", "5541999990001");
    assert_eq!(shop.state("5541999990001"), "ESPERA");
    assert_eq!(shop.json(&["flow", "list"], 0)["items"][0]["live"], json!({ "ESPERA": 1 }));

    // Broken: the mistake is named, and what ran runs on.
    shop.flow(&FLOW.replace("to: PERDIDO }", "to: PERDIDA }"));
    let (code, _, err) = run(&shop.folder, &["flow", "reload"], &ENV);
    assert!(code == Some(1) && err.contains("vendas.yaml:") && err.contains("PERDIDO"), "{err}");
    shop.tell("e2", "pix.created", "5541999990002");
    assert_eq!(shop.state("5541999990002"), "ESPERA");

    // Whoever waits would be stranded: counted before, refused at the reload, by signal too.
    shop.flow(&renamed());
    let found = shop.json(&["check", "--against-running"], 1);
    let error = &found["errors"][0];
    assert_eq!(error["code"], "M1", "{found}");
    assert!(error["message"].as_str().unwrap().starts_with("2 live conversation(s) stand in state ESPERA"), "{found}");
    let (code, _, err) = run(&shop.folder, &["flow", "reload"], &ENV);
    assert!(code == Some(1) && err.contains("M1") && err.contains("migrate"), "{err}");
    server.hang_up();
    wait_until("the refusal is told", Duration::from_secs(20), || {
        let last = shop.json(&["flow", "list"], 0)["last_reload"].clone();
        last["by"] == "SIGHUP" && last["ok"] == false && last["errors"][0]["code"] == "M1"
    });
    shop.tell("e3", "pix.created", "5541999990003");
    assert_eq!(shop.state("5541999990003"), "ESPERA");

    // With a map they go where it says, when they are next looked at, and the log says so.
    shop.flow(&with_map());
    assert_eq!(shop.json(&["check", "--against-running"], 0)["errors"], json!([]));
    server.hang_up();
    wait_until("the new version runs", Duration::from_secs(20), || {
        shop.json(&["flow", "list"], 0)["items"][0]["version"] == 2
    });
    shop.tell("e4", "pix.created", "5541999990004");
    assert_eq!(shop.state("5541999990004"), "AGUARDA");
    shop.tell("e5", "payment.approved", "5541999990001");
    assert_eq!(shop.state("5541999990001"), "PAGO");
    let rows = shop.json(&["db", "sql", "SELECT de, evento, para FROM transicoes WHERE contato = '5541999990001'"], 0);
    let rows = rows["rows"].to_string();
    assert!(rows.contains(r#"["ESPERA","flow.changed","AGUARDA"]"#), "{rows}");
    assert!(rows.contains(r#"["AGUARDA","pagamento_aprovado","PAGO"]"#), "{rows}");

    let history = shop.json(&["flow", "history", "vendas"], 0);
    let versions: Vec<&Value> = history["items"].as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(versions, [2, 1]);
    assert_eq!(history["items"][0]["text"], with_map());
    assert!(server.stop(Duration::from_secs(30)).success());
}

// C15: errors stop start-up, with a way out; nothing of the database is touched.
#[test]
fn a_start_that_would_strand_somebody_says_whom_and_how_to_mend_it() {
    let shop = Shop::new();
    let mut server = shop.serve();
    shop.tell("e1", "pix.created", "5541999990001");
    assert!(server.stop(Duration::from_secs(30)).success());
    shop.flow(&renamed());
    let found = shop.json(&["check", "--against-running"], 1);
    assert_eq!(found["errors"][0]["code"], "M1", "{found}");
    let (code, _, err) = run(&shop.folder, &["serve"], &ENV);
    assert!(code == Some(2) && err.contains("1 live conversation(s) stand in state ESPERA"), "{err}");
    let (code, _, err) = run(&shop.folder, &["flow", "reload"], &ENV);
    assert!(code == Some(2) && err.contains("no server runs"), "{err}");
    shop.flow(&with_map());
    let mut server = shop.serve();
    shop.tell("e2", "payment.approved", "5541999990001");
    assert_eq!(shop.state("5541999990001"), "PAGO");
    assert!(server.stop(Duration::from_secs(30)).success());
}
