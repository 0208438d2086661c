//! The ways in which a robots.txt cannot be had. All of them mean the same to a bot, that
//! everything is disallowed (RFC 9309 §2.3.1.4); they differ in when to try again and in what the
//! log says.

use std::time::Duration;

use super::Retry;

/// One failed fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub error: FetchError,
    /// What the origin asked for with `Retry-After` (RFC 9110 §10.2.3), counted from the answer.
    pub retry_after: Option<Duration>,
}

/// Why a fetch failed. The texts stand in the audit log and in answers to people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("the server answered {0}")]
    Status(u16),
    #[error("the server redirected to a URL that cannot be fetched: {0}")]
    Redirect(String),
    /// Nothing came of the connection, or of what was said over it.
    #[error("{text}")]
    Network { kind: NetworkError, text: String },
    #[error("the answer was not complete within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("the answer's content coding cannot be decoded: {0}")]
    Coding(String),
    #[error("the server was slow, and robotgate ended the fetch because others waited (robots.max-fetches)")]
    GaveWay,
    /// The origin itself is somewhere that bots may not go; not one that it redirects to.
    #[error("{0}")]
    Prohibited(String),
    /// One of an earlier run of the program, of which the text is left.
    #[error("{0}")]
    Earlier(String),
    #[error("it is still being fetched")]
    Pending,
    /// The fetch did not begin: others took all places for as long as its requester waited.
    #[error("the fetch could not start in time, because too many others ran (robots.max-fetches)")]
    Queued,
    /// The fetch began and was dropped.
    #[error("robotgate stopped or failed before the fetch had ended")]
    CutOff,
}

/// At which step the way to an origin failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkError {
    Dns,
    Connect,
    Tls,
    Timeout,
    /// The answer broke off or is not valid HTTP.
    Broken,
    /// Bots may not go there.
    Prohibited,
    /// robotgate itself failed.
    Internal,
}

// === impl Failure ===

impl<E: Into<FetchError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            retry_after: None,
        }
    }
}

impl Failure {
    /// As this failure of the first request of a fetch counts: whoever may not go to the origin need not
    /// ask whether its robots.txt can be had.
    pub(crate) fn of_origin(self) -> Self {
        match self.error {
            FetchError::Network {
                kind: NetworkError::Prohibited,
                text,
            } => FetchError::Prohibited(text).into(),
            _ => self,
        }
    }

    /// Whether the origin is somewhere that bots may not go.
    pub fn is_prohibited(&self) -> bool {
        matches!(self.error, FetchError::Prohibited(_))
    }

    /// How long to wait after the `attempt`-th failure in a row (from 1) before trying again, for
    /// an origin that failed for less than the time of grace: `Retry-After` within bounds; else
    /// a second where robotgate itself failed; `retry.first` where bots may not go; `retry.busy` after 429 and 503, whose senders are
    /// busy; else `retry.first`, doubled each time.
    pub fn retry_delay(&self, attempt: u32, retry: &Retry) -> Duration {
        if let Some(requested) = self.retry_after {
            return requested.max(MIN_RETRY_AFTER).min(retry.longest);
        }
        match self.error {
            // The origin is not at fault: robotgate has too many files open, say.
            FetchError::Network {
                kind: NetworkError::Internal,
                ..
            } => LOCAL_RETRY,
            // A look at the name servers' answer; nobody else is asked.
            FetchError::Prohibited(_) => retry.first.min(retry.longest),
            FetchError::Status(429 | 503) => retry.busy.min(retry.longest),
            _ => (retry.first)
                .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)))
                .min(retry.longest),
        }
    }
}

const MIN_RETRY_AFTER: Duration = Duration::from_secs(10);
const LOCAL_RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_failed_and_how_often_says_how_long_to_wait() {
        let of = |error: FetchError| Failure::from(error);
        let network = |kind| {
            let text = String::new();
            of(FetchError::Network { kind, text })
        };
        let local = network(NetworkError::Internal);
        let requested = Failure {
            retry_after: Some(Duration::from_secs(20)),
            ..of(FetchError::Status(503))
        };
        for (failure, attempt, seconds) in [
            (&local, 1, 1),
            (&local, 9, 1),
            (&of(FetchError::Status(503)), 1, 300),
            (&of(FetchError::Status(500)), 1, 60),
            (&of(FetchError::Status(500)), 3, 240),
            (&of(FetchError::Status(500)), 99, 3600),
            (&network(NetworkError::Connect), 1, 60),
            (&of(FetchError::Prohibited(String::new())), 1, 60),
            (&of(FetchError::Prohibited(String::new())), 9, 60),
            (&requested, 1, 20),
        ] {
            assert_eq!(
                failure.retry_delay(attempt, &Retry::default()).as_secs(),
                seconds,
                "{failure:?}, {attempt}"
            );
        }
    }
}
