//! A fetch as programs are told of it. Every field stands in it always, `null` or empty where it says
//! nothing; names that the audit log has, too, mean the same here.

use serde::Serialize;

use crate::{audit::Redirect, copy::Sha256, text::Timestamp};

/// What came of a fetch. The default is of none.
#[derive(Default, Serialize)]
pub(crate) struct FetchRecord<'a> {
    pub(crate) fetched: Option<Timestamp>,
    pub(crate) status: Option<u16>,
    pub(crate) redirects: Vec<Redirect<'a>>,
    /// Of what counts of a robots.txt; `null` where none was read.
    pub(crate) bytes: Option<usize>,
    /// Whether the file is longer than what counts.
    pub(crate) cut: Option<bool>,
    pub(crate) sha256: Option<Sha256>,
    pub(crate) duration_us: Option<u128>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) error: Option<String>,
}
