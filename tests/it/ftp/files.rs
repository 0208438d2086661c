//! Files: their bytes and what the response says about them, parts of them, and requests that open no data connection.

use super::{Answer, EXEMPT, asked_only_for_robots_txt, files, get, server};
use crate::support::{Gate, allowed, refused};

const DATE: &str = "Sun, 01 Nov 2026 12:00:00 GMT";

#[tokio::test]
async fn a_file_arrives_as_it_is() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let server = files().file("/pub/x.tar.gz", every_byte.clone()).start().await;
    let gate = Gate::start().await;

    let url = server.url("/pub/x.tar.gz");
    let response = gate.get(&url).await;
    allowed(&response, "no-rule");
    assert_eq!(response.body, every_byte);
    for (field, value) in [
        ("Content-Type", "application/gzip"),
        ("Content-Length", "300000"),
        ("Last-Modified", DATE),
        ("Accept-Ranges", "bytes"),
        ("Via", "1.1 robotgate"),
    ] {
        assert_eq!(response.field(field), Some(value), "{field}");
    }

    let decision = gate.decision_for(&url).await;
    assert_eq!(decision["origin"], server.url(""), "{decision:#}");
    assert_eq!(decision["robots_url"], server.url("/robots.txt"), "{decision:#}");
    let completion = gate.completion_of(&decision).await;
    assert_eq!(completion["status"], 200, "{completion:#}");
    assert_eq!(completion["bytes_out"], 300_000, "{completion:#}");
    assert_eq!(completion["upstream"], server.address().to_string(), "{completion:#}");
    assert_eq!(completion["error"], serde_json::Value::Null, "{completion:#}");
}

#[tokio::test]
async fn a_disallowed_file_is_refused_like_any_other_page() {
    let server = server().await;
    let gate = Gate::start().await;

    let url = server.url("/private/b.txt");
    let response = gate.get(&url).await;
    let decision = refused(&response, "rule");
    assert_eq!(decision.param("rule").as_deref(), Some("Disallow: /private"));
    assert_eq!(response.reason, "Disallowed by robots.txt");
    let logged = gate.decision_for(&url).await;
    assert_eq!(
        (&logged["verdict"], &logged["line"]),
        (&"deny".into(), &2.into()),
        "{logged:#}"
    );
    asked_only_for_robots_txt(&server);
}

#[tokio::test]
async fn no_file_is_requested_before_the_decision_is_logged() {
    let server = server().await;
    let gate = Gate::with("[audit]\npath = '/dev/full'").await;
    assert_eq!(get(&gate, &server, "/pub/a.txt").await.status, 503);
    asked_only_for_robots_txt(&server);
}

