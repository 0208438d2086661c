//! Metric labels, each with a fixed list of values.

use std::{
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::sharded::ShardedCounters;
use crate::{
    bot::Enforcement,
    copy::{FetchError, Fetched, NetworkError},
    decision::{Reason, Verdict},
    text::words,
    trust::RejectionKind,
    upstream::ProxyError,
    usage::{Purpose, Vocabulary},
};

pub(super) trait Label: Copy + 'static {
    const ALL: &'static [Self];
    const COUNT: usize = Self::ALL.len();

    fn as_str(self) -> &'static str;
    fn index(self) -> usize;
}

#[derive(Debug)]
pub(super) struct LabelCounts<L> {
    counters: ShardedCounters,
    label: PhantomData<L>,
}

#[derive(Debug)]
pub(super) struct Gauges<L> {
    gauges: Box<[Arc<AtomicU64>]>,
    label: PhantomData<L>,
}

/// Adds 1 to a gauge until this guard is dropped.
#[derive(Debug)]
pub struct GaugeGuard(Arc<AtomicU64>);

macro_rules! impl_label {
    ($($name:ty),+) => {$(
        impl Label for $name {
            const ALL: &'static [Self] = &<$name>::ALL;

            fn as_str(self) -> &'static str {
                <$name>::as_str(self)
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    )+

    #[cfg(test)]
    #[test]
    fn every_value_of_a_label_has_its_own_index_and_word() {
        $(tests::check::<$name>();)+
    }};
}

impl_label!(
    Verdict,
    Reason,
    Enforcement,
    ProxyError,
    RejectionKind,
    Method,
    Outcome,
    Class,
    Listener,
    Tunnel,
    FetchResult,
    ChangeEffect,
    Purpose,
    Vocabulary
);

words! {
    /// A request's method (RFC 9110 §9).
    pub enum Method {
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        Put = "PUT",
        Delete = "DELETE",
        Patch = "PATCH",
        Options = "OPTIONS",
        Connect = "CONNECT",
        Other = "other",
    }
}

words! {
    /// What happened to a request.
    pub enum Outcome {
        /// The request was forwarded to the origin, which responded.
        Forwarded = "forwarded",
        /// The decision refused the request.
        Refused = "refused",
        /// The request was for a robots.txt, and robotgate answered it from its own copy (`robots.serve-copies`).
        Copy = "copy",
        /// The request was for a page of robotgate itself.
        InternalSite = "own",
        /// The request failed before or after the decision.
        Error = "error",
    }
}

words! {
    /// The class of a response's status, such as `2xx` (RFC 9110 §15).
    pub enum Class {
        Informational = "1xx",
        Successful = "2xx",
        Redirection = "3xx",
        ClientError = "4xx",
        ServerError = "5xx",
    }
}

words! {
    /// A kind of listener, by the protocol that its clients speak first.
    pub enum Listener {
        Http = "http",
        Tls = "tls",
    }
}

words! {
    /// A kind of connection that can last longer than an ordinary request and its response.
    pub enum Tunnel {
        /// A CONNECT that robotgate intercepts: it decides each request in it.
        Intercept = "intercept",
        /// A CONNECT whose bytes robotgate forwards without looking at them.
        Blind = "blind",
        Websocket = "websocket",
    }
}

words! {
    /// The result of a fetch of a robots.txt or a `tdmrep.json`.
    pub enum FetchResult {
        Successful = "2xx",
        /// The site says that the copy which robotgate has is still current.
        NotModified = "304",
        /// There were too many redirects, or a loop of them.
        RedirectLoop = "3xx-loop",
        /// A redirect has no usable target.
        BadRedirect = "3xx-bad",
        ClientError = "4xx",
        TooManyRequests = "429",
        ServerError = "5xx",
        /// Any other status, and 206, which makes no sense as a response to a request without a `Range` field.
        OtherStatus = "other",
        Dns = "dns",
        Connect = "connect",
        Tls = "tls",
        Timeout = "timeout",
        /// The response was incomplete or unreadable.
        Broken = "broken",
        /// Bots must not reach the site or the target of its redirect.
        Prohibited = "prohibited",
        /// The fetch was slow. robotgate ended it to make room for other fetches.
        GaveWay = "gave-way",
        /// robotgate itself failed.
        Internal = "internal",
    }
}

words! {
    /// How a changed robots.txt would decide the recent requests to its site.
    pub enum ChangeEffect {
        /// It would deny some requests that were allowed, and allow none that were denied.
        Stricter = "stricter",
        /// It would allow some requests that were denied, and deny none that were allowed.
        Looser = "looser",
        Both = "both",
        /// The rules are the same, or all recent requests would be decided as before.
        None = "none",
        /// robotgate did not compare the files. Or it found no difference, but there were no recent requests, or it
        /// could not decide some of them again.
        Unknown = "unknown",
    }
}

// === impl Method ===

impl From<&http::Method> for Method {
    fn from(method: &http::Method) -> Self {
        match *method {
            http::Method::GET => Self::Get,
            http::Method::HEAD => Self::Head,
            http::Method::POST => Self::Post,
            http::Method::PUT => Self::Put,
            http::Method::DELETE => Self::Delete,
            http::Method::PATCH => Self::Patch,
            http::Method::OPTIONS => Self::Options,
            http::Method::CONNECT => Self::Connect,
            _ => Self::Other,
        }
    }
}

// === impl Class ===

impl Class {
    pub(super) fn of(status: u16) -> Option<Self> {
        Self::ALL.get(usize::from(status / 100).checked_sub(1)?).copied()
    }
}

// === impl FetchResult ===

impl From<&Fetched> for FetchResult {
    fn from(fetched: &Fetched) -> Self {
        match fetched {
            Fetched::Response(received) => Self::of_status(received.status),
            Fetched::NotModified { .. } => Self::NotModified,
            Fetched::TooManyRedirects { .. } => Self::RedirectLoop,
            Fetched::Failed(failure) => Self::of_error(&failure.error),
        }
    }
}

impl FetchResult {
    fn of_status(status: u16) -> Self {
        match status {
            // A 206 answers a Range field, which the request did not have.
            206 => Self::OtherStatus,
            200..=299 => Self::Successful,
            429 => Self::TooManyRequests,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::OtherStatus,
        }
    }

    fn of_error(error: &FetchError) -> Self {
        match error {
            FetchError::Status(status) => Self::of_status(*status),
            FetchError::Redirect(_) => Self::BadRedirect,
            FetchError::Network { kind, .. } => Self::of_network(*kind),
            FetchError::Timeout(_) => Self::Timeout,
            FetchError::Coding(_) => Self::Broken,
            FetchError::GaveWay => Self::GaveWay,
            FetchError::Prohibited(_) => Self::Prohibited,
            // Of these errors, a fetch can end only with `CutOff`.
            FetchError::CutOff | FetchError::Earlier(_) | FetchError::Pending | FetchError::Queued => Self::Internal,
        }
    }

    fn of_network(kind: NetworkError) -> Self {
        match kind {
            NetworkError::Dns => Self::Dns,
            NetworkError::Connect => Self::Connect,
            NetworkError::Tls => Self::Tls,
            NetworkError::Timeout => Self::Timeout,
            NetworkError::Broken => Self::Broken,
            NetworkError::Prohibited => Self::Prohibited,
            NetworkError::Internal => Self::Internal,
        }
    }
}

// === impl LabelCounts ===

impl<L: Label> Default for LabelCounts<L> {
    fn default() -> Self {
        Self {
            counters: ShardedCounters::new(L::COUNT),
            label: PhantomData,
        }
    }
}

impl<L: Label> LabelCounts<L> {
    pub(super) fn add(&self, label: L) {
        self.counters.add(label.index(), 1);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (L, u64)> {
        std::iter::zip(L::ALL.iter().copied(), self.counters.iter())
    }

    pub(super) fn total(&self) -> u64 {
        self.counters.iter().sum()
    }
}

// === impl Gauges ===

impl<L: Label> Default for Gauges<L> {
    fn default() -> Self {
        Self {
            gauges: L::ALL.iter().map(|_| Arc::default()).collect(),
            label: PhantomData,
        }
    }
}

impl<L: Label> Gauges<L> {
    pub(super) fn enter(&self, label: L) -> GaugeGuard {
        let gauge = &self.gauges[label.index()];
        gauge.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(gauge.clone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (L, u64)> {
        std::iter::zip(L::ALL, &self.gauges).map(|(label, gauge)| (*label, gauge.load(Ordering::Relaxed)))
    }

    pub(super) fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

// === impl GaugeGuard ===

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn check<L: Label>() {
        for (index, label) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), index, "{}", label.as_str());
            let same = L::ALL.iter().filter(|other| other.as_str() == label.as_str());
            assert_eq!(same.count(), 1, "{}", label.as_str());
        }
    }

    #[test]
    fn an_invalid_status_has_no_class() {
        let classes = [0, 99, 101, 204, 304, 407, 599, 600, 1000].map(|status| Class::of(status).map(Class::as_str));
        let [one, two, three, four, five] = ["1xx", "2xx", "3xx", "4xx", "5xx"].map(Some);
        assert_eq!(classes, [None, None, one, two, three, four, five, None, None]);
    }
}
