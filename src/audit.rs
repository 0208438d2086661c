//! The audit log: one JSON object a line, from which alone every decision can be explained. At a terminal it is text.
//!
//! A `decision` is with the operating system before a byte goes upstream or a refusal goes down; a
//! `completion` follows when the exchange has ended. A `robots` tells of each fetch of a robots.txt,
//! and stands before every decision that rests on it. Nothing is dropped: when the disk is slow,
//! requests wait, and when it takes nothing at all, they are not forwarded.

mod counts;
mod decision;
mod line;
mod log;
mod recent;
mod record;
mod text;
mod value;

pub use self::{
    counts::AuditCounts,
    decision::{RequestFacts, decision_line},
    line::Line,
    log::{AuditError, AuditLog, MAX_WAIT, Output, Reserved},
    recent::{Recent, Tail},
    record::{Completion, Redirect, RobotsRecord},
    text::LogFormat,
};
