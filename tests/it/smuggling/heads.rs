//! Heads that are refused before a decision.

mod payloads;

use self::payloads::{FRAMING_FIELDS, HEADS};
use super::{Scene, WAYS, Way, is_refused, responses};

/// A request that is sent right after the refused one. It must not reach an origin.
const SMUGGLED: &str = "GET {prefix}/smuggled HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n\r\n";

#[tokio::test]
async fn a_request_with_two_framings_is_refused() {
    let scene = Scene::start().await;
    for way in WAYS {
        for (name, rest, cause) in FRAMING_FIELDS {
            let head = "POST {x} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n";
            let payload = scene.payload(way, &format!("{head}{rest}{SMUGGLED}"));
            let received = responses(scene.send(way, &payload).await).await;
            is_refused(&received, 400, cause, &format!("{name} ({way:?})"));
        }
        nothing_was_forwarded(&scene, way).await;
    }
}

#[tokio::test]
async fn heads_that_two_parsers_read_differently_are_refused() {
    let scene = Scene::start().await;
    for way in WAYS {
        for (name, head, cause) in HEADS {
            let payload = scene.payload(way, &format!("{head}{SMUGGLED}"));
            let received = responses(scene.send(way, &payload).await).await;
            if way == Way::PlainInside && !payload[0].is_ascii_uppercase() {
                // The first byte shows that the client does not speak HTTP, so the gate sends no response.
                assert!(received.is_empty(), "{name}: {received:#?}");
                continue;
            }
            is_refused(&received, 400, cause, &format!("{name} ({way:?})"));
        }
        nothing_was_forwarded(&scene, way).await;
    }
}

#[tokio::test]
async fn an_unreadable_host_is_refused_even_if_target_and_field_agree() {
    let scene = Scene::start().await;
    for (host, cause) in [
        ("shop.example:99999", "port"),
        ("shop.example:0", "port"),
        ("shop.example:80:80", "port"),
        ("shop.example:+80", "port"),
        ("shop.example:8_0", "port"),
        ("[::1", "neither a name like shop.example nor an address"),
        ("[::1]x", "neither a name like shop.example nor an address"),
        ("[::g]", "neither a name like shop.example nor an address"),
        ("shop..example", "neither a name like shop.example nor an address"),
        (
            "shop.example%2fb.example",
            "neither a name like shop.example nor an address",
        ),
        ("shop.exam^ple", "neither a name like shop.example nor an address"),
        ("shop.example|b", "neither a name like shop.example nor an address"),
        ("b%C3%BCcher.example", "write it as xn--bcher-kva.example"),
        ("bücher.example", "write it as xn--bcher-kva.example"),
        ("%31%32%37.0.0.1", "write it as 127.0.0.1"),
        ("①②⑦.⓪.⓪.①:80", "write it as 127.0.0.1"),
        (
            "{shop}.example",
            "host has the character '{', which robotgate does not accept",
        ),
        ("me@shop.example", "remove the user name before the host"),
        ("", ""),
        (":80", "the host is missing"),
    ] {
        let head = format!("GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n\r\n");
        let received = responses(scene.send(Way::Plain, head.as_bytes()).await).await;
        is_refused(&received, 400, cause, host);
    }
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn a_tunnel_serves_only_the_host_that_it_was_opened_to() {
    let scene = Scene::start().await;
    let other = &scene.plain;
    let head = |target: &str, host: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n\r\n{SMUGGLED}")
    };
    for (target, host) in [
        (other.url("/x"), other.authority()),
        (format!("https://{}/x", other.authority()), other.authority()),
        ("/x".to_owned(), other.authority()),
        ("/x".to_owned(), "shop.example".to_owned()),
        // Only the scheme differs.
        (format!("http://{}/x", scene.tls.authority()), scene.tls.authority()),
    ] {
        let payload = scene.payload(Way::Tls, &head(&target, &host));
        let received = responses(scene.send(Way::Tls, &payload).await).await;
        is_refused(
            &received,
            400,
            "a different host, port or scheme from the CONNECT",
            &format!("{target} {host}"),
        );
    }
    nothing_was_forwarded(&scene, Way::Tls).await;
}

async fn nothing_was_forwarded(scene: &Scene, way: Way) {
    let origin = scene.origin(way);
    assert_eq!(
        (origin.count("/x"), origin.count("/smuggled")),
        (0, 0),
        "{:#?}",
        origin.requests()
    );
    scene.still_serves(way).await;
    scene.every_forwarded_request_is_logged().await;
}
