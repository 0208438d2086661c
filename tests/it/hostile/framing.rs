//! The gate stops requests that two parsers could interpret differently (request smuggling).

use super::{gate_still_works, parse, start};

#[tokio::test]
async fn bytes_that_are_not_http_are_refused() {
    let (origin, mut gate) = start().await;
    let (url, host) = (origin.url("/x"), origin.authority());
    let long = "a".repeat(200_000);

    for (way, bytes) in [
        (
            "TLS to the plain port",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello \r\n\r\n".to_vec(),
        ),
        ("noise", vec![0xff; 3000]),
        ("one word", b"HELLO\r\n\r\n".to_vec()),
        ("no version", format!("GET {url}\r\n\r\n").into_bytes()),
        (
            "a version that is none",
            format!("GET {url} HTTP/9.9\r\nHost: {host}\r\n\r\n").into_bytes(),
        ),
        ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        (
            "a field without a colon",
            format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nNonsense\r\n\r\n").into_bytes(),
        ),
        (
            "a space before the colon",
            format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nX-A : b\r\n\r\n").into_bytes(),
        ),
        (
            "a NUL in a field",
            format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nX-A: b\0c\r\n\r\n").into_bytes(),
        ),
        (
            "a field over 200 kB",
            format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nX-A: {long}\r\n\r\n").into_bytes(),
        ),
        (
            "a target over 200 kB",
            format!("GET {url}{long} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
        ),
        (
            "a negative length",
            format!("POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n").into_bytes(),
        ),
        (
            "an unknown coding",
            format!("POST {url} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: odd\r\n\r\n").into_bytes(),
        ),
    ] {
        println!("{way}");
        let mut connection = gate.dial().await;
        // The gate may close the connection before it has read everything.
        connection.try_send(&bytes).await;
        connection.finish().await;
        let received = connection.read_to_end().await;
        if let Some(response) = parse(received).await {
            assert!((400..600).contains(&response.status), "{way}: {response:#?}");
        }
    }
    assert_eq!(origin.count("/x"), 0);
    gate_still_works(&mut gate, &origin).await;
}

#[tokio::test]
async fn a_body_with_two_lengths_is_forwarded_with_one_or_refused() {
    let (origin, mut gate) = start().await;
    let host = origin.authority();
    let smuggled = format!("GET /smuggled HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot\r\nConnection: close\r\n",
        origin.url("/x")
    );

    for (way, rest) in [
        (
            "both framings",
            format!("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        ),
        (
            "the other way round",
            format!("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{smuggled}"),
        ),
        (
            "two lengths",
            format!("Content-Length: 4\r\nContent-Length: 40\r\n\r\nbody{smuggled}"),
        ),
        (
            "a list of lengths",
            format!("Content-Length: 4, 40\r\n\r\nbody{smuggled}"),
        ),
        (
            "a coding twice",
            format!("Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        ),
        (
            "a coding in disguise",
            format!("Transfer-Encoding: \x0bchunked\r\nContent-Length: 4\r\n\r\nbody{smuggled}"),
        ),
    ] {
        println!("{way}");
        let mut connection = gate.dial().await;
        connection.try_send(format!("{head}{rest}").as_bytes()).await;
        connection.finish().await;
        let received = connection.read_to_end().await;
        for forwarded in origin.requests_for("/x") {
            let both = forwarded.headers.has("Content-Length") && forwarded.headers.has("Transfer-Encoding");
            let lengths = forwarded.headers.all("Content-Length").count();
            assert!(!both && lengths <= 1, "{way}: {forwarded:#?}");
        }
        assert_eq!(
            origin.count("/smuggled"),
            0,
            "{way}: {}",
            String::from_utf8_lossy(&received)
        );
    }
    gate_still_works(&mut gate, &origin).await;
}

#[tokio::test]
async fn two_host_fields_are_a_bad_request() {
    let (origin, gate) = start().await;

    let response = gate.get(&origin.url("/x")).header("Host", "other.example").await;

    assert_eq!(response.status, 400, "{response:#?}");
    assert_eq!(origin.count("/x"), 0);
}
