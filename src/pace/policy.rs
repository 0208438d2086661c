//! The limits in the configuration, and the limits of a single request that follow from them.

use std::time::Duration;

use serde::Deserialize;

use super::Cause;

/// The `[pace]` section of the configuration. Each limit applies to every origin separately, except `max_waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Minimum time between two requests.
    pub delay: Duration,
    /// Maximum number of requests at the same time; `None` for no limit.
    pub concurrency: Option<u32>,
    pub crawl_delay: CrawlDelay,
    /// The longest `Crawl-delay` that robotgate obeys.
    pub crawl_delay_max: Duration,
    pub beyond_max: BeyondMax,
    /// Maximum time for which a request waits for its turn. robotgate refuses a request as soon as it knows that the
    /// turn will come later than this.
    pub max_wait: Duration,
    /// Maximum number of waiting requests, over all origins.
    pub max_waiting: usize,
}

/// Whether robotgate obeys a site's `Crawl-delay`, which was never standardised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrawlDelay {
    #[default]
    Ignore,
    Enforce,
}

/// What happens if a site's `Crawl-delay` is longer than the configured maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeyondMax {
    /// robotgate obeys the maximum in place of the `Crawl-delay`.
    #[default]
    Clip,
    /// robotgate refuses the bot's requests to the site.
    Refuse,
}

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceLimits {
    /// Minimum time since the previous request to the origin.
    pub gap: Duration,
    /// Which delay `gap` comes from.
    pub gap_cause: Cause,
    /// The bot's `delay`, or zero.
    pub bot_delay: Duration,
    /// The site's `Crawl-delay`, or zero. Not shortened to the maximum, because a reload can change the maximum.
    pub crawl_delay: Duration,
    /// Maximum number of running requests, including this one; `None` for no limit.
    pub concurrency: Option<u32>,
    pub max_wait: Duration,
}

/// A site asks for a longer `Crawl-delay` than the configuration accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the site's Crawl-delay, {} s, is longer than pace.crawl-delay-max, {} s",
    .asked.as_secs_f64(),
    .max.as_secs_f64()
)]
pub struct CrawlDelayTooLong {
    pub asked: Duration,
    pub max: Duration,
}

// === impl Policy ===

impl Policy {
    /// Returns the limits of a request. The gap is the longest of `bot_delay`, [`delay`](Self::delay) and
    /// `crawl_delay`, of which at most [`crawl_delay_max`](Self::crawl_delay_max) counts.
    ///
    /// # Errors
    /// Fails if the `Crawl-delay` is above the maximum and `beyond-max` is `refuse`.
    pub fn limits(
        &self,
        bot_delay: Option<Duration>,
        crawl_delay: Option<Duration>,
    ) -> Result<PaceLimits, CrawlDelayTooLong> {
        let (max, asked) = (self.crawl_delay_max, crawl_delay.unwrap_or_default());
        match asked > max && self.beyond_max == BeyondMax::Refuse {
            true => Err(CrawlDelayTooLong { asked, max }),
            false => Ok(self.clipped(bot_delay.unwrap_or_default(), asked)),
        }
    }

    /// Like [`limits`](Self::limits), but shortens a `Crawl-delay` above the maximum even if `beyond-max` is `refuse`.
    fn clipped(&self, bot_delay: Duration, crawl_delay: Duration) -> PaceLimits {
        let (gap, gap_cause) = match self.delay.max(bot_delay).max(crawl_delay.min(self.crawl_delay_max)) {
            gap if gap == self.delay => (gap, Cause::Delay),
            gap if gap == bot_delay => (gap, Cause::BotDelay),
            gap => (gap, Cause::CrawlDelay),
        };
        PaceLimits {
            gap,
            gap_cause,
            bot_delay,
            crawl_delay,
            concurrency: self.concurrency,
            max_wait: self.max_wait,
        }
    }
}

// === impl PaceLimits ===

impl PaceLimits {
    /// Returns the limits of the same request after a reload changed the policy.
    #[must_use]
    pub fn under(&self, policy: &Policy) -> Self {
        let crawl_delay = match policy.crawl_delay {
            CrawlDelay::Enforce => self.crawl_delay,
            CrawlDelay::Ignore => Duration::ZERO,
        };
        policy.clipped(self.bot_delay, crawl_delay)
    }
}

#[cfg(test)]
impl Default for PaceLimits {
    fn default() -> Self {
        Policy::default().clipped(Duration::ZERO, Duration::ZERO)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            concurrency: None,
            crawl_delay: CrawlDelay::default(),
            crawl_delay_max: Duration::from_secs(300),
            beyond_max: BeyondMax::default(),
            max_wait: Duration::from_secs(10),
            max_waiting: 10_000,
        }
    }
}

/// The longest delay that can be configured, and so the longest gap after a request.
pub const MAX_GAP: Duration = Duration::from_secs(60 * 60);
/// The longest `max_wait` that can be configured.
pub const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
