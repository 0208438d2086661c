//! The state of one request and its response, from the head to the last byte: what was decided,
//! what is said of it in the log and in headers, and how long each step took.

mod record;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::HeaderMap;

use self::record::MAX_TEXT;
use super::{
    arrival::Arrival,
    copied::Copied,
    generation::Generation,
    judge::{Judgement, NoDecision},
    limits::Limit,
    live::Live,
    respond::{Answer, Grounds, Problem},
};
use crate::{
    audit::AuditError,
    bot::{Bots, Identity, Proof},
    decision::{Asker, Verdict},
    fetch::LookupError,
    metrics::{Ended, Method, Outcome, Present, Tunnel},
    origin::{Reading, Target, readings},
    seldom::seldom,
    text::plain,
    upstream::{Fault, ProxyError},
};

/// One request and what became of it.
pub(super) struct Exchange {
    pub(super) generation: Arc<Generation>,
    pub(super) method: Method,
    /// Joins the records and the headers: a UUIDv7 (RFC 9562 §5.7).
    id: [u8; 36],
    started: Instant,
    /// Once a decision stands in the log.
    decided: Option<Decided>,
    pub(super) timings: Timings,
    /// The origin's address.
    pub(super) upstream: Option<std::net::SocketAddr>,
    /// What the client was told instead of the origin's response.
    pub(super) failed: Option<(ProxyError, String)>,
    /// The status of the response that the client is being sent.
    pub(super) status: Option<u16>,
    /// Whether it is for robotgate itself.
    pub(super) is_own: bool,
    /// Whether the copy of the robots.txt is the answer.
    from_copy: bool,
    /// Whether the end stands in the log.
    completed: bool,
    /// Of a tunnel or a WebSocket, for as long as it is open.
    tunnel: Option<Present>,
}

/// A decision, and what the gate needs of it later.
pub(super) struct Decided {
    pub(super) target: Target,
    judgement: Judgement,
    robots_url: String,
    /// The bot's token that the robots.txt was asked for.
    agent: Option<String>,
    /// The group that was used, as the file names it.
    group: Option<String>,
    /// Whether the client is asked for a credential.
    challenge: bool,
}

/// Steps of the exchange, from its start.
#[derive(Debug, Default)]
pub(super) struct Timings {
    pub(super) connect: Option<Duration>,
    pub(super) first_byte: Option<Duration>,
}

/// What of a request the log tells.
pub(super) struct Request<'a> {
    pub(super) method: &'a http::Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) client: Option<std::net::SocketAddr>,
    pub(super) identity: &'a Identity<'a>,
    pub(super) proof: &'a Proof<'a>,
    /// Whether it came through an intercepted CONNECT, inside of which no proxy is asked for.
    pub(super) inside: bool,
    pub(super) asker: Asker<'a>,
    /// Why a tunnel to this host is let through.
    pub(super) exception: Option<&'a str>,
}

/// How an exchange ended, for the log.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) status: Option<u16>,
    pub(super) bytes_in: Option<u64>,
    pub(super) bytes_out: Option<u64>,
}

// === impl Request ===

