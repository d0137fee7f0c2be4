//! The load: buyers that make a PIX, write, pay, ask for silence, posted by a few threads. A webhook is posted until it is
//! acknowledged, as a platform would, and some are posted again afterwards. What was acknowledged is written down with when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::harness::http::{self, Answer};
use crate::harness::random::Random;
use crate::harness::shop::{self, Webhook};
use crate::harness::{now, wall_clock};

const THREADS: u64 = 4;
/// Between two buyers of one thread.
const BUYER_EVERY: Duration = Duration::from_millis(45);
/// After a refusal or a lost connection.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(30);

/// What a buyer did, as far as it was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Pix,
    Paid,
    Wrote,
    AskedForTheCode,
    OptedOut,
}

/// A webhook whose answer was read whole.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) id: String,
    pub(crate) buyer: u64,
    pub(crate) deed: Deed,
    /// When the answer had been read; the commit is earlier.
    pub(crate) at: Timestamp,
    /// Answers read in all: 1, and one for each time it was posted again.
    pub(crate) answers: u64,
    /// The events that the answers named; one, if all is well.
    pub(crate) events: BTreeSet<String>,
}

/// Everything that was acknowledged, by id.
pub(crate) type Done = BTreeMap<String, Acknowledged>;

pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    port: u16,
    stop: AtomicBool,
    next_buyer: AtomicU64,
    done: Mutex<Done>,
}

/// What a buyer will do, and when.
struct Planned {
    at: Instant,
    buyer: u64,
    deed: Deed,
    webhook: Webhook,
}

pub(crate) fn start(port: u16, seed: u64) -> Load {
    let shared =
        Arc::new(Shared { port, stop: AtomicBool::new(false), next_buyer: AtomicU64::new(1), done: Mutex::default() });
    let threads = (0..THREADS).map(|thread| {
        let shared = Arc::clone(&shared);
        let random = Random(seed.wrapping_mul(31).wrapping_add(thread));
        std::thread::spawn(move || shared.work(random))
    });
    Load { threads: threads.collect(), shared }
}

impl Load {
    pub(crate) fn acknowledged(&self) -> usize {
        self.shared.done.lock().unwrap().len()
    }

    /// No new buyers; what is planned is still posted, each until it is acknowledged.
    pub(crate) fn finish(self) -> Done {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a thread of the load panicked");
        }
        Arc::into_inner(self.shared).expect("every thread ended").done.into_inner().unwrap()
    }
}

impl Shared {
    fn work(&self, mut random: Random) {
        let mut planned: Vec<Planned> = Vec::new();
        let mut next_buyer_at = now();
        loop {
            let stopping = self.stop.load(Ordering::Relaxed);
            if !stopping && now() >= next_buyer_at {
                next_buyer_at = now() + BUYER_EVERY;
                planned.extend(plan(self.next_buyer.fetch_add(1, Ordering::Relaxed), &mut random));
            }
            planned.sort_by_key(|one| std::cmp::Reverse(one.at));
            match planned.last() {
                Some(one) if one.at <= now() => {
                    let one = planned.pop().expect("there is a last one");
                    self.post_until_acknowledged(&one, &mut random);
                }
                None if stopping => return,
                // A few milliseconds of nothing to do.
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn post_until_acknowledged(&self, one: &Planned, random: &mut Random) {
        let begun = now();
        let again = u64::from(random.below(5) == 0);
        let mut answers = 0;
        while answers < 1 + again {
            let Webhook { path, header, body, id } = &one.webhook;
            let headers = [(header.0, header.1.as_str()), ("content-type", "application/json")];
            match http::post(self.port, path, &headers, body) {
                Ok(answer) if answer.status == 200 => {
                    answers += 1;
                    self.note(one, id, &answer);
                }
                // Ends the connection or says that it cannot keep the promise now: nothing is acknowledged.
                Ok(answer) if answer.status == 503 => std::thread::sleep(TRY_AGAIN_AFTER),
                Err(_) => std::thread::sleep(TRY_AGAIN_AFTER),
                Ok(answer) => panic!("{id} was answered {}: {}", answer.status, answer.text()),
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{id} was not acknowledged within a minute");
        }
    }

    fn note(&self, one: &Planned, id: &str, answer: &Answer) {
        let at = wall_clock();
        let event = answer.json()["event_id"].as_str().expect("an acknowledgement names its event").to_owned();
        let mut done = self.done.lock().unwrap();
        let (buyer, deed) = (one.buyer, one.deed);
        let row = Acknowledged { id: id.to_owned(), buyer, deed, at, answers: 0, events: BTreeSet::new() };
        let row = done.entry(id.to_owned()).or_insert(row);
        row.answers += 1;
        row.events.insert(event);
    }
}

/// What a buyer will do: a third only makes a PIX, a third pays it before, between or after the touches, the rest chats.
fn plan(buyer: u64, random: &mut Random) -> Vec<Planned> {
    let begun = now();
    let unix_ms = wall_clock().as_millisecond();
    let step = |after_ms: u64, deed: Deed, webhook: Webhook| Planned {
        at: begun + Duration::from_millis(after_ms),
        buyer,
        deed,
        webhook,
    };
    let pix = || step(0, Deed::Pix, shop::pix_created(buyer, unix_ms));
    let later = |after_ms: u64| unix_ms + i64::try_from(after_ms).expect("plans are seconds long");
    match random.below(6) {
        0 | 1 => vec![pix()],
        2 | 3 => {
            let after = 1 + random.below(4_000);
            vec![pix(), step(after, Deed::Paid, shop::payment_approved(buyer, later(after)))]
        }
        4 => {
            let after = 400 + random.below(1_500);
            vec![
                step(0, Deed::Wrote, shop::message(buyer, 1, "oi, tudo bem?", unix_ms)),
                step(after, Deed::AskedForTheCode, shop::message(buyer, 2, "me manda o codigo", later(after))),
            ]
        }
        _ => {
            let after = 1 + random.below(3_000);
            vec![pix(), step(after, Deed::OptedOut, shop::message(buyer, 1, "sair", later(after)))]
        }
    }
}
