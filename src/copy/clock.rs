//! Detects when somebody or NTP has set the wall clock while this process runs. Some machines get the right time only
//! minutes after their start, and a failure of a minute ago must then not look a month old.
//!
//! A jump forward counts as a correction only soon after the machine's start. If the clock jumps forward later, nobody
//! can tell whether it was right before the jump or is right after it.

use std::time::{Duration, SystemTime};

/// The last values of the wall clock and of the time since the machine's start.
#[derive(Debug, Clone, Copy)]
pub struct ClockReadings {
    /// The wall time at [`new`](Self::new) or when the clock was last set back, corrected by later jumps forward.
    began: SystemTime,
    wall: SystemTime,
    running: Duration,
}

/// The wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// Times that were recorded between `from` and `to` are too early by `by`.
    Forward {
        from: SystemTime,
        to: SystemTime,
        by: Duration,
    },
    /// When the jump was detected, the clock would have shown `ahead` if nobody had set it back.
    Back { ahead: SystemTime },
}

// === impl ClockReadings ===

impl ClockReadings {
    pub fn new(wall: SystemTime, running: Duration) -> Self {
        Self {
            began: wall,
            wall,
            running,
        }
    }

    /// Returns a jump if, since the last call, the wall clock has advanced much less than `running` or, soon after the
    /// machine's start, much more.
    pub fn detect_jump(&mut self, wall: SystemTime, running: Duration) -> Option<Jump> {
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
        // The caller adds `by` to the times of failures since `began`. Also add `by` to `began`, so that the next jump
        // can correct these times again.
        self.began += by;
        Some(Jump::Forward { from, to: expected, by })
    }

    /// Returns true if the last readings are less than a minute old and both clocks have advanced about equally since.
    /// [`detect_jump`](Self::detect_jump) would then find no jump.
    pub fn can_skip_check(&self, wall: SystemTime, running: Duration) -> bool {
        let passed = running.saturating_sub(self.running);
        let expected = self.wall + passed;
        let difference = wall.duration_since(expected).unwrap_or_else(|behind| behind.duration());
        difference <= SLACK && passed < CHECK_PERIOD
    }
}

/// For how long after [`ClockReadings::detect_jump`] no other check is needed, unless the clock is set.
const CHECK_PERIOD: Duration = Duration::from_secs(60);
/// For how long after its start a machine can have the wrong time.
const LEARNING: Duration = Duration::from_secs(15 * 60);
/// If the wall clock gains or loses more than this between two checks, compared with the time since the machine's
/// start, it was set. Gradual corrections of a slow or fast clock are smaller.
const SLACK: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs are the wall clock and the time since the machine's start, both in seconds.
    fn jumps(seconds: &[(u64, u64)]) -> Vec<Option<Jump>> {
        let mut watch = ClockReadings::new(at(seconds[0].0), Duration::from_secs(seconds[0].1));
        (seconds[1..].iter())
            .map(|(wall, running)| {
                let (wall, running) = (at(*wall), Duration::from_secs(*running));
                let can_skip_check = watch.can_skip_check(wall, running);
                let jump = watch.detect_jump(wall, running);
                assert!(!can_skip_check || jump.is_none(), "{jump:?} was not foreseen");
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
    fn two_clocks_that_agree_report_no_jump() {
        assert_eq!(
            jumps(&[(1000, 5), (1001, 6), (90_000, 89_005), (90_300, 89_006)]),
            [None; 3]
        );
    }

    #[test]
    fn a_clock_set_forward_is_detected_once() {
        let found = jumps(&[(1000, 5), (1100, 105), (40 * DAY, 205), (40 * DAY + 60, 265)]);
        assert_eq!(found, [None, forward(1000, 1200, 40 * DAY - 1200), None]);
    }

    #[test]
    fn a_second_forward_jump_continues_from_the_first() {
        let found = jumps(&[(0, 0), (5000, 0), (5100, 100), (9000, 100)]);
        assert_eq!(found, [forward(0, 0, 5000), None, forward(5000, 5100, 3900)]);
        let found = jumps(&[(0, 0), (1300, 100), (40 * DAY, 200)]);
        assert_eq!(found, [forward(0, 100, 1200), forward(1200, 1400, 40 * DAY - 1400)]);
    }

    #[test]
    fn a_clock_set_forward_long_after_the_boot_is_believed() {
        assert_eq!(jumps(&[(0, 900), (40 * DAY, 901)]), [None]);
        assert_eq!(jumps(&[(0, 899), (40 * DAY, 901)]), [forward(0, 2, 40 * DAY - 2)]);
    }

    #[test]
    fn a_clock_set_back_is_detected_at_any_time() {
        let found = jumps(&[(100_000, 0), (10_000, 10), (10_100, 110), (100_210, 210)]);
        assert_eq!(found, [back(100_010), None, forward(10_000, 10_200, 90_010)]);
        assert_eq!(jumps(&[(DAY, DAY), (DAY - 601, DAY)]), [back(DAY)]);
        assert_eq!(jumps(&[(DAY, DAY), (DAY - 600, DAY)]), [None]);
    }
}
