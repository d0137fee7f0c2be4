//! What the configuration says about itself: every finding with its code, its line and a fix; the contract's own example.

use std::path::Path;

use retoma_core::finding::{Finding, Level};
use retoma_core::flow::VENDAS;

use super::*;

/// A folder with the shipped flow and a secret file.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("flows")).unwrap();
    std::fs::write(folder.path().join("flows/vendas.yaml"), VENDAS).unwrap();
    std::fs::write(folder.path().join("token"), "segredo\n").unwrap();
    std::fs::write(folder.path().join("empty"), "\n").unwrap();
    std::fs::set_permissions(folder.path().join("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    folder
}

fn env(name: &str) -> Option<String> {
    match name {
        "HOTTOK" | "EVOLUTION_KEY" => Some("segredo".to_owned()),
        "LONG" => Some("segredo-de-mais-de-16".to_owned()),
        _ => None,
    }
}

fn checked(text: &str) -> Loaded {
    let folder = folder();
    check(text, &folder.path().join("retoma.toml"), &env)
}

fn errors(loaded: &Loaded) -> Vec<&Finding> {
    loaded.findings.iter().filter(|finding| finding.is_error()).collect()
}

const FINE: &str = r#"
[sources.loja]
provider = "hotmart"
secret = { env = "HOTTOK" }
[sources.zap]
provider = "evolution"
instance = "loja-a"
auth = { header = "x-hook-secret", secret = { file = "token" } }
[channels.zap]
provider = "evolution"
base_url = "http://127.0.0.1:8081/"
instance = "loja-a"
api_key = { env = "EVOLUTION_KEY" }
[outbound]
allow = ["127.0.0.1:8081"]
"#;

#[test]
fn a_small_configuration_is_fine_and_fills_in_what_it_leaves_out() {
    let loaded = checked(FINE);
    assert_eq!(loaded.findings, []);
    let setup = loaded.setup.unwrap();
    assert_eq!(setup.listen.to_string(), "127.0.0.1:8080");
    assert!(setup.database.ends_with("retoma.db") && setup.database.is_absolute());
    assert_eq!((setup.locale.as_str(), setup.timezone.iana_name()), ("pt-BR", Some("America/Sao_Paulo")));
    assert_eq!(setup.default_channel.as_ref().map(|channel| channel.as_str()), Some("zap"), "the only one");
    for source in &setup.sources {
        assert_eq!(source.source.flow.as_ref().map(|flow| flow.as_str()), Some("vendas"), "the only one");
        assert_eq!(source.source.channel.as_ref().map(|channel| channel.as_str()), Some("zap"));
        assert_eq!(source.source.body_bytes_max, 4 << 20);
    }
    assert_eq!((setup.retry.attempts, setup.reconcile_for), (6, Duration::from_secs(600)));
}

/// INTERFACE.md, "Configuration": the example that others hold on to, comments and all.
const CONTRACT: &str = r##"
[server]
listen = "127.0.0.1:8080"
public_url = ""
[storage]
url = "sqlite://retoma.db"
[defaults]
timezone = "America/Sao_Paulo"
locale = "pt-BR"
[sources.loja-hotmart]
provider = "hotmart"
secret = { env = "HOTTOK" }
flow = "vendas"
[sources.zap]
provider = "evolution"
instance = "loja-a"
flow = "vendas"
channel = "zap"
auth = { header = "x-hook-secret", secret = { file = "token" } }
[sources.meta]
provider = "whatsapp_cloud"
secret = { file = "token" }
verify_token = { env = "HOTTOK" }
phone_number_id = "2000"
flow = "vendas"
[sources.pedidos]
provider = "generic"
auth = { header = "X-Token", secret = { file = "token" } }
id = "$.id"
type = "$.event"
contact = "$.phone"
order = "$.order_id"
occurred_at = "$.ts"
types = { "order.paid" = "payment.approved" }
required = ["$.id"]
on_missing_id = "hold"
rate = "50/s"
max_body = "4MiB"
[sources.assinado]
provider = "generic"
auth = { hmac = { header = "X-Signature", algorithm = "sha256", encoding = "hex", prefix = "sha256=", content = "{timestamp}.{body}", tolerance = "5m" }, secrets = [{ file = "token" }, { env = "HOTTOK" }] }
[channels.zap]
provider = "evolution"
base_url = "http://127.0.0.1:8081"
instance = "loja-a"
api_key = { env = "EVOLUTION_KEY" }
rate = "20/s"
on_ambiguous = "hold"
[channels.n8n]
provider = "http"
url = "https://n8n.example.com/webhook/x"
secret = { file = "token" }
[outbound]
allow = ["10.0.0.5:8080", "127.0.0.1:8081"]
[gate.scopes.cobranca]
lease = "2m"
keep = "30d"
on_expired_lease = "hold"
[retry.recovery]
base = "60s"
factor = 2
cap = "1h"
jitter = 0.2
attempts = 6
[alerts]
silence = "10m"
late = "15m"
failing = 0.3
ping = "https://example.com/ping"
"##;

#[test]
fn every_key_of_the_contract_is_read_or_said_to_come_later() {
    let loaded = checked(CONTRACT);
    assert_eq!(errors(&loaded), Vec::<&Finding>::new());
    let later: Vec<(&str, u32)> = loaded.findings.iter().map(|finding| (finding.code, finding.line)).collect();
    let line = |text: &str| u32::try_from(CONTRACT.lines().position(|line| line == text).unwrap() + 1).unwrap();
    let expected = [("not_available", line("[alerts]"))];
    assert!(later.iter().any(|(code, _)| *code == "timestamp_header"), "{later:?}");
    for finding in expected {
        assert!(later.contains(&finding), "{finding:?} is not among {later:?}");
    }
    let setup = loaded.setup.unwrap();
    let source = setup.sources.iter().find(|source| source.source.name.as_str() == "pedidos").unwrap();
    assert_eq!(source.rate, Some((50, Duration::from_secs(1))));
    let policy = setup.gate["cobranca"];
    assert_eq!((policy.lease, policy.keep), (Duration::from_secs(120), Duration::from_secs(30 * 86_400)));
    let zap = setup.channels.iter().find(|channel| channel.name.as_str() == "zap").unwrap();
    assert_eq!(zap.rate, Some(retoma_core::pace::Rate::per_second(20)));
    let signed = setup.sources.iter().find(|source| source.source.name.as_str() == "assinado").unwrap();
    let retoma_providers::inbound::Auth::Hmac(scheme) = &signed.source.auth else { panic!("it is signed") };
    assert_eq!((scheme.timestamp_header.as_deref(), scheme.secrets.len()), (Some("X-Timestamp"), 2));
}

/// A source of the Cloud API without its number.
const CLOUD: &str =
    "[sources.x]\nprovider = \"whatsapp_cloud\"\nsecret = { file = \"token\" }\nverify_token = { file = \"token\" }\n";

/// Every form of proof but JWT (A3), and every limit of a door.
const DOORS: &str = r##"
[server]
behind_proxy = true
trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]
[sources.a]
provider = "whatsapp_cloud"
secrets = [{ file = "token" }, { env = "HOTTOK" }]
verify_token = { file = "token" }
phone_number_id = ["2000", "3000"]
addresses = ["203.0.113.0/24", "2001:db8::1"]
rate_per_address = "10/s"
[sources.b]
provider = "generic"
id = ["$.order", "$.event", "$.version"]
type = "$.event"
origin = { "$.store.id" = "77" }
auth = { basic = { user = "ana" }, secret = { file = "token" } }
[sources.c]
provider = "generic"
type = "$.event"
auth = { body = "$.token", secret = { file = "token" } }
on_missing_id = "fingerprint"
fingerprint_without = ["$.sent_at"]
[sources.d]
provider = "evolution"
instance = "loja-a"
auth = { path = true, secret = { env = "LONG" } }
[sources.e]
provider = "generic"
type = "$.type"
auth = { standard_webhooks = {}, secrets = [{ file = "token" }, { env = "HOTTOK" }] }
[sources.f]
provider = "generic"
id = "$.id"
type = "$.event"
auth = { hmac = { query = "signature", algorithm = "sha1" }, secret = { file = "token" } }
[sources.f.reconcile]
url = "https://api.example.com/orders?since={since}"
header = "Authorization"
prefix = "Bearer "
secret = { env = "HOTTOK" }
every = "5m"
items = "$.orders[*]"
next = "$.next"
id = "$.number"
type = "$.status"
"##;

