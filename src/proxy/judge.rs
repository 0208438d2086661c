//! Gets the decision on a request: identifies the bot, checks whether bots may connect to the origin, and looks up the
//! robots.txt copy. It passes all that to [`crate::decision`], which decides.

use std::{
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
    copy::Lookup,
    decision::{AT_ONCE, BUDGET, Begun, Decision, Question, Subject},
    fetch::{LookupError, Name, Requester},
    origin::Origin,
    store::{Query, Store, Tally},
    usage::Vocabulary,
};

/// Why a request could not be decided. The client gets an error, and robotgate sends nothing to the origin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDecision {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Too many decisions that take long are waiting.
    #[error("the proxy is busy with requests whose robots.txt takes long to check; try again later")]
    Overloaded,
}

/// Returns who sends a request, and by what credential that is proved. Call this only once for each request, because
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

/// Returns the credential of a request. For a request inside a CONNECT, this is the credential of the CONNECT, and the
/// request's own fields are ignored.
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

/// Decides a request. The only log lines that this writes are those of fetches. Fetches and long decisions count
/// against the limits of `requester`, and a long decision may have to wait for those of others. If the site's
/// robots.txt is looked up, `tally` gets the counts of the site.
///
/// # Errors
/// Fails if the decision needs the robots.txt or the `tdmrep.json` and no fetch can start, or if a long decision waits
/// for too long.
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
    let decision = match undecided.decide_at_once(lookup) {
        Ok(decision) => decision,
        Err(both) => {
            let (undecided, lookup) = *both;
            at_length(generation, requester, || undecided.decide(lookup)).await?
        }
    };
    match decision.wants_tdmrep() {
        // Boxed, so that the future stays small for requests that need no `tdmrep.json`.
        true => Box::pin(with_tdmrep(generation, requester, decision)).await,
        false => Ok(decision),
    }
}

/// Decides a question as if `lookup` had found the site's robots.txt, and as if the site had no `tdmrep.json`. Fetches
/// nothing. Blocks while it decides.
pub(crate) fn decide_with(generation: &Generation, question: Question, lookup: Lookup) -> Decision {
    let prohibited = screen(generation, &question.target.origin);
    let decision = match question.begin(prohibited) {
        Begun::Decided(decision) => decision,
        Begun::NeedsCopy(undecided) => undecided.decide(lookup),
    };
    decision.without_tdmrep()
}

/// Decides a question with what is known about the site in memory, even if it has expired. Fetches nothing. `None` if
/// nothing is known.
pub(crate) fn decide_from_memory(generation: &Generation, question: Question) -> Option<Decision> {
    let state = generation.store.held(&question.target.origin)?;
    let at = state.current().map_or_else(SystemTime::now, |copy| copy.fetched);
    let lookup = Lookup::at_once(state, at, &generation.terms.policy);
    lookup
        .state
        .is_known()
        .then(|| decide_with(generation, question, lookup.clone()))
}

/// Completes a decision with the site's `tdmrep.json`. If the site cannot be reached, its last answer counts.
async fn with_tdmrep(
    generation: &Generation,
    requester: Requester,
    mut decision: Decision,
) -> Result<Decision, NoDecision> {
    let store = &generation.tdmrep;
    let can_refuse = generation.terms.usage.can_refuse(&[Vocabulary::Tdmrep]);
    let found = match look_up(store, generation, requester, &decision.target().origin).await {
        Ok((found, _)) => found,
        // What robotgate only reports must never refuse a request.
        Err(_) if !can_refuse => return Ok(decision.without_tdmrep()),
        Err(error) => return Err(error.into()),
    };
    if let Some(lookup) = &mut decision.lookup {
        lookup.waited += found.waited;
    }
    if !found.state.is_known() {
        return Ok(decision.with_pending_tdmrep());
    }
    let copy = found.state.current();
    let Some((file, sha256)) = copy.and_then(|copy| Some((copy.tdmrep.as_deref()?, copy.sha256))) else {
        return Ok(decision.with_tdmrep(None));
    };
    match decision.with_tdmrep_file(file, sha256, AT_ONCE) {
        Ok(decision) => Ok(decision),
        Err(decision) => {
            let unreported = (!can_refuse).then(|| decision.clone());
            let completed = at_length(generation, requester, || {
                let completed = decision.with_tdmrep_file(file, sha256, BUDGET);
                completed.unwrap_or_else(|decision| decision.with_endless_tdmrep(sha256))
            });
            completed
                .await
                .or_else(|error| unreported.map(|decision| decision.without_tdmrep()).ok_or(error))
        }
    }
}

/// Makes a decision that takes long. Only a few of these may run at the same time. They are shared fairly between
/// clients, so this may have to wait.
async fn at_length(
    generation: &Generation,
    requester: Requester,
    decide: impl FnOnce() -> Decision,
) -> Result<Decision, NoDecision> {
    let permit = generation.long_decisions.enter(requester.name, usize::MAX);
    let permit = permit.ok_or(NoDecision::Overloaded)?;
    let turn = tokio::time::timeout(MAX_WAIT, permit.turn()).await;
    turn.map_err(|_| NoDecision::Overloaded)?;
    Ok(tokio::task::block_in_place(decide))
}

/// Returns why bots may not connect to `origin`, as far as robotgate knows that before it resolves the name. Returns
/// `None` if they may.
pub(super) fn screen(generation: &Generation, origin: &Origin) -> Option<String> {
    let screened = generation.egress.screen(origin);
    screened.err().map(|prohibited| prohibited.to_string())
}

/// Looks up the robots.txt copy after a decision that did not need it, and adds it to the decision. robotgate can then
/// answer a bot's request for the robots.txt with the copy. If the lookup fails, returns the decision unchanged.
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

/// Looks up the document of `origin` that `store` keeps, and fetches it first if necessary.
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

/// Returns the requester for operators who ask how a request would be decided. All operators together have one limit
/// for the fetches that this causes.
pub(crate) fn operators(config: &Config) -> Requester {
    Requester {
        name: Name::Operators,
        max_fetches: config.proxy.limits.client_fetches,
    }
}

/// A decision that takes long fails if it has not begun within this time.
const MAX_WAIT: Duration = Duration::from_secs(5);
