//! Reads the input of a request: its query, or its content in JSON.

use std::time::{Duration, SystemTime};

use axum::{
    RequestExt as _,
    body::Bytes,
    extract::{FromRequestParts, Query, Request},
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};

use super::problem::Problem;
use crate::{
    config::units::duration,
    origin::Target,
    text::Timestamp,
    usage::{Purpose, Purposes},
};

/// A parsed query without unknown fields.
pub(super) struct StrictQuery<T>(pub(super) T);

pub(super) trait Form: DeserializeOwned {
    /// What the input has to look like, for error messages.
    const FORM: &'static str;
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideParams {
    /// A User-Agent field, or the name of a bot.
    pub(super) agent: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) proof: AssumedProof,
    /// Purposes that replace those of the bot: one, several with commas between them, or a list in JSON.
    #[serde(default, rename = "purpose", deserialize_with = "purposes")]
    pub(super) purposes: Option<Purposes>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AssumedProof {
    /// The client has the proof that the bot's configuration requires.
    #[default]
    Assumed,
    None,
}

// === impl StrictQuery ===

impl<T: Form, S: Send + Sync> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(head, state).await;
        match query {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                let why = rejection.body_text();
                // axum's text before the colon does not say what is wrong.
                let why = why.split_once(": ").map_or(&*why, |(_, why)| why);
                let why = in_words(why).unwrap_or_else(|| "the query cannot be read".to_owned());
                Err(Problem::Bad(format!("{why}; write {}", T::FORM)))
            }
        }
    }
}

// === impl DecideParams ===

impl Form for DecideParams {
    const FORM: &'static str = "?agent=BOT&url=URL, both percent-encoded";
}

impl DecideParams {
    pub(super) fn target(&self) -> Result<Target, String> {
        check_agent(&self.agent)?;
        let target = Target::parse(&self.url);
        target.map_err(|error| error.to_string())
    }
}

fn purposes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Purposes>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Text(String),
        List(Vec<String>),
    }
    let names = match Given::deserialize(deserializer)? {
        Given::Text(text) => text.split(',').map(str::to_owned).collect(),
        Given::List(names) => names,
    };
    let purposes = names.iter().map(|name| name.parse::<Purpose>());
    purposes
        .collect::<Result<Purposes, String>>()
        .map(Some)
        .map_err(D::Error::custom)
}

/// Reads a time: as in RFC 3339, or how long before `now` it was, such as `1h`.
pub(super) fn parse_time(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    if let Ok(Timestamp(time)) = serde_json::from_value(text.into()) {
        return Ok(time);
    }
    let before = duration(text).ok().and_then(|ago| now.checked_sub(ago));
    before.ok_or_else(|| {
        format!("{text:?} is not a time; write 2026-11-22T08:00:00Z, or how long ago it was: 90s, 10m, 1h or 2d")
    })
}

pub(super) fn check_agent(agent: &str) -> Result<(), String> {
    match agent.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        true => Err("the agent has a control character, which no User-Agent field can hold".to_owned()),
        false => Ok(()),
    }
}

pub(super) async fn content<T: Form>(request: Request) -> Result<T, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::MediaType);
    }
    let read = tokio::time::timeout(SEND_TIMEOUT, request.extract::<Bytes, _>()).await;
    let content = read.map_err(|_| Problem::Slow)?;
    let content = content.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::TooLarge,
        _ => Problem::Bad("the content did not arrive completely".to_owned()),
    })?;
    serde_json::from_slice(&content).map_err(|error| {
        let position = format!("line {}, column {}", error.line(), error.column());
        let why = match error.is_data() {
            true => {
                in_words(&error.to_string()).unwrap_or_else(|| format!("a value of the wrong type ends at {position}"))
            }
            false => format!("the content is not JSON ({position})"),
        };
        Problem::Bad(format!("{why}; send {}", T::FORM))
    })
}

/// Says what the error text `why` of axum or serde means; `None` if its form is unknown.
fn in_words(why: &str) -> Option<String> {
    if let Some((value, known)) = why.split_once(NOT_A_PURPOSE) {
        let value = value.strip_prefix("purpose: ").unwrap_or(value);
        let known = known.split_once(" at line ").map_or(known, |(known, _)| known);
        return Some(format!("{value}{NOT_A_PURPOSE}{known}"));
    }
    let named = |kind: &str| Some(why.split_once(kind)?.1.split_once('`')?.0);
    if let Some(name) = named("missing field `") {
        return Some(format!("{name} is missing"));
    }
    if let Some(name) = named("duplicate field `") {
        return Some(format!("{name} occurs twice"));
    }
    if let Some(name) = named("unknown field `") {
        return Some(format!("there is no parameter {name}"));
    }
    if let Some(value) = named("unknown variant `") {
        let known = why.split_once(", expected ").map_or("another", |(_, known)| known);
        let known = known.split_once(" at line ").map_or(known, |(known, _)| known);
        return Some(format!("\"{value}\" is not {}", known.replace('`', "")));
    }
    // An error about a value begins with the name of its parameter, which contains no space.
    let (name, why) = why.split_once(": ").filter(|(name, _)| !name.contains(' '))?;
    if why.contains("number too large") {
        return Some(format!("{name} is too large"));
    }
    let is_no_number = why.contains("invalid digit") || why.contains("empty string");
    is_no_number.then(|| format!("{name} is not a number"))
}

/// Any web page could make a browser send other content than JSON. Before a browser sends JSON to another origin, it
/// asks for permission (a preflight request), and robotgate gives none.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What follows the value in the error of [`Purpose::from_str`](std::str::FromStr::from_str).
const NOT_A_PURPOSE: &str = " is not a purpose; ";
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn errors_of_serde_are_reworded() {
        for (why, expected) in [
            ("missing field `url`", Some("url is missing")),
            (
                "missing field `requests` at line 1 column 2",
                Some("requests is missing"),
            ),
            (
                "foo: unknown field `foo`, expected `a` or `b`",
                Some("there is no parameter foo"),
            ),
            ("duplicate field `url`", Some("url occurs twice")),
            ("limit: invalid digit found in string", Some("limit is not a number")),
            (
                "limit: cannot parse integer from empty string",
                Some("limit is not a number"),
            ),
            (
                "after: number too large to fit in target type",
                Some("after is too large"),
            ),
            (
                "purpose: \"all\" is not a purpose; write one of a, b",
                Some("\"all\" is not a purpose; write one of a, b"),
            ),
            (
                "\"all\" is not a purpose; write one of a, b at line 1 column 9",
                Some("\"all\" is not a purpose; write one of a, b"),
            ),
            (
                "proof: unknown variant `all`, expected `assumed` or `none` at line 1 column 9",
                Some("\"all\" is not assumed or none"),
            ),
            ("invalid type: integer `1`, expected a string at line 1 column 23", None),
            ("invalid type: string \"a digit\", expected a number", None),
        ] {
            assert_eq!(in_words(why).as_deref(), expected, "{why}");
        }
    }
}