#[test]
fn every_form_of_proof_and_every_limit_of_a_door_can_be_written() {
    use retoma_providers::inbound::{Auth, SignaturePlace};

    let loaded = checked(&format!("{DOORS}{}", FINE.replace("[sources.loja]", "[sources.loja2]")));
    assert_eq!(loaded.findings, [], "standard webhooks bring their ids along");
    let setup = loaded.setup.unwrap();
    let of = |name: &str| setup.sources.iter().find(|source| source.source.name.as_str() == name).unwrap();
    let cloud = of("a").source.cloud.as_ref().unwrap();
    assert_eq!(
        (cloud.phone_number_ids.as_slice(), cloud.verify_tokens.len()),
        (&["2000".into(), "3000".into()][..], 1)
    );
    assert!(
        matches!(&of("a").source.auth, Auth::Hmac(scheme) if scheme.secrets.len() == 2 && scheme.prefix == "sha256=")
    );
    assert_eq!(of("a").addresses.as_ref().map(Vec::len), Some(2));
    assert_eq!(of("a").rate_per_address, Some((10, Duration::from_secs(1))));
    assert!(matches!(&of("b").source.auth, Auth::Basic { user, .. } if user == "ana"));
    let mapping = of("b").source.mapping.as_ref().unwrap();
    assert_eq!((mapping.id.len(), of("b").source.origin.len()), (3, 1));
    assert!(matches!(&of("c").source.auth, Auth::Body { path, .. } if path.text == "$.token"));
    assert_eq!(of("c").source.mapping.as_ref().unwrap().fingerprint_without.len(), 1);
    assert!(matches!(&of("d").source.auth, Auth::SecretPath { .. }));
    assert!(matches!(&of("e").source.auth, Auth::StandardWebhooks { secrets, tolerance }
        if secrets.len() == 2 && tolerance.as_secs() == 300));
    let list = of("f").reconcile.as_ref().unwrap();
    assert_eq!((list.every.as_secs(), list.lookback.as_secs()), (300, 86_400));
    assert!(list.credential.is_some() && list.next.is_some() && list.mapping.as_ref().unwrap().id.len() == 1);
    assert!(matches!(&of("f").source.auth, Auth::Hmac(scheme)
        if scheme.place == SignaturePlace::Query("signature".into())));
}

