//! How often an origin's robots.txt led to each verdict, while the origin was in memory.

use serde::{Deserialize, Serialize};

use crate::{copy::Tally, decision::Verdict};

/// The counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    pub allow: u64,
    pub deny: u64,
    pub unverifiable: u64,
}

// === impl VerdictCounts ===

impl From<&Tally> for VerdictCounts {
    fn from(tally: &Tally) -> Self {
        let [allow, deny, unverifiable] = Verdict::ALL.map(|verdict| tally.count(verdict as usize));
        Self {
            allow,
            deny,
            unverifiable,
        }
    }
}
