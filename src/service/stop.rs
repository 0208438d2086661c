//! How the daemon stops: the signals that end it, and closing its files.

use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{audit::MAX_WAIT, proxy::Live, store::Disk};

pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    at_terminal: bool,
}

// === impl Stop ===

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            at_terminal: io::stderr().is_terminal(),
        })
    }

    pub(super) async fn requested(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                // SIGHUP requests a reload. But if the terminal was closed, SIGHUP reports this, and the daemon stops.
                Some(()) = self.hangup.recv() => if self.at_terminal && !io::stderr().is_terminal() {
                    return "SIGHUP";
                }
            }
        }
    }
}

/// Ends the running fetches, logs the stop, and waits a limited time until logs, robots.txt copies and evidence are
/// written, and the logs are sealed.
///
/// `aborted` is the number of exchanges aborted before the stop; `None` if the stop does not wait for exchanges.
pub(super) async fn close_files(live: &Arc<Live>, cause: &str, aborted: Option<u64>) {
    let (logs, store) = (live.audit_logs(), live.store().clone());
    // End the fetches before closing the logs, so that the logs get the records of the fetches.
    let _ = tokio::time::timeout(MAX_WAIT, store.end_fetches()).await;
    let _ = tokio::time::timeout(MAX_WAIT, live.generation().finish_changes()).await;
    let cut_off = aborted.map(|before| live.metrics().aborted() - before);
    live.generation().log_stop(cause, cut_off);
    let evidence = live.generation().evidence().cloned();
    let closing_evidence = tokio::task::spawn_blocking(move || evidence.map(|evidence| evidence.close()));
    let sealer = live.generation().sealer().cloned();
    let closing_logs = tokio::task::spawn_blocking(move || logs.iter().for_each(|log| log.close()));
    let closing_copies = tokio::task::spawn_blocking(move || store.disk().map(Disk::close));
    let (_, logs, copies) = tokio::join!(
        tokio::time::timeout(MAX_WAIT, closing_evidence),
        tokio::time::timeout(MAX_WAIT, closing_logs),
        tokio::time::timeout(MAX_WAIT, closing_copies),
    );
    // Seal the logs now that they are complete. Lines that are not sealed in time are sealed after the next start.
    let closing_seal = tokio::task::spawn_blocking(move || sealer.map(|sealer| sealer.close()));
    let _ = tokio::time::timeout(MAX_WAIT, closing_seal).await;
    if logs.is_err() {
        tracing::error!(
            "the last lines of the audit log are lost, because its output did not accept them before robotgate stopped"
        );
    }
    if copies.is_err() {
        tracing::error!(
            "the most recent robots.txt files were not saved: writing to the disk did not finish in time. robotgate \
             fetches them again after the restart"
        );
    }
}
