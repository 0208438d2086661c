//! A blind tunnel: connects to the checked address and passes bytes both ways. Whether it may be
//! opened has been decided and logged before.

mod pass;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use http::HeaderMap;
use pingora::protocols::l4::stream::Stream as L4Stream;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use self::pass::{Count, Ended};
use super::{
    connect::{ESTABLISHED, answer_and_close},
    exchange::{End, Exchange},
    respond::Problem,
};
use crate::upstream::{self, Fault};

/// Opens the tunnel that `exchange` was decided on, and serves it to its end.
pub(super) async fn serve(mut stream: L4Stream, mut exchange: Exchange, request: &HeaderMap) {
    let started = Instant::now();
    let mut origin = match dial(&mut exchange).await {
        Ok(origin) => origin,
        Err(fault) => {
            let answer = exchange.problem(&Problem::Fault(&fault), request);
            return answer_and_close(stream, &answer, &mut exchange).await;
        }
    };
    exchange.timings.connect = Some(started.elapsed());
    let count = Count::default();
    let mut status = None;
    if stream.write_all(ESTABLISHED).await.is_ok() && stream.flush().await.is_ok() {
        status = Some(200);
        exchange.status = status;
        let idle = exchange.generation.config.proxy.tunnel_idle_timeout;
        match pass::pass(&mut stream, &mut origin, idle, &count).await {
            Ended::Both => {}
            Ended::ClientBroke => exchange.note_client_gone(),
            Ended::OriginBroke => exchange.note_fault(&Fault::ConnectionTerminated),
            Ended::Idle => exchange.note_idle(),
        }
    } else {
        exchange.note_client_gone();
    }
    let (bytes_in, bytes_out) = count.both();
    exchange
        .complete(End {
            status,
            bytes_in: Some(bytes_in),
            bytes_out: Some(bytes_out),
        })
        .await;
}

/// Connects to the first of the origin's checked addresses that answers.
async fn dial(exchange: &mut Exchange) -> Result<TcpStream, Fault> {
    let generation = exchange.generation.clone();
    let Some(target) = exchange.target() else {
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
        let within = upstream::share_of(total, started.elapsed(), addresses.len() - tried);
        match connect(*address, within).await {
            Ok(stream) => return Ok(stream),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

async fn connect(address: SocketAddr, within: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // Without it a small write may wait for an answer; with an error it only does that.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Err(Fault::ConnectionRefused),
        Ok(Err(_)) => Err(Fault::Unroutable),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}
