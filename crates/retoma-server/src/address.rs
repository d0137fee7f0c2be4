//! Whose address a request comes from, and lists of addresses (A1). Behind a proxy the connection's other end is the proxy;
//! whom it speaks for stands in `X-Forwarded-For`, which anybody may write and which only a trusted proxy's word makes true.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use axum::http::{Extensions, HeaderMap};

/// The other end of a connection, in the extensions of its requests. Absent for calls within the process.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Addresses with a common beginning: `203.0.113.7`, `203.0.113.0/24`, `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

/// Not an address, or more bits than it has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address and no network like 203.0.113.0/24")]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let wrong = || NotANetwork(text.to_owned());
        let text = text.trim();
        let (first, bits) = text.split_once('/').map_or((text, None), |(first, bits)| (first, Some(bits)));
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Self { first, bits }) }
    }
}

impl Network {
    /// Whether the address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same(first.to_bits().into(), address.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => same(first.to_bits(), address.to_bits(), 128, self.bits),
            _ => false,
        }
    }
}

fn same(a: u128, b: u128, width: u32, bits: u32) -> bool {
    bits == 0 || (a ^ b) >> (width - bits) == 0
}

/// Proxies whose word counts.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Vec<Network>);

impl Proxies {
    /// These, and nobody else.
    pub fn new(trusted: Vec<Network>) -> Self {
        Self(trusted)
    }

    /// Whoever runs on this machine or in its private network: where a proxy stands that was put in front of this server.
    pub fn nearby() -> Self {
        let v4 = |a, b, c, d, bits| Network { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits };
        let v6 = |first, bits| Network { first: IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0)), bits };
        Self(vec![
            v4(127, 0, 0, 0, 8),
            v4(10, 0, 0, 0, 8),
            v4(172, 16, 0, 0, 12),
            v4(192, 168, 0, 0, 16),
            Network { first: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
            v6(0xfc00, 7),
            v6(0xfe80, 10),
        ])
    }

    /// Who sent a request. `None` where nobody can say: a call within the process, or a trusted proxy's header that is no
    /// list of addresses.
    pub(crate) fn sender(&self, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
        let mut sender = extensions.get::<Peer>()?.0.to_canonical();
        if !self.trusts(sender) {
            return Some(sender);
        }
        let values: Vec<&str> =
            headers.get_all("x-forwarded-for").iter().map(|value| value.to_str()).collect::<Result<_, _>>().ok()?;
        // Each hop adds whom it heard from at the end. Read from there, as far as the word of a trusted hop goes.
        for hop in values.iter().rev().flat_map(|value| value.rsplit(',')) {
            sender = hop_address(hop)?;
            if !self.trusts(sender) {
                break;
            }
        }
        Some(sender)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// `203.0.113.7`, `203.0.113.7:4711`, `2001:db8::7`, `[2001:db8::7]:4711`.
fn hop_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let address = text.parse().ok().or_else(bare);
    let with_port = || text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    address.or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        for (network, address, inside) in [
            ("203.0.113.7", "203.0.113.7", true),
            ("203.0.113.7", "203.0.113.8", false),
            ("203.0.113.0/24", "203.0.113.255", true),
            ("203.0.113.0/24", "203.0.114.0", false),
            ("203.0.113.77/24", "203.0.113.1", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("203.0.113.7", "::ffff:203.0.113.7", true),
            ("2001:db8::/32", "2001:db8:1::9", true),
            ("2001:db8::/32", "2001:db9::9", false),
            ("::/0", "2001:db9::9", true),
        ] {
            assert_eq!(network.parse::<Network>().unwrap().contains(ip(address)), inside, "{network} {address}");
        }
        for wrong in
            ["", "loja", "203.0.113", "203.0.113.0/33", "::1/129", "203.0.113.0/", "203.0.113.0/-1", "1.2.3.4/a"]
        {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_says_whom_it_speaks_for() {
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            ("203.0.113.9", &[], Some("203.0.113.9")),
            ("203.0.113.9", &["198.51.100.1"], Some("203.0.113.9")),
            ("127.0.0.1", &[], Some("127.0.0.1")),
            ("127.0.0.1", &["198.51.100.1"], Some("198.51.100.1")),
            ("127.0.0.1", &["198.51.100.1:443"], Some("198.51.100.1")),
            ("127.0.0.1", &["[2001:db8::1]:443"], Some("2001:db8::1")),
            ("127.0.0.1", &["1.1.1.1, 198.51.100.1"], Some("198.51.100.1")),
            ("127.0.0.1", &["1.1.1.1, 198.51.100.1, 10.0.0.3"], Some("198.51.100.1")),
            ("127.0.0.1", &["1.1.1.1", "198.51.100.1, 10.0.0.3"], Some("198.51.100.1")),
            ("127.0.0.1", &["192.168.0.9, 10.0.0.3"], Some("192.168.0.9")),
            ("::ffff:127.0.0.1", &["198.51.100.1"], Some("198.51.100.1")),
            ("127.0.0.1", &["1.1.1.1, unknown"], None),
            ("127.0.0.1", &["1.1.1.1, "], None),
        ];
        for (peer, forwarded, expected) in cases {
            let mut extensions = Extensions::new();
            extensions.insert(Peer(ip(peer)));
            let mut headers = HeaderMap::new();
            for value in *forwarded {
                headers.append("x-forwarded-for", value.parse().unwrap());
            }
            let sender = Proxies::nearby().sender(&extensions, &headers);
            assert_eq!(sender, expected.map(ip), "{peer} {forwarded:?}");
            assert_eq!(Proxies::default().sender(&extensions, &headers), Some(ip(peer).to_canonical()));
            assert_eq!(Proxies::nearby().sender(&Extensions::new(), &headers), None);
        }
    }
}
