//! The gate on the way of each request, as pingora calls it step by step: asks for a decision,
//! logs it, and then forwards or refuses. What the steps share is in the
//! [`Exchange`].

use std::{
    net::SocketAddr,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{StatusCode, Version, header};
use pingora::{
    Error, ErrorSource, ErrorType, Result,
    protocols::{ALPN, Digest},
    proxy::{FailToProxy, ProxyHttp, Session},
    upstreams::peer::HttpPeer,
};
use pingora_http::{RequestHeader, ResponseHeader};

use super::{
    arrival::Arrival,
    clients::Asking,
    exchange::{End, Exchange, Request},
    fields::{self, PROXY_STATUS, ROBOTS_DECISION},
    generation::{Generation, Live},
    judge::{Judgement, identify},
    limits::Limit,
    respond::{Answer, Problem},
    target::Target,
    websocket,
};
use crate::{
    decision::Asker,
    origin::{Origin, readings},
    upstream::{self, Fault, Timeouts},
};

/// The gate. One serves all requests of a [`Forwarder`](super::generation::Forwarder).
pub(super) struct Gate {
    live: Weak<Live>,
    current: Arc<ArcSwap<Generation>>,
}

/// What one request carries from step to step.
pub(super) struct Passage {
    exchange: Exchange,
    /// The origin's checked addresses, found once; those that did not answer are taken off.
    addresses: Vec<SocketAddr>,
    connecting: Option<Instant>,
    /// Informational responses of the origin so far.
    informational: usize,
    fault: Option<Fault>,
    /// Its place among the requests of its client.
    asking: Option<Asking>,
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(live: Weak<Live>, current: Arc<ArcSwap<Generation>>) -> Self {
        Self { live, current }
    }

    /// Decides and logs. `Ok` where the request may go on, else what to answer.
    async fn admit(&self, session: &Session, passage: &mut Passage) -> Result<(), Answer> {
        let exchange = &mut passage.exchange;
        let generation = exchange.generation.clone();
        let head = session.req_header();
        let Some(arrival) = Arrival::of(session.digest()) else {
            let fault = Fault::Internal("nobody knows where the request comes from".to_owned());
            return Err(exchange.problem(&Problem::Fault(&fault), &head.headers));
        };
        match arrival.visit.ask(&generation.config.proxy.limits) {
            Ok(asking) => passage.asking = Some(asking),
            Err(limit) => {
                arrival.visit.came_over(limit, arrival.client);
                return Err(exchange.problem(&Problem::Limit(limit), &head.headers));
            }
        }
        let (client, through) = (arrival.client, arrival.through.as_deref());
        if fields::has_passed(&head.headers, &generation.config.proxy.name) {
            tracing::warn!(%client, "a request came by here before and was refused");
            return Err(exchange.problem(&Problem::Loop, &head.headers));
        }
        let target = Target::of(head, through).map_err(|error| {
            tracing::info!(%client, %error, "a request was refused as malformed");
            exchange.problem(&Problem::Target(&error), &head.headers)
        })?;
        let (proof, identity) = identify(&generation.config, &head.headers, arrival);
        let asker = Asker::new(&identity, generation.config.identity.unidentified);
        let readings = readings(target.decided_path());
        let Some(live) = self.live.upgrade() else {
            let fault = Fault::Internal("it is shutting down".to_owned());
            return Err(exchange.problem(&Problem::Fault(&fault), &head.headers));
        };
        let judgement = Judgement::on_path(&live, &generation, asker, &target.origin, &readings).await;
        drop(readings);
        let request = Request {
            method: &head.method,
            headers: &head.headers,
            client: Some(client),
            identity: &identity,
            proof: &proof,
            inside: through.is_some(),
            asker,
            exception: None,
        };
        if let Err(error) = exchange.decide(&request, target, judgement).await {
            tracing::error!(%error, id = exchange.id(), "a request was not forwarded");
            return Err(exchange.problem(&Problem::Audit, &head.headers));
        }
        if exchange.forwards() {
            return Ok(());
        }
        match exchange.refusal(&head.headers) {
            Some(refusal) => Err(refusal),
            // A decision was just taken.
            None => Err(exchange.problem(&Problem::Request, &head.headers)),
        }
    }

    async fn send(session: &mut Session, answer: Answer) -> Result<()> {
        let head_only = session.req_header().method == http::Method::HEAD;
        let sent = session.write_response_header(Box::new(answer.head), head_only).await;
        sent.map_err(Error::into_down)?;
        // Without content the end has still to be said, in HTTP/2.
        let body = if head_only { bytes::Bytes::new() } else { answer.body };
        let sent = session.write_response_body(Some(body), true).await;
        sent.map_err(Error::into_down)
    }
}

#[async_trait]
impl ProxyHttp for Gate {
    type CTX = Passage;

    fn new_ctx(&self) -> Passage {
        Passage {
            exchange: Exchange::new(self.current.load_full()),
            addresses: Vec::new(),
            connecting: None,
            informational: 0,
            fault: None,
            asking: None,
        }
    }

    /// The default adds compression, which would change what the origin sent.
    fn init_downstream_modules(&self, _modules: &mut pingora::modules::http::HttpModules) {}

    async fn request_filter(&self, session: &mut Session, passage: &mut Passage) -> Result<bool> {
        let times = &passage.exchange.generation.config.proxy;
        let read_timeout = match session.is_upgrade_req() {
            true => times.tunnel_idle_timeout,
            false => times.body_timeout,
        };
        session.set_read_timeout(Some(read_timeout));
        session.set_write_timeout(Some(times.write_timeout));
        if self.live.upgrade().is_none_or(|live| live.is_stopping()) {
            session.set_keepalive(None);
        }
        match self.admit(session, passage).await {
            Ok(()) => Ok(false),
            Err(answer) => {
                // After a request that nobody understood, nobody knows where the next one begins.
                let understood = [StatusCode::FORBIDDEN, StatusCode::PROXY_AUTHENTICATION_REQUIRED];
                if !understood.contains(&answer.head.status) {
                    session.set_keepalive(None);
                }
                Self::send(session, answer).await?;
                linger(session).await;
                Ok(true)
            }
        }
    }

    async fn upstream_peer(&self, session: &mut Session, passage: &mut Passage) -> Result<Box<HttpPeer>> {
        let connecting = *passage.connecting.get_or_insert_with(Instant::now);
        let generation = passage.exchange.generation.clone();
        let Some(origin) = passage.exchange.target().map(|target| target.origin.clone()) else {
            return Error::e_explain(ErrorType::InternalError, "no decision was taken");
        };
        if passage.addresses.is_empty() {
            match reach(&generation, &origin).await {
                Ok(addresses) => passage.addresses = addresses,
                Err(fault) => {
                    passage.fault = Some(fault);
                    return Err(Error::new_up(ErrorType::ConnectError));
                }
            }
        }
        let Some(address) = passage.addresses.first().copied() else {
            return Error::e_explain(ErrorType::InternalError, "there is no address left");
        };
        passage.exchange.upstream = Some(address);
        let proxy = &generation.config.proxy;
        let timeouts = Timeouts {
            connect: upstream::share_of(proxy.connect_timeout, connecting.elapsed(), passage.addresses.len()),
            read: silence(session, proxy),
            write: proxy.write_timeout,
            idle: proxy.idle_timeout,
        };
        // The origin is spoken to as the client speaks: upgrades exist in HTTP/1.1 only, and
        // trailers that a client waits for come through in HTTP/2.
        let alpn = match session.req_header().version {
            Version::HTTP_2 => ALPN::H2H1,
            _ => ALPN::H1,
        };
        let peer = upstream::peer(&origin, address, alpn, timeouts);
        Ok(Box::new(match session.is_upgrade_req() {
            true => upstream::for_upgrade(peer),
            false => peer,
        }))
    }

    async fn connected_to_upstream(
        &self,
        _session: &mut Session,
        reused: bool,
        _peer: &HttpPeer,
        _fd: std::os::unix::io::RawFd,
        _digest: Option<&Digest>,
        passage: &mut Passage,
    ) -> Result<()> {
        passage.fault = None;
        passage.exchange.timings.connect = passage.connecting.filter(|_| !reused).map(|since| since.elapsed());
        Ok(())
    }

    /// Tries the origin's next address.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        passage: &mut Passage,
        mut error: Box<Error>,
    ) -> Box<Error> {
        passage.fault = Some(Fault::from_pingora(&error));
        if passage.addresses.len() > 1 {
            passage.addresses.remove(0);
            error.set_retry(true);
        }
        error
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        let exchange = &passage.exchange;
        let Some(target) = exchange.target() else {
            return Error::e_explain(ErrorType::InternalError, "no decision was taken");
        };
        let received = session.req_header().version;
        for name in fields::hop_by_hop(&request.headers) {
            // pingora has dealt with what an HTTP/2 request may say of trailers.
            if name != header::TE || received != Version::HTTP_2 {
                request.remove_header(&name);
            }
        }
        let entry = fields::via(received, &exchange.generation.config.proxy.name);
        if let Some(via) = fields::with_via(&request.headers, &entry) {
            request.insert_header(fields::VIA, via)?;
        }
        if received == Version::HTTP_2
            && let Some(cookie) = fields::joined_cookie(&request.headers)
        {
            request.insert_header(header::COOKIE, cookie)?;
        }
        request.insert_header(header::HOST, target.origin.host_field())?;
        if let Some(length) = fields::only_length(&request.headers) {
            request.insert_header(header::CONTENT_LENGTH, length)?;
        }
        request.set_raw_path(&target.path)?;
        Ok(())
    }

    async fn request_body_filter(
        &self,
        session: &mut Session,
        _body: &mut Option<bytes::Bytes>,
        _end: bool,
        passage: &mut Passage,
    ) -> Result<()> {
        check_life(session, passage)
    }

    fn response_body_filter(
        &self,
        session: &mut Session,
        _body: &mut Option<bytes::Bytes>,
        _end: bool,
        passage: &mut Passage,
    ) -> Result<Option<Duration>> {
        check_life(session, passage).map(|()| None)
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        if response.status.is_informational() {
            passage.informational += 1;
            if passage.informational > MAX_INFORMATIONAL {
                passage.fault = Some(Fault::HttpProtocol);
                return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
            }
        }
        let exchange = &mut passage.exchange;
        let elapsed = exchange.elapsed();
        exchange.timings.first_byte.get_or_insert(elapsed);
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            if session.is_upgrade_req() && websocket::is_accepted(&session.req_header().headers, &response.headers) {
                return Ok(());
            }
            // Nobody asked for this protocol (RFC 9110 §15.2.2).
            passage.fault = Some(Fault::HttpProtocol);
            return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
        }
        if response.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            passage.fault = Some(Fault::ProxyAuthentication);
            return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
        }
        if !fields::is_framed_plainly(&response.headers, response.version) {
            passage.fault = Some(Fault::HttpProtocol);
            return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
        }
        if let Some(length) = fields::only_length(&response.headers) {
            response.insert_header(header::CONTENT_LENGTH, length)?;
        }
        for name in fields::hop_by_hop(&response.headers) {
            response.remove_header(&name);
        }
        response.remove_header(&header::UPGRADE);
        let entry = fields::via(response.version, &exchange.generation.config.proxy.name);
        if let Some(via) = fields::with_via(&response.headers, &entry) {
            response.insert_header(fields::VIA, via)?;
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        // A response says what its sender speaks, not what the origin does (RFC 9110 §6.2).
        response.set_version(Version::HTTP_11);
        if session.req_header().version == Version::HTTP_10 {
            // HTTP/1.0 knows no chunks: the end of the connection ends the content (RFC 9112 §6.1).
            response.remove_header(&header::TRANSFER_ENCODING);
        }
        if !response.status.is_informational() || response.status == StatusCode::SWITCHING_PROTOCOLS {
            passage.exchange.status = Some(response.status.as_u16());
        }
        let exchange = &passage.exchange;
        let proxy = &exchange.generation.config.proxy;
        // What stands under these names is ours to say.
        response.remove_header(ROBOTS_DECISION);
        if response.headers.contains_key(PROXY_STATUS) {
            match fields::without_member(&response.headers, PROXY_STATUS, &proxy.name) {
                Some(others) => response.insert_header(PROXY_STATUS, others)?,
                None => drop(response.remove_header(PROXY_STATUS)),
            }
        }
        if (proxy.annotate_allowed || !exchange.is_allowed())
            && !response.status.is_informational()
            && let Some(field) = exchange.decision_field()
        {
            response.insert_header(ROBOTS_DECISION, field)?;
        }
        Ok(())
    }

    fn upstream_response_trailer_filter(
        &self,
        _session: &mut Session,
        trailers: &mut http::HeaderMap,
        _passage: &mut Passage,
    ) -> Result<()> {
        trailers.remove(ROBOTS_DECISION);
        trailers.remove(PROXY_STATUS);
        Ok(())
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, passage: &mut Passage) -> FailToProxy {
        let fault = match passage.fault.take() {
            Some(fault) => Some(fault),
            None if *error.esource() == ErrorSource::Downstream => None,
            None => Some(Fault::from_pingora(error)),
        };
        // After a 101 the connection is no longer HTTP's.
        let begun = session
            .response_written()
            .is_some_and(|response| !response.status.is_informational() || response.status == 101);
        let exchange = &mut passage.exchange;
        let silent = *error.etype() == ErrorType::ReadTimedout;
        match &fault {
            // A WebSocket has no side that has to say something.
            _ if silent && session.was_upgraded() => {
                came_over(session, Limit::TunnelIdleTimeout);
                exchange.note_idle();
            }
            Some(fault) if begun => exchange.note_fault(fault),
            Some(_) => {}
            None if silent => {
                came_over(session, Limit::BodyTimeout);
                exchange.note_client_slow();
            }
            None if *error.etype() == ErrorType::WriteTimedout => exchange.note_client_full(),
            None if begun || is_gone(error) => exchange.note_client_gone(),
            None => {}
        }
        if begun || (fault.is_none() && is_gone(error)) {
            return FailToProxy {
                error_code: 0,
                can_reuse_downstream: false,
            };
        }
        let problem = match &fault {
            Some(fault) => Problem::Fault(fault),
            None if silent => Problem::Slow,
            None => Problem::Request,
        };
        let answer = exchange.problem(&problem, &session.req_header().headers);
        let error_code = answer.head.status.as_u16();
        session.set_keepalive(None);
        if let Err(error) = Self::send(session, answer).await {
            tracing::debug!(%error, id = exchange.id(), "the client went away before the answer");
        }
        FailToProxy {
            error_code,
            can_reuse_downstream: false,
        }
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, passage: &mut Passage) {
        let exchange = &mut passage.exchange;
        if let Some(error) = error {
            tracing::debug!(%error, id = exchange.id(), "an exchange failed");
        }
        if session.is_http2() && exchange.client_is_gone() {
            count_reset(session);
        }
        exchange
            .complete(End {
                status: session.response_written().map(|response| response.status.as_u16()),
                bytes_in: Some(session.body_bytes_read() as u64),
                bytes_out: Some(session.body_bytes_sent() as u64),
            })
            .await;
    }

    /// What went wrong stands in the audit log.
    fn suppress_error_log(&self, _: &Session, _: &Passage, _: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _: &Session,
        _: &Passage,
        _: &Error,
        _: pingora::proxy::ProxyWarnLogContext,
    ) -> bool {
        true
    }
}

