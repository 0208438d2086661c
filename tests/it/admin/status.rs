//! `/api/v1/status`: the state of the gate.

use serde_json::json;

use super::get;
use crate::support::{Gate, Origin};

#[tokio::test]
async fn the_status_shows_the_version_the_listeners_and_the_origins() {
    let origin = Origin::start().robots("").page("/", "page").spawn().await;
    let gate = Gate::start().await;
    gate.get(&origin.url("/")).await;
    // Before the gate responds to this request, it writes pending changes to disk.
    get(&gate, "/api/v1/origins").await;
    let status = get(&gate, "/api/v1/status").await;
    assert_eq!(status["version"], robotgate::VERSION);
    assert_eq!((&status["state"], &status["generation"]), (&json!("ready"), &json!(1)));
    let listens = status["listen"].as_array().unwrap();
    for (address, speaks) in [(gate.address(), "http"), (gate.admin_address(), "admin")] {
        assert!(
            listens.contains(&json!({"address": address, "speaks": speaks})),
            "{listens:?}"
        );
    }
    let origins = &status["origins"];
    assert_eq!(origins["known"], 1);
    for bytes in ["memory_bytes", "memory_max_bytes", "disk_bytes", "disk_max_bytes"] {
        assert!(origins[bytes].as_u64().unwrap() > 0, "{bytes}: {origins}");
    }
}

#[tokio::test]
async fn the_status_without_a_cache_file_has_no_disk_size() {
    let gate = Gate::builder()
        .without("cache.path")
        .config("[cache]\npersist = false")
        .start()
        .await;
    let origins = get(&gate, "/api/v1/status").await["origins"].clone();
    assert_eq!((&origins["known"], &origins["disk_bytes"]), (&json!(0), &json!(null)));
}

#[tokio::test]
async fn the_configuration_has_its_generation() {
    let gate = Gate::start().await;
    assert_eq!(get(&gate, "/api/v1/config").await["generation"], 1);
    gate.reconfigure("[proxy]\nname = 'other'");
    gate.reloaded(1).await;
    assert_eq!(get(&gate, "/api/v1/config").await["generation"], 2);
}

#[tokio::test]
async fn the_api_description_is_served() {
    let gate = Gate::start().await;
    let document = gate.admin("/api/v1/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
}
