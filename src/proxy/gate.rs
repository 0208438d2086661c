//! The gate on the way of each request, as pingora calls it step by step: asks for a decision,
//! logs it, and then forwards or refuses. What the steps share is in the
//! [`Exchange`](super::exchange::Exchange).

use std::{
    net::SocketAddr,
    sync::{Arc, Weak},
    time::Instant,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{HeaderMap, StatusCode, Version, header};
use pingora::{
    Error, ErrorSource, ErrorType, Result,
    protocols::{ALPN, Digest},
    proxy::{FailToProxy, ProxyHttp, Session},
    upstreams::peer::HttpPeer,
};
use pingora_http::{RequestHeader, ResponseHeader};

use super::{
    exchange::{End, Exchange, Request},
    fields::{self, PROXY_STATUS, ROBOTS_DECISION},
    generation::{Generation, Live},
    judge::{Judgement, identify},
    respond::{Answer, Problem},
    target::{Target, Through},
};
use crate::{
    decision::Asker,
    origin::readings,
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
    fault: Option<Fault>,
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
        let through = through(session.digest());
        if fields::has_passed(&head.headers, &generation.config.proxy.name) {
            return Err(exchange.problem(&Problem::Loop, &head.headers));
        }
        let target =
            Target::of(head, through).map_err(|error| exchange.problem(&Problem::Target(&error), &head.headers))?;
        let identity = identify(&generation.config.bots, &head.headers);
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
            client: session.client_addr().and_then(|client| client.as_inet().copied()),
            identity: &identity,
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
        session.write_response_header(Box::new(answer.head), head_only).await?;
        if !head_only {
            session.write_response_body(Some(answer.body), true).await?;
        }
        Ok(())
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
            fault: None,
        }
    }

    /// The default adds compression, which would change what the origin sent.
    fn init_downstream_modules(&self, _modules: &mut pingora::modules::http::HttpModules) {}

    async fn request_filter(&self, session: &mut Session, passage: &mut Passage) -> Result<bool> {
        let times = &passage.exchange.generation.config.proxy;
        session.set_read_timeout(Some(times.read_timeout));
        session.set_write_timeout(Some(times.write_timeout));
        if self.live.upgrade().is_none_or(|live| live.is_stopping()) {
            session.set_keepalive(None);
        }
        match self.admit(session, passage).await {
            Ok(()) => Ok(false),
            Err(answer) => {
                Self::send(session, answer).await?;
                Ok(true)
            }
        }
    }

    async fn upstream_peer(&self, session: &mut Session, passage: &mut Passage) -> Result<Box<HttpPeer>> {
        let connecting = *passage.connecting.get_or_insert_with(Instant::now);
        let exchange = &passage.exchange;
        let generation = &exchange.generation;
        let Some(target) = exchange.target() else {
            return Error::e_explain(ErrorType::InternalError, "no decision was taken");
        };
        if passage.addresses.is_empty() {
            let found = generation
                .egress
                .addresses(&target.origin.host, target.origin.port)
                .await;
            match found {
                Ok(addresses) => passage.addresses = addresses,
                Err(error) => {
                    passage.fault = Some(error.into());
                    return Err(Error::new_up(ErrorType::ConnectError));
                }
            }
        }
        // Addresses come as a list that is never empty.
        let Some(address) = passage.addresses.first().copied() else {
            return Err(Error::new_up(ErrorType::ConnectError));
        };
        let proxy = &generation.config.proxy;
        let timeouts = Timeouts {
            connect: proxy
                .connect_timeout
                .saturating_sub(connecting.elapsed())
                .max(MIN_CONNECT),
            read: proxy.read_timeout,
            write: proxy.write_timeout,
            idle: proxy.idle_timeout,
        };
        // The origin is spoken to as the client speaks: upgrades exist in HTTP/1.1 only, and
        // trailers that a client waits for come through in HTTP/2.
        let alpn = match session.req_header().version {
            Version::HTTP_2 => ALPN::H2H1,
            _ => ALPN::H1,
        };
        passage.exchange.upstream = Some(address);
        let target = passage.exchange.target().map(|target| &target.origin);
        match target {
            Some(origin) => Ok(Box::new(upstream::peer(origin, address, alpn, timeouts))),
            None => Error::e_explain(ErrorType::InternalError, "no decision was taken"),
        }
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
        request.insert_header(header::HOST, target.origin.host_field())?;
        if received != Version::HTTP_2 {
            request.set_raw_path(&target.path)?;
        }
        Ok(())
    }

    async fn upstream_response_filter(
        &self,
        _session: &mut Session,
        response: &mut ResponseHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        let exchange = &mut passage.exchange;
        let elapsed = exchange.elapsed();
        exchange.timings.first_byte.get_or_insert(elapsed);
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(());
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
        let exchange = &passage.exchange;
        let proxy = &exchange.generation.config.proxy;
        // What stands under these names is ours to say.
        response.remove_header(ROBOTS_DECISION);
        if claims_to_be(&response.headers, &proxy.name) {
            response.remove_header(PROXY_STATUS);
        }
        if proxy.annotate_allowed
            && !response.status.is_informational()
            && let Some(field) = exchange.decision_field()
        {
            response.insert_header(ROBOTS_DECISION, field)?;
        }
        Ok(())
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, passage: &mut Passage) -> FailToProxy {
        let fault = match passage.fault.take() {
            Some(fault) => Some(fault),
            None if *error.esource() == ErrorSource::Downstream => None,
            None => Some(Fault::from_pingora(error)),
        };
        let begun = session
            .response_written()
            .is_some_and(|response| !response.status.is_informational());
        let client_is_gone = fault.is_none()
            && matches!(
                error.etype(),
                ErrorType::ReadError
                    | ErrorType::WriteError
                    | ErrorType::ConnectionClosed
                    | ErrorType::ReadTimedout
                    | ErrorType::WriteTimedout
            );
        let exchange = &mut passage.exchange;
        if begun || client_is_gone {
            match &fault {
                Some(fault) => exchange.note_fault(fault),
                None => exchange.note_client_gone(),
            }
            return FailToProxy {
                error_code: 0,
                can_reuse_downstream: false,
            };
        }
        let problem = fault.as_ref().map_or(Problem::Request, Problem::Fault);
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
        exchange
            .complete(End {
                status: session.response_written().map(|response| response.status.as_u16()),
                bytes_in: session.body_bytes_read() as u64,
                bytes_out: session.body_bytes_sent() as u64,
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

/// The CONNECT that the request's connection came through.
fn through(digest: Option<&Digest>) -> Option<&Through> {
    let proxy_digest = digest?.proxy_digest.as_ref()?;
    proxy_digest.user_data.as_ref()?.downcast_ref()
}

/// Whether a response from outside has a `Proxy-Status` in our name.
fn claims_to_be(headers: &HeaderMap, name: &str) -> bool {
    let name = name.as_bytes();
    headers.get_all(PROXY_STATUS).iter().any(|value| {
        value
            .as_bytes()
            .windows(name.len())
            .any(|window| window.eq_ignore_ascii_case(name))
    })
}

/// What is left of the time to connect for an address that is tried late.
const MIN_CONNECT: std::time::Duration = std::time::Duration::from_secs(1);