/// Adds lines to the small configuration, and answers what is said of them.
fn said(lines: &str) -> Vec<Finding> {
    checked(&format!("{FINE}{lines}\n")).findings
}

#[test]
fn what_is_wrong_is_named_with_code_line_and_fix() {
    let generic = |rest: &str| format!("[sources.x]\nprovider = \"generic\"\nid = \"$.id\"\ntype = \"$.t\"\n{rest}");
    let auth = "auth = { header = \"X\", secret = { file = \"token\" } }\n";
    let source = |rest: &str| generic(&format!("{auth}{rest}"));
    // Lines to add, the code they get, the line among them that it names, and a word of its fix.
    let table: Vec<(String, &str, usize, &str)> = vec![
        ("[sevrer]\nlisten = \"127.0.0.1:1\"".into(), "unknown_key", 1, "server"),
        ("[server]\nlisen = \"127.0.0.1:1\"".into(), "unknown_key", 2, "listen"),
        ("[server]\nlisten = \"8080\"".into(), "bad_value", 2, "127.0.0.1:8080"),
        ("[server]\nlisten = 8080".into(), "bad_value", 2, "text"),
        ("[server]\nlisten = \"0.0.0.0:8080\"".into(), "public_bind", 2, "behind_proxy"),
        ("[server]\nlisten = \"127.0.0.1:1\"\ntls = { cert = \"c\", key = \"k\" }".into(), "not_available", 3, "proxy"),
        ("[storage]\nurl = \"postgres://user@host/db\"".into(), "not_available", 2, "sqlite"),
        ("[storage]\nurl = \"retoma.db\"".into(), "bad_url", 2, "sqlite://"),
        ("[defaults]\ntimezone = \"America/Sao_Paolo\"".into(), "bad_timezone", 2, "America/Sao_Paulo"),
        ("[defaults]\nlocale = \"pt\"".into(), "unknown_word", 2, "pt-BR"),
        ("[defaults]\nchannel = \"zpa\"".into(), "unknown_channel", 2, "zap"),
        ("[tenants.a]\nname = \"a\"".into(), "not_available", 1, "installation"),
        (generic("auth = { header = \"X\", secret = \"literal\" }"), "literal_secret", 5, "file"),
        (generic("auth = { header = \"X\", secret = { env = \"NOPE\" } }"), "missing_secret", 5, "export NOPE"),
        (generic("auth = { header = \"X\", secret = { file = \"nope\" } }"), "missing_secret", 5, "create"),
        (generic("auth = { header = \"X\", secret = { file = \"empty\" } }"), "missing_secret", 5, "secret"),
        (generic("auth = { header = \"X\", secret = { envv = \"HOTTOK\" } }"), "bad_value", 5, "env"),
        (generic("auth = { header = \"X\" }"), "missing_key", 5, "secret"),
        (generic("auth = { header = \"X Y\", secret = { file = \"token\" } }"), "bad_value", 5, "header"),
        (generic("auth = { header = \"X\", query = \"t\", secret = { file = \"token\" } }"), "bad_value", 5, "header"),
        (generic("auth = { jwt = {}, secret = { file = \"token\" } }"), "not_available", 5, "hmac"),
        (generic("auth = { hmac = { header = \"X\", content = \"{timestamp}\" }, secret = { file = \"token\" } }"), "bad_value", 5, "{body}"),
        (generic("auth = { hmac = { header = \"X\", tolerance = \"5\" }, secret = { file = \"token\" } }"), "bad_duration", 5, "5m"),
        (generic("auth = { hmac = { header = \"X\", algorithm = \"sha265\" }, secret = { file = \"token\" } }"), "unknown_word", 5, "sha256"),
        (generic(""), "missing_key", 1, "auth"),
        (source("flow = \"venda\""), "unknown_flow", 6, "vendas"),
        (source("channel = \"zapp\""), "unknown_channel", 6, "zap"),
        (source("rate = \"fast\""), "bad_rate", 6, "50/s"),
        (source("max_body = \"4 apples\""), "bad_size", 6, "4MiB"),
        (source("contact = \"phone\""), "bad_jsonpath", 6, "$"),
        (source("required = [\"$.a\", \"$[\"]"), "bad_jsonpath", 6, "$"),
        (source("types = { \"a\" = \"payment.aproved\" }"), "unknown_word", 6, "payment.approved"),
        (source("on_missing_id = \"holt\""), "unknown_word", 6, "hold"),
        (source("oder = \"$.o\""), "unknown_key", 6, "order"),
        (source("tenant = \"a\""), "not_available", 6, "default"),
        ("[sources.x]\nprovider = \"zapi\"".into(), "not_available", 2, "generic"),
        (format!("{CLOUD}phone_number_id = \"+55 41 3333-0000\""), "bad_value", 1, "phone number ID"),
        (format!("{CLOUD}phone_number_id = []"), "bad_value", 1, "phone number ID"),
        (CLOUD.to_owned(), "missing_key", 1, "phone_number_id"),
        (format!("{}phone_number_id = \"2\"", CLOUD.replace("verify_token", "verify_tokn")), "missing_key", 1, "verify_token"),
        (format!("{CLOUD}phone_number_id = \"2\"\nauth = \"none\""), "bad_value", 6, "app secret"),
        (source("addresses = [\"10.0.0.0/8\", \"loja\"]"), "bad_address", 6, "203.0.113"),
        (source("reconcile = {}"), "missing_key", 6, "since"),
        (source("reconcile = { url = \"https://x/{from}\" }"), "bad_url", 6, "{since}"),
        (source("reconcile = { url = \"ftp://x/\" }"), "bad_url", 6, "https"),
        (source("reconcile = { url = \"https://x/\", every = \"1s\" }"), "bad_value", 6, "15m"),
        (source("reconcile = { url = \"https://x/\", secret = { file = \"token\" } }"), "bad_value", 6, "header"),
        (source("addresses = []"), "bad_value", 6, "remove"),
        (source("rate_per_address = \"1\""), "bad_rate", 6, "50/s"),
        (source("origin = { \"store\" = \"77\" }"), "bad_jsonpath", 6, "$.store"),
        (source("fingerprint_without = [\"ts\"]\non_missing_id = \"fingerprint\""), "bad_jsonpath", 6, "$"),
        ("[server]\nbehind_proxy = true\ntrusted_proxies = [\"proxy\"]".into(), "bad_address", 3, "203.0.113"),
        (generic("auth = { path = true, secret = { file = \"token\" } }"), "bad_secret", 5, "openssl"),
        (generic("auth = { body = \"token\", secret = { file = \"token\" } }"), "bad_jsonpath", 5, "$.token"),
        (generic("auth = { basic = {}, secret = { file = \"token\" } }"), "missing_key", 5, "user"),
        (generic("auth = { basic = { user = \"a\" } }"), "missing_key", 5, "secret"),
        (generic("auth = { standard_webhooks = { tolerance = \"x\" }, secret = { file = \"token\" } }"), "bad_duration", 5, "5m"),
        (generic("auth = { hmac = { header = \"X\", query = \"s\" }, secret = { file = \"token\" } }"), "bad_value", 5, "keep"),
        (generic("auth = { hmac = {}, secret = { file = \"token\" } }"), "missing_key", 5, "query"),
        (generic("auth = { hmac = { header = \"X\", content = \"{body}{url}\" }, secret = { file = \"token\" } }"), "bad_value", 5, "{query:NAME}"),
        ("[sources.x]\nprovider = \"hotmrt\"\n".into(), "unknown_word", 2, "hotmart"),
        ("[sources.x]\nsecret = { file = \"token\" }".into(), "missing_key", 1, "provider"),
        ("[sources.\"x/y\"]\nprovider = \"hotmart\"".into(), "bad_name", 1, "lower-case"),
        ("[channels.y]\nprovider = \"zapi\"".into(), "not_available", 2, "evolution"),
        ("[channels.y]\nprovider = \"http\"\nurl = \"ftp://x\"\nsecret = { file = \"token\" }".into(), "bad_url", 3, "https"),
        ("[channels.y]\nprovider = \"http\"\nurl = \"https://u:p@x\"\nsecret = { file = \"token\" }".into(), "bad_url", 3, "https"),
        ("[channels.y]\nprovider = \"evolution\"\nbase_url = \"https://e.example.com\"\napi_key = { file = \"token\" }".into(), "missing_key", 1, "instance"),
        ("[channels.y]\nprovider = \"http\"\nurl = \"https://x\"\nsecret = { file = \"token\" }\non_ambiguous = \"resend\"".into(), "unknown_word", 5, "resend_once"),
        ("[channels.y]\nprovider = \"http\"\nurl = \"https://x\"\nsecret = { file = \"token\" }\ntimeout = \"long\"".into(), "bad_duration", 5, "45s"),
        ("[channels.y]\nprovider = \"http\"\nurl = \"https://x\"\nsecret = { file = \"token\" }\nconcurrency = 0".into(), "bad_value", 5, "number"),
        ("ca = \"nowhere.pem\"".into(), "bad_certificate", 1, "PEM"),
        ("ca = [\"token\"]".into(), "bad_certificate", 1, "PEM"),
        ("[retry.recovery]\nfactor = 0.5".into(), "bad_value", 2, ""),
        ("[retry.recovery]\nbase = \"2h\"".into(), "bad_value", 1, "base"),
        ("[retry]\nrecovry = {}".into(), "unknown_key", 2, "recovery"),
        ("[gate]\nx = = 1".into(), "syntax", 2, "TOML"),
    ];
    let before = FINE.lines().count();
    for (lines, code, line, fix) in table {
        let findings = said(&lines);
        let found = findings.iter().find(|finding| finding.code == code && finding.is_error());
        let found = found.unwrap_or_else(|| panic!("no {code} for\n{lines}\nbut {findings:?}"));
        assert_eq!(found.line as usize, before + line, "{lines}\n{found}");
        assert!(found.fix.contains(fix) && !found.message.is_empty(), "{lines}\n{found}");
        assert!(found.file.ends_with("retoma.toml"), "{found}");
        assert!(!found.to_string().contains("segredo"), "{found}");
    }
}

