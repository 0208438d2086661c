//! Classifies addresses that no origin on the internet has, such as those in IANA's special-purpose registries (RFC
//! 6890), those of cloud metadata services, and IPv6 addresses that contain an IPv4 address.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// What makes an address special: it is not a public address of one machine, or it is a cloud's metadata service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// All of 0.0.0.0/8 ("this network"), and `::`.
    Unspecified,
    Loopback,
    Private,
    /// Shared by a provider's customers (carrier-grade NAT, RFC 6598).
    Carrier,
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials, at an address that is not link-local.
    Metadata,
    SiteLocal,
    Multicast,
    Documentation,
    Benchmark,
    /// IPv6 that contains an IPv4 address, as in `::192.0.2.1` (RFC 4291 §2.5.5.1).
    Compatible,
    /// IPv6 that contains an IPv4 address, as in `::ffff:0:192.0.2.1` (RFC 2765 §2.1).
    Translated,
    /// A network's own NAT64 (RFC 8215). Each network decides where in the address the IPv4 address is.
    LocalNat64,
    Teredo,
    SixToFour,
    /// IPv6 that contains an IPv4 address after `0:5efe` (RFC 5214 §6.1).
    Isatap,
    Reserved,
}

// === impl Special ===

impl Special {
    /// Returns `None` for an address on the internet.
    pub(super) fn of(address: IpAddr) -> Option<Self> {
        if address.is_multicast() {
            return Some(Self::Multicast);
        }
        match address {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Option<Self> {
        let is_in =
            |network: [u8; 4], length: u32| (address.to_bits() ^ u32::from_be_bytes(network)) >> (32 - length) == 0;
        V4.iter()
            .find(|(network, length, _)| is_in(*network, *length))
            .map(|(_, _, special)| *special)
    }

    fn of_v6(address: Ipv6Addr) -> Option<Self> {
        Some(match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0] => Self::Unspecified,
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            [0, 0, 0, 0, 0, 0, ..] => Self::Compatible,
            [0, 0, 0, 0, 0xffff, 0, ..] => Self::Translated,
            [0x64, 0xff9b, 1, ..] => Self::LocalNat64,
            [0xfd00, 0xec2, ..]
            | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
            | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]
            | [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]
            | [0xfd00, 0xa9fe, 0xa9fe, ..]
            | [0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200] => Self::Metadata,
            [0xfc00..=0xfdff, ..] => Self::Private,
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            [0xfec0..=0xfeff, ..] => Self::SiteLocal,
            [0x2001, 0, ..] => Self::Teredo,
            [0x2001, 2, 0, ..] => Self::Benchmark,
            // 2001::/23 is for protocols: ORCHIDs, DETs, anycast services (RFC 2928).
            [0x2001, 0..=0x1ff, ..] => Self::Reserved,
            [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Self::Documentation,
            [0x2002, ..] => Self::SixToFour,
            [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Self::Isatap,
            [0x2000..=0x3fff, ..] => return None,
            // The internet uses only addresses in 2000::/3 so far (RFC 4291 §2.4).
            _ => Self::Reserved,
        })
    }

    /// Returns whether a host name in `egress.allow` allows addresses of this kind. For other kinds, `egress.allow`
    /// must list the network, because whoever controls a subdomain could point it to a metadata service, for example.
    pub(super) fn is_opened_by_name(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::Carrier)
    }

    /// Returns what the operator has to list in `egress.allow`, for error messages.
    pub(super) fn opener(self) -> &'static str {
        if self.is_opened_by_name() { "it" } else { "its network" }
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Carrier => "a carrier's private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud's metadata address",
            Self::SiteLocal => "a site-local address",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmark => "an address for benchmarks",
            Self::Compatible => "an IPv4-compatible address",
            Self::Translated => "an IPv4-translated address",
            Self::LocalNat64 => "a local NAT64 address",
            Self::Teredo => "a Teredo address",
            Self::SixToFour => "a 6to4 address",
            Self::Isatap => "an ISATAP address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Returns the address that a connection to `address` reaches: the IPv4 address in an IPv4-mapped or NAT64 address (RFC
/// 6052 §2.1), or else `address` itself.
pub(super) fn reached(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low).into(),
            _ => address.to_canonical(),
        },
        IpAddr::V4(_) => address,
    }
}

/// Returns the IPv4 address that `address` contains in a standard form, if any. In a Teredo address, this is the
/// address of the Teredo client, which packets reach in the end. In a local NAT64 address, it is the last 32 bits.
pub(super) fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => Some(v4(high, low)),
        // Teredo (RFC 4380 §4) inverts the bits of the IPv4 address.
        [0x2001, 0, .., high, low] => Some(v4(!high, !low)),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

/// Networks: address, prefix length (never 0) and kind. The first one that contains an address determines its kind.
const V4: [([u8; 4], u32, Special); 17] = [
    // Metadata services of Alibaba, Oracle and Azure. Other clouds use link-local IPv4 addresses.
    ([100, 100, 100, 200], 32, Special::Metadata),
    ([192, 0, 0, 192], 32, Special::Metadata),
    ([168, 63, 129, 16], 32, Special::Metadata),
    ([0, 0, 0, 0], 8, Special::Unspecified),
    ([10, 0, 0, 0], 8, Special::Private),
    ([100, 64, 0, 0], 10, Special::Carrier),
    ([127, 0, 0, 0], 8, Special::Loopback),
    ([169, 254, 0, 0], 16, Special::LinkLocal),
    ([172, 16, 0, 0], 12, Special::Private),
    ([192, 0, 0, 0], 24, Special::Reserved),
    ([192, 0, 2, 0], 24, Special::Documentation),
    // Anycast address of 6to4 relays (RFC 7526).
    ([192, 88, 99, 0], 24, Special::Reserved),
    ([192, 168, 0, 0], 16, Special::Private),
    ([198, 18, 0, 0], 15, Special::Benchmark),
    ([198, 51, 100, 0], 24, Special::Documentation),
    ([203, 0, 113, 0], 24, Special::Documentation),
    ([240, 0, 0, 0], 4, Special::Reserved),
];
