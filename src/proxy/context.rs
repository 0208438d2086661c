//! What is needed to serve a connection, and to end it: a stop waits for open connections, and cuts them off if that
//! takes too long.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pingora::server::ShutdownWatch;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{client_connection::ClientConnection, live::Live};

/// What is needed to serve a connection.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) live: Arc<Live>,
    pub(super) connection: ClientConnection,
    /// The tasks that a stop waits for.
    pub(super) running: Running,
    /// Becomes true when the proxy begins to stop.
    pub(super) shutdown: ShutdownWatch,
}

/// The tasks that run. A stop waits for them and finally cuts them off.
#[derive(Debug, Clone)]
pub(super) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

/// Ends shortly after the proxy begins to stop, when no further request is awaited on a connection. A client that is
/// about to send one still gets a response, which says that the connection closes.
pub(super) async fn last_call(mut shutdown: ShutdownWatch) {
    // The sender outlives every connection.
    let _ = shutdown.wait_for(|stop| *stop).await;
    tokio::time::sleep(LAST_CALL).await;
}

/// Reads on for a while. If a connection closes with unread bytes, a client that is still sending loses the response.
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
    // After this time, the connection closes in any case.
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

    /// Returns a copy for the tasks of one connection. It has its own token, because each look at the token of all
    /// connections locks that.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            tasks: self.tasks.clone(),
            cut_off: self.cut_off.child_token(),
        }
    }

    /// Runs `task` until it ends or is cut off. A task that is cut off is dropped, and its exchange logs that.
    pub(super) async fn track<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        // With its own token, because a shared token is locked each time that a task looks at it.
        let cut_off = self.cut_off.child_token();
        self.tasks.track_future(cut_off.run_until_cancelled(task)).await
    }

    pub(super) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let running = self.clone();
        // Boxed, because a future that takes in another one would reserve room for it twice.
        let serving = Box::pin(serving);
        // Counts the task before it begins.
        let token = self.tasks.token();
        tokio::spawn(async move {
            running.track(serving).await;
            drop(token);
        });
    }

    /// Waits until all tasks have ended, at most for `bound`, then cuts off the others. Returns whether all of them
    /// ended.
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

/// Time for a request that is on its way when the proxy begins to stop.
const LAST_CALL: Duration = Duration::from_millis(500);
/// How long a client may go on sending after its response, and how many bytes. This is enough for most uploads.
pub(super) const LINGER: Duration = Duration::from_secs(2);
pub(super) const MAX_LINGER: usize = 64 * 1024 * 1024;
