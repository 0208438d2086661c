//! Answers operators on the socket, while the proxy runs: a few at once, each within bounds of size
//! and time, a chunk of the answer in memory at a time.
//!
//! Whatever is sent here, and however slowly it is read, no request of a bot waits for it.

mod answer;

use std::{io, os::unix::net::UnixListener as StdListener, sync::Arc, time::Duration};

use tokio::{
    io::AsyncReadExt as _,
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use self::answer::{Answer, Desk};
use super::{
    protocol::{Line, MAX_REQUEST, Request},
    socket::{Socket, path_beside},
};
use crate::copy::Policy;
use crate::store::Store;

/// The socket that is served.
#[derive(Debug)]
pub struct Serving {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What a client may take.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Clients at once. More wait in the socket's queue.
    clients: usize,
    /// Time to ask.
    request: Duration,
    /// Time to take a chunk of an answer.
    write: Duration,
    /// Time for all of it.
    whole: Duration,
}

// === impl Serving ===

impl Serving {
    /// Answers beside the file of the store's copies, by what `policy` is then. Where no file is open or
    /// no socket can be had, which the log tells, nothing is answered.
    ///
    /// It has to be called within a runtime.
    pub fn start(store: &Arc<Store>, policy: impl Fn() -> Policy + Send + Sync + 'static) -> Option<Self> {
        Self::start_within(store, policy, BOUNDS)
    }

    fn start_within(
        store: &Arc<Store>,
        policy: impl Fn() -> Policy + Send + Sync + 'static,
        bounds: Bounds,
    ) -> Option<Self> {
        let file = store.disk()?.path();
        let bound = Socket::bind(file).and_then(|(socket, listener)| Ok((socket, listening(listener)?)));
        let (socket, listener) = bound
            .inspect_err(|error| {
                tracing::warn!(
                    path = %path_beside(file).display(),
                    "no socket for `robotgate cache`, which can show nothing while this runs: {error}"
                );
            })
            .ok()?;
        let desk = Arc::new(Desk {
            store: store.clone(),
            policy: Box::new(policy),
        });
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, socket, desk, bounds, stop.clone()));
        Some(Self { stop, task })
    }

    /// Ends what is being answered and removes the socket. This comes before the file is closed, after
    /// which another proxy may have put a socket there.
    pub async fn stop(self) {
        self.stop.cancel();
        // A task that panicked has said so.
        let _ = self.task.await;
    }
}

fn listening(listener: StdListener) -> io::Result<UnixListener> {
    UnixListener::from_std(listener)
}

async fn accept(listener: UnixListener, socket: Socket, desk: Arc<Desk>, bounds: Bounds, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(bounds.clients));
    let next = async || {
        let place = places.clone().acquire_owned().await;
        (listener.accept().await, place)
    };
    while let Some((accepted, place)) = stop.run_until_cancelled(next()).await {
        match accepted {
            Ok((stream, _)) => {
                let (desk, stop) = (desk.clone(), stop.clone());
                tokio::spawn(async move {
                    let talking = tokio::time::timeout(bounds.whole, talk(stream, &desk, bounds));
                    if let Some(Ok(Err(error))) = stop.run_until_cancelled(talking).await {
                        tracing::debug!(%error, "a client of the socket beside the copies went away");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to the socket beside the copies could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(socket);
}

/// Takes one request and answers it.
async fn talk(mut stream: UnixStream, desk: &Desk, bounds: Bounds) -> io::Result<()> {
    let asked = tokio::time::timeout(bounds.request, read_request(&mut stream)).await??;
    let mut answer = Answer::new(stream, bounds.write);
    let last = match serde_json::from_slice::<Request>(&asked) {
        Ok(request) => match desk.answer(request, &mut answer).await? {
            Ok(()) => Line::End,
            Err(trouble) => Line::Error(trouble.to_string()),
        },
        Err(error) => Line::Error(format!("this is no request that is understood here: {error}")),
    };
    answer.say(&last).await?;
    answer.send().await
}

/// The bytes of one line; an error where there is none within the bound.
async fn read_request(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut asked = Vec::with_capacity(MAX_REQUEST);
    loop {
        let room = (MAX_REQUEST - asked.len()) as u64;
        if stream.take(room).read_buf(&mut asked).await? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no request within a line of 4 KiB",
            ));
        }
        if let Some(end) = memchr::memchr(b'\n', &asked) {
            asked.truncate(end);
            return Ok(asked);
        }
    }
}

const BOUNDS: Bounds = Bounds {
    clients: 8,
    request: Duration::from_secs(5),
    write: Duration::from_secs(10),
    whole: Duration::from_secs(120),
};
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
