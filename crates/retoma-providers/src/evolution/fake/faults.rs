//! What goes wrong at the fake, and how often. Plain data: a command line, a test or a file sets it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// One way in which a send goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It does not: 201, delivered.
    #[default]
    None,
    /// Delivered; the answer comes `slow_ms` later.
    Slow,
    /// Delivered, and 400: the database failed after the send. No echo, no receipt, no row to be found.
    Sent400,
    /// Delivered, and 500 "Timed Out". No echo, no receipt.
    Sent500,
    /// Delivered with echo and receipts, and never answered.
    HangSent,
    /// Not delivered, and never answered.
    HangUnsent,
    /// Delivered with echo and receipts; the connection is reset instead of an answer.
    ResetSent,
    /// Not delivered; the connection is reset.
    ResetUnsent,
    /// Delivered; 201 without an id.
    NoId,
    /// Not delivered: 400 in the send step, connection closed.
    Closed400,
    /// Not delivered: 500 before the send, connection closed.
    Closed500,
    /// Not delivered: 429 with `Retry-After`.
    TooMany,
    /// Not delivered: 401 in spite of the right key.
    Unauthorized,
    /// Not delivered: the number does not exist.
    NotOnWhatsapp,
    /// Delivered with echo and receipts; a proxy answers 502.
    Proxy502,
    /// Delivered, and 400: what came after the database row failed. Receipts and a row to be found, no echo.
    Stored400,
    /// 201 with an id, and then nothing for ever: not delivered, no receipt.
    NeverArrives,
}

/// How chats are named that WhatsApp hides behind a LID (reference, "LID matrix").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lid {
    /// By phone.
    #[default]
    None,
    /// By LID alone: up to 2.2.
    Only,
    /// By LID with `senderPn`: 2.3.0 to 2.3.5.
    SenderPn,
    /// By LID with `remoteJidAlt`: 2.3.6.
    Alt,
    /// By phone, with `addressingMode: lid`: 2.3.7.
    Overwritten,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 17] = [
        Fault::None,
        Fault::Slow,
        Fault::Sent400,
        Fault::Sent500,
        Fault::HangSent,
        Fault::HangUnsent,
        Fault::ResetSent,
        Fault::ResetUnsent,
        Fault::NoId,
        Fault::Closed400,
        Fault::Closed500,
        Fault::TooMany,
        Fault::Unauthorized,
        Fault::NotOnWhatsapp,
        Fault::Proxy502,
        Fault::Stored400,
        Fault::NeverArrives,
    ];

    /// Whether the message reaches its phone.
    pub fn delivers(self) -> bool {
        use Fault::{HangSent, NoId, None, Proxy502, ResetSent, Sent400, Sent500, Slow, Stored400};
        matches!(self, None | Slow | Sent400 | Sent500 | HangSent | ResetSent | NoId | Proxy502 | Stored400)
    }

    /// Whether the sender can know from the answer alone what became of it.
    pub fn is_ambiguous(self) -> bool {
        use Fault::{
            Closed400, HangSent, HangUnsent, NoId, Proxy502, ResetSent, ResetUnsent, Sent400, Sent500, Stored400,
        };
        matches!(
            self,
            Sent400
                | Sent500
                | HangSent
                | HangUnsent
                | ResetSent
                | ResetUnsent
                | NoId
                | Closed400
                | Proxy502
                | Stored400
        )
    }

    /// Whether the fake's database has the message, and webhooks about it are emitted.
    pub(super) fn is_stored(self) -> bool {
        self.delivers() && !matches!(self, Fault::Sent400 | Fault::Sent500)
    }

    /// Whether `send.message` is emitted: the last step of a send.
    pub(super) fn is_echoed(self) -> bool {
        self.is_stored() && self != Fault::Stored400
    }
}

impl std::str::FromStr for Fault {
    type Err = String;

    /// The word of a fault, as files and command lines write it (`hang_sent`).
    fn from_str(word: &str) -> Result<Self, String> {
        serde_json::from_value(word.into()).map_err(|_| {
            let words: Vec<String> = Fault::ALL.iter().filter_map(|fault| serde_json::to_string(fault).ok()).collect();
            format!("no fault is called {word:?}; there are {}", words.join(", "))
        })
    }
}

