//! A blind tunnel: connects to an address that the egress guard has checked, and passes bytes both ways. Other code
//! decides whether to open a tunnel, and logs this decision.

mod hello;
mod pass;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use http::HeaderMap;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use self::hello::{FirstBytes, LONGEST, Opening, asks_again};
pub(super) use self::pass::{Bounds, Count, TunnelEnd, pass};
use super::{
    client_stream::ClientStream,
    connect::answer::{ESTABLISHED, answer_and_close},
    context::Context,
    exchange::{EarlyEnd, Exchange},
    limits::Limit,
    respond::Problem,
};
use crate::{
    decision::Decision,
    metrics::Tunnel,
    ratelimited::ratelimited,
    upstream::{self, Fault},
};

pub(super) async fn serve(mut stream: ClientStream, mut exchange: Exchange, request: &HeaderMap, context: &Context) {
    let started = Instant::now();
    let (guard, client) = (&context.connection.guard, context.connection.client);
    let mut origin = match dial(&mut exchange).await {
        Ok(origin) => origin,
        Err(fault) => {
            let answer = exchange.problem(&Problem::Fault(&fault), request);
            return answer_and_close(stream, &answer, &mut exchange).await;
        }
    };
    exchange.timings.connect = Some(started.elapsed());
    if stream.write_all(ESTABLISHED).await.is_ok() && stream.flush().await.is_ok() {
        exchange.status = Some(200);
        exchange.becomes(Tunnel::Blind);
        let proxy = &exchange.generation.config.proxy;
        let bounds = Bounds {
            idle: proxy.tunnel_idle_timeout,
            life: proxy.tunnel_timeout,
        };
        match pass_checked(&mut stream, &mut origin, &exchange, bounds).await {
            Ok(TunnelEnd::Both) => {}
            Ok(TunnelEnd::ClientBroke) => exchange.note_end(EarlyEnd::CLIENT_GONE),
            Ok(TunnelEnd::OriginBroke) => exchange.note_fault(&Fault::ConnectionTerminated),
            Ok(TunnelEnd::Idle) => {
                guard.count_exceeded(Limit::TunnelIdleTimeout, client);
                exchange.note_end(EarlyEnd::IDLE);
            }
            Ok(TunnelEnd::LifetimeOver) => {
                guard.count_exceeded(Limit::TunnelTimeout, client);
                exchange.note_end(EarlyEnd::LIFETIME_OVER);
            }
            Err(first_bytes) => {
                let what = first_bytes.to_string();
                ratelimited!(warn, client = %guard.for_log(client), id = exchange.id(), "a tunnel was closed: {what}");
                exchange.note_request_error(what);
            }
        }
    } else {
        exchange.note_end(EarlyEnd::CLIENT_GONE);
    }
    exchange.complete().await;
}

/// Passes bytes both ways, after checking that a TLS handshake requests the host of the CONNECT. Also checks a second
/// ClientHello, from which some servers take the host.
async fn pass_checked(
    stream: &mut ClientStream,
    origin: &mut TcpStream,
    exchange: &Exchange,
    bounds: Bounds,
) -> Result<TunnelEnd, FirstBytes> {
    let mut opening = Opening::default();
    let (mut sent_first, mut byte) = (false, [0]);
    tokio::select! {
        read = tokio::time::timeout(bounds.idle, read(stream, &mut opening)) => if read.is_err() {
            return Ok(TunnelEnd::Idle);
        },
        // A TLS server never sends first. If the origin does, it speaks another protocol, and the client may be waiting
        // for the origin's bytes.
        sent = origin.peek(&mut byte) => sent_first = matches!(sent, Ok(1..)),
    }
    let hello_length = opening.hello_length();
    let first_bytes = match opening.first_bytes() {
        FirstBytes::Nothing if sent_first && stream.early().is_empty() => FirstBytes::OtherProtocol,
        first_bytes => first_bytes,
    };
    check(first_bytes, stream, exchange)?;
    if hello_length > 0 {
        let answer = pass_first_hello(hello_length, stream, origin, exchange);
        match tokio::time::timeout(bounds.idle, answer).await {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => {
                let mut opening = Opening::after_retry();
                let read = tokio::time::timeout(bounds.idle, read(stream, &mut opening)).await;
                if read.is_err() {
                    return Ok(TunnelEnd::Idle);
                }
                check(opening.first_bytes(), stream, exchange)?;
            }
            Ok(Err(ended)) => return Ok(ended),
            Err(_) => return Ok(TunnelEnd::Idle),
        }
    }
    Ok(pass(stream, origin, bounds, &exchange.passed).await)
}

