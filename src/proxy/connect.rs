//! What a CONNECT gets: an interception, a blind tunnel, or a refusal (`https.mode`).

use std::{sync::Arc, time::SystemTime};

use http::{Method, header};
use tokio::io::AsyncWriteExt as _;

use super::{
    client_stream::ClientStream,
    connection::{self, Context},
    exchange::{End, Exchange, Request},
    generation::Generation,
    head::{ConnectHead, Head},
    intercept,
    judge::{Judgement, identify},
    live::Live,
    own::OwnError,
    respond::{Answer, Problem},
    tunnel,
};
use crate::{
    bot::Voucher,
    decision::{Asker, Decision, Reason},
    egress::Prohibited,
    metrics,
    origin::{Origin, Scheme, Target},
    seldom::seldom,
};

/// Serves a CONNECT, which `head` is, and everything that comes through it.
pub(super) async fn serve(stream: ClientStream, mut head: Head, context: &Context) {
    // The caller looks for one.
    let Some(connect) = head.connect.take() else {
        return;
    };
    let generation = context.live.generation();
    let origin = Origin::new(Scheme::Https, connect.authority.clone());
    if origin.is_own() {
        let mut exchange = Exchange::new(generation, metrics::Method::Connect);
        exchange.is_own = true;
        let answer = exchange.problem(&Problem::Own(&OwnError::PlainHttp), &connect.headers);
        return answer_and_close(stream, &answer, &mut exchange).await;
    }
    let exception = generation
        .config
        .https
        .tunnel_exception(&origin.host.to_string(), SystemTime::now())
        .map(|exception| exception.reason.clone());
    let screened = generation.egress.screen(&origin.host, origin.port);
    // There are leaves where the mode is to intercept.
    match (&exception, &generation.leaves) {
        (None, Some(leaves)) => match vouch(&generation, &connect, &origin, screened, context).await {
            Ok((voucher, refused)) => {
                let user_agent = connect.headers.get(header::USER_AGENT).cloned();
                intercept::serve(stream, origin, voucher, user_agent, refused, leaves, context).await;
            }
            Err((answer, mut exchange)) => answer_and_close(stream, &answer, &mut exchange).await,
        },
        _ => {
            let mut exchange = Exchange::new(generation.clone(), metrics::Method::Connect);
            let reason = exception.as_deref();
            // A tunnel is a request that is under way for as long as it lasts.
            let limits = &generation.config.proxy.limits;
            let _asking = match context.arrival.visit.ask(limits) {
                Ok(asking) => asking,
                Err(limit) => {
                    context.arrival.visit.came_over(limit, context.arrival.client);
                    let answer = exchange.problem(&Problem::Limit(limit), &connect.headers);
                    return answer_and_close(stream, &answer, &mut exchange).await;
                }
            };
            match admit(&mut exchange, &connect, origin, screened, reason, context).await {
                Ok(()) => tunnel::serve(stream, exchange, &connect.headers, context).await,
                Err(answer) => answer_and_close(stream, &answer, &mut exchange).await,
            }
        }
    }
}

