//! A formatted line of the log. The buffers of lines are reused.

use std::{cell::Cell, ops::Deref};

/// A line of the log including its line end. The thread that drops a line reuses its buffer for the next line.
#[derive(Debug)]
pub struct Line(Vec<u8>);

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

// === impl Line ===

impl Line {
    /// `write` must not write a line end.
    pub(super) fn of(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut line = SPARE.take();
        line.reserve(USUAL);
        write(&mut line);
        line.push(b'\n');
        Self(line)
    }
}

impl Deref for Line {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.0.capacity() <= MAX_SPARE {
            self.0.clear();
            // `try_with` fails if the thread is ending. Then the buffer is freed.
            let _ = SPARE.try_with(|spare| spare.set(std::mem::take(&mut self.0)));
        }
    }
}

/// Initial size of a buffer, in bytes. Most lines fit.
const USUAL: usize = 1024;
/// Maximum size of a buffer to reuse, in bytes.
const MAX_SPARE: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::of(|line| line.extend_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_next_line_reuses_the_memory_of_a_dropped_line() {
        let first = line("first");
        let pointer = first.as_ptr();
        drop(first);
        let second = line("2");
        assert_eq!((&*second, second.as_ptr()), (&b"2\n"[..], pointer));
        let third = line("3");
        assert_eq!((&*second, &*third), (&b"2\n"[..], &b"3\n"[..]), "two at a time");
    }

    #[test]
    fn the_memory_of_a_very_long_line_is_not_kept() {
        drop(line(&"x".repeat(MAX_SPARE)));
        assert!(line("1").0.capacity() <= MAX_SPARE);
    }
}
