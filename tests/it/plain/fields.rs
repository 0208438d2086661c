//! Header fields in both directions: which are added, removed or left unchanged, and which affect the decision.

use crate::support::{Gate, Origin, Reply, Request, allowed};

#[tokio::test]
async fn a_decision_field_of_the_origin_is_removed() {
    let forged = Reply::ok("text/plain", "x").header("Robots-Decision", "deny; reason=forged");
    let origin = Origin::start().reply("/x", forged).spawn().await;
    let gate = Gate::start().await;
    let silent = Gate::with("[proxy]\nannotate-allowed = false").await;

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
    let unmarked = silent.get(&origin.url("/x")).await;
    assert_eq!((unmarked.status, unmarked.field("Robots-Decision")), (200, None));
}

#[tokio::test]
async fn via_names_the_gate_in_both_directions() {
    let origin = Origin::start()
        .reply("/x", Reply::ok("text/plain", "x").header("Via", "1.0 cdn"))
        .spawn()
        .await;
    let gate = Gate::start().await;
    let named = Gate::with("[proxy]\nname = \"gate-seven\"").await;

    let response = gate.get(&origin.url("/x")).header("Via", "1.0 first").await;
    named.get(&origin.url("/x")).await;

    let forwarded = origin.requests_for("/x");
    let joined = |values: Vec<&str>| values.join(", ");
    let out = joined(forwarded[0].headers.all("Via").collect());
    let back = joined(response.headers.all("Via").collect());
    assert!(out.starts_with("1.0 first, 1.1 robotgate"), "{out}");
    assert!(back.starts_with("1.0 cdn, 1.1 robotgate"), "{back}");
    let other = joined(forwarded[1].headers.all("Via").collect());
    assert!(other.starts_with("1.1 gate-seven"), "{other}");
}

#[tokio::test]
async fn with_via_off_a_site_compresses_its_responses() {
    // nginx with `gzip on` responds in this way.
    let page = |request: &Request| match request.field("Via") {
        Some(_) => Reply::ok("text/plain", "page"),
        None => Reply::gzip(b"page"),
    };
    let origin = Origin::start().on("/x", page).spawn().await;
    for (overrides, coding) in [("", None), ("[proxy]\nvia = false", Some("gzip"))] {
        let gate = Gate::with(overrides).await;
        let response = gate.get(&origin.url("/x")).header("Accept-Encoding", "gzip").await;
        allowed(&response, "no-robots");
        assert_eq!(response.field("Content-Encoding"), coding, "{overrides}");
        let back = response.field("Via").expect("an answer always says how it came");
        assert!(back.starts_with("1.1 robotgate"), "{back}");
    }
    let gate = Gate::with("[proxy]\nvia = false").await;
    gate.get(&origin.url("/x")).header("Via", "1.0 first").await;
    let forwarded = origin.requests_for("/x");
    assert_eq!(
        forwarded.last().and_then(|forwarded| forwarded.field("Via")),
        Some("1.0 first")
    );
}

#[tokio::test]
async fn a_request_in_a_proxy_loop_is_refused() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    gate.get(&origin.url("/once")).await;
    let via = origin.only_request_for("/once").field("Via").expect("Via").to_owned();

    let response = gate
        .get(&origin.url("/again"))
        .header("Via", &format!("1.1 other, {via}"))
        .await;

    assert!(matches!(response.status, 502 | 508), "{response:#?}");
    assert_eq!(
        response.proxy_status().param("error").as_deref(),
        Some("proxy_loop_detected")
    );
    assert_eq!(origin.count("/again"), 0);
}

#[tokio::test]
async fn hop_by_hop_fields_are_not_forwarded() {
    let reply = Reply::ok("text/plain", "x")
        .header("Connection", "X-Hop")
        .header("X-Hop", "1")
        .header("Keep-Alive", "timeout=5")
        .header("X-End", "1");
    let origin = Origin::start().reply("/x", reply).spawn().await;
    let gate = Gate::start().await;

    let response = gate
        .get(&origin.url("/x"))
        .header("Connection", "keep-alive, X-Secret")
        .header("X-Secret", "1")
        .header("Keep-Alive", "timeout=5")
        .header("Proxy-Connection", "keep-alive")
        .header("Proxy-Authorization", "Basic Ym90OnNlY3JldA==")
        .header("TE", "gzip")
        .header("Cookie", "a=b")
        .await;

    let forwarded = origin.only_request_for("/x");
    for name in [
        "X-Secret",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "TE",
    ] {
        assert_eq!(forwarded.field(name), None, "to the origin: {forwarded:#?}");
    }
    assert!(!forwarded.headers.lists("Connection", "X-Secret"), "{forwarded:#?}");
    assert_eq!(forwarded.field("Cookie"), Some("a=b"));
    for name in ["X-Hop", "Keep-Alive"] {
        assert_eq!(response.field(name), None, "to the client: {response:#?}");
    }
    assert_eq!(response.field("X-End"), Some("1"));
}

