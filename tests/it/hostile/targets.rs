//! Request targets that are invalid, too long, or disagree with the Host field, and CONNECTs that robotgate refuses.

use super::{gate_still_works, start};
use crate::support::{Alpn, Connected, DnsAnswer, Gate, Origin, Response, refused};

#[tokio::test]
async fn a_target_that_names_no_origin_is_a_bad_request() {
    let (origin, mut gate) = start().await;
    let port = origin.port();

    for target in [
        "/x".to_owned(),
        "*".to_owned(),
        "http:///x".to_owned(),
        "http://".to_owned(),
        format!("http://:{port}/x"),
        "http://shop.example:0/x".to_owned(),
        "http://shop.example:65536/x".to_owned(),
        "http://shop.example:port/x".to_owned(),
        format!("http://shop.example:-{port}/x"),
        format!("http://shop.example:{port}:{port}/x"),
        format!("http://user:pass@shop.example:{port}/x"),
        format!("http://shop.example@127.0.0.1:{port}/x"),
        format!("http://[::1/x:{port}"),
        format!("http://sh%6fp .example:{port}/x"),
        format!("http://shop..example:{port}/x"),
        "file:///etc/passwd".to_owned(),
        format!("shop.example:{port}/x"),
    ] {
        println!("{target}");
        let response = gate.get(&target).set("Host", &origin.authority()).await;
        assert!((400..500).contains(&response.status), "{target}: {response:#?}");
        assert_ne!(response.status, 403, "no verdict of robots.txt: {response:#?}");
    }
    assert_eq!(origin.requests().len(), 0, "{:#?}", origin.requests());
    gate_still_works(&mut gate, &origin).await;
}

#[tokio::test]
async fn a_connect_without_a_valid_host_and_port_is_a_bad_request() {
    let (origin, mut gate) = start().await;

    for target in [
        "/x",
        "shop.example",
        "shop.example:",
        "shop.example:0",
        "shop.example:65536",
        ":443",
        "a:b:443",
        "*",
    ] {
        println!("{target}");
        let response = gate.connect(target).await.refused();
        assert!((400..500).contains(&response.status), "{target}: {response:#?}");
    }
    gate_still_works(&mut gate, &origin).await;
}

#[tokio::test]
async fn a_connect_inside_a_connect_is_refused_at_any_depth() {
    let (origin, mut gate) = start().await;
    let connect = "CONNECT shop.example:80 HTTP/1.1\r\n\r\n";

    let answer = gate.raw(connect.repeat(200)).await;

    let text = String::from_utf8_lossy(&answer);
    assert_eq!(text.matches("HTTP/1.1 200 ").count(), 1, "{text}");
    assert!(text.contains("a CONNECT inside a CONNECT is not supported"), "{text}");
    gate_still_works(&mut gate, &origin).await;
}

#[tokio::test]
async fn a_target_that_is_too_long_is_a_414() {
    let (origin, gate) = start().await;
    let response = gate.get(&origin.url(&format!("/{}", "a".repeat(17_000)))).await;
    assert_eq!(response.status, 414, "{response:#?}");
}

#[tokio::test]
async fn a_target_that_pingora_cannot_read_is_a_414_and_not_logged() {
    let origin = Origin::start().spawn().await;
    let gate = Gate::with("[audit]\nredact-query = true\n[proxy]\nmax-header-bytes = \"512KiB\"").await;
    let url = origin.url(&format!("/?token=s3cret&x={}", "z".repeat(70_000)));

    let response = gate.get(&url).await;

    assert_eq!(response.status, 414, "{response:#?}");
    assert!(response.text().contains("longer than 16 KiB"), "{response:#?}");
    gate.wait_for_log("the refusal", |line| {
        line.message() == "a request was refused as malformed"
    })
    .await;
    assert!(gate.log().iter().all(|line| !line.json.to_string().contains("s3cret")));
}

#[tokio::test]
async fn a_host_that_disagrees_with_the_target_is_refused() {
    let closed = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .anything("page")
        .spawn()
        .await;
    let (origin, gate) = start().await;

    let lying = gate.get(&closed.url("/x")).set("Host", &origin.authority()).await;
    let honest = gate.get(&origin.url("/x")).set("Host", &closed.authority()).await;

    assert_eq!((lying.status, honest.status), (400, 400));
    assert!(lying.text().contains("Host field"), "{}", lying.text());
    assert!(origin.requests().is_empty() && closed.requests().is_empty());
}

#[tokio::test]
async fn a_connect_to_an_unreachable_host_is_refused() {
    let (origin, mut gate) = start().await;
    gate.dns().answer("nowhere.example", DnsAnswer::NoSuchName);

    for (authority, reason) in [
        ("nowhere.example:443", "unreachable"),
        ("127.0.0.1:2", "unreachable"),
        ("127.0.0.1:1", "egress"),
        ("169.254.169.254:80", "egress"),
    ] {
        println!("{authority}");
        refused(&answer(&gate, authority).await, reason);
    }
    gate_still_works(&mut gate, &origin).await;
}

/// Returns the response to the CONNECT if it is refused, otherwise the response in the tunnel.
async fn answer(gate: &Gate, authority: &str) -> Response {
    match gate.connect(authority).user_agent("TestBot/1.0").await {
        Connected::Refused(response) => response,
        Connected::Tunnel(tunnel) => {
            let name = authority.rsplit_once(':').expect("a port").0;
            tunnel.tls(name, Alpn::Http1).await.get("/x").await
        }
    }
}