async fn read(stream: &mut ClientStream, opening: &mut Opening) {
    while opening.wants_more(stream.early()) && matches!(stream.read_early().await, Ok(1..)) {}
}

/// Checks that the client may send `first_bytes` ([`FirstBytes::means`]), or has sent no bytes at all.
fn check(first_bytes: FirstBytes, stream: &ClientStream, exchange: &Exchange) -> Result<(), FirstBytes> {
    let is_expected = match &first_bytes {
        FirstBytes::Nothing => stream.early().is_empty(),
        first_bytes => exchange
            .decision()
            .is_some_and(|decision| first_bytes.means(&decision.target().origin)),
    };
    if is_expected { Ok(()) } else { Err(first_bytes) }
}

/// Passes the ClientHello, without what follows it, and then the server's first message. Returns whether that message
/// asks for a second ClientHello, or is too long to tell.
async fn pass_first_hello(
    length: usize,
    stream: &mut ClientStream,
    origin: &mut TcpStream,
    exchange: &Exchange,
) -> Result<bool, TunnelEnd> {
    let mut hello = vec![0; length];
    stream
        .read_exact(&mut hello)
        .await
        .map_err(|_| TunnelEnd::ClientBroke)?;
    origin.write_all(&hello).await.map_err(|_| TunnelEnd::OriginBroke)?;
    let mut answer = Vec::with_capacity(FIRST_ANSWER);
    loop {
        let passed = answer.len();
        exchange.passed.set((length as u64, passed as u64));
        match asks_again(&answer) {
            Some(asks) => return Ok(asks),
            None if passed > LONGEST => return Ok(true),
            None => {}
        }
        match origin.read_buf(&mut answer).await {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(_) => return Err(TunnelEnd::OriginBroke),
        }
        stream
            .write_all(&answer[passed..])
            .await
            .map_err(|_| TunnelEnd::ClientBroke)?;
        stream.flush().await.map_err(|_| TunnelEnd::ClientBroke)?;
    }
}

/// Connects to the first of the origin's checked addresses that accepts.
async fn dial(exchange: &mut Exchange) -> Result<TcpStream, Fault> {
    let generation = exchange.generation.clone();
    let Some(target) = exchange.decision().map(Decision::target) else {
        return Err(Fault::Internal("no decision was taken".to_owned()));
    };
    let addresses = generation.egress.addresses(&target.origin).await?;
    let started = Instant::now();
    let total = generation.config.proxy.connect_timeout;
    let mut last = Fault::Unroutable;
    for (tried, address) in addresses.iter().enumerate() {
        let earlier = exchange.upstream.replace(*address);
        exchange.note_sent();
        let within = upstream::share_of(total, started.elapsed(), addresses.len() - tried);
        match connect(*address, within).await {
            Ok(stream) => {
                generation.egress.check_again(*address)?;
                return Ok(stream);
            }
            // Many machines cannot reach IPv6 addresses, so the fault of an earlier address says more.
            Err(Fault::Unroutable) if tried > 0 => exchange.upstream = earlier,
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

async fn connect(address: SocketAddr, within: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // Without `TCP_NODELAY`, the tunnel works too, but may delay small writes.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(Fault::from_connect(&error)),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}

/// Initial size of the buffer for the first answer of a server, in bytes. A ServerHello fits into it.
const FIRST_ANSWER: usize = 256;
