//! Gets the decision on a request: identifies the bot, checks whether bots may connect to the origin, and looks up the
//! copy. [`crate::decision`] decides.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

use super::{
    client_connection::{ClientConnection, OuterConnect},
    generation::Generation,
};
use crate::{
    bot::{Presented, PresentedCredential, Proof},
    config::Config,
    copy::Lookup,
    decision::{Begun, Decision, Question, Subject},
    fetch::{LookupError, Name, Requester},
    origin::Origin,
    store::Query,
};

/// Why a request could not be decided. The client gets an error, and nothing is sent upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDecision {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Too many decisions that take long are waiting.
    #[error("too many long decisions are waiting; try again later")]
    Overloaded,
}

/// Returns who sends a request, and the proof. Call this only once for each request.
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

/// Returns the credential of a request. Inside a CONNECT, this is the CONNECT's credential; fields in the tunnel are
/// ignored.
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

/// Decides a request. Fetches for the decision are counted for `requester`. A decision that takes long has to wait for
/// the turn of `requester`. Logs only fetches.
///
/// # Errors
/// Fails if the decision needs the robots.txt and no fetch can start, or if a long decision waits for too long.
pub(crate) async fn decide(
    generation: &Generation,
    requester: Requester,
    question: Question,
) -> Result<Decision, NoDecision> {
    let prohibited = screen(generation, &question.target.origin);
    let undecided = match question.begin(prohibited) {
        Begun::Decided(decision) => return Ok(decision),
        Begun::NeedsCopy(undecided) => undecided,
    };
    let lookup = look_up(generation, requester, undecided.origin()).await?;
    let (undecided, lookup) = match undecided.decide_at_once(lookup) {
        Ok(decision) => return Ok(decision),
        Err(both) => *both,
    };
    let turn = tokio::time::timeout(MAX_WAIT, generation.long_decisions.take(requester.name));
    let _turn = turn.await.map_err(|_| NoDecision::Overloaded)?;
    Ok(tokio::task::block_in_place(|| undecided.decide(lookup)))
}

/// Returns why bots may not connect to `origin`, as far as that is known before its name is resolved. `None` if they
/// may.
pub(super) fn screen(generation: &Generation, origin: &Origin) -> Option<String> {
    let screened = generation.egress.screen(&origin.host, origin.port);
    screened.err().map(|prohibited| prohibited.to_string())
}

/// Looks up the copy for a request that was allowed without one, and adds it to the decision. If the lookup fails,
/// returns the decision unchanged.
pub(super) async fn with_copy(generation: &Generation, requester: Requester, decision: Decision) -> Decision {
    match look_up(generation, requester, &decision.target().origin).await {
        Ok(lookup) => decision.with_lookup(lookup),
        Err(_) => decision,
    }
}

async fn look_up(generation: &Generation, requester: Requester, origin: &Origin) -> Result<Lookup, LookupError> {
    let query = Query {
        origin,
        fetcher: &generation.fetcher,
        policy: &generation.terms.policy,
        requester,
    };
    generation.store.lookup(&query, generation.config.robots.wait).await
}

/// Returns the requester for operators who ask how a request would be decided. One limit applies to all their fetches
/// together.
pub(crate) fn operators(config: &Config) -> Requester {
    Requester {
        name: Name::Operators,
        max_fetches: config.proxy.limits.client_fetches,
    }
}

/// Maximum time for which a request waits for a decision that takes long to start.
const MAX_WAIT: Duration = Duration::from_secs(5);
