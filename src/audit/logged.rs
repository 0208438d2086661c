//! Parses lines of the log: the head of any record, or the record of a refusal.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::text;
use crate::{
    decision::{Reason, Verdict},
    text::Timestamp,
};

/// The fields that identify the record in a line. Any of them can be missing: some kinds of records have no `id`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RecordHead<'r> {
    #[serde(borrow)]
    pub event: Option<Cow<'r, str>>,
    #[serde(borrow)]
    pub id: Option<Cow<'r, str>>,
    #[serde(borrow)]
    pub time: Option<Cow<'r, str>>,
}

/// The record of a decision that was not `allow`. Written by the same process, so its verdict and reason always parse.
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
    pub identity: Cow<'r, str>,
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

impl<'r> RecordHead<'r> {
    /// Returns `None` if the line is no JSON object, or one of the fields is no text.
    pub fn parse(line: &'r [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

impl LoggedRefusal<'_> {
    /// Returns whether `bot` is the product token of a bot that is not configured.
    pub fn is_product_token(&self) -> bool {
        self.identity == "product-token"
    }

    /// Returns what decided: the rule, the use that the site refuses, `robots_error`, or else the reason.
    pub fn why(&self) -> Cow<'_, str> {
        let refused = || text::refused(&self.usage.as_ref()?["refused"]);
        match (self.line.zip(self.rule.as_ref()), &self.robots_error) {
            (Some((line, rule)), _) => format!("line {line}: {rule}").into(),
            (None, error) => match (refused(), error) {
                (Some(refused), _) => refused.into(),
                (None, Some(error)) => Cow::Borrowed(error),
                (None, None) => self.reason.sentence().into(),
            },
        }
    }
}

/// Accepts every verdict. The `Deserialize` of [`Verdict`] is for `[[expect]]`, and refuses `defer`.
fn any_verdict<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
    let word = <&str>::deserialize(deserializer)?;
    Verdict::from_word(word).ok_or_else(|| D::Error::custom("unknown verdict"))
}
