//! The socket next to the cache file. A client that can open it can use everything that the listener offers, and can
//! also make robotgate forget origins.

use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::{answer, escaped, get, problem};
use crate::support::{Connection, Gate, NAME, Origin, ROBOTS, allowed};

/// Requests on the connection have an empty Host field, unless a test sets it.
async fn dial(gate: &Gate) -> Connection {
    let connected = UnixStream::connect(gate.file("robots.redb.sock")).await;
    Connection::over_io(connected.expect("the gate listens"))
}

async fn ask_socket(gate: &Gate, method: &str, path: &str, status: u16) -> Value {
    let mut socket = dial(gate).await;
    let response = socket.ask(method, path).await;
    answer(response, method, path, status)
}

#[tokio::test]
async fn the_socket_works_without_a_listener_and_without_a_token() {
    let gate = Gate::builder()
        .put("admin-token", "correct-horse-battery-staple")
        .config("[admin]\nlisten = []\ntoken-file = 'admin-token'")
        .start()
        .await;
    let mut socket = dial(&gate).await;
    for path in [
        "/",
        "/healthz",
        "/metrics",
        "/api/v1/status",
        "/api/v1/origins",
        "/api/v1/config",
    ] {
        let response = socket.get(path).set("Host", "evil.example").await;
        assert_eq!(response.status, 200, "{path}: {response:#?}");
    }
    assert_eq!(socket.get("/nowhere").await.status, 404);
}

#[tokio::test]
async fn the_socket_returns_the_same_as_the_listener() {
    let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&origin.url("/")).await, "no-rule");
    for path in [
        "/api/v1/origins",
        &format!("/api/v1/origins/detail?origin={}", escaped(&origin.url(""))),
        "/api/v1/origins/stats",
        "/api/v1/config",
        "/api/v1/refusals",
    ] {
        assert_eq!(
            ask_socket(&gate, "GET", path, 200).await,
            get(&gate, path).await,
            "{path}"
        );
    }
}

#[tokio::test]
async fn only_the_socket_accepts_requests_that_change_something() {
    let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&origin.url("/")).await, "no-rule");
    let name = origin.url("");
    let forget = format!("/api/v1/origins/forget?origin={}", escaped(&name));
    for method in ["GET", "POST", "DELETE"] {
        let response = gate.ask_admin(method, &forget).await;
        assert_eq!(
            (response.status, response.json()["title"].as_str()),
            (404, Some("Not Found"))
        );
    }
    let known = get(&gate, "/api/v1/origins").await["origins"].clone();
    assert_eq!(known[0]["origin"], name);

    for forgotten in [true, false] {
        let answered = ask_socket(&gate, "POST", &forget, 200).await;
        assert_eq!(answered, json!({"origin": name, "forgotten": forgotten}));
    }
    assert_eq!(get(&gate, "/api/v1/origins").await["origins"], json!([]));
    let problem = ask_socket(&gate, "POST", "/api/v1/origins/forget?origin=a.example", 400).await;
    assert!(problem["detail"].as_str().unwrap().contains("is not an origin like"));
    assert_eq!(dial(&gate).await.get(&forget).await.status, 405);
}

#[tokio::test]
async fn without_copies_on_disk_there_are_no_statistics() {
    let gate = Gate::builder()
        .without("cache.path")
        .config("[cache]\npersist = false")
        .start()
        .await;
    let detail = problem(&gate, "/api/v1/origins/stats", 503).await;
    assert_eq!(
        detail,
        "no robots.txt files are kept on disk: cache.persist is false, or /readyz says why"
    );
}

#[tokio::test]
async fn statistics_count_origins_by_their_answer() {
    let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
    let gate = Gate::start().await;
    for host in ["a", "b"] {
        allowed(
            &gate.get(&origin.url_at(&format!("{host}.{NAME}"), "/")).await,
            "no-rule",
        );
    }
    let stats = get(&gate, "/api/v1/origins/stats").await;
    for (field, value) in [
        ("path", json!(gate.file("robots.redb"))),
        ("origins", json!(2)),
        ("holds", json!({"rules": 2})),
        ("failing", json!(0)),
        ("origins_with_text", json!(2)),
        ("texts", json!(1)),
        ("text_bytes", json!(ROBOTS.len())),
    ] {
        assert_eq!(stats[field], value, "{field}");
    }
    assert_eq!(stats["running"]["memory_origins"], 2);
}
