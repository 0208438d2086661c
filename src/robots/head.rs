//! The first eight bytes of a string as one number. Comparing two numbers is faster than comparing two strings, and
//! most strings already differ in these bytes. Callers have to compare the later bytes.

/// The first [`BYTES`](Head::BYTES) bytes of a string, padded with zeros. Heads sort as their strings do, if these
/// contain no NUL.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Head(u64);

// === impl Head ===

impl Head {
    /// The size of a head. The text of a parsed file ends with as many zeros, so that a head can be read at any offset.
    pub(super) const BYTES: usize = size_of::<u64>();

    pub(super) fn of(string: &[u8]) -> Self {
        if let Some(head) = string.first_chunk() {
            return Self(u64::from_be_bytes(*head));
        }
        let byte = |head: u64, at| head << 8 | u64::from(string.get(at).copied().unwrap_or(0));
        Self((0..Self::BYTES).fold(0, byte))
    }

    pub(super) fn at(text: &[u8], start: usize) -> Self {
        let head = text.get(start..).and_then(<[u8]>::first_chunk);
        Self(head.map_or(0, |head| u64::from_be_bytes(*head)))
    }

    /// Replaces all bytes after the first `length` by zeros.
    pub(super) fn first(self, length: usize) -> Self {
        let rest = Self::BYTES - length.min(Self::BYTES);
        // If `length` is 0, `checked_shl` returns `None`, and no bit is kept.
        let mask = u64::MAX.checked_shl(8 * rest as u32).unwrap_or(0);
        Self(self.0 & mask)
    }

    pub(super) fn lower(self) -> Self {
        // Calculate with all eight bytes at once: the high bit of each byte in `from_a` says whether the byte is at
        // least `A`, that in `past_z` whether it is greater than `Z`.
        let low = self.0 & !EACH_HIGH;
        let from_a = low + EACH * u64::from(0x80 - b'A');
        let past_z = low + EACH * u64::from(0x7F - b'Z');
        let upper = (from_a ^ past_z) & !self.0 & EACH_HIGH;
        Self(self.0 | upper >> 2)
    }
}

const EACH: u64 = u64::MAX / 0xFF;
/// A number in which the high bit of each byte is set.
const EACH_HIGH: u64 = EACH << 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_ordered_like_their_strings() {
        let strings = ["", "/", "/a", "/a/", "/aaaaaa", "/aaaaaaa", "/aaaaaab", "/b", "a"];
        for (a, b) in strings.iter().flat_map(|a| strings.iter().map(move |b| (a, b))) {
            assert_eq!(Head::of(a.as_bytes()).cmp(&Head::of(b.as_bytes())), a.cmp(b), "{a} {b}");
        }
        assert_eq!(Head::of(b"/aaaaaaa"), Head::of(b"/aaaaaaab"));
    }

    #[test]
    fn a_head_can_start_anywhere_and_be_cut() {
        let text = b"/shop/list\0\0\0\0\0\0\0\0";
        assert_eq!(Head::at(text, 5).first(5), Head::of(b"/list"));
        assert_eq!(Head::at(text, 5).first(0), Head::of(b""));
        assert_eq!(Head::at(text, 0).first(100), Head::of(b"/shop/li"));
    }

    #[test]
    fn only_letters_are_lowercased() {
        for byte in 1..=u8::MAX {
            let string = [b'x', byte, b'Y', byte];
            let lower = Head::of(&string).lower();
            assert_eq!(lower, Head::of(&string.to_ascii_lowercase()), "{byte}");
        }
    }
}
