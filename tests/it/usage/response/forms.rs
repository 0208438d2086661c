//! Withdrawn responses, in whose place the bot gets a refusal: which forms of a field forbid the use, and how robotgate
//! ends the exchange.

use super::*;
use crate::support::{EarlyOrigin, Step, wait};

#[tokio::test]
async fn the_body_of_a_withdrawn_response_is_not_read_to_its_end() {
    let gate = Gate::with(&config("enforce")).await;
    for way in WAYS {
        println!("{way:?}");
        let endless = |request: &Request| match is_page(request) {
            false => Reply::status(404),
            true => Reply::status(200)
                .header("Content-Usage", "train-ai=n")
                .without_message_body()
                .then(Step::Endless(PAGE.repeat(1000).into())),
        };
        let origin = Origin::start().otherwise(endless);
        let origin = match way.1 {
            [] => origin.spawn().await,
            protocols => origin.alpn(protocols).spawn().await,
        };
        let mut connection = open(&gate, &origin, way).await;
        for count in 1..=3 {
            let path = format!("/{count}");
            let response = ask(&mut connection, ("GET", &path), &origin, way, ("X", "y", "Trainer")).await;
            withdrawn(&gate, &origin.url(&path), &response, FORBIDDING[0].3).await;
            wait::until("the end of the origin's response", || {
                (origin.cut() == count).then_some(())
            })
            .await;
        }
    }
}

/// RFC 9309 §2.2.2: the robots.txt itself may always be fetched.
#[tokio::test]
async fn the_robots_txt_itself_is_never_withdrawn() {
    let robots = Reply::ok("text/plain", "User-agent: *\n").header("Content-Usage", "train-ai=n");
    let origin = Origin::start().reply("/robots.txt", robots).spawn().await;
    let gate = Gate::with(&config("enforce")).await;

    let response = gate.get(&origin.url("/robots.txt")).user_agent("Trainer").await;

    allowed(&response, "robots-file");
}

/// Servers and parsers differ in which bytes of an HTTP/1.1 head they accept as a field.
#[tokio::test]
async fn a_usage_field_applies_in_any_form_but_only_in_the_final_head() {
    let fields = |text: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n{text}\r\n\r\nour text");
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n";
    let trailer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Usage\r\n\r\n\
                   8\r\nour text\r\n0\r\nContent-Usage: train-ai=n\r\n\r\n";
    let gate = Gate::with(&config("enforce")).await;
    for (what, bytes, is_withdrawn) in [
        (
            "on two lines",
            fields("Content-Usage: search=y\r\nContent-Usage: train-ai=n"),
            true,
        ),
        (
            "nominated",
            fields("Connection: Content-Usage\r\nContent-Usage: train-ai=n"),
            true,
        ),
        ("a blank before the colon", fields("Content-Usage : train-ai=n"), true),
        ("folded", fields("Content-Usage: search=y,\r\n train-ai=n"), true),
        (
            "in a later field",
            fields("X-Robots-Tag: OtherBot: noai\r\nX-Robots-Tag: noai"),
            true,
        ),
        (
            "after early hints",
            format!("{hints}\r\n{}", fields("Content-Usage: train-ai=n")),
            true,
        ),
        (
            "in early hints",
            format!("{hints}Content-Usage: train-ai=n\r\n\r\n{}", fields("X: y")),
            false,
        ),
        ("in a trailer", trailer.to_owned(), false),
    ] {
        println!("{what}");
        let origin = Origin::start().reply("/x", Reply::raw(bytes)).spawn().await;

        let response = gate.get(&origin.url("/x")).user_agent("Trainer").await;

        if is_withdrawn {
            refused(&response, "usage");
            assert!(!response.text().contains(PAGE), "{response:#?}");
        } else {
            allowed(&response, "no-robots");
            assert_eq!(response.text(), PAGE);
        }
    }
}

#[tokio::test]
async fn a_websocket_can_be_withdrawn() {
    let upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nContent-Usage: train-ai=n\r\n\r\n";
    let gate = Gate::with(&config("enforce")).await;
    for way in [WAYS[0], WAYS[1]] {
        let greeting = Step::Endless(PAGE.into());
        let origin = Origin::start().otherwise(move |request| match is_page(request) {
            false => Reply::status(404),
            true => Reply::script([Step::send(upgraded), greeting.clone()]),
        });
        let origin = if way.1.is_empty() { origin } else { origin.tls() }.spawn().await;
        let mut connection = open(&gate, &origin, way).await;

        let response = ask(&mut connection, ("GET", "/chat"), &origin, way, ("X", "y", "Trainer"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
            .await;

        withdrawn(&gate, &origin.url("/chat"), &response, FORBIDDING[0].3).await;
        assert_eq!(records(&gate, &origin.url("/chat")).await[1]["status"], 101);
        wait::until("the end of the WebSocket", || (origin.cut() == 1).then_some(())).await;
    }
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_is_withdrawn() {
    let early = format!("HTTP/1.1 200 OK\r\nContent-Usage: train-ai=n\r\n\r\n{PAGE}");
    let origin = EarlyOrigin::start(&early, false).await;
    let gate = Gate::with(&config("enforce")).await;
    let url = format!("http://{}/x", origin.authority());
    let mut connection = gate.dial().await;
    let head = format!(
        "POST {url} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Trainer\r\nContent-Length: 1000000\r\n\r\npart",
        origin.authority()
    );

    connection.send(head).await;
    let response = connection.response_to("POST").await;
    // The gate reads the rest of the request for a while, so that the client gets the response.
    connection.finish().await;

    withdrawn(&gate, &url, &response, FORBIDDING[0].3).await;
    origin.closed().await;

    let origin = EarlyOrigin::start(&early, true).await;
    let mut inside = intercept::open(&gate, &origin.authority(), Alpn::Http2).await;

    let response = inside.post_without_end("/x", b"part").await;

    let url = format!("https://{}/x", origin.authority());
    withdrawn(&gate, &url, &response, FORBIDDING[0].3).await;
    origin.closed().await;
}
