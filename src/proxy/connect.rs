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

pub(super) async fn serve(mut stream: ClientStream, mut head: Head, context: &Context) {
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
    // `leaves` is `None` unless `https.mode` is `intercept`.
    match (&exception, &generation.leaves) {
        (None, Some(leaves)) => match check_proof(&generation, &connect, &origin, context).await {
            Ok((credential_record, refused)) => {
                let user_agent = connect.headers.get(header::USER_AGENT).cloned();
                intercept::serve(stream, origin, credential_record, user_agent, refused, leaves, context).await;
            }
            Err((answer, mut exchange)) => answer_and_close(stream, &answer, &mut exchange).await,
        },
        _ => {
            let mut exchange = Exchange::new(generation.clone(), metrics::Method::Connect);
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

/// Checks the proof in a CONNECT, because the requests in the tunnel cannot present another one. If the destination is
/// prohibited, also returns the exchange of the logged refusal (see [`intercept::serve`]).
async fn check_proof(
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
        // `exchange.failed` is set if the audit log could not be written. Such a CONNECT is not intercepted.
        Err(_) if reason == Reason::Egress && exchange.failed.is_none() => {
            Ok((proof.credential_record(), Some(exchange)))
        }
        Err(answer) => Err((answer, exchange)),
        // Unreachable: `before_interception` only refuses, and `settle` returns an error for a refusal.
        Ok(()) => Err((exchange.problem(&Problem::Request, &connect.headers), exchange)),
    }
}

/// Decides a CONNECT that is not intercepted, waits for the site's pace, and logs the decision. The error is the
/// response that refuses the tunnel, or `None` if the client has left.
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
            let _ = settle(exchange, connect, *decision, context).await;
            return Err(None);
        }
    };
    settle(exchange, connect, decision, context).await.map_err(Some)
}

/// Waits until the client closes the connection, and keeps the bytes that it sends. After `MAX_EARLY` bytes, stops
/// reading and never returns.
async fn gone(stream: &mut ClientStream) {
    while stream.early().len() < MAX_EARLY {
        if !matches!(stream.read_early().await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}

/// Logs the decision on a CONNECT. The error is the response that refuses it.
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
            ratelimited!(error, %error, output, id = exchange.id(), "a CONNECT was answered with a 503");
            Err(exchange.problem(&Problem::Audit, request.headers))
        }
    }
}

const MAX_EARLY: usize = 16 * 1024;
