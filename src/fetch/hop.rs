//! One request of a fetch, and where its answer leads.

use http::HeaderValue;
use pingora_http::ResponseHeader;

use super::{
    Fetcher, TracedHop,
    body::{self, Body},
    redirect::Hop,
    session::Session,
};
use crate::{
    copy::{Failure, Freshness, Received, retry_after},
    upstream::{self, Again, Fault, Wanted},
};

/// What one request came to.
pub(super) enum HopEnd {
    Received(Received),
    /// What is known under the tag that was named has not changed.
    NotModified(Freshness),
    Redirect {
        to: Hop,
        status: u16,
    },
}

// === impl Hop ===

impl Hop {
    /// Asks this URL; with `etag`, whether what it gave under that tag has changed. The address and the status are noted
    /// in `hop` as soon as they are known, whatever comes after.
    pub(super) async fn ask(
        &self,
        fetcher: &Fetcher,
        etag: Option<&str>,
        hop: &mut TracedHop,
    ) -> Result<HopEnd, Failure> {
        upstream::check_name(self.origin())?;
        let addresses = fetcher.egress.addresses(&self.origin.host, self.origin.port).await;
        let addresses = addresses.map_err(Fault::from)?;
        let mut wanted = Wanted {
            http2: fetcher.http2,
            content: false,
            kept: false,
            fresh: false,
        };
        let mut tries_left = MAX_TRIES;
        loop {
            tries_left -= 1;
            let connecting = Session::connect(fetcher, &self.origin, &addresses, wanted, &mut hop.upstream);
            let mut session = connecting.await?;
            let ended = self.ask_on(&mut session, fetcher, etag, hop).await;
            match session.again() {
                Again::Anyhow if ended.is_err() && tries_left > 0 => {}
                Again::Http1 if ended.is_err() && tries_left > 0 => wanted.http2 = false,
                _ => {
                    let end = ended?;
                    session.keep(fetcher, &self.origin);
                    return Ok(end);
                }
            }
            wanted.fresh = true;
            hop.status = None;
        }
    }

    /// Asks on this connection.
    async fn ask_on(
        &self,
        session: &mut Session,
        fetcher: &Fetcher,
        etag: Option<&str>,
        hop: &mut TracedHop,
    ) -> Result<HopEnd, Failure> {
        let request = self.request(fetcher.options.user_agent.clone(), etag);
        let request = request.map_err(|error| Fault::from_pingora(&error))?;
        session.send(request, &self.target())?;
        let head = final_head(session).await?;

        let status = head.status.as_u16();
        hop.status = Some(status);
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            let location = head.headers.get(http::header::LOCATION);
            let to = self.redirected(location.map(HeaderValue::as_bytes))?;
            return Ok(HopEnd::Redirect { to, status });
        }
        let now = std::time::SystemTime::now();
        let freshness = Freshness::from_headers(&head.headers, now);
        // Of a URL that was asked without a condition it is no answer.
        if status == 304 && etag.is_some() {
            return Ok(HopEnd::NotModified(freshness));
        }
        check_framing(&head)?;
        let body = match body::read(session, &head).await {
            // What a server error means does not hang on its page coming whole.
            Err(_) if status >= 500 => Body::default(),
            body => body?,
        };
        Ok(HopEnd::Received(Received {
            redirected: false,
            status,
            freshness,
            etag: etag_of(&head),
            retry_after: retry_after(&head.headers, now),
            body: body.counts,
            cut_off: body.cut_off,
        }))
    }
}

/// The head of the final answer. A server may send some informational ones first, but not forever.
async fn final_head(session: &mut Session) -> Result<ResponseHeader, Fault> {
    for _ in 0..=MAX_INFORMATIONAL {
        let head = session.head().await?;
        // Nobody asked for another protocol (RFC 9110 §15.2.2), so no other answer follows.
        if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
            break;
        }
        if !head.status.is_informational() {
            return Ok(head);
        }
    }
    Err(Fault::HttpProtocol)
}

/// The entity tag of the answer, where it is one (RFC 9110 §8.8.3) and no longer than it need be.
fn etag_of(head: &ResponseHeader) -> Option<Box<str>> {
    let mut tags = head.headers.get_all(http::header::ETAG).iter();
    let tag = tags.next().filter(|_| tags.next().is_none())?.to_str().ok()?;
    let opaque = tag.strip_prefix("W/").unwrap_or(tag);
    let opaque = opaque.strip_prefix('"')?.strip_suffix('"')?;
    let is_tag = opaque.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    (tag.len() <= MAX_ETAG && is_tag).then(|| tag.into())
}

/// Content in a transfer coding that nobody undoes would be read as a file without rules.
pub(super) fn check_framing(head: &ResponseHeader) -> Result<(), Fault> {
    let mut codings = head.headers.get_all(http::header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Fault::HttpProtocol),
    }
}

/// Bytes of an entity tag that is worth keeping.
const MAX_ETAG: usize = 128;
const MAX_INFORMATIONAL: usize = 16;
/// Connections that one request is put on.
const MAX_TRIES: usize = 3;
