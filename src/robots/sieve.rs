//! A quick test that most wildcard patterns fail: does the path have the pairs of neighbouring
//! bytes that the pattern asks for?
//!
//! Never says no to a path that matches; it may say yes to one that does not.

use super::buckets::Pair;

/// The pairs of neighbouring bytes of a path, each folded into one of 1,024 bits.
pub(super) struct Sieve([u64; 16]);

// === impl Sieve ===

impl Sieve {
    pub(super) fn new(path: &[u8]) -> Self {
        let mut bits = [0; 16];
        for pair in path.array_windows() {
            let bit = bit(*pair);
            bits[bit >> 6] |= 1 << (bit & 63);
        }
        Self(bits)
    }

    /// Whether the path may have `pair`.
    pub(super) fn has(&self, Pair(pair): Pair) -> bool {
        let bit = bit(pair);
        self.0[bit >> 6] & 1 << (bit & 63) != 0
    }

    /// Whether the path may match a pattern with this body.
    pub(super) fn lets_through(&self, body: &[u8]) -> bool {
        Pair::all(body).all(|pair| self.has(pair))
    }
}

/// Keeps all pairs of lower-case letters apart, and most others.
fn bit([first, second]: [u8; 2]) -> usize {
    ((usize::from(first) * 33) ^ usize::from(second)) & 1023
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
