//! The kind of a decision, by which the metrics and the history count decisions.

use super::{Decision, Reason, Verdict};

/// The verdict and the reason of a decision, and whether the request was forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecisionKind {
    pub verdict: Verdict,
    pub reason: Reason,
    pub forwarded: bool,
}

/// What robotgate did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    Allowed,
    Refused,
    /// The request was forwarded although the verdict was not `allow`.
    NotEnforced,
}

// === impl Decision ===

impl Decision {
    pub fn kind(&self) -> DecisionKind {
        DecisionKind {
            verdict: self.verdict,
            reason: self.reason,
            forwarded: self.forwarded,
        }
    }
}

// === impl DecisionKind ===

impl DecisionKind {
    pub fn handling(self) -> Handling {
        Handling::of(self.verdict == Verdict::Allow, self.forwarded)
    }
}

// === impl Handling ===

impl Handling {
    /// Returns what robotgate did with a request. `is_allowed` says whether the verdict was `allow`.
    pub fn of(is_allowed: bool, forwarded: bool) -> Self {
        match (is_allowed, forwarded) {
            (_, false) => Self::Refused,
            (true, true) => Self::Allowed,
            (false, true) => Self::NotEnforced,
        }
    }
}
