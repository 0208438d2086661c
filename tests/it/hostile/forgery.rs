//! Text from an origin or a client cannot look like the gate's own: in a header, in the log, or on a terminal.

use crate::support::{Gate, Origin, Reply, Response, Step, allowed, refused};

const FORGED: &str = "deny; reason=rule; rule=\"Disallow: /forged\"; id=\"0\"";

#[track_caller]
fn has_no_forged_field(response: &Response, what: &str) {
    assert_eq!(response.decision().value(), "allow", "{what}: {response:#?}");
    for (name, value) in &response.headers.0 {
        assert!(!value.contains("forged"), "{what}: {name}: {value}");
    }
}

#[tokio::test]
async fn an_origin_cannot_set_the_fields_of_the_gate() {
    let lines =
        |name: &str, value: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n{name}: {value}\r\n\r\npage");
    let forged_status = "robotgate; error=http_request_denied; details=\"forged\"";
    for (what, bytes) in [
        ("the field", lines("Robots-Decision", FORGED)),
        ("other letters", lines("rObOtS-dEcIsIoN", FORGED)),
        ("a blank before the colon", lines("Robots-Decision ", FORGED)),
        (
            "twice",
            lines("Robots-Decision", &format!("allow\r\nRobots-Decision: {FORGED}")),
        ),
        (
            "folded",
            lines("Robots-Decision", &FORGED.replace("; rule", ";\r\n rule")),
        ),
        (
            "nominated",
            lines(
                "Connection",
                &format!("Robots-Decision, Via\r\nRobots-Decision: {FORGED}"),
            ),
        ),
        ("Proxy-Status", lines("Proxy-Status", forged_status)),
        (
            "Proxy-Status in other letters",
            lines("PROXY-STATUS", &forged_status.replace("robotgate", "RobotGate")),
        ),
        (
            "Proxy-Status as a string",
            lines("Proxy-Status", &forged_status.replace("robotgate", "\"robotgate\"")),
        ),
        (
            "Proxy-Status escaped",
            lines("Proxy-Status", &forged_status.replace("robotgate", "\"robot\\gate\"")),
        ),
        (
            "Proxy-Status with a tab",
            lines("Proxy-Status", &forged_status.replace("robotgate", "\trobotgate\t")),
        ),
        (
            "Proxy-Status in a list",
            lines("Proxy-Status", &format!("cdn, {forged_status}")),
        ),
        (
            "Proxy-Status on two lines",
            lines("Proxy-Status", &format!("cdn\r\nProxy-Status: {forged_status}")),
        ),
        (
            "Proxy-Status behind an open string",
            lines("Proxy-Status", &format!("cdn; details=\"x, {forged_status}")),
        ),
        (
            "an inner list",
            lines(
                "Proxy-Status",
                "(robotgate); error=http_request_denied; details=\"forged\"",
            ),
        ),
        (
            "early hints",
            format!(
                "HTTP/1.1 103 Early Hints\r\nRobots-Decision: {FORGED}\r\nProxy-Status: {forged_status}\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"
            ),
        ),
        (
            "trailers",
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Robots-Decision\r\n\r\n\
                 4\r\npage\r\n0\r\nRobots-Decision: {FORGED}\r\nProxy-Status: {forged_status}\r\n\r\n"
            ),
        ),
    ] {
        let origin = Origin::start()
            .reply("/x", Reply::script([Step::send(bytes), Step::Close]))
            .spawn()
            .await;
        let gate = Gate::start().await;
        let ask = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n",
            origin.url("/x"),
            origin.authority()
        );

        let all = String::from_utf8(gate.raw(&ask).await).expect("text");
        let response = gate.get(&origin.url("/x")).await;

        has_no_forged_field(&response, what);
        assert!(!all.contains("forged"), "{what}: {all}");
    }
}

#[tokio::test]
async fn a_forged_refusal_is_attributed_to_the_origin() {
    for status in [403, 407, 451] {
        let forged = Reply::status(status)
            .header("Robots-Decision", FORGED)
            .header(
                "Proxy-Status",
                "robotgate; error=http_request_denied; details=\"forged\"",
            )
            .header("Proxy-Authenticate", "Basic realm=\"forged\"")
            .header("Proxy-Authentication-Info", "forged=1")
            .header("Content-Type", "application/problem+json")
            .body("{}");
        let origin = Origin::start().reply("/x", forged).spawn().await;
        let gate = Gate::start().await;

        let response = gate.get(&origin.url("/x")).await;

        let completion = gate.completion_of(&gate.decision_for(&origin.url("/x")).await).await;
        if status == 407 {
            // Only a proxy may send 407, and the gate requested no credentials (RFC 9110 §15.5.8).
            assert_eq!(response.status, 502, "{response:#?}");
            assert_eq!(
                response.proxy_status().param("error").as_deref(),
                Some("http_protocol_error")
            );
            assert_eq!(completion["error"], "http_protocol_error", "{completion:#}");
        } else {
            assert_eq!(response.status, status, "{response:#?}");
            assert!(!response.headers.has("Proxy-Status"), "{response:#?}");
            has_no_forged_field(&response, "an imitation");
            assert_eq!(completion["error"], serde_json::Value::Null, "{completion:#}");
        }
        for name in ["Proxy-Authenticate", "Proxy-Authentication-Info"] {
            assert!(!response.headers.has(name), "{status}: {response:#?}");
        }
    }
}

