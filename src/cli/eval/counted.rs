//! Input whose bytes are counted as they are read, so that a person can be told how far it is.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::cli::progress::Progress;

/// The input, and how much of it was read.
pub(super) struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
    /// Bytes there are, where it is a file.
    all: Option<u64>,
}

// === impl Counted ===

impl<R: Read + AsFd> Counted<R> {
    pub(super) fn new(input: R) -> Self {
        let all = rustix::fs::fstat(&input).ok().and_then(|state| {
            let is_file = rustix::fs::FileType::from_raw_mode(state.st_mode).is_file();
            is_file.then(|| u64::try_from(state.st_size).unwrap_or(0))
        });
        Self {
            input,
            read: Arc::default(),
            all,
        }
    }

    /// Tells how far it is.
    pub(super) fn progress(&self) -> Progress {
        let (read, all) = (self.read.clone(), self.all);
        Progress::begin(move || said(read.load(Ordering::Relaxed), all))
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

fn said(read: u64, all: Option<u64>) -> String {
    let shown = |bytes: u64| format!("{}.{}", bytes / MIB, bytes % MIB * 10 / MIB);
    match all {
        Some(all) => format!("deciding, {} of {} MiB", shown(read), shown(all)),
        None => format!("deciding, {} MiB so far", shown(read)),
    }
}

const MIB: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_is_said_in_mebibytes() {
        assert_eq!(said(3 << 19, Some(12 << 20)), "deciding, 1.5 of 12.0 MiB");
        assert_eq!(said(0, None), "deciding, 0.0 MiB so far");
    }
}
