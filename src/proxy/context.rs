//! What a connection needs to be served, and how it ends: counted, so that a stop can wait for it, and cut off where that
//! takes too long.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pingora::server::ShutdownWatch;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{client_connection::ClientConnection, live::Live};

/// What a connection needs to be served.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) live: Arc<Live>,
    /// How its requests come.
    pub(super) connection: ClientConnection,
    /// Those that a stop waits for.
    pub(super) running: Running,
    /// Turns true when the proxy is to stop.
    pub(super) shutdown: ShutdownWatch,
}

/// What runs, to be waited for and at last cut off.
#[derive(Debug, Clone)]
pub(super) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

/// Ends when no further request is waited for. Who is about to send one while the proxy is told to stop gets an answer,
/// and is told with it that the connection ends.
pub(super) async fn last_call(mut shutdown: ShutdownWatch) {
    // The sender outlives every connection.
    let _ = shutdown.wait_for(|stop| *stop).await;
    tokio::time::sleep(LAST_CALL).await;
}

/// Reads on for a while: a connection that is closed with bytes unread takes the answer from a client
/// that is still sending.
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
    // Past it, the client has had its time.
    let _ = tokio::time::timeout(within, rest).await;
}

// === impl Context ===

impl Context {
    /// Whether the client has ended its connection of HTTP/2.
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

    /// The same for what runs on one connection: its tasks come and go without a look at the token of all connections,
    /// which is locked each time.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            tasks: self.tasks.clone(),
            cut_off: self.cut_off.child_token(),
        }
    }

    /// Runs `task` to its end or to the cut-off, where it is dropped: an exchange says so in the log
    /// then.
    pub(super) async fn track<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        // With a token of its own: a common one is locked each time that any task looks at it.
        let cut_off = self.cut_off.child_token();
        self.tasks.track_future(cut_off.run_until_cancelled(task)).await
    }

    pub(super) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let running = self.clone();
        // Boxed, since each future that takes another in would have room for it twice.
        let serving = Box::pin(serving);
        // Counted before the task has begun.
        let token = self.tasks.token();
        tokio::spawn(async move {
            running.track(serving).await;
            drop(token);
        });
    }

    /// Waits until all have ended, at most for `bound`; then cuts off those that have not.
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

/// For a request that is on its way when the proxy is told to stop.
const LAST_CALL: Duration = Duration::from_millis(500);
/// How long a client may go on sending what nobody wants after its answer, and how many bytes: enough for most uploads.
pub(super) const LINGER: Duration = Duration::from_secs(2);
pub(super) const MAX_LINGER: usize = 64 * 1024 * 1024;
