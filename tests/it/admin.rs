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
mod status;

use serde_json::Value;

use crate::support::{Ask, Gate};

/// The answer to a GET, which is as it is documented.
async fn get(gate: &Gate, path: &str) -> Value {
    answer(gate.admin(path), "get", path, 200).await
}

/// The answer to a POST of `content`.
async fn post(gate: &Gate, path: &str, content: &Value) -> Value {
    let asked = gate
        .ask_admin("POST", path)
        .header("Content-Type", "application/json")
        .body(content.to_string().as_bytes());
    answer(asked, "post", path, 200).await
}

/// The problem that a GET gets.
async fn problem(gate: &Gate, path: &str, status: u16) -> String {
    let problem = answer(gate.admin(path), "get", path, status).await;
    problem["detail"].as_str().unwrap().to_owned()
}

async fn answer(ask: Ask<'static>, method: &str, path: &str, status: u16) -> Value {
    let response = ask.await;
    assert_eq!(response.status, status, "{path}: {response:#?}");
    let path = path.split('?').next().unwrap();
    let json = response.json();
    documented::check(path, method, status, response.field("Content-Type").unwrap(), &json);
    json
}

/// A value of a query.
fn escaped(value: &str) -> String {
    let bytes = value.bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}
