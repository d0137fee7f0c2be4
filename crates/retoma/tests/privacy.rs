//! A busy run of the real program at the highest log level, with canary values wherever personal data and secrets come in:
//! none of them comes out in a log line, a status page, a metric, an error body, or the JSON that other programs read
//! (never 8, H2). What people ask for by name (`contact show`, raw bodies for admins) is another matter, and proves that the
//! canaries were really there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "harness/harness.rs"]
mod harness;

use std::path::Path;
use std::time::Duration;

use harness::process::{Running, run};
use harness::shop::{self, Shop, Webhook};
use harness::{free_port, http, wait_until, wall_clock};
use serde_json::json;

/// The digits that every spelling of the canary's phone shares, ninth digit or not.
const PHONE: &str = "87650321";
const TEXT: &str = "xilofone";
const ANSWER: &str = "rabanete";
const NAME: &str = "zuleide";
const DOCUMENT: &str = "12345678909";
const HOTTOK: &str = "hottok-canario-11";
const HOOK_SECRET: &str = "hook-canario-22";
const API_KEY: &str = "chave-canario-33";
const BODY_KEY: &str = "token-canario-44";
const PRESENTED: &str = "credencial-canario-55";

const CANARIES: [&str; 10] = [PHONE, TEXT, ANSWER, NAME, DOCUMENT, HOTTOK, HOOK_SECRET, API_KEY, BODY_KEY, PRESENTED];

/// Whatever is not clean, gathered, so that one run tells all.
#[derive(Default)]
struct Leaks(Vec<String>);

impl Leaks {
    fn look(&mut self, place: &str, text: &str) {
        let lower = text.to_lowercase();
        for canary in CANARIES.iter().filter(|canary| lower.contains(*canary)) {
            let line = lower.lines().find(|line| line.contains(*canary)).unwrap_or_default();
            let line: String = line.chars().take(300).collect();
            self.0.push(format!("{place} shows {canary}: {line}"));
        }
    }
}

fn unix_ms() -> i64 {
    wall_clock().as_millisecond()
}

fn pix() -> Webhook {
    let mut webhook = shop::pix_created(1, unix_ms());
    let mut body: serde_json::Value = serde_json::from_slice(&webhook.body).unwrap();
    body["hottok"] = HOTTOK.into();
    body["data"]["buyer"] = json!({
        "name": "Zuleide Canário", "email": "zuleide@example.com", "document": DOCUMENT,
        "checkout_phone_code": "55", "checkout_phone": format!("419{PHONE}"),
    });
    webhook.body = body.to_string().into_bytes();
    webhook.header.1 = HOTTOK.to_owned();
    webhook
}

fn message(n: u64, phone: &str, text: &str) -> Webhook {
    let mut webhook = shop::message(1, n, text, unix_ms());
    let mut body: serde_json::Value = serde_json::from_slice(&webhook.body).unwrap();
    body["data"]["key"]["remoteJid"] = format!("{phone}@s.whatsapp.net").into();
    body["data"]["pushName"] = "Zuleide".into();
    body["apikey"] = BODY_KEY.into();
    webhook.body = body.to_string().into_bytes();
    webhook.header.1 = HOOK_SECRET.to_owned();
    webhook
}

fn post(port: u16, webhook: &Webhook) -> http::Answer {
    http::post(port, webhook.path, &[(webhook.header.0, &webhook.header.1)], &webhook.body).unwrap()
}

/// A shop whose messages carry a canary, too, and which has a generic source beside the presets.
fn write_shop(folder: &Path, port: u16, fake_port: u16) {
    Shop { hottok: HOTTOK, hook_secret: HOOK_SECRET, api_key: API_KEY, ..Shop::new(port, fake_port) }.write(folder);
    let flow = folder.join("flows/rapido.yaml");
    let text = std::fs::read_to_string(&flow).unwrap();
    let spoken =
        |name: &str| (format!("text: \"{name}\""), format!("text: \"{{{{ contact.first_name }}}} {ANSWER} {name}\""));
    let text = ["ola", "resposta", "codigo", "toque_1"].iter().fold(text, |text, name| {
        let (from, to) = spoken(name);
        assert!(text.contains(&from), "{from}");
        text.replace(&from, &to)
    });
    std::fs::write(flow, text).unwrap();
    let config = folder.join("retoma.toml");
    let generic = "[sources.pedidos]\nprovider = \"generic\"\nflow = \"rapido\"\nid = \"$.id\"\ntype = \"$.event\"\n\
                   contact = \"$.phone\"\nrequired = [\"$.id\"]\nauth = { header = \"x-token\", secret = { file = \"secrets/hook\" } }\n";
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}{generic}")).unwrap();
}

