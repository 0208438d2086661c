//! One client connection: its requests one after the other, each to where it belongs. It serves
//! the connections of the listeners and, inside an interception, those that a CONNECT opened.

use std::{net::SocketAddr, sync::Arc};

use pingora::{
    apps::HttpServerApp as _,
    protocols::{Stream, http::ServerSession, l4::stream::Stream as L4Stream},
    server::ShutdownWatch,
};
use tokio::io::AsyncWriteExt as _;

use super::{
    connect,
    generation::Live,
    head::{Head, HeadError, HeadTimes},
    listen::Running,
    respond::{Answer, Problem},
};

/// What a connection needs to be served.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) live: Arc<Live>,
    pub(super) client: SocketAddr,
    /// Those that a stop waits for.
    pub(super) running: Running,
    /// Whether this is the inside of a CONNECT.
    pub(super) inside: bool,
    /// Turns true when the proxy is to stop.
    pub(super) shutdown: ShutdownWatch,
}

/// Serves HTTP/1 requests until the connection ends.
pub(super) async fn serve(mut stream: Stream, context: &Context) {
    let mut times = HeadTimes::first(context);
    loop {
        let mut shutdown = context.shutdown.clone();
        let head = tokio::select! {
            biased;
            head = Head::read(&mut stream, times) => head,
            // Between two requests nobody waits for an answer.
            _ = shutdown.wait_for(|stop| *stop) => return,
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => return reject(stream, &error, context).await,
        };
        if head.connect.is_some() {
            return match plain(stream) {
                Ok(stream) if !context.inside => connect::serve(stream, head, context).await,
                Ok(stream) => reject(Box::new(stream), &HeadError::NestedConnect, context).await,
                Err(stream) => reject(stream, &HeadError::NestedConnect, context).await,
            };
        }
        let mut session = ServerSession::new_http1(stream);
        session.set_keepalive(Some(KEEPALIVE_SECONDS));
        session.set_pipelined_prefix(head.bytes);
        let http = context.live.forwarder().http.clone();
        match http.process_new_http(session, &context.shutdown).await {
            Some(reused) => stream = reused.consume().0,
            None => return,
        }
        times = HeadTimes::next(context);
    }
}

/// The stream as TCP, which all are but those inside an interception's TLS.
fn plain(stream: Stream) -> Result<L4Stream, Stream> {
    if !stream.as_any().is::<L4Stream>() {
        return Err(stream);
    }
    stream
        .into_any()
        .downcast::<L4Stream>()
        .map(|stream| *stream)
        .map_err(|_| unreachable!("its type was looked at"))
}

/// Answers a head that cannot be used, and closes.
async fn reject(mut stream: Stream, error: &HeadError, context: &Context) {
    if *error == HeadError::Gone {
        return;
    }
    tracing::info!(client = %context.client, %error, "a request was refused as malformed");
    let name = context.live.generation().config.proxy.name.clone();
    let answer = Answer::problem(&Problem::Head(error), &http::HeaderMap::new(), &name);
    // Whoever sent this may be gone.
    let _ = stream.write_all(&answer.to_http1(true)).await;
    let _ = stream.flush().await;
    let _ = stream.shutdown().await;
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
