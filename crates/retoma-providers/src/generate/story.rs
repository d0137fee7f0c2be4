//! The lives of buyers.

use std::time::Duration;

use super::bodies::Sale;
use super::{Buyer, Stage, bodies};

/// What a buyer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Story {
    /// Makes a PIX and is not heard of again.
    PixForgotten,
    /// Pays before the first touch.
    PaysBeforeTouches,
    /// Pays in the very moment of a touch.
    PaysAtTouch,
    /// Pays between two touches.
    PaysBetweenTouches,
    /// Pays after the last touch.
    PaysAfterTouches,
    /// Makes another PIX and pays that one: the paid sale has another transaction.
    PaysOtherTransaction,
    /// The card is refused; nothing more.
    CardRefused,
    /// The card is refused; pays with PIX later.
    CardThenPix,
    /// Leaves the cart.
    CartLeft,
    /// Leaves the cart and pays later.
    CartThenPays,
    /// Chats in bursts, asks for the price, wants to buy, pays.
    ChatsAndPays,
    /// Asks something and is silent.
    AsksAndLeaves,
    /// Answers a reminder and never pays.
    AnswersReminder,
    /// Asks for silence after the first touch.
    OptsOut,
    /// Asks for silence and comes back.
    OptsOutAndBack,
    /// The payment is heard of before the PIX that it paid.
    PixLate,
    /// Pays and gets the money back.
    PaysAndRefunds,
}

impl Story {
    /// Every story.
    pub const ALL: [Story; 17] = [
        Story::PixForgotten,
        Story::PaysBeforeTouches,
        Story::PaysAtTouch,
        Story::PaysBetweenTouches,
        Story::PaysAfterTouches,
        Story::PaysOtherTransaction,
        Story::CardRefused,
        Story::CardThenPix,
        Story::CartLeft,
        Story::CartThenPays,
        Story::ChatsAndPays,
        Story::AsksAndLeaves,
        Story::AnswersReminder,
        Story::OptsOut,
        Story::OptsOutAndBack,
        Story::PixLate,
        Story::PaysAndRefunds,
    ];
}

const FIRST_NAMES: [&str; 12] =
    ["Ana", "Bruno", "Carla", "Davi", "Elisa", "Fábio", "Gabi", "Heitor", "Íris", "João", "Karina", "Luís"];
const LAST_NAMES: [&str; 8] = ["Teste", "Exemplo", "Modelo", "Amostra", "Ensaio", "Prova", "Invento", "Fictício"];
const GREETINGS: [&str; 4] = ["oi", "olá, tudo bem?", "bom dia", "opa"];
const QUESTIONS: [&str; 4] =
    ["funciona no celular?", "tem certificado?", "por quanto tempo fica o acesso?", "é pra iniciante?"];
const PRICES: [&str; 3] = ["quanto custa?", "qual o valor?", "qual o preço?"];
const BUYS: [&str; 3] = ["quero comprar", "manda o link", "como faço pra comprar?"];
const STOPS: [&str; 4] = ["SAIR", " sair ", "Parar", "PARE"];
const ANSWERS: [&str; 3] = ["já vou pagar", "deu problema aqui no banco", "calma, pago amanhã"];

