//! Fetches robots.txt and `tdmrep.json` files. Logs each fetch before any decision is based on it.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Instant, SystemTime},
};

use async_trait::async_trait;

use super::{
    changes::{Answered, ChangeNotes, RobotsChange},
    seen_texts::SeenTexts,
};
use crate::{
    audit::{
        AuditLog, FetchFields, Instance, Json, Line, Recent, RedactQuery, Redirect, Reserved, RobotsRecord,
        SharedRecord, StateFields,
    },
    config::Config,
    copy::{AnswerKind, Fetched, LastAnswer, OriginState, Policy, RobotsCopy, Sha256, SiteDocument},
    evidence::{Evidence, SeenText, Sighting},
    fetch::{Fetch, FetchPermit, Fetcher, FinishedFetch, Learned, LookupError, Requester, SharedCopy, Traced},
    fleet::Fleet,
    metrics::{FetchResult, Metrics},
    origin::{Origin, Target},
    pacer::{Pacer, SharedPacer},
    ratelimited::ratelimited,
    text::{Timestamp, micros, plain, plain_message},
};

pub(super) struct LoggedFetcher {
    pub(super) fetcher: Fetcher,
    pub(super) audit: Arc<AuditLog>,
    pub(super) metrics: Arc<Metrics>,
    /// The pacer does not delay fetches, but a fetch delays the bots' next requests to the site.
    pub(super) pacer: Option<SharedPacer>,
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) evidence: Option<Arc<Evidence>>,
    pub(super) evidence_required: bool,
    pub(super) redact_query: RedactQuery,
    pub(super) config: u64,
    pub(super) seen_texts: Arc<SeenTexts>,
    /// The configuration by which `changes` decides recent requests again.
    pub(super) settings: Arc<Config>,
    pub(super) recent: Arc<Recent>,
    pub(super) instance: Instance,
    pub(super) changes: Arc<ChangeNotes>,
}

#[async_trait]
impl Fetch for LoggedFetcher {
    type Reservation = Reserved;

    fn enter(&self, requester: Requester) -> Result<FetchPermit, LookupError> {
        self.fetcher.enter(requester)
    }

    async fn reserve(&self) -> Result<Reserved, LookupError> {
        self.check_evidence()?;
        let reservation = self.audit.reserve(LINE).await;
        reservation.map_err(|_| LookupError::NotLogged)
    }

    async fn fetch(
        &self,
        permit: &FetchPermit,
        document: &'static SiteDocument,
        origin: &Origin,
        etag: Option<&str>,
    ) -> Traced {
        let Some(pacer) = &self.pacer else {
            return self.fetcher.trace(permit, document, origin, etag).await;
        };
        permit.turn().await;
        let began = Pacer::now();
        pacer.note_request(origin);
        let traced = self.fetcher.trace(permit, document, origin, etag).await;
        note_pace(pacer, document, origin, &traced, began);
        traced
    }

    async fn store_evidence(&self, copy: &RobotsCopy) -> Result<(), LookupError> {
        let Some(evidence) = &self.evidence else {
            return Ok(());
        };
        let stored = evidence.put(copy.sha256, copy.robots.body()).await;
        match stored {
            Err(_) if self.evidence_required => Err(LookupError::NotStored),
            // The evidence store logs its failures itself.
            _ => Ok(()),
        }
    }

    fn check_evidence(&self) -> Result<(), LookupError> {
        let evidence = self.evidence.as_ref().filter(|_| self.evidence_required);
        match evidence.is_some_and(|evidence| evidence.is_failing()) {
            true => Err(LookupError::NotStored),
            false => Ok(()),
        }
    }

    fn finished(&self, finished: &FinishedFetch<'_>, reservation: Reserved) {
        let result = FetchResult::from(&finished.traced.fetched);
        let line = match *finished.document == SiteDocument::TDMREP {
            true => {
                self.metrics.fetched_tdmrep(result);
                self.tdmrep_line(finished)
            }
            false => {
                self.metrics.fetched(result, finished.traced.took);
                self.line(finished)
            }
        };
        reservation.append(&line);
    }

    fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.fleet.as_ref()
    }

    fn took_shared_copy(&self, shared: &SharedCopy<'_>, reservation: Reserved) {
        let line = match *shared.document == SiteDocument::TDMREP {
            true => self.tdmrep_shared_line(shared),
            false => self.shared_line(shared),
        };
        reservation.append(&line);
    }

    fn learned(&self, learned: &Learned<'_>) {
        if *learned.document != SiteDocument::ROBOTS_TXT {
            return;
        }
        // A failed fetch does not say whether the robots.txt changed.
        let Some(after) = learned
            .after
            .last_answer()
            .filter(|_| learned.after.failure().is_none())
        else {
            return;
        };
        let before = learned.before.last_answer();
        let changed_from = before.filter(|before| digest(before) != digest(&after));
        if let Some(evidence) = &self.evidence {
            let seen = |answer: LastAnswer<'_>| sighting(learned.origin, &answer);
            evidence.saw(changed_from.map(seen), seen(after));
        }
        let Some(before) = changed_from else { return };
        let answered = |answer: LastAnswer<'_>| Answered {
            copy: answer.copy.cloned(),
            status: answer.status,
            fetched: answer.fetched,
        };
        self.changes.note(RobotsChange {
            origin: learned.origin.clone(),
            before: answered(before),
            after: answered(after),
            is_shared: learned.after.is_shared(),
            audit: self.audit.clone(),
            metrics: self.metrics.clone(),
            recent: self.recent.clone(),
            config: self.settings.clone(),
            generation: self.config,
            instance: self.instance,
        });
    }
}

