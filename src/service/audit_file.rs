//! Opens the file of the audit log again: on SIGUSR1, for log rotation, and after somebody renamed, removed or replaced
//! it. Works even if the configuration file has a mistake.

use std::{sync::Arc, time::Duration};

use tokio::signal::unix::Signal;

use crate::{audit::Displaced, proxy::Live};

/// Runs until `rotations` receives no more signals.
pub(super) async fn keep_open(live: Arc<Live>, mut rotations: Signal) {
    let mut before = Displaced::No;
    let mut is_failing = false;
    loop {
        let is_rotation = tokio::select! {
            signal = rotations.recv() => match signal {
                Some(()) => true,
                None => return,
            },
            () = tokio::time::sleep(CHECK_EVERY) => false,
        };
        if !is_rotation {
            let now = displaced(&live).await;
            match (std::mem::replace(&mut before, now), now) {
                // A rotation sends the signal shortly after it renames the file, so wait for the next check.
                (_, Displaced::No) | (Displaced::No, Displaced::Renamed) => continue,
                (_, Displaced::Renamed) => {}
                (_, Displaced::Removed) if is_failing => {}
                (_, Displaced::Removed) => tracing::warn!(
                    "somebody removed or replaced the file of the audit log, so at least the lines since then are \
                     lost; to rotate the log, rename the file, and compress it only when robotgate has opened a new one"
                ),
            }
        }
        let reopened = reopen(&live, is_failing && !is_rotation).await;
        is_failing = !reopened;
        if reopened {
            before = Displaced::No;
        }
    }
}

async fn displaced(live: &Live) -> Displaced {
    let generation = live.generation();
    let checking = tokio::task::spawn_blocking(move || generation.audit_log_displaced());
    // A panic is already on stderr.
    checking.await.unwrap_or(Displaced::No)
}

/// Opens the audit log again, and returns whether that succeeded. With `was_failing`, does not log the error again.
async fn reopen(live: &Live, was_failing: bool) -> bool {
    // Logs of earlier generations are not reopened: the last lines of old requests belong in the old files.
    let generation = live.generation();
    let reopening = tokio::task::spawn_blocking(move || generation.reopen_audit_log());
    match reopening.await {
        Ok(Ok(true)) => tracing::info!("audit log reopened"),
        Ok(Ok(false)) => {
            tracing::info!("the audit log is written to standard output, so there is no file to reopen");
        }
        Ok(Err(_)) if was_failing => return false,
        Ok(Err(error)) if displaced(live).await == Displaced::Removed => {
            tracing::error!(%error, "cannot reopen the audit log; until this is possible, robotgate forwards nothing");
            return false;
        }
        Ok(Err(error)) => {
            tracing::error!(
                %error,
                "cannot reopen the audit log; until this is possible, robotgate writes to the old file"
            );
            return false;
        }
        Err(error) => {
            tracing::error!(
                %error,
                "cannot reopen the audit log because of an internal error; report it with the panic message above. \
                 robotgate still writes to the file that it has open, even if that was removed"
            );
            return false;
        }
    }
    true
}

const CHECK_EVERY: Duration = Duration::from_secs(5);
