//! Errors of a stream, and whether the request can be retried.

use h2::Reason;

use crate::upstream::Fault;

/// Why a request got no response, or only a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct StreamError {
    fault: Fault,
    retry: Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// The origin might have processed the request.
    Unknown,
    Unprocessed,
    Http1,
}

// === impl StreamError ===

impl StreamError {
    /// Returns whether the origin has certainly not begun to process the request, so that the request can be retried on
    /// another connection regardless of its method (RFC 9113 §8.7). False if [`needs_http1`](Self::needs_http1).
    pub fn is_unprocessed(&self) -> bool {
        self.retry == Retry::Unprocessed
    }

    /// Returns whether the request needs HTTP/1.1, because the origin says so (HTTP_1_1_REQUIRED, RFC 9113 §7) or
    /// HTTP/2 cannot transmit the request's target unchanged. The origin has not processed the request.
    pub fn needs_http1(&self) -> bool {
        self.retry == Retry::Http1
    }

    pub(super) fn closed() -> Self {
        Self {
            fault: Fault::ConnectionTerminated,
            retry: Retry::Unprocessed,
        }
    }

    pub(super) fn target() -> Self {
        Self {
            fault: Fault::Internal("it cannot put the request's target into an HTTP/2 request unchanged".to_owned()),
            retry: Retry::Http1,
        }
    }

    pub(super) fn internal(what: &str) -> Self {
        Fault::Internal(what.to_owned()).into()
    }

    /// Converts an error that occurred before the request was sent.
    pub(super) fn of_send(error: &h2::Error) -> Self {
        if error.is_io() || error.is_go_away() || error.is_reset() {
            return Self::closed();
        }
        Self::internal(&format!("it made an HTTP/2 request that cannot be sent: {error}"))
    }

    /// Converts an error that occurred before the head of the response. `silent` says that the origin did not answer a
    /// PING.
    pub(super) fn of_head(error: &h2::Error, silent: bool) -> Self {
        let retry = match error.reason() {
            Some(Reason::HTTP_1_1_REQUIRED) if error.is_remote() => Retry::Http1,
            Some(Reason::REFUSED_STREAM) if error.is_remote() => Retry::Unprocessed,
            // After a GOAWAY, h2 fails only the streams that the origin does not process.
            _ if error.is_remote() && error.is_go_away() => Retry::Unprocessed,
            _ => Retry::Unknown,
        };
        let fault = match () {
            () if silent => Fault::ReadTimeout,
            () if error.is_library() => Fault::HttpProtocol,
            () => Fault::ConnectionTerminated,
        };
        Self { fault, retry }
    }

    /// Returns the error for a stream that failed after the head of the response.
    pub(super) fn of_content(silent: bool) -> Self {
        match silent {
            true => Fault::ReadTimeout.into(),
            false => Fault::ResponseIncomplete.into(),
        }
    }
}

impl From<Fault> for StreamError {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            retry: Retry::Unknown,
        }
    }
}

impl From<StreamError> for Fault {
    fn from(error: StreamError) -> Self {
        error.fault
    }
}