#[test]
fn doubtful_things_are_warnings_and_do_not_stop_a_start() {
    for (lines, code) in [
        ("[sources.x]\nprovider = \"generic\"\nid = \"$.id\"\ntype = \"$.t\"\nauth = \"none\"", "unsigned"),
        (
            "[sources.x]\nprovider = \"generic\"\ntype = \"$.t\"\nauth = { query = \"t\", secret = { file = \"token\" } }",
            "no_id",
        ),
        (
            "[sources.x]\nprovider = \"generic\"\nid = \"$.id\"\nauth = { query = \"t\", secret = { file = \"token\" } }",
            "no_type",
        ),
        ("[channels.y]\nprovider = \"http\"\nurl = \"https://x\"", "unsigned"),
        (
            "[channels.y]\nprovider = \"http\"\nurl = \"http://192.168.0.9/x\"\nsecret = { file = \"token\" }",
            "outbound_refused",
        ),
        ("[alerts]\nsilence = \"10m\"", "not_available"),
    ] {
        let loaded = checked(&format!("{FINE}{lines}\n"));
        assert!(loaded.setup.is_some(), "{lines}: {:?}", loaded.findings);
        let found = loaded.findings.iter().any(|finding| finding.code == code && finding.level == Level::Warning);
        assert!(found, "no {code} for {lines}: {:?}", loaded.findings);
    }
}

