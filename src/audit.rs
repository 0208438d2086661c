//! The audit log: one JSON object a line. The log alone explains every decision. At a terminal, it is text.
//!
//! A `decision` reaches the operating system before robotgate forwards or refuses the request. A `completion` follows
//! when the exchange has ended. If the origin's response forbids what the bot uses content for, a `withdrawn` record is
//! between them, and reaches the operating system before the refusal is sent. A `robots` record describes a fetch of a
//! robots.txt and precedes every decision based on it, and a `robots-changed` record says what another text changed. A
//! `tdmrep` record is the same as `robots` for a `tdmrep.json`. No record is dropped: requests wait for a slow disk, and
//! are not forwarded if it accepts nothing. A `start`, a `stop`, a `reload` and a `forget` say what happened to
//! robotgate itself.

mod counts;
mod decision;
mod generation_fields;
mod latest;
mod line;
mod log;
mod privacy;
mod recent;
mod record;
mod text;
mod value;

pub use self::{
    counts::AuditCounts,
    decision::{RequestFacts, decision_line, withdrawn_line},
    generation_fields::{GenerationFields, Instance},
    latest::{LatestDecisions, MAX_DECISIONS},
    line::Line,
    log::{AuditError, AuditLog, MAX_WAIT, Output, Reserved},
    privacy::{ClientMask, LoggedUserAgent, Privacy, RedactQuery},
    recent::{Recent, Tail},
    record::{
        ChangeExample, ChangedGroup, Completion, ForgetRecord, Json, Redirect, ReloadRecord, RobotsChangedRecord,
        RobotsRecord, SharedRecord, StartRecord, StopRecord, TdmrepRecord,
    },
    text::LogFormat,
};
