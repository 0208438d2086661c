//! What is said on the socket: one JSON line asks, JSON lines answer. The last of them is the end or
//! an error, so that an answer that was cut is seen to be.
//!
//! It is spoken between a proxy and the command of the same version, and may change with any.

use serde::{Deserialize, Serialize};

use super::{
    row::{Detail, Row},
    stats::Stats,
};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Request {
    /// Every origin that has this in its name.
    List {
        filter: String,
    },
    Show {
        origin: String,
    },
    Forget {
        origin: String,
    },
    Stats {},
}

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Row(Box<Row>),
    Detail(Box<Detail>),
    Forgot(Forgot),
    Stats(Box<Stats>),
    /// What the operator should know of the answer.
    Note(String),
    End,
    Error(String),
}

/// What came of forgetting an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgot {
    pub origin: String,
    /// Whether anything was known of it.
    pub forgotten: bool,
}

// === impl Request and Line ===

/// `said` as a line. The names of origins and what is known of them always are some JSON.
pub(super) fn line(said: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Bytes of a request, its line end included.
pub(super) const MAX_REQUEST: usize = 4 * 1024;
/// Bytes of a line of an answer: a text of 500 KiB, of which each byte may be written as six.
pub(super) const MAX_LINE: u64 = 4 * 1024 * 1024;
