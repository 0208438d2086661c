//! `[robots]` and `[robots.unreachable]`: how robotgate reads and fetches robots.txt files, and how long it uses a
//! copy.
//!
//! This module fetches nothing. The defaults of [`Policy`] are in [`crate::copy`].

use std::ops::RangeInclusive;
use std::time::Duration;

use http::HeaderValue;
use toml::Spanned;

use super::table::{Table, ValueOr as _};
use super::units::HumanDuration;
use crate::copy::{Policy, Retry, Then, Unreachable};
use crate::fetch::FetcherOptions;
use crate::robots::Profile;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const USER_AGENT: &str = concat!("robotgate/", env!("CARGO_PKG_VERSION"));

/// Allowed times for which a copy is valid. With less than a second, nearly every request would need a fetch.
const TTLS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 60 * 60);
const WAITS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10 * 60);
/// Allowed numbers of simultaneous fetches. Each fetch uses a connection and up to 600 kB of memory.
const FETCHES: RangeInclusive<usize> = 1..=10_000;
/// Allowed values of `deny-for`. With zero, `then` applies immediately.
const DENIALS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(365 * 24 * 60 * 60);
/// Allowed times between two attempts to fetch. Attempts within a second would burden a failing server.
const RETRIES: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;

/// The `[robots]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    /// The profile, how long copies are valid, and what failures mean. In a valid configuration, `min_ttl` ≤
    /// `default_ttl` ≤ `max_ttl`, and neither `retry.first` nor `retry.busy` is longer than `retry.longest`.
    pub policy: Policy,
    /// Whether each path is also checked as common servers decode it ([`crate::origin::Strict`]).
    pub strict_paths: bool,
    pub fetch: FetcherOptions,
    /// How long a request waits for a robots.txt before it is refused. Also limits the wait for a `tdmrep.json`.
    pub wait: Duration,
    /// Maximum number of concurrent fetches, 1 to 10,000.
    pub max_fetches: usize,
    /// Whether robotgate answers a bot's request for a robots.txt with its own copy instead of forwarding it.
    pub serve_copies: bool,
}

// === impl Robots ===

impl Robots {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let default = Policy::of(table.choice_or("profile", Profile::default()));
        let strict_paths = table.flag_or("strict-paths", true);
        let user_agent = table.parsed("user-agent", user_agent);
        table.has_default("user-agent", USER_AGENT);
        let [default_ttl, min_ttl, max_ttl] = ttls(table, &default);
        let no_robots_ttl = table.duration("no-robots-ttl", default.no_robots_ttl, TTLS);
        let soft_404 = table.flag_or("soft-404", default.soft_404);
        Self {
            strict_paths,
            wait: table.duration("wait", Duration::from_secs(5), WAITS),
            fetch: FetcherOptions {
                user_agent: user_agent.unwrap_or(HeaderValue::from_static(USER_AGENT)),
                total_timeout: table.duration("fetch-timeout", Duration::from_secs(30), WAITS),
                idle_timeout: table.duration("fetch-idle-timeout", Duration::from_secs(10), WAITS),
            },
            max_fetches: table.number_of([" fetches at once", ""], "max-fetches", 1024, FETCHES),
            serve_copies: table.flag_or("serve-copies", false),
            policy: Policy {
                profile: default.profile,
                default_ttl,
                no_robots_ttl,
                min_ttl,
                max_ttl,
                soft_404,
                unreachable: table.table("unreachable", |table| unreachable(table, &default.unreachable)),
            },
        }
    }
}

/// If `default-ttl` or `min-ttl` is not set, its default is adjusted so that `min-ttl` ≤ `default-ttl` ≤ `max-ttl`. So
/// `max-ttl = "1h"` alone is valid.
fn ttls(table: &Table<'_>, policy: &Policy) -> [Duration; 3] {
    let keys = ["default-ttl", "min-ttl", "max-ttl"];
    let [raw_default, raw_min, max] = keys.map(|key| table.time(key, TTLS));
    let [default_at, min_at] = [&raw_default, &raw_min].map(|raw| raw.as_ref().map(Spanned::span));
    let max = max.value_or(policy.max_ttl);
    let default = raw_default.value_or(policy.default_ttl.min(max));
    let min = raw_min.value_or(policy.min_ttl.min(default));
    let default = if default_at.is_none() {
        default.max(min)
    } else {
        default
    };
    if let Some(span) = default_at.clone().filter(|_| default > max) {
        table.checker.complain(span, too_long(default, "max-ttl", max));
    }
    if let Some(span) = min_at {
        if min > max {
            table.checker.complain(span, too_long(min, "max-ttl", max));
        } else if default_at.is_some() && min > default {
            table.checker.complain(span, too_long(min, "default-ttl", default));
        }
    }
    for (key, ttl) in keys.into_iter().zip([default, min, max]) {
        table.has_default(key, HumanDuration(ttl).to_string());
    }
    [default, min, max]
}

fn unreachable(table: &Table<'_>, default: &Unreachable) -> Unreachable {
    let deny_for = table.duration("deny-for", default.deny_for, DENIALS);
    let then = table.choice_or("then", default.then);
    let without_copy = table.choice("without-copy");
    if then == Then::LastCopy {
        table.has_choice("without-copy", &default.without_copy);
    }
    if let Some(without_copy) = without_copy.as_ref().filter(|_| then != Then::LastCopy) {
        table.checker.complain(
            without_copy.span(),
            r#"this key has no effect unless `then` is "last-copy"; write then = "last-copy", or remove this key"#,
        );
    }
    Unreachable {
        deny_for,
        then,
        without_copy: without_copy.value_or(default.without_copy),
        retry: retry(table, &default.retry),
    }
}

/// `retry-first` and `retry-busy` may not exceed `retry-longest`. Their defaults are lowered to it if necessary.
fn retry(table: &Table<'_>, default: &Retry) -> Retry {
    let keys = ["retry-first", "retry-busy", "retry-longest"];
    let [first, busy, longest] = keys.map(|key| table.time(key, RETRIES));
    let longest = longest.value_or(default.longest);
    let no_longer = |raw: Option<Spanned<Duration>>, default: Duration| {
        if let Some(wait) = raw.as_ref().filter(|wait| *wait.get_ref() > longest) {
            let message = too_long(*wait.get_ref(), "retry-longest", longest);
            table.checker.complain(wait.span(), message);
        }
        raw.value_or(default.min(longest))
    };
    let (first, busy) = (no_longer(first, default.first), no_longer(busy, default.busy));
    for (key, wait) in keys.into_iter().zip([first, busy, longest]) {
        table.has_default(key, HumanDuration(wait).to_string());
    }
    Retry { first, busy, longest }
}

fn too_long(time: Duration, key: &str, than: Duration) -> String {
    format!(
        "{} is longer than {key}, which is {}; write at most that, or raise {key}",
        HumanDuration(time),
        HumanDuration(than)
    )
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
