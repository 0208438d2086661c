//! Forwards a request to its origin on an existing or a new connection, and passes the response back to the client.

use std::{net::SocketAddr, time::Instant};

use http::{Method, StatusCode, Version};
use pingora_http::{RequestHeader, ResponseHeader};

use crate::{
    decision::Decision,
    metrics::Tunnel,
    origin::{Origin, Target},
    proxy::{
        client::Client,
        client_stream::ClientStream,
        content::Content,
        context::Context,
        exchange::{EarlyEnd, Exchange},
        fields,
        generation::Generation,
        limits::Limit,
        relay::{Broken, Relay, Relayed, Times},
        rewrite,
        timer::Timer,
        tunnel::{self, Bounds, TunnelEnd},
    },
    upstream::{self, Fault, OriginConnection, Repeat, Server, Wanted},
    wire::Wire,
};

pub(super) enum Forwarded {
    Complete,
    /// The origin has opened the WebSocket that the client asked for, on this connection.
    Websocket(Wire),
}

/// Fails if the client got no response from the origin, or only a part of it.
pub(super) async fn forward(
    client: &mut Client,
    exchange: &mut Exchange,
    generation: &Generation,
    timer: &mut Timer,
) -> Result<Forwarded, Broken> {
    let Some(target) = exchange.decision().map(Decision::target).cloned() else {
        return Err(Broken::Server(Fault::Internal("no decision was taken".to_owned())));
    };
    let origin = &target.origin;
    let proxy = &generation.config.proxy;
    let started = Instant::now();
    upstream::check_name(origin)?;
    let addresses = generation.egress.addresses(origin).await;
    let addresses = addresses.map_err(Fault::from)?;
    let mut wanted = Wanted {
        http2: generation.config.https.upstream_http2 && !client.asks_to_upgrade(),
        content: client.has_content(),
        kept: may_repeat(client),
        fresh: false,
    };
    let mut content = Content::default();
    for tries_left in (0..MAX_TRIES).rev() {
        let (within, idle) = (proxy.connect_timeout, proxy.idle_timeout);
        let reaching = generation
            .origins
            .reach(origin, &addresses, wanted, within, idle, &mut exchange.upstream);
        let OriginConnection {
            mut server,
            address,
            reused,
        } = reaching.await?;
        if !reused {
            exchange.timings.connect = Some(started.elapsed());
        }
        let fault = match ask(client, &mut content, exchange, timer, &mut server, address, &target).await {
            Err(Broken::Server(fault)) => fault,
            outcome => return settle(outcome?, server, exchange, origin, address),
        };
        if tries_left == 0 || exchange.status.is_some() || !content.rewind() {
            return Err(fault.into());
        }
        match server.again(&fault, reused && wanted.kept) {
            Repeat::Never => return Err(fault.into()),
            Repeat::Always => {}
            Repeat::OverHttp1 => wanted.http2 = false,
        }
        wanted.fresh = true;
    }
    Err(Broken::Server(Fault::ConnectionTerminated))
}

/// Returns whether the request may use an idle HTTP/1.1 connection. The origin may be closing it, so the request must
/// be one that can be sent again: idempotent (RFC 9110 §9.2.2) and without content, which is not kept over HTTP/1.1.
fn may_repeat(client: &mut Client) -> bool {
    let is_idempotent = matches!(
        client.head().method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    );
    is_idempotent && !client.has_content() && !client.asks_to_upgrade()
}

