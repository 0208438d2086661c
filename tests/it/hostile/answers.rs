//! Origins whose response is invalid, or never ends: the bot gets the right error, the log contains it, and other
//! clients are served in the meantime.

mod cases;

use std::collections::BTreeSet;

use self::cases::{Case, cases};
use crate::support::{End, Gate, NAME, Origin, Record, Reply, Response, Step, allowed, refused, wait};

/// Short time-outs, for origins that stop sending. On a busy machine, a good origin can exceed them too.
const QUICK: &str = "[proxy]\nread-timeout = \"500ms\"\n[robots]\nfetch-idle-timeout = \"500ms\"";

#[tokio::test]
async fn a_malformed_page_response_is_an_error() {
    let cases = cases();
    let replies: Vec<Reply> = cases.iter().map(|case| case.reply.clone()).collect();
    let origin = Origin::start()
        .otherwise(move |request| match request.path().strip_prefix("/case-") {
            Some(number) => replies[number.parse::<usize>().expect("a number")].clone(),
            None if request.path() == "/robots.txt" => Reply::status(404),
            None => Reply::ok("text/plain", "page"),
        })
        .spawn()
        .await;
    let gate = Gate::start().await;
    let before = gate.peak_memory();

    for (number, case) in cases.iter().enumerate() {
        println!("{}", case.name);
        shorten_time_outs(&gate, case).await;
        let url = origin.url(&format!("/case-{number}"));
        let (response, ()) = tokio::join!(gate.get(&url), others_are_served(&gate, &origin));

        let (status, errors) = case.page;
        let completion = gate.completion_of(&gate.decision_for(&url).await).await;
        let error = completion["error"].as_str().unwrap_or_default();
        if status == 200 {
            // The gate can still respond with an error if it has not sent the head yet.
            let cut = response.status == 200 && response.end == End::Cut;
            assert_eq!(
                cut || matches!(response.status, 502 | 504),
                !errors.is_empty(),
                "{}: {response:#?}",
                case.name
            );
            assert!(error.is_empty() == errors.is_empty(), "{}: {completion:#}", case.name);
        } else {
            assert_eq!(response.status, status, "{}: {response:#?}", case.name);
            assert_eq!(
                response.proxy_status().param("error").as_deref(),
                Some(error),
                "{}",
                case.name
            );
            assert_eq!(completion["status"], status, "{}: {completion:#}", case.name);
        }
        assert!(
            errors.is_empty() || errors.contains(&error),
            "{}: {completion:#}",
            case.name
        );
    }
    let grown = gate.peak_memory().saturating_sub(before);
    assert!(grown < 50 << 20, "{} MiB more", grown >> 20);
    every_request_is_logged(&gate, &origin).await;
}

#[tokio::test]
async fn a_malformed_robots_txt_response_makes_the_site_unreachable() {
    let cases = cases();
    let replies: Vec<Reply> = cases.iter().map(|case| case.reply.clone()).collect();
    let origin = Origin::start()
        .on("/robots.txt", move |request| {
            let host = request.field("Host").unwrap_or_default();
            match host.strip_prefix("case-").and_then(|rest| rest.split('.').next()) {
                Some(number) => replies[number.parse::<usize>().expect("a number")].clone(),
                None => Reply::status(404),
            }
        })
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    let before = gate.peak_memory();

    for (number, case) in cases.iter().enumerate() {
        shorten_time_outs(&gate, case).await;
        let url = origin.url_at(&format!("case-{number}.example"), "/x");
        let (response, ()) = tokio::join!(gate.get(&url), others_are_served(&gate, &origin));

        let Some(why) = case.robots else {
            assert_eq!(response.status, 200, "{}: {response:#?}", case.name);
            continue;
        };
        is_refused_with(&response, why, case.name);
        let decision = gate.decision_for(&url).await;
        let error = decision["robots_error"].as_str().unwrap_or_default();
        assert!(!error.is_empty() && error.contains(why), "{}: {decision:#}", case.name);
    }
    let grown = gate.peak_memory().saturating_sub(before);
    assert!(grown < 50 << 20, "{} MiB more", grown >> 20);
}

/// Sets short time-outs before the first case that stops sending.
async fn shorten_time_outs(gate: &Gate, case: &Case) {
    if case.is_silent() && gate.logged("configuration reloaded") == 0 {
        gate.reconfigure(QUICK);
        gate.reloaded(1).await;
    }
}

async fn others_are_served(gate: &Gate, origin: &Origin) {
    wait::until_async("another to be served", async || {
        let response = gate.get(&origin.url("/other")).await;
        (response.status == 200).then(|| drop(allowed(&response, "no-robots")))
    })
    .await;
}

#[track_caller]
fn is_refused_with(response: &Response, why: &str, name: &str) {
    assert_eq!(response.status, 403, "{name}: {response:#?}");
    refused(response, "unreachable");
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert!(details.contains(why), "{name}: {details}");
}

#[tokio::test]
async fn bytes_after_a_response_without_a_body_are_dropped() {
    let origin = Origin::start()
        .reply(
            "/204",
            Reply::raw("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nbytes"),
        )
        .reply(
            "/304",
            Reply::raw("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nbytes"),
        )
        .reply(
            "/chunks",
            Reply::raw("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\n0\r\n\r\n"),
        )
        .reply(
            "/long",
            Reply::script([Step::send(
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npageHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
            )]),
        )
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    gate.get(&origin.url("/warm")).await;
    let mut connection = gate.dial().await;

    for (path, status, text) in [
        ("/204", 204, ""),
        ("/304", 304, ""),
        ("/chunks", 204, ""),
        ("/long", 200, "page"),
    ] {
        let response = connection.get(&origin.url(path)).await;
        assert_eq!((response.status, response.text().as_str()), (status, text), "{path}");
        // Bytes after the origin's response do not become part of the next response.
        let next = gate.get(&origin.url("/next")).await;
        assert_eq!(next.text(), "page", "{path}");
        if !response.stays_open {
            connection = gate.dial().await;
        }
        assert_eq!(connection.get(&origin.url("/next")).await.text(), "page", "{path}");
    }
    every_request_is_logged(&gate, &origin).await;
}

