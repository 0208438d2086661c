//! Keeps the lines of the latest decisions in memory, so that [`crate::replay`] can decide these requests again.
//!
//! The lines are stored in blocks, so that most decisions need no allocation, and a reader holds the lock only while it
//! copies one block.

use std::{collections::VecDeque, mem, sync::Arc};

use parking_lot::Mutex;

/// The log lines of the latest decisions: about [`MAX_DECISIONS`], or fewer if they are long.
#[derive(Debug, Default)]
pub struct LatestDecisions(Mutex<Blocks>);

#[derive(Debug, Default)]
struct Blocks {
    /// The oldest first.
    full: VecDeque<Arc<Block>>,
    filling: Block,
    lines: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Block {
    text: Vec<u8>,
    lines: usize,
}

// === impl LatestDecisions ===

impl LatestDecisions {
    /// Adds a line, which must include its line end.
    pub fn add(&self, line: &[u8]) {
        self.0.lock().add(line);
    }

    /// Returns the lines with their line ends, the oldest first.
    pub fn read(&self) -> Vec<u8> {
        let (full, filling) = {
            let blocks = self.0.lock();
            (blocks.full.clone(), blocks.filling.text.clone())
        };
        let full = full.iter().map(|block| &*block.text);
        full.chain([&*filling]).collect::<Vec<_>>().concat()
    }
}

// === impl Blocks ===

impl Blocks {
    fn add(&mut self, line: &[u8]) {
        if self.filling.text.len() + line.len() > BLOCK && self.filling.lines > 0 {
            let spare = self.make_room();
            self.full.push_back(Arc::new(mem::replace(&mut self.filling, spare)));
        }
        self.filling.text.extend_from_slice(line);
        self.filling.lines += 1;
        self.lines += 1;
        self.bytes += line.len();
    }

    /// Removes the oldest blocks if necessary. Returns an empty block, with the memory of a removed one if possible.
    fn make_room(&mut self) -> Block {
        let mut spare = Block::default();
        while let Some(oldest) = self.full.front()
            && (self.lines - oldest.lines >= MAX_DECISIONS || self.bytes > MAX_BYTES)
        {
            self.lines -= oldest.lines;
            self.bytes -= oldest.text.len();
            let oldest = self.full.pop_front().map(Arc::try_unwrap);
            if let Some(Ok(mut block)) = oldest
                && block.text.capacity() <= 2 * BLOCK
            {
                block.text.clear();
                block.lines = 0;
                spare = block;
            }
        }
        spare.text.reserve(BLOCK);
        spare
    }
}

/// How many of the latest decisions are kept, rounded up to whole blocks.
pub const MAX_DECISIONS: usize = 10_000;
/// Maximum bytes of the stored lines, not counting the newest block. A typical line takes 1 kB.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Size of a block, in bytes.
const BLOCK: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(latest: &LatestDecisions) -> Vec<String> {
        let text = String::from_utf8(latest.read()).expect("text");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_newest_lines_are_kept_in_order() {
        let latest = LatestDecisions::default();
        assert!(kept(&latest).is_empty());
        for number in 0..25_000 {
            latest.add(format!("{number:0>1000}\n").as_bytes());
        }
        let kept = kept(&latest);
        let first: usize = kept[0].parse().expect("a number");
        assert!((10_000..10_100).contains(&kept.len()), "{}", kept.len());
        assert!((first..25_000).eq(kept.iter().map(|line| line.parse::<usize>().expect("a number"))));
    }

    #[test]
    fn fewer_lines_are_kept_if_they_are_long() {
        let latest = LatestDecisions::default();
        for number in 0..100 {
            latest.add(format!("{number}{}\n", "x".repeat(MAX_BYTES / 4)).as_bytes());
        }
        let kept = kept(&latest);
        assert!((4..=6).contains(&kept.len()), "{}", kept.len());
        assert!(kept.last().is_some_and(|line| line.starts_with("99x")));
    }
}
