//! Times and how long things take, as people say them. No clock is read here.

use std::{
    fmt::{Display, Formatter, Result},
    time::{Duration, SystemTime},
};

use crate::audit::Timestamp;

/// A time as people say it, down to seconds.
pub(super) struct Left(pub(super) Duration);

/// A time without its seconds.
pub(super) struct Minute(pub(super) SystemTime);

// === impl Left ===

impl Display for Left {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let seconds = self.0.as_secs_f64().round() as u64;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match (hours, minutes, seconds) {
            (0, 0, seconds) => write!(f, "{seconds} s"),
            (0, minutes, 0) => write!(f, "{minutes} min"),
            (0, minutes, seconds) => write!(f, "{minutes} min {seconds} s"),
            (48.., ..) if hours % 24 == 0 => write!(f, "{} d", hours / 24),
            (48.., ..) => write!(f, "{} d {} h", hours / 24, hours % 24),
            (hours, 0, _) => write!(f, "{hours} h"),
            (hours, minutes, _) => write!(f, "{hours} h {minutes} min"),
        }
    }
}

// === impl Minute ===

impl Display for Minute {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let whole = Timestamp(self.0).to_string();
        // The log's form has 16 characters up to the minutes.
        let minute = whole.get(..16).unwrap_or(&whole);
        write!(f, "{} UTC", minute.replace('T', " "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_do() {
        for (seconds, said) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (66, "1 min 6 s"),
            (3600, "1 h"),
            (86_400, "24 h"),
            (5 * 3600 + 62, "5 h 1 min"),
            (48 * 3600, "2 d"),
            (30 * 86_400 + 3 * 3600 + 62, "30 d 3 h"),
        ] {
            assert_eq!(Left(Duration::from_secs(seconds)).to_string(), said);
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(Minute(time).to_string(), "1994-11-06 08:49 UTC");
    }
}
