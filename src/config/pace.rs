//! `[pace]`: how fast bots may send requests to one site.
//!
//! [`crate::pace`] defines the values and their defaults.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::table::Table;
use crate::pace::{MAX_GAP, MAX_WAIT, Policy};

/// Allowed time between two requests to a site. robotgate could not keep to a longer time, because it would forget the
/// last request before the time has passed.
pub(super) const DELAYS: RangeInclusive<Duration> = Duration::ZERO..=MAX_GAP;
const WAITS: RangeInclusive<Duration> = Duration::ZERO..=MAX_WAIT;

/// Returns `None`, which means no limits, if the section is missing.
pub(super) fn read(table: &Table<'_>) -> Option<Policy> {
    table.span()?;
    let default = Policy::default();
    let delay = table.duration("delay", default.delay, DELAYS);
    let concurrency = table.number_in([" requests at once", ""], "concurrency", 1..=10_000);
    Some(Policy {
        delay,
        concurrency: concurrency.or(default.concurrency),
        crawl_delay: table.choice_or("crawl-delay", default.crawl_delay),
        crawl_delay_max: table.duration("crawl-delay-max", default.crawl_delay_max, DELAYS),
        beyond_max: table.choice_or("beyond-max", default.beyond_max),
        max_wait: table.duration("max-wait", default.max_wait, WAITS),
        max_waiting: table.number("max-waiting", default.max_waiting, 1..=1_000_000),
    })
}
