//! Responds to a CONNECT: with an interception, a blind tunnel, or a refusal (`https.mode`).

pub(super) mod answer;

use std::{sync::Arc, time::SystemTime};

use self::answer::answer_and_close;
use super::{
    client_stream::ClientStream,
    context::Context,
    exchange::{EarlyEnd, Exchange, Request},
    generation::Generation,
    head::{ConnectHead, Head},
    intercept,
    judge::{self, identify},
    pacing::{Unpaced, wait_for_turn},
    respond::{InternalSiteError, OwnResponse, Problem},
    tunnel,
};
use crate::{
    bot::CredentialRecord,
    decision::{Decision, Question, Reason, Scope},
    metrics,
    origin::{Origin, Scheme, Target},
    ratelimited::ratelimited,
};
use http::{Method, header};

/// Serves the CONNECT in `head`, and all requests that come through it.
pub(super) async fn serve(mut stream: ClientStream, mut head: Head, context: &Context) {
    // The caller has checked that `head` is a CONNECT.
    let Some(connect) = head.connect.take() else {
        return;
    };
    let generation = context.live.generation();
    let origin = Origin::new(Scheme::Https, connect.authority.clone());
    if origin.is_internal_site() {
        let mut exchange = Exchange::new(generation, metrics::Method::Connect);
        exchange.is_internal_site = true;
        let answer = exchange.problem(&Problem::InternalSite(&InternalSiteError::PlainHttp), &connect.headers);
        return answer_and_close(stream, &answer, &mut exchange).await;
    }
    let exception = generation
        .config
        .https
        .tunnel_exception(&origin.host.to_string(), SystemTime::now())
        .map(|exception| exception.reason.clone());
    // `leaves` issues the certificates for intercepted hosts. It is `None` unless `https.mode` is `intercept`.
    match (&exception, &generation.leaves) {
        (None, Some(leaves)) => match vouch(&generation, &connect, &origin, context).await {
            Ok((credential_record, refused)) => {
                let user_agent = connect.headers.get(header::USER_AGENT).cloned();
                intercept::serve(stream, origin, credential_record, user_agent, refused, leaves, context).await;
            }
            Err((answer, mut exchange)) => answer_and_close(stream, &answer, &mut exchange).await,
        },
        _ => {
            let mut exchange = Exchange::new(generation.clone(), metrics::Method::Connect);
            // An open tunnel counts as one request of the client.
            let limits = &generation.config.proxy.limits;
            let _request_guard = match context.connection.guard.begin_request(limits) {
                Ok(request_guard) => request_guard,
                Err(limit) => {
                    context
                        .connection
                        .guard
                        .count_exceeded(limit, context.connection.client);
                    let answer = exchange.problem(&Problem::Limit(limit), &connect.headers);
                    return answer_and_close(stream, &answer, &mut exchange).await;
                }
            };
            match admit(&mut stream, &mut exchange, &connect, origin, exception, context).await {
                Ok(()) => tunnel::serve(stream, exchange, &connect.headers, context).await,
                Err(Some(answer)) => answer_and_close(stream, &answer, &mut exchange).await,
                Err(None) => {
                    exchange.note_end(EarlyEnd::CLIENT_GONE);
                    exchange.complete().await;
                }
            }
        }
    }
}

