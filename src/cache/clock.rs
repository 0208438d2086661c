//! The wall clock, watched for being set: a machine that learns the time after it has started must
//! not take a failure of a minute ago for one of a month ago.
//!
//! Only what this process has seen can be told, and only soon after the machine's start: later on,
//! nobody can tell a clock that was wrong from one that is. Clocks that are set back need no watch:
//! what lies ahead of them counts as fetched at no known time, or as no older than now.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// What the two clocks said before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    /// Since when the wall clock has gone evenly.
    began: SystemTime,
    /// What both said last.
    wall: SystemTime,
    running: Duration,
}

/// The wall clock was set forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The times that the clock gave before, all of them too early.
    pub from: SystemTime,
    pub to: SystemTime,
    pub by: Duration,
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(wall: SystemTime, running: Duration) -> Self {
        Self {
            began: wall,
            wall,
            running,
        }
    }

    /// Looks at both clocks. Whether the wall clock has gone on by much more than the other one, on a
    /// machine that had just started when they were looked at before.
    pub(super) fn look(&mut self, wall: SystemTime, running: Duration) -> Option<Jump> {
        let passed = running.saturating_sub(self.running);
        // Where it was set back, nothing has passed by it.
        let told = wall.duration_since(self.wall).unwrap_or(Duration::ZERO);
        let was_set_back = wall + SLACK < self.wall + passed;
        let learns = self.running < LEARNING;
        let by = told.checked_sub(passed).filter(|by| *by > SLACK && learns);
        let jump = by.map(|by| Jump {
            from: self.began,
            to: self.wall + passed,
            by,
        });
        if jump.is_some() || was_set_back {
            self.began = wall;
        }
        self.wall = wall;
        self.running = running;
        jump
    }
}

/// The time since the machine was started, which nobody sets and which goes on while it sleeps.
pub(super) fn running() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// How long after its start a machine may be without the right time.
const LEARNING: Duration = Duration::from_secs(15 * 60);
/// What clocks are corrected by as they run is less.
const SLACK: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    /// What a watch says of clocks that go through these seconds, wall and running.
    fn jumps(seconds: &[(u64, u64)]) -> Vec<Option<(u64, u64, u64)>> {
        let wall = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let second = |wall: SystemTime| wall.duration_since(SystemTime::UNIX_EPOCH).expect("later").as_secs();
        let mut watch = Watch::new(wall(seconds[0].0), Duration::from_secs(seconds[0].1));
        (seconds[1..].iter())
            .map(|(told, running)| watch.look(wall(*told), Duration::from_secs(*running)))
            .map(|jump| jump.map(|jump| (second(jump.from), second(jump.to), jump.by.as_secs())))
            .collect()
    }

    #[test]
    fn clocks_that_go_together_say_nothing() {
        assert_eq!(
            jumps(&[(1000, 5), (1001, 6), (90_000, 89_005), (90_300, 89_006)]),
            [None; 3]
        );
    }

    #[test]
    fn a_clock_that_is_set_forward_is_seen_once() {
        let day = 86_400;
        let found = jumps(&[(1000, 5), (1100, 105), (40 * day, 205), (40 * day + 60, 265)]);
        assert_eq!(found, [None, Some((1000, 1200, 40 * day - 1200)), None]);
    }

    #[test]
    fn what_a_second_jump_spans_begins_at_the_first() {
        let found = jumps(&[(0, 0), (5000, 0), (5100, 100), (9000, 100)]);
        assert_eq!(found, [Some((0, 0, 5000)), None, Some((5000, 5100, 3900))]);
    }

    #[test]
    fn a_clock_that_is_set_on_a_machine_that_runs_for_long_is_believed() {
        let day = 86_400;
        assert_eq!(jumps(&[(0, 900), (40 * day, 901)]), [None]);
        assert_eq!(jumps(&[(0, 899), (40 * day, 901)]), [Some((0, 2, 40 * day - 2))]);
    }

    #[test]
    fn a_clock_that_is_set_back_and_then_right_again_spans_the_time_between() {
        let found = jumps(&[(100_000, 0), (10_000, 10), (10_100, 110), (100_210, 210)]);
        assert_eq!(found, [None, None, Some((10_000, 10_200, 90_010))]);
    }
}
