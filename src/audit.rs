//! The audit log: one JSON object a line. A decision can be explained from the log alone. At a terminal, the log is
//! text instead of JSON.
//!
//! robotgate writes a `decision` record before it forwards or refuses the request. A `completion` record follows when
//! the exchange has ended. If the origin's response says that the bot must not use the content, robotgate logs a
//! `withdrawn` record, and sends the bot a refusal instead of the response. A `robots` record describes a fetch of a
//! robots.txt. It precedes every decision that uses the fetched text. If a site's robots.txt has changed, a
//! `robots-changed` record says what is different. A `tdmrep` record describes a fetch of a `tdmrep.json`. The records
//! `start`, `stop`, `reload` and `forget` say what happened to robotgate itself. No record is dropped: if the disk is
//! slow, requests wait. If the disk accepts no data, robotgate does not forward requests.

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
    log::{AuditCounts, AuditError, AuditLog, MAX_WAIT, Output, Reserved},
    logged::{LoggedRefusal, RecordHead},
    privacy::{ClientMask, LoggedUserAgent, Privacy, RedactQuery},
    recent::{Recent, Tail},
    record::{
        ChangeExample, ChangedGroup, Completion, EVENTS, FetchFields, ForgetRecord, Json, Redirect, ReloadRecord,
        RobotsChangedRecord, RobotsRecord, SharedRecord, StartRecord, StateFields, StopRecord, TdmrepRecord,
    },
    text::{LogFormat, basis},
};