/// Returns the credential of the CONNECT. robotgate uses it to identify the bot for all requests in the intercepted
/// tunnel. Refuses a CONNECT that lacks a required credential, because the requests in the tunnel cannot present one.
/// robotgate decides everything else for each request in the tunnel.
///
/// A CONNECT to a destination that bots must not reach is logged as refused, but robotgate intercepts it nevertheless.
/// Only in this case, the exchange of the CONNECT is returned too. robotgate never connects to such a destination. It
/// intercepts the CONNECT so that clients show why they are refused: most do not show the text of a refused CONNECT,
/// but all show refusals in the tunnel.
async fn vouch(
    generation: &Arc<Generation>,
    connect: &ConnectHead,
    origin: &Origin,
    context: &Context,
) -> Result<(Option<CredentialRecord>, Option<Exchange>), (OwnResponse, Exchange)> {
    let (proof, subject) = identify(&generation.config, &connect.headers, &context.connection);
    let question = Question {
        subject,
        target: Target::of_connect(origin.clone()),
        scope: Scope::Tunnel { exception: None },
        terms: generation.terms,
    };
    let Some(decision) = question.before_interception(judge::screen(generation, origin)) else {
        return Ok((proof.credential_record(), None));
    };
    let reason = decision.reason;
    let mut exchange = Exchange::new(generation.clone(), metrics::Method::Connect);
    let answer = settle(&mut exchange, connect, decision, context).await;
    match answer {
        // `exchange.failed` is `Some` if the decision could not be written to the audit log. Such a CONNECT is not
        // intercepted.
        Err(_) if reason == Reason::Egress && exchange.failed.is_none() => {
            Ok((proof.credential_record(), Some(exchange)))
        }
        Err(answer) => Err((answer, exchange)),
        // Unreachable: `before_interception` decides only to refuse, and `settle` returns an error for a refusal.
        Ok(()) => Err((exchange.problem(&Problem::Request, &connect.headers), exchange)),
    }
}

/// Decides a CONNECT that robotgate does not intercept, waits until the site's pace allows it, and logs the decision.
/// Returns `Ok` if a tunnel may be opened. The error is the response that refuses the tunnel, or `None` if the client
/// has left.
async fn admit(
    stream: &mut ClientStream,
    exchange: &mut Exchange,
    connect: &ConnectHead,
    origin: Origin,
    exception: Option<Arc<str>>,
    context: &Context,
) -> Result<(), Option<OwnResponse>> {
    let generation: &Generation = &exchange.generation.clone();
    let (_, subject) = identify(&generation.config, &connect.headers, &context.connection);
    let question = Question {
        subject,
        target: Target::of_connect(origin),
        scope: Scope::Tunnel { exception },
        terms: generation.terms,
    };
    let requester = context.connection.guard.requester(&generation.config.proxy.limits);
    let decided = match judge::decide(generation, requester, question, &mut exchange.tally).await {
        Ok(decision) if generation.pacer.is_none() => Ok(decision),
        Ok(decision) => Box::pin(wait_for_turn(exchange, requester, decision, gone(stream))).await,
        Err(error) => Err(Unpaced::NoDecision(error)),
    };
    let decision = match decided {
        Ok(decision) => decision,
        Err(Unpaced::NoDecision(error)) => {
            return Err(Some(exchange.no_decision(error, &context.connection, &connect.headers)));
        }
        Err(Unpaced::Gone(decision)) => {
            // The client has left. So this only writes the decision to the log, and drops the response.
            let _ = settle(exchange, connect, *decision, context).await;
            return Err(None);
        }
    };
    settle(exchange, connect, decision, context).await.map_err(Some)
}

/// Waits until the client closes the connection, and keeps the bytes that the client sends in the meantime. If the
/// client sends `MAX_EARLY` bytes or more, stops reading and never returns.
async fn gone(stream: &mut ClientStream) {
    while stream.early().len() < MAX_EARLY {
        if !matches!(stream.read_early().await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}

/// Logs the decision on a CONNECT. Returns `Ok` if robotgate is to accept the CONNECT. The error is the response that
/// refuses it.
async fn settle(
    exchange: &mut Exchange,
    connect: &ConnectHead,
    decision: Decision,
    context: &Context,
) -> Result<(), OwnResponse> {
    let request = Request {
        method: &Method::CONNECT,
        headers: &connect.headers,
        client: context.connection.client,
        inside: false,
    };
    match exchange.decide(&request, decision).await {
        Ok(None) => Ok(()),
        Ok(Some(refusal)) => Err(refusal),
        Err(error) => {
            let output = exchange.generation.audit.output();
            ratelimited!(error, %error, output, id = exchange.id(), "a tunnel was not opened");
            Err(exchange.problem(&Problem::Audit, request.headers))
        }
    }
}

/// While a CONNECT waits for the site's pace, robotgate reads about this many bytes from the client, and reads the rest
/// later.
const MAX_EARLY: usize = 16 * 1024;