async fn ask(
    client: &mut Client,
    content: &mut Content,
    exchange: &mut Exchange,
    timer: &mut Timer,
    server: &mut Server,
    address: SocketAddr,
    target: &Target,
) -> Result<Relayed, Broken> {
    // Requests must not reach robotgate itself, which may have begun to listen on this address since the address was
    // checked.
    let generation = &exchange.generation;
    generation.egress.check_again(address).map_err(Fault::from)?;
    let head = head_for_origin(client, server.version(), target, generation)?;
    let times = Times::new(&generation.config.proxy);
    if server.version() != Version::HTTP_2 && client.has_content() {
        // Over HTTP/1.1, a request with content is never sent again.
        content.forget();
    }
    exchange.note_sent();
    server.send_head(head, target, content.is_read(client))?;
    if server.version() == Version::HTTP_2 && client.waits_to_send() {
        // Let the client send its content now: over HTTP/2, few origins send a `100 Continue`, and robotgate need not
        // wait for one (RFC 9110 §10.1.1).
        let go_on = ResponseHeader::build(StatusCode::CONTINUE, None);
        client.send_head(go_on.map_err(|error| Fault::from_pingora(&error))?, false)?;
    }
    let relay = Relay {
        client,
        server,
        content,
        exchange,
        timer,
        times,
    };
    relay.run().await
}

fn head_for_origin(
    client: &mut Client,
    version: Version,
    target: &Target,
    generation: &Generation,
) -> Result<RequestHeader, Fault> {
    let proxy = &generation.config.proxy;
    let received = rewrite::RequestForm {
        version: client.head().version,
        has_content: client.has_content(),
        upgrades: client.asks_to_upgrade(),
    };
    let mut head = client.head().clone();
    head.set_version(version);
    fields::strip(&mut head, &proxy.strip);
    rewrite::to_origin(&mut head, received, target, proxy.via.then_some(&*proxy.name))
        .map_err(|error| Fault::Internal(error.to_string()))?;
    Ok(head)
}

pub(super) async fn pass_websocket(client: Client, server: Wire, exchange: &mut Exchange, context: &Context) {
    exchange.becomes(Tunnel::Websocket);
    // The HTTP code has no bytes left to send to the client or the origin, so taking the connections from it loses no
    // bytes.
    let streams = client
        .into_websocket()
        .and_then(Wire::into_stream)
        .zip(server.into_stream());
    let Some(((client, from_client), (server, from_server))) = streams else {
        return exchange.note_end(EarlyEnd::CLIENT_GONE);
    };
    let client = ClientStream::new(client, from_client);
    let server = ClientStream::new(server, from_server);
    let proxy = &exchange.generation.config.proxy;
    let bounds = Bounds {
        idle: proxy.tunnel_idle_timeout,
        life: proxy.tunnel_timeout,
    };
    let count_exceeded = |limit| {
        context
            .connection
            .guard
            .count_exceeded(limit, context.connection.client)
    };
    match tunnel::pass(client, server, bounds, &exchange.passed).await {
        TunnelEnd::Both => {}
        TunnelEnd::ClientBroke => exchange.note_end(EarlyEnd::CLIENT_GONE),
        TunnelEnd::OriginBroke => exchange.note_fault(&Fault::ConnectionTerminated),
        TunnelEnd::Idle => {
            count_exceeded(Limit::TunnelIdleTimeout);
            exchange.note_end(EarlyEnd::IDLE);
        }
        TunnelEnd::LifetimeOver => {
            count_exceeded(Limit::TunnelTimeout);
            exchange.note_end(EarlyEnd::LIFETIME_OVER);
        }
    }
}

/// If the connection to the origin is now a WebSocket, returns it. Otherwise keeps it for other requests, if possible.
fn settle(
    ended: Relayed,
    server: Server,
    exchange: &Exchange,
    origin: &Origin,
    address: SocketAddr,
) -> Result<Forwarded, Broken> {
    match ended {
        Relayed::Complete { reusable } => {
            if reusable {
                let generation = &exchange.generation;
                generation
                    .origins
                    .keep(origin, address, server, generation.config.proxy.idle_timeout);
            }
            Ok(Forwarded::Complete)
        }
        Relayed::Websocket => Ok(Forwarded::Websocket(server.into_websocket()?)),
    }
}

const MAX_TRIES: usize = 3;