#[tokio::test]
async fn a_range_request_gets_that_part_of_the_file() {
    let server = server().await;
    let gate = Gate::start().await;
    for (range, status, body, content_range) in [
        ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
        ("bytes=0-", 206, "0123456789", Some("bytes 0-9/10")),
        ("bytes=7-", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-2", 206, "89", Some("bytes 8-9/10")),
        ("bytes=5-100", 206, "56789", Some("bytes 5-9/10")),
        ("bytes=0-1,4-5", 200, "0123456789", None),
        ("bytes=10-", 416, "", Some("bytes */10")),
    ] {
        let response = gate.get(&server.url("/pub/a.txt")).header("Range", range).await;
        assert_eq!(response.status, status, "{range}");
        assert_eq!(response.text(), body, "{range}");
        assert_eq!(response.field("Content-Range"), content_range, "{range}");
        assert_eq!(
            response.field("Content-Length"),
            Some(&*body.len().to_string()),
            "{range}"
        );
    }
}

#[tokio::test]
async fn a_server_without_ranges_sends_the_whole_file() {
    for verb in ["REST", "SIZE"] {
        let server = files().reply(verb, "502 not here").start().await;
        let gate = Gate::start().await;
        let response = gate.get(&server.url("/pub/a.txt")).header("Range", "bytes=2-4").await;
        allowed(&response, "no-rule");
        assert_eq!(response.text(), "0123456789", "{verb}");
        assert_eq!(response.field("Content-Range"), None, "{verb}");
    }
}

#[tokio::test]
async fn a_copy_that_is_not_older_is_not_sent_again() {
    let server = server().await;
    let gate = Gate::start().await;
    let ask = || gate.get(&server.url("/pub/a.txt"));

    let response = ask().header("If-Modified-Since", DATE).await;
    assert_eq!((response.status, response.field("Last-Modified")), (304, Some(DATE)));
    let other = "Sun, 01 Nov 2026 11:59:59 GMT";
    assert_eq!(ask().header("If-Modified-Since", other).await.status, 200);
    assert_eq!(
        ask().header("Range", "bytes=1-").header("If-Range", DATE).await.status,
        206
    );
    assert_eq!(
        ask().header("Range", "bytes=1-").header("If-Range", other).await.status,
        200
    );
}

#[tokio::test]
async fn a_head_opens_no_data_connection() {
    let server = server().await;
    let gate = Gate::start().await;
    // The fetch of the robots.txt needs a data connection.
    get(&gate, &server, "/private/x").await;
    let before = server.count("EPSV");

    for (path, status, field) in [
        ("/pub/a.txt", 200, ("Content-Length", Some("10"))),
        ("/pub/b.txt", 404, ("Last-Modified", None)),
        ("/pub/", 200, ("Content-Type", Some("text/html; charset=utf-8"))),
        ("/pub", 301, ("Location", Some(&*server.url("/pub/")))),
        ("/none/", 404, ("Last-Modified", None)),
    ] {
        let response = gate.ask("HEAD", &server.url(path)).await;
        assert_eq!(response.status, status, "{path}");
        assert_eq!(response.field(field.0), field.1, "{path}");
    }
    assert_eq!(server.count("EPSV"), before);
    assert_eq!(server.count("PASV"), 0);
}

#[tokio::test]
async fn ftp_accepts_only_get_and_head() {
    let server = server().await;
    let gate = Gate::start().await;
    for method in ["PUT", "POST", "DELETE", "OPTIONS", "PROPFIND"] {
        let response = gate.ask(method, &server.url("/pub/a.txt")).await;
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.field("Allow"), Some("GET, HEAD"), "{method}");
    }
    assert_eq!(server.commands(), [""; 0]);
}

#[tokio::test]
async fn a_server_without_modern_commands_still_serves_files() {
    let old = files()
        .reply("EPSV", "500 unknown command")
        .reply("SIZE", "500 unknown command")
        .reply("MDTM", "500 unknown command")
        .reply("PWD", "502 unknown command")
        .reply("USER", "230 no password needed");
    let server = old.start().await;
    let gate = Gate::start().await;
    let response = get(&gate, &server, "/pub/a.txt").await;
    allowed(&response, "no-rule");
    assert_eq!(response.text(), "0123456789");
    assert_eq!(response.field("Content-Length"), None);
    assert_eq!(response.field("Last-Modified"), None);
}

#[tokio::test]
async fn paths_begin_at_the_folder_of_the_login() {
    let server = files()
        .file("/srv/ftp/robots.txt", "User-agent: *\nDisallow: /closed\n")
        .file("/srv/ftp/pub/a.txt", "of the login")
        .reply("PWD", "257 \"/srv/ftp/\" is the folder")
        .start()
        .await;
    let gate = Gate::start().await;
    let response = get(&gate, &server, "/pub/a.txt").await;
    allowed(&response, "no-rule");
    assert_eq!(response.text(), "of the login");
    refused(&get(&gate, &server, "/closed").await, "rule");
}

#[tokio::test]
async fn a_transfer_outlives_a_reload() {
    let latch = crate::support::Latch::new();
    let content = vec![b'x'; 400_000];
    let transfer = Answer::TransferWithPause(content.clone(), 200_000, latch.clone());
    // The server would give these answers for the robots.txt, too. `EXEMPT` keeps the gate from asking for it.
    let server = super::FtpServer::builder()
        .file("/big", content.clone())
        .reply("SIZE", "213 400000")
        .on("RETR", transfer)
        .start()
        .await;
    let gate = Gate::with(EXEMPT).await;

    let url = server.url("/big");
    let (response, ()) = tokio::join!(gate.get(&url), async {
        crate::support::wait::until("the transfer", || (server.count("RETR") == 1).then_some(())).await;
        gate.reconfigure(&format!("[ftp]\nenabled = false\n{EXEMPT}"));
        gate.reloaded(1).await;
        refused(&get(&gate, &server, "/pub/a.txt").await, "egress");
        latch.open();
    });
    assert_eq!(response.status, 200);
    assert_eq!(response.body, content);
}
