//! How the daemon stops: the signals that end it, and closing its files.

use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{audit::MAX_WAIT, proxy::Live, store::Disk};

/// The signals that end the daemon.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Whether the daemon was started at a terminal, which may be closed later.
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
                // SIGHUP has two causes: if stderr is no longer a terminal, the terminal was closed. Otherwise,
                // somebody requests a reload.
                Some(()) = self.hangup.recv() => if self.at_terminal && !io::stderr().is_terminal() {
                    return "SIGHUP";
                }
            }
        }
    }
}

/// Ends the running fetches, logs the stop, and waits until everything is written: the logs, the robots.txt copies and
/// the evidence. Waits only for a limited time, because an output can block forever.
///
/// `aborted` is how many exchanges had been aborted before the stop. It is `None` if the stop does not wait for open
/// exchanges.
pub(super) async fn close_files(live: &Arc<Live>, cause: &str, aborted: Option<u64>) {
    let (logs, store) = (live.audit_logs(), live.store().clone());
    // End the fetches before closing the logs, because the logs need the records of these fetches.
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
    // The logs are complete now, so seal them. Lines that are not sealed in time are sealed after the next start.
    let closing_seal = tokio::task::spawn_blocking(move || sealer.map(|sealer| sealer.close()));
    let _ = tokio::time::timeout(MAX_WAIT, closing_seal).await;
    if logs.is_err() {
        tracing::error!("the last lines of the audit log are lost, because its output does not accept them");
    }
    if copies.is_err() {
        tracing::error!(
            "the most recent robots.txt files were not saved: writing to the disk did not finish in time. robotgate \
             fetches them again after the restart"
        );
    }
}