/// Characters that break a line, move a cursor or change the direction of text.
const ODD: [char; 7] = [
    '\u{1b}', '\u{2028}', '\u{2029}', '\u{85}', '\u{202e}', '\u{7f}', '\u{9b}',
];

fn is_odd(character: char) -> bool {
    ODD.contains(&character) || (character.is_control() && character != '\n')
}

#[tokio::test]
async fn no_external_value_breaks_a_log_line() {
    let odd: String = "\u{85}\u{2028}\u{2029}\u{202e}\u{9b}31m".into();
    let robots = format!(
        "User-agent: Bad{odd}\x1b[31m\x07\nUser-agent: *\nDisallow: /p{odd}\x1b[2J\nDisallow: /x\nDisallow: /{odd}\n"
    );
    let origin = Origin::start().robots(&robots).anything("page").spawn().await;
    let moved = Origin::start()
        .reply(
            "/robots.txt",
            Reply::raw(format!(
                "HTTP/1.1 302 Found\r\nLocation: gopher://a{odd}/\r\nContent-Length: 0\r\n\r\n"
            )),
        )
        .spawn()
        .await;
    let gate = Gate::start().await;

    let agent = format!("Bad{odd}Bot/1.0 {odd}");
    let first = gate.get(&origin.url("/x")).user_agent(&agent).await;
    refused(&gate.get(&origin.url("/x")).await, "rule");
    refused(&gate.get(&moved.url("/x")).await, "unreachable");
    // The target and the host name contain unescaped non-ASCII characters.
    gate.get(&origin.url(&format!("/p{odd}?{odd}")))
        .user_agent(&agent)
        .await;
    gate.get(&format!("http://sho{odd}p.example/x")).await;
    gate.connect(&format!("sho{odd}p.example:443")).await.refused();
    gate.ask(&format!("GE{odd}T"), &origin.url("/x")).await;
    gate.get(&origin.url("/x"))
        .header("Accept", &odd)
        .header("Via", &odd)
        .await;

    assert!(first.status == 403, "{first:#?}");
    let (decisions, _) = gate
        .audited(
            gate.audit()
                .iter()
                .filter(|record| record["event"] == "decision")
                .count(),
        )
        .await;
    assert!(decisions.len() >= 4, "{decisions:#?}");
    let audit = std::fs::read_to_string(gate.file("audit.jsonl")).expect("the log");
    let log: Vec<String> = gate.log().into_iter().map(|line| line.text).collect();
    for line in audit.lines().chain(log.iter().map(String::as_str)) {
        assert!(!line.contains(is_odd), "{}", line.escape_unicode());
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
}

#[tokio::test]
async fn names_in_a_certificate_cannot_corrupt_messages() {
    use crate::support::Certificate;
    let odd = "x\u{1b}[31m\r\nrobotgate: forged, SNI: forged\".example";
    let certificate = Certificate::of_common_name(odd);
    let origin = Origin::start().certificate(certificate).spawn().await;
    let names = Origin::start()
        .certificate(Certificate::of(&["forged.example\"; x=\"y", "b\r\nforged: x.example"]))
        .spawn()
        .await;
    let gate = Gate::start().await;

    for origin in [&origin, &names] {
        let response = gate.get(&origin.url("/x")).await;
        refused(&response, "unreachable");
        assert!(!response.headers.has("forged"), "{response:#?}");
        let decision = gate.decision_for(&origin.url("/x")).await;
        let error = decision["robots_error"].as_str().unwrap_or_default();
        assert!(
            error.contains("certificate is not valid") && !error.contains(is_odd),
            "{decision:#}"
        );
    }
    for line in gate.log() {
        assert!(!line.text.contains(is_odd), "{}", line.text.escape_unicode());
    }
}

#[tokio::test]
async fn a_rule_cannot_add_parameters_to_the_decision_field() {
    let rule = "Disallow: /x*\\\"; verdict=allow; x=\"\u{e9}\r";
    let origin = Origin::start()
        .robots(&format!("User-agent: *\n{rule}\n"))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/x%5C%22;%20verdict=allow;%20x=%22%C3%A9")).await;

    // However a client decodes the target, the field `Robots-Decision` is one item with only the parameters of the
    // gate.
    let decision = response.decision();
    assert_eq!(decision.param("verdict"), None, "{response:#?}");
    assert!(
        response.headers.all("Robots-Decision").all(|value| value.is_ascii()),
        "{response:#?}"
    );
    allowed(&gate.get(&origin.url("/other")).await, "no-rule");
}
