//! One request and its response: the decision, what the log and the response headers say about it, and how long each
//! step took.

mod ending;

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderMap, StatusCode, header};
use pingora_http::ResponseHeader;
use uuid::{ContextV7, Uuid, timestamp::context::ThreadLocalContext};

pub(super) use self::ending::{EarlyEnd, Failure};
use super::{
    cached_response::CachedResponse,
    client_connection::ClientConnection,
    generation::Generation,
    judge::NoDecision,
    limits::Limit,
    respond::{OwnResponse, Problem},
    tunnel::Count,
};
use crate::{
    audit::{AuditError, Line, RequestFacts, decision_line, withdrawn_line},
    bot::Identity,
    copy::retry_after,
    decision::{Decision, DecisionTexts, Verdict},
    fetch::LookupError,
    metrics::{GaugeGuard, Meter, Method, Tunnel},
    pacer::Turn,
    ratelimited::ratelimited,
    store::Tally,
    upstream::{Fault, ProxyError},
    usage::UseStatement,
};

thread_local! {
    /// Each thread has its own counter, so that no thread waits for another.
    static IDS: ContextV7 = const { ContextV7::new() };
}

pub(super) struct Exchange {
    pub(super) generation: Arc<Generation>,
    pub(super) method: Method,
    /// The id of the request in the log and in response headers: a UUIDv7 (RFC 9562 §5.7).
    id: [u8; 36],
    started: Instant,
    /// Set once the audit log has accepted the decision.
    decided: Option<Decided>,
    /// `None` if the site's robots.txt was not looked up.
    pub(super) tally: Option<Arc<Tally>>,
    pub(super) timings: Timings,
    pub(super) upstream: Option<std::net::SocketAddr>,
    pub(super) failed: Option<Failure>,
    pub(super) status: Option<u16>,
    /// Whether the site responded with a 5xx. The client may have got another status.
    site_has_error: bool,
    /// Bytes of content, or of a tunnel, received from the client and sent to it.
    pub(super) passed: Count,
    pub(super) is_internal_site: bool,
    /// Whether the client gets robotgate's copy of the robots.txt.
    from_copy: bool,
    completed: bool,
    tunnel: Option<GaugeGuard>,
    /// The permission to send the request, which the exchange keeps until the request ends.
    pub(super) turn: Option<Turn>,
    pace_wait: Duration,
    said: Vec<UseStatement>,
}

/// `field` is the value of `Robots-Decision` that has yet to be added to the origin's response.
struct Decided {
    decision: Decision,
    field: Option<String>,
    counted: bool,
}

/// An origin's response that the bot must not get.
#[derive(Debug)]
pub(super) struct Withdrawal {
    decision: Decision,
    statement: UseStatement,
    status: StatusCode,
}

/// `connect` counts from the beginning of forwarding, `first_byte` from the beginning of the exchange.
#[derive(Debug, Default)]
pub(super) struct Timings {
    pub(super) connect: Option<Duration>,
    pub(super) first_byte: Option<Duration>,
}

