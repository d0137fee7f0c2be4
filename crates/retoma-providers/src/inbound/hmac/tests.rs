use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use super::*;

const SECRET: &str = "segredo-de-teste";
/// whatsapp-providers 1.2: 505 bytes, backslashes literal.
const META_BODY: &str = r#"{"object":"whatsapp_business_account","entry":[{"id":"100000000000001","changes":[{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"554133330000","phone_number_id":"200000000000002"},"contacts":[{"profile":{"name":"Jo\u00e3o Teste"},"wa_id":"554199990001"}],"messages":[{"from":"554199990001","id":"wamid.TESTE0001","timestamp":"1790000000","text":{"body":"Ol\u00e1 \ud83d\ude00 fale com ana\u0040exemplo.test em https:\/\/exemplo.test"},"type":"text"}]},"field":"messages"}]}]}"#;

fn scheme(header: &str, prefix: &str, content: &str) -> Hmac {
    Hmac {
        place: SignaturePlace::Header(header.to_owned()),
        algorithm: HmacAlgorithm::Sha256,
        encoding: HmacEncoding::Hex,
        prefix: prefix.to_owned(),
        content: content.to_owned(),
        timestamp_header: None,
        tolerance: None,
        secrets: vec![Secret(b"segredo-antigo".to_vec()), Secret(SECRET.as_bytes().to_vec())],
    }
}

fn request(headers: &[(&str, &str)], body: &[u8]) -> Request {
    Request {
        headers: headers
            .iter()
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect(),
        path: "/in/loja".to_owned(),
        path_token: None,
        query: String::new(),
        body: Bytes::copy_from_slice(body),
        received_at: Timestamp::from_second(1_790_000_100).unwrap(),
    }
}

fn check(scheme: &Hmac, headers: &[(&str, &str)], body: &[u8], expected: Result<(), &str>) {
    let got = verify(scheme, &request(headers, body));
    assert_eq!(got.as_ref().copied().map_err(String::as_str), expected);
    assert!(got.err().is_none_or(|text| !text.contains(SECRET)));
}

fn hex256(pieces: &[&[u8]]) -> String {
    hex::encode(HmacAlgorithm::Sha256.sign(SECRET.as_bytes(), pieces))
}

