//! One allow or disallow line, as it is shown to people: in refusals, in the log, by `explain`.
//!
//! Never matches; that is [`super::pattern`]'s.

use super::span::{Span, offset};

/// A rule of one [`RobotsTxt`](super::RobotsTxt); it means nothing to any other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RuleId(u32);

/// Whether a rule lets paths through or keeps them out (RFC 9309 §2.2.2).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RuleKind {
    /// Before `Disallow` in order, as it wins a tie.
    Allow,
    /// Keeps paths out, unless its pattern is empty.
    Disallow,
}

/// A rule, seen through the file that holds it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule<'a> {
    /// Allow or disallow, typos understood.
    pub kind: RuleKind,
    /// The pattern as it is matched: escapes in upper case, non-ASCII octets escaped. ASCII, and
    /// its length in bytes is the rule's weight against others.
    pub pattern: &'a str,
    /// The line as written, without its comment and surrounding white space. Octets that are not
    /// UTF-8 are replaced; control characters are kept.
    pub text: &'a str,
    /// The line's number, from 1; LF, CR and CRLF each end a line.
    pub line: u32,
    /// The first user-agent of the group that the rule stands in, as written. A group may have
    /// more: under which one a bot's rules were picked is [`Agent::group`](super::Agent::group).
    pub group: &'a str,
}

/// What a parsed file keeps of a rule.
#[derive(Debug)]
pub(super) struct StoredRule {
    pub(super) kind: RuleKind,
    pub(super) pattern: Span,
    pub(super) text: Span,
    pub(super) line: u32,
    pub(super) group: u32,
}

// === impl RuleId ===

impl RuleId {
    pub(super) fn new(index: usize) -> Self {
        Self(offset(index))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}
