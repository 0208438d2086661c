//! The first eight bytes of a string (a path, a pattern or a name) as one number. Comparing two such numbers is faster
//! than comparing two strings, and most strings already differ in these bytes.
//!
//! If the numbers are equal, the strings can still differ in later bytes, which callers have to compare.

/// The first [`BYTES`](Head::BYTES) bytes of a string as a number, padded with zeros. Numbers sort as their strings do,
/// if the strings contain no NUL.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Head(u64);

// === impl Head ===

impl Head {
    /// Size of a head in bytes. The text of a file ends with this number of zeros, so that eight bytes can be read at
    /// any offset in the file.
    pub(super) const BYTES: usize = size_of::<u64>();

    pub(super) fn of(string: &[u8]) -> Self {
        if let Some(head) = string.first_chunk() {
            return Self(u64::from_be_bytes(*head));
        }
        let byte = |head: u64, at| head << 8 | u64::from(string.get(at).copied().unwrap_or(0));
        Self((0..Self::BYTES).fold(0, byte))
    }

    /// Returns the head of the part of `text` that begins at `start`.
    pub(super) fn at(text: &[u8], start: usize) -> Self {
        let head = text.get(start..).and_then(<[u8]>::first_chunk);
        Self(head.map_or(0, |head| u64::from_be_bytes(*head)))
    }

    /// Returns the head with zeros in place of all bytes after the first `length`.
    pub(super) fn first(self, length: usize) -> Self {
        let rest = Self::BYTES - length.min(Self::BYTES);
        // `checked_shl` returns `None` if `length` is 0, which shifts out all bits.
        let mask = u64::MAX.checked_shl(8 * rest as u32).unwrap_or(0);
        Self(self.0 & mask)
    }

    /// Converts to ASCII lower case.
    pub(super) fn lower(self) -> Self {
        // Handle all eight bytes in one calculation. In the first sum, the high bit of each byte says whether the byte
        // is at least `A`; in the second, whether it is greater than `Z`.
        let low = self.0 & !EACH_HIGH;
        let from_a = low + EACH * u64::from(0x80 - b'A');
        let past_z = low + EACH * u64::from(0x7F - b'Z');
        let upper = (from_a ^ past_z) & !self.0 & EACH_HIGH;
        Self(self.0 | upper >> 2)
    }
}

/// A number whose bytes are all 1.
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
