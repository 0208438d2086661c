//! Reads the latest refusals in memory. This process wrote them, so it knows all their words.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use crate::{
    decision::{Reason, Verdict},
    text::Timestamp,
};

/// The record of a decision that was not `allow`, with the fields that the filter, the API and the history read.
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

/// Reads a verdict, also one that no `[[expect]]` can name.
fn any_verdict<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
    let word = <&str>::deserialize(deserializer)?;
    Verdict::from_word(word).ok_or_else(|| D::Error::custom("unknown verdict"))
}
