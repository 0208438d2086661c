//! Tests what happens if an origin sends invalid or excessive HTTP/2 data.

use super::*;

/// Encodes a literal HPACK field without indexing.
fn field(name: &str, value: &str) -> Vec<u8> {
    let string = |text: &str| {
        // The length is an integer with a prefix of 7 bits (RFC 7541 §5.1). The highest bit is 0: no Huffman coding.
        let mut bytes = Vec::new();
        let mut length = text.len();
        if length < 127 {
            bytes.push(u8::try_from(length).expect("below 127"));
        } else {
            bytes.push(127);
            length -= 127;
            while length >= 128 {
                bytes.push(u8::try_from(length % 128).expect("7 bits") | 128);
                length /= 128;
            }
            bytes.push(u8::try_from(length).expect("7 bits"));
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    [vec![0], string(name), string(value)].concat()
}

impl Raw {
    async fn head(&mut self, stream: u32, flags: u8, block: &[u8]) {
        let mut parts = block.chunks(16_384).peekable();
        let mut kind = HEADERS;
        while let Some(part) = parts.next() {
            let last = if parts.peek().is_none() { END_HEADERS } else { 0 };
            let flags = if kind == HEADERS { flags } else { 0 };
            self.send(kind, flags | last, stream, part).await;
            kind = CONTINUATION;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_head_fails_its_stream_and_a_huge_one_the_connection() {
    for (size, fits, is_allowed) in [(60_000, true, true), (66_000, false, true), (200_000, false, false)] {
        let bounds = Bounds {
            max_head: 64 * 1024,
            ..Bounds::default()
        };
        let (shared, mut raw) = Raw::start(bounds).await;
        let mut stream = shared.send(get("/"), true).expect("room");
        let mut other = shared.send(get("/other"), true).expect("room");
        raw.wait_for_requests(2).await;
        raw.head(1, END_STREAM, &[&[OK][..], &field("x", &"v".repeat(size))].concat())
            .await;
        raw.head(3, END_STREAM, &[OK]).await;

        match head(&mut stream).await {
            Ok(_) => assert!(fits, "{size} bytes"),
            Err(error) => {
                assert!(!fits, "{size} bytes: {error}");
                assert!(!error.is_unprocessed(), "trying again would bring the same");
                assert_eq!(Fault::from(error), Fault::HttpProtocol);
            }
        }
        assert_eq!(head(&mut other).await.is_ok(), is_allowed, "{size} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_without_end_closes_the_connection() {
    let (shared, mut raw) = Raw::start(Bounds::default()).await;
    let mut stream = shared.send(get("/"), true).expect("room");
    raw.wait_for_requests(1).await;
    let flood = tokio::spawn(async move {
        let part = field("x", "v").repeat(1000);
        raw.send(HEADERS, 0, 1, &[OK]).await;
        loop {
            raw.0.write_all(&[0, 0x0f, 0xa0, CONTINUATION, 0, 0, 0, 0, 1]).await?;
            raw.0.write_all(&part).await?;
        }
        #[expect(unreachable_code, reason = "it sets the type of the errors that end the loop")]
        std::io::Result::Ok(())
    });

    let error = head(&mut stream).await.expect_err("no head");
    assert_eq!(Fault::from(error), Fault::HttpProtocol);
    until(|| shared.is_closed()).await;
    flood.await.expect("no panic").expect_err("nobody reads any more");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_response_fails_its_stream() {
    for (name, block) in [
        (
            "a field of a connection",
            [&[OK][..], &field("connection", "close")].concat(),
        ),
        (
            "a transfer coding",
            [&[OK][..], &field("transfer-encoding", "chunked")].concat(),
        ),
        (
            "two lengths",
            [&[OK][..], &field("content-length", "0"), &field("content-length", "1")].concat(),
        ),
        (
            "a list of lengths",
            [&[OK][..], &field("content-length", "0, 0")].concat(),
        ),
        (
            "a length that is none",
            [&[OK][..], &field("content-length", "+0")].concat(),
        ),
        ("no status", field("x", "y")),
        ("another protocol", field(":status", "101")),
    ] {
        let (shared, mut raw) = Raw::start(Bounds::default()).await;
        let mut stream = shared.send(get("/"), true).expect("room");
        raw.wait_for_requests(1).await;
        raw.head(1, 0, &block).await;
        let error = head(&mut stream).await.expect_err(name);
        assert_eq!(Fault::from(error), Fault::HttpProtocol, "{name}");
        let (_, reason) = raw.next(&[RST_STREAM]).await.expect("a reset");
        assert_eq!(reason, [0, 0, 0, 1], "{name}");
        assert!(shared.has_room(false), "{name}: the connection goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn content_that_differs_from_its_length_is_incomplete() {
    for content_sent in ["four", "eighteen"] {
        let (shared, mut raw) = Raw::start(Bounds::default()).await;
        let mut stream = shared.send(get("/"), true).expect("room");
        raw.wait_for_requests(1).await;
        raw.head(1, 0, &[&[OK][..], &field("content-length", "5")].concat())
            .await;
        raw.send(DATA, END_STREAM, 1, content_sent.as_bytes()).await;
        head(&mut stream).await.expect("a head");
        let error = content(&mut stream).await.expect_err("it is not as promised");
        assert_eq!(Fault::from(error), Fault::ResponseIncomplete);
    }
}

#[tokio::test(start_paused = true)]
async fn informational_responses_are_forwarded_and_limited() {
    let early = [field(":status", "103"), field("link", "</a>")].concat();
    for (count, is_taken) in [(1, true), (16, true), (17, false)] {
        let (shared, mut raw) = Raw::start(Bounds::default()).await;
        let mut given = shared.send(get("/"), true).expect("room");
        let mut passed_over = shared.send(get("/"), true).expect("room");
        raw.wait_for_requests(2).await;
        for stream in [1, 3] {
            for _ in 0..count {
                raw.head(stream, 0, &early).await;
            }
            raw.head(stream, END_STREAM, &[OK]).await;
        }

        let mut seen = 0;
        let end = loop {
            match poll_fn(|cx| given.poll_informational(cx)).await {
                Some(Ok(head)) => {
                    assert_eq!(head.status.as_u16(), 103);
                    assert_eq!(head.headers[http::header::LINK], "</a>");
                    seen += 1;
                }
                Some(Err(error)) => break Err(error),
                None => break head(&mut given).await,
            }
        };
        assert_eq!(seen, count.min(16));
        for end in [end, head(&mut passed_over).await] {
            assert_eq!(end.is_ok(), is_taken, "{count}: {end:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_promise_ends_the_connection() {
    let (shared, mut raw) = Raw::start(Bounds::default()).await;
    let mut stream = shared.send(get("/"), true).expect("room");
    raw.wait_for_requests(1).await;
    raw.send(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]).await;
    let error = head(&mut stream).await.expect_err("the connection ended");
    assert_eq!(Fault::from(error), Fault::HttpProtocol);
    until(|| shared.is_closed()).await;
}