/// What the log records of a request in addition to the decision.
pub(super) struct Request<'a> {
    pub(super) method: &'a http::Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) client: std::net::SocketAddr,
    /// Whether the request came through an intercepted CONNECT. If so, its refusal asks for no credential, because
    /// clients send credentials for the proxy only with the CONNECT.
    pub(super) inside: bool,
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(generation: Arc<Generation>, method: Method) -> Self {
        let mut id = [0; 36];
        let time = uuid::Timestamp::now(ThreadLocalContext::new(&IDS));
        Uuid::new_v7(time).hyphenated().encode_lower(&mut id);
        Self {
            generation,
            method,
            id,
            started: Instant::now(),
            decided: None,
            tally: None,
            timings: Timings::default(),
            upstream: None,
            failed: None,
            status: None,
            site_has_error: false,
            passed: Count::default(),
            is_internal_site: false,
            from_copy: false,
            completed: false,
            tunnel: None,
            turn: None,
            pace_wait: Duration::ZERO,
            said: Vec::new(),
        }
    }

    /// Logs the decision, and returns the refusal if the request is not forwarded. Forward the request or send the
    /// refusal only after this has succeeded.
    pub(super) async fn decide(
        &mut self,
        request: &Request<'_>,
        decision: Decision,
    ) -> Result<Option<OwnResponse>, AuditError> {
        let took = self.elapsed();
        let generation = &self.generation;
        let config = &generation.config;
        let identity = &decision.question.subject.identity;
        let challenge =
            !request.inside && matches!(identity, Identity::Refused(mismatch) if mismatch.asks_for_credential());
        let texts = DecisionTexts::of(&decision, self.id(), challenge);
        let line = line_of(&decision, &texts, request, generation);
        let handing_over = Instant::now();
        let meter = &generation.meter;
        let enqueued = generation.audit.enqueue(&line).await;
        // Also measure waits that fail, because they are the longest.
        let enqueued = enqueued.inspect_err(|_| meter.metrics.audit_took(handing_over.elapsed()))?;
        let waited = decision.lookup.as_ref().map(|lookup| lookup.waited);
        let took = took.saturating_sub(waited.unwrap_or_default() + self.pace_wait);
        meter.metrics.decision_took(took, waited);
        let is_allowed = decision.verdict == Verdict::Allow;
        generation.recent.decisions().add(&line);
        if !is_allowed {
            generation.recent.refused(&line);
        }
        let is_use_forbidden = texts.usage.is_some_and(|usage| usage.deciding_statement().is_some());
        let (refusal, field) = match decision.forwarded {
            true => (
                None,
                (config.proxy.annotate_allowed || !is_allowed || is_use_forbidden).then(|| texts.field()),
            ),
            false => {
                let refusal = OwnResponse::refusal(&texts, request.headers, &config.refusals, &config.proxy.name);
                (Some(refusal), None)
            }
        };
        // The end of an exchange is logged only if `decided` is set, so set it only after the log has accepted the
        // decision.
        self.decided = Some(Decided::new(decision, field, meter, self.tally.as_deref()));
        let result = enqueued.wait_until_written().await;
        self.generation.meter.metrics.audit_took(handing_over.elapsed());
        result.map(|()| refusal)
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.decided.as_ref().map(|decided| &decided.decision)
    }

    pub(super) fn forwards(&self) -> bool {
        self.decision().is_some_and(|decision| decision.forwarded)
    }

    pub(super) fn take_decision_field(&mut self) -> Option<String> {
        self.decided.as_mut()?.field.take()
    }

    /// Returns robotgate's copy as the response to the bot's own request for the robots.txt, or `None` if there is no
    /// copy that may be sent.
    pub(super) fn copy(&mut self, request: &HeaderMap) -> Option<OwnResponse> {
        let Decided { decision, field, .. } = self.decided.as_ref()?;
        let lookup = decision.lookup.as_ref()?;
        let config = &self.generation.config;
        let cached = CachedResponse::of(lookup, &self.generation.terms.policy, SystemTime::now())?;
        let answer = OwnResponse::cached(&cached, request, field.clone(), &config.proxy.name);
        self.from_copy = true;
        Some(answer)
    }

    pub(super) fn problem(&mut self, problem: &Problem<'_>, request: &HeaderMap) -> OwnResponse {
        self.failed = Some(Failure::of(problem));
        OwnResponse::problem(problem, request, &self.generation.config.proxy.name)
    }

    pub(super) fn no_decision(
        &mut self,
        error: NoDecision,
        connection: &ClientConnection,
        request: &HeaderMap,
    ) -> OwnResponse {
        let problem = match error {
            NoDecision::Lookup(LookupError::TooManyFetches) => {
                connection.guard.count_exceeded(Limit::ClientFetches, connection.client);
                Problem::Limit(Limit::ClientFetches)
            }
            NoDecision::Lookup(LookupError::NotLogged) => {
                let output = self.generation.audit.output();
                ratelimited!(error, %error, output, id = self.id(), "a request was answered with a 503");
                Problem::Audit
            }
            NoDecision::Lookup(LookupError::NotStored) => {
                ratelimited!(error, %error, id = self.id(), "a request was answered with a 503");
                Problem::Evidence
            }
            NoDecision::Overloaded => {
                ratelimited!(warn, client = %connection.client_for_log(), "a request was refused: {error}");
                Problem::Overloaded
            }
        };
        self.problem(&problem, request)
    }

    /// Notes a fault for the log. The response has already begun, so the client cannot be told.
    pub(super) fn note_fault(&mut self, fault: &Fault) {
        self.failed.get_or_insert_with(|| Failure::of(&Problem::Fault(fault)));
    }

    pub(super) fn note_request_error(&mut self, what: String) {
        self.failed
            .get_or_insert_with(|| Failure::not_of_site(ProxyError::HttpRequestError, what));
    }

    pub(super) fn client_is_gone(&self) -> bool {
        self.failed
            .as_ref()
            .is_some_and(|failure| failure.error == ProxyError::ClientGone)
    }

    pub(super) fn note_pace_wait(&mut self, waited: Duration) {
        self.pace_wait = waited;
        self.generation.meter.metrics.pace_took(waited);
    }

    pub(super) fn note_sent(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.sent();
        }
    }

    /// Notes whether the response is a 5xx. If the request has a turn, a 429 or 503 pauses the requests to the site,
    /// for as long as `Retry-After` says (RFC 9110 §10.2.3) or for a default time.
    pub(super) fn note_response(&mut self, response: &ResponseHeader) {
        self.site_has_error = response.status.is_server_error();
        if let Some(turn) = &self.turn
            && matches!(
                response.status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            )
        {
            turn.note_busy(retry_after(&response.headers, SystemTime::now()));
        }
    }

    /// Notes what the response's header fields say about using its content for the bot's purposes. If the bot must not
    /// get the response, returns why.
    pub(super) fn note_usage(&mut self, response: &ResponseHeader) -> Option<Box<Withdrawal>> {
        let decided = self.decided.as_mut()?;
        self.said = decided.decision.said_by(&response.headers);
        if let Some((decision, statement)) = decided.decision.withdrawn(&self.said) {
            return Some(Box::new(Withdrawal {
                decision,
                statement,
                status: response.status,
            }));
        }
        if decided.decision.add_said(&self.said) {
            let id = str::from_utf8(&self.id).unwrap_or_default();
            decided.field = Some(DecisionTexts::of(&decided.decision, id, false).field());
        }
        decided.count(&self.generation.meter, self.tally.as_deref());
        None
    }

    /// Logs that the bot does not get the origin's response, and returns the refusal to send instead. If this fails,
    /// the bot must get neither the response nor the refusal.
    pub(super) async fn withdraw(
        &mut self,
        withdrawal: Withdrawal,
        request: &Request<'_>,
    ) -> Result<OwnResponse, AuditError> {
        let Withdrawal {
            decision,
            statement,
            status,
        } = withdrawal;
        let generation = &self.generation;
        let (config, meter) = (&generation.config, &generation.meter);
        let texts = DecisionTexts::of(&decision, self.id(), false);
        let (status, privacy) = (status.as_u16(), &config.audit.privacy);
        let line = withdrawn_line(&decision, &texts, &statement, status, privacy, &generation.instance);
        let handing_over = Instant::now();
        let enqueued = generation.audit.enqueue(&line).await;
        let enqueued = enqueued.inspect_err(|_| meter.metrics.audit_took(handing_over.elapsed()))?;
        // The log will get the line even if the wait below fails, so count it now.
        meter.metrics.withdrawn(&statement);
        generation
            .recent
            .refused(&line_of(&decision, &texts, request, generation));
        let refusal = OwnResponse::refusal(&texts, request.headers, &config.refusals, &config.proxy.name);
        self.decided = Some(Decided::new(decision, None, meter, self.tally.as_deref()));
        let logged = enqueued.wait_until_written().await;
        self.generation.meter.metrics.audit_took(handing_over.elapsed());
        logged.map(|()| refusal)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn becomes(&mut self, tunnel: Tunnel) {
        self.tunnel = Some(self.generation.meter.metrics.tunnel_opened(tunnel));
        // No response can change the decision any more, so the decision is counted now.
        self.count_decision();
    }

    pub(super) fn id(&self) -> &str {
        // This cannot fail, because the text form of a UUID is ASCII.
        std::str::from_utf8(&self.id).unwrap_or_default()
    }
}

