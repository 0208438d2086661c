//! Accepts and serves the connections of a test site.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{Request, Site, Step, http2};
use crate::support::wire::{End, Wire};

/// Accepts connections until `closing` is cancelled or the task is aborted. Both also close the connections.
pub(super) async fn accept(listener: TcpListener, site: Arc<Site>, closing: CancellationToken) {
    let mut connections = JoinSet::new();
    while let Some(Ok((stream, _))) = closing.run_until_cancelled(listener.accept()).await {
        connections.spawn(serve(stream, site.clone()));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    connections.shutdown().await;
}

/// The returned error is ignored, because the client notices that the connection has ended.
async fn serve(stream: TcpStream, site: Arc<Site>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let connection = site.connections.fetch_add(1, Ordering::SeqCst);
    let tls = site.tls.lock().clone();
    let (mut wire, sni) = match tls {
        None => (Wire::new(stream), None),
        Some(config) => {
            let stream = TlsAcceptor::from(config).accept(stream).await?;
            let sni = stream.get_ref().1.server_name().map(str::to_owned);
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                return http2::serve(stream, site, connection, sni).await;
            }
            (Wire::new(stream), sni)
        }
    };
    while let Some(request) = Request::read(&mut wire).await? {
        let request = Request {
            connection,
            sni: sni.clone(),
            ..request
        };
        site.requests.lock().push(request.clone());
        if request.end == End::Cut {
            break;
        }
        let reply = site.answer(&request);
        for step in reply.steps(&request.method) {
            let performed = perform(&mut wire, step).await.inspect_err(|_| site.count_cut());
            if !performed? {
                return Ok(());
            }
        }
        if request.headers.lists("Connection", "close") {
            break;
        }
    }
    wire.finish().await
}

/// Performs a step of a reply. Returns whether the connection stays open.
async fn perform(wire: &mut Wire, step: Step) -> io::Result<bool> {
    match step {
        Step::Send(bytes) => wire.send(&bytes).await?,
        Step::Stall => std::future::pending().await,
        Step::Close => {
            wire.finish().await?;
            return Ok(false);
        }
        Step::Reset | Step::Break => {
            wire.reset_on_close();
            return Ok(false);
        }
        Step::Drip { bytes, every } => {
            let mut ticks = tokio::time::interval(every);
            for byte in bytes {
                ticks.tick().await;
                wire.send(&[byte]).await?;
            }
        }
        Step::Endless(bytes) => loop {
            wire.send(&bytes).await?;
        },
        Step::Wait(latch) => latch.opened().await,
        Step::Echo => loop {
            let bytes = wire.some().await?;
            if bytes.is_empty() {
                return Ok(false);
            }
            wire.send(&bytes).await?;
        },
    }
    Ok(true)
}
