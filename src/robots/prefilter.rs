//! Cheap tests that reject most wildcard patterns before they are matched, because the path lacks bytes that they need.
//! [`Classes`] are for tables with few of these patterns, a [`PairFilter`] is for tables with many. They reject no
//! pattern that matches.

/// Which classes of bytes ([`BY_FREQUENCY`]) a path contains, one bit each. Of a pattern's classes, only the two that
/// are rarest in paths are tested.
#[derive(Clone, Copy)]
pub(super) struct Classes(u64);

/// Which pairs of neighbouring bytes a path contains. Each pair has one of 1,024 bits; some share a bit.
#[derive(Clone, Copy)]
pub(super) struct PairFilter([u64; 16]);

/// Two neighbouring bytes of a pattern, or [`Pair::NONE`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Pair(pub(super) [u8; 2]);

// === impl Classes ===

impl Classes {
    pub(super) fn of(path: &[u8]) -> Self {
        let (pairs, rest) = path.as_chunks();
        let (mut even, mut odd) = (0, 0);
        for [a, b] in pairs {
            // Collecting the bits in two variables takes half the time of collecting them in one.
            even |= BITS[usize::from(*a)];
            odd |= BITS[usize::from(*b)];
        }
        let rest = rest.first().map_or(0, |byte| BITS[usize::from(*byte)]);
        Self(even | odd | rest)
    }

    pub(super) fn meet(self, needs: u16) -> bool {
        self.0 >> (needs & 63) & self.0 >> (needs >> 6 & 63) & 1 != 0
    }

    /// Returns the two classes of bytes in this pattern that are rarest in paths, as six bits each.
    pub(super) fn needs(body: &[u8]) -> u16 {
        let (mut rarest, mut rare) = (0, 0);
        for byte in body.iter().filter(|byte| **byte != b'*') {
            let class = CLASSES[usize::from(*byte)];
            if class > rarest {
                (rarest, rare) = (class, rarest);
            } else if class < rarest && class > rare {
                rare = class;
            }
        }
        let rare = if rare == 0 { rarest } else { rare };
        u16::from(rarest) | u16::from(rare) << 6
    }
}

// === impl PairFilter ===

impl PairFilter {
    pub(super) fn new(path: &[u8]) -> Self {
        let mut bits = [0; 16];
        for pair in path.array_windows() {
            let bit = usize::from(bit(*pair));
            bits[bit >> 6] |= 1 << (bit & 63);
        }
        Self(bits)
    }

    /// Returns whether the path contains `pair`. Can be wrongly true, because pairs share bits; always true for
    /// [`Pair::NONE`].
    pub(super) fn has(&self, pair: Pair) -> bool {
        self.meets(Self::needs(pair))
    }

    /// Returns the same as [`has`](Self::has), for the result of [`needs`](Self::needs).
    pub(super) fn meets(&self, needs: u16) -> bool {
        let bit = usize::from(needs);
        bit > 1023 || self.0[bit >> 6] & 1 << (bit & 63) != 0
    }

    /// Returns the number of the bit for `pair`, or 1024 for [`Pair::NONE`].
    pub(super) fn needs(Pair(pair): Pair) -> u16 {
        match Pair(pair) {
            Pair::NONE => 1024,
            Pair(pair) => bit(pair),
        }
    }

    /// Returns false only if `body` has a pair of neighbouring bytes that the path lacks.
    pub(super) fn may_match(&self, body: &[u8]) -> bool {
        Pair::all(body).all(|pair| self.has(pair))
    }
}

// === impl Pair ===

impl Pair {
    /// Stands for no pair, for patterns such as `*a*`. No pattern contains a NUL, so this is never a real pair.
    pub(super) const NONE: Self = Self([0, 0]);

    /// Iterates over all pairs of neighbouring bytes, except those with a `*`.
    pub(super) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes
            .array_windows()
            .filter(|pair: &&[u8; 2]| !pair.contains(&b'*'))
            .map(|pair| Self(*pair))
    }
}

/// Returns the number of the bit for a pair. Pairs of lower-case letters never share a bit, but other pairs can.
fn bit([first, second]: [u8; 2]) -> u16 {
    ((u16::from(first) * 33) ^ u16::from(second)) & 1023
}

/// The classes of bytes, one in each string, from the most frequent in paths to the rarest. All other bytes are in
/// class 63.
const BY_FREQUENCY: [&[u8]; 59] = [
    b"/",
    b"e",
    b"a",
    b"s",
    b"t",
    b"i",
    b"o",
    b"r",
    b"n",
    b"c",
    b"l",
    b"-",
    b"d",
    b"p",
    b"u",
    b"m",
    b"h",
    b"g",
    b"b",
    b"f",
    b"w",
    b"y",
    b"v",
    b"k",
    b".",
    b"01",
    b"23456789",
    b"x",
    b"_",
    b"ABCDE",
    b"FGHIJKLM",
    b"NOPQRST",
    b"UVWXYZ",
    b"j",
    b"q",
    b"z",
    b"=",
    b"?",
    b"&",
    b"%",
    b"+",
    b",",
    b";",
    b":",
    b"@",
    b"~",
    b"!",
    b"'",
    b"(",
    b")",
    b"$",
    b"#",
    b"[",
    b"]",
    b"|",
    b"{",
    b"}",
    b"\"",
    b"\\",
];

const CLASSES: [u8; 256] = {
    let mut classes = [63; 256];
    let mut class = 0;
    while class < BY_FREQUENCY.len() {
        let bytes = BY_FREQUENCY[class];
        let mut at = 0;
        while at < bytes.len() {
            classes[bytes[at] as usize] = class as u8;
            at += 1;
        }
        class += 1;
    }
    classes
};

const BITS: [u64; 256] = {
    let mut bits = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        bits[byte] = 1 << CLASSES[byte];
        byte += 1;
    }
    bits
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_classes_that_its_substrings_need() {
        for path in ["/shop/list?sort=price&page=2", "/", "/a\u{e9}B", "/x.pdf"] {
            let classes = Classes::of(path.as_bytes());
            for start in 0..path.len() {
                for end in start..path.len() {
                    assert!(classes.meet(Classes::needs(&path.as_bytes()[start..end])), "{path}");
                }
            }
        }
    }

    #[test]
    fn a_pattern_needs_its_rarest_bytes_in_the_path() {
        let meets = |path: &str, body: &str| Classes::of(path.as_bytes()).meet(Classes::needs(body.as_bytes()));
        assert!(!meets("/shop/list", "/*?sort="));
        assert!(!meets("/shop?list", "/*?sort="), "there is no =");
        assert!(meets("/shop?x=list", "/*?sort="));
        assert!(!meets("/shop/list", "/*.pdf"));
        assert!(!meets("/shop/list", "*X"));
    }

    #[test]
    fn the_pair_filter_accepts_pairs_of_the_path_only() {
        let filter = PairFilter::new(b"/shop/list?sort=price&page=2");
        assert!(filter.may_match(b"/shop*?sort=*&page="));
        assert!(filter.may_match(b"**x*"), "a single byte is no pair");
        assert!(!filter.may_match(b"*.pdf"));
        assert!(!filter.may_match(b"*shoppish"));
    }
}
