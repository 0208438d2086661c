//! What the gate does with the client's side of an exchange beside forwarding: answers, reads on, and counts what came
//! over a limit.

use std::time::{Duration, Instant};

use pingora::{Error, ErrorType, Result, proxy::Session};

use super::Passage;
use crate::proxy::{arrival::Arrival, limits::Limit, respond::Answer};

/// Sends an answer of robotgate's own.
pub(super) async fn send(session: &mut Session, answer: Answer) -> Result<()> {
    let head_only = session.req_header().method == http::Method::HEAD;
    let sent = session.write_response_header(Box::new(answer.head), head_only).await;
    sent.map_err(Error::into_down)?;
    // Without content the end has still to be said, in HTTP/2.
    let body = if head_only { bytes::Bytes::new() } else { answer.body };
    let sent = session.write_response_body(Some(body), true).await;
    sent.map_err(Error::into_down)
}

/// Reads on for a while after an answer that came before the request's end: many clients send to
/// the end before they look, and a closed connection would take the answer from them.
pub(super) async fn linger(session: &mut Session) {
    if session.is_http2() || session.is_body_done() {
        return;
    }
    let rest = async {
        let mut left = MAX_LINGER;
        while let Ok(Some(chunk)) = session.read_request_body().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                return;
            }
        }
    };
    // Past it, the client has had its time.
    let _ = tokio::time::timeout(LINGER, rest).await;
}

/// Ends a WebSocket whose time is over with the next bytes that pass; where none do, it ends for that.
pub(super) fn check_life(session: &Session, passage: &mut Passage) -> Result<()> {
    let exchange = &mut passage.exchange;
    if session.was_upgraded() && exchange.elapsed() >= exchange.generation.config.proxy.tunnel_timeout {
        came_over(session, Limit::TunnelTimeout);
        exchange.note_old();
        return Err(Error::new_down(ErrorType::ConnectionClosed));
    }
    Ok(())
}

/// Counts that the request's client came over a limit.
pub(super) fn came_over(session: &Session, limit: Limit) {
    if let Some(arrival) = Arrival::of(session.digest()) {
        arrival.visit.came_over(limit, arrival.client);
    }
}

/// Counts a request that its client took back, which HTTP/2 makes cheap.
pub(super) fn count_reset(session: &Session) {
    if let Some(through) = Arrival::of(session.digest()).and_then(|arrival| arrival.through.as_deref()) {
        through.resets.count(Instant::now());
    }
}

/// Whether an origin was silent while its request's content had not come over HTTP/2.
pub(super) fn owes_content(session: &mut Session, error: &Error) -> bool {
    session.is_http2() && *error.etype() == ErrorType::ReadTimedout && !session.is_body_done()
}

/// Whether an error on the client's side says that it is not there any more.
pub(super) fn is_gone(error: &Error) -> bool {
    matches!(
        error.etype(),
        ErrorType::ReadError
            | ErrorType::WriteError
            | ErrorType::WriteTimedout
            | ErrorType::ConnectionClosed
            | ErrorType::H2Error
    )
}

/// How long, and for how many bytes, content is read that nobody wants.
const LINGER: Duration = Duration::from_secs(2);
const MAX_LINGER: usize = 64 * 1024 * 1024;
