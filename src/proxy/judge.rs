//! Brings together what a decision needs, and remembers on what it was made.

use std::{sync::Arc, time::SystemTime};

use http::{HeaderMap, header};
use tokio::sync::Semaphore;

use crate::{
    audit::plain,
    bot::{Bot, Identity, Presented, Proof, Shown},
    cache::{Answer, Ground, Lookup, LookupError, Name, Policy, Query, Requester},
    config::{Config, HttpsMode, Unverifiable},
    decision::{Asker, Decision, Reason},
    egress::Prohibited,
    origin::{Origin, Readings, Scheme},
    robots::Rule,
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
    /// Decides on a request for a path of `origin`. One that takes long waits for one of the `turns`, and what has to be
    /// fetched for it counts for `requester`.
    ///
    /// # Errors
    /// What is known of the origin has to be fetched, and no fetch can begin.
    pub(super) async fn on_path(
        turns: &Arc<Semaphore>,
        generation: &Generation,
        requester: Requester,
        asker: Asker<'_>,
        origin: &Origin,
        readings: &Readings<'_>,
    ) -> Result<Self, LookupError> {
        if let Err(prohibited) = generation.egress.screen(&origin.host, origin.port) {
            return Ok(Self::prohibited(asker, prohibited));
        }
        if let Some(decision) = Decision::without_copy(asker, readings) {
            return Ok(Self::without_copy(decision));
        }
        let lookup = look_up(generation, requester, origin).await?;
        let answer = lookup.answer(&generation.policy);
        let work = answer.copy().map_or(0, |copy| copy.robots.work(readings.sent.len()));
        let decision = match work <= MAX_WORK {
            true => Decision::on_path(asker, answer, readings),
            false => decide_apart(turns, &generation.policy, asker, &lookup, readings).await,
        };
        Ok(Self {
            decision,
            lookup: Some(lookup),
            prohibited: None,
        })
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
    /// As [`on_path`](Self::on_path).
    pub(crate) async fn foresee(
        live: &Live,
        generation: &Generation,
        asker: Asker<'_>,
        origin: &Origin,
        readings: &Readings<'_>,
    ) -> Result<Self, LookupError> {
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
            // So that no bot waits for who only asks.
            return Self::on_path(&live.foreseen, generation, requester, asker, origin, readings).await;
        }
        let asker = asker.of_connect(is_let_through);
        match generation.egress.screen(&origin.host, origin.port) {
            Err(prohibited) => Ok(Self::prohibited(asker, prohibited)),
            Ok(()) => Self::on_connect(generation, requester, asker, origin, is_let_through).await,
        }
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
        Some(plain(&failure.error.to_string(), MAX_ERROR).into_owned())
    }

    /// The rule that decided.
    pub(crate) fn rule(&self, policy: &Policy) -> Option<Rule<'_>> {
        let copy = self.answer(policy)?.copy()?;
        Some(copy.robots.rule(self.decision.rule?))
    }
}

/// Decides off the asynchronous threads where a hostile file and a long path make it a long piece of work. Few do so at
/// a time, since each takes a thread.
async fn decide_apart(
    turns: &Arc<Semaphore>,
    policy: &Policy,
    asker: Asker<'_>,
    lookup: &Lookup,
    readings: &Readings<'_>,
) -> Decision {
    // Who no longer waits for the decision gives its turn back only when it has been made. The turns are never closed.
    let turn = turns.clone().acquire_owned().await;
    let deciding = tokio::task::spawn_blocking({
        let (policy, asker, lookup) = (*policy, Whom::from(asker), lookup.clone());
        let readings: Readings<'static> = Readings {
            sent: readings.sent.to_vec().into(),
            resolved: readings.resolved.clone(),
            upper: readings.upper.clone(),
        };
        move || {
            let _turn = turn;
            Decision::on_path(asker.as_asker(), lookup.answer(&policy), &readings)
        }
    });
    // Where the process is ending, nobody is left to wait.
    let decided = deciding.await.ok();
    decided.unwrap_or_else(|| Decision::on_path(asker, lookup.answer(policy), readings))
}

/// An [`Asker`] of its own.
enum Whom {
    Bot(Box<Bot>),
    Token(String),
    Wildcard,
    Refused(Reason),
}

impl From<Asker<'_>> for Whom {
    fn from(asker: Asker<'_>) -> Self {
        match asker {
            Asker::Bot(bot) => Self::Bot(Box::new(bot.clone())),
            Asker::Token(token) => Self::Token(token.to_owned()),
            Asker::Wildcard => Self::Wildcard,
            Asker::Refused(reason) => Self::Refused(reason),
        }
    }
}

impl Whom {
    fn as_asker(&self) -> Asker<'_> {
        match self {
            Self::Bot(bot) => Asker::Bot(bot),
            Self::Token(token) => Asker::Token(token),
            Self::Wildcard => Asker::Wildcard,
            Self::Refused(reason) => Asker::Refused(*reason),
        }
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

/// Bytes to search for wildcards in that take about a millisecond.
const MAX_WORK: usize = 1 << 19;
/// Bytes of the text of an error.
const MAX_ERROR: usize = 512;
