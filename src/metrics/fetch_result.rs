//! The result of a robots.txt fetch as a metric label.

use crate::{
    copy::{FetchError, Fetched, NetworkError},
    text::words,
};

words! {
    /// The result of a fetch.
    pub enum FetchResult {
        Successful = "2xx",
        /// The site says that the robots.txt copy which robotgate has is still current.
        NotModified = "304",
        /// There were too many redirects, or a loop of them.
        RedirectLoop = "3xx-loop",
        /// A redirect has no usable target.
        BadRedirect = "3xx-bad",
        ClientError = "4xx",
        TooManyRequests = "429",
        ServerError = "5xx",
        /// The status makes no sense as a response to this request.
        OtherStatus = "other",
        Dns = "dns",
        Connect = "connect",
        Tls = "tls",
        Timeout = "timeout",
        /// The response was incomplete or unreadable.
        Broken = "broken",
        /// Bots must not reach the address.
        Prohibited = "prohibited",
        /// The fetch was slow. robotgate ended it to make room for other fetches.
        GaveWay = "gave-way",
        /// robotgate itself failed.
        Internal = "internal",
    }
}

// === impl FetchResult ===

impl From<&Fetched> for FetchResult {
    fn from(fetched: &Fetched) -> Self {
        match fetched {
            Fetched::Received(received) => Self::of_status(received.status),
            Fetched::NotModified { .. } => Self::NotModified,
            Fetched::TooManyRedirects { .. } => Self::RedirectLoop,
            Fetched::Failed(failure) => Self::of_error(&failure.error),
        }
    }
}

impl FetchResult {
    fn of_status(status: u16) -> Self {
        match status {
            // A 206 answers only a request with a Range field, which this request did not have.
            206 => Self::OtherStatus,
            200..=299 => Self::Successful,
            429 => Self::TooManyRequests,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::OtherStatus,
        }
    }

    fn of_error(error: &FetchError) -> Self {
        match error {
            FetchError::Status(status) => Self::of_status(*status),
            FetchError::Redirect(_) => Self::BadRedirect,
            FetchError::Network { kind, .. } => Self::of_network(*kind),
            FetchError::Timeout(_) => Self::Timeout,
            FetchError::Coding(_) => Self::Broken,
            FetchError::GaveWay => Self::GaveWay,
            FetchError::Prohibited(_) => Self::Prohibited,
            // Of these, only `CutOff` can be the result of a fetch. The others only occur in what is known of an
            // origin.
            FetchError::CutOff | FetchError::Earlier(_) | FetchError::Pending | FetchError::Queued => Self::Internal,
        }
    }

    fn of_network(kind: NetworkError) -> Self {
        match kind {
            NetworkError::Dns => Self::Dns,
            NetworkError::Connect => Self::Connect,
            NetworkError::Tls => Self::Tls,
            NetworkError::Timeout => Self::Timeout,
            NetworkError::Broken => Self::Broken,
            NetworkError::Prohibited => Self::Prohibited,
            NetworkError::Internal => Self::Internal,
        }
    }
}
