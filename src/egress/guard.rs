//! Which addresses bots may reach. Pure.
//!
//! Without configuration that is every address but those that no origin has and that are known
//! to be abused: link-local ones, where clouds keep their metadata services, unspecified,
//! multicast and reserved ones. `egress.deny` and `egress.allow` take networks; deny wins.

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
        // An IPv4 address in IPv6 clothes reaches the same host.
        let address = address.to_canonical();
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

/// What makes `address` one that is never an origin's, if anything does.
fn by_default(address: IpAddr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("an unspecified address");
    }
    if address.is_multicast() {
        return Some("a multicast address");
    }
    match address {
        IpAddr::V4(v4) if v4.is_link_local() => Some("a link-local address"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        IpAddr::V4(v4) if v4.octets()[0] == 0 || v4.octets()[0] >= 240 => Some("a reserved address"),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Some("a link-local address"),
        IpAddr::V6(v6) if v6.segments()[..6] == [0; 6] && !v6.is_loopback() => {
            let [.., a, b, c, d] = v6.octets();
            by_default(IpAddr::V4(Ipv4Addr::new(a, b, c, d))).or(Some("an IPv4-compatible address"))
        }
        _ => None,
    }
}

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
            ("::169.254.169.254", "a link-local address"),
            ("fe80::1", "a link-local address"),
            ("0.0.0.0", "an unspecified address"),
            ("::", "an unspecified address"),
            ("0.1.2.3", "a reserved address"),
            ("240.0.0.1", "a reserved address"),
            ("255.255.255.255", "the broadcast address"),
            ("224.0.0.1", "a multicast address"),
            ("ff02::1", "a multicast address"),
        ] {
            let refusal = checked(&guard, address).expect_err(address);
            assert!(refusal.contains(kind), "{address}: {refusal}");
        }
        for address in ["93.184.215.14", "2606:2800:21f::1", "127.0.0.1", "::1", "10.0.0.1"] {
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
