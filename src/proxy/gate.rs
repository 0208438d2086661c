//! Serves one request: identifies the bot, decides, writes the decision to the audit log, and sends the origin's
//! response or a refusal.

mod forward;

use std::time::Duration;

use http::Version;
use pingora_http::RequestHeader;

use self::forward::{Forwarded, forward};
use super::{
    cached_response,
    client::{Client, ClientFault},
    client_connection::ClientConnection,
    clients::RequestGuard,
    context::Context,
    exchange::{EarlyEnd, Exchange, Request},
    fields,
    generation::Generation,
    head, internal_site,
    judge::{self, identify},
    limits::Limit,
    pacing::{Unpaced, wait_for_turn},
    relay::Broken,
    respond::{OwnResponse, Problem},
    target::target_of,
    timer::Timer,
};
use crate::{
    decision::{Question, Reason, Scope},
    metrics::Method,
    origin::asks_for_robots_txt,
    ratelimited::ratelimited,
    wire::Wire,
};

enum Stop {
    Respond(Box<OwnResponse>),
    /// Cut off the response. The client has at most this long to read the part that robotgate already has.
    Cut(Duration),
}

// === impl Stop ===

impl From<OwnResponse> for Stop {
    fn from(response: OwnResponse) -> Self {
        Self::Respond(Box::new(response))
    }
}

/// Serves a request to its end. Returns the connection if another request may follow on it.
pub(super) async fn serve(mut client: Client, context: &Context, timer: &mut Timer) -> Option<Wire> {
    let generation = context.live.generation();
    let mut exchange = Exchange::new(generation.clone(), Method::from(&client.head().method));
    if context.live.is_stopping() {
        client.close_after();
    }
    let served = match admit(&mut client, &mut exchange, &generation, context).await {
        Ok(request_guard) => {
            let _request_guard = request_guard;
            match forward(&mut client, &mut exchange, &generation, timer).await {
                Ok(Forwarded::Complete) => Ok(()),
                Ok(Forwarded::Websocket(server)) => {
                    forward::pass_websocket(client, server, &mut exchange, context).await;
                    exchange.complete().await;
                    return None;
                }
                Err(broken) => Err(stop_broken(broken, &mut client, &mut exchange, context).await),
            }
        }
        Err(stop) => Err(stop),
    };
    exchange.turn = None;
    let within = generation.config.proxy.write_timeout;
    match served {
        Ok(()) => {}
        Err(Stop::Cut(within)) => client.cut(within).await,
        Err(Stop::Respond(answer)) => {
            let status = answer.head.status.as_u16();
            match client.answer(*answer, within).await {
                Ok(()) => exchange.status = Some(status),
                Err(fault) => {
                    note(fault, &mut client, &mut exchange, context);
                    client.cut(Duration::ZERO).await;
                }
            }
        }
    }
    client.linger().await;
    exchange.passed.set(client.bytes());
    if client.is_http2() && exchange.client_is_gone() {
        context.connection.count_reset();
    }
    exchange.complete().await;
    client.into_next()
}

