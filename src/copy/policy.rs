//! The configured policy for robots.txt copies and failed fetches.

use std::time::Duration;

use serde::Deserialize;

use super::Freshness;
use crate::robots::Profile;

/// How long a robots.txt is used, and what failed fetches mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How a robots.txt is read, and what the status of a response means.
    pub profile: Profile,
    /// How long a robots.txt is valid if its response specifies no lifetime (RFC 9309 §2.4).
    pub default_ttl: Duration,
    /// How long robotgate remembers that a site has no robots.txt, if the response specifies no lifetime.
    pub no_robots_ttl: Duration,
    /// A response is valid for at least `min_ttl` and at most `max_ttl`, even if it asks for less or more.
    pub min_ttl: Duration,
    pub max_ttl: Duration,
    /// Whether a 5xx with a page that says "not found" is treated as a 404.
    pub soft_404: bool,
    pub unreachable: Unreachable,
}

/// What applies after failed fetches, once the last response has expired (RFC 9309 §2.3.1.4), and when to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// How long everything is disallowed, counted from the first failure.
    pub deny_for: Duration,
    /// What applies after `deny_for`.
    pub then: Then,
    /// What applies after `deny_for` if `then` is [`Then::LastCopy`] and the robots.txt was never fetched.
    pub without_copy: WithoutCopy,
    pub retry: Retry,
}

/// What applies to an origin whose robots.txt could not be fetched for longer than [`Unreachable::deny_for`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    #[default]
    LastCopy,
    Allow,
    Deny,
}

/// What [`Then::LastCopy`] means if there never was a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutCopy {
    #[default]
    Allow,
    Deny,
}

/// How long to wait before retrying a failed fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Delay after the first failure, for most kinds of failure. It doubles with each further failure in a row.
    pub first: Duration,
    /// Delay after a 429 or 503 without `Retry-After`.
    pub busy: Duration,
    /// Maximum delay, even if the server asks for a longer one. To every delay, a random part of at most a tenth is
    /// added.
    pub longest: Duration,
}

// === impl Policy ===

impl Policy {
    /// Returns the default policy for a profile.
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

    /// Returns how long a response is used: for its own lifetime or `default`, within `min_ttl` and `max_ttl`.
    pub(super) fn life(&self, freshness: Freshness, default: Duration) -> Duration {
        // `clamp` would panic if `min_ttl` exceeds `max_ttl`.
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
