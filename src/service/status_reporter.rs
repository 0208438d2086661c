//! Reports to systemd what the daemon does: the status line for `systemctl status`, reloads and the stop. Also logs a
//! stop that takes long.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{Reloads, systemd::Notifier};
use crate::{
    proxy::Live,
    text::{Minute, count},
};

/// Reports the state of a running daemon to systemd.
pub struct StatusReporter {
    notifier: Notifier,
    live: Arc<Live>,
    reloads: Reloads,
}

enum Status {
    Serving {
        generation: u64,
        connections: usize,
        /// When and why the last reload was rejected, if it was.
        rejected: Option<(SystemTime, String)>,
    },
    Draining {
        connections: usize,
        left: Duration,
    },
}

// === impl StatusReporter ===

impl StatusReporter {
    /// Reports that the daemon is ready.
    pub fn ready(notifier: Notifier, live: Arc<Live>, reloads: Reloads) -> Arc<Self> {
        let report = Self {
            notifier,
            live,
            reloads,
        };
        report.update();
        report.notifier.ready();
        Arc::new(report)
    }

    /// Reports that a reload begins.
    pub fn reloading(&self) {
        self.notifier.reloading();
    }

    /// Reports that a reload has ended, successfully or not.
    pub fn reloaded(&self) {
        self.update();
        self.notifier.ready();
    }

    /// Updates the status line periodically while the daemon serves.
    pub async fn keep_up(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.update();
        }
    }

    /// Tells systemd every second how many connections are still open, and how much of the time `bound` is left. Runs
    /// until the future is dropped.
    pub async fn drain(self: Arc<Self>, bound: Duration) {
        self.notifier.stopping();
        let end = Instant::now() + bound;
        loop {
            let status = Status::Draining {
                connections: self.live.connections(),
                left: end.saturating_duration_since(Instant::now()),
            };
            self.notifier.status(&status.to_string());
            tokio::time::sleep(DRAIN_PERIOD).await;
        }
    }

    fn update(&self) {
        let last = self.reloads.load_full();
        let rejected = last.and_then(|last| Some((last.time.0, last.error.clone()?)));
        let status = Status::Serving {
            generation: self.live.generation().number,
            connections: self.live.connections(),
            rejected,
        };
        self.notifier.status(&status.to_string());
    }
}

// === impl Status ===

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Serving {
                generation,
                connections,
                rejected,
            } => {
                write!(f, "configuration {generation}, {}", count(*connections, "connection"))?;
                if let Some((time, error)) = rejected {
                    write!(f, "; the file was rejected at {}: {error}", Minute(*time))?;
                }
                Ok(())
            }
            Status::Draining { connections, left } => {
                write!(
                    f,
                    "stopping: waiting for {}, at most {} s more",
                    count(*connections, "connection"),
                    left.as_secs()
                )
            }
        }
    }
}

/// Runs until the future is dropped.
pub(super) async fn log_drain(live: Arc<Live>, bound: Duration) {
    let end = Instant::now() + bound;
    let mut pause = FIRST;
    loop {
        tokio::time::sleep(pause).await;
        pause = LOG_PERIOD;
        let left = end.saturating_duration_since(Instant::now());
        tracing::info!(
            connections = live.connections(),
            left = format_args!("{} s", left.as_secs()),
            "still waiting for open exchanges to end; a second signal (Ctrl-C, SIGTERM) stops immediately"
        );
    }
}

const PERIOD: Duration = Duration::from_secs(10);
const DRAIN_PERIOD: Duration = Duration::from_secs(1);
/// Time from the beginning of the stop to the first log line.
const FIRST: Duration = Duration::from_millis(300);
const LOG_PERIOD: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_for_systemd_is_short() {
        let rejected = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 42_000);
        let serving = |connections, rejected| Status::Serving {
            generation: 3,
            connections,
            rejected,
        };
        for (status, text) in [
            (serving(12, None), "configuration 3, 12 connections"),
            (serving(1, None), "configuration 3, 1 connection"),
            (
                serving(0, Some((rejected, "robotgate.toml:3:1: unknown key \"x\"".to_owned()))),
                "configuration 3, 0 connections; the file was rejected at 1994-11-06 08:49 UTC: robotgate.toml:3:1: unknown key \"x\"",
            ),
            (
                Status::Draining {
                    connections: 5,
                    left: Duration::from_millis(29_900),
                },
                "stopping: waiting for 5 connections, at most 29 s more",
            ),
        ] {
            assert_eq!(status.to_string(), text);
        }
    }
}
