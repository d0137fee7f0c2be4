//! A shop for tests on the real binary: its folder with configuration, flow and secrets, and the webhooks of its buyers.
//! Everything is invented; buyer 17 has the phone 5541970000017.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

/// What Hotmart proves itself with.
pub(crate) const HOTTOK: &str = "hottok-of-the-test";
/// What Evolution proves itself with.
pub(crate) const HOOK_SECRET: &str = "hook-secret-of-the-test";
/// What the channel proves itself with.
pub(crate) const API_KEY: &str = "evolution-key-of-the-test";
/// Where the database is, in the folder.
pub(crate) const DATABASE: &str = "retoma.db";

const FLOW: &str = include_str!("rapido.yaml");

/// What differs between shops.
pub(crate) struct Shop<'a> {
    pub(crate) port: u16,
    pub(crate) fake_port: u16,
    pub(crate) hottok: &'a str,
    pub(crate) hook_secret: &'a str,
    pub(crate) api_key: &'a str,
}

impl Shop<'_> {
    pub(crate) fn new(port: u16, fake_port: u16) -> Self {
        Self { port, fake_port, hottok: HOTTOK, hook_secret: HOOK_SECRET, api_key: API_KEY }
    }

    /// Writes the folder that `retoma init` would, with a flow in seconds.
    pub(crate) fn write(&self, folder: &Path) {
        let Shop { port, fake_port, .. } = self;
        let config = format!(
            r#"
[server]
listen = "127.0.0.1:{port}"
[storage]
url = "sqlite://{DATABASE}"
[sources.loja]
provider = "hotmart"
secret = {{ file = "secrets/hottok" }}
flow = "rapido"
channel = "zap"
[sources.zap]
provider = "evolution"
instance = "loja-a"
auth = {{ header = "x-hook-secret", secret = {{ file = "secrets/hook" }} }}
flow = "rapido"
channel = "zap"
[channels.zap]
provider = "evolution"
base_url = "http://127.0.0.1:{fake_port}"
instance = "loja-a"
api_key = {{ file = "secrets/evolution" }}
timeout = "1s"
concurrency = 32
[outbound]
allow = ["127.0.0.1:{fake_port}"]
[retry]
reconcile_for = "2s"
[retry.recovery]
base = "200ms"
factor = 2
cap = "1s"
jitter = 0.2
attempts = 6
"#
        );
        std::fs::create_dir_all(folder.join("flows")).unwrap();
        std::fs::create_dir_all(folder.join("secrets")).unwrap();
        std::fs::write(folder.join("retoma.toml"), config).unwrap();
        std::fs::write(folder.join("flows/rapido.yaml"), FLOW).unwrap();
        for (name, secret) in [("hottok", self.hottok), ("hook", self.hook_secret), ("evolution", self.api_key)] {
            let path = folder.join("secrets").join(name);
            std::fs::write(&path, secret).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// A webhook, ready to be posted.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    /// The id that its delivery key is made of.
    pub(crate) id: String,
    pub(crate) path: &'static str,
    pub(crate) header: (&'static str, String),
    pub(crate) body: Vec<u8>,
}

pub(crate) fn phone(buyer: u64) -> String {
    format!("55419{:08}", 70_000_000 + buyer)
}

pub(crate) fn transaction(buyer: u64) -> String {
    format!("HP{buyer:010}")
}

fn hotmart(buyer: u64, event: &str, status: &str, unix_ms: i64) -> Webhook {
    let id = format!("{event}-{buyer}");
    let body = json!({
        "id": id, "creation_date": unix_ms, "event": event, "version": "2.0.0",
        "data": {
            "product": { "id": 9_000_001, "name": "Curso Exemplo" },
            "buyer": { "name": "Ana Teste", "checkout_phone_code": "55", "checkout_phone": phone(buyer)[2..] },
            "purchase": {
                "transaction": transaction(buyer), "status": status, "recurrence_number": 1,
                "full_price": { "value": 197, "currency_value": "BRL" },
                "payment": { "type": "PIX", "pix_code": "00020101EXEMPLO" },
            },
        },
    });
    webhook(id, "/in/loja", ("x-hotmart-hottok", HOTTOK), &body)
}

fn webhook(id: String, path: &'static str, header: (&'static str, &str), body: &Value) -> Webhook {
    Webhook { id, path, header: (header.0, header.1.to_owned()), body: body.to_string().into_bytes() }
}

pub(crate) fn pix_created(buyer: u64, unix_ms: i64) -> Webhook {
    hotmart(buyer, "PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", unix_ms)
}

pub(crate) fn payment_approved(buyer: u64, unix_ms: i64) -> Webhook {
    hotmart(buyer, "PURCHASE_APPROVED", "APPROVED", unix_ms)
}

/// The `n`-th message of a buyer.
pub(crate) fn message(buyer: u64, n: u64, text: &str, unix_ms: i64) -> Webhook {
    let id = format!("3A{buyer:012}{n:04}");
    let body = json!({
        "event": "messages.upsert", "instance": "loja-a",
        "data": {
            "key": { "remoteJid": format!("{}@s.whatsapp.net", phone(buyer)), "fromMe": false, "id": id },
            "pushName": "Ana Teste", "status": "DELIVERY_ACK", "message": { "conversation": text },
            "messageType": "conversation", "messageTimestamp": unix_ms / 1000, "source": "android",
        },
        "sender": "554133330000@s.whatsapp.net", "apikey": null,
    });
    webhook(id, "/in/zap", ("x-hook-secret", HOOK_SECRET), &body)
}
