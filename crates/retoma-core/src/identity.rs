//! Identities: how one person is recognised under many spellings (C11).
//!
//! Adapters make identities at the edge; the store looks contacts up by `(kind, match_key)` and keeps that pair unique. The
//! *value* is what we write to and show, the *match key* is what is compared: both spellings of a Brazilian mobile share
//! one. Nothing here repairs a number, links two persons or knows a provider by name; what cannot be read for certain is no
//! identity at all.
//!
//! Phones as people type them: [`phone`]. Ids from WhatsApp: [`Identity::from_jid`], [`Identity::bsuid`].

use serde::{Deserialize, Serialize};

use crate::event::OrderRef;
use crate::task::words;

mod document;
pub mod phone;

pub use phone::{Phone, PhoneInput, PhoneReading, read_phone};

words!(
    /// The kind of an identity, strongest first.
    IdentityKind {
        /// A phone number.
        Phone = "phone",
        /// A WhatsApp LID (`123@lid`): not a phone.
        Lid = "lid",
        /// A WhatsApp business-scoped id (`BR.123`).
        Bsuid = "bsuid",
        /// A CPF or CNPJ.
        Document = "document",
        /// An e-mail address.
        Email = "email",
        /// An order of a platform: links what is said of one transaction.
        Order = "order",
        /// An id of the source's own, where it has nothing better.
        External = "external",
    }
);

/// One identity of a contact.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// What it is.
    pub kind: IdentityKind,
    /// As written to and shown: E.164 digits without `+` for phones, the jid for LIDs.
    pub value: String,
    /// What is unique: both spellings of a Brazilian mobile share one.
    pub match_key: String,
    /// Whether a provider itself reported this spelling; such a value is written to as it stands.
    pub confirmed: bool,
}

impl Identity {
    /// A phone number. `confirmed` says that the provider spelled it so; a number that a buyer typed is not.
    pub fn phone(phone: &Phone, confirmed: bool) -> Self {
        Self {
            kind: IdentityKind::Phone,
            value: phone.e164_digits().to_owned(),
            match_key: phone.match_key(),
            confirmed,
        }
    }

    /// The person behind a WhatsApp jid: a phone (`5541999990001:12@s.whatsapp.net`, the device part dropped) or a LID
    /// (`123@lid`). Groups, broadcasts, status posts, newsletters and the server itself are nobody.
    ///
    /// WhatsApp spells its ids itself, so the digits stay as they are, short form included.
    pub fn from_jid(jid: &str) -> Option<Self> {
        let (user, server) = jid.trim().split_once('@')?;
        let user = user.split_once(':').map_or(user, |(user, _device)| user);
        if user.is_empty() || !user.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match server.to_ascii_lowercase().as_str() {
            "s.whatsapp.net" | "c.us" => Phone::reported(user).map(|phone| Self::phone(&phone, true)),
            "lid" => {
                let jid = format!("{user}@lid");
                Some(Self { kind: IdentityKind::Lid, value: jid.clone(), match_key: jid, confirmed: true })
            }
            _ => None,
        }
    }

