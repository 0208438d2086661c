//! robotgate fetches exactly the path on which it decided, and no URL makes the server do anything else.

use super::{asked_only_for_robots_txt, get, server};
use crate::support::{CliOutput, Gate, allowed, refused};

#[tokio::test]
async fn every_spelling_of_a_disallowed_path_is_refused() {
    // FTP paths get strict readings even if `strict-paths` is off, because robotgate itself decodes them for the
    // server.
    for config in ["", "[robots]\nstrict-paths = false", "[robots]\nprofile = 'rfc9309'"] {
        let server = server().await;
        let gate = Gate::with(config).await;
        for path in [
            "/private/b.txt",
            "/%70rivate/b.txt",
            "/priv%61te%2Etxt",
            "/private/b.txt;type=i",
            "/private/b.txt;type=a",
            "/private;type=d",
            "/private%3Btype=i",
            "/private",
            "/private/",
        ] {
            refused(&get(&gate, &server, path).await, "rule");
        }
        for path in [
            "//private/b.txt",
            "/%2Fprivate/b.txt",
            "/pub/../private/b.txt",
            "/pub/%2e%2e/private/b.txt",
            "/./private/b.txt",
            "/pub/..%2Fprivate/b.txt",
            "/pub\\..\\private",
            "/pub/..%5Cprivate",
            "/pub//a.txt",
            "/pub?x",
            "/pub%3Fx",
            "/pub/%",
            "/private%20",
            "/pub/a.txt;type=i;type=i",
        ] {
            let response = get(&gate, &server, path).await;
            assert_eq!(response.status, 400, "{path}");
            assert_eq!(
                response.proxy_status().param("error").as_deref(),
                Some("http_request_error"),
                "{path}"
            );
        }
        asked_only_for_robots_txt(&server);
    }
}

#[tokio::test]
async fn a_rule_with_a_reserved_character_matches_its_escaped_form() {
    let robots = "User-agent: *\nDisallow: /a@b\nDisallow: /c%20d\n";
    let server = super::FtpServer::builder().file("/robots.txt", robots).start().await;
    let gate = Gate::with("[robots]\nstrict-paths = false").await;
    for path in ["/a@b", "/a%40b", "/%61%40b", "/c%20d"] {
        refused(&get(&gate, &server, path).await, "rule");
    }
}

#[tokio::test]
async fn no_url_can_inject_an_ftp_command() {
    let server = server().await;
    let gate = Gate::start().await;
    let long = format!("/{}", "a".repeat(401));
    for path in [
        "/a%0D%0ADELE%20b",
        "/a%0ADELE%20b",
        "/a%0D",
        "/a%00b",
        "/a%FFb",
        "/a%7F",
        &long,
    ] {
        assert_eq!(get(&gate, &server, path).await.status, 400, "{path}");
    }
    assert_eq!(server.commands(), [""; 0]);
}

#[tokio::test]
async fn a_name_is_sent_as_its_bytes() {
    let server = super::files().file("/pub/caf\u{fffd} [1]*~.txt", "there").start().await;
    let gate = Gate::start().await;
    let response = get(&gate, &server, "/pub/caf%EF%BF%BD%20[1]*~.txt").await;
    allowed(&response, "no-rule");
    assert_eq!(response.text(), "there");
    get(&gate, &server, "/pub/%E9").await;
    // In its list of commands, the test server replaces a byte that is not UTF-8 by U+FFFD.
    assert!(
        server.commands().contains(&"SIZE /pub/\u{fffd}".to_owned()),
        "{:?}",
        server.commands()
    );
}

#[tokio::test]
async fn a_url_with_a_login_is_refused_and_its_password_forgotten() {
    let server = server().await;
    let gate = Gate::builder().log("trace").start().await;
    let host = server.address();
    for (user, host_field) in [
        ("joe:s3cret", host.to_string()),
        ("joe:s3cret", format!("joe:s3cret@{host}")),
        ("s3cret", host.to_string()),
        ("s3cret%40", format!("s3cret%40@{host}")),
    ] {
        let ask = gate.get(&format!("ftp://{user}@{host}/pub/a.txt"));
        let response = ask.set("Host", &host_field).await;
        refused(&response, "ftp-login");
        assert_eq!(response.reason, "Disallowed: only anonymous FTP");
        assert!(!format!("{response:?}").contains("s3cret"), "{response:#?}");
    }
    let (decisions, _) = gate.audited(4).await;
    for decision in decisions {
        assert_eq!(decision["url"], server.url("/pub/a.txt"), "{decision:#}");
        assert_eq!(
            (&decision["verdict"], &decision["forwarded"]),
            (&"deny".into(), &false.into())
        );
    }
    let log = gate.log().iter().map(|line| line.json.to_string()).collect::<String>();
    let audit = gate.whole_audit().iter().map(ToString::to_string).collect::<String>();
    assert!(!log.contains("s3cret") && !audit.contains("s3cret"));
    assert_eq!(server.commands(), [""; 0]);
    let (config, log) = (gate.file("robotgate.toml"), gate.file("audit.jsonl"));
    let [config, log] = [&config, &log].map(|path| path.to_str().expect("a folder of ours"));
    let replayed = CliOutput::of(&["replay", "--config", config, log], "").await;
    assert!(replayed.out.contains("4 the same"), "{replayed:?}");
}

#[tokio::test]
async fn a_url_may_name_the_anonymous_user() {
    let server = server().await;
    let gate = Gate::start().await;
    for user in ["anonymous", "anonymous:me@", "ftp:me", "Anonymous:"] {
        // If the password is an e-mail address, its @ is escaped.
        let user = user
            .strip_suffix('@')
            .map_or(user.to_owned(), |user| format!("{user}%40a.example"));
        let url = format!("ftp://{user}@{}/pub/a.txt", server.address());
        let response = gate.get(&url).set("Host", &server.address().to_string()).await;
        allowed(&response, "no-rule");
    }
    assert!(server.commands().iter().all(|command| !command.contains("me")));
}

#[tokio::test]
async fn ftp_can_be_switched_off() {
    let server = server().await;
    let gate = Gate::with("[ftp]\nenabled = false").await;
    let response = get(&gate, &server, "/pub/a.txt").await;
    refused(&response, "egress");
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert_eq!(
        details,
        "ftp URLs are closed to bots; ftp.enabled = true would open them"
    );
    assert_eq!(server.commands(), [""; 0]);
}

#[tokio::test]
async fn ftp_works_only_over_plain_proxy_requests() {
    let server = server().await;
    let gate = Gate::start().await;
    let authority = server.address().to_string();
    let mut tunnel = gate.connect(&authority).await.opened().plain();
    assert_eq!(tunnel.get(&server.url("/pub/a.txt")).await.status, 400);
    // Plain proxy requests work in every `https.mode`.
    for mode in ["tunnel", "refuse"] {
        let gate = Gate::with(&format!("[https]\nmode = '{mode}'")).await;
        allowed(&get(&gate, &server, "/pub/a.txt").await, "no-rule");
        refused(&get(&gate, &server, "/private/b.txt").await, "rule");
    }
}
