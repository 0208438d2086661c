//! Limits how fast bots send requests to one origin: by a gap between requests, by the number of requests at the same
//! time, and by the pauses that the site asks for.
//!
//! [`Limiter`] is a state machine that does no I/O and reads no clock. `crate::pacer` keeps one for each origin and
//! wakes the requests.

mod backoff;
mod limiter;
mod policy;
mod queue;

pub(crate) use self::backoff::{FIRST_PAUSE, JITTER, LONGEST_PAUSE, QUIET};
pub use self::{
    limiter::{Limiter, Step},
    policy::{BeyondMax, CrawlDelay, CrawlDelayTooLong, MAX_GAP, MAX_WAIT, PaceLimits, Policy},
};
use crate::text::words;

words! {
    /// What makes a request wait for its turn, or makes robotgate refuse it as too early.
    pub enum Cause {
        /// `pace.delay`: the minimum time between two requests to a site.
        Delay = "delay",
        /// The bot's own `delay`: the minimum time between a request of this bot and the previous one to the site.
        BotDelay = "bot-delay",
        /// The site's `Crawl-delay`: the time that the site asks bots to wait between two requests.
        CrawlDelay = "crawl-delay",
        /// A pause, because the site responded to a request with 429 or 503.
        Pause = "pause",
        /// `pace.concurrency`: the maximum number of requests to the site is already running.
        Concurrency = "concurrency",
        /// Too many requests already wait for the site, or for all sites together.
        Waiting = "waiting",
        /// The fleet's server cannot be used, and `fleet.on-loss` is `refuse`.
        Fleet = "fleet",
    }
}

/// An estimate of the earliest time at which a request can be sent or tried again, and what delays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later {
    pub at: std::time::Instant,
    pub cause: Cause,
}

#[cfg(test)]
pub(crate) use self::backoff::INCIDENTS;
#[cfg(test)]
mod tests;
