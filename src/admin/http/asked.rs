//! What is asked, read from a request, or why it cannot be: the query of a GET, the content of a POST.

use std::time::Duration;

use axum::{
    RequestExt as _,
    body::Bytes,
    extract::{FromRequestParts, Query, Request},
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};

use super::problem::Problem;
use crate::target::Target;

/// A query, all of which is understood.
pub(super) struct Asked<T>(pub(super) T);

/// What a query can ask for.
pub(super) trait Form: DeserializeOwned {
    /// How it is written, for who wrote it otherwise.
    const FORM: &'static str;
}

/// May this bot fetch this URL?
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// The User-Agent field, or just the bot's name.
    pub(super) agent: String,
    pub(super) url: String,
}

// === impl Asked ===

impl<T: Form, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(head, state).await;
        match query {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(rejection) => {
                let why = rejection.body_text();
                // Before the colon axum says only that something is wrong.
                let why = why.split_once(": ").map_or(&*why, |(_, why)| why);
                Err(Problem::Bad(format!(
                    "the query cannot be read ({why}); write {}",
                    T::FORM
                )))
            }
        }
    }
}

// === impl Question ===

impl Form for Question {
    const FORM: &'static str = "?agent=BOT&url=URL, both percent-encoded";
}

impl Question {
    /// What is asked for.
    ///
    /// # Errors
    /// A sentence: no bot could ask for it, or the proxy would not know what it is.
    pub(super) fn target(&self) -> Result<Target, String> {
        if self.agent.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err("the agent has a control character, which no User-Agent field can hold".to_owned());
        }
        let target = Target::parse(&self.url).and_then(|target| target.check_sendable().map(|()| target));
        target.map_err(|error| error.to_string())
    }
}

/// The JSON that a request holds.
pub(super) async fn content<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::MediaType);
    }
    let read = tokio::time::timeout(TO_SEND, request.extract::<Bytes, _>()).await;
    let content = read.map_err(|_| Problem::Slow)?;
    let content = content.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::TooLarge,
        _ => Problem::Bad("the content did not come whole".to_owned()),
    })?;
    serde_json::from_slice(&content).map_err(|error| Problem::Bad(format!("the content is not what is asked: {error}")))
}

/// What a web page can send anywhere without asking first is never JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// For the content of a request.
const TO_SEND: Duration = Duration::from_secs(10);
