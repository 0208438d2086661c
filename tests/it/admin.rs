//! What operators and their programs get of the admin listener of a gate that runs.
//!
//! Whatever is answered to a path of the API is held against its description ([`documented`]).

mod access;
mod bounds;
mod decide;
mod documented;
mod explain;
mod listener;
mod origins;
mod refusals;
mod socket;
mod status;

use serde_json::Value;

use crate::support::{Gate, Response};

/// The answer to a GET, which is as it is documented.
pub async fn get(gate: &Gate, path: &str) -> Value {
    answer(gate.admin(path).await, "get", path, 200)
}

/// The answer to a POST of `content`.
pub async fn post(gate: &Gate, path: &str, content: &Value) -> Value {
    let request = gate
        .ask_admin("POST", path)
        .header("Content-Type", "application/json")
        .body(content.to_string().as_bytes());
    answer(request.await, "post", path, 200)
}

/// The problem that a GET gets.
pub async fn problem(gate: &Gate, path: &str, status: u16) -> String {
    let problem = answer(gate.admin(path).await, "get", path, status);
    problem["detail"].as_str().unwrap().to_owned()
}

/// What `response` has, which is as it is documented.
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

/// A value of a query.
pub fn escaped(value: &str) -> String {
    let bytes = value.bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}