// === impl Decided ===

impl Decided {
    fn new(decision: Decision, field: Option<String>, meter: &Meter, tally: Option<&Tally>) -> Self {
        let mut decided = Self {
            decision,
            field,
            counted: false,
        };
        if !decided.decision.depends_on_response() {
            decided.count(meter, tally);
        }
        decided
    }

    /// Counts the decision, but only once: a request whose response is withdrawn counts only as refused.
    fn count(&mut self, meter: &Meter, tally: Option<&Tally>) {
        if std::mem::replace(&mut self.counted, true) {
            return;
        }
        meter.decided(&self.decision);
        if let Some(tally) = tally {
            tally.decided(self.decision.verdict, self.decision.forwarded);
        }
    }
}

fn line_of(decision: &Decision, texts: &DecisionTexts<'_>, request: &Request<'_>, generation: &Generation) -> Line {
    let user_agent = user_agent(request.headers);
    let facts = RequestFacts {
        client: request.client,
        method: request.method.as_str(),
        user_agent: user_agent.as_deref(),
        privacy: &generation.config.audit.privacy,
        generation: &generation.audit_fields,
    };
    decision_line(decision, texts, &facts)
}

/// Joins all User-Agent fields. A request with several of them identifies no bot, and the log has to show why.
fn user_agent(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let mut fields = headers.get_all(header::USER_AGENT).iter();
    let text = |field: &http::HeaderValue| String::from_utf8_lossy(field.as_bytes()).into_owned();
    let first = fields.next()?;
    let others: Vec<_> = fields.map(text).collect();
    Some(match others.is_empty() {
        true => String::from_utf8_lossy(first.as_bytes()),
        false => format!("{} | {}", text(first), others.join(" | ")).into(),
    })
}
