//! Keeps the latest records of the audit log in memory, for operators: requests that were not allowed, changes of
//! robots.txt files, and all decisions. When one of these three lists is full, it drops its oldest records.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;

use super::LatestDecisions;

/// The latest lines of the audit log, in memory.
#[derive(Debug)]
pub struct Recent {
    refused: Mutex<Ring>,
    changed: Mutex<Ring>,
    decisions: LatestDecisions,
}

#[derive(Debug)]
struct Ring {
    max_lines: usize,
    max_bytes: usize,
    lines: VecDeque<Arc<[u8]>>,
    bytes: usize,
    /// The number of the newest line, or 0 before the first line.
    newest: u64,
}

/// The result of [`Recent::tail`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The number to pass as `after` to get the lines that follow these.
    pub next: u64,
    /// Number of requested lines that are no longer stored.
    pub missed: u64,
    /// The lines with their numbers, the newest last.
    pub lines: Vec<(u64, Arc<[u8]>)>,
}

// === impl Recent ===

impl Recent {
    /// Returns the latest decisions, allowed ones too.
    pub fn decisions(&self) -> &LatestDecisions {
        &self.decisions
    }

    /// Stores the line of a decision whose verdict was not `allow`. For a withdrawn response, this line is not in the
    /// log, which has a `withdrawn` record instead.
    pub fn refused(&self, line: &[u8]) {
        let line = Arc::from(line);
        self.refused.lock().push(line);
    }

    /// Stores the line of a `robots-changed` record.
    pub fn changed(&self, line: &[u8]) {
        let line = Arc::from(line);
        self.changed.lock().push(line);
    }

    /// Returns the last `limit` lines of `robots-changed` records, the newest last.
    pub fn changes(&self, limit: usize) -> Vec<Arc<[u8]>> {
        let ring = self.changed.lock();
        let skipped = ring.lines.len().saturating_sub(limit);
        ring.lines.iter().skip(skipped).cloned().collect()
    }

    /// Returns empty lists that continue the line numbers. They replace `self` after a change of the privacy settings,
    /// because the old lines may show what the new settings hide.
    pub fn successor(&self) -> Self {
        let successor = Self::default();
        successor.refused.lock().newest = self.refused.lock().newest;
        successor
    }

    /// Returns the lines that [`refused`](Self::refused) stored: those after the number `after`, or all.
    pub fn tail(&self, after: Option<u64>) -> Tail {
        let ring = self.refused.lock();
        let oldest = ring.newest + 1 - ring.lines.len() as u64;
        // A number that no line has had yet is from an earlier run of robotgate. Ignore it.
        let after = after.filter(|after| *after <= ring.newest);
        let (first, missed) = match after {
            Some(after) => (oldest.max(after + 1), oldest.saturating_sub(after + 1)),
            None => (oldest, 0),
        };
        // This is at most the number of stored lines, so it fits into `usize`.
        let skipped = (first - oldest) as usize;
        let lines: Vec<_> = (first..).zip(ring.lines.iter().skip(skipped).cloned()).collect();
        Tail {
            next: ring.newest,
            missed,
            lines,
        }
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            refused: Mutex::new(Ring::new(MAX_LINES, MAX_BYTES)),
            changed: Mutex::new(Ring::new(MAX_CHANGES, MAX_CHANGES_BYTES)),
            decisions: LatestDecisions::default(),
        }
    }
}

// === impl Ring ===

impl Ring {
    fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            max_lines,
            max_bytes,
            lines: VecDeque::new(),
            bytes: 0,
            newest: 0,
        }
    }

    fn push(&mut self, line: Arc<[u8]>) {
        self.bytes += line.len();
        self.newest += 1;
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || self.bytes > self.max_bytes {
            let Some(gone) = self.lines.pop_front() else { return };
            self.bytes -= gone.len();
        }
    }
}

/// Maximum number and bytes of the lines in `refused`. A typical line takes 1 kB, the longest more than 100 kB.
const MAX_LINES: usize = 1000;
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number and bytes of the lines in `changed`. A typical line takes 1 kB, the longest more than 100 kB.
const MAX_CHANGES: usize = 200;
const MAX_CHANGES_BYTES: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(tail: &Tail) -> Vec<u64> {
        tail.lines.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn the_tail_of_an_empty_list_is_empty() {
        let expected = Tail {
            next: 0,
            missed: 0,
            lines: Vec::new(),
        };
        for after in [None, Some(0), Some(7)] {
            assert_eq!(Recent::default().tail(after), expected, "{after:?}");
        }
    }

    #[test]
    fn a_client_that_polls_gets_each_line_once() {
        let recent = Recent::default();
        for line in 1..=5 {
            recent.refused(format!("line {line}").as_bytes());
        }
        for (after, found) in [
            (None, &[1, 2, 3, 4, 5][..]),
            (Some(0), &[1, 2, 3, 4, 5]),
            (Some(2), &[3, 4, 5]),
            (Some(5), &[]),
            (Some(900), &[1, 2, 3, 4, 5]),
        ] {
            let tail = recent.tail(after);
            assert_eq!((&*numbers(&tail), tail.next, tail.missed), (found, 5, 0), "{after:?}");
        }
        assert_eq!(&*recent.tail(Some(4)).lines[0].1, b"line 5");
    }

    #[test]
    fn dropped_lines_are_counted_as_missed() {
        let recent = Recent::default();
        for _ in 0..1010 {
            recent.refused(b"{}");
        }
        let tail = recent.tail(Some(4));
        assert_eq!((numbers(&tail)[0], tail.lines.len(), tail.missed), (11, MAX_LINES, 6));
    }

    #[test]
    fn a_new_list_starts_empty_and_counts_the_earlier_lines_as_missed() {
        let before = Recent::default();
        before.refused(b"1");
        before.refused(b"2");
        before.decisions().add(b"2\n");
        let recent = before.successor();
        before.refused(b"late");
        assert!(recent.decisions().read().is_empty());
        assert_eq!(numbers(&recent.tail(None)), [0; 0]);
        recent.refused(b"3");
        let tail = recent.tail(Some(1));
        assert_eq!((&*numbers(&tail), tail.missed), (&[3][..], 1));
    }

    #[test]
    fn the_list_keeps_fewer_lines_if_they_are_long() {
        let recent = Recent::default();
        let long = vec![b'x'; MAX_BYTES / 3];
        for _ in 0..9 {
            recent.refused(&long);
        }
        assert_eq!(numbers(&recent.tail(None)), [7, 8, 9]);
    }
}
