//! What the replies of a server mean: for its robots.txt, and for a file.

use super::{Answer, EXEMPT, FtpServer, ROBOTS, files, get};
use crate::support::{CliOutput, Gate, allowed, failed, refused};

/// Prepares a server that gives `reply` to every command with this verb, or as its greeting if `verb` is "".
fn failing(verb: &'static str, reply: &str) -> super::server::Builder {
    files().reply(verb, reply)
}

#[tokio::test]
async fn each_ftp_reply_for_a_robots_txt_has_the_expected_meaning() {
    for (builder, reason, status) in [
        (FtpServer::builder().file("/a", "b"), "no-robots", Some(404)),
        (
            FtpServer::builder().file("/a", "b").file("/robots.txt/x", ""),
            "no-robots",
            Some(404),
        ),
        (failing("USER", "530 no guests"), "unreachable", Some(403)),
        (failing("PASS", "530 no guests"), "unreachable", Some(403)),
        (failing("PASS", "332 which account?"), "unreachable", Some(403)),
        (failing("PASS", "532 which account?"), "unreachable", Some(403)),
        (
            failing("PASS", "530 Sorry, the maximum number of clients is connected"),
            "unreachable",
            Some(503),
        ),
        (failing("PASS", "500 OOPS: cannot fork"), "unreachable", None),
        (failing("USER", "550 busy"), "unreachable", Some(503)),
        (failing("USER", "550 what?"), "unreachable", None),
        (failing("", "530 go away"), "unreachable", None),
        (failing("TYPE", "530 what?"), "unreachable", None),
        (failing("TYPE", "550 what?"), "unreachable", None),
        (failing("SIZE", "550 what?"), "rule", Some(200)),
        (failing("", "421 too many users"), "unreachable", Some(503)),
        (failing("", "120 ready in 5 minutes"), "unreachable", Some(503)),
        (failing("PASS", "421 go away"), "unreachable", Some(503)),
        (failing("RETR", "450 busy"), "unreachable", Some(503)),
        (failing("RETR", "530 log in"), "unreachable", Some(403)),
        (failing("RETR", "552 too large"), "unreachable", None),
        (failing("RETR", "532 which account?"), "unreachable", None),
        (failing("RETR", "550 too many transfers"), "unreachable", Some(503)),
        (failing("RETR", "551 what?"), "unreachable", None),
        (failing("RETR", "553 what name?"), "unreachable", None),
        (failing("EPSV", "229 nonsense"), "unreachable", None),
        (failing("EPSV", "550 no").reply("PASV", "550 no"), "unreachable", None),
        (failing("TYPE", "500 what?"), "unreachable", None),
        (failing("", "hello"), "unreachable", None),
        (files().on("", Answer::Close), "unreachable", None),
        (
            files().on("RETR", Answer::Transfer(b"User-".to_vec(), "226 done")),
            "unreachable",
            None,
        ),
        (
            files().on("RETR", Answer::Transfer(ROBOTS.into(), "451 disk")),
            "unreachable",
            None,
        ),
    ] {
        let server = builder.start().await;
        let gate = Gate::start().await;
        let url = server.url("/private/x");
        let response = gate.get(&url).await;
        let decision = gate.decision_for(&url).await;
        assert_eq!(decision["reason"], reason, "{decision:#}");
        assert_eq!(decision["robots_status"], serde_json::json!(status), "{decision:#}");
        assert_eq!(
            response.status == 403 && response.field("Proxy-Status").is_some(),
            reason != "no-robots"
        );
    }
}

#[tokio::test]
async fn rules_after_500_kib_are_ignored() {
    let mut robots = "User-agent: *\nDisallow: /private\n#".to_owned();
    robots += &"x".repeat(600 * 1024);
    robots += "\nDisallow: /late\n";
    let server = FtpServer::builder()
        .file("/robots.txt", robots)
        .file("/late", "")
        .start()
        .await;
    let gate = Gate::start().await;
    refused(&get(&gate, &server, "/private").await, "rule");
    allowed(&get(&gate, &server, "/late").await, "no-rule");
}

