//! Invented traffic that looks real: what `retoma demo` lives on, with the truth beside it.
//!
//! Pure and repeatable: the same seed and plan give the same bodies at the same times. Every buyer lives one [`Story`];
//! webhooks are repeated byte for byte, and facts under new ids, as platforms do. [`Buyer`] says what really happened, so
//! that whoever plays the schedule can check what was done about it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::rng::Rng;

mod bodies;
mod story;

pub use story::Story;

/// Repetitions of one webhook.
const COPIES_MAX: usize = 10;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many buyers.
    pub buyers: u32,
    /// The instant of offset zero; times inside bodies count from it.
    pub starts_at: Timestamp,
    /// Within which time buyers show up.
    pub spread: Duration,
    /// When the touches of a cadence fall due, counted from its start. Payments come before, at, between and after these.
    pub touches: [Duration; 3],
    /// Time between the messages of a burst.
    pub burst_gap: Duration,
    /// How often a webhook is repeated byte for byte, 0 to 1.
    pub copies: f64,
    /// How often a platform says one fact again under another event id, 0 to 1.
    pub repeated_facts: f64,
    /// The instance that Evolution bodies name.
    pub instance: String,
    /// The token that Evolution bodies carry.
    pub api_key: String,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            buyers: 40,
            starts_at: Timestamp::from_second(1_790_000_000).expect("a constant within range"),
            spread: Duration::from_secs(3600),
            touches: [Duration::from_secs(15 * 60), Duration::from_secs(4 * 3600), Duration::from_secs(20 * 3600)],
            burst_gap: Duration::from_millis(800),
            copies: 0.25,
            repeated_facts: 0.15,
            instance: "loja-a".to_owned(),
            api_key: "token-de-demonstracao".to_owned(),
        }
    }
}

/// One webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// When it is posted, from the start.
    pub after: Duration,
    /// `hotmart` or `evolution`.
    pub source: &'static str,
    /// Its body.
    pub body: Value,
    /// Whether it says something new.
    pub repeats: Repeats,
}

/// What a webhook repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Nothing.
    No,
    /// A delivery: the same event id.
    Delivery,
    /// A fact, under another event id.
    Fact,
}

/// A buyer, and what really happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buyer {
    /// Digits with country code and ninth digit (`5541999900001`).
    pub phone: String,
    /// As WhatsApp knows them (`554199900001@s.whatsapp.net`).
    pub jid: String,
    /// Name.
    pub name: String,
    /// E-mail.
    pub email: String,
    /// What they do.
    pub story: Story,
    /// What they look at.
    pub offer: String,
    /// Every transaction that platforms speak of.
    pub transactions: Vec<String>,
    /// The one that was paid.
    pub paid_transaction: Option<String>,
    /// When the payment is posted for the first time.
    pub paid_at: Option<Duration>,
    /// When the wish for silence is posted for the first time.
    pub opted_out_at: Option<Duration>,
    /// When they come back.
    pub opted_in_at: Option<Duration>,
    /// When the refund is posted for the first time.
    pub refunded_at: Option<Duration>,
}

/// Everything that will be posted, in order, and who is behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Webhooks, earliest first.
    pub hooks: Vec<Hook>,
    /// Buyers.
    pub buyers: Vec<Buyer>,
}

impl Schedule {
    /// How many webhooks repeat an event id.
    pub fn copies(&self) -> usize {
        self.count(Repeats::Delivery)
    }

    /// How many webhooks say a known fact under another event id.
    pub fn repeated_facts(&self) -> usize {
        self.count(Repeats::Fact)
    }

    fn count(&self, repeats: Repeats) -> usize {
        self.hooks.iter().filter(|hook| hook.repeats == repeats).count()
    }

    /// When the last webhook is posted.
    pub fn length(&self) -> Duration {
        self.hooks.last().map(|hook| hook.after).unwrap_or_default()
    }
}

/// Makes schedules.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Rng,
}

impl Generator {
    /// A generator; equal seeds make equal schedules.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed) }
    }

    /// The webhooks of `plan.buyers` people. The first buyers live one story each, so that even a few see all of them.
    pub fn schedule(&mut self, plan: &Plan) -> Schedule {
        let mut stage = Stage { plan, rng: &mut self.rng, hooks: Vec::new(), next_transaction: 0 };
        let buyers: Vec<Buyer> = (0..plan.buyers).map(|number| stage.live(number)).collect();
        stage.noise(&buyers);
        let mut hooks = stage.hooks;
        // Stable: what was made first stays first at equal times.
        hooks.sort_by_key(|hook| hook.after);
        Schedule { hooks, buyers }
    }
}

/// Where stories are played.
struct Stage<'a> {
    plan: &'a Plan,
    rng: &'a mut Rng,
    hooks: Vec<Hook>,
    next_transaction: u32,
}

impl Stage<'_> {
    /// The instant of an offset.
    fn at(&self, after: Duration) -> Timestamp {
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        self.plan.starts_at.saturating_add(after).unwrap_or(Timestamp::MAX)
    }

    /// A platform's event: posted, perhaps copied, perhaps said again under another id.
    fn platform(&mut self, after: Duration, body: Value) {
        let again = self.rng.chance(self.plan.repeated_facts) && bodies::is_fact(&body);
        if again {
            let mut other = body.clone();
            other["id"] = self.rng.uuid().into();
            let after = after + self.soon();
            self.hooks.push(Hook { after, source: "hotmart", body: other, repeats: Repeats::Fact });
        }
        self.post("hotmart", after, body);
    }

    /// A WhatsApp event.
    fn whatsapp(&mut self, after: Duration, body: Value) {
        self.post("evolution", after, body);
    }

    fn post(&mut self, source: &'static str, after: Duration, body: Value) {
        for _ in 0..COPIES_MAX {
            if !self.rng.chance(self.plan.copies) {
                break;
            }
            let mut copy = body.clone();
            let later = after + self.soon();
            if source == "evolution" && copy["event"] != "connection.update" {
                // What changes from attempt to attempt, and must not make a copy look new (FC-01).
                copy["date_time"] = bodies::local_time(self.at(later)).into();
            }
            self.hooks.push(Hook { after: later, source, body: copy, repeats: Repeats::Delivery });
        }
        self.hooks.push(Hook { after, source, body, repeats: Repeats::No });
    }

    /// How long after its first copy a repetition comes: at once, or within a touch's time.
    fn soon(&mut self) -> Duration {
        match self.rng.below(3) {
            0 => Duration::from_millis(1),
            1 => self.plan.burst_gap,
            _ => self.rng.between(Duration::ZERO, self.plan.touches[0]),
        }
    }

    fn transaction(&mut self) -> String {
        self.next_transaction += 1;
        format!("HP{:010}", self.next_transaction)
    }
}

#[cfg(test)]
mod tests;
