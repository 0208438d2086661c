//! Sends one request of a fetch and interprets its response.

use http::HeaderValue;
use pingora_http::ResponseHeader;

use super::{
    Fetcher, TracedHop,
    body::{self, Body},
    redirect::Hop,
    session::{Session, check_framing},
};
use crate::{
    copy::{Failure, Freshness, OriginResponse, retry_after},
    upstream::{self, Fault, Repeat, Wanted},
};

pub(super) enum HopEnd {
    Response(OriginResponse),
    /// The document still has the entity tag that the request contained.
    NotModified(Freshness),
    Redirect {
        to: Hop,
        status: u16,
    },
}

// === impl Hop ===

impl Hop {
    /// Requests this URL. Writes the address and the status to `hop` as soon as they are known, even if the request
    /// fails later.
    pub(super) async fn ask(
        &self,
        fetcher: &Fetcher,
        etag: Option<&str>,
        hop: &mut TracedHop,
    ) -> Result<HopEnd, Failure> {
        upstream::check_name(self.origin())?;
        let addresses = fetcher.egress.addresses(&self.origin).await;
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
                Repeat::Always if ended.is_err() && tries_left > 0 => {}
                Repeat::OverHttp1 if ended.is_err() && tries_left > 0 => wanted.http2 = false,
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
        if is_redirect(status) {
            let location = head.headers.get(http::header::LOCATION);
            let to = self.redirected(location.map(HeaderValue::as_bytes))?;
            return Ok(HopEnd::Redirect { to, status });
        }
        let now = std::time::SystemTime::now();
        let freshness = Freshness::from_headers(&head.headers, now);
        // A 304 counts only if the request had an ETag and the response does not name another (RFC 9111 §4.3.4).
        let names_other = |etag: &str| etag_of(&head).is_some_and(|other| opaque(&other) != opaque(etag));
        if status == 304 && etag.is_some_and(|etag| !names_other(etag)) {
            return Ok(HopEnd::NotModified(freshness));
        }
        check_framing(&head)?;
        let body = match body::read(session, &head, self.document.max_bytes).await {
            // The status of a server error is enough if its page is incomplete.
            Err(_) if status >= 500 => Body::default(),
            body => body?,
        };
        Ok(HopEnd::Response(OriginResponse {
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

async fn final_head(session: &mut Session) -> Result<ResponseHeader, Fault> {
    for _ in 0..=MAX_INFORMATIONAL {
        let head = session.head().await?;
        // The request did not ask for other protocols. After a 101, no final response follows (RFC 9110 §15.2.2).
        if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
            break;
        }
        if !head.status.is_informational() {
            return Ok(head);
        }
    }
    Err(Fault::HttpProtocol)
}

/// Returns whether robotgate follows a response with this status, if it names a location.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Returns the part of an entity tag that a weak comparison compares (RFC 9110 §8.8.3.2).
pub fn opaque(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

/// Returns the entity tag of the response. `None` if it is invalid (RFC 9110 §8.8.3), not ASCII or too long, or if
/// there are several.
fn etag_of(head: &ResponseHeader) -> Option<Box<str>> {
    let mut tags = head.headers.get_all(http::header::ETAG).iter();
    let tag = tags.next().filter(|_| tags.next().is_none())?.to_str().ok()?;
    let opaque = opaque(tag).strip_prefix('"')?.strip_suffix('"')?;
    let is_tag = opaque.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    (tag.len() <= MAX_ETAG && is_tag).then(|| tag.into())
}

/// Maximum length of an entity tag, in bytes.
const MAX_ETAG: usize = 128;
const MAX_INFORMATIONAL: usize = 16;
const MAX_TRIES: usize = 3;
