//! The ways in which fetching a robots.txt fails, and when to try again.

use std::time::Duration;

use super::Retry;
use crate::origin::Origin;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub error: FetchError,
    /// The `Retry-After` of the last response (RFC 9110 §10.2.3), counted from its receipt.
    pub retry_after: Option<Duration>,
}

/// Why a fetch failed. The messages appear in the audit log and in responses to people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("{}", answered(*.0))]
    Status(u16),
    #[error("the server's redirect leads to no URL that robotgate can fetch: {0}")]
    Redirect(String),
    #[error("{text}")]
    Network { kind: NetworkError, text: String },
    #[error("no complete answer came within {} s (robots.fetch-timeout)", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("the answer's content coding cannot be decoded: {0}")]
    Coding(String),
    #[error("the fetch was slow, and robotgate ended it because other fetches were waiting (robots.max-fetches)")]
    GaveWay,
    /// Bots may not reach the origin itself. For a redirect to a forbidden host, the error is
    /// [`NetworkError::Prohibited`].
    #[error("{0}")]
    Prohibited(String),
    /// An error in a restored state, of another kind than `Status` and `Prohibited`. Only its text was saved.
    #[error("{0}")]
    Earlier(String),
    // `replay::request` looks for the texts of `Status`, `Pending` and `Queued` in old logs, so keep them.
    #[error("it is still being fetched")]
    Pending,
    #[error("the fetch could not start in time, because too many other fetches were running (robots.max-fetches)")]
    Queued,
    #[error("robotgate dropped the fetch, usually because it was stopping; otherwise, the operational log may say why")]
    CutOff,
}

/// What failed when robotgate connected to a server or exchanged data with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkError {
    Dns,
    Connect,
    Tls,
    Timeout,
    /// The response was cut off or is not valid HTTP, or the FTP session failed.
    Broken,
    /// The egress guard refused the destination.
    Prohibited,
    /// robotgate itself failed, not the origin.
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
    /// Converts a failure of a request to the origin itself: [`NetworkError::Prohibited`] becomes
    /// [`FetchError::Prohibited`].
    pub(crate) fn of_origin(self) -> Self {
        match self.error {
            FetchError::Network {
                kind: NetworkError::Prohibited,
                text,
            } => FetchError::Prohibited(text).into(),
            _ => self,
        }
    }

    /// If this is a network error, adds to its message that a redirect led to `origin`.
    pub(crate) fn after_redirect(mut self, origin: &Origin) -> Self {
        if let FetchError::Network { text, .. } = &mut self.error {
            *text = format!("after a redirect to {origin}: {text}");
        }
        self
    }

    /// Returns whether the egress guard refused the origin.
    pub fn is_prohibited(&self) -> bool {
        matches!(self.error, FetchError::Prohibited(_))
    }

    /// Returns how long to wait before the next fetch; a `Retry-After` decides, within bounds. `attempt` counts the
    /// failures in a row, from 1.
    pub fn retry_delay(&self, attempt: u32, retry: &Retry) -> Duration {
        if let Some(requested) = self.retry_after {
            return requested.max(MIN_RETRY_AFTER).min(retry.longest);
        }
        match self.error {
            // robotgate itself failed, for example because it has too many open files.
            FetchError::Network {
                kind: NetworkError::Internal,
                ..
            } => LOCAL_RETRY,
            // A retry only resolves the host name again, which does not burden the site. So the delay need not grow.
            FetchError::Prohibited(_) => retry.first.min(retry.longest),
            FetchError::Status(429 | 503) => retry.busy.min(retry.longest),
            _ => (retry.first)
                .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)))
                .min(retry.longest),
        }
    }
}

fn answered(status: u16) -> String {
    match status {
        // Over HTTP, a 403 is no failure, so this 403 is from an FTP server.
        403 => "the FTP server refused the anonymous login or the file".to_owned(),
        _ => format!("the server answered {status}"),
    }
}

const MIN_RETRY_AFTER: Duration = Duration::from_secs(10);
const LOCAL_RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_depends_on_the_error_and_the_number_of_tries() {
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
