//! Gets the decision on a request: identifies the bot, checks whether bots may connect to the origin, and looks up the
//! robots.txt copy. [`crate::decision`] then decides.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header};

use super::{
    client_connection::{ClientConnection, OuterConnect},
    generation::Generation,
};
use crate::{
    bot::{Presented, PresentedCredential, Proof},
    config::Config,
    copy::{Lookup, OriginState},
    decision::{Begun, Decision, NeedsTdmrep, Question, Ruled, Subject, Tdmrep},
    fetch::{LookupError, Name, Requester},
    origin::Origin,
    store::{Query, Store, Tally},
    usage::Vocabulary,
};

/// Why a request could not be decided. The client gets an error, and the request is not forwarded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDecision {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The decision takes long, and did not begin within [`MAX_WAIT`] because of other such decisions.
    #[error("the proxy is busy with requests whose robots.txt takes long to check; try again later")]
    Overloaded,
}

/// Returns what the client proves, and which bot sends the request. Call this only once for each request, because
/// checking a secret takes time.
pub(super) fn identify<'a>(
    config: &'a Config,
    headers: &'a HeaderMap,
    connection: &'a ClientConnection,
) -> (Proof<'a>, Subject) {
    let proof = config.bots.prove(&Presented {
        credential: shown(headers, connection.outer_connect.as_deref()),
        certificate: connection.certificate(&config.proxy, SystemTime::now),
        address: Some(connection.client.ip()),
    });
    let fields = headers.get_all(header::USER_AGENT);
    let fields = fields.iter().map(http::HeaderValue::as_bytes);
    let identity = config.bots.identify_by(fields, &proof, config.identity.required);
    let subject = Subject::proven(identity, &proof, &config.bots);
    (proof, subject)
}

/// Returns the credential of a request. Inside a CONNECT, only the credential of the CONNECT counts.
fn shown<'a>(headers: &'a HeaderMap, outer_connect: Option<&'a OuterConnect>) -> PresentedCredential<'a> {
    if let Some(outer_connect) = outer_connect {
        return outer_connect
            .credential_record
            .as_ref()
            .map_or(PresentedCredential::Nothing, PresentedCredential::Inherited);
    }
    let mut fields = headers.get_all(header::PROXY_AUTHORIZATION).iter();
    match (fields.next(), fields.next()) {
        (None, _) => PresentedCredential::Nothing,
        (Some(field), None) => PresentedCredential::Field(field.as_bytes()),
        (Some(_), Some(_)) => PresentedCredential::Several,
    }
}

/// Decides a request, and first fetches the site's robots.txt or `tdmrep.json` if necessary. Logs the fetch, but not
/// the decision.
pub(crate) async fn decide(
    generation: &Generation,
    requester: Requester,
    question: Question,
    tally: &mut Option<Arc<Tally>>,
) -> Result<Decision, NoDecision> {
    let prohibited = screen(generation, &question.target.origin);
    let undecided = match question.begin(prohibited) {
        Begun::Decided(decision) => return Ok(decision),
        Begun::NeedsCopy(undecided) => undecided,
    };
    let (lookup, counts) = look_up(&generation.store, generation, requester, undecided.origin()).await?;
    *tally = Some(counts);
    let ruled = match undecided.decide_at_once(lookup) {
        Ok(ruled) => ruled,
        Err(both) => {
            let (undecided, lookup) = *both;
            run_long(generation, requester, || undecided.decide(lookup)).await?
        }
    };
    match ruled {
        Ruled::Decided(decision) => Ok(decision),
        // Boxed to keep the future small for requests that need no `tdmrep.json`.
        Ruled::NeedsTdmrep(undecided) => Box::pin(with_tdmrep(generation, requester, undecided)).await,
    }
}

/// Decides a question as if `lookup` were the result of looking up the robots.txt, and without the site's
/// `tdmrep.json`. Blocks while it decides.
pub(crate) fn decide_with(generation: &Generation, question: Question, lookup: Lookup) -> Decision {
    let prohibited = screen(generation, &question.target.origin);
    question.decide_with(prohibited, lookup)
}

/// Decides a question by what robotgate has in memory about the site. A copy counts even if it has expired. Returns
/// `None` if nothing is known of the site. Fetches nothing. Blocks while it decides.
pub(crate) fn decide_from_memory(generation: &Generation, question: Question) -> Option<Decision> {
    let origin = question.target.origin.clone();
    let state = generation.store.held(&origin)?;
    let lookup = Lookup::of_held(state, SystemTime::now(), &generation.terms.policy);
    if !lookup.state.is_known() {
        return None;
    }
    let held = generation.tdmrep.held(&origin).filter(|state| state.is_known());
    let tdmrep = match &held {
        Some(state) => tdmrep_of(state),
        None => Tdmrep::NotAsked,
    };
    let Ok(decision) = question.decide(
        screen(generation, &origin),
        |_| Ok::<_, Infallible>(lookup),
        |_| Ok(tdmrep),
    );
    Some(decision)
}

