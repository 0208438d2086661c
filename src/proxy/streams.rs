//! Serves the requests of an HTTP/2 connection, and limits how many a client may send and cancel. The HTTP/2 library
//! limits malformed frames and endless heads (RFC 9113 §10.5).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::BytesMut;
use parking_lot::Mutex;
use pingora::{
    apps::{HttpServerApp, ReusedHttpStream, ServerApp as _},
    protocols::{
        Stream,
        http::{ServerSession, v2::server::H2Options},
    },
    server::ShutdownWatch,
};
use tokio::{
    io::AsyncWriteExt,
    sync::{Notify, watch},
};

use super::{
    client::Client,
    client_connection::OuterConnect,
    client_stream::ClientStream,
    context::{Context, last_call, linger},
    gate,
    limits::Limit,
    rejections,
    timer::Timer,
};

pub(super) async fn serve(stream: Stream, outer_connect: Arc<OuterConnect>, context: &Context) {
    let started = Instant::now();
    let (header_timeout, idle_timeout) = {
        let proxy = &context.live.current().config.proxy;
        (proxy.header_timeout, proxy.idle_timeout)
    };
    // Wait for the first byte, because pingora would report an error for a connection that closes unused.
    let mut stream = ClientStream::new(stream, BytesMut::new());
    let first = tokio::select! {
        first = tokio::time::timeout(header_timeout, stream.read_early()) => first,
        () = last_call(context.shutdown.clone()) => return,
    };
    match first {
        Ok(Ok(1..)) => rejections::note_trust(context),
        Ok(_) => return rejections::log_silent_close(started.elapsed(), context).await,
        Err(_) => return,
    }
    let given_back = stream.lend(outer_connect.client_ended.clone());
    let stream = Box::new(stream);
    let (retire, retiring) = watch::channel(false);
    let streams = Arc::new(Streams::new(context, retire, outer_connect.clone()));
    let mut stopping = context.shutdown.clone();
    let stop = {
        let streams = streams.clone();
        async move {
            let _ = stopping.wait_for(|stop| *stop).await;
            streams.retire.send_replace(true);
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = streams.process_new(stream, &retiring) => {}
        () = streams.silence(header_timeout, idle_timeout) => {}
        () = stop => {}
        () = outer_connect.resets.enough.cancelled() => {
            context.connection.guard.count_exceeded(Limit::Http2Resets, context.connection.client);
            return;
        }
    }
    // A client that still reads responses also sends window updates. If robotgate closed the connection before it has
    // read these, the client could lose the rest of its responses.
    if let Ok(mut stream) = given_back.await {
        // If the connection is broken, the reads in `linger` end immediately.
        let _ = tokio::time::timeout(DRAIN_TIME, AsyncWriteExt::shutdown(&mut stream)).await;
        linger(&mut stream, DRAIN_TIME).await;
    }
}

struct Streams {
    /// Owned, because a request's task can outlive the task of its connection.
    context: Context,
    max_streams: u32,
    max_resets: u32,
    max_header_list: u32,
    /// Notified when a request begins while no other runs, and when the last running one ends.
    changed: Notify,
    left: AtomicU32,
    retire: watch::Sender<bool>,
    /// Timers of ended requests, for reuse.
    timers: Mutex<Vec<Timer>>,
    outer_connect: Arc<OuterConnect>,
}

// === impl Streams ===

impl Streams {
    fn new(context: &Context, retire: watch::Sender<bool>, outer_connect: Arc<OuterConnect>) -> Self {
        let proxy = &context.live.generation().config.proxy;
        Self {
            context: Context {
                running: context.running.of_connection(),
                ..context.clone()
            },
            max_streams: proxy.limits.http2_streams,
            max_resets: proxy.limits.http2_resets,
            // Twice robotgate's own limit: the library refuses a larger head without saying why, but robotgate says why
            // it refuses a head between the two limits. HTTP/2 also counts 32 bytes more for each field (RFC 9113
            // §6.5.2).
            max_header_list: u32::try_from(2 * proxy.head.bytes).unwrap_or(u32::MAX),
            changed: Notify::new(),
            left: AtomicU32::new(proxy.limits.connection_requests),
            retire,
            timers: Mutex::default(),
            outer_connect,
        }
    }

    /// Returns when the first request has not begun within `first`, or when no request has run for `idle`.
    async fn silence(&self, first: Duration, idle: Duration) {
        let mut within = first;
        loop {
            let changed = self.changed.notified();
            match self.outer_connect.resets.served.load(Ordering::Relaxed) {
                0 => match tokio::time::timeout(within, changed).await {
                    Ok(()) => {}
                    Err(_) => return,
                },
                _ => changed.await,
            }
            within = idle;
        }
    }

    /// Counts a request that begins, and tells the client if it is the last one allowed on this connection. Returns
    /// `false` if too many requests run, so that robotgate must not serve this one.
    fn begin(&self) -> bool {
        if self.left.fetch_sub(1, Ordering::Relaxed) <= 1 {
            // Keep `left` from wrapping around.
            self.left.store(1, Ordering::Relaxed);
            self.retire.send_replace(true);
        }
        // A client has at most `max_streams` requests open. If twice as many run, it cancels requests faster than
        // robotgate can end them, so the connection ends.
        let under_way = self.outer_connect.resets.served.fetch_add(1, Ordering::Relaxed);
        if under_way == 0 {
            self.changed.notify_one();
        }
        if under_way >= 2 * self.max_streams {
            self.outer_connect.resets.enough.cancel();
            return false;
        }
        true
    }

    fn end(&self) {
        if self.outer_connect.resets.served.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.changed.notify_one();
        }
    }
}

#[async_trait]
impl HttpServerApp for Streams {
    async fn process_new_http(self: &Arc<Self>, session: ServerSession, _: &ShutdownWatch) -> Option<ReusedHttpStream> {
        if self.begin() {
            let mut timer = self.timers.lock().pop().unwrap_or_default();
            if let ServerSession::H2(session) = session {
                let serving = gate::serve(Client::http2(session), &self.context, &mut timer);
                self.context.running.track(serving).await;
            }
            self.timers.lock().push(timer);
        }
        self.end();
        None
    }

    fn h2_options(&self) -> Option<H2Options> {
        let mut options = H2Options::new();
        options
            .max_concurrent_streams(self.max_streams)
            // This limit of the library is so high that a client exceeds robotgate's limits first. Only robotgate
            // reports a client that exceeds a limit.
            .max_pending_accept_reset_streams(UNCOUNTED * (self.max_streams as usize + self.max_resets as usize))
            .max_send_buffer_size(SEND_BUFFER)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(4 * WINDOW)
            .max_header_list_size(self.max_header_list);
        Some(options)
    }
}

/// Maximum number of bytes of a response that the HTTP/2 library holds until they are sent to the client.
const SEND_BUFFER: usize = 64 * 1024;
/// How much content of one request a client may send before the origin accepts it, in bytes.
const WINDOW: u32 = 256 * 1024;
/// Before robotgate closes the connection of a slow client, it waits at most this time to send the last bytes, and then
/// at most this time for the client to read its last responses.
const DRAIN_TIME: Duration = Duration::from_secs(10);
/// The library's own limit for cancelled requests is this many times higher than robotgate's, so that robotgate's limit
/// applies first.
const UNCOUNTED: usize = 100;
