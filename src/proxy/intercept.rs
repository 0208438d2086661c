//! Interception: accepts a CONNECT, terminates TLS with a certificate of the local authority, and serves the requests
//! in the tunnel. Each of them is decided separately.

use std::{sync::Arc, time::Instant};

use http::HeaderValue;
use pingora::{
    listeners::tls::Acceptor,
    protocols::{ALPN, Ssl as _, Stream},
};
use rustls::ServerConfig;
use tokio::io::AsyncWriteExt as _;

use super::{
    client_connection::OuterConnect,
    client_stream::ClientStream,
    connect::answer::{self, ESTABLISHED},
    connection,
    context::Context,
    exchange::Exchange,
    handshake::TLS_HANDSHAKE,
    limits::Limit,
    rejections,
    respond::Problem,
    streams,
};
use crate::{
    authority::{Leaves, MintError},
    bot::CredentialRecord,
    metrics::{Method, Tunnel},
    origin::{Host, Origin, Scheme},
    ratelimited::ratelimited,
};

#[derive(Debug, thiserror::Error)]
enum LeafError {
    #[error(transparent)]
    Mint(#[from] MintError),
    #[error("{0}")]
    Limit(Limit),
}

/// Serves the requests inside a CONNECT to `origin`. With `refused`, the log already says that the CONNECT is refused.
/// The client still gets a 200 to it, and refusals to the requests in the tunnel, because most clients do not show
/// people the response to a CONNECT.
pub(super) async fn serve(
    mut stream: ClientStream,
    origin: Origin,
    credential_record: Option<CredentialRecord>,
    user_agent: Option<HeaderValue>,
    refused: Option<Exchange>,
    leaves: &Leaves,
    context: &Context,
) {
    let (within, resets) = {
        let proxy = &context.live.generation().config.proxy;
        (proxy.handshake_timeout, proxy.limits.http2_resets)
    };
    let client = context.connection.client;
    // Make the certificate before responding to the CONNECT, so that the client gets an error response if the
    // certificate cannot be made.
    let server_config = match server_config(&origin.host, leaves, context).await {
        Ok(server_config) => server_config,
        Err(error) => {
            let problem = match &error {
                LeafError::Mint(error) => {
                    ratelimited!(warn, %origin, %error, "robotgate cannot make a certificate for a host, so it answered a CONNECT with a 500");
                    Problem::Leaf
                }
                LeafError::Limit(limit) => {
                    context.connection.guard.count_exceeded(*limit, client);
                    Problem::Limit(*limit)
                }
            };
            let mut exchange = refused.unwrap_or_else(|| Exchange::new(context.live.generation(), Method::Connect));
            let answer = exchange.problem(&problem, &http::HeaderMap::new());
            return answer::answer_and_close(stream, &answer, &mut exchange).await;
        }
    };
    let opened = stream.write_all(ESTABLISHED).await.is_ok() && stream.flush().await.is_ok();
    if let Some(mut exchange) = refused {
        exchange.status = opened.then_some(200);
        exchange.complete().await;
    }
    if !opened {
        return;
    }
    let _open = context.live.metrics.tunnel_opened(Tunnel::Intercept);
    let until = tokio::time::Instant::now() + within;
    let opening = tokio::time::timeout_at(until, first_byte(&mut stream));
    let first = opening.await.ok().flatten();
    let scheme = match first {
        Some(byte) if byte.is_ascii_uppercase() => Scheme::Http,
        _ => Scheme::Https,
    };
    let outer_connect = Arc::new(OuterConnect::new(
        Origin { scheme, ..origin },
        credential_record,
        user_agent,
        resets,
    ));
    let origin = &outer_connect.origin;
    match (first, scheme) {
        (Some(TLS_HANDSHAKE), _) => {
            let handshake = Acceptor::from_server_config(server_config);
            let handshake = handshake.tls_handshake(stream);
            match tokio::time::timeout_at(until, handshake).await {
                Ok(Ok(tls)) => {
                    if let Some(name) = tls.get_ssl().and_then(|tls| tls.server_name()) {
                        outer_connect.note_server_name(name);
                    }
                    serve_inside(Box::new(tls), outer_connect, context).await;
                }
                Ok(Err(error)) => rejections::log_failed_handshake(&error, &outer_connect, context).await,
                Err(_) => {
                    ratelimited!(info, client = %context.connection.client_for_log(), %origin, "a client's TLS handshake inside a CONNECT took too long")
                }
            }
        }
        (Some(_), Scheme::Http) => serve_inside(Box::new(stream), outer_connect, context).await,
        (Some(first_byte), Scheme::Https | Scheme::Ftp) => ratelimited!(
            warn, client = %context.connection.client_for_log(), %origin, first_byte,
            "a client sent neither TLS nor HTTP through a CONNECT, so robotgate closed the tunnel; to let other \
             protocols pass, add the host to [[https.tunnel]]"
        ),
        (None, _) => {}
    }
}

/// A new certificate counts against the client's limit.
async fn server_config(host: &Host, leaves: &Leaves, context: &Context) -> Result<Arc<ServerConfig>, LeafError> {
    if let Some(ready) = leaves.ready(host) {
        return Ok(ready);
    }
    let limits = context.live.generation().config.proxy.limits;
    let taken = context.connection.guard.take_leaf(&limits, Instant::now());
    taken.map_err(LeafError::Limit)?;
    Ok(leaves.server_config(host.clone()).await?)
}

async fn serve_inside(stream: Stream, outer_connect: Arc<OuterConnect>, context: &Context) {
    let inside = Context {
        connection: context.connection.inside(outer_connect.clone()),
        ..context.clone()
    };
    match stream.selected_alpn_proto() {
        Some(ALPN::H2) => streams::serve(stream, outer_connect, &inside).await,
        // Boxed, because this function and `connection::serve` call each other.
        _ => Box::pin(connection::serve(stream, &inside)).await,
    }
}

async fn first_byte(stream: &mut ClientStream) -> Option<u8> {
    if stream.early().is_empty() {
        stream.read_early().await.ok()?;
    }
    stream.early().first().copied()
}
