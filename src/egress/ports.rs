//! Which ports bots may reach. Pure.

use std::ops::RangeInclusive;

/// The ports that bots may reach: those of the configuration, or all but the bad ones of the Fetch
/// standard. Port 0 is never one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(Option<Vec<RangeInclusive<u16>>>);

// === impl Ports ===

impl Ports {
    /// These ports and no others; a bad one among them only where a range is that port alone.
    pub fn only(ranges: Vec<RangeInclusive<u16>>) -> Self {
        Self(Some(ranges))
    }

    pub fn contains(&self, port: u16) -> bool {
        let is_bad = port == 0 || BAD.binary_search(&port).is_ok();
        match &self.0 {
            None => !is_bad,
            Some(ranges) if is_bad => port != 0 && ranges.contains(&(port..=port)),
            Some(ranges) => ranges.iter().any(|range| range.contains(&port)),
        }
    }
}

/// Ports of other protocols, whose servers may take a request for one of their own commands: the bad
/// ports of the Fetch standard (<https://fetch.spec.whatwg.org/#port-blocking>), in order.
const BAD: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
    6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bad_ports_are_in_order() {
        assert!(BAD.is_sorted());
    }

    #[test]
    fn what_is_written_decides_and_a_bad_port_has_to_be_written_alone() {
        let written = |ranges: &[RangeInclusive<u16>]| Ports::only(ranges.to_vec());
        for (ports, open, closed) in [
            (
                Ports::default(),
                &[80, 443, 8080, 24, 65535][..],
                &[0, 22, 25, 6667, 10080][..],
            ),
            (written(&[80..=80, 443..=443]), &[80, 443], &[0, 22, 81, 8080]),
            (written(&[20..=90, 0..=10]), &[24, 80, 2], &[0, 1, 22, 25, 443]),
            (written(&[1..=65535, 22..=22]), &[22, 80, 65535], &[0, 21, 25, 6000]),
            (written(&[0..=0]), &[], &[0, 80]),
        ] {
            for port in open {
                assert!(ports.contains(*port), "{ports:?}: {port}");
            }
            for port in closed {
                assert!(!ports.contains(*port), "{ports:?}: {port}");
            }
        }
    }
}
