//! Interception: answers a CONNECT itself, ends the TLS with a leaf of the local authority, and
//! serves what comes inside as ordinary requests: HTTP/1.1, HTTP/2, and plain HTTP too.
//!
//! That a CONNECT was answered decides nothing: each request inside is decided on its own.

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use pingora::{
    apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp as _},
    listeners::tls::Acceptor,
    protocols::{
        ALPN, GetProxyDigest as _, Peek as _, Stream,
        http::{ServerSession, v2::server::H2Options},
        l4::stream::Stream as L4Stream,
        raw_connect::ProxyDigest,
    },
    server::ShutdownWatch,
};
use pingora_http::ResponseHeader;
use tokio::{io::AsyncWriteExt as _, sync::Notify};

use super::{
    connect::{self, ESTABLISHED},
    connection::{self, Context},
    exchange::Exchange,
    generation::Live,
    listen::Running,
    respond::Problem,
    target::Through,
};
use crate::{
    authority::{LeafName, Leaves},
    origin::{Host, Origin, Scheme},
};

/// Serves the inside of a CONNECT to `origin`, whose scheme is https until a first byte says
/// otherwise.
pub(super) async fn serve(mut stream: L4Stream, origin: Origin, leaves: &Leaves, context: &Context) {
    let within = context.live.generation().config.proxy.handshake_timeout;
    // Minted before the answer, so that a client which cannot be served is told in words.
    let server_config = match leaves.server_config(leaf_name(&origin.host)).await {
        Ok(server_config) => server_config,
        Err(error) => {
            tracing::warn!(%origin, %error, "no leaf certificate could be made");
            let mut exchange = Exchange::new(context.live.generation());
            let answer = exchange.problem(&Problem::Leaf, &http::HeaderMap::new());
            return connect::answer_and_close(stream, &answer, &mut exchange).await;
        }
    };
    if stream.write_all(ESTABLISHED).await.is_err() || stream.flush().await.is_err() {
        return;
    }
    let opening = tokio::time::timeout(within, first_byte(&mut stream));
    match opening.await {
        Ok(Some(TLS_HANDSHAKE)) => {
            stream.set_proxy_digest(digest(origin.clone()));
            let handshake = Acceptor::from_server_config(server_config);
            let handshake = handshake.tls_handshake(stream);
            match tokio::time::timeout(within, handshake).await {
                Ok(Ok(tls)) => serve_inside(Box::new(tls), context).await,
                Ok(Err(error)) => tell_of_handshake(&error, &origin, context.client),
                Err(_) => tracing::info!(
                    client = %context.client, %origin, "a TLS handshake took too long"
                ),
            }
        }
        Ok(Some(byte)) if byte.is_ascii_uppercase() => {
            let plain = Origin {
                scheme: Scheme::Http,
                ..origin
            };
            stream.set_proxy_digest(digest(plain));
            serve_inside(Box::new(stream), context).await;
        }
        Ok(Some(byte)) => tracing::info!(
            client = %context.client, %origin, first_byte = byte,
            "neither TLS nor HTTP came through a CONNECT, so it was closed; list the host in \
             [[https.tunnel]] if other protocols have to pass"
        ),
        Ok(None) | Err(_) => {}
    }
}

async fn serve_inside(stream: Stream, context: &Context) {
    if stream.selected_alpn_proto() == Some(ALPN::H2) {
        let within = context.live.generation().config.proxy.header_timeout;
        let streams = Arc::new(Streams::new(context));
        let begun = streams.begun.clone();
        let serving = streams.process_new(stream, &context.shutdown);
        tokio::pin!(serving);
        tokio::select! {
            _ = &mut serving => return,
            // pingora waits for the first request for ever.
            first = tokio::time::timeout(within, begun.notified()) => if first.is_err() {
                return;
            },
        }
        serving.await;
    } else {
        let inside = Context {
            inside: true,
            ..context.clone()
        };
        // Boxed, because a connection that serves a CONNECT would else hold itself.
        Box::pin(connection::serve(stream, &inside)).await;
    }
}

/// The streams of an HTTP/2 connection, each to the forwarder that is in force when it begins.
struct Streams {
    live: Arc<Live>,
    /// pingora gives each stream a task of its own, which ends after its connection's.
    running: Running,
    options: HttpServerOptions,
    /// Told when the first one begins.
    begun: Arc<Notify>,
}

// === impl Streams ===

impl Streams {
    fn new(context: &Context) -> Self {
        let mut options = HttpServerOptions::default();
        options.h2_idle_timeout = Some(context.live.generation().config.proxy.idle_timeout);
        Self {
            live: context.live.clone(),
            running: context.running.clone(),
            options,
            begun: Arc::default(),
        }
    }
}

#[async_trait]
impl HttpServerApp for Streams {
    async fn process_new_http(
        self: &Arc<Self>,
        session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        self.begun.notify_one();
        let http = self.live.forwarder().http.clone();
        self.running
            .track(http.process_new_http(session, shutdown))
            .await
            .flatten()
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }

    fn h2_options(&self) -> Option<H2Options> {
        let mut options = H2Options::new();
        options
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_LIST);
        Some(options)
    }
}

async fn first_byte(stream: &mut L4Stream) -> Option<u8> {
    let mut byte = [0];
    stream.try_peek(&mut byte).await.ok()?.then_some(byte[0])
}

/// What pingora carries from the connection to each request inside.
fn digest(origin: Origin) -> ProxyDigest {
    // The response is never looked at.
    let response = match ResponseHeader::build(200, None) {
        Ok(response) => response,
        Err(_) => unreachable!("200 is a status"),
    };
    ProxyDigest::new(Box::new(response), Some(Box::new(Through(origin))))
}

fn leaf_name(host: &Host) -> LeafName {
    match host {
        Host::Name(name) => LeafName::Dns(name.to_string()),
        Host::Ip(address) => LeafName::Ip(*address),
    }
}

/// Says what an operator can do when a client breaks the handshake off. pingora passes the alert
/// on only as text.
fn tell_of_handshake(error: &pingora::Error, origin: &Origin, client: SocketAddr) {
    let text = error.to_string();
    let distrust = ["UnknownCA", "BadCertificate", "CertificateUnknown", "UnknownCa"]
        .iter()
        .any(|alert| text.contains(alert));
    let gone = text.contains("handshake eof") || text.contains("reset by peer");
    let alert = cause(&text);
    if distrust {
        tracing::warn!(
            %client, %origin, alert,
            "a client does not trust the interception's certificate: {TRUST}"
        );
    } else if gone {
        tracing::warn!(
            %client, %origin, alert,
            "a client closed the connection during the TLS handshake; often it does not trust the \
             interception's certificate: {TRUST}"
        );
    } else {
        tracing::info!(%client, %origin, error = alert, "a TLS handshake failed");
    }
}

/// The last part of pingora's text, which is the cause.
fn cause(text: &str) -> &str {
    text.rsplit(": ").next().unwrap_or(text).trim()
}

/// What an operator can do about it.
const TRUST: &str = "install the authority's certificate in it (robotgate ca export > robotgate-ca.pem; then curl \
    --cacert, SSL_CERT_FILE, REQUESTS_CA_BUNDLE or NODE_EXTRA_CA_CERTS), or let the host through in [[https.tunnel]]";
/// The record type of a TLS handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 0x16;
const MAX_STREAMS: u32 = 100;
const MAX_HEADER_LIST: u32 = 64 * 1024;
