//! Which addresses requests may go to (E9, FC-67). Asked at connect time, about the resolved address that is then
//! connected to, so that neither another spelling nor a changed DNS answer gets past it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Destinations (`host:port`) that are let through although they are private. Link-local and metadata addresses never are.
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    allow: Vec<(String, u16)>,
}

impl AddressGuard {
    /// A guard with an allow list of `host:port` entries; an entry without a port allows 80 and 443.
    pub fn new(allow: &[String]) -> Self {
        let mut entries = Vec::new();
        for entry in allow {
            match entry.rsplit_once(':') {
                Some((host, port)) if port.parse::<u16>().is_ok() => {
                    entries.push((bare(host), port.parse().unwrap_or_default()));
                }
                _ => entries.extend([(bare(entry), 80), (bare(entry), 443)]),
            }
        }
        Self { allow: entries }
    }

    /// Whether `address`, found under `host` and `port`, may be connected to. The error names no more than the class.
    pub fn judge(&self, host: &str, port: u16, address: IpAddr) -> Result<(), &'static str> {
        let address = unmapped(address);
        if is_link_local(address) {
            return Err("link-local and metadata addresses are never allowed");
        }
        if !is_internal(address) || self.allow.iter().any(|(name, on)| *name == bare(host) && *on == port) {
            return Ok(());
        }
        Err("private and loopback addresses need an entry in [outbound] allow")
    }
}

/// A host as entries are compared: lower case, without brackets or a final dot.
fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

/// The IPv4 address inside a mapped, compatible, NAT64 or 6to4 one.
fn unmapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return v4.into();
    }
    let part = v6.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match part {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => v4(high, low),
        _ => address,
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => {
            v6.segments()[0] & 0xffc0 == 0xfe80 || v6 == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
        }
    }
}

fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 198 && (b == 18 || b == 19))
                || (a == 192 && b == 0 && c == 0)
        }
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || first & 0xfe00 == 0xfc00
                || (first == 0x2001 && v6.segments()[1] == 0xdb8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_spellings_are_refused_and_public_ones_pass() {
        let guard = AddressGuard::default();
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "0.0.0.0",
            "100.64.0.1",
            "169.254.169.254",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "64:ff9b::7f00:1",
            "fd00::1",
            "fe80::1",
            "2002:7f00:1::",
            "224.0.0.1",
        ] {
            assert!(guard.judge("hooks.example.com", 443, address.parse().unwrap()).is_err(), "{address}");
        }
        for address in ["93.184.216.34", "2606:2800:220:1::1"] {
            assert!(guard.judge("hooks.example.com", 443, address.parse().unwrap()).is_ok(), "{address}");
        }
    }

    #[test]
    fn an_entry_lets_one_host_and_port_through_but_never_metadata() {
        let guard = AddressGuard::new(&["127.0.0.1:8081".into(), "n8n:5678".into(), "169.254.169.254:80".into()]);
        assert!(guard.judge("127.0.0.1", 8081, "127.0.0.1".parse().unwrap()).is_ok());
        assert!(guard.judge("127.0.0.1", 8082, "127.0.0.1".parse().unwrap()).is_err());
        assert!(guard.judge("N8N.", 5678, "10.1.2.3".parse().unwrap()).is_ok());
        assert!(guard.judge("evil.example", 8081, "127.0.0.1".parse().unwrap()).is_err());
        assert!(guard.judge("169.254.169.254", 80, "169.254.169.254".parse().unwrap()).is_err());
    }
}
