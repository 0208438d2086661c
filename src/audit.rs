//! The audit log: one JSON object a line, or text on standard output. A decision can be explained from the log alone.
//!
//! robotgate writes a `decision` record before it forwards or refuses a request, and a `robots` record before any
//! decision uses a fetched robots.txt. If the disk is slow, requests wait. If the disk accepts no data, robotgate
//! forwards no requests. While robotgate runs, it drops no record that the log has accepted.

mod decision;
mod generation_fields;
mod latest;
mod line;
mod log;
mod logged;
mod privacy;
mod recent;
mod record;
mod text;
mod value;

pub use self::{
    decision::{RequestFacts, decision_line, withdrawn_line},
    generation_fields::{GenerationFields, Instance},
    latest::{LatestDecisions, MAX_DECISIONS},
    line::Line,
    log::{AuditCounts, AuditError, AuditLog, Displaced, MAX_WAIT, Output, Reserved},
    logged::{LoggedRefusal, RecordHead},
    privacy::{ClientMask, LoggedUserAgent, Privacy, RedactQuery},
    recent::{Recent, Tail},
    record::{
        ChangeExample, ChangedGroup, Completion, EVENTS, FetchFields, ForgetRecord, Json, Redirect, ReloadRecord,
        RobotsChangedRecord, RobotsRecord, SharedRecord, StartRecord, StateFields, StopRecord, TdmrepRecord,
    },
    text::{LogFormat, basis},
};