#[tokio::test]
async fn minor_faults_of_a_response_are_repaired() {
    let origin = Origin::start()
        .reply(
            "/folded",
            Reply::raw("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 4\r\n\r\npage"),
        )
        .reply(
            "/blank",
            Reply::raw("HTTP/1.1 200 OK\r\nX : a b c\r\nContent-Length : 4\r\n\r\npage"),
        )
        .reply(
            "/twice",
            Reply::raw(
                "HTTP/1.1 200 OK\r\nX: a b c\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n\
             page",
            ),
        )
        .reply(
            "/list",
            Reply::raw("HTTP/1.1 200 OK\r\nX: a b c\r\nContent-Length: 4, 4\r\n\r\npage"),
        )
        .reply(
            "/lf",
            Reply::raw("HTTP/1.1 200 OK\nX: a b c\nContent-Length: 4\n\npage"),
        )
        .reply(
            "/both",
            Reply::raw(
                "HTTP/1.1 200 OK\r\nX: a b c\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n\
             4\r\npage\r\n0\r\n\r\n",
            ),
        )
        .spawn()
        .await;
    let gate = Gate::start().await;

    for path in ["/folded", "/blank", "/twice", "/list", "/lf", "/both"] {
        let url = origin.url(path);
        let ask = format!(
            "GET {url} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\nConnection: close\r\n\r\n",
            origin.authority()
        );
        let bytes = gate.raw(&ask).await;
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let bare = head.replace("\r\n", "");
        assert!(!bare.contains(['\r', '\n']), "{path}: {head:?}");
        let x = head.lines().find_map(|line| line.strip_prefix("X: ")).expect("X");
        assert_eq!(
            x.split_whitespace().collect::<Vec<_>>(),
            ["a", "b", "c"],
            "{path}: {head:?}"
        );
        let framing: Vec<&str> = head
            .lines()
            .filter(|line| line.starts_with("Content-Length") || line.starts_with("Transfer-Encoding"))
            .collect();
        if path == "/both" {
            assert_eq!(
                (framing, body),
                (vec!["Transfer-Encoding: chunked"], "4\r\npage\r\n0\r\n\r\n"),
                "{path}"
            );
        } else {
            assert_eq!((framing, body), (vec!["Content-Length: 4"], "page"), "{path}");
        }
    }
}

#[tokio::test]
async fn a_stalled_response_does_not_delay_other_clients() {
    let origin = Origin::start()
        .reply("/silent", Reply::script([Step::Stall]))
        .reply(
            "/half",
            Reply::script([Step::send("HTTP/1.1 200 OK\r\nX: "), Step::Stall]),
        )
        .reply(
            "/body",
            Reply::script([
                Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"),
                Step::Stall,
            ]),
        )
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with("[proxy]\nthreads = 1\nread-timeout = \"1h\"").await;
    gate.get(&origin.url("/warm")).await;

    let mut waiting = Vec::new();
    for path in ["/silent", "/half", "/body"].repeat(20) {
        let mut connection = gate.dial().await;
        let url = origin.url(path);
        connection
            .send(format!(
                "GET {url} HTTP/1.1\r\nHost: {NAME}:{}\r\nUser-Agent: TestBot/1.0\r\n\r\n",
                origin.port()
            ))
            .await;
        waiting.push(connection);
    }
    // The stalled responses never end.
    for _ in 0..20 {
        allowed(&gate.get(&origin.url("/other")).await, "no-robots");
    }
}

/// Asserts that the log has decisions about exactly the requests for pages that the origin received, and a completion
/// for each. A request that was lost on a kept connection may be sent again, as part of the same exchange (RFC 9112
/// §9.3.1).
async fn every_request_is_logged(gate: &Gate, origin: &Origin) {
    let count = |record: &&Record| record["event"] == "decision";
    let (decisions, _) = gate.audited(gate.audit().iter().filter(count).count()).await;
    let logged: BTreeSet<String> = decisions.iter().map(|decision| decision["url"].to_string()).collect();
    let seen: BTreeSet<String> = origin
        .requests()
        .iter()
        .filter(|request| request.path() != "/robots.txt")
        .map(|request| format!("{:?}", origin.url(&request.target)))
        .collect();
    assert_eq!(seen, logged);
}

#[tokio::test]
async fn requests_that_are_not_idempotent_are_not_repeated() {
    let origin = Origin::start()
        .on("/x", |request| match request.method.as_str() {
            // The origin keeps the connection open after a GET, and resets it after any other method.
            "GET" => Reply::ok("text/plain", "page"),
            _ => Reply::script([Step::Reset]),
        })
        .robots("")
        .spawn()
        .await;
    let gate = Gate::with("[proxy]\nthreads = 1").await;
    for (round, method) in ["POST", "PATCH", "LOCK"].iter().cycle().take(12).enumerate() {
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
        let response = gate.ask(method, &origin.url("/x")).body(b"order one").await;

        assert_eq!(response.status, 502, "{method}: {response:#?}");
        let forwarded = origin.requests_for("/x");
        assert_eq!(forwarded.len(), 2 * (round + 1), "{method}");
        // The origin may be about to close a kept connection, so only requests that may be repeated use one.
        assert_ne!(
            forwarded[2 * round].connection,
            forwarded[2 * round + 1].connection,
            "{method}"
        );
    }
}
