//! Tells, while the daemon stops, what it waits for and how to end that. It ends nothing itself.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::proxy::Live;

/// Tells again and again, of a drain that lasts for `bound` at most, until the future is dropped.
pub(super) async fn tell(live: Arc<Live>, bound: Duration) {
    let end = Instant::now() + bound;
    // Most drains are over at once, and need no words.
    let mut pause = FIRST;
    loop {
        tokio::time::sleep(pause).await;
        pause = PERIOD;
        let left = end.saturating_duration_since(Instant::now());
        tracing::info!(
            connections = live.connections(),
            left = format_args!("{} s", left.as_secs()),
            "still waiting for what runs to end; a second signal (Ctrl-C, SIGTERM) ends it at once"
        );
    }
}

const FIRST: Duration = Duration::from_millis(300);
const PERIOD: Duration = Duration::from_secs(5);