    /// A business-scoped id of the Cloud API (`BR.0000000000000018`). Never re-cased: case is part of it.
    pub fn bsuid(id: &str) -> Option<Self> {
        let id = id.trim();
        let (country, rest) = id.split_once('.')?;
        let rest = rest.strip_prefix("ENT.").unwrap_or(rest);
        let fits = country.len() == 2
            && country.bytes().all(|byte| byte.is_ascii_uppercase())
            && (1..=128).contains(&rest.len())
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| Self::as_it_stands(IdentityKind::Bsuid, id.to_owned(), true))
    }

    /// An e-mail address, trimmed and in lower case. `None` for what is none.
    pub fn email(text: &str) -> Option<Self> {
        let email = text.trim().to_lowercase();
        let (user, domain) = email.split_once('@')?;
        let fits = email.len() <= 254
            && !user.is_empty()
            && domain.split('.').count() > 1
            && domain.split('.').all(|label| !label.is_empty())
            && !domain.contains('@')
            && !email.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, ',' | ';' | '<' | '>'));
        fits.then(|| Self::as_it_stands(IdentityKind::Email, email, false))
    }

    /// A CPF (11) or CNPJ (14), without punctuation. `None` where the check digits are wrong or all characters are equal: a
    /// filled-in `000.000.000-00` would make strangers one person.
    pub fn document(text: &str) -> Option<Self> {
        document::read(text).map(|document| Self::as_it_stands(IdentityKind::Document, document, false))
    }

    /// An order of a platform. The account is part of it: two sellers may have equal transactions.
    pub fn order(order: &OrderRef) -> Self {
        // The transaction comes last and may hold anything; in the parts before it the separator is escaped, so that no
        // two orders share a key.
        let escape = |part: &str| part.replace('%', "%25").replace('/', "%2F");
        let key = format!("{}/{}/{}", escape(&order.platform), escape(&order.account), order.transaction);
        Self { kind: IdentityKind::Order, value: order.transaction.clone(), match_key: key, confirmed: true }
    }

    /// An id of the source's own. The caller puts the source's name in front where two sources may count alike. `None` for
    /// an empty one.
    pub fn external(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self::as_it_stands(IdentityKind::External, text.to_owned(), false))
    }

    fn as_it_stands(kind: IdentityKind, value: String, confirmed: bool) -> Self {
        Self { kind, match_key: value.clone(), value, confirmed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kind value match_key`, or nothing.
    fn shown(identity: Option<Identity>) -> String {
        identity.map_or_else(|| "nobody".to_owned(), |i| format!("{} {} {}", i.kind, i.value, i.match_key))
    }

    // FC-14, FC-16, FC-21
    #[test]
    fn a_jid_names_a_phone_a_lid_or_nobody() {
        let cases = [
            ("5531988160016@s.whatsapp.net", "phone 5531988160016 553188160016"),
            ("553188160016@s.whatsapp.net", "phone 553188160016 553188160016"),
            ("553188160016:12@s.whatsapp.net", "phone 553188160016 553188160016"),
            ("553188160016@c.us", "phone 553188160016 553188160016"),
            ("554133330000@s.whatsapp.net", "phone 554133330000 554133330000"),
            ("351912000019@s.whatsapp.net", "phone 351912000019 351912000019"),
            ("5215512345678@s.whatsapp.net", "phone 5215512345678 525512345678"),
            ("200000000000014@lid", "lid 200000000000014@lid 200000000000014@lid"),
            ("200000000000014:3@LID", "lid 200000000000014@lid 200000000000014@lid"),
            ("120363000000000021@g.us", "nobody"),
            ("5511900000021-1600000000@g.us", "nobody"),
            ("5511900000021-1600000000@s.whatsapp.net", "nobody"),
            ("status@broadcast", "nobody"),
            ("1600000021@broadcast", "nobody"),
            ("120363000000000099@newsletter", "nobody"),
            ("0@s.whatsapp.net", "nobody"),
            ("5531988160016", "nobody"),
            ("@s.whatsapp.net", "nobody"),
            ("", "nobody"),
        ];
        for (jid, expected) in cases {
            assert_eq!(shown(Identity::from_jid(jid)), expected, "{jid}");
        }
    }

    #[test]
    fn what_a_provider_spelled_is_confirmed_and_what_a_buyer_typed_is_not() {
        let reported = Identity::from_jid("553188160016@s.whatsapp.net").unwrap();
        let PhoneReading::Valid(phone) = read_phone(&PhoneInput::text("+55 31 98816-0016")) else { panic!("valid") };
        let typed = Identity::phone(&phone, false);
        assert!(reported.confirmed && !typed.confirmed);
        assert_eq!(reported.match_key, typed.match_key);
        assert_ne!(reported.value, typed.value);
    }

    // FC-18
    #[test]
    fn a_bsuid_is_never_stripped_or_recased() {
        for id in ["BR.0000000000000018", "BR.aB3", "US.ENT.10000000000000000001"] {
            let identity = Identity::bsuid(id).unwrap();
            assert_eq!((identity.value.as_str(), identity.match_key.as_str()), (id, id));
        }
        for id in ["br.1", "BR.", "BR", "BRA.1", "BR.1-2", "BR.ENT.", "5541999990001"] {
            assert_eq!(Identity::bsuid(id), None, "{id}");
        }
    }

    #[test]
    fn an_email_is_trimmed_and_in_lower_case_or_it_is_none() {
        assert_eq!(shown(Identity::email(" Ana@Example.COM ")), "email ana@example.com ana@example.com");
        for text in [
            "",
            "ana",
            "ana@",
            "@example.com",
            "ana@example",
            "a b@example.com",
            "a@b@c.com",
            "a@b..com",
            "a@x.com,b@x.com",
        ] {
            assert_eq!(Identity::email(text), None, "{text}");
        }
    }

    #[test]
    fn a_document_has_right_check_digits_or_it_is_none() {
        let cases = [
            ("000.000.001-91", "00000000191"),
            ("529.982.247-25", "52998224725"),
            ("11.222.333/0001-81", "11222333000181"),
            ("00000000000191", "00000000000191"),
            // The alphanumeric CNPJ of 2026: characters count as their code minus 48.
            ("12.abc.345/01DE-35", "12ABC34501DE35"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(Identity::document(text)), format!("document {expected} {expected}"), "{text}");
        }
        for text in [
            "",
            "000.000.001-92",
            "11122233344",
            "000.000.000-00",
            "111.111.111-11",
            "123",
            "***.000.001-**",
            "12.ABC.345/01DE-36",
        ] {
            assert_eq!(Identity::document(text), None, "{text}");
        }
    }

    #[test]
    fn no_two_orders_share_a_key() {
        let key = |platform: &str, account: &str, transaction: &str| {
            let order =
                OrderRef { platform: platform.into(), account: account.into(), transaction: transaction.into() };
            Identity::order(&order).match_key
        };
        assert_eq!(key("hotmart", "loja", "HP1"), "hotmart/loja/HP1");
        assert_ne!(key("hotmart", "a/b", "c"), key("hotmart", "a", "b/c"));
        assert_ne!(key("hotmart", "a%2Fb", "c"), key("hotmart", "a/b", "c"));
        assert_ne!(key("hotmart", "a", "c"), key("hotmart", "b", "c"));
    }

    #[test]
    fn an_empty_external_id_is_none() {
        assert_eq!(Identity::external("  "), None);
        assert_eq!(shown(Identity::external(" crm/42 ")), "external crm/42 crm/42");
    }
}
