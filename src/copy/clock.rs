//! The wall clock, watched for being set. A machine that learns the time after it has started must not
//! take a failure of a minute ago for one of a month ago; and where the clock was set back, nobody
//! knows how old an answer is.
//!
//! Only what this process has seen can be told. A clock that is set forward is held to have been wrong
//! only soon after the machine's start: later on, nobody can tell a clock that was from one that is.

use std::time::{Duration, SystemTime};

/// What the two clocks said before.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// Since when the wall clock has gone evenly, as it tells it now.
    began: SystemTime,
    /// What both said last.
    wall: SystemTime,
    running: Duration,
}

/// The wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// The times that it gave before, `from` and `to`, were too early.
    Forward {
        from: SystemTime,
        to: SystemTime,
        by: Duration,
    },
    /// It would say `ahead` now, had it not been set.
    Back { ahead: SystemTime },
}

// === impl Watch ===

impl Watch {
    pub fn new(wall: SystemTime, running: Duration) -> Self {
        Self {
            began: wall,
            wall,
            running,
        }
    }

    /// Looks at both clocks: whether the wall clock has gone on by much less than the other one; or by
    /// much more, on a machine that had just started when they were looked at before.
    pub fn look(&mut self, wall: SystemTime, running: Duration) -> Option<Jump> {
        let learns = self.running < LEARNING;
        let expected = self.wall + running.saturating_sub(self.running);
        let from = self.began;
        self.wall = wall;
        self.running = running;
        if wall + SLACK < expected {
            self.began = wall;
            return Some(Jump::Back { ahead: expected });
        }
        let by = wall.duration_since(expected).ok().filter(|by| *by > SLACK && learns)?;
        // What was noted before is moved along, and may have to be once more.
        self.began += by;
        Some(Jump::Forward { from, to: expected, by })
    }

    /// Whether a look at both clocks would tell nothing, and the last one was a moment ago. It is quick,
    /// and changes nothing.
    pub fn is_calm(&self, wall: SystemTime, running: Duration) -> bool {
        let passed = running.saturating_sub(self.running);
        let expected = self.wall + passed;
        let difference = wall.duration_since(expected).unwrap_or_else(|behind| behind.duration());
        difference <= SLACK && passed < CHECK_PERIOD
    }
}

/// How long nobody need look, where the clocks go together.
const CHECK_PERIOD: Duration = Duration::from_secs(60);
/// How long after its start a machine may be without the right time.
const LEARNING: Duration = Duration::from_secs(15 * 60);
/// What clocks are corrected by as they run is less.
const SLACK: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    /// What a watch says of clocks that go through these seconds, wall and running.
    fn jumps(seconds: &[(u64, u64)]) -> Vec<Option<Jump>> {
        let mut watch = Watch::new(at(seconds[0].0), Duration::from_secs(seconds[0].1));
        (seconds[1..].iter())
            .map(|(wall, running)| {
                let (wall, running) = (at(*wall), Duration::from_secs(*running));
                let is_calm = watch.is_calm(wall, running);
                let jump = watch.look(wall, running);
                assert!(!is_calm || jump.is_none(), "{jump:?} was not foreseen");
                jump
            })
            .collect()
    }

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn forward(from: u64, to: u64, by: u64) -> Option<Jump> {
        Some(Jump::Forward {
            from: at(from),
            to: at(to),
            by: Duration::from_secs(by),
        })
    }

    fn back(ahead: u64) -> Option<Jump> {
        Some(Jump::Back { ahead: at(ahead) })
    }

    const DAY: u64 = 86_400;

    #[test]
    fn clocks_that_go_together_say_nothing() {
        assert_eq!(
            jumps(&[(1000, 5), (1001, 6), (90_000, 89_005), (90_300, 89_006)]),
            [None; 3]
        );
    }

    #[test]
    fn a_clock_that_is_set_forward_is_seen_once() {
        let found = jumps(&[(1000, 5), (1100, 105), (40 * DAY, 205), (40 * DAY + 60, 265)]);
        assert_eq!(found, [None, forward(1000, 1200, 40 * DAY - 1200), None]);
    }

    #[test]
    fn what_a_jump_has_moved_along_is_moved_by_the_next_one_too() {
        let found = jumps(&[(0, 0), (5000, 0), (5100, 100), (9000, 100)]);
        assert_eq!(found, [forward(0, 0, 5000), None, forward(5000, 5100, 3900)]);
        let found = jumps(&[(0, 0), (1300, 100), (40 * DAY, 200)]);
        assert_eq!(found, [forward(0, 100, 1200), forward(1200, 1400, 40 * DAY - 1400)]);
    }

    #[test]
    fn a_clock_that_is_set_forward_on_a_machine_that_runs_for_long_is_believed() {
        assert_eq!(jumps(&[(0, 900), (40 * DAY, 901)]), [None]);
        assert_eq!(jumps(&[(0, 899), (40 * DAY, 901)]), [forward(0, 2, 40 * DAY - 2)]);
    }

    #[test]
    fn a_clock_that_is_set_back_is_seen_whenever_it_is() {
        let found = jumps(&[(100_000, 0), (10_000, 10), (10_100, 110), (100_210, 210)]);
        assert_eq!(found, [back(100_010), None, forward(10_000, 10_200, 90_010)]);
        assert_eq!(jumps(&[(DAY, DAY), (DAY - 601, DAY)]), [back(DAY)]);
        assert_eq!(jumps(&[(DAY, DAY), (DAY - 600, DAY)]), [None]);
    }
}
