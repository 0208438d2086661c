//! A quick test that most wildcard patterns fail: does the path have the bytes, and the pairs of
//! neighbouring bytes, that the pattern asks for?
//!
//! Never says no to a path that matches; it may say yes to one that does not.

/// Which bytes and pairs occur, folded into two words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sieve {
    bytes: u64,
    pairs: u64,
}

// === impl Sieve ===

impl Sieve {
    /// Everything that occurs in `path`.
    pub(super) fn of_path(path: &[u8]) -> Self {
        Self::default().with(path)
    }

    /// What the pieces of `tail` between its `*` ask for.
    pub(super) fn of_tail(tail: &[u8]) -> Self {
        tail.split(|b| *b == b'*').fold(Self::default(), Self::with)
    }

    /// Whether a path holds all that `wanted` asks for, as far as can be told.
    pub(super) fn holds(self, wanted: Self) -> bool {
        wanted.bytes & !self.bytes == 0 && wanted.pairs & !self.pairs == 0
    }

    fn with(mut self, piece: &[u8]) -> Self {
        let Some((&first, rest)) = piece.split_first() else {
            return self;
        };
        self.bytes |= bit(first);
        let mut last = first;
        for &byte in rest {
            self.bytes |= bit(byte);
            self.pairs |= bit(last.wrapping_mul(37) ^ byte);
            last = byte;
        }
        self
    }
}

/// One of 64 bits. The low six bits of a byte tell all lower-case letters apart, and most digits
/// and punctuation.
fn bit(byte: u8) -> u64 {
    1 << (byte & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_holds_its_own_pieces() {
        let path = Sieve::of_path(b"/shop/list?sort=price&page=2");
        assert!(path.holds(Sieve::of_tail(b"*?sort=*&page=")));
        assert!(path.holds(Sieve::of_tail(b"**")));
        assert!(!path.holds(Sieve::of_tail(b"*.pdf")));
        assert!(!path.holds(Sieve::of_tail(b"*shoppish")));
    }
}