/// Decides a request and logs the decision. The error says how robotgate ends a request that it does not forward.
async fn admit(
    client: &mut Client,
    exchange: &mut Exchange,
    generation: &Generation,
    context: &Context,
) -> Result<RequestGuard, Stop> {
    let head = client.head();
    let connection = &context.connection;
    let request_guard = connection
        .guard
        .begin_request(&generation.config.proxy.limits)
        .map_err(|limit| {
            connection.guard.count_exceeded(limit, connection.client);
            exchange.problem(&Problem::Limit(limit), &head.headers)
        })?;
    let (address, outer_connect) = (connection.client, connection.outer_connect.as_deref());
    if fields::has_passed(&head.headers, &generation.config.proxy.name) {
        ratelimited!(warn, client = %connection.client_for_log(), "refused a request whose Via field already has this proxy's name: it has passed through this proxy before, or through another with the same proxy.name");
        return Err(exchange.problem(&Problem::Loop, &head.headers).into());
    }
    if head.version == Version::HTTP_2
        && let Err(error) = generation.config.proxy.head.check_http2(head)
    {
        match error.limit() {
            Some(limit) => connection.guard.count_exceeded(limit, address),
            None => {
                generation.meter.metrics.malformed();
                head::log_malformed(connection, &error);
            }
        }
        return Err(exchange.problem(&Problem::Head(&error), &head.headers).into());
    }
    let mut target = target_of(head, outer_connect).map_err(|error| {
        generation.meter.metrics.malformed();
        head::log_malformed(connection, &error);
        exchange.problem(&Problem::Target(&error), &head.headers)
    })?;
    target.names_user = client.names_user();
    if target.origin.is_internal_site() {
        tracing::debug!(client = %connection.client_for_log(), method = %head.method, "a request for the proxy's own pages");
        exchange.is_internal_site = true;
        let answer = internal_site::answer(head, &target, connection, generation);
        let answer = answer.unwrap_or_else(|error| exchange.problem(&Problem::InternalSite(&error), &head.headers));
        return Err(answer.into());
    }
    let (_, subject) = identify(&generation.config, &head.headers, connection);
    let requester = connection.guard.requester(&generation.config.proxy.limits);
    let question = Question {
        subject,
        scope: Scope::Path {
            alone: asks_for_robots_txt(&target.path)
                && fields::ask_for_the_target_alone(head, &generation.config.proxy.strip),
        },
        target,
        terms: generation.terms,
    };
    let decided = judge::decide(generation, requester, question, &mut exchange.tally).await;
    let decision = decided.map_err(|error| exchange.no_decision(error, connection, &head.headers))?;
    let wants_copy = generation.config.robots.serve_copies
        && decision.reason == Reason::RobotsFile
        && cached_response::can_answer(head);
    let decision = match wants_copy {
        true => judge::with_copy(generation, requester, decision, &mut exchange.tally).await,
        false => decision,
    };
    let is_copied = || wants_copy && cached_response::is_there(&decision);
    let mut is_gone = false;
    let decision = match generation.pacer.is_some() && !is_copied() {
        false => decision,
        true => {
            let gone = std::future::poll_fn(|cx| client.poll_gone(cx));
            // Boxed to keep the future small for requests that are not paced.
            match Box::pin(wait_for_turn(exchange, requester, decision, gone)).await {
                Ok(decision) => decision,
                Err(Unpaced::NoDecision(error)) => {
                    return Err(exchange.no_decision(error, connection, &client.head().headers).into());
                }
                Err(Unpaced::Gone(decision)) => {
                    is_gone = true;
                    *decision
                }
            }
        }
    };
    let head = client.head();
    match exchange.decide(&for_log(head, connection), decision).await {
        Ok(_) if is_gone => {
            note(ClientFault::Gone, client, exchange, context);
            Err(Stop::Cut(Duration::ZERO))
        }
        Ok(Some(refusal)) => Err(refusal.into()),
        Ok(None) => {
            let copy = wants_copy.then(|| exchange.copy(&head.headers)).flatten();
            copy.map_or(Ok(request_guard), |copy| Err(copy.into()))
        }
        Err(error) => {
            let output = generation.audit.output();
            ratelimited!(error, %error, output, id = exchange.id(), "a request was answered with a 503");
            Err(exchange.problem(&Problem::Audit, &head.headers).into())
        }
    }
}

fn for_log<'a>(head: &'a RequestHeader, connection: &ClientConnection) -> Request<'a> {
    Request {
        method: &head.method,
        headers: &head.headers,
        client: connection.client,
        inside: connection.outer_connect.is_some(),
    }
}

async fn stop_broken(broken: Broken, client: &mut Client, exchange: &mut Exchange, context: &Context) -> Stop {
    let fault;
    let problem = match broken {
        Broken::Withdrawn(withdrawal) => {
            let request = for_log(client.head(), &context.connection);
            // Boxed to keep the future small for requests whose response the bot may get.
            match Box::pin(exchange.withdraw(*withdrawal, &request)).await {
                Ok(refusal) => return refusal.into(),
                Err(error) => {
                    let output = exchange.generation.audit.output();
                    ratelimited!(error, %error, output, id = exchange.id(), "a response was withheld, but the audit log cannot record this; the client got a 503");
                    Problem::Audit
                }
            }
        }
        Broken::Client(ClientFault::Malformed) => Problem::Request,
        Broken::Client(fault) => {
            note(fault, client, exchange, context);
            return Stop::Cut(Duration::ZERO);
        }
        Broken::ClientSlow => {
            context
                .connection
                .guard
                .count_exceeded(Limit::BodyTimeout, context.connection.client);
            Problem::Slow
        }
        Broken::Server(of_server) => {
            fault = of_server;
            Problem::Fault(&fault)
        }
    };
    let answer = exchange.problem(&problem, &client.head().headers);
    match exchange.status {
        None => Stop::Respond(Box::new(answer)),
        Some(_) => Stop::Cut(exchange.generation.config.proxy.write_timeout),
    }
}

fn note(fault: ClientFault, client: &mut Client, exchange: &mut Exchange, context: &Context) {
    match fault {
        ClientFault::Full => exchange.note_end(EarlyEnd::CLIENT_FULL),
        ClientFault::Gone | ClientFault::Malformed => {
            // If the connection broke but the client did not end it, robotgate cut it off.
            match client.has_lost_connection() && !context.client_has_ended() {
                true => exchange.note_end(EarlyEnd::ABORTED),
                false => exchange.note_end(EarlyEnd::CLIENT_GONE),
            }
        }
    }
}
