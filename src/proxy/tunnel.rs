//! A blind tunnel: connects to the checked address and passes bytes both ways. The decision to open it was made and
//! logged before.

mod hello;
mod pass;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use http::HeaderMap;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use self::hello::{FirstBytes, Opening};
pub(super) use self::pass::{Bounds, Count, TunnelEnd, pass};
use super::{
    client_stream::ClientStream,
    connect::answer::{ESTABLISHED, answer_and_close},
    context::Context,
    exchange::Exchange,
    limits::Limit,
    respond::Problem,
};
use crate::{
    decision::Decision,
    metrics::Tunnel,
    ratelimited::ratelimited,
    upstream::{self, Fault},
};

/// Opens the tunnel of `exchange`, and serves it until it ends.
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
            Ok(TunnelEnd::ClientBroke) => exchange.note_client_gone(),
            Ok(TunnelEnd::OriginBroke) => exchange.note_fault(&Fault::ConnectionTerminated),
            Ok(TunnelEnd::Idle) => {
                guard.count_exceeded(Limit::TunnelIdleTimeout, client);
                exchange.note_idle();
            }
            Ok(TunnelEnd::LifetimeOver) => {
                guard.count_exceeded(Limit::TunnelTimeout, client);
                exchange.note_lifetime_over();
            }
            Err(first_bytes) => {
                let what = first_bytes.to_string();
                ratelimited!(warn, client = %guard.for_log(client), id = exchange.id(), "a tunnel was closed: {what}");
                exchange.note_request_error(what);
            }
        }
    } else {
        exchange.note_client_gone();
    }
    exchange.complete().await;
}

/// Passes bytes both ways. If the client begins with TLS, checks first that it asks for the host that was decided on.
/// On port 443 it has to begin with TLS.
///
/// # Errors
/// Returns the first bytes if their TLS requests another host or no host, or cannot be parsed.
async fn pass_checked(
    stream: &mut ClientStream,
    origin: &mut TcpStream,
    exchange: &Exchange,
    bounds: Bounds,
) -> Result<TunnelEnd, FirstBytes> {
    let mut opening = Opening::default();
    let reading = async {
        while opening.wants_more(stream.early()) {
            match stream.read_early().await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        read = tokio::time::timeout(bounds.idle, reading) => if read.is_err() {
            return Ok(TunnelEnd::Idle);
        },
        // A TLS server never sends first, but a server of another protocol may, so the wait ends.
        readable = origin.readable() => drop(readable),
    }
    let first_bytes = opening.first_bytes();
    let is_expected = match &first_bytes {
        FirstBytes::Nothing => stream.early().is_empty(),
        first_bytes => exchange
            .decision()
            .is_some_and(|decision| first_bytes.means(&decision.target().origin)),
    };
    if !is_expected {
        return Err(first_bytes);
    }
    Ok(pass(stream, origin, bounds, &exchange.passed).await)
}

/// Connects to the first of the origin's checked addresses that accepts.
async fn dial(exchange: &mut Exchange) -> Result<TcpStream, Fault> {
    let generation = exchange.generation.clone();
    let Some(target) = exchange.decision().map(Decision::target) else {
        return Err(Fault::Internal("no decision was taken".to_owned()));
    };
    let addresses = generation
        .egress
        .addresses(&target.origin.host, target.origin.port)
        .await?;
    let started = Instant::now();
    let total = generation.config.proxy.connect_timeout;
    let mut last = Fault::Unroutable;
    for (tried, address) in addresses.iter().enumerate() {
        exchange.upstream = Some(*address);
        exchange.note_sent();
        let within = upstream::share_of(total, started.elapsed(), addresses.len() - tried);
        match connect(*address, within).await {
            Ok(stream) => {
                generation.egress.check_again(*address)?;
                return Ok(stream);
            }
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

async fn connect(address: SocketAddr, within: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // Without `TCP_NODELAY`, a small write can wait for an acknowledgement. If this fails, nothing else is
            // affected.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Err(Fault::ConnectionRefused),
        Ok(Err(_)) => Err(Fault::Unroutable),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}