#[test]
fn the_published_vectors_verify_over_raw_bytes_and_not_over_rewritten_json() {
    let meta = scheme("x-hub-signature-256", "sha256=", "{body}");
    let right = "sha256=d8496bcc8753a530a339bce4cabb661dc3d2b0cf67c272ce41a0ccf28d441f95";
    let rewritten = "sha256=155f230b402ed55bc75db07a50c5b8f4a19e6a010500adb4a34d5db4f19dca13";
    assert_eq!(META_BODY.len(), 505);
    check(&meta, &[("X-Hub-Signature-256", right)], META_BODY.as_bytes(), Ok(()));
    check(&meta, &[("X-Hub-Signature-256", &right.to_uppercase().replace("SHA", "sha"))], META_BODY.as_bytes(), Ok(()));
    check(
        &meta,
        &[("X-Hub-Signature-256", rewritten)],
        META_BODY.as_bytes(),
        Err("the body was altered on its way: something parsed the JSON and wrote it again"),
    );
    let small = "sha256=05f4f82fb6cd5a63c5181c8963e0ef3e28a1158b0d1ff9e84699d5b65763ee47";
    check(&meta, &[("x-hub-signature-256", small)], br#"{"hello":"mundo"}"#, Ok(()));

    // payment-webhooks 8.4: base64, another secret.
    let mut yampi = scheme("x-yampi-hmac-sha256", "", "{body}");
    yampi.encoding = HmacEncoding::Base64;
    yampi.secrets = vec![Secret(b"yampi-segredo-de-teste".to_vec())];
    let signature = "0cE4dtZT5zz7rwZXRABHhA0+iBAjQgDwfO4ENw7hb4s=";
    check(&yampi, &[("X-Yampi-Hmac-SHA256", signature)], br#"{"event":"cart.reminder"}"#, Ok(()));
}

#[test]
fn one_value_in_four_byte_forms_has_four_signatures() {
    // FC-43.
    let forms: [&[u8]; 4] = [
        "{\"t\":\"promo\u{e7}\u{e3}o 😀\",\"u\":\"https://a.test\"}".as_bytes(),
        br#"{"t":"promo\u00e7\u00e3o \ud83d\ude00","u":"https://a.test"}"#,
        br#"{"t":"promo\u00E7\u00E3o \uD83D\uDE00","u":"https://a.test"}"#,
        "{ \"t\": \"promo\u{e7}\u{e3}o 😀\", \"u\": \"https:\\/\\/a.test\" }".as_bytes(),
    ];
    let scheme = scheme("x-signature", "", "{body}");
    for (signed, form) in forms.iter().enumerate() {
        let signature = hex256(&[form]);
        for (sent, body) in forms.iter().enumerate() {
            let verified = verify(&scheme, &request(&[("x-signature", &signature)], body)).is_ok();
            assert_eq!(verified, signed == sent, "signed {signed}, sent {sent}");
        }
    }
}

#[test]
fn every_digest_and_encoding_works() {
    for algorithm in [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256, HmacAlgorithm::Sha512] {
        for encoding in [HmacEncoding::Hex, HmacEncoding::Base64] {
            let bytes = algorithm.sign(SECRET.as_bytes(), &[b"{}"]);
            let text = match encoding {
                HmacEncoding::Hex => hex::encode(bytes),
                HmacEncoding::Base64 => STANDARD.encode(bytes),
            };
            let scheme = Hmac { algorithm, encoding, ..scheme("x-signature", "", "{body}") };
            check(&scheme, &[("x-signature", &text)], b"{}", Ok(()));
        }
    }
}

#[test]
fn a_signed_timestamp_is_checked_in_both_directions() {
    let scheme = Hmac {
        timestamp_header: Some("x-timestamp".into()),
        tolerance: Some(Duration::from_secs(300)),
        ..scheme("x-signature", "sha256=", "{timestamp}.{body}")
    };
    // The request is received at 1790000100.
    let cases = [
        ("1790000100", Ok(())),
        ("1789999800", Ok(())),
        ("1790000400", Ok(())),
        ("1790000100123", Ok(())),
        ("2026-09-21T11:14:30-03:00", Ok(())),
        ("1789999793", Err("stale by 7 s: signed 307 s ago, 300 s are allowed")),
        ("1790000401", Err("signed 301 s in the future, 300 s are allowed: is a clock wrong?")),
        ("ontem", Err("the timestamp is neither a number of seconds since 1970 nor RFC 3339")),
    ];
    for (stamp, expected) in cases {
        let signature = format!("sha256={}", hex256(&[stamp.as_bytes(), b".", b"{}"]));
        check(&scheme, &[("x-signature", &signature), ("x-timestamp", stamp)], b"{}", expected);
    }
    let signature = format!("sha256={}", hex256(&[b"1790000100", b".", b"{}"]));
    check(&scheme, &[("x-signature", &signature)], b"{}", Err("header x-timestamp carries no timestamp"));
    // A fresh timestamp over an old signature is a forgery, not a stale request.
    check(
        &scheme,
        &[("x-signature", &signature), ("x-timestamp", "1790000101")],
        b"{}",
        Err("the signature matches none of 2 secrets: wrong secret, or the body was altered on its way"),
    );
}

#[test]
fn a_list_of_signatures_in_one_header_is_read_with_its_timestamp() {
    // FC-43: two secrets while they rotate, and an unknown scheme beside them.
    let scheme = Hmac {
        timestamp_header: Some("Stripe-Signature".into()),
        tolerance: Some(Duration::from_secs(300)),
        ..scheme("stripe-signature", "v1=", "{timestamp}.{body}")
    };
    let right = hex256(&[b"1790000100", b".", b"{}"]);
    let other = "0".repeat(64);
    check(&scheme, &[("stripe-signature", &format!("t=1790000100,v1={other},v1={right},v0={other}"))], b"{}", Ok(()));
    check(
        &scheme,
        &[("stripe-signature", &format!("t=1790000100,v1={other},v0={right}"))],
        b"{}",
        Err("the signature matches none of 2 secrets: wrong secret, or the body was altered on its way"),
    );
}

#[test]
fn other_schemes_and_altered_bodies_are_named() {
    let scheme = scheme("x-signature", "sha256=", "{body}");
    let body: &[u8] = br#"{"a":"\u00e7","b":"x\/y"}"#;
    let right = hex256(&[body]);
    let sha1 = hex::encode(HmacAlgorithm::Sha1.sign(SECRET.as_bytes(), &[body]));
    let base64 = STANDARD.encode(HmacAlgorithm::Sha256.sign(SECRET.as_bytes(), &[body]));
    let with = |signature: &str| vec![("x-signature", signature.to_owned())];
    type Case<'a> = (Vec<(&'a str, String)>, &'a [u8], &'a str);
    let cases: Vec<Case<'_>> = vec![
        (vec![], body, "header x-signature is missing; the request is not signed"),
        (
            vec![("x-hub-signature-256", right.clone())],
            body,
            "header x-signature is missing; the request has x-hub-signature-256",
        ),
        (with(&format!("sha1={sha1}")), body, "header x-signature does not start with \"sha256=\"; it looks like sha1"),
        (with(&right), body, "header x-signature does not start with \"sha256=\"; it looks like sha256 in hex"),
        (with(&format!("sha256={sha1}")), body, "header x-signature holds no sha256 in hex; it looks like sha1 in hex"),
        (
            with(&format!("sha256={base64}")),
            body,
            "header x-signature holds no sha256 in hex; it looks like sha256 in base64",
        ),
        (with("sha256=zz"), body, "header x-signature holds no sha256 in hex"),
        (with("sha256="), body, "header x-signature holds no signature"),
        (
            with(&format!("sha256={right}")),
            "{\"a\":\"ç\",\"b\":\"x/y\"}".as_bytes(),
            "the body was altered on its way: something parsed the JSON and wrote it again",
        ),
        (
            with(&format!("sha256={right}")),
            br#"{"a":"\u00e7","b":"x\/y"}
"#,
            "the body was altered on its way: something added a line break at its end",
        ),
    ];
    for (headers, sent, expected) in cases {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        check(&scheme, &headers, sent, Err(expected));
    }
}

