//! Limits how fast bots send requests to one origin: the gap between requests, how many run at once, and the pauses
//! that the site asks for.
//!
//! [`Limiter`] is a state machine. It receives events and the time, and [`Limiter::next`] says whether the first
//! waiting request may be sent now, or when to call it again. It does no I/O and reads no clock. `crate::pacer` keeps a
//! limiter for each origin and wakes the requests.

mod backoff;
mod limiter;
mod policy;
mod queue;

pub(crate) use self::backoff::{FIRST_PAUSE, JITTER, LONGEST_PAUSE, QUIET};
pub use self::{
    limiter::{Limiter, Step},
    policy::{BeyondMax, CrawlDelay, CrawlDelayTooLong, Limits, MAX_GAP, MAX_WAIT, Policy},
};
use crate::text::words;

words! {
    /// Why a request has to wait.
    pub enum Cause {
        /// `pace.delay`.
        Delay = "delay",
        /// The `delay` of the bot.
        BotDelay = "bot-delay",
        /// The site's `Crawl-delay`.
        CrawlDelay = "crawl-delay",
        /// The site responded to a request with 429 or 503.
        Pause = "pause",
        /// `pace.concurrency`.
        Concurrency = "concurrency",
        /// Too many requests wait for the site, or for all sites together.
        Waiting = "waiting",
        /// The fleet's server cannot be used, and `fleet.on-loss` is `refuse`.
        Fleet = "fleet",
    }
}

/// When a request may be sent, and why not earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later {
    pub at: std::time::Instant,
    pub cause: Cause,
}

#[cfg(test)]
pub(crate) use self::backoff::INCIDENTS;
#[cfg(test)]
mod tests;