/// What requests inside an interception inherit. A CONNECT that does not prove what it has to is refused, since inside
/// there is no way left to prove it; everything else is for the requests inside to show.
///
/// A CONNECT to somewhere that bots may not go is decided on and logged as refused, and comes back in an exchange of its
/// own. It is intercepted all the same: most clients show nothing of a refused CONNECT, and all of them show the
/// refusals inside. Nothing is ever connected to.
async fn vouch(
    generation: &Arc<Generation>,
    connect: &ConnectHead,
    origin: &Origin,
    screened: Result<(), Prohibited>,
    context: &Context,
) -> Result<(Option<Voucher>, Option<Exchange>), (Answer, Exchange)> {
    let (proof, identity) = identify(&generation.config, &connect.headers, &context.arrival);
    let asker = Asker::new(&identity, generation.config.identity.unidentified);
    let judgement = match (Decision::of_connect(asker), screened) {
        (None, Ok(())) => return Ok((proof.voucher(), None)),
        (Some(decision), _) => Judgement::without_copy(decision),
        (None, Err(prohibited)) => Judgement::prohibited(asker, prohibited),
    };
    let reason = judgement.decision.reason;
    let mut exchange = Exchange::new(generation.clone(), metrics::Method::Connect);
    let request = Request {
        method: &Method::CONNECT,
        headers: &connect.headers,
        client: Some(context.arrival.client),
        identity: &identity,
        proof: &proof,
        inside: false,
        asker,
        exception: None,
    };
    let target = Target::of_connect(origin.clone());
    let answer = settle(&mut exchange, &context.live, &request, target, judgement).await;
    match answer {
        // Nothing has failed unless the log takes nothing.
        Err(_) if reason == Reason::Egress && exchange.failed.is_none() => Ok((proof.voucher(), Some(exchange))),
        Err(answer) => Err((answer, exchange)),
        // What was decided is a refusal.
        Ok(()) => Err((exchange.problem(&Problem::Request, &connect.headers), exchange)),
    }
}

/// Decides on a CONNECT as a whole and logs it. `Ok` where a tunnel may be opened.
async fn admit(
    exchange: &mut Exchange,
    connect: &ConnectHead,
    origin: Origin,
    screened: Result<(), Prohibited>,
    exception: Option<&str>,
    context: &Context,
) -> Result<(), Answer> {
    let generation: &Generation = &exchange.generation.clone();
    let (proof, identity) = identify(&generation.config, &connect.headers, &context.arrival);
    let asker = Asker::new(&identity, generation.config.identity.unidentified);
    let asker = asker.of_connect(exception.is_some());
    let judged = match screened {
        Err(prohibited) => Ok(Judgement::prohibited(asker, prohibited)),
        Ok(()) => {
            let requester = context.arrival.visit.requester(&generation.config.proxy.limits);
            Judgement::on_connect(generation, requester, asker, &origin, exception.is_some()).await
        }
    };
    let judgement = judged.map_err(|error| exchange.no_decision(error.into(), &context.arrival, &connect.headers))?;
    let target = Target::of_connect(origin);
    let request = Request {
        method: &Method::CONNECT,
        headers: &connect.headers,
        client: Some(context.arrival.client),
        identity: &identity,
        proof: &proof,
        inside: false,
        asker,
        exception,
    };
    settle(exchange, &context.live, &request, target, judgement).await
}

/// Logs what was decided on a CONNECT. `Ok` where it may be opened.
async fn settle(
    exchange: &mut Exchange,
    live: &Live,
    request: &Request<'_>,
    target: Target,
    judgement: Judgement,
) -> Result<(), Answer> {
    if let Err(error) = exchange.decide(live, request, target, judgement).await {
        let output = exchange.generation.audit.output();
        seldom!(error, %error, output, id = exchange.id(), "a tunnel was not opened");
        return Err(exchange.problem(&Problem::Audit, request.headers));
    }
    if exchange.forwards() {
        return Ok(());
    }
    match exchange.refusal(request.headers) {
        Some(refusal) => Err(refusal),
        // A decision was just taken.
        None => Err(exchange.problem(&Problem::Request, request.headers)),
    }
}

/// Answers a CONNECT with something other than a tunnel. What the client sent after it is for a
/// tunnel that there is not, so the connection closes.
pub(super) async fn answer_and_close(mut stream: ClientStream, answer: &Answer, exchange: &mut Exchange) {
    let sent = async {
        stream.write_all(&answer.to_http1(true)).await?;
        stream.flush().await
    };
    let status = sent.await.is_ok().then(|| answer.head.status.as_u16());
    exchange
        .complete(End {
            status,
            bytes_in: Some(0),
            bytes_out: Some(answer.body.len() as u64),
        })
        .await;
    // The client may have closed first.
    let _ = stream.shutdown().await;
    connection::linger(&mut stream).await;
}

/// The answer to a CONNECT that opens a tunnel: a status line and an empty line, no more, since
/// some clients read no further (RFC 9110 §9.3.6).
pub(super) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
