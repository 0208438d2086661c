//! That a site has no robots.txt to look at, and whether that is as it should be.
//!
//! What the answer means has been decided by the cache's state machine; here it is only said.

use std::fmt;

use crate::{
    cli::live::Live,
    copy::{Answer, Fetched},
    text::plain,
};

/// What there is in place of rules.
pub(super) enum Absence {
    /// The site says that it has none.
    Missing,
    /// More redirects than are followed.
    LostOnTheWay,
    /// A server error says that there is none.
    SoftMissing { status: u16 },
    /// An answer that counts for nothing, or none, with the reason.
    Unreachable { reason: String },
}

// === impl Absence ===

impl Absence {
    /// `None` where there are rules.
    pub(super) fn of(live: &Live) -> Option<Self> {
        let fetched = &live.traced.fetched;
        match live.answer() {
            Answer::Rules(_) | Answer::LastCopy(..) => None,
            Answer::NoRobots if matches!(fetched, Fetched::TooManyRedirects { .. }) => Some(Self::LostOnTheWay),
            Answer::NoRobots => Some(Self::Missing),
            Answer::Soft404 => Some(Self::SoftMissing {
                status: fetched.status(),
            }),
            answer @ (Answer::Unreachable(_) | Answer::UnreachableTooLong(_)) => {
                let reason = answer.failure().map(|failure| failure.error.to_string());
                Some(Self::Unreachable {
                    reason: plain(&reason.unwrap_or_default(), MAX_REASON).into_owned(),
                })
            }
        }
    }

    /// Whether someone should mend it. To have no robots.txt is no fault.
    pub(super) fn is_fault(&self) -> bool {
        !matches!(self, Self::Missing)
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the site has no robots.txt: everything is allowed"),
            Self::LostOnTheWay => {
                f.write_str("the redirects lead to no robots.txt, which counts as having none: everything is allowed")
            }
            Self::SoftMissing { status } => write!(
                f,
                "the server answers {status} with a page that says there is no robots.txt: to Google everything is \
                 allowed, to others nothing; answer 404"
            ),
            Self::Unreachable { reason } => write!(
                f,
                "the robots.txt cannot be had, and until it can everything is disallowed: {reason}"
            ),
        }
    }
}

/// Bytes of a reason that are shown.
const MAX_REASON: usize = 500;