fn start_fake(folder: &Path, fake_port: u16, port: u16) -> Running {
    // Errors of every kind are where texts and numbers like to slip through; but never so many in a row that the breaker opens.
    let faults = json!({
        "chances": { "sent400": 0.1, "closed500": 0.1, "reset_sent": 0.05, "no_id": 0.1, "proxy502": 0.05 },
        "numbers": { "66666": "not_on_whatsapp", "77777": "sent400", "88888": "hang_sent" },
        "webhook_pace_ms": 20, "duplicates": 0.3,
    });
    let (fake_port_text, faults) = (fake_port.to_string(), faults.to_string());
    let (webhook, secret) = (format!("http://127.0.0.1:{port}/in/zap"), format!("x-hook-secret:{HOOK_SECRET}"));
    let args = [
        ["--port", &fake_port_text],
        ["--api-key", API_KEY],
        ["--webhook", &webhook],
        ["--secret-header", &secret],
        ["--faults", &faults],
    ];
    let args: Vec<&str> =
        ["fake", "evolution", "--json"].into_iter().chain(args.as_flattened().iter().copied()).collect();
    Running::start("fake", folder, &args, &[("RETOMA_LOG", "trace")]).ready(fake_port, "/log")
}

#[test]
fn nothing_personal_and_no_secret_leaves_but_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (port, fake_port) = (free_port(), free_port());
    write_shop(folder.path(), port, fake_port);
    let fake = start_fake(folder.path(), fake_port, port);
    let start = || Running::start("serve", folder.path(), &["serve"], &[("RETOMA_LOG", "trace")]);
    let mut server = start().ready(port, "/healthz/live");
    let mut leaks = Leaks::default();

    be_busy(port);
    // Whoever has no WhatsApp is given up on, and whoever's outcome is unknown is held: both are listed below.
    wait_until("everything comes to its end, one message dead, one held", Duration::from_secs(60), || {
        let status = http::get(port, "/status.json", &[]).unwrap().json();
        let tasks = |word: &str| status["tasks"][word].as_u64().unwrap_or(0);
        let open = ["scheduled", "sending", "failed", "unsure"].map(tasks);
        open == [0; 4] && tasks("held") > 0 && status["dead"].as_u64().is_some_and(|dead| dead > 0)
    });
    refusals(port, &mut leaks);
    pages(port, &mut leaks);
    let key = commands(folder.path(), &mut leaks);
    programs(port, &key, &mut leaks);

    // A restart tells what it finds.
    assert!(server.stop(Duration::from_secs(30)).success(), "{}", server.tail());
    server = start().ready(port, "/healthz/live");
    assert!(server.stop(Duration::from_secs(30)).success(), "{}", server.tail());
    for (name, running) in [("serve", &server), ("fake", &fake)] {
        let (out, err) =
            (std::fs::read_to_string(&running.stdout).unwrap(), std::fs::read_to_string(&running.stderr).unwrap());
        if name == "serve" {
            assert!(
                err.contains("TRACE") || err.contains("DEBUG"),
                "the log level is not what this test is about:\n{err}"
            );
            leaks.look("serve's log", &err);
            leaks.look("serve's output", &out);
        } else {
            // It announces its own key on stdout; its log must be as clean as any.
            leaks.look("the fake's log", &err);
        }
    }
    assert!(leaks.0.is_empty(), "{} leaks:\n{}", leaks.0.len(), leaks.0.join("\n"));
}

