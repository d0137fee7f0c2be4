//! State is the fold of decisions (S11): what was decided, decided again by the pure core on what it was decided on, is the same;
//! and folding the decisions one after the other gives the rows that are stored.

use std::collections::HashMap;
use std::time::Duration;

use retoma_core::decide::{Setup, decide};
use retoma_core::event::Event;
use retoma_core::ids::{ContactId, Tenant};
use retoma_core::state::{Contact, ContactView, Conversation};
use retoma_engine::Clock;
use retoma_store::Store;

use crate::world::{World, vendas};

const START: &str = "2026-12-02T10:00:00-03:00";
const HOUR: Duration = Duration::from_secs(3600);
const BUYERS: usize = 40;

fn phone(n: usize) -> String {
    format!("55419{:08}", 70_000_000 + n)
}

/// A few days in the life of some buyers: every kind of event that the shipped flow answers, told twice now and then.
async fn live(world: &World) {
    for n in 0..BUYERS {
        let (phone, order) = (phone(n), format!("HP{n:010}"));
        match n % 8 {
            0 => world.hotmart("PIX", &phone, &order).await,
            1 => world.says(&phone, &format!("A{n}"), "oi, quanto custa?").await,
            2 => world.hotmart("CART", &phone, &order).await,
            3 => world.hotmart("REFUSED", &phone, &order).await,
            4 => world.hotmart("PURCHASE_APPROVED", &phone, &order).await,
            _ => world.says(&phone, &format!("A{n}"), "boa tarde").await,
        }
        if n % 3 == 0 {
            world.hotmart("PIX", &phone, &order).await;
        }
    }
    world.pass(HOUR).await;
    for n in 0..BUYERS {
        let (phone, order) = (phone(n), format!("HP{n:010}"));
        match n % 7 {
            0 => world.hotmart("PURCHASE_APPROVED", &phone, &order).await,
            1 => world.says(&phone, &format!("B{n}"), "sair").await,
            2 => world.says(&phone, &format!("B{n}"), "quero comprar").await,
            3 => world.hotmart("PURCHASE_REFUNDED", &phone, &order).await,
            4 => world.says(&phone, &format!("B{n}"), "depois eu vejo").await,
            _ => {}
        }
    }
    world.pass(60 * HOUR).await;
    for n in (0..BUYERS).step_by(2) {
        world.says(&phone(n), &format!("C{n}"), if n % 4 == 0 { "voltar" } else { "oi de novo" }).await;
    }
    world.pass(30 * HOUR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaying_the_journal_gives_the_stored_state() {
    let world = World::new(START).await;
    live(&world).await;
    let journal = world.engine.store().journal();
    assert!(journal.len() > 4 * BUYERS, "{} decisions", journal.len());
    let (flow, setup) = (vendas(), Setup { default_channel: "zap".into() });
    let mut folded: HashMap<ContactId, (Contact, Vec<Conversation>)> = HashMap::new();
    for (view, commit) in &journal {
        let taken: Vec<Event> = commit
            .decision
            .events
            .iter()
            .map(|outcome| view.undecided.iter().find(|event| event.id == outcome.event).unwrap().clone())
            .collect();
        assert_eq!(decide(&flow, view, &taken, &setup, commit.now), commit.decision, "decided again, it is the same");
        // What the fold knows of the contact is what the decision was taken on.
        let state = folded.entry(view.contact.id).or_insert_with(|| (view.contact.clone(), Vec::new()));
        assert_eq!(state.0.version, view.contact.version, "no decision is missing in between");
        let mut fold = ContactView { contact: state.0.clone(), conversations: state.1.clone(), ..view.clone() };
        commit.decision.apply(&mut fold, commit.now);
        *state = (fold.contact, fold.conversations);
    }
    assert_eq!(folded.len(), BUYERS);
    let ids = folded.keys().map(|id| (Tenant::default(), *id)).collect();
    for stored in world.engine.store().load_contacts(ids, world.clock.now()).await.unwrap() {
        let (contact, conversations) = &folded[&stored.contact.id];
        assert_eq!(stored.contact, *contact);
        assert_eq!(stored.conversations, *conversations);
    }
}
