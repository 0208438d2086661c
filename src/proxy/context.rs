//! The objects that are needed to serve a connection, and to end it when robotgate stops.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pingora::server::ShutdownWatch;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{client_connection::ClientConnection, live::Live};

#[derive(Clone)]
pub(super) struct Context {
    pub(super) live: Arc<Live>,
    pub(super) connection: ClientConnection,
    pub(super) running: Running,
    pub(super) shutdown: ShutdownWatch,
}

/// The tasks that serve connections and requests. A stop waits for them, and cuts off those that take too long.
#[derive(Debug, Clone)]
pub(super) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

/// Completes shortly after the proxy begins to stop, so that a request already on its way still gets a response.
pub(super) async fn last_call(mut shutdown: ShutdownWatch) {
    // This cannot fail, because the watch's sender outlives every connection.
    let _ = shutdown.wait_for(|stop| *stop).await;
    tokio::time::sleep(LAST_CALL).await;
}

/// Reads and drops what the client still sends. If robotgate closed the connection with unread bytes, the client could
/// lose the response.
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
    // A timeout is no error here: the connection closes afterwards.
    let _ = tokio::time::timeout(within, rest).await;
}

// === impl Context ===

impl Context {
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

    /// Returns a copy for the tasks of one connection. It has its own cancellation token: each check for cancellation
    /// locks the token, so connections with the same token would wait for each other.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            tasks: self.tasks.clone(),
            cut_off: self.cut_off.child_token(),
        }
    }

    /// Runs `task` until it ends or is cut off. A task that is cut off is dropped, which ends its exchange as aborted.
    pub(super) async fn track<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        // A separate token, because each check for cancellation locks the token.
        let cut_off = self.cut_off.child_token();
        self.tasks.track_future(cut_off.run_until_cancelled(task)).await
    }

    pub(super) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let cut_off = self.cut_off.child_token();
        // Boxed, because a future that contains another one by value reserves memory for it twice.
        let serving = Box::pin(serving);
        // Count the task before it begins, or a stop could find no tasks.
        tokio::spawn(self.tasks.track_future(async move {
            cut_off.run_until_cancelled(serving).await;
        }));
    }

    /// Waits until all tasks have ended. After `bound`, or when the token of [`new`](Self::new) is cancelled, cuts off
    /// the remaining ones and returns `false`.
    pub(super) async fn drain(&self, bound: Duration) -> bool {
        self.tasks.close();
        let running = self.tasks.len();
        if running > 0 {
            tracing::info!(running, ?bound, "waiting for open exchanges to end");
        }
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

const LAST_CALL: Duration = Duration::from_millis(500);
/// How long robotgate continues to read from a client after sending the response.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// Maximum number of bytes that robotgate reads from a client after sending the response. Enough for most uploads.
pub(super) const MAX_LINGER: usize = 64 * 1024 * 1024;
