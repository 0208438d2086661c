//! Opens the file of the audit log again: on SIGUSR1, for log rotation, and after somebody renamed, removed or replaced
//! it. Works even if the configuration file has a mistake.

use std::{sync::Arc, time::Duration};

use tokio::signal::unix::Signal;

use crate::proxy::Live;

/// Runs until `rotations` receives no more signals.
pub(super) async fn keep_open(live: Arc<Live>, mut rotations: Signal) {
    let mut was_displaced = false;
    loop {
        let is_rotation = tokio::select! {
            signal = rotations.recv() => match signal {
                Some(()) => true,
                None => return,
            },
            () = tokio::time::sleep(CHECK_EVERY) => false,
        };
        if !is_rotation {
            let is_displaced = is_displaced(&live).await;
            // A rotation renames the file shortly before it sends the signal, so wait for the next check.
            let is_lost = is_displaced && was_displaced;
            was_displaced = is_displaced;
            if !is_lost {
                continue;
            }
            tracing::warn!(
                "the file of the audit log was renamed, removed or replaced without a SIGUSR1; until now, robotgate wrote \
                 to the old file"
            );
        }
        was_displaced = false;
        reopen(&live).await;
    }
}

async fn is_displaced(live: &Live) -> bool {
    let generation = live.generation();
    let checking = tokio::task::spawn_blocking(move || generation.is_audit_log_displaced());
    checking.await.unwrap_or_default()
}

async fn reopen(live: &Live) {
    // Logs of earlier generations are not reopened: the last lines of old requests belong in the old files.
    let generation = live.generation();
    let reopening = tokio::task::spawn_blocking(move || generation.reopen_audit_log());
    match reopening.await {
        Ok(Ok(true)) => tracing::info!("audit log reopened"),
        Ok(Ok(false)) => {
            tracing::info!("the audit log is written to standard output, so there is no file to reopen")
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "cannot reopen the audit log; robotgate keeps writing to the old file")
        }
        Err(error) => tracing::error!(%error, "cannot reopen the audit log: internal error"),
    }
}

const CHECK_EVERY: Duration = Duration::from_secs(5);