/// Everything that a shop's day has: a PIX, chats with and without the ninth digit, repetitions, an opt-out, people who
/// cannot be reached.
fn be_busy(port: u16) {
    let webhooks = [
        pix(),
        pix(),
        message(1, &format!("5541{PHONE}"), &format!("oi, {TEXT}")),
        message(2, &format!("55419{PHONE}"), &format!("meu cpf é {DOCUMENT}, {TEXT}, me manda o codigo")),
        message(3, "5541999966666", TEXT),
        message(4, "5541999977777", TEXT),
        message(5, "5541999988888", TEXT),
    ];
    for webhook in &webhooks {
        let answer = post(port, webhook);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    for buyer in 10..60 {
        let mut webhook = shop::pix_created(buyer, unix_ms());
        webhook.header.1 = HOTTOK.to_owned();
        assert_eq!(post(port, &webhook).status, 200);
    }
}

/// Bodies of errors, and what the log says of them.
fn refusals(port: u16, leaks: &mut Leaks) {
    let wrong = |mut webhook: Webhook| {
        webhook.header.1 = PRESENTED.to_owned();
        webhook
    };
    let broken = |path, header: (&'static str, &str), body: &str| Webhook {
        id: String::new(),
        path,
        header: (header.0, header.1.to_owned()),
        body: body.as_bytes().to_vec(),
    };
    let token = ("x-token", HOOK_SECRET);
    let cases = [
        ("wrong credential", wrong(pix()), 401),
        ("wrong hook secret", wrong(message(9, "5541999990001", TEXT)), 401),
        ("broken JSON", broken("/in/pedidos", token, &format!("{{\"phone\": \"419{PHONE}\", \"text\": {TEXT}}}")), 400),
        (
            "field missing",
            broken("/in/pedidos", token, &format!("{{\"phone\": \"419{PHONE}\", \"text\": \"{TEXT}\"}}")),
            400,
        ),
        ("no such source", broken("/in/zuleide-87650321", token, TEXT), 404),
        ("no such page", broken("/zuleide/87650321?token=token-canario-44", token, TEXT), 404),
        ("no key for the API", broken("/v1/events", ("authorization", PRESENTED), &format!("[\"{TEXT}\"]")), 401),
    ];
    for (name, webhook, expected) in cases {
        let answer = post(port, &webhook);
        assert_eq!(answer.status, expected, "{name}: {}", answer.text());
        leaks.look(&format!("the answer to a {name}"), &format!("{}\n{}", answer.head, answer.text()));
    }
    // Presets take what they cannot understand, and tell nobody what it was.
    let odd = broken("/in/loja", ("x-hotmart-hottok", HOTTOK), &format!("{{\"{TEXT}\": \"{DOCUMENT}\""));
    let answer = post(port, &odd);
    assert_eq!(answer.status, 200, "{}", answer.text());
    leaks.look("the answer to an odd body", &answer.text());
}

/// What anybody may look at.
fn pages(port: u16, leaks: &mut Leaks) {
    for path in
        ["/", "/status.json", "/metrics", "/healthz/live", "/healthz/ready", "/healthz/pipeline", "/problems/not_found"]
    {
        let answer = http::get(port, path, &[]).unwrap();
        leaks.look(path, &answer.text());
    }
}

/// What the command line prints for other programs. Answers a key that may only look.
fn commands(folder: &Path, leaks: &mut Leaks) -> String {
    let json = |args: &[&str]| {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let (code, out, err) = run(folder, &args, &[("RETOMA_LOG", "trace")]);
        assert_eq!(code, Some(0), "{args:?}\n{out}\n{err}");
        (out, err)
    };
    let lists: [&[&str]; 9] = [
        &["event", "list", "--limit", "500"],
        &["event", "list", "--status", "quarantined"],
        &["task", "list", "--limit", "500"],
        &["task", "stuck"],
        &["task", "list", "--status", "held"],
        &["dead", "list"],
        &["db", "stats"],
        &["audit", "list"],
        &["key", "list"],
    ];
    for args in lists {
        let (out, err) = json(args);
        leaks.look(&format!("retoma {} --json", args.join(" ")), &out);
        leaks.look(&format!("the log of retoma {}", args.join(" ")), &err);
    }
    let tasks: serde_json::Value = serde_json::from_str(json(&["task", "list", "--limit", "500"]).0.trim()).unwrap();
    let tried = tasks["items"].as_array().unwrap().iter().filter(|task| task["attempts"].as_u64() > Some(0));
    let ids: Vec<&str> = tried.filter_map(|task| task["id"].as_str()).take(40).collect();
    assert!(ids.len() > 10, "the run was too tame: {tasks}");
    for id in ids {
        leaks.look("retoma task show --json", &json(&["task", "show", id]).0);
    }
    // Asked for by name, it is there: the canaries are no dead birds.
    let who = format!("55419{PHONE}");
    let (shown, log) = json(&["contact", "show", &who]);
    assert!(shown.contains(PHONE), "{shown}");
    leaks.look("the log of retoma contact show", &log);
    for verb in ["plan", "why"] {
        let (out, log) = json(&["contact", verb, &who]);
        leaks.look(&format!("retoma contact {verb} --json"), &out);
        leaks.look(&format!("the log of retoma contact {verb}"), &log);
    }
    let (made, _) = json(&["key", "create", "leitor", "--scope", "read"]);
    let made: serde_json::Value = serde_json::from_str(made.trim()).unwrap();
    made["key"].as_str().unwrap().to_owned()
}

/// What a program with a key that may only look is told.
fn programs(port: u16, key: &str, leaks: &mut Leaks) {
    let bearer = format!("Bearer {key}");
    let get = |path: &str| http::get(port, path, &[("authorization", &bearer)]).unwrap();
    for path in [
        "/v1/events?limit=500",
        "/v1/tasks?limit=500",
        "/v1/tasks/stuck",
        "/v1/dead",
        "/v1/stats",
        "/v1/heartbeats",
        "/v1/audit",
    ] {
        let answer = get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        leaks.look(path, &answer.text());
    }
    // Wrong questions are not repeated in the answer.
    for path in
        ["/v1/tasks?87650321=zuleide", "/v1/tasks?status=zuleide", "/v1/contacts?phone=zuleide", "/v1/events/zuleide"]
    {
        let answer = get(path);
        assert!((400..500).contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        leaks.look(&format!("the answer to {}", path.split('?').next().unwrap_or_default()), &answer.text());
    }
    let raw = get("/v1/events?limit=1").json();
    let id = raw["items"][0]["id"].as_str().unwrap();
    assert_eq!(get(&format!("/v1/events/{id}/raw")).status, 403, "raw bodies are for admins");
}
