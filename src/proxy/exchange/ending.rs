//! Logs and counts how an exchange ended.

use std::time::SystemTime;

use super::Exchange;
use crate::{
    audit::{Completion, Json, Line},
    metrics::{ExchangeEnd, Outcome},
    proxy::respond::Problem,
    text::{Timestamp, micros},
    upstream::ProxyError,
};

#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct EarlyEnd(ProxyError, &'static str);

#[derive(Debug)]
pub(in crate::proxy) struct Failure {
    pub(super) error: ProxyError,
    pub(super) detail: String,
    /// Whether the site or the network on the way to it is the cause. `error` alone does not say this: for example, a
    /// site and a client that do not read in time cause the same `error`.
    of_site: bool,
}

// === impl Failure ===

impl Failure {
    pub(super) fn of(problem: &Problem<'_>) -> Self {
        let (error, detail) = problem.for_log();
        Self {
            error,
            detail,
            of_site: matches!(problem, Problem::Fault(_)) && error.is_of_site(),
        }
    }

    pub(super) fn not_of_site(error: ProxyError, detail: String) -> Self {
        Self {
            error,
            detail,
            of_site: false,
        }
    }
}

// === impl EarlyEnd ===

impl EarlyEnd {
    pub(in crate::proxy) const ABORTED: Self = Self(
        ProxyError::Aborted,
        "robotgate stopped, or cut off the client, before the exchange had ended",
    );
    pub(in crate::proxy) const CLIENT_FULL: Self = Self(
        ProxyError::ConnectionWriteTimeout,
        "the client did not read the response in time",
    );
    pub(in crate::proxy) const CLIENT_GONE: Self = Self(
        ProxyError::ClientGone,
        "the client closed the connection or cancelled the request before the end",
    );
    pub(in crate::proxy) const IDLE: Self =
        Self(ProxyError::Idle, "no bytes were sent in either direction for too long");
    pub(in crate::proxy) const LIFETIME_OVER: Self = Self(
        ProxyError::Lifetime,
        "the tunnel or WebSocket reached its maximum duration (proxy.tunnel-timeout)",
    );
}

// === impl Exchange ===

impl Exchange {
    /// Notes why the exchange ended early, unless an earlier cause is known.
    pub(in crate::proxy) fn note_end(&mut self, EarlyEnd(error, detail): EarlyEnd) {
        self.failed
            .get_or_insert_with(|| Failure::not_of_site(error, detail.to_owned()));
    }

    pub(super) fn count_decision(&mut self) {
        if let Some(decided) = &mut self.decided {
            decided.count(&self.generation.meter, self.tally.as_deref());
        }
    }

    pub(in crate::proxy) async fn complete(&mut self) {
        if let Some(line) = self.completion_line() {
            let audit = &self.generation.audit;
            // Wait for room in the log, so that a slow disk delays requests instead of losing lines. If the wait takes
            // too long, submit the line anyway.
            if audit.append(&line).await.is_err() {
                audit.append_now(&line);
            }
        }
        self.count();
        self.completed = true;
    }

    fn count(&mut self) {
        self.count_decision();
        self.count_for_site();
        let error = self.failed.as_ref().map(|failure| failure.error);
        let outcome = match error {
            _ if self.is_internal_site => Outcome::InternalSite,
            None if self.from_copy => Outcome::Copy,
            None if self.forwards() => Outcome::Forwarded,
            None if self.decided.is_some() => Outcome::Refused,
            _ => Outcome::Error,
        };
        let (bytes_in, bytes_out) = self.passed.both();
        self.generation.meter.metrics.ended(&ExchangeEnd {
            method: self.method,
            outcome,
            status: self.status,
            error,
            bytes_in,
            bytes_out,
            took: self.tunnel.is_none().then(|| self.elapsed()),
        });
    }

    fn count_for_site(&self) {
        let lookup = self.decision().and_then(|decision| decision.lookup.as_ref());
        let Some((lookup, tally)) = lookup.zip(self.tally.as_ref()) else {
            return;
        };
        if !self.forwards() || self.from_copy {
            return;
        }
        let site_failed = self.site_has_error || self.failed.as_ref().is_some_and(|failure| failure.of_site);
        match self.timings.first_byte {
            _ if site_failed => tally.failed(),
            Some(first_byte) => tally.answered(first_byte.saturating_sub(lookup.waited + self.pace_wait)),
            // A CONNECT tunnel has no first byte of a response. Count the time to connect instead.
            None if self.tunnel.is_some() => tally.answered(self.timings.connect.unwrap_or_default()),
            // The site sent no response, but not by its own fault: for example, the client left first.
            None => {}
        }
    }

    fn completion_line(&self) -> Option<Line> {
        let lookup = self.decision()?.lookup.as_ref();
        let (bytes_in, bytes_out) = self.passed.both();
        let completion = Completion {
            time: Timestamp(SystemTime::now()),
            id: self.id(),
            status: self.status,
            error: self.failed.as_ref().map(|failure| failure.error.as_str()),
            error_detail: self.failed.as_ref().map(|failure| failure.detail.as_str()),
            upstream: self.upstream,
            bytes_in,
            bytes_out,
            duration_us: micros(self.elapsed()),
            pace_wait_us: micros(self.pace_wait),
            robots_wait_us: lookup.map_or(0, |lookup| micros(lookup.waited)),
            connect_us: self.timings.connect.map(micros),
            first_byte_us: self.timings.first_byte.map(micros),
            usage: (!self.said.is_empty()).then_some(Json(&*self.said)),
        };
        Some(completion.line())
    }
}

impl Drop for Exchange {
    /// Logs and counts an exchange that is dropped before its end, because robotgate cuts it off or panics.
    fn drop(&mut self) {
        if self.completed {
            return;
        }
        self.note_end(EarlyEnd::ABORTED);
        self.count();
        if let Some(line) = self.completion_line() {
            self.generation.audit.append_now(&line);
        }
    }
}
