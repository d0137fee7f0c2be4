//! The gate on the real binary: the template `gateway`, its examples, the command line, and what survives `kill -9`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(dead_code, reason = "the harness serves other tests, too")]

#[path = "harness/harness.rs"]
mod harness;

use std::path::PathBuf;
use std::time::Duration;

use harness::http::{self, Answer};
use harness::process::{Running, run};
use harness::{free_port, wait_until};
use serde_json::{Value, json};

struct Gateway {
    dir: tempfile::TempDir,
    port: u16,
    key: String,
}

impl Gateway {
    /// A setup of the template, and a key for n8n.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (code, out, err) = run(dir.path(), &["init", "porta", "--template", "gateway"], &[]);
        assert_eq!(code, Some(0), "{out}{err}");
        let mut gateway = Self { dir, port: free_port(), key: String::new() };
        let path = gateway.folder().join("retoma.toml");
        let config = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, config.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", gateway.port))).unwrap();
        let made = gateway.json(&["key", "create", "n8n", "--scope", "write"], 0);
        made["key"].as_str().unwrap().clone_into(&mut gateway.key);
        gateway
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("porta")
    }

    fn serve(&self) -> Running {
        Running::start("serve", &self.folder(), &["serve"], &[]).ready(self.port, "/healthz/ready")
    }

    #[track_caller]
    fn told(&self, args: &[&str], code: i32) -> String {
        let (ended, out, err) = run(&self.folder(), args, &[]);
        assert_eq!(ended, Some(code), "retoma {}: {out}{err}", args.join(" "));
        out
    }

    #[track_caller]
    fn json(&self, args: &[&str], code: i32) -> Value {
        let out = self.told(&[args, &["--json"]].concat(), code);
        serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap()
    }

    fn post(&self, call: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        http::post(self.port, &format!("/v1/gate/{call}"), &headers, body.as_bytes()).unwrap()
    }

    fn example(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder().join(format!("exemplos/{name}.json"))).unwrap()
    }
}

// B1-B6, FC-59, FC-63
#[test]
fn what_was_done_once_is_known_after_a_kill_and_told_by_the_command_line() {
    let gateway = Gateway::new();
    let mut server = gateway.serve();
    let claimed = gateway.post("cobranca/claim", &gateway.example("claim"));
    assert_eq!((claimed.status, &claimed.json()["outcome"]), (201, &json!("proceed")));
    assert_eq!(gateway.post("cobranca/claim", &gateway.example("claim")).status, 409);
    // The workflow waits; meanwhile the server dies without a goodbye. The turn is still its own.
    server.kill_9();
    let mut server = gateway.serve();
    assert_eq!(gateway.post("cobranca/claim", &gateway.example("claim")).status, 409);
    let token = claimed.json()["token"].as_str().unwrap().to_owned();
    let done = gateway.post("cobranca/complete", &gateway.example("complete").replace("COLE-O-TOKEN-DO-CLAIM", &token));
    assert_eq!((done.status, &done.json()["state"]), (200, &json!("DONE")));
    server.kill_9();

    // With and without a server, the same trail.
    let key = "pedido-10:cobrar:v1";
    let alone = gateway.json(&["gate", "show", "cobranca", key], 0);
    let server = gateway.serve();
    let again = gateway.post("cobranca/claim", &gateway.example("claim"));
    assert_eq!((again.status, &again.json()["result"]), (200, &json!({ "cobranca": "cob-1" })));
    let trail = gateway.json(&["gate", "show", "cobranca", key], 0);
    assert_eq!((&alone["duplicates"], &trail["duplicates"]), (&json!(2), &json!(3)));
    assert_eq!((&trail["executed_by"], &trail["attempts"][0]["caller"]), (&json!("execucao-1"), &json!("key:n8n")));
    let human = gateway.told(&["gate", "show", "cobranca", key], 0);
    for part in ["already_done", "in_progress", "execucao-1", "key:n8n"] {
        assert!(human.contains(part), "{part} is missing in\n{human}");
    }
    let scopes = gateway.told(&["gate", "list"], 0);
    assert!(scopes.contains("cobranca") && scopes.contains("planilha"), "{scopes}");
    assert!(gateway.told(&["gate", "list", "cobranca"], 0).contains(key));
    gateway.told(&["gate", "show", "cobranca", "nada"], 1);
    assert!(gateway.told(&["gate", "list", "--status", "done"], 0).contains(key));
    gateway.told(&["gate", "list", "--status", "doen"], 1);
    assert_eq!(
        gateway.json(&["db", "sql", "select count(*) from idempotency_keys where status = 'DONE'"], 0)["rows"][0][0],
        1
    );
    drop(server);
}

// B3, B5
#[test]
fn a_person_decides_about_who_fell_silent() {
    let gateway = Gateway::new();
    let server = gateway.serve();
    for key in ["pedido-11:cobrar:v1", "pedido-12:cobrar:v1"] {
        let claim = json!({ "key": key, "lease": "1s" }).to_string();
        assert_eq!(gateway.post("cobranca/claim", &claim).status, 201);
    }
    gateway.told(&["gate", "release", "cobranca", "nada"], 1);
    wait_until("the leases ran out", Duration::from_secs(20), || {
        let uncertain = gateway.json(&["gate", "list", "cobranca", "--status", "uncertain"], 0);
        uncertain["items"].as_array().unwrap().len() == 2
    });
    let claim = |key: &str| gateway.post("cobranca/claim", &json!({ "key": key }).to_string());
    let told = claim("pedido-11:cobrar:v1");
    assert_eq!((told.status, &told.json()["outcome"]), (409, &json!("uncertain")));
    let freed = gateway.json(&["gate", "release", "cobranca", "pedido-11:cobrar:v1", "--reason", "nada no extrato"], 0);
    assert_eq!(freed["next_claim"], "proceed");
    let again = claim("pedido-11:cobrar:v1");
    assert_eq!((again.status, &again.json()["previous_attempt"]), (201, &json!("released")));
    gateway.told(&["gate", "release", "cobranca", "pedido-12:cobrar:v1", "--done"], 0);
    assert_eq!(claim("pedido-12:cobrar:v1").json()["outcome"], "done");
    gateway.told(&["gate", "release", "cobranca", "pedido-12:cobrar:v1"], 1);
    assert!(gateway.told(&["audit", "list"], 0).contains("gate.release"));

    assert_eq!(gateway.post("cobranca/claim?always_ok=true", r#"{ "key": "" }"#).status, 200);
    let held = gateway.told(&["gate", "list", "cobranca", "--status", "held"], 0);
    assert!(held.contains("empty") && held.contains("key:n8n"), "{held}");
    drop(server);
}

/// The lines of the guide, in their order, with the status that stands behind each.
#[test]
fn the_guide_says_what_happens() {
    let gateway = Gateway::new();
    let server = gateway.serve();
    let guide = include_str!("../../../docs/guia/porta.md");
    let (mut token, mut lines) = (String::new(), 0);
    for line in guide.lines().filter_map(|line| line.trim().strip_prefix("curl -X POST \"$RETOMA/v1/gate/")) {
        let (call, rest) = line.split_once('"').unwrap();
        let (body, status) = rest.split_once("-d '").unwrap().1.split_once("'   # ").unwrap();
        let answer = gateway.post(call, &body.replace("'$TOKEN'", &token));
        assert_eq!(answer.status.to_string(), status, "{line}: {}", answer.text());
        if let Some(given) = answer.json()["token"].as_str() {
            given.clone_into(&mut token);
        }
        lines += 1;
    }
    assert_eq!(lines, 6, "the guide's lines were found");
    drop(server);
}
