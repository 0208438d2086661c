//! One client connection: its requests one after the other, each to where it belongs. It serves
//! the connections of the listeners and, inside an interception, those that a CONNECT opened.

use std::time::Instant;

use pingora::{
    apps::HttpServerApp as _,
    protocols::{Stream, http::ServerSession},
};
use tokio::io::AsyncWriteExt as _;

use super::{
    client_stream::ClientStream,
    connect,
    context::{Context, last_call, linger},
    distrust,
    head::{self, Head, HeadError, HeadTimes},
    live::Live,
    respond::{Answer, Problem},
};
use crate::seldom::seldom;

/// Serves HTTP/1 requests until the connection ends.
pub(super) async fn serve(mut stream: Stream, context: &Context) {
    let mut times = HeadTimes::first(context);
    let begun = Instant::now();
    let most = context.live.generation().config.proxy.limits.connection_requests;
    for left in (0..most).rev() {
        let head = tokio::select! {
            biased;
            head = Head::read(&mut stream, times, context.live.generation().config.proxy.head) => head,
            () = last_call(context.shutdown.clone()) => return,
        };
        let head = match head {
            Ok(head) => head,
            Err(HeadError::Gone) => {
                // Not a byte came.
                if left + 1 == most {
                    distrust::tell_of_silence(begun.elapsed(), context).await;
                }
                return;
            }
            Err(error) => return reject(stream, &error, context).await,
        };
        if left + 1 == most {
            distrust::note_trust(context);
        }
        if head.connect.is_some() {
            if context.arrival.through.is_some() {
                return reject(stream, &HeadError::NestedConnect, context).await;
            }
            // Some clients begin their TLS without waiting for the answer.
            let stream = ClientStream::new(stream, &head.bytes[head.len..], context.arrival.clone());
            return connect::serve(stream, head, context).await;
        }
        let mut session = ServerSession::new_http1(stream);
        session.set_keepalive(Some(KEEPALIVE_SECONDS));
        session.set_keepalive_reuses_remaining(Some(left));
        session.set_pipelined_prefix(head.bytes);
        let http = context.live.forwarder().http.clone();
        match http.process_new_http(session, &context.shutdown).await {
            Some(reused) => stream = reused.consume().0,
            None => return,
        }
        times = HeadTimes::next(context);
    }
}

/// Answers a head that cannot be used, and closes.
async fn reject(stream: Stream, error: &HeadError, context: &Context) {
    let client = context.arrival.client;
    if !matches!(error, HeadError::Gone) && error.limit().is_none() {
        context.live.metrics.malformed();
    }
    match (error, error.limit(), &context.arrival.through) {
        (_, Some(limit), _) => context.arrival.visit.came_over(limit, client),
        (HeadError::Tls, _, Some(through)) => seldom!(
            warn, %client, origin = %through.origin,
            "TLS came inside the TLS of a CONNECT, where nothing could be decided, so it was closed; list the host \
             in [[https.tunnel]] if that has to pass"
        ),
        (HeadError::Tls, _, None) => seldom!(
            warn, %client,
            "TLS came to a listener that speaks plain HTTP: bots have to name the proxy as http://, or use a \
             listener of [proxy.tls]"
        ),
        (HeadError::Syntax(_), _, Some(through)) => seldom!(
            warn, %client, origin = %through.origin, %error,
            "what came through a CONNECT was refused as malformed; if it is another protocol than HTTP and has to pass, \
             list the host in [[https.tunnel]]"
        ),
        _ => head::tell_of_malformed(client, error),
    }
    answer_and_close(stream, &Problem::Head(error), &context.live).await;
}

/// Answers without a session of pingora's.
pub(super) async fn answer_and_close(mut stream: Stream, problem: &Problem<'_>, live: &Live) {
    let name = live.generation().config.proxy.name.clone();
    let answer = Answer::problem(problem, &http::HeaderMap::new(), &name);
    live.metrics.turned_away(problem.error(), answer.head.status.as_u16());
    // Whoever sent this may be gone.
    let _ = stream.write_all(&answer.to_http1(true)).await;
    let _ = stream.flush().await;
    let _ = stream.shutdown().await;
    if !matches!(problem, Problem::Head(HeadError::Timeout)) {
        linger(&mut stream).await;
    }
}

// === impl HeadTimes ===

impl HeadTimes {
    fn first(context: &Context) -> Self {
        let times = &context.live.generation().config.proxy;
        Self {
            idle: times.header_timeout,
            head: times.header_timeout,
        }
    }

    fn next(context: &Context) -> Self {
        let times = &context.live.generation().config.proxy;
        Self {
            idle: times.idle_timeout,
            head: times.header_timeout,
        }
    }
}

/// Only says that connections are kept: how long is [`HeadTimes`]' to say.
const KEEPALIVE_SECONDS: u64 = 60;
