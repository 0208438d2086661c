//! Why a URL would be allowed or refused, for a person or a program: the same for the command and for those who ask a
//! proxy that runs.
//!
//! The verdict is [`crate::decision`]'s, as in the proxy; what is told around it is [`crate::robots::explain`]'s.
//! Nothing is decided, fetched or read here.

mod json;
mod record;
mod report;

pub(crate) use self::{
    json::write as to_json,
    record::FetchRecord,
    report::{Evidence, Heard, Question, Report, Why, needs_proof},
};
