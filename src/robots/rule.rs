//! One allow or disallow line, as it is shown to people: in refusals, in the log, by `explain`.
//!
//! Never matches; that is [`super::search`]'s.

use std::borrow::Cow;

/// A rule of one [`RobotsTxt`](super::RobotsTxt); it means nothing to any other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RuleId {
    pub(super) line: u32,
    /// Where its pattern, as it is compared, begins in the file's text.
    pub(super) start: u32,
}

/// Whether a rule lets paths through or keeps them out (RFC 9309 §2.2.2).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RuleKind {
    /// Before `Disallow` in order, as it wins a tie.
    Allow,
    /// Keeps paths out, unless its pattern is empty.
    Disallow,
}

/// A rule, seen through the file that holds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule<'a> {
    /// Allow or disallow, typos understood.
    pub kind: RuleKind,
    /// The pattern as it is compared: in the profile of Google with escapes in upper case and
    /// non-ASCII octets escaped. ASCII, and its length in bytes is the rule's weight against others.
    pub pattern: Cow<'a, str>,
    /// The line as written, without its comment and surrounding white space. Octets that are not
    /// UTF-8 are replaced; control characters are kept.
    pub text: Cow<'a, str>,
    /// The line's number, from 1; LF, CR and CRLF each end a line.
    pub line: u32,
}

// === impl RuleId ===

impl RuleId {
    /// The line that the rule stands in, from 1.
    #[must_use]
    pub fn line(self) -> u32 {
        self.line
    }
}
