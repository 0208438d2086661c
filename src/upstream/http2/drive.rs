//! The task that reads and writes an HTTP/2 connection. It closes the connection if the origin no longer responds, or
//! if no request needs it.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{Ping, PingPong, client::Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep},
};

use super::State;

/// What the timer of [`drive`] waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimerEvent {
    /// A new stream. Without one, the connection is closed after the idle time.
    Stream,
    /// The time to send the next PING.
    Ping,
    Pong,
    /// The end of the connection, which robotgate is closing.
    End,
}

pub(super) async fn drive<T>(mut connection: Connection<T, Bytes>, state: Arc<State>, idle: Duration)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(pings) = connection.ping_pong() {
        run(&mut connection, pings, &state, idle).await;
    }
    state.away.store(true, Ordering::Relaxed);
    state.sender.lock().take();
}

async fn run<T>(connection: &mut Connection<T, Bytes>, mut pings: PingPong, state: &State, idle: Duration)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let silence = state.bounds.silence;
    let mut wait = TimerEvent::Stream;
    let mut timer = pin!(sleep(idle));
    poll_fn(|cx| {
        loop {
            if Pin::new(&mut *connection).poll(cx).is_ready() {
                return Poll::Ready(());
            }
            state.observe(connection.max_concurrent_send_streams(), cx);
            let is_busy = state.streams.load(Ordering::Relaxed) > 0;
            let next = match wait {
                TimerEvent::Stream if is_busy => Some((TimerEvent::Ping, silence)),
                TimerEvent::Pong => match pings.poll_pong(cx) {
                    Poll::Ready(Ok(_)) => Some((TimerEvent::Ping, silence)),
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => None,
                },
                _ => None,
            };
            if let Some((next, time)) = next {
                wait = next;
                timer.as_mut().reset(Instant::now() + time);
            }
            ready!(timer.as_mut().poll(cx));
            let (next, time) = match wait {
                TimerEvent::Ping if is_busy => match pings.send_ping(Ping::opaque()) {
                    Ok(()) => (TimerEvent::Pong, silence),
                    Err(_) => return Poll::Ready(()),
                },
                TimerEvent::Ping if !state.is_away() => (TimerEvent::Stream, idle),
                TimerEvent::Ping | TimerEvent::Stream => match state.close() {
                    true => (TimerEvent::End, silence),
                    false => (TimerEvent::Ping, silence),
                },
                TimerEvent::Pong => {
                    state.silent.store(true, Ordering::Relaxed);
                    return Poll::Ready(());
                }
                // The origin does not even read the frames that close the connection.
                TimerEvent::End => return Poll::Ready(()),
            };
            wait = next;
            timer.as_mut().reset(Instant::now() + time);
        }
    })
    .await;
}

// === impl State ===

impl State {
    /// Records how many streams may be open at the same time, and whether the connection can open new ones.
    fn observe(&self, allowed: usize, cx: &mut Context<'_>) {
        self.limit
            .store(allowed.min(self.bounds.streams as usize), Ordering::Relaxed);
        let mut sender = self.sender.lock();
        // `poll_ready` is never `Pending`, because only clones of this sender open streams. It fails only if the
        // connection can open no more streams, such as after a GOAWAY.
        if let Some(sender) = &mut *sender
            && matches!(sender.poll_ready(cx), Poll::Ready(Err(_)))
        {
            self.away.store(true, Ordering::Relaxed);
        }
    }

    /// Closes the connection if it has no streams. Returns whether it did.
    fn close(&self) -> bool {
        let mut sender = self.sender.lock();
        if self.streams.load(Ordering::Relaxed) > 0 {
            return false;
        }
        self.away.store(true, Ordering::Relaxed);
        sender.take();
        true
    }
}