#[tokio::test]
async fn host_is_taken_from_the_url_and_the_client_is_not_revealed() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;

    gate.get(&origin.url("/x"))
        .set("Host", &origin.authority().to_ascii_uppercase())
        .await;
    gate.get(&origin.url("/none")).without("Host").http_1_0().await;

    for path in ["/x", "/none"] {
        let forwarded = origin.only_request_for(path);
        let hosts: Vec<&str> = forwarded.headers.all("Host").collect();
        assert_eq!(hosts, [origin.authority()], "{forwarded:#?}");
        for name in [
            "X-Forwarded-For",
            "Forwarded",
            "X-Real-IP",
            "X-Forwarded-Proto",
            "X-Forwarded-Host",
        ] {
            assert_eq!(forwarded.field(name), None, "{forwarded:#?}");
        }
    }
}

#[tokio::test]
async fn every_other_field_is_forwarded_unchanged() {
    let reply = Reply::ok("text/plain", "x")
        .header("Set-Cookie", "a=1")
        .header("Set-Cookie", "b=2");
    let origin = Origin::start().reply("/x", reply).spawn().await;
    let gate = Gate::start().await;

    let response = gate
        .get(&origin.url("/x"))
        .header("Accept-Encoding", "gzip, br")
        .header("X-Twice", "1")
        .header("X-Twice", "2")
        .header("Range", "bytes=0-4")
        .header("If-None-Match", "\"e\"")
        .await;

    let forwarded = origin.only_request_for("/x");
    assert_eq!(forwarded.headers.all("X-Twice").collect::<Vec<_>>(), ["1", "2"]);
    for (name, value) in [
        ("User-Agent", "TestBot/1.0"),
        ("Accept-Encoding", "gzip, br"),
        ("Range", "bytes=0-4"),
        ("If-None-Match", "\"e\""),
    ] {
        assert_eq!(forwarded.field(name), Some(value), "{forwarded:#?}");
    }
    assert_eq!(response.headers.all("Set-Cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
}

/// A request for the robots.txt is allowed whatever the rules say. But if its method or a field could make the origin
/// treat it as another kind of request, robotgate decides by the rules.
#[tokio::test]
async fn a_robots_txt_request_with_an_override_field_is_decided() {
    let origin = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    let strips = Gate::with("[proxy]\nstrip = [\"X-Original-URL\"]").await;
    let host = origin.authority();
    for (gate, method, field, reason) in [
        (&gate, "GET", "Accept: */*", "robots-file"),
        (&gate, "HEAD", "Accept: */*", "robots-file"),
        (&gate, "POST", "Content-Length: 0", "rule"),
        (&gate, "DELETE", "Accept: */*", "rule"),
        (&gate, "GET", "X-Original-URL: /private", "rule"),
        (&gate, "GET", "x_original-URL: /private", "rule"),
        (&gate, "GET", "x-rewrite-url: /private", "rule"),
        (&gate, "GET", "X-HTTP-Method-Override: DELETE", "rule"),
        (&gate, "GET", "Forwarded: host=other.example", "rule"),
        (&gate, "HEAD", "X-Forwarded-Host: other.example", "rule"),
        (&gate, "GET", "Destination: /x", "rule"),
        // A field that is removed before forwarding has no effect.
        (&strips, "GET", "X-Original-URL: /private", "robots-file"),
        (&strips, "GET", "X_ORIGINAL_URL: /private", "robots-file"),
        (&strips, "GET", "X-Rewrite-URL: /private", "rule"),
    ] {
        let sent = format!(
            "{method} http://{host}/robots.txt HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n{field}\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = String::from_utf8_lossy(&gate.raw(sent).await).into_owned();
        assert!(
            answer.contains(&format!("reason={reason};")),
            "{method} {field}: {answer}"
        );
    }
}

#[tokio::test]
async fn configured_fields_are_stripped() {
    let origin = Origin::start().robots("").anything("page").spawn().await;
    let gate = Gate::with("[proxy]\nstrip = [\"X-Original-URL\", \"referer\"]").await;
    let host = origin.authority();
    let sent = format!(
        "GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nx-original-url: /a\r\n\
         X-Original-URL: /b\r\nX_Original_url: /c\r\nReferer: http://a.example/\r\nX-Other: kept\r\nConnection: close\r\n\r\n"
    );
    gate.raw(sent).await;
    let requests = origin.requests();
    let forwarded = requests.last().expect("it was forwarded");
    let field = |name: &str| forwarded.field(name).map(str::to_owned);
    assert_eq!(
        [
            field("X-Original-URL"),
            field("X_Original_url"),
            field("Referer"),
            field("X-Other")
        ],
        [None, None, None, Some("kept".to_owned())],
        "{forwarded:#?}"
    );
}