impl Stage<'_> {
    /// One buyer's life.
    pub(super) fn live(&mut self, number: u32) -> Buyer {
        let story = match Story::ALL.get(number as usize) {
            Some(story) => *story,
            None => *self.rng.one_of(&Story::ALL),
        };
        let phone = format!("55419999{number:05}");
        let mut buyer = Buyer {
            jid: crate::evolution::fake::jid_of(&phone),
            phone,
            name: format!("{} {}", self.rng.one_of(&FIRST_NAMES), self.rng.one_of(&LAST_NAMES)),
            email: format!("compra{number}@example.com"),
            story,
            offer: self.rng.one_of(&["9000001", "9000002"]).to_string(),
            transactions: Vec::new(),
            paid_transaction: None,
            paid_at: None,
            opted_out_at: None,
            opted_in_at: None,
            refunded_at: None,
        };
        let begin = self.rng.between(Duration::ZERO, self.plan.spread);
        self.play(&mut buyer, begin);
        buyer
    }

    fn play(&mut self, buyer: &mut Buyer, begin: Duration) {
        let [first, second, last] = self.plan.touches;
        match buyer.story {
            Story::PixForgotten => {
                self.pix(buyer, begin);
            }
            Story::PaysBeforeTouches => {
                let sale = self.pix(buyer, begin);
                let wait = self.rng.between(first / 10, first / 2);
                self.pays(buyer, &sale, begin + wait);
            }
            Story::PaysAtTouch => {
                let sale = self.pix(buyer, begin);
                let touch = *self.rng.one_of(&[first, second, last]);
                let wait = self.rng.between(touch - touch / 50, touch + touch / 50);
                self.pays(buyer, &sale, begin + wait);
            }
            Story::PaysBetweenTouches => {
                let sale = self.pix(buyer, begin);
                let wait = self.rng.between(first * 2, second.max(first * 2));
                self.pays(buyer, &sale, begin + wait);
            }
            Story::PaysAfterTouches => {
                let sale = self.pix(buyer, begin);
                self.pays(buyer, &sale, begin + last + first * 2);
            }
            Story::PaysOtherTransaction => {
                self.pix(buyer, begin);
                let again = begin + self.rng.between(first / 2, first * 2);
                let sale = self.pix(buyer, again);
                self.pays(buyer, &sale, again + first / 3);
            }
            Story::CardRefused => {
                self.card_refused(buyer, begin);
            }
            Story::CardThenPix => {
                self.card_refused(buyer, begin);
                let again = begin + self.rng.between(first / 3, second);
                let sale = self.pix(buyer, again);
                self.pays(buyer, &sale, again + first / 4);
            }
            Story::CartLeft => self.cart(buyer, begin),
            Story::CartThenPays => {
                self.cart(buyer, begin);
                let later = begin + self.rng.between(first / 2, second);
                let sale = self.sale(buyer);
                self.pays(buyer, &sale, later);
            }
            _ => self.play_talk(buyer, begin),
        }
    }

    /// Stories with words in them, or with a twist.
    fn play_talk(&mut self, buyer: &mut Buyer, begin: Duration) {
        let [first, second, _] = self.plan.touches;
        match buyer.story {
            Story::ChatsAndPays => {
                let mut now = self.burst(buyer, begin, &[&GREETINGS, &QUESTIONS, &PRICES]);
                now = self.burst(buyer, now + first / 3, &[&BUYS]);
                let sale = self.pix(buyer, now + first / 3);
                self.pays(buyer, &sale, now + first / 2);
                self.burst(buyer, now + first, &[&GREETINGS]);
            }
            Story::AsksAndLeaves => {
                self.burst(buyer, begin, &[&GREETINGS, &PRICES]);
            }
            Story::AnswersReminder => {
                self.pix(buyer, begin);
                let later = begin + self.rng.between(first * 2, second.max(first * 2));
                self.burst(buyer, later, &[&ANSWERS]);
            }
            Story::OptsOut => {
                self.pix(buyer, begin);
                self.opts_out(buyer, begin + first + first / 4);
            }
            Story::OptsOutAndBack => {
                self.pix(buyer, begin);
                let out = begin + first + first / 4;
                self.opts_out(buyer, out);
                let back = out + second;
                buyer.opted_in_at = Some(back);
                self.says(buyer, back, "VOLTAR");
                self.burst(buyer, back + first, &[&QUESTIONS]);
            }
            Story::PixLate => {
                let sale = self.sale(buyer);
                let paid = begin + first / 5;
                self.pays(buyer, &sale, paid);
                // Made before the payment, heard of after it (FC-37).
                let body = bodies::pix(self.rng, buyer, &sale, self.at(begin));
                self.platform(paid + first / 5, body);
            }
            _ => {
                let sale = self.pix(buyer, begin);
                let paid = begin + first / 3;
                self.pays(buyer, &sale, paid);
                let refunded = paid + second;
                buyer.refunded_at = Some(refunded);
                let body = bodies::refund(self.rng, buyer, &sale, self.at(refunded));
                self.platform(refunded, body);
            }
        }
    }

    fn sale(&mut self, buyer: &mut Buyer) -> Sale {
        let transaction = self.transaction();
        buyer.transactions.push(transaction.clone());
        Sale { transaction }
    }

    fn pix(&mut self, buyer: &mut Buyer, after: Duration) -> Sale {
        let sale = self.sale(buyer);
        let body = bodies::pix(self.rng, buyer, &sale, self.at(after));
        self.platform(after, body);
        sale
    }

    fn pays(&mut self, buyer: &mut Buyer, sale: &Sale, after: Duration) {
        buyer.paid_at = Some(after);
        buyer.paid_transaction = Some(sale.transaction.clone());
        let body = bodies::approved(self.rng, buyer, sale, self.at(after));
        self.platform(after, body);
    }

    fn card_refused(&mut self, buyer: &mut Buyer, after: Duration) {
        let sale = self.sale(buyer);
        let body = bodies::card_refused(self.rng, buyer, &sale, self.at(after));
        self.platform(after, body);
    }

    fn cart(&mut self, buyer: &Buyer, after: Duration) {
        let body = bodies::cart(self.rng, buyer, self.at(after));
        self.platform(after, body);
    }

    fn opts_out(&mut self, buyer: &mut Buyer, after: Duration) {
        buyer.opted_out_at = Some(after);
        let text = *self.rng.one_of(&STOPS);
        self.says(buyer, after, text);
    }

    /// One message of each kind, close together. Answers when it ends.
    fn burst(&mut self, buyer: &Buyer, after: Duration, kinds: &[&[&str]]) -> Duration {
        let mut now = after;
        for texts in kinds {
            let text = *self.rng.one_of(texts);
            self.says(buyer, now, text);
            now += self.rng.between(self.plan.burst_gap / 4, self.plan.burst_gap);
        }
        now
    }

    fn says(&mut self, buyer: &Buyer, after: Duration, text: &str) {
        let body = bodies::message(self.rng, self.plan, buyer, text, self.at(after));
        self.whatsapp(after, body);
    }

    /// What is nobody's message: groups, status posts, reactions, our own phone, a connection that comes and goes.
    pub(super) fn noise(&mut self, buyers: &[Buyer]) {
        let horizon = self.plan.spread + self.plan.touches[2];
        for buyer in buyers.iter().step_by(3) {
            let after = self.rng.between(Duration::ZERO, horizon);
            let kind = self.rng.below(5);
            let body = bodies::noise(self.rng, self.plan, buyer, kind, self.at(after));
            self.whatsapp(after, body);
        }
    }
}
