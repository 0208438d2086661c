//! How many there are of something now: each counts for as long as it is held, however its end comes about.

use std::{
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::label::Label;

/// A gauge for each value of a label.
#[derive(Debug)]
pub(super) struct Gauges<L> {
    counts: Box<[Arc<AtomicU64>]>,
    label: PhantomData<L>,
}

/// One of those that are counted. It ends when this is dropped.
#[derive(Debug)]
pub struct Present(Arc<AtomicU64>);

// === impl Gauges ===

impl<L: Label> Default for Gauges<L> {
    fn default() -> Self {
        Self {
            counts: L::ALL.iter().map(|_| Arc::default()).collect(),
            label: PhantomData,
        }
    }
}

impl<L: Label> Gauges<L> {
    pub(super) fn enter(&self, label: L) -> Present {
        let count = &self.counts[label.index()];
        count.fetch_add(1, Ordering::Relaxed);
        Present(count.clone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (L, u64)> {
        std::iter::zip(L::ALL, &self.counts).map(|(label, count)| (*label, count.load(Ordering::Relaxed)))
    }
}

// === impl Present ===

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
