//! A change of what is known of an origin, and what two of them come to.

use std::sync::Arc;

use crate::copy::OriginState;

/// One change.
#[derive(Debug, Clone)]
pub enum Change {
    /// This is known, on top of what it began without.
    Keep { state: Arc<OriginState>, base: Base },
    /// More was known, and is lost: of what the file knows the last copy is left.
    Outdate,
    /// Nothing is known any more.
    Forget,
}

/// What of the file's record a state began without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// There is none, or the state has it.
    Nothing,
    /// Its last copy.
    LastCopy,
    All,
}

// === impl Change ===

impl Change {
    /// This change on top of an earlier one, as one.
    pub(super) fn after(self, earlier: &Self) -> Self {
        match (self, earlier) {
            (
                Self::Keep {
                    state,
                    base: Base::Nothing,
                },
                _,
            ) => Self::Keep {
                state,
                base: Base::Nothing,
            },
            (Self::Keep { state, .. }, Self::Forget) => Self::Keep {
                state,
                base: Base::Nothing,
            },
            (Self::Keep { state, .. }, Self::Outdate) => Self::Keep {
                state,
                base: Base::LastCopy,
            },
            (Self::Keep { state, .. }, Self::Keep { state: earlier, base }) => Self::Keep {
                state: Arc::new(state.resuming(earlier)),
                base: *base,
            },
            (Self::Outdate, Self::Forget) => Self::Forget,
            (change, _) => change,
        }
    }
}

// === impl Base ===

impl Base {
    /// What of the file's record counts.
    pub(super) fn of(self, record: Option<OriginState>) -> Option<OriginState> {
        match self {
            Base::Nothing => None,
            Base::LastCopy => record.map(|record| record.only_last_copy()),
            Base::All => record,
        }
    }
}
