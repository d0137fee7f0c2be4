use proptest::prelude::*;

use super::*;

/// `+digits`, or the flag and why.
fn shown(input: PhoneInput) -> String {
    match read_phone(&input) {
        PhoneReading::Valid(phone) => format!("+{}", phone.e164_digits()),
        PhoneReading::Ambiguous { why, .. } => format!("ambiguous {why}"),
        PhoneReading::Invalid { why, .. } => format!("invalid {why}"),
        PhoneReading::Missing => "missing".to_owned(),
    }
}

// FC-19, payment-webhooks 14, whatsapp-providers 4.1
#[test]
fn phones_as_buyers_type_them() {
    let cases = [
        ("(11) 90019-0019", "+5511900190019"),
        ("55 011 900190019", "+5511900190019"),
        ("+351 912 000 019", "+351912000019"),
        ("0019 0019", "invalid too_short"),
        ("900190019", "invalid too_short"),
        ("+", "invalid no_digits"),
        ("00000000000", "invalid too_short"),
        ("1190019001", "ambiguous short_mobile_or_missing_digit"),
        // Length decides: area code 55 is in Rio Grande do Sul.
        ("55 99999-0001", "+5555999990001"),
        ("5555999990001", "+5555999990001"),
        ("41999990001", "+5541999990001"),
        ("5541999990001", "+5541999990001"),
        ("+55 (41) 99999-0001", "+5541999990001"),
        ("\u{202a}+55 41 99999\u{2011}0001\u{202c}", "+5541999990001"),
        // Trunk, carrier, country with zeros, doubled country.
        ("041 99999-0001", "+5541999990001"),
        ("0 15 41 99999-0001", "+5541999990001"),
        ("0055 41 99999 0001", "+5541999990001"),
        ("+55 041 99999-0001", "+5541999990001"),
        ("555541999990001", "+5541999990001"),
        ("55554133330000", "+554133330000"),
        // Landlines stay as they are; old mobiles get the digit that all of them got.
        ("(41) 3333-0000", "+554133330000"),
        ("41 3333-0000", "+554133330000"),
        ("31 8816-0016", "+5531988160016"),
        ("+55 31 8816-0016", "+5531988160016"),
        // Behind the country code it is WhatsApp's own short spelling; without it, perhaps a digit is missing.
        ("554199990001", "+5541999990001"),
        ("+55 41 9999-0001", "+5541999990001"),
        ("41 9999-0001", "ambiguous short_mobile_or_missing_digit"),
        // Nobody's number.
        ("20 99999-0001", "invalid area_code"),
        ("0800 123 4567", "invalid area_code"),
        ("41 89999-0001", "invalid not_a_subscriber_number"),
        ("41 1999-0001", "invalid not_a_subscriber_number"),
        ("11 99999-9999", "invalid placeholder"),
        ("99 99999-9999", "invalid placeholder"),
        ("1234567890", "invalid placeholder"),
        ("9876543210", "invalid placeholder"),
        ("351912000019", "invalid no_country_code"),
        ("14155550100", "invalid not_a_subscriber_number"),
        ("11900190019 / 11911110000", "invalid length"),
        ("ana11900190019@example.com", "invalid not_a_phone"),
        ("11 90019-0019 ramal 2", "invalid not_a_phone"),
        // Abroad, only with +.
        ("+1 (415) 555-2671", "+14155552671"),
        ("+54 9 11 2345-6789", "+5491123456789"),
        ("+52 1 55 1234 5678", "+525512345678"),
        ("+44 (0) 20 7946 0018", "invalid not_a_number_of_its_country"),
        ("+351 12", "invalid length"),
        ("+999 912 000 019", "invalid not_a_number_of_its_country"),
        ("+11 90019-0019", "invalid not_a_number_of_its_country"),
        ("", "missing"),
        ("  ", "missing"),
    ];
    for (raw, expected) in cases {
        assert_eq!(shown(PhoneInput::text(raw)), expected, "{raw:?}");
    }
}

