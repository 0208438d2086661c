//! How long things hold and what failures mean, as the configuration says it. The defaults are the
//! specification's.

use std::time::Duration;

use serde::Deserialize;

use super::Freshness;
use crate::robots::Profile;

/// How long things hold. The defaults are the specification's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whose reading of robots.txt and of statuses holds.
    pub profile: Profile,
    /// For rules whose answer says nothing of its life (RFC 9309 §2.4).
    pub default_ttl: Duration,
    /// For an origin without a robots.txt whose answer says nothing of its life.
    pub no_robots_ttl: Duration,
    /// Bounds of what an answer may say.
    pub min_ttl: Duration,
    pub max_ttl: Duration,
    /// Whether a 5xx whose page says that it was not found counts as a 404.
    pub soft_404: bool,
    pub unreachable: Unreachable,
}

/// What holds while a robots.txt cannot be had (RFC 9309 §2.3.1.4), and when it is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// How long failures mean that everything is disallowed, from the first one on.
    pub deny_for: Duration,
    /// What they mean from then on.
    pub then: Then,
    /// The same where there never was a copy, if `then` is [`Then::LastCopy`].
    pub without_copy: WithoutCopy,
    pub retry: Retry,
}

/// What holds for an origin that has failed for longer than [`Unreachable::deny_for`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// The last copy that had rules.
    #[default]
    LastCopy,
    /// Everything is allowed.
    Allow,
    /// Everything stays disallowed.
    Deny,
}

/// What holds for such an origin of which no copy was ever had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutCopy {
    #[default]
    Allow,
    Deny,
}

/// How long to wait before a failed fetch is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// After the first failure; it doubles with each one that follows.
    pub first: Duration,
    /// After a 429 or a 503, whose sender is busy.
    pub busy: Duration,
    /// The longest wait, whatever was asked for.
    pub longest: Duration,
}

// === impl Policy ===

impl Policy {
    /// The defaults where this reading holds. The soft 404 is a clause of Google's.
    pub fn of(profile: Profile) -> Self {
        Self {
            profile,
            default_ttl: DAY,
            no_robots_ttl: Duration::from_secs(60 * 60),
            min_ttl: Duration::from_secs(5 * 60),
            max_ttl: DAY,
            soft_404: profile == Profile::Google,
            unreachable: Unreachable::default(),
        }
    }

    /// How long an answer holds that says `freshness` of itself.
    pub(super) fn life(&self, freshness: Freshness, default: Duration) -> Duration {
        // Not `clamp`, which panics where the bounds cross.
        freshness.0.unwrap_or(default).max(self.min_ttl).min(self.max_ttl)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::of(Profile::default())
    }
}

// === impl Unreachable ===

impl Default for Unreachable {
    fn default() -> Self {
        Self {
            deny_for: 30 * DAY,
            then: Then::default(),
            without_copy: WithoutCopy::default(),
            retry: Retry::default(),
        }
    }
}

// === impl Retry ===

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(60),
            busy: Duration::from_secs(5 * 60),
            longest: Duration::from_secs(60 * 60),
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