#[tokio::test]
async fn each_ftp_error_for_a_file_becomes_an_http_status() {
    for (verb, reply, status) in [
        ("RETR", "550 not here", 404),
        ("RETR", "553 bad name", 404),
        ("RETR", "450 busy", 503),
        ("RETR", "530 log in", 403),
        ("SIZE", "421 good night", 503),
    ] {
        let server = FtpServer::builder().file("/a", "b").reply(verb, reply).start().await;
        let gate = Gate::with(EXEMPT).await;
        let response = get(&gate, &server, "/a").await;
        assert_eq!(response.status, status, "{verb} {reply}");
        assert_eq!(response.text(), format!("The FTP server answered: {reply}\n"));
        assert_eq!(response.decision().value(), "allow");
    }
    let server = FtpServer::builder()
        .file("/a", "b")
        .reply("RETR", "552 too large")
        .start()
        .await;
    let gate = Gate::with(EXEMPT).await;
    failed(&get(&gate, &server, "/a").await, 502, &["http_protocol_error"]);
}

#[tokio::test]
async fn a_robots_txt_over_ftp_is_logged_kept_and_explained_like_others() {
    let server = files().start().await;
    let gate = Gate::start().await;
    refused(&get(&gate, &server, "/private/x").await, "rule");
    refused(&get(&gate, &server, "/private/y").await, "rule");
    let origin = server.url("");
    let fetches = gate.fetches_of(&origin);
    assert_eq!(fetches.len(), 1, "{fetches:#?}");
    assert_eq!(
        (&fetches[0]["status"], &fetches[0]["bytes"]),
        (&200.into(), &ROBOTS.len().into())
    );
    assert_eq!(fetches[0]["robots_url"], server.url("/robots.txt"));

    let known = gate.admin("/api/v1/origins?search=ftp").await;
    assert!(known.text().contains(&origin), "{known:#?}");

    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("a folder of ours");
    let explained = CliOutput::of(
        &[
            "explain",
            "--config",
            config,
            "--agent",
            "TestBot",
            &server.url("/private/x"),
        ],
        "",
    )
    .await;
    assert_eq!(explained.code, Some(1), "{explained:?}");
    let linted = CliOutput::of(&["lint", "--config", config, &origin], "").await;
    assert_eq!(linted.code, Some(0), "{linted:?}");
    assert!(explained.out.contains("Disallow: /private"), "{explained:?}");
}

#[tokio::test]
async fn explain_does_not_advise_to_forget_a_site_that_refuses_the_login() {
    for (builder, result, advises_forget) in [
        (failing("PASS", "530 no guests"), "REFUSED", false),
        (FtpServer::builder().file("/a", "b"), "ALLOWED", true),
    ] {
        let server = builder.start().await;
        let gate = Gate::start().await;
        let config = gate.file("robotgate.toml");
        let config = config.to_str().expect("a folder of ours");
        let args = ["explain", "--config", config, "--agent", "TestBot", &server.url("/a")];
        let explained = CliOutput::of(&args, "").await;
        assert!(explained.out.starts_with(result), "{explained:?}");
        assert!(explained.out.contains("robotgate cache show"), "{explained:?}");
        let advised = explained.out.contains("robotgate cache forget");
        assert_eq!(advised, advises_forget, "{explained:?}");
    }
}

#[tokio::test]
async fn a_time_that_http_cannot_express_is_left_out() {
    for time in ["213 19691231235959", "213 16000101000000", "213 99991231235959"] {
        let server = files().reply("MDTM", time).start().await;
        let gate = Gate::start().await;
        let response = gate.get(&server.url("/pub/a.txt")).await;
        assert_eq!(
            (response.status, response.field("Last-Modified")),
            (200, None),
            "{time}"
        );
    }
}
