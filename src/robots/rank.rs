//! What a matching rule weighs against others, as one number (RFC 9309 §2.2.2).
//!
//! Never knows whether anything matches.

/// Of two rules that match, the one of higher rank decides: the longer pattern, else the one that
/// allows, else the one that stands first in the file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank(u64);

// === impl Rank ===

impl Rank {
    /// Below that of any rule.
    pub(super) const NONE: Self = Self(0);

    /// `length` is the pattern's, as compared, in bytes.
    pub(super) fn new(length: u16, allow: bool, line: u32) -> Self {
        let allow = if allow { ALLOW } else { 0 };
        Self(u64::from(length) << LENGTH | allow | u64::from(!line))
    }

    /// Whether what the rule decides may be fetched. A pattern of length 0 (an empty rule) matches
    /// everything and forbids nothing.
    pub(super) fn allows(self) -> bool {
        self.0 & ALLOW != 0 || self.0 >> LENGTH == 0
    }
}

const ALLOW: u64 = 1 << 32;
const LENGTH: u32 = 33;
