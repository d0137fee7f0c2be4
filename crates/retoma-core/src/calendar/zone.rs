//! The zone of a contact: its own setting, else its area or country code, else the flow's.

use jiff::tz::TimeZone;

use crate::flow::Flow;
use crate::identity::{IdentityKind, Phone};
use crate::state::ContactView;

/// The zone of a contact as it is known: a number that WhatsApp reported says more than one that was typed.
pub fn zone_of_contact(view: &ContactView, flow: &Flow) -> TimeZone {
    let phones = view.identities.iter().filter(|identity| identity.kind == IdentityKind::Phone);
    let phone = phones.max_by_key(|identity| identity.confirmed).map(|identity| identity.value.as_str());
    let setting = view.contact.vars.get("contact.timezone").map(String::as_str);
    zone_of(phone, setting, &flow.timezone)
}

/// The zone of a contact (FC-53). `phone` holds E.164 digits or a match key, which begin alike. A setting that names no
/// zone counts as none.
///
/// Area codes follow the state of the number, not the traveller. Of other countries only those with one zone (for nearly all
/// their people) are listed, where Brazilian sellers have customers; the rest keep the flow's zone.
pub fn zone_of(phone: Option<&str>, setting: Option<&str>, default: &TimeZone) -> TimeZone {
    let own = setting.map(str::trim).filter(|name| !name.is_empty()).and_then(|name| TimeZone::get(name).ok());
    own.or_else(|| phone.and_then(name_of_number).and_then(|name| TimeZone::get(name).ok()))
        .unwrap_or_else(|| default.clone())
}

fn name_of_number(digits: &str) -> Option<&'static str> {
    let phone = Phone::reported(digits)?;
    match phone.brazilian_area() {
        Some(area) => Some(name_of_area(area)),
        None => name_of_country(digits),
    }
}

/// By state. Those on the same offset are still told apart: if daylight saving comes back, it will not come to all of them.
fn name_of_area(area: &str) -> &'static str {
    match area {
        "68" => "America/Rio_Branco",
        "92" | "97" => "America/Manaus",
        "65" | "66" => "America/Cuiaba",
        "67" => "America/Campo_Grande",
        "69" => "America/Porto_Velho",
        "95" => "America/Boa_Vista",
        "91" | "94" | "96" => "America/Belem",
        "93" => "America/Santarem",
        "63" => "America/Araguaina",
        "71" | "73" | "74" | "75" | "77" => "America/Bahia",
        "79" | "82" => "America/Maceio",
        "81" | "87" => "America/Recife",
        "83" | "84" | "85" | "86" | "88" | "89" | "98" | "99" => "America/Fortaleza",
        _ => "America/Sao_Paulo",
    }
}

fn name_of_country(digits: &str) -> Option<&'static str> {
    const COUNTRIES: [(&str, &str); 24] = [
        ("351", "Europe/Lisbon"),
        ("34", "Europe/Madrid"),
        ("33", "Europe/Paris"),
        ("39", "Europe/Rome"),
        ("49", "Europe/Berlin"),
        ("41", "Europe/Zurich"),
        ("31", "Europe/Amsterdam"),
        ("32", "Europe/Brussels"),
        ("44", "Europe/London"),
        ("353", "Europe/Dublin"),
        ("81", "Asia/Tokyo"),
        ("244", "Africa/Luanda"),
        ("258", "Africa/Maputo"),
        ("238", "Atlantic/Cape_Verde"),
        ("239", "Africa/Sao_Tome"),
        ("54", "America/Argentina/Buenos_Aires"),
        ("51", "America/Lima"),
        ("57", "America/Bogota"),
        ("58", "America/Caracas"),
        ("591", "America/La_Paz"),
        ("593", "America/Guayaquil"),
        ("595", "America/Asuncion"),
        ("598", "America/Montevideo"),
        ("56", "America/Santiago"),
    ];
    // No country code is the beginning of another.
    COUNTRIES.iter().find(|(code, _)| digits.starts_with(code)).map(|(_, zone)| *zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    // FC-53: the contact's setting, else the area code, else the tenant's zone.
    #[test]
    fn a_contact_has_its_own_zone_else_that_of_its_area_code_else_the_default() {
        let default = TimeZone::get("America/Noronha").unwrap();
        let cases = [
            (Some("5568999990001"), None, "America/Rio_Branco"),
            (Some("559299990001"), None, "America/Manaus"),
            (Some("5597999990001"), None, "America/Manaus"),
            (Some("5565999990001"), None, "America/Cuiaba"),
            (Some("5566999990001"), None, "America/Cuiaba"),
            (Some("5567999990001"), None, "America/Campo_Grande"),
            (Some("5569999990001"), None, "America/Porto_Velho"),
            (Some("5595999990001"), None, "America/Boa_Vista"),
            (Some("5596999990001"), None, "America/Belem"),
            (Some("5541999990001"), None, "America/Sao_Paulo"),
            (Some("554133330000"), None, "America/Sao_Paulo"),
            (Some("351912000019"), None, "Europe/Lisbon"),
            (Some("14155552671"), None, "America/Noronha"),
            (Some("5541999990001"), Some("Europe/Lisbon"), "Europe/Lisbon"),
            (Some("5592999990001"), Some("Lua/Cheia"), "America/Manaus"),
            (Some("5592999990001"), Some(" "), "America/Manaus"),
            (Some("200000000000014@lid"), None, "America/Noronha"),
            (None, Some("America/Manaus"), "America/Manaus"),
            (None, None, "America/Noronha"),
        ];
        for (phone, setting, expected) in cases {
            assert_eq!(zone_of(phone, setting, &default).iana_name(), Some(expected), "{phone:?} {setting:?}");
        }
    }

    #[test]
    fn every_zone_that_is_named_exists() {
        for area in 11..=99 {
            let digits = format!("55{area}33330000");
            if let Some(name) = name_of_number(&digits) {
                assert!(TimeZone::get(name).is_ok(), "{name}");
            }
        }
        for digits in [
            "351", "34", "33", "39", "49", "41", "31", "32", "44", "353", "81", "244", "258", "238", "239", "54", "51",
            "57", "58", "591", "593", "595", "598", "56",
        ] {
            let name = name_of_country(digits).unwrap();
            assert!(TimeZone::get(name).is_ok(), "{name}");
        }
    }
}
