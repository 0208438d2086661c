//! Brings together what a decision needs, and remembers on what it was made.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

use crate::{
    bot::{Identity, Presented, Proof, Shown},
    config::{Config, HttpsMode, Unverifiable},
    copy::{Answer, Ground, Lookup, Policy},
    decision::{Asker, Decision, Reason},
    egress::Prohibited,
    fetch::{LookupError, Name, Requester},
    origin::{Origin, Readings, Scheme},
    robots::Rule,
    store::Query,
    text::plain_message,
};

use super::{
    arrival::{Arrival, Through},
    generation::Generation,
    live::Live,
};

/// A decision and the copy that it was made on.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) decision: Decision,
    /// `None` where no copy was asked for.
    pub(crate) lookup: Option<Lookup>,
    /// Why bots may not go there, where that was clear without a copy.
    prohibited: Option<Prohibited>,
}

/// Why nothing was decided on a request. It is answered with an error, and nothing goes upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDecision {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Too many decisions that take long wait for their turn.
    #[error("the proxy has too many long decisions to make; try again later")]
    Overloaded,
}

/// Who asks and what proves it, found out once for a request.
pub(super) fn identify<'a>(
    config: &'a Config,
    headers: &'a HeaderMap,
    arrival: &'a Arrival,
) -> (Proof<'a>, Identity<'a>) {
    let proof = config.bots.prove(&Presented {
        credential: shown(headers, arrival.through.as_deref()),
        certificate: arrival.certificate(&config.proxy, SystemTime::now()),
        address: Some(arrival.client.ip()),
    });
    let fields = headers.get_all(header::USER_AGENT);
    let fields = fields.iter().map(http::HeaderValue::as_bytes);
    let identity = config.bots.identify_by(fields, &proof, config.identity.required);
    (proof, identity)
}

/// The credential that a request presents. What stands inside a CONNECT is for the origin's side, if for anybody.
fn shown<'a>(headers: &'a HeaderMap, through: Option<&'a Through>) -> Shown<'a> {
    if let Some(through) = through {
        return through.voucher.as_ref().map_or(Shown::Nothing, Shown::Inherited);
    }
    let mut fields = headers.get_all(header::PROXY_AUTHORIZATION).iter();
    match (fields.next(), fields.next()) {
        (None, _) => Shown::Nothing,
        (Some(field), None) => Shown::Field(field.as_bytes()),
        (Some(_), Some(_)) => Shown::Several,
    }
}

// === impl Judgement ===

impl Judgement {
    /// Decides on a request for a path of `origin`. What has to be fetched for it counts for `requester`, and so does a
    /// decision that takes long, which waits for its turn.
    ///
    /// # Errors
    /// The robots.txt is needed and no fetch can begin, or there was no turn in time.
    pub(super) async fn on_path(
        live: &Live,
        generation: &Generation,
        requester: Requester,
        asker: Asker<'_>,
        origin: &Origin,
        readings: &Readings<'_>,
    ) -> Result<Self, NoDecision> {
        if let Err(prohibited) = generation.egress.screen(&origin.host, origin.port) {
            return Ok(Self::prohibited(asker, prohibited));
        }
        if let Some(decision) = Decision::without_copy(asker, readings) {
            return Ok(Self::without_copy(decision));
        }
        let lookup = look_up(generation, requester, origin).await?;
        let answer = lookup.answer(&generation.policy);
        let decision = match Decision::at_once(asker, answer, readings) {
            Some(decision) => decision,
            None => {
                let turn = tokio::time::timeout(MAX_WAIT, live.long_decisions.take(requester.name));
                let _turn = turn.await.map_err(|_| NoDecision::Overloaded)?;
                tokio::task::block_in_place(|| Decision::on_path(asker, answer, readings))
            }
        };
        Ok(Self {
            decision,
            lookup: Some(lookup),
            prohibited: None,
        })
    }

