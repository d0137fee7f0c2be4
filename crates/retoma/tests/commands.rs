//! The command line on the real binary: a fresh setup from `init` to an empty plan, exit codes, the same answers with and
//! without a running server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "harness/harness.rs"]
mod harness;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::http::{self, Answer};
use harness::process::{Running, run};
use harness::{free_port, wait_until};
use serde_json::Value;

const PHONE: &str = "5541999990001";

/// A setup as `init` writes it, on a port of its own.
struct Loja {
    dir: tempfile::TempDir,
    port: u16,
}

impl Loja {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (code, out, err) = run(dir.path(), &["init", "loja"], &[]);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("retoma serve") && out.contains("retoma contact plan"), "it says what comes next: {out}");
        let loja = Self { dir, port: free_port() };
        // Ports of its own, and nobody listening where the provider should be.
        let (here, provider) = (format!("127.0.0.1:{}", loja.port), format!("127.0.0.1:{}", free_port()));
        loja.rewrite(|config| config.replace("127.0.0.1:8080", &here).replace("127.0.0.1:8081", &provider));
        loja
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("loja")
    }

    fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let path = self.folder().join("retoma.toml");
        std::fs::write(&path, change(std::fs::read_to_string(&path).unwrap())).unwrap();
    }

    fn serve(&self) -> Running {
        Running::start("serve", &self.folder(), &["serve"], &[]).ready(self.port, "/healthz/ready")
    }

    /// Runs a command that must do its work, and answers what it printed.
    #[track_caller]
    fn told(&self, args: &[&str]) -> String {
        let (code, out, err) = run(&self.folder(), args, &[]);
        assert_eq!(code, Some(0), "retoma {}: {out}{err}", args.join(" "));
        out
    }

    /// The same with `--json`: the last line is one object.
    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let out = self.told(&[args, &["--json"]].concat());
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }

    /// Sends an example of the setup through a door.
    fn hook(&self, source: &str, header: &str, secret: &str, example: &str) -> Answer {
        let read = |path: &str| std::fs::read_to_string(self.folder().join(path)).unwrap();
        let secret = read(&format!("secrets/{secret}"));
        let body = read(&format!("exemplos/{example}.json"));
        http::post(self.port, &format!("/in/{source}"), &[(header, secret.trim())], body.as_bytes()).unwrap()
    }

    fn pix(&self) -> Answer {
        self.hook("hotmart", "X-HOTMART-HOTTOK", "hottok", "pix")
    }
}

fn items(value: &Value) -> &Vec<Value> {
    value["items"].as_array().unwrap()
}

