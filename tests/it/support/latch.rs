//! A latch: any number of tasks can wait for it, and a test opens it once.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Clone)]
pub struct Latch(Arc<watch::Sender<bool>>);

impl Latch {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Opens the latch for the tasks that wait. It stays open for later tasks.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub async fn opened(&self) {
        self.0
            .subscribe()
            .wait_for(|open| *open)
            .await
            .expect("the sender is ours");
    }
}
