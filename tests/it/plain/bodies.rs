//! Bodies of every framing and size pass in both directions.

use std::time::Duration;

use crate::support::{End, Gate, Origin, Reply, Step, allowed};

#[tokio::test]
async fn request_bodies_are_forwarded_in_both_framings() {
    let origin = Origin::start().anything("got it").spawn().await;
    let gate = Gate::start().await;

    allowed(
        &gate.ask("POST", &origin.url("/length")).body(b"a body").await,
        "no-robots",
    );
    allowed(
        &gate.ask("POST", &origin.url("/chunks")).chunks(&["a ", "body"]).await,
        "no-robots",
    );
    allowed(&gate.ask("POST", &origin.url("/empty")).body(b"").await, "no-robots");

    assert_eq!(origin.only_request_for("/length").body, b"a body");
    assert_eq!(origin.only_request_for("/chunks").body, b"a body");
    assert_eq!(origin.only_request_for("/empty").body, b"");
}

#[tokio::test]
async fn big_bodies_are_forwarded_completely() {
    let big: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let origin = Origin::start()
        .reply("/big", Reply::ok("video/mp4", big.clone()))
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.ask("PUT", &origin.url("/big")).body(&big).await;

    allowed(&response, "no-robots");
    assert!(response.body == big, "{} bytes came down", response.body.len());
    assert!(
        origin.only_request_for("/big").body == big,
        "the body that went up differs"
    );
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_chunks() {
    let origin = Origin::start()
        .reply("/chunks", Reply::chunked(["one ", "two"]))
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/chunks")).http_1_0().await;

    assert_eq!(response.field("Transfer-Encoding"), None, "{response:#?}");
    assert_eq!((response.text().as_str(), response.end), ("one two", End::Close));
}

#[tokio::test]
async fn response_bodies_are_forwarded_in_every_framing() {
    let slow = Step::Drip {
        bytes: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow".into(),
        every: Duration::from_millis(1),
    };
    let origin = Origin::start()
        .reply("/chunks", Reply::chunked(["one ", "two"]))
        .reply("/close", Reply::raw("HTTP/1.1 200 OK\r\n\r\nall of it"))
        .reply("/old", Reply::raw("HTTP/1.0 200 OK\r\n\r\nfrom 1.0"))
        .reply("/slow", Reply::script([slow]))
        .reply("/packed", Reply::gzip(b"left as it is"))
        .spawn()
        .await;
    let gate = Gate::start().await;

    for (path, text) in [
        ("/chunks", "one two"),
        ("/close", "all of it"),
        ("/old", "from 1.0"),
        ("/slow", "slow"),
    ] {
        let response = gate.get(&origin.url(path)).await;
        assert_eq!((response.status, response.text().as_str()), (200, text), "{path}");
        assert_ne!(response.end, End::Cut, "{path}");
    }
    let packed = gate.get(&origin.url("/packed")).await;
    assert_eq!(packed.field("Content-Encoding"), Some("gzip"));
    assert_eq!(packed.body[..2], [0x1f, 0x8b]);
}

#[tokio::test]
async fn responses_without_a_body_keep_the_connection_usable() {
    let origin = Origin::start()
        .reply("/204", Reply::status(204))
        .reply("/304", Reply::status(304).header("ETag", "\"e\""))
        .page("/x", "page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    let mut connection = gate.dial().await;

    for (method, path, status) in [
        ("GET", "/204", 204),
        ("GET", "/304", 304),
        ("HEAD", "/x", 200),
        ("GET", "/x", 200),
    ] {
        let response = connection.ask(method, &origin.url(path)).await;
        assert_eq!(response.status, status, "{method} {path}");
        assert!(response.stays_open, "{method} {path}: {response:#?}");
        assert_eq!(response.decision().value(), "allow");
    }
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it() {
    // Over HTTP/2, most origins send no 100 response.
    for origin in [Origin::start(), Origin::start().alpn(&["h2"])] {
        let origin = origin.anything("got it").spawn().await;
        let gate = Gate::start().await;
        let mut connection = gate.dial().await;

        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
            origin.url("/x"),
            origin.authority()
        );
        connection.send(head).await;
        let interim = String::from_utf8(connection.read().await).expect("a head is text");
        connection.send("body").await;
        let response = connection.response_to("POST").await;

        assert!(interim.starts_with("HTTP/1.1 100 "), "{interim}");
        assert_eq!(response.status, 200, "{response:#?}");
        assert_eq!(origin.only_request_for("/x").body, b"body");
    }
}

#[tokio::test]
async fn a_truncated_body_is_not_forwarded_as_complete() {
    let part = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart";
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
    let origin = Origin::start()
        .reply("/close", Reply::raw(part))
        .reply("/reset", Reply::script([Step::send(part), Step::Reset]))
        .reply("/chunk", Reply::raw(chunk))
        .spawn()
        .await;
    let gate = Gate::start().await;

    for path in ["/close", "/reset", "/chunk"] {
        // If the failure comes before the response has begun, the response is a 502.
        let response = gate.get(&origin.url(path)).await;
        assert!(
            response.status == 502 || response.end == End::Cut,
            "{path}: {response:#?}"
        );
    }
}
