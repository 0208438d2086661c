//! The gate on the way of each request, as pingora calls it step by step: asks for a decision,
//! logs it, and then forwards or refuses. What the steps share is in the
//! [`Exchange`](super::exchange::Exchange).

mod client;
mod passage;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{StatusCode, Version};
use pingora::{
    Error, ErrorSource, ErrorType, Result,
    protocols::Digest,
    proxy::{FailToProxy, ProxyHttp, Session},
    server::ShutdownWatch,
    upstreams::peer::HttpPeer,
};
use pingora_http::{RequestHeader, ResponseHeader};

use self::passage::Passage;
use super::{
    arrival::Arrival,
    copied,
    exchange::{End, Request},
    fields,
    generation::Generation,
    head,
    judge::{self, identify},
    limits::Limit,
    own,
    respond::{Answer, Problem},
    rewrite,
    target::target_of,
};
use crate::{
    decision::{Question, Reason, Scope, Verdict},
    metrics::{Method, Tunnel},
    origin::asks_for_robots_txt,
    seldom::seldom,
    upstream::Fault,
};

/// The gate. One serves all requests of a [`Forwarder`](super::live::Forwarder).
pub(super) struct Gate {
    /// Turns true when the proxy is to stop.
    shutdown: ShutdownWatch,
    current: Arc<ArcSwap<Generation>>,
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(shutdown: ShutdownWatch, current: Arc<ArcSwap<Generation>>) -> Self {
        Self { shutdown, current }
    }

    /// Decides and logs. `Ok` where the request goes on, else what to answer.
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
            seldom!(warn, %client, "a request came by here before and was refused");
            return Err(exchange.problem(&Problem::Loop, &head.headers));
        }
        if head.version == Version::HTTP_2
            && let Err(error) = generation.config.proxy.head.check_http2(head)
        {
            match error.limit() {
                Some(limit) => arrival.visit.came_over(limit, client),
                None => {
                    generation.meter.metrics.malformed();
                    head::tell_of_malformed(client, &error);
                }
            }
            return Err(exchange.problem(&Problem::Head(&error), &head.headers));
        }
        let target = target_of(head, through).map_err(|error| {
            generation.meter.metrics.malformed();
            head::tell_of_malformed(client, &error);
            exchange.problem(&Problem::Target(&error), &head.headers)
        })?;
        if target.origin.is_own() {
            tracing::debug!(%client, method = %head.method, "a request for the proxy's own pages");
            exchange.is_own = true;
            let answer = own::answer(head, &target, session.digest(), &generation);
            return Err(answer.unwrap_or_else(|error| exchange.problem(&Problem::Own(&error), &head.headers)));
        }
        let (_, subject) = identify(&generation.config, &head.headers, arrival);
        let requester = arrival.visit.requester(&generation.config.proxy.limits);
        let question = Question {
            subject,
            scope: Scope::Path {
                alone: asks_for_robots_txt(&target.path)
                    && fields::ask_for_the_target_alone(head, &generation.config.proxy.strip),
            },
            target,
            terms: generation.terms,
        };
        let decided = judge::decide(&generation, requester, question).await;
        let decision = decided.map_err(|error| exchange.no_decision(error, arrival, &head.headers))?;
        let wants_copy =
            generation.config.robots.serve_copies && decision.reason == Reason::RobotsFile && copied::can_answer(head);
        let decision = match wants_copy {
            true => judge::with_copy(&generation, requester, decision).await,
            false => decision,
        };
        let request = Request {
            method: &head.method,
            headers: &head.headers,
            client,
            inside: through.is_some(),
        };
        if let Err(error) = exchange.decide(&request, decision).await {
            seldom!(error, %error, output = generation.audit.output(), id = exchange.id(), "a request was not forwarded");
            return Err(exchange.problem(&Problem::Audit, &head.headers));
        }
        if exchange.forwards() {
            let copy = wants_copy.then(|| exchange.copy(&head.headers)).flatten();
            return copy.map_or(Ok(()), Err);
        }
        match exchange.refusal(&head.headers) {
            Some(refusal) => Err(refusal),
            // A decision was just taken.
            None => Err(exchange.problem(&Problem::Request, &head.headers)),
        }
    }
}

#[async_trait]
impl ProxyHttp for Gate {
    type CTX = Passage;

    fn new_ctx(&self) -> Passage {
        Passage::new(self.current.load_full())
    }

    /// The default adds compression, which would change what the origin sent.
    fn init_downstream_modules(&self, _modules: &mut pingora::modules::http::HttpModules) {}

