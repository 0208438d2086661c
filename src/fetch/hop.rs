//! One request of a fetch, and where its answer leads.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use http::HeaderValue;
use pingora::protocols::{ALPN, Stream};
use pingora_http::ResponseHeader;

use super::{
    Asked, Fetcher,
    body::{self, Body},
    redirect::Hop,
    session::Session,
};
use crate::{
    copy::{Failure, Freshness, Received, retry_after},
    upstream::{self, Fault, http2::StreamError},
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
    /// in `asked` as soon as they are known, whatever comes after.
    pub(super) async fn ask(
        &self,
        fetcher: &Fetcher,
        etag: Option<&str>,
        asked: &mut Asked,
    ) -> Result<HopEnd, Failure> {
        let offered = if fetcher.http2 { ALPN::H2H1 } else { ALPN::H1 };
        let begun = match self.begin(fetcher, offered.clone(), etag, asked).await {
            Err(error) if error.is_unprocessed() => self.begin(fetcher, offered, etag, asked).await,
            Err(error) if error.needs_http1() => self.begin(fetcher, ALPN::H1, etag, asked).await,
            begun => begun,
        };
        let (mut session, head) = begun.map_err(Fault::from)?;

        let status = head.status.as_u16();
        asked.status = Some(status);
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            let location = head.headers.get(http::header::LOCATION);
            return Ok(HopEnd::Redirect {
                to: self.redirected(location.map(HeaderValue::as_bytes))?,
                status,
            });
        }
        let now = std::time::SystemTime::now();
        let freshness = Freshness::from_headers(&head.headers, now);
        // Of a URL that was asked without a condition it is no answer.
        if status == 304 && etag.is_some() {
            return Ok(HopEnd::NotModified(freshness));
        }
        check_framing(&head)?;
        let body = match body::read(&mut session, &head).await {
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

    /// Connects to the first of the origin's addresses that answers, and asks there. Which was tried last is noted in
    /// `asked`. The answer's head is the final one: a server may send some informational ones first, but not forever.
    async fn begin(
        &self,
        fetcher: &Fetcher,
        offered: ALPN,
        etag: Option<&str>,
        asked: &mut Asked,
    ) -> Result<(Session, ResponseHeader), StreamError> {
        upstream::check_name(self.origin())?;
        let addresses = fetcher
            .egress
            .addresses(&self.origin.host, self.origin.port)
            .await
            .map_err(Fault::from)?;
        let (idle, total) = (fetcher.options.idle_timeout, fetcher.options.total_timeout);
        // Where the whole may take no longer than a silence, it is the whole that ends it.
        let silence = if idle < total {
            idle
        } else {
            total + Duration::from_secs(1)
        };
        let stream = self.connect(fetcher, offered, &addresses, &mut asked.upstream).await?;
        let request = self.request(fetcher.options.user_agent.clone(), etag);
        let request = request.map_err(|error| Fault::from_pingora(&error))?;
        let mut session = Session::begin(stream, request, &self.target(), silence).await?;
        for _ in 0..=MAX_INFORMATIONAL {
            let head = session.head().await?;
            // Nobody asked for another protocol (RFC 9110 §15.2.2), so no other answer follows.
            if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
                break;
            }
            if !head.status.is_informational() {
                return Ok((session, head));
            }
        }
        Err(Fault::HttpProtocol.into())
    }

    async fn connect(
        &self,
        fetcher: &Fetcher,
        offered: ALPN,
        addresses: &[SocketAddr],
        upstream: &mut Option<SocketAddr>,
    ) -> Result<Stream, Fault> {
        let (total, started) = (fetcher.connect_timeout, Instant::now());
        let mut last = Fault::Unroutable;
        for (tried, address) in addresses.iter().enumerate() {
            *upstream = Some(*address);
            let within = upstream::share_of(total, started.elapsed(), addresses.len() - tried);
            let connector = &fetcher.connector;
            match upstream::connect(connector, &self.origin, *address, offered.clone(), within).await {
                Ok(stream) => {
                    fetcher.egress.check_again(*address)?;
                    return Ok(stream);
                }
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }
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
fn check_framing(head: &ResponseHeader) -> Result<(), Fault> {
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
