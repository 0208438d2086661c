//! The objects that are needed to serve a connection, and to end it when robotgate stops. A stop waits for open
//! connections, and cuts them off if that takes too long.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pingora::server::ShutdownWatch;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{client_connection::ClientConnection, live::Live};

/// The objects that are needed to serve a connection.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) live: Arc<Live>,
    pub(super) connection: ClientConnection,
    /// The tasks for which robotgate waits when it stops.
    pub(super) running: Running,
    /// Becomes true when the proxy begins to stop.
    pub(super) shutdown: ShutdownWatch,
}

/// The tasks that serve connections and requests. When robotgate stops, it waits for these tasks, and cuts off those
/// that take too long.
#[derive(Debug, Clone)]
pub(super) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

/// Completes shortly after the proxy begins to stop. Connections wait for further requests only until then. So a client
/// that is just sending a request still gets a response, which says that the connection closes.
pub(super) async fn last_call(mut shutdown: ShutdownWatch) {
    // `wait_for` fails only if the sender is dropped, but the sender outlives every connection.
    let _ = shutdown.wait_for(|stop| *stop).await;
    tokio::time::sleep(LAST_CALL).await;
}

/// Reads and drops what the client still sends, for `within` at most. If robotgate closed the connection with unread
/// bytes, a client that is still sending would lose the response.
pub(super) async fn linger(stream: &mut (impl AsyncRead + Unpin), within: Duration) {
    let rest = async {
        let mut sink = [0; 4096];
        let mut left = MAX_LINGER;
        while let Ok(read @ 1..) = stream.read(&mut sink).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    // A timeout is no error here: the connection closes afterwards, even if the client is still sending.
    let _ = tokio::time::timeout(within, rest).await;
}

// === impl Context ===

impl Context {
    /// Returns whether the client has ended its HTTP/2 connection.
    pub(super) fn client_has_ended(&self) -> bool {
        let outer_connect = self.connection.outer_connect.as_deref();
        outer_connect.is_some_and(|outer_connect| outer_connect.client_ended.load(Ordering::Relaxed))
    }
}

// === impl Running ===

impl Running {
    pub(super) fn new(cut_off: CancellationToken) -> Self {
        Self {
            tasks: TaskTracker::new(),
            cut_off,
        }
    }

    /// Returns a copy for the tasks of one connection. The copy has its own cancellation token, because a token is
    /// locked each time a task checks it. With a shared token, connections would wait for each other's checks.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            tasks: self.tasks.clone(),
            cut_off: self.cut_off.child_token(),
        }
    }

    /// Runs `task` until it ends or is cut off. A task that is cut off is dropped, and its exchange logs that it was
    /// cut off.
    pub(super) async fn track<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        // Use a separate cancellation token, because a token is locked each time a task checks it, and tasks would wait
        // for each other's checks.
        let cut_off = self.cut_off.child_token();
        self.tasks.track_future(cut_off.run_until_cancelled(task)).await
    }

    pub(super) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let running = self.clone();
        // Boxed, because a future that contains another future by value would reserve memory for it twice.
        let serving = Box::pin(serving);
        // While this token exists, a stop waits for the task. Take it here, because the task itself begins a little
        // later, when a stop may already have found no tasks.
        let token = self.tasks.token();
        tokio::spawn(async move {
            running.track(serving).await;
            drop(token);
        });
    }

    /// Waits until all tasks have ended, for `bound` at most. Then cuts off the remaining tasks. Returns whether all
    /// tasks ended in time.
    pub(super) async fn drain(&self, bound: Duration) -> bool {
        self.tasks.close();
        let running = self.tasks.len();
        tracing::info!(running, ?bound, "waiting for open exchanges to end");
        let all_ended = tokio::select! {
            () = self.tasks.wait() => true,
            () = tokio::time::sleep(bound) => false,
            () = self.cut_off.cancelled() => false,
        };
        if !all_ended {
            self.cut_off.cancel();
            self.tasks.wait().await;
        }
        all_ended
    }
}

/// When the proxy begins to stop, a client may already have sent its next request. Each connection waits this long for
/// it.
const LAST_CALL: Duration = Duration::from_millis(500);
/// How long robotgate continues to read from a client after sending the response.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// How many bytes robotgate continues to read from a client after sending the response. This is enough for most
/// uploads.
pub(super) const MAX_LINGER: usize = 64 * 1024 * 1024;