#[test]
fn a_secret_that_everybody_can_read_is_a_warning() {
    let folder = folder();
    std::fs::set_permissions(folder.path().join("token"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let loaded = check(FINE, &folder.path().join("retoma.toml"), &env);
    assert_eq!(loaded.findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), ["secret_readable"]);
}

#[test]
fn flows_are_read_beside_the_configuration_and_their_findings_name_their_own_lines() {
    let folder = folder();
    let broken = VENDAS.replacen("  debounce: { quiet: 4s", "  debounce: { quiet: soon", 1);
    let line = broken.lines().position(|line| line.contains("quiet: soon")).unwrap() + 1;
    std::fs::write(folder.path().join("flows/vendas.yaml"), &broken).unwrap();
    let path = folder.path().join("retoma.toml");
    let loaded = check(
        &format!("{FINE}[sources.x]\nprovider = \"hotmart\"\nsecret = {{ env = \"HOTTOK\" }}\nflow = \"vendas\"\n"),
        &path,
        &env,
    );
    assert!(loaded.setup.is_none());
    let found = errors(&loaded);
    assert_eq!(found.len(), 1, "who names a broken flow is not told that it does not exist: {found:?}");
    assert!(found[0].file.ends_with("flows/vendas.yaml") && found[0].line as usize == line, "{}", found[0]);

    std::fs::write(folder.path().join("flows/vendas.yaml"), VENDAS).unwrap();
    std::fs::write(folder.path().join("flows/outro.yaml"), VENDAS).unwrap();
    let loaded = check(FINE, &path, &env);
    assert_eq!(errors(&loaded).iter().map(|finding| finding.code).collect::<Vec<_>>(), ["duplicate_flow"]);
}

#[test]
fn the_template_of_init_has_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("flows")).unwrap();
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    std::fs::write(folder.path().join("flows/vendas.yaml"), VENDAS).unwrap();
    for secret in ["hottok", "evolution-hook", "evolution-key"] {
        let path = folder.path().join("secrets").join(secret);
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let template = include_str!("../../templates/vendas/retoma.toml");
    let loaded = check(template, &folder.path().join("retoma.toml"), &env);
    assert_eq!(loaded.findings, []);
    assert!(loaded.setup.is_some());
}

