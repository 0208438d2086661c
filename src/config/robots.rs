//! `[robots]`: how robots.txt files are read and fetched, how long a copy of one holds, and what holds where none can
//! be had.
//!
//! It fetches nothing and knows no copy.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::HeaderValue;
use toml::Spanned;

use super::check::Checker;
use super::units::Written;
use super::written;
use crate::copy::Unreachable;
use crate::robots::Profile;

mod unreachable;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const USER_AGENT: &str = concat!("robotgate/", env!("CARGO_PKG_VERSION"));

/// Under a second every request would fetch; over a month a site that changes its mind would not be heard.
const TTLS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 60 * 60);
const WAITS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10 * 60);
/// Each holds a connection and up to 500 KiB; more than ten thousand are a slip.
const FETCHES: RangeInclusive<usize> = 1..=10_000;
const DEFAULT_FETCHES: usize = 1024;

/// The `[robots]` section. `min_ttl` ≤ `default_ttl` ≤ `max_ttl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    /// Whose reading holds.
    pub profile: Profile,
    /// Whether what common servers make of a path can refuse it too ([`crate::origin::Strict`]).
    pub strict_paths: bool,
    /// The User-Agent with which robots.txt files are fetched; visible ASCII.
    pub user_agent: HeaderValue,
    /// How long a copy holds whose response names no time (RFC 9309 §2.4).
    pub default_ttl: Duration,
    /// The least time, whatever a response says.
    pub min_ttl: Duration,
    /// The longest time, whatever a response says.
    pub max_ttl: Duration,
    /// `no-robots-ttl`: how long a 4xx holds whose response names no time.
    pub no_robots_ttl: Duration,
    /// Whether a 5xx whose page says "not found" counts as a 404. Unless written, it does in the
    /// profile of Google, whose clause it is.
    pub soft_404: bool,
    /// How long a request waits for a fetch before it is refused.
    pub wait: Duration,
    /// How long a fetch may take from when its turn has come, redirects and all.
    pub fetch_timeout: Duration,
    /// How long a fetch may hear nothing; of no account where it is the longer of the two.
    pub fetch_idle_timeout: Duration,
    /// How many fetches run at once, 1 to 10,000.
    pub max_fetches: usize,
    /// Whether a bot's own request for a robots.txt is answered from the copy.
    pub serve_copies: bool,
    /// What holds while a robots.txt cannot be had. No wait before a retry is longer than the longest.
    pub unreachable: Unreachable,
}

// === impl Robots ===

impl Robots {
    pub(super) fn check(written: written::Robots, checker: &mut Checker<'_>) -> Self {
        let user_agent = written
            .user_agent
            .and_then(|written| checker.parsed(&written, user_agent));
        let [min_at, default_at] = [&written.min_ttl, &written.default_ttl].map(|w| w.as_ref().map(Spanned::span));

        // The two lower times, where they are not written, give way to what is: `max-ttl = "1h"` alone is no mistake.
        // The upper one does not: it is raised only by saying so.
        let max_ttl = checker.duration(written.max_ttl, DAY, TTLS);
        let default_ttl = checker.duration(written.default_ttl, DAY.min(max_ttl), TTLS);
        let min_ttl = checker.duration(written.min_ttl, Duration::from_secs(300).min(default_ttl), TTLS);
        let default_ttl = if default_at.is_none() {
            default_ttl.max(min_ttl)
        } else {
            default_ttl
        };
        if let Some(span) = default_at.clone().filter(|_| default_ttl > max_ttl) {
            checker.complain(span, too_long(default_ttl, "max-ttl", max_ttl));
        }
        if let Some(span) = min_at {
            if min_ttl > max_ttl {
                checker.complain(span, too_long(min_ttl, "max-ttl", max_ttl));
            } else if default_at.is_some() && min_ttl > default_ttl {
                checker.complain(span, too_long(min_ttl, "default-ttl", default_ttl));
            }
        }

        Self {
            profile: written.profile,
            strict_paths: written.strict_paths.unwrap_or(true),
            user_agent: user_agent.unwrap_or(HeaderValue::from_static(USER_AGENT)),
            default_ttl,
            min_ttl,
            max_ttl,
            no_robots_ttl: checker.duration(written.no_robots_ttl, HOUR, TTLS),
            soft_404: written.soft_404.unwrap_or(written.profile == Profile::Google),
            wait: checker.duration(written.wait, Duration::from_secs(5), WAITS),
            fetch_timeout: checker.duration(written.fetch_timeout, Duration::from_secs(30), WAITS),
            fetch_idle_timeout: checker.duration(written.fetch_idle_timeout, Duration::from_secs(10), WAITS),
            max_fetches: max_fetches(written.max_fetches, checker),
            serve_copies: written.serve_copies.unwrap_or(false),
            unreachable: unreachable::check(written.unreachable.0, checker),
        }
    }
}

/// What is said of a time that is longer than that of another key.
fn too_long(time: Duration, key: &str, than: Duration) -> String {
    format!(
        "{} is more than {key}, {}; this one must not be the longer",
        Written(time),
        Written(than)
    )
}

fn max_fetches(written: Option<Spanned<i64>>, checker: &mut Checker<'_>) -> usize {
    let Some(written) = written else { return DEFAULT_FETCHES };
    match usize::try_from(*written.get_ref()) {
        Ok(fetches) if FETCHES.contains(&fetches) => fetches,
        _ => {
            let (low, high) = (FETCHES.start(), FETCHES.end());
            let message = format!(
                "{} fetches at once cannot be; write a number from {low} to {high}",
                written.get_ref()
            );
            checker.complain(written.span(), message);
            DEFAULT_FETCHES
        }
    }
}

fn user_agent(text: &str) -> Result<HeaderValue, String> {
    let visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if !visible || text.trim().is_empty() {
        return Err(format!(
            r#"{text:?} cannot be a User-Agent; write visible ASCII, like "{USER_AGENT}""#
        ));
    }
    HeaderValue::from_str(text.trim()).map_err(|error| error.to_string())
}
