//! A latch that a test opens once, and that any number of tasks wait for.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Clone)]
pub struct Latch(Arc<watch::Sender<bool>>);

impl Latch {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Opens the latch, for tasks that come later too.
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
