//! An origin that does not read the content of requests, and so mistakes it for the next request.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::support::{Alpn, Gate, NAME, Origin, allowed};

/// The request lines of the complete heads that the origin read.
type Taken = Arc<Mutex<Vec<String>>>;

async fn origin_that_reads_no_content() -> (u16, Taken) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let taken = Taken::default();
    tokio::spawn({
        let taken = taken.clone();
        async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, taken.clone()));
            }
        }
    });
    (port, taken)
}

async fn answer(stream: TcpStream, taken: Taken) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut first, mut closes) = (String::new(), String::new(), false);
        loop {
            line.clear();
            if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
                return;
            }
            if line == "\r\n" {
                break;
            }
            closes |= line.eq_ignore_ascii_case("connection: close\r\n");
            if first.is_empty() {
                first = line.trim_end().to_owned();
            }
        }
        let robots = first.contains("/robots.txt");
        taken.lock().push(first);
        let body = if robots {
            "User-agent: *\nDisallow: /private\n"
        } else {
            "page"
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(head.as_bytes()).await.is_err() || closes {
            return;
        }
    }
}

#[tokio::test]
async fn content_that_an_origin_does_not_read_never_starts_a_request() {
    for smuggled in [
        "GET /private HTTP/1.1\r\nX: ",
        "GET /private HTTP/1.1\r\nHost: shop.example\r\n\r\n",
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            let (port, taken) = origin_that_reads_no_content().await;
            let gate = Gate::start().await;
            let url = |path: &str| format!("http://{NAME}:{port}{path}");
            let mut first = gate.dial().await;

            allowed(&first.get(&url("/warm")).await, "no-rule");
            let response = first.ask(method, &url("/a")).body(smuggled.as_bytes()).await;
            assert_eq!(response.status, 200, "{method}: {response:#?}");
            let mut second = gate.dial().await;
            allowed(&second.get(&url("/b")).await, "no-rule");
            allowed(&second.get(&url("/c")).await, "no-rule");

            let lines = taken.lock().clone();
            assert!(
                lines.iter().all(|line| !line.contains("/private")),
                "{method}: {lines:#?}"
            );
            let (decisions, _) = gate.audited(4).await;
            assert_eq!(lines.len(), decisions.len() + 1, "{method}: {lines:#?}");
        }
    }
}

#[tokio::test]
async fn unread_content_from_http_2_never_starts_a_request() {
    let gate = Gate::start().await;
    let origin = Origin::start().anything("page").tls().spawn().await;
    let mut inside = gate
        .connect(&origin.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http2)
        .await;

    allowed(&inside.ask("POST", "/a").body(b"content").await, "no-robots");
    allowed(&inside.get("/b").await, "no-robots");

    assert_eq!(origin.only_request_for("/a").field("Connection"), Some("close"));
    assert_ne!(origin.only_request_for("/b").field("Connection"), Some("close"));
}
