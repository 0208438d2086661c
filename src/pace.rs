//! Limits how fast bots send requests to one origin: the gap between requests, how many run at once, and the pauses
//! that the site asks for.
//!
//! [`Limiter`] is a state machine. It takes events and the time, and [`Limiter::next`] says whether the first waiting
//! request may go now, or when to ask again. It does no I/O and reads no clock. `crate::pacer` keeps a limiter for each
//! origin and wakes the requests.

mod backoff;
mod limiter;
mod policy;
mod queue;

pub(crate) use self::backoff::{FIRST_PAUSE, JITTER, LONGEST_PAUSE, QUIET};
pub use self::{
    limiter::{Limiter, Step},
    policy::{BeyondMax, CrawlDelay, CrawlDelayTooLong, Limits, MAX_GAP, MAX_WAIT, Policy},
};

#[cfg(test)]
pub(crate) use self::backoff::INCIDENTS;
#[cfg(test)]
mod tests;
