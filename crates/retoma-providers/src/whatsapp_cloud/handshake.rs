//! The GET request by which Meta asks whether a callback address is ours. It carries no signature, so none is asked for.

use crate::inbound::{Provider, Request, Source, auth, body};

/// A challenge is ten digits in practice. What is echoed stays small, whoever asks.
const CHALLENGE_BYTES_MAX: usize = 512;

/// What a GET request to a source is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The source's provider has none: 405.
    None,
    /// 403. The text is for the operator.
    Refused(String),
    /// 200 with exactly this text.
    Challenge(String),
}

impl Source {
    /// Answers a provider's GET handshake.
    pub fn handshake(&self, request: &Request) -> Handshake {
        let Some(cloud) = self.cloud.as_ref().filter(|_| self.provider == Provider::WhatsappCloud) else {
            return Handshake::None;
        };
        // The names hold dots and are read as they stand; a parser that nests on dots loses them.
        let of = |name: &str| body::pairs(&request.query).find(|(found, _)| found == name).map(|(_, value)| value);
        if of("hub.mode").as_deref() != Some("subscribe") {
            return Handshake::Refused("hub.mode is not subscribe".to_owned());
        }
        let presented: Vec<Vec<u8>> = of("hub.verify_token").map(String::into_bytes).into_iter().collect();
        if let Err(why) = auth::token("query parameter hub.verify_token", &cloud.verify_tokens, &presented) {
            return Handshake::Refused(why);
        }
        match of("hub.challenge").filter(|text| !text.is_empty() && text.len() <= CHALLENGE_BYTES_MAX) {
            Some(challenge) => Handshake::Challenge(challenge),
            None => Handshake::Refused("hub.challenge is missing, empty or too long".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::Secret;
    use crate::inbound::shown::{request, source};

    // A3
    #[test]
    fn only_the_right_token_gets_the_challenge_back_as_it_came() {
        let mut door = source(Provider::WhatsappCloud);
        door.cloud.as_mut().unwrap().verify_tokens = ["velho", "novo token+"].map(|t| Secret(t.into())).into();
        let refused = |why: &str| Handshake::Refused(why.to_owned());
        let wrong = refused("query parameter hub.verify_token matches none of 2 secrets");
        let cases = [
            (
                "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=velho",
                Handshake::Challenge("1158201444".into()),
            ),
            (
                "hub.verify_token=novo%20token%2B&hub.challenge=a%3Cb%3E&hub.mode=subscribe",
                Handshake::Challenge("a<b>".into()),
            ),
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=errado", wrong),
            ("hub.mode=subscribe&hub.challenge=1", refused("query parameter hub.verify_token is missing")),
            ("hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=velho", refused("hub.mode is not subscribe")),
            ("", refused("hub.mode is not subscribe")),
            ("hub_mode=subscribe&hub_challenge=1&hub_verify_token=velho", refused("hub.mode is not subscribe")),
            ("hub.mode=subscribe&hub.verify_token=velho", refused("hub.challenge is missing, empty or too long")),
        ];
        for (query, expected) in cases {
            let mut request = request("");
            request.query = query.to_owned();
            assert_eq!(door.handshake(&request), expected, "{query}");
        }
        let mut long = request("");
        long.query = format!("hub.mode=subscribe&hub.verify_token=velho&hub.challenge={}", "1".repeat(600));
        assert!(matches!(door.handshake(&long), Handshake::Refused(_)));
        for provider in [Provider::Generic, Provider::Evolution, Provider::Hotmart] {
            assert_eq!(source(provider).handshake(&request("")), Handshake::None);
        }
    }
}
