//! What runs: counted, so that a stop can wait for it, and cut off where that takes too long.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What runs, to be waited for and at last cut off.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct Running {
    tasks: TaskTracker,
    cut_off: CancellationToken,
}

// === impl Running ===

impl Running {
    pub(super) fn new(cut_off: CancellationToken) -> Self {
        Self {
            tasks: TaskTracker::new(),
            cut_off,
        }
    }

    /// Runs `task` to its end or to the cut-off, where it is dropped: an exchange says so in the log
    /// then.
    pub(in crate::proxy) async fn track<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        self.tasks.track_future(self.cut_off.run_until_cancelled(task)).await
    }

    pub(super) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let running = self.clone();
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
        tracing::info!(running, ?bound, "waiting for what runs to end");
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
