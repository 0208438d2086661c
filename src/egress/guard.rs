//! Which addresses bots may reach. Pure.
//!
//! Without configuration those are the addresses of the internet and the machine's own loopback:
//! no private, link-local (where clouds keep their metadata services), multicast or reserved
//! ones. `egress.deny` and `egress.allow` take networks; deny wins.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

/// The networks that the configuration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    pub allow: Vec<IpNet>,
    pub deny: Vec<IpNet>,
}

/// An address that bots may not reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {what}, which bots may not reach")]
pub struct Prohibited {
    pub address: IpAddr,
    what: &'static str,
}

// === impl Guard ===

impl Guard {
    /// # Errors
    /// The address is denied by the configuration, or by default and not allowed by it.
    pub fn check(&self, address: IpAddr) -> Result<(), Prohibited> {
        let address = reached(address);
        let within = |networks: &[IpNet]| networks.iter().any(|net| net.contains(&address));
        let prohibited = |what| Err(Prohibited { address, what });
        if within(&self.deny) {
            return prohibited("in egress.deny");
        }
        if within(&self.allow) {
            return Ok(());
        }
        match by_default(address) {
            Some(what) => prohibited(what),
            None => Ok(()),
        }
    }
}

/// The host that `address` reaches: an IPv4 one in IPv6 clothes, mapped or by NAT64 (RFC 6052
/// §2.1), stands for the IPv4 one.
fn reached(address: IpAddr) -> IpAddr {
    if let IpAddr::V6(v6) = address
        && let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = v6.segments()
    {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        return IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    }
    address.to_canonical()
}

/// What makes `address` one that no origin on the internet has, if anything does: an entry of
/// IANA's special-purpose registries (RFC 6890), but for loopback.
fn by_default(address: IpAddr) -> Option<&'static str> {
    if address.is_multicast() {
        return Some("a multicast address");
    }
    match address {
        IpAddr::V4(v4) => SPECIAL_V4
            .iter()
            .find(|(network, length, _)| in_network(v4.to_bits(), u32::from_be_bytes(*network), *length))
            .map(|(_, _, what)| *what),
        IpAddr::V6(v6) if v6.is_loopback() => None,
        IpAddr::V6(v6) => match v6.segments() {
            [0, 0, 0, 0, 0, 0, ..] => Some("an IPv4-compatible address"),
            [0xfc00..=0xfdff, ..] => Some("a private address"),
            [0xfe80..=0xfebf, ..] => Some("a link-local address"),
            [0xfec0..=0xfeff, ..] => Some("a site-local address"),
            [0x2001, 0, ..] => Some("a Teredo address"),
            [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
            [0x2002, ..] => Some("a 6to4 address"),
            [0x2000..=0x3fff, ..] => None,
            _ => Some("a reserved address"),
        },
    }
}

fn in_network(address: u32, network: u32, length: u32) -> bool {
    (address ^ network) >> (32 - length) == 0
}

/// Network, length of its prefix (never 0), and what it is.
const SPECIAL_V4: [([u8; 4], u32, &str); 12] = [
    ([0, 0, 0, 0], 8, "an unspecified address"),
    ([10, 0, 0, 0], 8, "a private address"),
    ([100, 64, 0, 0], 10, "a carrier's private address"),
    ([169, 254, 0, 0], 16, "a link-local address"),
    ([172, 16, 0, 0], 12, "a private address"),
    ([192, 0, 0, 0], 24, "a reserved address"),
    ([192, 0, 2, 0], 24, "an address for documentation"),
    ([192, 168, 0, 0], 16, "a private address"),
    ([198, 18, 0, 0], 15, "an address for benchmarks"),
    ([198, 51, 100, 0], 24, "an address for documentation"),
    ([203, 0, 113, 0], 24, "an address for documentation"),
    ([240, 0, 0, 0], 4, "a reserved address"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(guard: &Guard, address: &str) -> Result<(), String> {
        let address = address.parse().expect("an address");
        guard.check(address).map_err(|error| error.to_string())
    }

    #[test]
    fn what_no_origin_has_is_refused_with_its_kind() {
        let guard = Guard::default();
        for (address, kind) in [
            ("169.254.169.254", "a link-local address"),
            ("::ffff:169.254.169.254", "a link-local address"),
            ("::169.254.169.254", "an IPv4-compatible address"),
            ("64:ff9b::a9fe:a9fe", "a link-local address"),
            ("64:ff9b::10.0.0.1", "a private address"),
            ("fe80::1", "a link-local address"),
            ("fd00:ec2::254", "a private address"),
            ("0.0.0.0", "an unspecified address"),
            ("::", "an IPv4-compatible address"),
            ("0.1.2.3", "an unspecified address"),
            ("10.255.0.1", "a private address"),
            ("172.31.255.255", "a private address"),
            ("192.168.0.1", "a private address"),
            ("100.64.0.1", "a carrier's private address"),
            ("100::1", "a reserved address"),
            ("2001:db8::1", "an address for documentation"),
            ("2001:0:53aa::1", "a Teredo address"),
            ("2002:a00:1::1", "a 6to4 address"),
            ("240.0.0.1", "a reserved address"),
            ("255.255.255.255", "a reserved address"),
            ("224.0.0.1", "a multicast address"),
            ("ff02::1", "a multicast address"),
        ] {
            let refusal = checked(&guard, address).expect_err(address);
            assert!(refusal.contains(kind), "{address}: {refusal}");
        }
        for address in [
            "93.184.215.14",
            "2606:2800:21f::1",
            "127.0.0.1",
            "::1",
            "172.32.0.1",
            "64:ff9b::5db8:d70e",
        ] {
            assert_eq!(checked(&guard, address), Ok(()), "{address}");
        }
    }

    #[test]
    fn deny_wins_over_allow_and_allow_over_the_default() {
        let nets = |text: &str| vec![text.parse().expect("a network")];
        let guard = Guard {
            allow: nets("169.254.0.0/16"),
            deny: nets("169.254.169.254/32"),
        };
        assert_eq!(checked(&guard, "169.254.1.1"), Ok(()));
        let refusal = checked(&guard, "169.254.169.254").expect_err("denied");
        assert!(refusal.contains("egress.deny"), "{refusal}");
        let mapped = checked(&guard, "::ffff:169.254.169.254").expect_err("denied");
        assert!(mapped.contains("egress.deny"), "{mapped}");
    }
}
