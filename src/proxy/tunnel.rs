//! A blind tunnel: connects to the checked address and passes bytes both ways. Whether it may be
//! opened has been decided and logged before.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use http::HeaderMap;
use pingora::protocols::l4::stream::Stream as L4Stream;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    connect::{ESTABLISHED, answer_and_close},
    exchange::{End, Exchange},
    respond::Problem,
};
use crate::upstream::Fault;

/// Opens the tunnel that `exchange` was decided on, and serves it to its end.
pub(super) async fn serve(mut stream: L4Stream, mut exchange: Exchange, request: &HeaderMap) {
    let started = Instant::now();
    let mut origin = match dial(&mut exchange).await {
        Ok(origin) => origin,
        Err(fault) => {
            let answer = exchange.problem(&Problem::Fault(&fault), request);
            return answer_and_close(stream, &answer, &exchange).await;
        }
    };
    exchange.timings.connect = Some(started.elapsed());
    let mut end = End::default();
    if stream.write_all(ESTABLISHED).await.is_ok() && stream.flush().await.is_ok() {
        end.status = Some(200);
        match tokio::io::copy_bidirectional(&mut stream, &mut origin).await {
            Ok((up, down)) => (end.bytes_in, end.bytes_out) = (up, down),
            Err(_) => exchange.note_fault(&Fault::ConnectionTerminated),
        }
    } else {
        exchange.note_client_gone();
    }
    exchange.complete(end).await;
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
    let mut last = Fault::Unroutable;
    for address in addresses {
        exchange.upstream = Some(address);
        match connect(address, generation.config.proxy.connect_timeout).await {
            Ok(stream) => return Ok(stream),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

async fn connect(address: SocketAddr, timeout: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
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
