//! Waits for a condition, with a deadline. A test that waits too long fails with the name of the condition.

use std::time::{Duration, Instant};

/// How long a test waits before it fails. It is far longer than a passing test needs, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Calls `condition` again and again until it returns a value.
///
/// # Panics
/// After [`DEADLINE`]. The message contains `what`.
pub async fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = condition() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Does the same as [`until`], with an asynchronous condition.
pub async fn until_async<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Waits for `work`.
///
/// # Panics
/// After [`DEADLINE`]. The message contains `what`.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(done) => done,
        Err(_) => panic!("waited {DEADLINE:?} in vain for {what}"),
    }
}
