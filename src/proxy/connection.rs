//! Serves a client connection, or the connection inside an intercepted CONNECT: reads its requests one after the other,
//! and passes each to the module that serves it.

use std::{pin::pin, time::Instant};

use pingora::protocols::Stream;
use tokio::io::AsyncWriteExt;

use super::{
    client::Client,
    client_stream::ClientStream,
    connect,
    context::{Context, LINGER, last_call, linger},
    gate,
    head::{self, Head, HeadError},
    live::Live,
    rejections,
    respond::{OwnResponse, Problem},
    timer::Timer,
};
use crate::{ratelimited::ratelimited, wire::Wire};

pub(super) async fn serve(stream: Stream, context: &Context) {
    let mut wire = Wire::new(stream);
    let mut timer = Timer::default();
    let mut idle = context.live.current().config.proxy.header_timeout;
    let begun = Instant::now();
    let most = context.live.current().config.proxy.limits.connection_requests;
    let mut last_call = pin!(last_call(context.shutdown.clone()));
    for left in (0..most).rev() {
        let limits = || {
            let proxy = &context.live.current().config.proxy;
            (proxy.head, proxy.header_timeout)
        };
        let head = tokio::select! {
            biased;
            head = Head::read(&wire, idle, limits, &mut timer) => head,
            () = &mut last_call => return,
        };
        let mut head = match head {
            Ok(head) => head,
            Err(HeadError::Gone) => {
                if left + 1 == most {
                    // The client sent no whole request. Inside a CONNECT, perhaps it distrusts robotgate's certificate.
                    rejections::log_silent_close(begun.elapsed(), context).await;
                }
                return;
            }
            Err(error) => return reject(wire, &error, context).await,
        };
        if left + 1 == most {
            rejections::note_trust(context);
        }
        if head.connect.is_some() {
            if context.connection.outer_connect.is_some() {
                return reject(wire, &HeadError::NestedConnect, context).await;
            }
            // Some clients begin TLS before they get the response to their CONNECT. Keep their bytes for the tunnel.
            wire.unread(head.bytes.split_off(head.len));
            // No other code has a handle to the connection, and all earlier responses have been sent. So this is `None`
            // only if the connection is broken.
            let Some((stream, early)) = wire.into_stream() else {
                return;
            };
            // Boxed, so that connections without a CONNECT do not reserve memory for one.
            return Box::pin(connect::serve(ClientStream::new(stream, early), head, context)).await;
        }
        let client = match Client::http1(wire.clone(), head, left).await {
            Ok(client) => client,
            Err(error) => {
                // Do not log the whole error, because it may quote what `[audit]` leaves out of the logs.
                head::log_malformed(&context.connection, &error.etype().as_str());
                context.live.metrics.malformed();
                return answer_and_close(wire, &Problem::Request, &context.live).await;
            }
        };
        drop(wire);
        match gate::serve(client, context, &mut timer).await {
            Some(next) => wire = next,
            None => return,
        }
        idle = context.live.current().config.proxy.idle_timeout;
    }
}

async fn reject(wire: Wire, error: &HeadError, context: &Context) {
    let client = context.connection.client;
    if !matches!(error, HeadError::Gone) && error.limit().is_none() {
        context.live.metrics.malformed();
    }
    match (error, error.limit(), &context.connection.outer_connect) {
        (_, Some(limit), _) => context.connection.guard.count_exceeded(limit, client),
        (HeadError::Tls, _, Some(outer_connect)) => ratelimited!(
            warn, client = %context.connection.client_for_log(), origin = %outer_connect.origin,
            "a client sent a second layer of TLS in a CONNECT tunnel, so robotgate could not see the requests and closed \
             the tunnel; to let the TLS pass, add the host to [[https.tunnel]]"
        ),
        (HeadError::Tls, _, None) => ratelimited!(
            warn, client = %context.connection.client_for_log(),
            "a client spoke TLS to a listener for plain HTTP: bots have to write the proxy's address with http://, or use a \
             listener of [proxy.tls]"
        ),
        (HeadError::Syntax(_), _, Some(outer_connect)) => ratelimited!(
            warn, client = %context.connection.client_for_log(), origin = %outer_connect.origin, %error,
            "a client sent something malformed through a CONNECT, and robotgate refused it; to let a protocol other \
             than HTTP pass, add the host to [[https.tunnel]]"
        ),
        _ => head::log_malformed(&context.connection, error),
    }
    answer_and_close(wire, &Problem::Head(error), &context.live).await;
}

pub(super) async fn answer_and_close(mut wire: Wire, problem: &Problem<'_>, live: &Live) {
    let name = live.current().config.proxy.name.clone();
    let answer = OwnResponse::problem(problem, &http::HeaderMap::new(), &name);
    live.metrics.early_error(problem.error(), answer.head.status.as_u16());
    let within = live.current().config.proxy.write_timeout;
    let _ = wire.write_all(&answer.to_http1(true)).await;
    let _ = tokio::time::timeout(within, AsyncWriteExt::shutdown(&mut wire)).await;
    if !matches!(problem, Problem::Head(HeadError::Timeout)) {
        linger(&mut wire, LINGER).await;
    }
}