// === impl LoggedFetcher ===

impl LoggedFetcher {
    fn line(&self, finished: &FinishedFetch<'_>) -> Line {
        let FinishedFetch {
            origin, traced, after, ..
        } = *finished;
        let error = error_of(traced, after);
        if let Some(error) = &error {
            ratelimited!(info, %origin, %error, "the robots.txt could not be fetched");
        }
        RobotsRecord {
            time: Timestamp(finished.at),
            origin: &origin.to_string(),
            robots_url: &origin.robots_url(),
            redirects: self.fetch_fields(traced, error),
            held: self.state_fields(origin, [finished.before, after], finished.at, finished.policy),
        }
        .line()
    }

    fn shared_line(&self, shared: &SharedCopy<'_>) -> Line {
        let SharedCopy { origin, after, .. } = *shared;
        SharedRecord {
            time: Timestamp(shared.at),
            origin: &origin.to_string(),
            fetched: after.last_fetch().map(Timestamp),
            held: self.state_fields(origin, [shared.before, after], shared.at, shared.policy),
        }
        .line()
    }

    pub(super) fn fetch_fields(&self, traced: &Traced, error: Option<String>) -> FetchFields<'static> {
        let redirects = traced.redirects().map(|(status, to)| Redirect {
            status,
            to: plain(&self.redact_query.url(Cow::Borrowed(&to.url)), MAX_URL)
                .into_owned()
                .into(),
            upstream: to.upstream.map(|address| address.to_string()),
        });
        FetchFields {
            redirects: Json(redirects.collect()),
            status: traced.status(),
            upstream: traced.upstream().map(|address| address.to_string()),
            bytes: traced.bytes(),
            duration_us: Some(micros(traced.took)),
            error: error.map(|error| plain_message(&error, MAX_ERROR).into_owned()),
        }
    }

    fn state_fields(
        &self,
        origin: &Origin,
        [before, after]: [&OriginState; 2],
        at: SystemTime,
        policy: &Policy,
    ) -> StateFields<'_> {
        let (held, holds) = (before.answer(at, policy), after.answer(at, policy));
        let held_sha256 = held.copy().or(before.current()).map(|copy| copy.sha256);
        let robots_sha256 = holds.copy().map(|copy| copy.sha256);
        StateFields {
            held: before.is_known().then(|| held.holds().as_str()),
            // If the first fetch was cut off, robotgate knows nothing, and decisions treat the robots.txt as
            // unreachable.
            holds: match after.is_known() {
                true => holds.holds().as_str(),
                false => AnswerKind::Unreachable.as_str(),
            },
            held_sha256,
            robots_sha256,
            new_text: self.seen_texts.note(origin, held_sha256, robots_sha256),
            robots_expires: after.source_fetch(at, policy).expires.map(Timestamp),
            failing_since: after.failing_since().map(Timestamp),
            profile: policy.profile.as_str(),
            config: self.config,
            instance: self.instance.as_str(),
        }
    }
}

/// Returns what went wrong in a fetch, or `None` if the site sent a valid response, such as the file or a 404.
pub(super) fn error_of(traced: &Traced, after: &OriginState) -> Option<String> {
    match &traced.fetched {
        Fetched::Failed(failure) => Some(failure.error.to_string()),
        Fetched::TooManyRedirects { .. } => Some("it redirects too often".to_owned()),
        Fetched::Response(_) | Fetched::NotModified { .. } => after.failure().map(|failure| failure.error.to_string()),
    }
}

fn sighting(origin: &Origin, answer: &LastAnswer<'_>) -> Sighting {
    Sighting {
        origin: origin.to_string().into(),
        text: answer.copy.map(|copy| SeenText {
            sha256: copy.sha256,
            // This does not fail, because the size of a robots.txt is limited.
            bytes: u32::try_from(copy.robots.body().len()).unwrap_or(u32::MAX),
        }),
        status: answer.status,
        at: answer.fetched,
    }
}

fn digest(answer: &LastAnswer<'_>) -> Option<Sha256> {
    answer.copy.map(|copy| copy.sha256)
}

/// Counts a fetch as a request to `origin`. If the fetch ended with a 429 or 503, pauses requests to the site that sent
/// this status. This can be another site, to which `origin` redirected. But if the redirect led to another file than
/// the `document` of that site, pauses requests to `origin` instead, so that `origin` cannot slow down that site by a
/// redirect.
fn note_pace(pacer: &SharedPacer, document: &SiteDocument, origin: &Origin, traced: &Traced, began: Instant) {
    // Note the request again, so that the pace counts from the end of the fetch: connecting may have taken a while.
    pacer.note_request(origin);
    if let Fetched::Response(received) = &traced.fetched
        && matches!(received.status, 429 | 503)
    {
        let redirected = traced.redirects().filter_map(|(_, to)| Target::parse(&to.url).ok());
        let last = redirected.last().filter(|last| last.path == document.path.as_bytes());
        let busy = last.as_ref().map_or(origin, |last| &last.origin);
        pacer.note_busy(busy, began, received.retry_after);
    }
}

/// Approximate size of a fetch's line in the log, in bytes. robotgate reserves this room before a fetch.
const LINE: usize = 424;
const MAX_URL: usize = 2 * 1024;
const MAX_ERROR: usize = 512;