// FC-19, payment-webhooks 14.1 and 14.5
#[test]
fn phones_as_platforms_split_them() {
    let cases = [
        ("11", "900190019", "+5511900190019"),
        ("011", "90019-0019", "+5511900190019"),
        ("55", "41999990001", "+5541999990001"),
        ("55", "55 99999-0001", "+5555999990001"),
        ("55", "5541999990001", "+5541999990001"),
        ("+55", "5541999990001", "+5541999990001"),
        ("41", "41999990001", "+5541999990001"),
        ("41", "5541999990001", "+5541999990001"),
        ("99", "999990001", "+5599999990001"),
        ("", "41999990001", "+5541999990001"),
        ("319000000", "41999990001", "+5541999990001"),
        ("41", "+351 912 000 019", "+351912000019"),
        ("351", "912 000 019", "+351912000019"),
        // A code that contradicts the number, or that may be an area as well as a country, is not explained away.
        ("21", "11900190019", "invalid no_country_code"),
        ("34", "612345678", "invalid not_a_subscriber_number"),
        ("11", "90019001", "ambiguous short_mobile_or_missing_digit"),
        ("55", "1190019001", "ambiguous short_mobile_or_missing_digit"),
        ("11", " ", "missing"),
    ];
    for (code, number, expected) in cases {
        assert_eq!(shown(PhoneInput::parts(code, number)), expected, "{code:?} {number:?}");
    }
}