    /// Looks up the copy for a request that was allowed without one. It goes on without where there is none to be had.
    pub(super) async fn with_copy(self, generation: &Generation, requester: Requester, origin: &Origin) -> Self {
        Self {
            lookup: look_up(generation, requester, origin).await.ok(),
            ..self
        }
    }

    /// Decides on a CONNECT to `origin` that is not intercepted, which is a tunnel where the configuration has some;
    /// `is_let_through` where it lets those to this host through.
    ///
    /// # Errors
    /// As [`on_path`](Self::on_path).
    pub(super) async fn on_connect(
        generation: &Generation,
        requester: Requester,
        asker: Asker<'_>,
        origin: &Origin,
        is_let_through: bool,
    ) -> Result<Self, LookupError> {
        let https = &generation.config.https;
        if !is_let_through && https.mode == HttpsMode::Refuse {
            return Ok(Self::without_copy(Decision::connect_refused(asker)));
        }
        let forwards = is_let_through || https.unverifiable == Unverifiable::Allow;
        Self::on_tunnel(generation, requester, asker, origin, forwards).await
    }

    /// Decides as the proxy would on a client's request for a URL that goes the usual way: in the clear or inside an
    /// interception by its path, else by the CONNECT that it needs. Nothing is logged but a fetch, which counts for the
    /// operators.
    ///
    /// # Errors
    /// As of [`on_path`](Self::on_path).
    pub(crate) async fn foresee(
        live: &Live,
        generation: &Generation,
        asker: Asker<'_>,
        origin: &Origin,
        readings: &Readings<'_>,
    ) -> Result<Self, NoDecision> {
        let requester = Requester {
            name: Name::Operators,
            max_fetches: generation.config.proxy.limits.client_fetches,
        };
        let exception = generation
            .config
            .https
            .tunnel_exception(&origin.host.to_string(), SystemTime::now());
        let is_let_through = exception.is_some();
        if origin.scheme == Scheme::Http || (!is_let_through && generation.leaves.is_some()) {
            return Self::on_path(live, generation, requester, asker, origin, readings).await;
        }
        let asker = asker.of_connect(is_let_through);
        Ok(match generation.egress.screen(&origin.host, origin.port) {
            Err(prohibited) => Self::prohibited(asker, prohibited),
            Ok(()) => Self::on_connect(generation, requester, asker, origin, is_let_through).await?,
        })
    }

    /// Decides on a tunnel to `origin`.
    async fn on_tunnel(
        generation: &Generation,
        requester: Requester,
        asker: Asker<'_>,
        origin: &Origin,
        unverifiable_forwards: bool,
    ) -> Result<Self, LookupError> {
        if let Some(decision) = Decision::of_asker(asker) {
            return Ok(Self::without_copy(decision));
        }
        let lookup = look_up(generation, requester, origin).await?;
        let answer = lookup.answer(&generation.policy);
        Ok(Self {
            decision: Decision::on_tunnel(asker, answer, unverifiable_forwards),
            lookup: Some(lookup),
            prohibited: None,
        })
    }

    /// A decision that no copy had to be fetched for.
    pub(super) fn without_copy(decision: Decision) -> Self {
        Self {
            decision,
            lookup: None,
            prohibited: None,
        }
    }

    /// The decision on somewhere that bots may not go.
    pub(super) fn prohibited(asker: Asker<'_>, prohibited: Prohibited) -> Self {
        let decision = Decision::egress(asker);
        Self {
            prohibited: (decision.reason == Reason::Egress).then_some(prohibited),
            ..Self::without_copy(decision)
        }
    }