/// The knobs of the fake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// How often each fault happens, 0 to 1; together at most 1.
    pub chances: BTreeMap<Fault, f64>,
    /// Faults of numbers that end in these digits, whatever the chances. The longest ending wins.
    pub numbers: BTreeMap<String, Fault>,
    /// How long each answer takes, in milliseconds.
    pub latency_ms: u64,
    /// How much longer a `slow` one takes.
    pub slow_ms: u64,
    /// `Retry-After` of a 429, in seconds.
    pub retry_after_s: u64,
    /// Sends per second beyond which the answer is 429.
    pub rate_per_s: Option<u32>,
    /// Whether `send.message` is posted for each send.
    pub echoes: bool,
    /// Whether `messages.update` is posted for each send: SERVER_ACK, DELIVERY_ACK, READ.
    pub receipts: bool,
    /// Time between those webhooks, in milliseconds.
    pub webhook_pace_ms: u64,
    /// How often a webhook is posted twice, 0 to 1.
    pub duplicates: f64,
    /// Whether webhooks come in any order.
    pub out_of_order: bool,
    /// What `connectionState` says. The real one says `open` over a dead socket, too.
    pub state: String,
    /// Whether `findMessages` ignores its filters, as several versions do.
    pub find_ignores_filters: bool,
    /// Whether `findMessages` finds nothing, as where saving messages is switched off.
    pub find_nothing: bool,
    /// Whether `findMessages` answers 500.
    pub find_fails: bool,
    /// Whether echo and receipts come before the answer, always.
    pub echo_first: bool,
    /// Whether receipts come backwards: READ, DELIVERY_ACK, SERVER_ACK.
    pub receipts_backwards: bool,
    /// Whether each webhook comes twice, as with a global and an instance webhook.
    pub both_webhooks: bool,
    /// How chats are named.
    pub lid: Lid,
    /// Brazilian mobiles exist in one spelling only: `short` (without the ninth digit) or `long`.
    pub only_spelling: Option<Spelling>,
}

/// A spelling of Brazilian mobiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spelling {
    /// Twelve digits.
    Short,
    /// Thirteen digits, with the ninth.
    Long,
}

impl Default for Faults {
    /// Nothing goes wrong; echoes and receipts come.
    fn default() -> Self {
        Self {
            chances: BTreeMap::new(),
            numbers: BTreeMap::new(),
            latency_ms: 0,
            slow_ms: 5_000,
            retry_after_s: 2,
            rate_per_s: None,
            echoes: true,
            receipts: true,
            webhook_pace_ms: 200,
            duplicates: 0.0,
            out_of_order: false,
            state: "open".to_owned(),
            find_ignores_filters: true,
            find_nothing: false,
            find_fails: false,
            echo_first: false,
            receipts_backwards: false,
            both_webhooks: false,
            lid: Lid::None,
            only_spelling: None,
        }
    }
}

impl Faults {
    /// A fault for each of the endings `9901` to `9916`, in the order of [`Fault::ALL`].
    pub fn by_number() -> Self {
        let faults = Fault::ALL.into_iter().filter(|fault| *fault != Fault::None);
        Self { numbers: (9901..).map(|ending| ending.to_string()).zip(faults).collect(), ..Self::default() }
    }

    /// What cannot be: chances outside 0 to 1, or more than 1 together.
    pub fn check(&self) -> Result<(), String> {
        let all = self.chances.values().chain([&self.duplicates]);
        if all.into_iter().any(|chance| !(0.0..=1.0).contains(chance)) {
            return Err("a chance lies between 0 and 1".to_owned());
        }
        if self.chances.values().sum::<f64>() > 1.0 {
            return Err("the chances of all faults together exceed 1".to_owned());
        }
        if self.numbers.keys().any(|ending| ending.is_empty() || !ending.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err("numbers are told by their last digits".to_owned());
        }
        Ok(())
    }

    /// The fault that a number always meets.
    pub(super) fn of_number(&self, number: &str) -> Option<Fault> {
        let digits: String = number.split(['@', ':']).next()?.chars().filter(char::is_ascii_digit).collect();
        let endings = self.numbers.iter().filter(|(ending, _)| digits.ends_with(ending.as_str()));
        endings.max_by_key(|(ending, _)| ending.len()).map(|(_, fault)| *fault)
    }

    /// Whether a number exists in this spelling.
    pub(super) fn exists(&self, number: &str) -> bool {
        let digits: String =
            number.split(['@', ':']).next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
        let is_long = digits.starts_with("55") && digits.len() == 13;
        let is_short = digits.starts_with("55") && digits.len() == 12;
        match self.only_spelling {
            Some(Spelling::Short) => !is_long,
            Some(Spelling::Long) => !is_short,
            None => true,
        }
    }

    /// The fault of the next send to a number.
    pub(super) fn pick(&self, number: &str, rng: &mut Rng) -> Fault {
        if let Some(fault) = self.of_number(number) {
            return fault;
        }
        if !self.exists(number) {
            return Fault::NotOnWhatsapp;
        }
        let mut drawn = rng.unit();
        for (fault, chance) in &self.chances {
            if drawn < *chance {
                return *fault;
            }
            drawn -= chance;
        }
        Fault::None
    }
}
