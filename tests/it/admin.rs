//! The admin listener of a running gate, as operators and their programs use it.
//!
//! [`get`], [`post`] and [`problem`] validate the API's responses against openapi.json, with [`documented`].

mod access;
mod bounds;
mod decide;
mod documented;
mod explain;
mod history;
mod listener;
mod origins;
mod refusals;
mod socket;
mod status;
mod what_if;

use serde_json::Value;

use crate::support::{Gate, Response};

/// Sends a GET and returns the response.
pub async fn get(gate: &Gate, path: &str) -> Value {
    answer(gate.admin(path).await, "get", path, 200)
}

/// Sends a POST of `content` and returns the response.
pub async fn post(gate: &Gate, path: &str, content: &Value) -> Value {
    let request = gate
        .ask_admin("POST", path)
        .header("Content-Type", "application/json")
        .body(content.to_string().as_bytes());
    answer(request.await, "post", path, 200)
}

/// Sends a GET and returns the detail of the problem in the response.
pub async fn problem(gate: &Gate, path: &str, status: u16) -> String {
    let problem = answer(gate.admin(path).await, "get", path, status);
    problem["detail"].as_str().unwrap().to_owned()
}

/// Returns the body of `response`, validated against openapi.json.
#[track_caller]
fn answer(response: Response, method: &str, path: &str, status: u16) -> Value {
    assert_eq!(response.status, status, "{path}: {response:#?}");
    let path = path.split('?').next().unwrap();
    let json = response.json();
    documented::check(
        path,
        &method.to_lowercase(),
        status,
        response.field("Content-Type").unwrap(),
        &json,
    );
    json
}

/// Escapes a value for a query.
pub fn escaped(value: &str) -> String {
    let bytes = value.bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}
