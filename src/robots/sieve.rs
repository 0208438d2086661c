//! A quick test that most wildcard patterns fail: does the path have the pairs of neighbouring
//! bytes that the pattern asks for?
//!
//! Never says no to a path that matches; it may say yes to one that does not.

use super::buckets::Pair;

/// The pairs of neighbouring bytes of a path, each folded into one of 1,024 bits.
#[derive(Clone, Copy)]
pub(super) struct Sieve([u64; 16]);

// === impl Sieve ===

impl Sieve {
    pub(super) fn new(path: &[u8]) -> Self {
        let mut bits = [0; 16];
        for pair in path.array_windows() {
            let bit = usize::from(bit(*pair));
            bits[bit >> 6] |= 1 << (bit & 63);
        }
        Self(bits)
    }

    /// Whether the path may have `pair`; it has [`Pair::NONE`].
    pub(super) fn has(&self, pair: Pair) -> bool {
        self.meets(Self::needs(pair))
    }

    /// As [`has`](Self::has), of the pair that came to `needs`.
    pub(super) fn meets(&self, needs: u16) -> bool {
        let bit = usize::from(needs);
        bit > 1023 || self.0[bit >> 6] & 1 << (bit & 63) != 0
    }

    /// `pair` in thirteen bits.
    pub(super) fn needs(Pair(pair): Pair) -> u16 {
        match Pair(pair) {
            Pair::NONE => 1024,
            Pair(pair) => bit(pair),
        }
    }

    /// Whether the path may match a pattern with this body.
    pub(super) fn lets_through(&self, body: &[u8]) -> bool {
        Pair::all(body).all(|pair| self.has(pair))
    }
}

/// Keeps all pairs of lower-case letters apart, and most others.
fn bit([first, second]: [u8; 2]) -> u16 {
    ((u16::from(first) * 33) ^ u16::from(second)) & 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_own_pairs() {
        let sieve = Sieve::new(b"/shop/list?sort=price&page=2");
        assert!(sieve.lets_through(b"/shop*?sort=*&page="));
        assert!(sieve.lets_through(b"**x*"), "a single byte is no pair");
        assert!(!sieve.lets_through(b"*.pdf"));
        assert!(!sieve.lets_through(b"*shoppish"));
    }
}
