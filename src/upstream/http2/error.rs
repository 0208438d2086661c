//! What can go wrong with a stream, and what that says of trying again.

use h2::Reason;

use crate::upstream::Fault;

/// Why a request got no response on its stream, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct StreamError {
    fault: Fault,
    again: Again,
}

/// How the request may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Nobody knows what the origin did.
    Unknown,
    /// The origin has done nothing.
    Unprocessed,
    /// It has to be asked over HTTP/1.1.
    Http1,
}

// === impl StreamError ===

impl StreamError {
    /// Whether the origin has certainly not begun to process the request, so that it may be tried on another connection
    /// whatever its method is (RFC 9113 §8.7).
    pub fn is_unprocessed(&self) -> bool {
        self.again == Again::Unprocessed
    }

    /// Whether the request has to be made over HTTP/1.1: the origin says so (HTTP_1_1_REQUIRED, RFC 9113 §7), or HTTP/2
    /// cannot carry the request's target unchanged. The origin has not processed it then.
    pub fn needs_http1(&self) -> bool {
        self.again == Again::Http1
    }

    /// The connection takes no more streams.
    pub(super) fn closed() -> Self {
        Self {
            fault: Fault::ConnectionTerminated,
            again: Again::Unprocessed,
        }
    }

    /// The target cannot be sent as it is.
    pub(super) fn target() -> Self {
        Self {
            fault: Fault::Internal("it cannot put the request's target into an HTTP/2 request unchanged".to_owned()),
            again: Again::Http1,
        }
    }

    /// A mistake of ours.
    pub(super) fn internal(what: &str) -> Self {
        Fault::Internal(what.to_owned()).into()
    }

    /// Of a stream that could not be opened: it never was sent.
    pub(super) fn of_send(error: &h2::Error) -> Self {
        if error.is_io() || error.is_go_away() || error.is_reset() {
            return Self::closed();
        }
        Self::internal(&format!("it made an HTTP/2 request that cannot be sent: {error}"))
    }

    /// Of a stream before the response's head had come. `silent` where the connection was given up because the peer
    /// answered no PING.
    pub(super) fn of_head(error: &h2::Error, silent: bool) -> Self {
        let again = match error.reason() {
            Some(Reason::HTTP_1_1_REQUIRED) if error.is_remote() => Again::Http1,
            Some(Reason::REFUSED_STREAM) if error.is_remote() => Again::Unprocessed,
            // h2 ends only those streams with the peer's GOAWAY that are above the last one that it names.
            _ if error.is_remote() && error.is_go_away() => Again::Unprocessed,
            _ => Again::Unknown,
        };
        let fault = match () {
            () if silent => Fault::ReadTimeout,
            () if error.is_library() => Fault::HttpProtocol,
            () => Fault::ConnectionTerminated,
        };
        Self { fault, again }
    }

    /// Of a stream whose response's head has come.
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
            again: Again::Unknown,
        }
    }
}

impl From<StreamError> for Fault {
    fn from(error: StreamError) -> Self {
        error.fault
    }
}
