//! Parses the audit log's lines of the latest refusals, which are kept in memory. The same process wrote these lines,
//! so it knows every verdict and reason in them.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use crate::{
    decision::{Reason, Verdict},
    text::Timestamp,
};

/// The record of a decision that was not `allow`, with the fields that the admin API, its filters and the history use.
#[derive(Debug, Deserialize)]
pub struct LoggedRefusal<'r> {
    pub time: Timestamp,
    #[serde(borrow)]
    pub id: Cow<'r, str>,
    #[serde(deserialize_with = "any_verdict")]
    pub verdict: Verdict,
    pub reason: Reason,
    pub forwarded: bool,
    #[serde(borrow)]
    pub bot: Option<Cow<'r, str>>,
    #[serde(borrow)]
    pub user_agent: Option<Cow<'r, str>>,
    #[serde(borrow)]
    pub client: Cow<'r, str>,
    #[serde(borrow)]
    pub url: Cow<'r, str>,
    #[serde(borrow)]
    pub origin: Cow<'r, str>,
    #[serde(borrow)]
    pub rule: Option<Cow<'r, str>>,
    pub line: Option<u32>,
    #[serde(borrow)]
    pub robots_error: Option<Cow<'r, str>>,
    pub usage: Option<Value>,
}

/// Parses any verdict. The `Deserialize` of [`Verdict`] itself rejects `defer`, because no `[[expect]]` may name it.
fn any_verdict<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
    let word = <&str>::deserialize(deserializer)?;
    Verdict::from_word(word).ok_or_else(|| D::Error::custom("unknown verdict"))
}