    async fn request_filter(&self, session: &mut Session, passage: &mut Passage) -> Result<bool> {
        passage.exchange.method = Method::from(&session.req_header().method);
        let times = &passage.exchange.generation.config.proxy;
        let read_timeout = match session.is_upgrade_req() {
            true => times.tunnel_idle_timeout,
            false => times.body_timeout,
        };
        session.set_read_timeout(Some(read_timeout));
        session.set_write_timeout(Some(times.write_timeout));
        if *self.shutdown.borrow() {
            session.set_keepalive(None);
        }
        match self.admit(session, passage).await {
            Ok(()) => Ok(false),
            Err(answer) => {
                if !answer.keeps_connection {
                    session.set_keepalive(None);
                }
                client::send(session, answer).await?;
                client::linger(session).await;
                Ok(true)
            }
        }
    }

    async fn upstream_peer(&self, session: &mut Session, passage: &mut Passage) -> Result<Box<HttpPeer>> {
        passage.peer(session).await.map(Box::new)
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
        passage.note_connected(reused);
        passage.check_connected()
    }

    /// Tries the origin's next address.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        passage: &mut Passage,
        mut error: Box<Error>,
    ) -> Box<Error> {
        if passage.note_not_connected(&error) {
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
        let Some(decision) = exchange.decision() else {
            return Error::e_explain(ErrorType::InternalError, "no decision was taken");
        };
        let proxy = &exchange.generation.config.proxy;
        let received = rewrite::Received {
            version: session.req_header().version,
            has_content: !session.is_body_empty(),
        };
        fields::strip(request, &proxy.strip);
        rewrite::to_origin(request, received, decision.target(), proxy.via.then_some(&*proxy.name))
    }

    async fn request_body_filter(
        &self,
        session: &mut Session,
        _body: &mut Option<bytes::Bytes>,
        _end: bool,
        passage: &mut Passage,
    ) -> Result<()> {
        client::check_life(session, passage)
    }

    fn response_body_filter(
        &self,
        session: &mut Session,
        _body: &mut Option<bytes::Bytes>,
        _end: bool,
        passage: &mut Passage,
    ) -> Result<Option<Duration>> {
        client::check_life(session, passage).map(|()| None)
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
        let asked = session.is_upgrade_req().then(|| &session.req_header().headers);
        if let Err(fault) = rewrite::check_answer(asked, response) {
            passage.fault = Some(fault);
            return Err(Error::new_up(ErrorType::InvalidHTTPHeader));
        }
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            exchange.becomes(Tunnel::Websocket);
            return Ok(());
        }
        rewrite::from_origin(response, &exchange.generation.config.proxy.name)
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        let informational = response.status.is_informational();
        if !informational || response.status == StatusCode::SWITCHING_PROTOCOLS {
            passage.exchange.status = Some(response.status.as_u16());
        }
        let exchange = &passage.exchange;
        let proxy = &exchange.generation.config.proxy;
        let is_allowed = exchange
            .decision()
            .is_some_and(|decision| decision.verdict == Verdict::Allow);
        let is_told = (proxy.annotate_allowed || !is_allowed) && !informational;
        let decision = is_told.then(|| exchange.decision_field()).flatten();
        rewrite::to_client(response, session.req_header().version, &proxy.name, decision)
    }

    fn upstream_response_trailer_filter(
        &self,
        _session: &mut Session,
        trailers: &mut http::HeaderMap,
        _passage: &mut Passage,
    ) -> Result<()> {
        rewrite::trailers(trailers);
        Ok(())
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, passage: &mut Passage) -> FailToProxy {
        let fault = match passage.fault.take() {
            Some(fault) => Some(fault),
            // The origin waits for the rest of the request, as robotgate does. Over HTTP/2, pingora has no clock for it.
            None if client::owes_content(session, error) => None,
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
                client::came_over(session, Limit::TunnelIdleTimeout);
                exchange.note_idle();
            }
            Some(fault) if begun => exchange.note_fault(fault),
            Some(_) => {}
            None if silent => {
                client::came_over(session, Limit::BodyTimeout);
                exchange.note_client_slow();
            }
            None if *error.etype() == ErrorType::WriteTimedout => exchange.note_client_full(),
            None if begun || client::is_gone(error) => exchange.note_client_gone(),
            None => {}
        }
        if begun || (fault.is_none() && client::is_gone(error)) {
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
        if let Err(error) = client::send(session, answer).await {
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
            client::count_reset(session);
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

/// An origin that sends more of them never comes to an end.
const MAX_INFORMATIONAL: usize = 32;