#[test]
fn a_fresh_setup_leads_from_init_to_an_empty_plan_with_reasons() {
    let loja = Loja::new();
    let secrets = std::fs::metadata(loja.folder().join("secrets/hottok")).unwrap().permissions().mode();
    assert_eq!(secrets & 0o777, 0o600);
    assert_eq!(loja.json(&["check"]), serde_json::json!({ "errors": [], "warnings": [] }));
    let tested = loja.json(&["test"]);
    assert!(tested["passed"].as_u64().unwrap() >= 12 && tested["failed"] == 0, "{tested}");
    assert_eq!(loja.json(&["classify", "vendas", "SAIR."])["opt_out"], true);
    assert!(loja.told(&["graph", "vendas"]).starts_with("stateDiagram-v2"));
    assert!(loja.told(&["graph", "vendas", "--format", "dot"]).starts_with("digraph \"vendas\" {"));
    std::fs::write(loja.folder().join("pix.yaml"), "- { at: 0s, event: pix.created, order: A1 }\n").unwrap();
    let story = loja.json(&["simulate", "vendas", "--events", "pix.yaml"]);
    assert_eq!(story[0]["states"], serde_json::json!(["PERDIDO"]), "{story}");
    assert_eq!(story[0]["sent"].as_array().map(Vec::len), Some(3), "{story}");

    let mut server = loja.serve();
    let local = loja.folder().join("retoma.db.local.json");
    assert_eq!(std::fs::metadata(&local).unwrap().permissions().mode() & 0o777, 0o600);
    let first = loja.pix();
    assert_eq!((first.status, &first.json()["status"]), (200, &serde_json::json!("received")));
    assert_eq!(loja.pix().json()["duplicate"], true);

    let plan = loja.json(&["contact", "plan", PHONE]);
    let messages: Vec<&str> = items(&plan).iter().map(|item| item["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["lembrete_pix", "proximo_toque", "proximo_toque"], "{plan}");
    let human = loja.told(&["contact", "plan", "(41) 99999-0001"]);
    assert!(human.contains("lembrete_pix") && human.contains("-03"), "{human}");

    let said = loja.hook("zap", "x-hook-secret", "evolution-hook", "mensagem");
    assert_eq!(said.status, 200);
    wait_until("the answer is promised", Duration::from_secs(30), || {
        items(&loja.json(&["task", "list", "--contact", PHONE])).iter().any(|task| task["message"] == "reenviar_pix")
    });

    assert_eq!(loja.hook("hotmart", "X-HOTMART-HOTTOK", "hottok", "pagamento").status, 200);
    let plan = loja.json(&["contact", "plan", PHONE]);
    assert!(items(&plan).iter().all(|item| item["message"] == "entregar_acesso"), "{plan}");
    let human = loja.told(&["contact", "plan", PHONE]);
    assert_eq!(
        human.matches("cancelled (paid)").count(),
        4,
        "three touches and the answer, each with its reason: {human}"
    );
    let story = loja.told(&["contact", "why", PHONE]);
    for part in [
        "pix.created through hotmart",
        "AGUARDANDO_PIX -> PAGO",
        "promised lembrete_pix",
        "cancelled lembrete_pix: paid",
    ] {
        assert!(story.contains(part), "{part} is missing in\n{story}");
    }

    let status = server.stop(Duration::from_secs(30));
    assert!(status.success(), "{status}\n{}", server.tail());
    assert!(!local.exists(), "the local file goes with the server");
}

#[test]
fn answers_are_the_same_with_and_without_a_server_and_after_a_kill() {
    let loja = Loja::new();
    let mut server = loja.serve();
    loja.pix();
    let questions: [&[&str]; 6] = [
        &["contact", "show", PHONE],
        &["task", "list"],
        &["event", "list"],
        &["dead", "list"],
        &["db", "sql", "select tarefa_id, motivo, toque, status from tarefas order by 1"],
        &["key", "list"],
    ];
    // Once every door has answered, nothing moves any more: the touches are for later.
    loja.json(&["contact", "plan", PHONE]);
    let served: Vec<Value> = questions.iter().map(|args| loja.json(args)).collect();
    assert_eq!(items(&served[1]).len(), 3);
    // No goodbye: the local file still names the dead server.
    server.kill_9();
    assert!(loja.folder().join("retoma.db.local.json").exists());
    for (args, answer) in questions.iter().zip(served) {
        assert_eq!(loja.json(args), answer, "{args:?}");
    }

    // Orders work without a server, too, and are decided on the spot.
    let paused = loja.json(&["contact", "pause", PHONE, "--until", "18:00", "--reason", "vou atender"]);
    assert_eq!((&paused["event"]["status"], paused["paused_until"].is_string()), (&serde_json::json!("decided"), true));
    let cancelled = loja.json(&["task", "cancel", "--reference", "HP0000000001"]);
    assert_eq!(cancelled["cancelled"], 3);
    assert!(loja.told(&["audit", "list"]).contains("operator.pause"));
}

/// C11, H2: linking, exporting and forgetting a person, with a server and without one.
#[test]
fn two_contacts_are_linked_exported_and_forgotten() {
    const OTHER: &str = "5541999990088";
    let loja = Loja::new();
    let server = loja.serve();
    assert_eq!(loja.pix().status, 200);
    let example = loja.folder().join("exemplos/pix.json");
    let body = std::fs::read_to_string(&example).unwrap();
    let shop: Value = serde_json::from_str(&body).unwrap();
    let (phone, mail) =
        (shop["data"]["buyer"]["checkout_phone"].to_string(), shop["data"]["buyer"]["email"].to_string());
    let transaction = shop["data"]["purchase"]["transaction"].to_string();
    let other = body
        .replace(phone.trim_matches('"'), &OTHER[2..])
        .replace(mail.trim_matches('"'), "outra@example.com")
        .replace(transaction.trim_matches('"'), "HP0000000088")
        .replace(shop["id"].as_str().unwrap(), "evento-88");
    std::fs::write(loja.folder().join("exemplos/outra.json"), other).unwrap();
    assert_eq!(loja.hook("hotmart", "X-HOTMART-HOTTOK", "hottok", "outra").status, 200);
    assert_ne!(loja.json(&["contact", "show", PHONE])["id"], loja.json(&["contact", "show", OTHER])["id"]);

    let linked = loja.json(&["contact", "link", PHONE, "--with", OTHER, "--reason", "same buyer"]);
    assert_eq!(linked["conversations"].as_array().unwrap().len(), 1, "{linked}");
    assert_eq!(linked["id"], loja.json(&["contact", "show", OTHER])["id"]);
    assert_eq!(items(&loja.json(&["contact", "plan", OTHER])).len(), 3, "one sale is one cadence");
    let export = loja.json(&["contact", "export", PHONE]);
    assert!(export["timeline"].as_array().is_some_and(|story| story.len() > 3), "{export}");
    assert_eq!(export["tasks"].as_array().map(Vec::len), Some(6), "those that ended, too");

    drop(server);
    let (code, _, err) = run(&loja.folder(), &["contact", "erase", PHONE], &[]);
    assert_eq!(code, Some(2), "it asks for a yes: {err}");
    let gone = loja.json(&["contact", "erase", PHONE, "--yes"]);
    assert_eq!((&gone["identities"], &gone["conversations"]), (&Value::Array(vec![]), &Value::Array(vec![])), "{gone}");
    for phone in [PHONE, OTHER] {
        assert_eq!(run(&loja.folder(), &["contact", "show", phone], &[]).0, Some(1), "nobody has {phone} any more");
    }
}

#[test]
fn a_second_server_on_the_same_database_is_refused() {
    let loja = Loja::new();
    let _server = loja.serve();
    let other = std::fs::read_to_string(loja.folder().join("retoma.toml")).unwrap();
    let other = other.replace(&format!("127.0.0.1:{}", loja.port), &format!("127.0.0.1:{}", free_port()));
    std::fs::write(loja.folder().join("other.toml"), other).unwrap();
    let (code, _, err) = run(&loja.folder(), &["serve", "--config", "other.toml"], &[]);
    assert_eq!(code, Some(1));
    assert!(err.contains("in use by another process"), "{err}");
    assert!(loja.told(&["event", "list"]).contains("no events"), "the first one goes on");
}

#[test]
fn a_key_opens_the_api_as_far_as_its_scope_until_it_is_revoked() {
    let loja = Loja::new();
    let key = loja.json(&["key", "create", "n8n", "--scope", "write"]);
    let _server = loja.serve();
    let bearer = format!("Bearer {}", key["key"].as_str().unwrap());
    let ask = |path: &str| http::get(loja.port, path, &[("authorization", &bearer)]).unwrap().status;
    assert_eq!((ask("/v1/events"), ask("/v1/keys")), (200, 403));
    loja.told(&["key", "revoke", key["id"].as_str().unwrap()]);
    assert_eq!(ask("/v1/events"), 401);
}

#[test]
fn a_copy_made_while_running_can_be_put_back() {
    let loja = Loja::new();
    let mut server = loja.serve();
    loja.pix();
    loja.json(&["contact", "plan", PHONE]);
    loja.told(&["db", "backup", "copia.db"]);
    assert!(loja.told(&["task", "cancel", "--reference", "HP0000000001"]).starts_with("3 cancelled"));
    let (code, _, err) = run(&loja.folder(), &["db", "restore", "copia.db"], &[]);
    assert_eq!(code, Some(1), "not while a server runs: {err}");
    assert!(server.stop(Duration::from_secs(30)).success());
    loja.told(&["db", "restore", "copia.db"]);
    assert_eq!(items(&loja.json(&["task", "list", "--status", "scheduled"])).len(), 3);
    std::fs::write(loja.folder().join("nonsense.db"), "not a database, whatever its name says").unwrap();
    assert_eq!(run(&loja.folder(), &["db", "restore", "nonsense.db"], &[]).0, Some(1));
    assert_eq!(items(&loja.json(&["task", "list", "--status", "scheduled"])).len(), 3, "and nothing changed");
}

#[test]
fn exit_codes_tell_done_failed_and_wrong_usage_apart() {
    let loja = Loja::new();
    let broken = |name: &str, change: &dyn Fn(&str) -> String| {
        let text = std::fs::read_to_string(loja.folder().join("retoma.toml")).unwrap();
        std::fs::write(loja.folder().join(name), change(&text)).unwrap();
    };
    broken("broken.toml", &|text| text.replace("[server]\nlisten", "[server]\nlisen"));
    broken("public.toml", &|text| text.replace("listen = \"127.0.0.1", "listen = \"0.0.0.0"));
    let table: [(&[&str], i32); 20] = [
        (&["check"], 0),
        (&["check", "flows/vendas.yaml"], 0),
        (&["check", "--config", "broken.toml"], 1),
        (&["check", "--config", "nowhere.toml"], 2),
        (&["serve", "--config", "broken.toml"], 2),
        (&["serve", "--config", "public.toml"], 2),
        (&["serve", "--role", "watch"], 2),
        (&["test", "nowhere.yaml"], 2),
        (&["classify", "nowhere", "oi"], 2),
        (&["graph", "nowhere"], 2),
        (&["simulate", "vendas", "--events", "nowhere.yaml"], 2),
        (&["contact", "show", PHONE], 1),
        (&["contact", "pause", PHONE, "--until", "soon"], 2),
        (&["task", "cancel"], 2),
        (&["task", "show", "nope"], 1),
        (&["dead", "discard", "x"], 2),
        (&["event", "list", "--status", "nope"], 1),
        (&["db", "sql", "delete from tarefas"], 1),
        (&["init", "."], 1),
        (&["frobnicate"], 2),
    ];
    for (args, expected) in table {
        let (code, out, err) = run(&loja.folder(), args, &[]);
        assert_eq!(code, Some(expected), "retoma {}: {out}{err}", args.join(" "));
        assert!(expected == 0 || !format!("{out}{err}").trim().is_empty(), "retoma {} says why", args.join(" "));
    }
    let (code, out, _) = run(&loja.folder(), &["check", "--config", "broken.toml", "--json"], &[]);
    let report: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let finding = &report["errors"][0];
    assert_eq!((code, &finding["code"]), (Some(1), &serde_json::json!("unknown_key")));
    assert!(finding["line"].as_u64().unwrap() > 0 && finding["fix"].as_str().unwrap().contains("listen"), "{finding}");
    for field in ["code", "file", "line", "message", "fix"] {
        assert!(finding.get(field).is_some(), "{field}");
    }
    // The environment names a configuration, too; the option wins.
    let env = [("RETOMA_CONFIG", "broken.toml")];
    assert_eq!(run(&loja.folder(), &["check"], &env).0, Some(1));
    assert_eq!(run(&loja.folder(), &["check", "--config", "retoma.toml"], &env).0, Some(0));
}

#[test]
fn a_flow_whose_scenario_fails_is_told_by_check_and_by_test() {
    let loja = Loja::new();
    let path = loja.folder().join("flows/vendas.yaml");
    let flow = std::fs::read_to_string(&path).unwrap();
    assert!(flow.contains("state: PAGO"));
    std::fs::write(&path, flow.replacen("state: PAGO", "state: NOVO", 1)).unwrap();
    for (args, key) in [(["check", "--json"], "errors"), (["test", "--json"], "failures")] {
        let (code, out, err) = run(&loja.folder(), &args, &[]);
        assert_eq!(code, Some(1), "{out}{err}");
        let report: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(report[key].as_array().unwrap().len(), 1, "{report}");
        assert!(report[key][0]["line"].as_u64().unwrap() > 0);
    }
}

#[test]
fn doctor_looks_and_says_what_is_missing() {
    let loja = Loja::new();
    let (code, out, err) = run(&loja.folder(), &["doctor", "--json"], &[]);
    let report: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["name"].is_string() && check["detail"].is_string()), "{report}");
    let bad: Vec<&str> =
        checks.iter().filter(|check| check["ok"] == false).map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(bad, ["channel zap"], "nothing listens where the provider should be: {report}{err}");
    assert_eq!((report["ok"].as_bool(), code), (Some(false), Some(1)));
    let left: Vec<_> =
        std::fs::read_dir(loja.folder()).unwrap().filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| Path::new(name).to_string_lossy().contains("doctor")), "{left:?}");
}

/// C15: the example of a whole sale, with the payment at every moment, holds.
#[test]
fn the_examples_hold() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let (code, out, err) = run(Path::new("."), &["test", examples, "--json"], &[]);
    let tested: Value = serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap();
    assert!(code == Some(0) && tested["passed"].as_u64().unwrap() >= 15, "{out}{err}");
}