#[test]
fn phones_as_json_holds_them() {
    let cases = [
        (r#"null"#, "missing"),
        (r#"{}"#, "missing"),
        (r#"[]"#, "missing"),
        (r#"{"ddd":"11","number":null}"#, "missing"),
        (r#""(11) 90019-0019""#, "+5511900190019"),
        (r#"5511900190019"#, "+5511900190019"),
        (r#"5511900190019.0"#, "+5511900190019"),
        (r#"{"ddd":"11","number":"900190019"}"#, "+5511900190019"),
        (r#"{"ddd":11,"number":900190019}"#, "+5511900190019"),
        (r#"{"number":"11900190019"}"#, "+5511900190019"),
        (r#"{"country_code":"55","area_code":"41","number":"999990001"}"#, "+5541999990001"),
        (r#"{"countryCode":"+351","areaCode":"","number":"912000019"}"#, "+351912000019"),
        (r#"{"ddi":"55","ddd":"041","number":"+5541999990001"}"#, "+5541999990001"),
        (r#"{"country_code":null,"area_code":"41","number":"999990001"}"#, "+5541999990001"),
    ];
    for (json, expected) in cases {
        let value = serde_json::from_str(json).unwrap();
        assert_eq!(shown(PhoneInput::from_json(&value)), expected, "{json}");
    }
}

#[test]
fn what_could_not_be_read_is_kept_as_it_came() {
    let cases = [
        ("900190019", Some("phone_invalid")),
        ("1190019001", Some("phone_ambiguous")),
        ("", Some("phone_missing")),
        ("41999990001", None),
    ];
    for (text, flag) in cases {
        let reading = read_phone(&PhoneInput::text(text));
        assert_eq!(reading.flag(), flag, "{text}");
        if let PhoneReading::Invalid { raw, .. } | PhoneReading::Ambiguous { raw, .. } = reading {
            assert_eq!(raw, text);
        }
    }
}

// FC-16, whatsapp-providers 4.1 and 4.3
#[test]
fn spellings_of_one_line_share_a_match_key() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("5531988160016", "553188160016", &["5531988160016", "553188160016"]),
        ("553188160016", "553188160016", &["553188160016", "5531988160016"]),
        // A line that never had a short spelling, and a landline with the same last eight digits.
        ("5541933330000", "5541933330000", &["5541933330000"]),
        ("554133330000", "554133330000", &["554133330000"]),
        ("5511900190019", "5511900190019", &["5511900190019"]),
        ("5215512345678", "525512345678", &["5215512345678", "525512345678"]),
        ("525512345678", "525512345678", &["525512345678", "5215512345678"]),
        ("5491123456789", "5491123456789", &["5491123456789"]),
        // 0800 numbers have no area code.
        ("558001234567", "558001234567", &["558001234567"]),
    ];
    for (digits, key, variants) in cases {
        let phone = Phone::reported(digits).unwrap();
        assert_eq!(phone.match_key(), key, "{digits}");
        assert_eq!(phone.variants(), variants, "{digits}");
    }
}

#[test]
fn only_brazilian_numbers_have_a_brazilian_area() {
    let area = |digits: &str| Phone::reported(digits).unwrap().brazilian_area().map(str::to_owned);
    assert_eq!(area("5592999990001").as_deref(), Some("92"));
    assert_eq!(area("554133330000").as_deref(), Some("41"));
    assert_eq!(area("558001234567"), None);
    assert_eq!(area("351912000019"), None);
}

#[test]
fn there_are_sixty_seven_area_codes() {
    assert_eq!((0..100).filter(|area| brazil::is_area_code(&format!("{area:02}"))).count(), 67);
}

/// Anything a form lets through: digits with some dirt, with and without the prefixes that matter.
fn typed() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+0-9 ().-]{0,20}",
        "(\\+|00|0|)(55|)0?[1-9][0-9] ?9?[0-9]{4}-?[0-9]{4}",
        "\\+[1-9][0-9]{6,15}",
        ".{0,24}",
    ]
}

proptest! {
    // FC-19: whatever is typed, the output is a number of its country or none.
    #[test]
    fn the_output_is_valid_e164_or_none(code in "|0?[1-9][0-9]{0,3}", number in typed()) {
        for input in [PhoneInput::text(number.clone()), PhoneInput::parts(code, number)] {
            let Some(phone) = read_phone(&input).phone().cloned() else { continue };
            let digits = phone.e164_digits();
            prop_assert!((8..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()), "{digits}");
            prop_assert!(!digits.starts_with('0'));
            let number = phonenumber::parse(None, format!("+{digits}")).unwrap();
            prop_assert!(number.is_valid() || digits.starts_with("55"), "{digits}");
            if let Some(national) = digits.strip_prefix("55") {
                prop_assert!(brazil::is_area_code(&national[..2]), "{digits}");
                let mobile = national.len() == 11 && national.as_bytes()[2] == b'9';
                let landline = national.len() == 10 && (b'2'..=b'5').contains(&national.as_bytes()[2]);
                prop_assert!(mobile || landline, "{digits}");
            }
            // Reading the result again gives the same: it needs no second repair.
            let again = read_phone(&PhoneInput::text(format!("+{digits}")));
            prop_assert_eq!(again, PhoneReading::Valid(phone));
        }
    }

    #[test]
    fn all_variants_of_a_number_share_its_match_key(digits in "(55[1-9][0-9]9?[0-9]{8}|521?[0-9]{10}|[1-9][0-9]{7,14})") {
        let phone = Phone::reported(&digits).unwrap();
        for variant in phone.variants() {
            let variant = Phone::reported(&variant).unwrap();
            prop_assert_eq!(variant.match_key(), phone.match_key());
            prop_assert!(variant.variants().contains(&digits));
        }
    }

    // A landline has one spelling, whatever stands in front of it.
    #[test]
    fn a_landline_never_equals_a_mobile(area in "[1-9][1-9]", line in "[2-5][0-9]{7}", mobile in "9?[6-9][0-9]{7}") {
        let landline = Phone::reported(&format!("55{area}{line}")).unwrap();
        prop_assert_eq!(landline.variants().len(), 1);
        prop_assert_ne!(landline.match_key(), Phone::reported(&format!("55{area}9{line}")).unwrap().match_key());
        prop_assert_ne!(landline.match_key(), Phone::reported(&format!("55{area}{mobile}")).unwrap().match_key());
    }
}
