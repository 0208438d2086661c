//! Access control of the admin listener.

use crate::support::Gate;

const TOKEN: &str = "correct-horse-battery-staple";

async fn guarded() -> Gate {
    Gate::builder()
        .put("admin-token", format!("  {TOKEN} \nwhat follows is no part of it\n"))
        .config("[admin]\nlisten = '0.0.0.0:0'\ntoken-file = 'admin-token'")
        .start()
        .await
}

#[tokio::test]
async fn the_token_is_required_for_metrics_and_the_api() {
    let gate = guarded().await;
    for (path, without) in [
        ("/", 200),
        ("/page.css", 200),
        ("/page.js", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 401),
        ("/api/v1/openapi.json", 401),
        ("/nowhere", 401),
    ] {
        let response = gate.admin(path).set("Host", "gate.example").await;
        assert_eq!(response.status, without, "{path}");
    }
    for (authorization, status) in [
        (format!("Bearer {TOKEN}"), 200),
        (format!("bearer {TOKEN}"), 200),
        (format!("Basic {TOKEN}"), 401),
        (format!("Bearer {TOKEN}x"), 401),
        ("Bearer".to_owned(), 401),
    ] {
        let request = gate.admin("/api/v1/openapi.json");
        let response = request.header("Authorization", &authorization).await;
        assert_eq!(response.status, status, "{authorization}");
    }
}

#[tokio::test]
async fn a_wrong_token_has_its_own_error_and_is_not_logged() {
    let gate = guarded().await;
    let none = gate.admin("/api/v1/status").await;
    assert_eq!(none.field("WWW-Authenticate"), Some("Bearer realm=\"robotgate\""));
    let wrong = gate
        .admin("/api/v1/status")
        .header("Authorization", "Bearer a-guess-of-many")
        .await;
    assert!(wrong.field("WWW-Authenticate").unwrap().contains("invalid_token"));
    assert_eq!(wrong.json()["status"], 401);
    let log: Vec<_> = gate.log().into_iter().map(|line| line.text).collect();
    let message = format!("{} {} {}", none.text(), wrong.text(), log.join("\n"));
    assert!(!message.contains(TOKEN) && !message.contains("a-guess"), "{message}");
}

#[tokio::test]
async fn without_a_token_other_host_names_are_refused() {
    let gate = Gate::start().await;
    let rebound = gate.admin("/metrics").set("Host", "evil.example:3180").await;
    assert_eq!(rebound.status, 421);
    assert_eq!(rebound.field("Content-Type"), Some("application/problem+json"));
    let absolute = gate.admin("http://evil.example/").set("Host", "evil.example").await;
    assert_eq!(absolute.status, 421);
    let page = gate.admin("/api/v1/openapi.json");
    assert_eq!(page.header("Sec-Fetch-Site", "cross-site").await.status, 403);
    for host in ["localhost:3180", "127.0.0.1", "[::1]:3180"] {
        let response = gate.admin("/healthz").set("Host", host).await;
        assert_eq!(response.status, 200, "{host}");
    }
}

#[tokio::test]
async fn an_invalid_token_is_refused_and_not_shown() {
    for (token, message) in [
        ("short", "16 to 4096"),
        ("sixteen is it and with spaces", "16 to 4096"),
        ("", "16 to 4096"),
    ] {
        let failed = Gate::builder()
            .put("admin-token", token)
            .config("[admin]\ntoken-file = 'admin-token'")
            .fail()
            .await;
        assert!(failed.errors.contains(message), "{}", failed.errors);
        assert!(token.is_empty() || !failed.errors.contains(token), "{}", failed.errors);
    }
}

#[tokio::test]
async fn a_token_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let config = format!("[admin]\ntoken-file = '{}'", token.display());
    let failed = Gate::builder().config(&config).fail().await;
    assert!(failed.errors.contains("chmod"), "{}", failed.errors);
    assert!(!failed.errors.contains(TOKEN), "{}", failed.errors);

    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o640)).unwrap();
    Gate::builder().config(&config).start().await;
}
