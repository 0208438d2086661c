//! The line of status that `systemctl status` shows. Text only: it is told nobody here.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use crate::text::Minute;

/// How the daemon is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Serving {
        generation: u64,
        connections: usize,
        /// When the last reload was rejected and why, if it was.
        rejected: Option<(SystemTime, String)>,
    },
    Draining {
        connections: usize,
        /// What is left of the time that they have.
        left: Duration,
    },
}

// === impl Status ===

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Serving {
                generation,
                connections,
                rejected,
            } => {
                write!(f, "configuration {generation}, {}", Connections(*connections))?;
                if let Some((time, error)) = rejected {
                    write!(f, "; the file was rejected at {}: {error}", Minute(*time))?;
                }
                Ok(())
            }
            Status::Draining { connections, left } => {
                write!(
                    f,
                    "draining, {} left, {} s to go",
                    Connections(*connections),
                    left.as_secs()
                )
            }
        }
    }
}

struct Connections(usize);

// === impl Connections ===

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 connection"),
            count => write!(f, "{count} connections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_short() {
        let rejected = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 42_000);
        let serving = |connections, rejected| Status::Serving {
            generation: 3,
            connections,
            rejected,
        };
        for (status, text) in [
            (serving(12, None), "configuration 3, 12 connections"),
            (serving(1, None), "configuration 3, 1 connection"),
            (
                serving(0, Some((rejected, "robotgate.toml:3:1: unknown key \"x\"".to_owned()))),
                "configuration 3, 0 connections; the file was rejected at 1994-11-06 08:49 UTC: robotgate.toml:3:1: unknown key \"x\"",
            ),
            (
                Status::Draining {
                    connections: 5,
                    left: Duration::from_millis(29_900),
                },
                "draining, 5 connections left, 29 s to go",
            ),
        ] {
            assert_eq!(status.to_string(), text);
        }
    }
}
