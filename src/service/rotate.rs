//! Log rotation: on SIGUSR1 the audit log is opened anew, after someone has moved its file away. No configuration is
//! read for it, so a file with a mistake in it does not keep a full disk from being cleared.

use std::sync::Arc;

use tokio::signal::unix::Signal;

use crate::proxy::Live;

/// Waits for the signal for as long as the daemon runs.
pub(super) async fn run(live: Arc<Live>, mut asked: Signal) {
    while asked.recv().await.is_some() {
        // Those that a reload has replaced write what is left, to where it belongs.
        let generation = live.generation();
        // A disk is asked: not on a thread that serves requests.
        let reopening = tokio::task::spawn_blocking(move || generation.reopen_audit_log());
        match reopening.await {
            Ok(Ok(true)) => tracing::info!("audit log reopened"),
            Ok(Ok(false)) => tracing::info!("the audit log goes to standard output, so there is no file to open anew"),
            Ok(Err(error)) => tracing::error!(%error, "the audit log is not opened anew; it goes on in the old file"),
            Err(error) => tracing::error!(%error, "opening the audit log anew failed inside"),
        }
    }
}
