//! An index of a path, for files with so many patterns that searching the path for each of them takes too long. It
//! rejects most patterns that do not match, and none that match.
//!
//! It takes 130 KiB of stack, so only a search that takes long builds one.

/// Which sequences of three, four and eight bytes a path contains, and where each byte occurs first and last.
pub(super) struct PathIndex {
    runs: [u64; WORDS],
    first: [u32; 256],
    last: [u32; 256],
}

// === impl PathIndex ===

impl PathIndex {
    pub(super) fn new(path: &[u8]) -> Self {
        let mut path_index = Self {
            runs: [0; WORDS],
            first: [NOWHERE; 256],
            last: [0; 256],
        };
        for (at, byte) in (0..NOWHERE).zip(path) {
            let byte = usize::from(*byte);
            path_index.first[byte] = path_index.first[byte].min(at);
            path_index.last[byte] = at;
        }
        for run in path.array_windows() {
            path_index.add(three(*run));
        }
        for run in path.array_windows() {
            path_index.add(four(*run));
        }
        for run in path.array_windows() {
            path_index.add(eight(*run));
        }
        path_index
    }

    /// Returns false only if `tail` cannot match what follows the first `from` bytes of the path. `tail` is a pattern
    /// from its first `*` on.
    pub(super) fn may_match(&self, tail: &[u8], from: usize) -> bool {
        let mut from = from;
        for piece in tail.split(|byte| *byte == b'*').take(PIECES) {
            let [head, ..] = piece else {
                continue;
            };
            let start = from.max(self.first[usize::from(*head)] as usize);
            let last = |(at, byte): (usize, &u8)| self.last[usize::from(*byte)] as usize >= start + at;
            if !piece.iter().enumerate().all(last) || !self.has_runs_of(piece) {
                return false;
            }
            from = start + piece.len();
        }
        true
    }

    fn has_runs_of(&self, piece: &[u8]) -> bool {
        match piece {
            [a, b, c] => self.has(three([*a, *b, *c])),
            [_, _, _, _, _, _, _, _, ..] => piece.array_windows().all(|run| self.has(eight(*run))),
            _ => piece.array_windows().all(|run| self.has(four(*run))),
        }
    }

    fn add(&mut self, bit: usize) {
        self.runs[bit >> 6] |= 1 << (bit & 63);
    }

    fn has(&self, bit: usize) -> bool {
        self.runs[bit >> 6] & 1 << (bit & 63) != 0
    }
}

fn three([a, b, c]: [u8; 3]) -> usize {
    four([0, a, b, c])
}

fn four(run: [u8; 4]) -> usize {
    spread(u32::from_le_bytes(run).into())
}

fn eight(run: [u8; 8]) -> usize {
    spread(u64::from_le_bytes(run))
}

/// Returns the bit for a sequence of bytes, by Fibonacci hashing. Several sequences can have the same bit.
fn spread(run: u64) -> usize {
    (run.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
}

/// Maximum number of pieces of a pattern (split at each `*`) that are checked. Checking more pieces can take longer
/// than the search that the check saves.
const PIECES: usize = 16;

/// The set `runs` has 2 to the power of `BITS` bits. A path of 60 KiB sets a sixth of them.
const BITS: u32 = 20;
const WORDS: usize = 1 << (BITS - 6);
const NOWHERE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::wild, *};

    proptest! {
        #[test]
        fn the_path_index_accepts_every_pattern_that_matches(
            path in "/[ab1]{0,24}",
            tail in "\\*([ab1*]{0,3}[ab1]){1,3}",
            from in 0..3_usize,
            to_end: bool,
        ) {
            let from = from.min(path.len());
            if wild::matches(&path.as_bytes()[from..], tail.as_bytes(), to_end) {
                prop_assert!(PathIndex::new(path.as_bytes()).may_match(tail.as_bytes(), from));
            }
        }
    }

    #[test]
    fn the_path_index_rejects_pieces_that_are_missing_or_too_early() {
        let path_index = PathIndex::new(b"/cccbbbaaa-1234");
        for (tail, may_match) in [
            ("*c*b*a", true),
            ("*a*b", false),
            ("*b*a*c", false),
            ("*aaa-12", true),
            ("*aaa-13", false),
            ("*bba", true),
            ("*bab", false),
            ("*x", false),
            ("*4*4", false),
            ("*baaa-1234", true),
            ("*aaaa-1234", false),
        ] {
            assert_eq!(path_index.may_match(tail.as_bytes(), 1), may_match, "{tail}");
        }
    }
}