#[test]
fn a_template_mistake_and_a_line_break_in_the_secret_are_named() {
    let mut stamped = scheme("x-signature", "", "{timestamp}.{body}");
    stamped.timestamp_header = Some("x-timestamp".into());
    let bare = hex256(&[b"{}"]);
    check(
        &stamped,
        &[("x-signature", &bare), ("x-timestamp", "1790000100")],
        b"{}",
        Err("another scheme: the signature matches content = \"{body}\""),
    );
    stamped.timestamp_header = None;
    check(
        &stamped,
        &[("x-signature", &bare)],
        b"{}",
        Err("the scheme signs {timestamp}, and no timestamp header is configured"),
    );
    let mut padded = scheme("x-signature", "", "{body}");
    padded.secrets = vec![Secret(format!("{SECRET}\n").into_bytes())];
    check(
        &padded,
        &[("x-signature", &bare)],
        b"{}",
        Err(
            "the signature matches none of 1 secret; it would match if the secret had no spaces or line break around it",
        ),
    );
}

#[test]
fn an_empty_secret_signs_nothing() {
    let mut open = scheme("x-signature", "", "{body}");
    open.secrets = vec![Secret(Vec::new())];
    let signature = hex::encode(HmacAlgorithm::Sha256.sign(b"", &[b"{}"]));
    assert!(verify(&open, &request(&[("x-signature", &signature)], b"{}")).is_err());
}

#[test]
fn content_templates_keep_other_braces_as_they_stand() {
    let text = |template| {
        String::from_utf8(around_body(&fill(template, Some("7"), &request(&[], b"")), b"B").concat()).unwrap()
    };
    for (template, expected) in
        [("{body}", "B"), ("{timestamp}.{body}", "7.B"), ("v0:{timestamp}:{body}:{x}{", "v0:7:B:{x}{"), ("", "")]
    {
        assert_eq!(text(template), expected);
    }
}

#[test]
fn a_signature_may_stand_in_the_query_and_cover_method_path_and_headers() {
    // FC-43: Kiwify's form, and path + method + body + timestamp.
    let in_query = Hmac { place: SignaturePlace::Query("signature".into()), ..scheme("", "", "{body}") };
    let mut request = request(&[("x-time", "1790000100"), ("x-request-id", "r-1")], b"{}");
    request.query = format!("a=1&signature={}&id=7", hex256(&[b"{}"]));
    assert_eq!(verify(&in_query, &request), Ok(()));
    request.query = "a=1".to_owned();
    assert_eq!(
        verify(&in_query, &request),
        Err("query parameter signature is missing; the request is not signed".to_owned())
    );
    let wide = Hmac {
        timestamp_header: Some("x-time".into()),
        ..scheme("x-signature", "", "{method}\n{path}?id={query:id}\n{header:X-Request-Id};{timestamp};{body}{")
    };
    request.query = "id=7".to_owned();
    let signature = hex256(&[b"POST\n/in/loja?id=7\nr-1;1790000100;{}{"]);
    request.headers.insert("x-signature", signature.parse().unwrap());
    assert_eq!(verify(&wide, &request), Ok(()));
    request.path = "/in/outra".to_owned();
    assert!(verify(&wide, &request).is_err());
}

#[test]
fn places_that_nothing_can_fill_are_named() {
    assert_eq!(unknown_places("{method}{path}{query:a}{header:b}{timestamp}.{body}"), Vec::<String>::new());
    assert_eq!(unknown_places("{bdy}{query:}{url}{body}"), ["bdy", "query:", "url"]);
}

#[test]
fn a_secret_that_was_to_be_decoded_first_is_named() {
    let key = STANDARD.encode("chave de bytes");
    let scheme = Hmac { secrets: vec![Secret(key.into_bytes())], ..scheme("x-signature", "", "{body}") };
    let signature = hex::encode(HmacAlgorithm::Sha256.sign(b"chave de bytes", &[b"{}"]));
    check(
        &scheme,
        &[("x-signature", &signature)],
        b"{}",
        Err(
            "the signature matches none of 1 secret; it would match if the secret were decoded from base64 or hex first",
        ),
    );
}
