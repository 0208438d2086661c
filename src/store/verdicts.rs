//! How often decisions about an origin had each verdict since the origin came into memory.

use serde::{Deserialize, Serialize};

use crate::{copy::Tally, decision::Verdict};

/// The number of decisions about one origin with each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    pub allow: u64,
    pub deny: u64,
    pub unverifiable: u64,
    /// 0 if the counts come from a robotgate of an older version, which does not count deferred requests.
    #[serde(default)]
    pub defer: u64,
}

// === impl VerdictCounts ===

impl From<&Tally> for VerdictCounts {
    fn from(tally: &Tally) -> Self {
        let [allow, deny, unverifiable, defer] = Verdict::ALL.map(|verdict| tally.count(verdict as usize));
        Self {
            allow,
            deny,
            unverifiable,
            defer,
        }
    }
}
