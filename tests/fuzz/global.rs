//! Says which addresses belong to the internet. Written independently of robotgate, mostly from IANA's special-purpose
//! registries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address, and any address embedded in it, belongs to the internet.
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    !CLOSED
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&address.octets()))
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let carried = is_global_v4(Ipv4Addr::from_bits((bits & 0xffff_ffff) as u32));
    match bits >> 32 {
        // IPv4-mapped addresses, and RFC 6052's well-known prefix.
        0xffff | 0x0064_ff9b_0000_0000_0000_0000 => return carried,
        _ => {}
    }
    // ISATAP (RFC 5214 §6.1); the universal bit of the identifier can be set.
    let isatap = (bits >> 32) & 0xfdff_ffff == 0x5efe;
    let begins = |prefix: u128, length: u32| bits >> (128 - length) == prefix >> (128 - length);
    begins(0x2000 << 112, 3)
        && !begins(0x2001 << 112, 23)
        && !begins(0x2001_0db8 << 96, 32)
        && !begins(0x2002 << 112, 16)
        && !begins(0x3fff << 112, 20)
        && !isatap
}

const CLOSED: [([u8; 4], [u8; 4]); 16] = [
    ([0, 0, 0, 0], [0, 255, 255, 255]),
    ([10, 0, 0, 0], [10, 255, 255, 255]),
    ([100, 64, 0, 0], [100, 127, 255, 255]),
    ([127, 0, 0, 0], [127, 255, 255, 255]),
    // An internal service of Azure.
    ([168, 63, 129, 16], [168, 63, 129, 16]),
    ([169, 254, 0, 0], [169, 254, 255, 255]),
    ([172, 16, 0, 0], [172, 31, 255, 255]),
    ([192, 0, 0, 0], [192, 0, 0, 255]),
    ([192, 0, 2, 0], [192, 0, 2, 255]),
    ([192, 88, 99, 0], [192, 88, 99, 255]),
    ([192, 168, 0, 0], [192, 168, 255, 255]),
    ([198, 18, 0, 0], [198, 19, 255, 255]),
    ([198, 51, 100, 0], [198, 51, 100, 255]),
    ([203, 0, 113, 0], [203, 0, 113, 255]),
    // Multicast, reserved, broadcast.
    ([224, 0, 0, 0], [239, 255, 255, 255]),
    ([240, 0, 0, 0], [255, 255, 255, 255]),
];