impl Request<'_> {
    /// Whether a credential would help, and the client can be asked for one.
    fn challenges(&self) -> bool {
        !self.inside && matches!(self.identity, Identity::Refused(misfit) if misfit.asks_for_credential())
    }

    /// What it is proven by, as the configuration names that.
    fn credential(&self, bots: &Bots) -> Option<String> {
        let bot = match self.identity {
            Identity::Bot(bot) => Some(bot),
            Identity::Token(_) | Identity::Unidentified(_) | Identity::Refused(_) => None,
        };
        self.proof.name(bots, bot)
    }
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(generation: Arc<Generation>, method: Method) -> Self {
        let mut id = [0; 36];
        uuid::Uuid::now_v7().hyphenated().encode_lower(&mut id);
        Self {
            generation,
            method,
            id,
            started: Instant::now(),
            decided: None,
            timings: Timings::default(),
            upstream: None,
            failed: None,
            status: None,
            is_own: false,
            from_copy: false,
            completed: false,
            tunnel: None,
        }
    }

    /// Takes the decision and logs it. Nothing may be done about it before this is through.
    ///
    /// # Errors
    /// The log takes nothing. Then nothing may be done at all.
    pub(super) async fn decide(
        &mut self,
        live: &Live,
        request: &Request<'_>,
        target: Target,
        judgement: Judgement,
    ) -> Result<(), AuditError> {
        let took = self.elapsed();
        let waited = judgement.lookup.as_ref().map(|lookup| lookup.waited);
        let answer = judgement.answer(&self.generation.policy);
        let picked = answer
            .and_then(|answer| answer.copy())
            .map(|copy| request.asker.pick(&copy.robots));
        let decided = Decided {
            robots_url: target.origin.robots_url(),
            agent: picked.map(|(token, _)| token.to_owned()),
            group: picked.and_then(|(_, agent)| agent.group()).map(str::to_owned),
            challenge: request.challenges(),
            target,
            judgement,
        };
        let line = self.decision_line(request, &decided);
        let generation = self.generation.clone();
        let handing_over = Instant::now();
        let meter = &generation.meter;
        let enqueued = generation.audit.enqueue(&line).await;
        // Those who wait in vain wait the longest.
        let enqueued = enqueued.inspect_err(|_| meter.metrics.audit_took(handing_over.elapsed()))?;
        meter.decided(request.identity, &decided.judgement.decision);
        let took = took.saturating_sub(waited.unwrap_or_default());
        meter.metrics.decision_took(took, waited);
        if decided.judgement.lookup.is_some() {
            let verdict = decided.judgement.decision.verdict;
            generation.store.count(&decided.target.origin, verdict);
        }
        if decided.judgement.decision.verdict != Verdict::Allow {
            live.recent.refused(&line);
        }
        // Only a decision that is in the log gets an end there, and each of them does.
        self.decided = Some(decided);
        let written = enqueued.written().await;
        meter.metrics.audit_took(handing_over.elapsed());
        written
    }

    /// Whether the request goes on to the origin.
    pub(super) fn forwards(&self) -> bool {
        self.decided
            .as_ref()
            .is_some_and(|decided| decided.judgement.decision.forwards)
    }

    /// Whether robots.txt allows the request, which may go on even where it does not.
    pub(super) fn is_allowed(&self) -> bool {
        self.decided
            .as_ref()
            .is_some_and(|decided| decided.judgement.decision.verdict == Verdict::Allow)
    }

    /// What the request is for, once that is decided on.
    pub(super) fn target(&self) -> Option<&Target> {
        self.decided.as_ref().map(|decided| &decided.target)
    }

    /// The value of `Robots-Decision`, once there is a decision.
    pub(super) fn decision_field(&self) -> Option<String> {
        self.decided
            .as_ref()
            .map(|decided| self.with_grounds(decided, |grounds| grounds.field()))
    }

    /// The refusal, once there is a decision.
    pub(super) fn refusal(&self, request: &HeaderMap) -> Option<Answer> {
        let config = &self.generation.config;
        self.decided.as_ref().map(|decided| {
            self.with_grounds(decided, |grounds| {
                Answer::refusal(grounds, request, &config.refusals, &config.proxy.name)
            })
        })
    }

    /// The answer from the copy of the robots.txt to the bot's own request for it, where the copy was looked up and can be
    /// one. The request is not forwarded then.
    pub(super) fn copy(&mut self, request: &HeaderMap) -> Option<Answer> {
        let decided = self.decided.as_ref()?;
        let lookup = decided.judgement.lookup.as_ref()?;
        let config = &self.generation.config;
        let field = (config.proxy.annotate_allowed).then(|| self.decision_field()).flatten();
        let copied = Copied::of(lookup, &self.generation.policy, SystemTime::now())?;
        self.from_copy = true;
        Some(Answer::copied(&copied, request, field, &config.proxy.name))
    }

    /// The answer to something that went wrong, which the log will name.
    pub(super) fn problem(&mut self, problem: &Problem<'_>, request: &HeaderMap) -> Answer {
        self.failed = Some(problem.for_log());
        Answer::problem(problem, request, &self.generation.config.proxy.name)
    }

    /// The answer where nothing was decided, for no reason of the site's.
    pub(super) fn no_decision(&mut self, error: NoDecision, arrival: &Arrival, request: &HeaderMap) -> Answer {
        let problem = match error {
            NoDecision::Lookup(LookupError::TooManyFetches) => {
                arrival.visit.came_over(Limit::ClientFetches, arrival.client);
                Problem::Limit(Limit::ClientFetches)
            }
            NoDecision::Lookup(LookupError::NotLogged) => {
                let output = self.generation.audit.output();
                seldom!(error, %error, output, id = self.id(), "a request was not forwarded");
                Problem::Audit
            }
            NoDecision::Overloaded => {
                seldom!(warn, client = %arrival.client, "a request was refused: {error}");
                Problem::Overloaded
            }
        };
        self.problem(&problem, request)
    }

    /// Notes a fault that nobody can be told of any more.
    pub(super) fn note_fault(&mut self, fault: &Fault) {
        self.failed.get_or_insert_with(|| Problem::Fault(fault).for_log());
    }

    /// Notes that the client was silent for too long.
    pub(super) fn note_client_slow(&mut self) {
        self.failed.get_or_insert_with(|| Problem::Slow.for_log());
    }

    /// Notes that the client took no bytes of the response for too long.
    pub(super) fn note_client_full(&mut self) {
        self.failed.get_or_insert_with(|| {
            (
                ProxyError::ConnectionWriteTimeout,
                "the client did not take the response in time".to_owned(),
            )
        });
    }

    /// Notes that nothing passed for too long.
    pub(super) fn note_idle(&mut self) {
        self.failed
            .get_or_insert_with(|| (ProxyError::Idle, "nothing passed for too long".to_owned()));
    }

    /// Notes that the tunnel's or the WebSocket's time was over.
    pub(super) fn note_old(&mut self) {
        self.failed
            .get_or_insert_with(|| (ProxyError::Lifetime, "it lasted as long as it may".to_owned()));
    }

    /// Notes what of the client's was ambiguous.
    pub(super) fn note_request_error(&mut self, what: String) {
        self.failed.get_or_insert((ProxyError::HttpRequestError, what));
    }

    /// Whether the client left before the end.
    pub(super) fn client_is_gone(&self) -> bool {
        self.failed
            .as_ref()
            .is_some_and(|(error, _)| *error == ProxyError::ClientGone)
    }

    /// Notes that the client went away before the end.
    pub(super) fn note_client_gone(&mut self) {
        self.failed.get_or_insert_with(|| {
            (
                ProxyError::ClientGone,
                "the client closed or reset the connection before the end".to_owned(),
            )
        });
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Logs the end. Does nothing for a request that no decision was made on.
    pub(super) async fn complete(&mut self, end: End) {
        if let Some(line) = self.completion_line(&end) {
            let audit = self.generation.audit.clone();
            // Room is waited for, so that a slow disk slows requests down; but not for ever.
            if audit.append(&line).await.is_err() {
                audit.append_now(&line);
            }
        }
        self.count(&end);
        self.completed = true;
    }

    fn count(&self, end: &End) {
        let error = self.failed.as_ref().map(|(error, _)| *error);
        let outcome = match error {
            _ if self.is_own => Outcome::Own,
            None if self.from_copy => Outcome::Copy,
            None if self.forwards() => Outcome::Forwarded,
            None if self.decided.is_some() => Outcome::Refused,
            _ => Outcome::Error,
        };
        self.generation.meter.metrics.ended(&Ended {
            method: self.method,
            outcome,
            status: end.status,
            error,
            bytes_in: end.bytes_in.unwrap_or(0),
            bytes_out: end.bytes_out.unwrap_or(0),
            took: self.tunnel.is_none().then(|| self.elapsed()),
        });
    }

    /// Counts it as open from now on.
    pub(super) fn becomes(&mut self, tunnel: Tunnel) {
        self.tunnel = Some(self.generation.meter.metrics.tunnel_opened(tunnel));
    }

    pub(super) fn id(&self) -> &str {
        // A UUID's text form is ASCII.
        std::str::from_utf8(&self.id).unwrap_or_default()
    }

    /// The reading that was decided on and the path as it has it, where that is not the one as sent.
    fn read_as(&self, decided: &Decided) -> Option<(Reading, Vec<u8>)> {
        let reading = decided
            .judgement
            .decision
            .reading
            .filter(|reading| *reading != Reading::Sent)?;
        let readings = readings(
            decided.target.decided_path(),
            self.generation.config.robots.strict_paths,
        );
        Some((reading, readings.text(reading).into_owned()))
    }

    fn with_grounds<T>(&self, decided: &Decided, f: impl FnOnce(&Grounds<'_>) -> T) -> T {
        let policy = &self.generation.policy;
        let rule = decided.judgement.rule(policy);
        let error = decided.judgement.robots_error(policy);
        let text = rule.as_ref().map(|rule| plain(&rule.text, MAX_TEXT));
        let group = decided.group.as_deref().filter(|_| rule.is_some());
        let read_as = self.read_as(decided).and_then(|(reading, path)| {
            let path = String::from_utf8_lossy(&path);
            Some(format!("{}: {}", reading.phrase()?, plain(&path, MAX_TEXT)))
        });
        f(&Grounds {
            decision: &decided.judgement.decision,
            rule: text.as_deref(),
            line: rule.as_ref().map(|rule| rule.line),
            group: group.map(|group| plain(group, MAX_TEXT)).as_deref(),
            read_as: read_as.as_deref(),
            robots_url: &decided.robots_url,
            robots_error: error.as_deref(),
            id: self.id(),
            challenge: decided.challenge,
            retry_after: decided.judgement.retry_after(policy),
        })
    }
}

impl Drop for Exchange {
    /// An exchange that is cut off, by the end of the program or by a fault in it, has an end in
    /// the log too.
    fn drop(&mut self) {
        if self.completed {
            return;
        }
        self.failed.get_or_insert_with(|| {
            (
                ProxyError::Aborted,
                "robotgate stopped before the exchange had ended".to_owned(),
            )
        });
        let end = End {
            status: self.status,
            ..End::default()
        };
        self.count(&end);
        if let Some(line) = self.completion_line(&end) {
            self.generation.audit.append_now(&line);
        }
    }
}