#[test]
fn a_running_server_is_found_even_where_the_rest_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("retoma.toml");
    for (text, database) in [
        ("[storage]\nurl = \"sqlite://x/dados.db\"\n[sources.a]\nprovider = 1\n", "x/dados.db"),
        ("[storage\n", "retoma.db"),
        ("", "retoma.db"),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(whereabouts(&path).unwrap().database, folder.path().join(database), "{text}");
    }
    assert!(whereabouts(Path::new("/nowhere/retoma.toml")).is_err());
}

// A5: nobody forgets early by accident.
#[test]
fn scopes_of_the_gate_are_read_and_a_short_memory_must_be_meant() {
    let policy = |text: &str| {
        let loaded = checked(&format!("[gate.scopes.email]\n{text}"));
        let found: Vec<_> = errors(&loaded).iter().map(|finding| (finding.code, finding.line)).collect();
        match loaded.setup {
            Some(setup) => Ok(setup.gate["email"]),
            None => Err(found),
        }
    };
    let short = policy("keep = \"1d\"\nallow_short_keep = true\non_expired_lease = \"proceed\"").unwrap();
    assert_eq!((short.keep, short.proceed_when_expired), (Duration::from_secs(86_400), true));
    assert_eq!(policy("").unwrap(), retoma_server::gate::GatePolicy::default());
    for (text, code) in [
        ("keep = \"71h\"", "short_keep"),
        ("lease = \"25h\"", "bad_value"),
        ("lease = \"0s\"", "bad_value"),
        ("lease = \"soon\"", "bad_duration"),
        ("on_expired_lease = \"retry\"", "unknown_word"),
        ("leese = \"2m\"", "unknown_key"),
    ] {
        assert_eq!(policy(text).map(|_| ()), Err(vec![(code, 2)]), "{text}");
    }
    let loaded = checked("[gate.scopes.\"a b\"]\nlease = \"2m\"");
    assert_eq!(errors(&loaded)[0].code, "bad_name");
}
