//! Keeps systemd's picture of the daemon true: each reload and how it ended, the drain, and the line of status.
//!
//! It reloads and drains nothing itself.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{notify::Notifier, outcome::Reloads, status::Status};
use crate::proxy::Live;

/// What systemd is told of a running daemon.
pub struct Report {
    notifier: Notifier,
    live: Arc<Live>,
    reloads: Arc<Reloads>,
}

// === impl Report ===

impl Report {
    /// For a daemon that is ready.
    pub fn ready(notifier: Notifier, live: Arc<Live>, reloads: Arc<Reloads>) -> Arc<Self> {
        let report = Self {
            notifier,
            live,
            reloads,
        };
        report.tell();
        report.notifier.ready();
        Arc::new(report)
    }

    /// Beside which a reload may begin.
    pub fn reloading(&self) {
        self.notifier.reloading();
    }

    /// Behind which it has ended, whichever way.
    pub fn reloaded(&self) {
        self.tell();
        self.notifier.ready();
    }

    /// Tells again and again, for as long as the daemon serves.
    pub async fn keep_up(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.tell();
        }
    }

    /// Tells how a drain goes that may last for `bound`, until it is over or the future is dropped.
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

    fn tell(&self) {
        let last = self.reloads.last();
        let rejected = last.and_then(|last| Some((last.time, last.outcome.as_ref().err()?.clone())));
        let status = Status::Serving {
            generation: self.live.generation().number,
            connections: self.live.connections(),
            rejected,
        };
        self.notifier.status(&status.to_string());
    }
}

const PERIOD: Duration = Duration::from_secs(10);
const DRAIN_PERIOD: Duration = Duration::from_secs(1);