/// Ends a WebSocket whose time is over with the next bytes that pass; where none do, it ends for that.
fn check_life(session: &Session, passage: &mut Passage) -> Result<()> {
    let exchange = &mut passage.exchange;
    if session.was_upgraded() && exchange.elapsed() >= exchange.generation.config.proxy.tunnel_timeout {
        came_over(session, Limit::TunnelTimeout);
        exchange.note_old();
        return Err(Error::new_down(ErrorType::ConnectionClosed));
    }
    Ok(())
}

/// Counts that the request's client came over a limit.
fn came_over(session: &Session, limit: Limit) {
    if let Some(arrival) = Arrival::of(session.digest()) {
        arrival.visit.came_over(limit, arrival.client);
    }
}

/// Counts a request that its client took back, which HTTP/2 makes cheap.
fn count_reset(session: &Session) {
    if let Some(through) = Arrival::of(session.digest()).and_then(|arrival| arrival.through.as_deref()) {
        through.resets.count(Instant::now());
    }
}

/// The checked addresses of `origin`, never none.
async fn reach(generation: &Generation, origin: &Origin) -> Result<Vec<SocketAddr>, Fault> {
    upstream::check_name(origin)?;
    Ok(generation.egress.addresses(&origin.host, origin.port).await?)
}

/// How long either side may say nothing: what may become a WebSocket is allowed more.
fn silence(session: &Session, times: &crate::config::Proxy) -> Duration {
    if session.is_upgrade_req() {
        times.tunnel_idle_timeout
    } else {
        times.read_timeout
    }
}

/// Reads on for a while after an answer that came before the request's end: many clients send to
/// the end before they look, and a closed connection would take the answer from them.
async fn linger(session: &mut Session) {
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

/// Whether an error on the client's side says that it is not there any more.
fn is_gone(error: &Error) -> bool {
    matches!(
        error.etype(),
        ErrorType::ReadError
            | ErrorType::WriteError
            | ErrorType::WriteTimedout
            | ErrorType::ConnectionClosed
            | ErrorType::H2Error
    )
}

/// An origin that sends more of them never comes to an end.
const MAX_INFORMATIONAL: usize = 32;
/// How long, and for how many bytes, content is read that nobody wants.
const LINGER: Duration = Duration::from_secs(2);
const MAX_LINGER: usize = 64 * 1024 * 1024;
