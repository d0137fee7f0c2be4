//! Invented sales: sale `n` has a buyer, a transaction and a body of its own, the same in every round and every process.
//!
//! Whatever ends in an index is scattered over its range, since keys that arrive in order would flatter a B-tree. Nothing
//! repeats below [`SALES_MAX`].

use bytes::Bytes;

/// Sales that have a phone of their own: a million for each area code.
pub(super) const SALES_MAX: u64 = AREA_CODES.len() as u64 * PHONES;

/// Sales that share an area code. Measured sales start at a multiple of it.
pub(super) const PHONES: u64 = 1_000_000;

const AREA_CODES: [u8; 67] = [
    41, 42, 43, 44, 45, 46, 47, 48, 49, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 24, 27, 28, 31, 32, 33, 34, 35, 37,
    38, 51, 53, 54, 55, 61, 62, 63, 64, 65, 66, 67, 68, 69, 71, 73, 74, 75, 77, 79, 81, 82, 83, 84, 85, 86, 87, 88, 89,
    91, 92, 93, 94, 95, 96, 97, 98, 99,
];

/// The type of what happened to a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// A PIX code was made.
    PixPrinted,
    /// It was paid.
    Approved,
}

/// An invented sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sale(pub(super) u64);

impl Sale {
    /// The event id of its webhook. Ends in the sale's number, so that [`Sale::of_key`] can read it.
    pub(super) fn event_id(self) -> String {
        let random = mixed(self.0);
        let number = self.0 & 0xffff_ffff_ffff;
        format!("{:08x}-{:04x}-4{:03x}-8000-{number:012x}", random >> 32, (random >> 16) & 0xffff, random & 0xfff)
    }

    /// The sale behind a delivery key in words, if it is one of ours.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let number = key.get(key.len().checked_sub(12)?..)?;
        u64::from_str_radix(number, 16).ok().map(Self)
    }

    /// The ten digits of its transaction.
    pub(super) fn transaction_number(self) -> u64 {
        scattered(self.0, 6_180_339_887, 10_000_000_000)
    }

    /// Its transaction.
    pub(super) fn transaction(self) -> String {
        format!("HP{:010}", self.transaction_number())
    }

    /// The buyer's phone without the country code: an area code and `999xxxxxx`.
    pub(super) fn phone(self) -> String {
        let area = AREA_CODES[(self.0 / PHONES) as usize % AREA_CODES.len()];
        format!("{area}999{:06}", scattered(self.0 % PHONES, 618_033, PHONES))
    }

    /// The buyer's e-mail address.
    pub(super) fn email(self) -> String {
        format!("comprador.{:08x}@example.com", scattered(self.0, 0x9e37_79b1, 1 << 32))
    }

    /// The body of its webhook.
    pub(super) fn body(self, what: Happening) -> Bytes {
        let (event, status, approved_at) = match what {
            Happening::PixPrinted => ("PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", ""),
            Happening::Approved => ("PURCHASE_APPROVED", "APPROVED", APPROVED_AT),
        };
        let (id, phone, email, transaction) = (self.event_id(), self.phone(), self.email(), self.transaction());
        let parts: [&str; 18] = [
            r#"{"id":""#,
            &id,
            r#"","creation_date":1767960006000,"event":""#,
            event,
            HEAD,
            &email,
            BUYER,
            &phone,
            ADDRESS,
            &transaction,
            r#"","status":""#,
            status,
            PURCHASE,
            approved_at,
            PAYMENT,
            r#"}},"subscription":{"status":"ACTIVE","plan":{"id":123,"name":"Mensal"},"subscriber":{"code":""#,
            &id[..8],
            r#""}}}}"#,
        ];
        Bytes::from(parts.concat())
    }
}

// The body of reference/payment-webhooks.md 1.3, without a document: one CPF for everybody would make each buyer look like
// all others.
const HEAD: &str = r#"","version":"2.0.0","data":{"product":{"id":9000001,"ucode":"aaaa1111-2222-4333-8444-bbbb55556666","name":"Curso Exemplo","support_email":"suporte@example.com","has_co_production":false,"is_physical_product":false},"affiliates":[{"affiliate_code":"","name":""}],"buyer":{"email":""#;
const BUYER: &str =
    r#"","name":"Ana Teste","first_name":"Ana","last_name":"Teste","checkout_phone_code":"55","checkout_phone":""#;
const ADDRESS: &str = r#"","document":"","document_type":"","address":{"country":"Brasil","country_iso":"BR","zipcode":"80000000","city":"Curitiba","state":"Paraná","address":"Rua Exemplo","number":"1","neighborhood":"Centro","complement":""}},"producer":{"name":"Produtora Exemplo","document":"00000000000191","legal_nature":"Pessoa Jurídica"},"commissions":[{"source":"MARKETPLACE","value":14.75,"currency_value":"BRL"},{"source":"PRODUCER","value":182.25,"currency_value":"BRL"}],"purchase":{"transaction":""#;
const PURCHASE: &str = r#"","order_date":1767960000000,"recurrence_number":1,"is_funnel":false,"business_model":"I","invoice_by":"HOTMART","price":{"value":197,"currency_value":"BRL"},"full_price":{"value":197,"currency_value":"BRL"},"original_offer_price":{"value":197,"currency_value":"BRL"},"offer":{"code":"abc1def2","coupon_code":"CUPOM10"},"origin":{"src":"bio","sck":"ads|teste","xcod":"cli-42"},"checkout_country":{"name":"Brasil","iso":"BR"},"order_bump":{"is_order_bump":false},"#;
const APPROVED_AT: &str = r#""approved_date":1767960300000,"#;
const PAYMENT: &str = r#""payment":{"type":"PIX","installments_number":1,"pix_code":"00020101021226EXEMPLO6304ABCD","pix_qrcode":"https://exemplo.invalid/qr?hash=1","pix_expiration_date":1768132800000"#;

/// A number's place when its range is shuffled: multiplication by something coprime to the range hits every place once.
fn scattered(number: u64, by: u64, range: u64) -> u64 {
    let place = u128::from(number) * u128::from(by) % u128::from(range);
    u64::try_from(place).expect("a remainder is below its range")
}

/// Sixty-four bits that look random (splitmix64).
pub(super) fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_sales_share_anything_that_identifies_them() {
        let sales = (0..3000).chain(PHONES - 100..PHONES + 100).chain(9 * PHONES..9 * PHONES + 3000).map(Sale);
        let mut seen = HashSet::new();
        for sale in sales {
            for word in [sale.event_id(), sale.transaction(), sale.phone(), sale.email()] {
                assert!(seen.insert(word.clone()), "{word} of {sale:?}");
            }
        }
    }

    #[test]
    fn a_sale_is_found_again_by_the_key_of_its_event() {
        for number in [0, 1, 9_000_001, SALES_MAX - 1] {
            let sale = Sale(number);
            assert_eq!(Sale::of_key(&format!("hotmart/{}", sale.event_id())), Some(sale));
        }
        assert_eq!(Sale::of_key("short"), None);
    }

    #[test]
    fn bodies_are_json_of_the_size_that_hotmart_sends() {
        for what in [Happening::PixPrinted, Happening::Approved] {
            let body = Sale(7).body(what);
            let read: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(read["data"]["purchase"]["transaction"], Sale(7).transaction());
            assert!((1400..2400).contains(&body.len()), "{} bytes", body.len());
        }
    }
}