/// Returns the `tdmrep.json` that `state` contains, if any. `state.is_known()` must be true.
fn tdmrep_of(state: &OriginState) -> Tdmrep<'_> {
    let copy = state.current();
    let file = copy.and_then(|copy| Some(Tdmrep::Found(copy.tdmrep.as_deref()?, copy.sha256)));
    file.unwrap_or(Tdmrep::None)
}

/// Completes a decision that also needs the site's `tdmrep.json`. If a new fetch fails, the last fetched file applies.
async fn with_tdmrep(
    generation: &Generation,
    requester: Requester,
    mut undecided: NeedsTdmrep,
) -> Result<Decision, NoDecision> {
    let store = &generation.tdmrep;
    let can_refuse = generation.terms.usage.can_refuse(&[Vocabulary::Tdmrep]);
    let found = match look_up(store, generation, requester, undecided.origin()).await {
        Ok((found, _)) => found,
        // With this configuration, a `tdmrep.json` never causes a refusal, so a failed lookup must not cause a refusal
        // either.
        Err(_) if !can_refuse => return Ok(undecided.complete(Tdmrep::NotAsked)),
        Err(error) => return Err(error.into()),
    };
    undecided.add_wait(found.waited);
    if !found.state.is_known() {
        return Ok(undecided.complete(Tdmrep::Pending));
    }
    let (file, sha256) = match tdmrep_of(&found.state) {
        Tdmrep::Found(file, sha256) => (file, sha256),
        other => return Ok(undecided.complete(other)),
    };
    match undecided.complete_at_once(file, sha256) {
        Ok(decision) => Ok(decision),
        Err(undecided) => {
            let unreported = (!can_refuse).then(|| undecided.clone());
            let file = Tdmrep::Found(file, sha256);
            let completed = run_long(generation, requester, || undecided.complete(file)).await;
            completed.or_else(|error| match unreported {
                Some(undecided) => Ok(undecided.complete(Tdmrep::NotAsked)),
                None => Err(error),
            })
        }
    }
}

/// Calls `decide`, which takes long. If too many such calls run, waits until one of them ends, at most for `MAX_WAIT`.
async fn run_long<T>(
    generation: &Generation,
    requester: Requester,
    decide: impl FnOnce() -> T,
) -> Result<T, NoDecision> {
    let permit = generation.long_decisions.enter(requester.name, usize::MAX);
    let permit = permit.ok_or(NoDecision::Overloaded)?;
    let turn = tokio::time::timeout(MAX_WAIT, permit.turn()).await;
    turn.map_err(|_| NoDecision::Overloaded)?;
    Ok(tokio::task::block_in_place(decide))
}

/// Returns why bots may not connect to `origin`, as far as this is known before its name is resolved.
pub(super) fn screen(generation: &Generation, origin: &Origin) -> Option<String> {
    let screened = generation.egress.screen(origin);
    screened.err().map(|prohibited| prohibited.to_string())
}

/// Adds the robots.txt copy to a decision that did not need it, so that robotgate can answer a bot's own request for
/// the robots.txt. If the lookup fails, returns the decision unchanged.
pub(super) async fn with_copy(
    generation: &Generation,
    requester: Requester,
    decision: Decision,
    tally: &mut Option<Arc<Tally>>,
) -> Decision {
    match look_up(&generation.store, generation, requester, &decision.target().origin).await {
        Ok((lookup, counts)) => {
            *tally = Some(counts);
            decision.with_lookup(lookup)
        }
        Err(_) => decision,
    }
}

async fn look_up(
    store: &Arc<Store>,
    generation: &Generation,
    requester: Requester,
    origin: &Origin,
) -> Result<(Lookup, Arc<Tally>), LookupError> {
    let query = Query {
        origin,
        fetcher: &generation.fetcher,
        policy: &generation.terms.policy,
        requester,
    };
    store.lookup(&query, generation.config.robots.wait).await
}

/// Returns the requester for all operators who ask how robotgate would decide a request. Their fetches share one
/// limit.
pub(crate) fn operators(config: &Config) -> Requester {
    Requester {
        name: Name::Operators,
        max_fetches: config.proxy.limits.client_fetches,
    }
}

const MAX_WAIT: Duration = Duration::from_secs(5);