    /// What held of the robots.txt.
    pub(crate) fn answer(&self, policy: &Policy) -> Option<Answer<'_>> {
        self.lookup.as_ref().map(|lookup| lookup.answer(policy))
    }

    /// The fetch that the decision rests on.
    pub(crate) fn ground(&self, policy: &Policy) -> Ground {
        let lookup = self.lookup.as_ref();
        lookup.map_or_else(Ground::default, |lookup| lookup.ground(policy))
    }

    /// Why the robots.txt could not be had or was not asked for, where that decided.
    pub(crate) fn robots_error(&self, policy: &Policy) -> Option<String> {
        if let Some(prohibited) = &self.prohibited {
            return Some(prohibited.to_string());
        }
        let failure = self.answer(policy)?.failure()?;
        Some(plain_message(&failure.error.to_string(), MAX_ERROR).into_owned())
    }

    /// In how many seconds a request that was refused for now should come again (`Retry-After`, RFC 9110 §10.2.3), 1 at
    /// the least. `None` where the refusal does not end by itself.
    pub(crate) fn retry_after(&self, policy: &Policy) -> Option<u64> {
        let lookup = self
            .lookup
            .as_ref()
            .filter(|_| self.decision.reason == Reason::Unreachable)?;
        let left = match lookup.ground(policy).expires {
            Some(expires) => expires.duration_since(lookup.at).unwrap_or(Duration::ZERO),
            // The fetch goes on; nobody knows for how long.
            None => WHILE_PENDING,
        };
        // Rounded up: a request that comes too early is refused again.
        Some((left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1))
    }

    /// The rule that decided.
    pub(crate) fn rule(&self, policy: &Policy) -> Option<Rule<'_>> {
        let copy = self.answer(policy)?.copy()?;
        Some(copy.robots.rule(self.decision.rule?))
    }
}

async fn look_up(generation: &Generation, requester: Requester, origin: &Origin) -> Result<Lookup, LookupError> {
    let query = Query {
        origin,
        fetcher: &generation.fetcher,
        policy: &generation.policy,
        requester,
    };
    generation.store.lookup(&query, generation.config.robots.wait).await
}

/// How long a request waits for its turn at a long decision.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// When to come back while a robots.txt is being fetched, which for most takes no longer.
const WHILE_PENDING: Duration = Duration::from_secs(5);
/// Bytes of the text of an error.
const MAX_ERROR: usize = 512;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        bot::Enforcement,
        copy::{CacheStatus, Failure, FetchError, Freshness, Meaning, OriginState},
        decision::Verdict,
    };

    /// What is said of a request for an origin whose robots.txt failed with a 503 at `at - ago`, for the time being.
    fn retry_after(reason: Reason, ago: Duration, pending: bool) -> Option<u64> {
        let (policy, at) = (
            Policy::default(),
            SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000),
        );
        let failed = Meaning::Failed(Failure::from(FetchError::Status(503)));
        let state = OriginState::unknown().after(failed, 503, Freshness::default(), at - ago, 0.0, &policy);
        let judgement = Judgement {
            decision: Decision {
                verdict: Verdict::Deny,
                reason,
                rule: None,
                reading: None,
                enforcement: Enforcement::Enforce,
                forwards: false,
            },
            lookup: Some(Lookup {
                state: Arc::new(state),
                status: CacheStatus::Hit,
                waited: Duration::ZERO,
                at,
                pending,
            }),
            prohibited: None,
        };
        judgement.retry_after(&policy)
    }

    #[test]
    fn a_refusal_ends_when_the_robots_txt_is_asked_for_again() {
        let unreachable = |ago| retry_after(Reason::Unreachable, ago, false);
        assert_eq!(unreachable(Duration::ZERO), Some(300));
        assert_eq!(unreachable(Duration::from_secs(100)), Some(200));
        assert_eq!(unreachable(Duration::from_millis(100_001)), Some(200), "rounded up");
        assert_eq!(unreachable(Duration::from_secs(300)), Some(1), "never at once");
        assert_eq!(unreachable(Duration::from_secs(400)), Some(1));
        assert_eq!(
            retry_after(Reason::Unreachable, Duration::ZERO, true),
            Some(5),
            "it is on its way"
        );
        assert_eq!(
            retry_after(Reason::Egress, Duration::ZERO, false),
            None,
            "it does not end by itself"
        );
    }
}
