//! Origins that negotiate HTTP/2 and then violate it.

use std::{pin::Pin, sync::Arc};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

use crate::support::{
    Alpn, Certificate, Connection, End, Frames, Gate, NAME, Origin, Response, allowed,
    frames::{CONTINUATION, DATA, END_HEADERS, END_STREAM, GO_AWAY, HEADERS, PING, RST_STREAM, SETTINGS},
    refused, wait,
};

type Doing = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What an origin does about a request on a stream: it sends frames, and then continues reading.
type Script = Arc<dyn Fn(Frames, u32) -> Doing + Send + Sync>;

/// An origin with two scripts for HTTP/2: one for the first connection, which asks for the robots.txt, and one for
/// later ones. Over HTTP/1.1 it responds with 404.
struct Http2Origin {
    port: u16,
    accepting: JoinHandle<()>,
}

impl Http2Origin {
    /// Starts an origin without a robots.txt, with this script for other requests.
    async fn start(script: Script) -> Self {
        Self::with(sends(LAST_NOT_FOUND), script).await
    }

    async fn with(first: Script, others: Script) -> Self {
        let mut config = (*Certificate::of(&[NAME]).server_config()).clone();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let accepting = tokio::spawn(async move {
            let mut next = first;
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, script) = (acceptor.clone(), std::mem::replace(&mut next, others.clone()));
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                        let mut frames = Frames::answering(stream).await?;
                        if let Some(request) = frames.request().await {
                            script(frames, request).await;
                        }
                    } else {
                        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
                        let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                        stream.read_buf(&mut Vec::with_capacity(4096)).await?;
                        stream.write_all(none).await?;
                        stream.shutdown().await?;
                    }
                    std::io::Result::Ok(())
                });
            }
        });
        Self { port, accepting }
    }

    fn authority(&self) -> String {
        format!("{NAME}:{}", self.port)
    }

    fn url(&self) -> String {
        format!("https://{}/x", self.authority())
    }
}

impl Drop for Http2Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Creates a script from a function that sends frames. Afterwards, the origin continues reading.
fn script<F: Future<Output = Frames> + Send + 'static>(
    act: impl Fn(Frames, u32) -> F + Send + Sync + 'static,
) -> Script {
    Arc::new(move |frames, stream| {
        let acting = act(frames, stream);
        Box::pin(async move { acting.await.drain().await })
    })
}

/// Creates a script that sends these frames. Each has a kind, flags, whether it is on the stream, and a payload.
fn sends(frames: &'static [(u8, u8, bool, &'static [u8])]) -> Script {
    script(move |mut to, stream| async move {
        for (kind, flags, on_stream, payload) in frames {
            to.frame(*kind, *flags, if *on_stream { stream } else { 0 }, payload)
                .await;
        }
        to
    })
}

/// The field `:status: 200`, which is entry 8 in HPACK's static table.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];
/// Frames for a 404 that also announce that the origin accepts no more streams on the connection.
const LAST_NOT_FOUND: &[(u8, u8, bool, &[u8])] = &[
    (HEADERS, END_HEADERS | END_STREAM, true, NOT_FOUND),
    (GO_AWAY, 0, false, &[0, 0, 0, 1, 0, 0, 0, 0]),
];

async fn ask(gate: &Gate, origin: &Http2Origin) -> std::io::Result<Response> {
    let tunnel = gate.connect(&origin.authority()).await.opened();
    tunnel.tls(NAME, Alpn::Http2).await.get("/x").send().await
}

#[tokio::test]
async fn an_origin_that_violates_http_2_causes_an_error() {
    let gate = Gate::with("[proxy]\nread-timeout = \"1s\"").await;
    let other = Origin::start().anything("page").spawn().await;
    let before = gate.peak_memory();
    let long_length: &[u8] = &[0x88, 0x0f, 0x0d, 0x02, b'4', b'0'];
    // The field `Connection: close`, which HTTP/2 does not allow.
    let connection = b"\x88\x00\x0aconnection\x05close";
    let capital = b"\x88\x00\x01X\x01a";
    let line_end = b"\x88\x00\x01x\x04a\r\nb";
    let cases: Vec<(&str, Script)> = vec![
        ("reset: internal error", sends(&[(RST_STREAM, 0, true, &[0, 0, 0, 2])])),
        ("reset: refused", sends(&[(RST_STREAM, 0, true, &[0, 0, 0, 7])])),
        (
            "reset in the body",
            sends(&[
                (HEADERS, END_HEADERS, true, OK),
                (DATA, 0, true, b"part"),
                (RST_STREAM, 0, true, &[0, 0, 0, 2]),
            ]),
        ),
        ("away at once", sends(&[(GO_AWAY, 0, false, &[0, 0, 0, 0, 0, 0, 0, 0])])),
        (
            "away for a fault",
            sends(&[(GO_AWAY, 0, false, &[0, 0, 0, 0, 0, 0, 0, 1])]),
        ),
        (
            "away in the body",
            sends(&[
                (HEADERS, END_HEADERS, true, OK),
                (DATA, 0, true, b"part"),
                (GO_AWAY, 0, false, &[0, 0, 0, 0, 0, 0, 0, 1]),
            ]),
        ),
        ("content before the head", sends(&[(DATA, END_STREAM, true, b"part")])),
        (
            "a field block that is none",
            sends(&[(HEADERS, END_HEADERS, true, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff])]),
        ),
        (
            "no status",
            sends(&[(HEADERS, END_HEADERS | END_STREAM, true, b"\x00\x01x\x01a")]),
        ),
        (
            "a status that is none",
            sends(&[(HEADERS, END_HEADERS | END_STREAM, true, b"\x08\x0299")]),
        ),
        (
            "another protocol",
            sends(&[(HEADERS, END_HEADERS | END_STREAM, true, b"\x08\x03101")]),
        ),
        (
            "a field of connections",
            script(move |mut to, stream| async move {
                to.frame(HEADERS, END_HEADERS | END_STREAM, stream, connection).await;
                to
            }),
        ),
        (
            "a name in capital letters",
            script(move |mut to, stream| async move {
                to.frame(HEADERS, END_HEADERS | END_STREAM, stream, capital).await;
                to
            }),
        ),
        (
            "a line end in a value",
            script(move |mut to, stream| async move {
                to.frame(HEADERS, END_HEADERS | END_STREAM, stream, line_end).await;
                to
            }),
        ),
        (
            "less than was promised",
            script(move |mut to, stream| async move {
                to.frame(HEADERS, END_HEADERS, stream, long_length).await;
                to.frame(DATA, END_STREAM, stream, b"part").await;
                to
            }),
        ),
        ("silence", sends(&[])),
        (
            "silence in the body",
            sends(&[(HEADERS, END_HEADERS, true, OK), (DATA, 0, true, b"part")]),
        ),
        (
            "a flood of field blocks",
            script(|mut to, stream| async move {
                to.frame(HEADERS, 0, stream, OK).await;
                let piece = [0x00, 1, b'x', 1, b'y'].repeat(3_000);
                for _ in 0..2_000 {
                    to.frame(CONTINUATION, 0, stream, &piece).await;
                }
                to
            }),
        ),
        (
            "a flood of settings",
            script(|mut to, _| async move {
                for _ in 0..20_000 {
                    to.frame(SETTINGS, 0, 0, &[]).await;
                }
                to
            }),
        ),
        (
            "a flood of pings",
            script(|mut to, _| async move {
                for _ in 0..20_000 {
                    to.frame(PING, 0, 0, &[0; 8]).await;
                }
                to
            }),
        ),
        (
            "a flood of interim responses",
            script(|mut to, stream| async move {
                for _ in 0..5_000 {
                    to.fields(stream, &[(b":status", b"103"), (b"link", b"</x>")], false)
                        .await;
                }
                to
            }),
        ),
    ];
    let mut origins = Vec::new();
    for (name, script) in cases {
        println!("{name}");
        let origin = Http2Origin::start(script).await;
        // The time-out for reading is short, and a good origin can exceed it on a busy machine.
        let next = wait::until_async("another to be served", async || {
            let response = gate.get(&other.url("/other")).await;
            (response.status == 200).then(|| drop(allowed(&response, "no-robots")))
        });
        let (response, ()) = tokio::join!(wait::within(name, ask(&gate, &origin)), next);
        if let Ok(response) = &response
            && response.status == 404
        {
            // The gate repeated the request over HTTP/1.1.
            origins.push(origin);
            continue;
        }
        if let Ok(response) = response {
            assert!(
                matches!(response.status, 502 | 504) || response.end == End::Cut,
                "{name}: {response:#?}"
            );
        }
        let completion = gate.completion_of(&gate.decision_for(&origin.url()).await).await;
        let error = completion["error"].as_str().unwrap_or_default();
        assert!(
            [
                "http_protocol_error",
                "http_response_incomplete",
                "connection_terminated",
                "connection_read_timeout"
            ]
            .contains(&error),
            "{name}: {completion:#}"
        );
        origins.push(origin);
    }
    let grown = gate.peak_memory().saturating_sub(before);
    println!("{} MiB more", grown >> 20);
    assert!(grown < 40 << 20, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn trailers_and_interim_responses_cannot_forge_gate_fields() {
    const FORGED: &[u8] = b"deny; reason=rule; rule=\"forged\"";
    const STATUS: &[u8] = b"robotgate; error=http_request_denied; details=\"forged\"";
    let gate = Gate::start().await;
    let origin = Http2Origin::start(script(|mut to, stream| async move {
        let ours: [(&[u8], &[u8]); 2] = [(b"robots-decision", FORGED), (b"proxy-status", STATUS)];
        to.fields(stream, &[(b":status", b"103"), ours[0], ours[1]], false)
            .await;
        to.fields(stream, &[(b":status", b"200"), ours[0], ours[1]], false)
            .await;
        to.frame(DATA, 0, stream, b"page").await;
        to.fields(stream, &[ours[0], ours[1], (b"x-end", b"1")], true).await;
        to
    }))
    .await;

    let response = ask(&gate, &origin).await.expect("a response");

    allowed(&response, "no-robots");
    assert_eq!(response.text(), "page");
    assert!(!response.headers.has("proxy-status"), "{response:#?}");
    assert_eq!(response.trailers.field("x-end"), Some("1"), "{response:#?}");
    assert!(
        response.trailers.0.iter().all(|(_, value)| !value.contains("forged")),
        "{response:#?}"
    );
}

#[tokio::test]
async fn a_robots_txt_over_broken_http_2_is_a_failure() {
    const SHORT: &str = "[robots]\nfetch-idle-timeout = \"500ms\"";
    for (name, script, why) in [
        (
            "away in the content",
            sends(&[
                (HEADERS, END_HEADERS, true, OK),
                (DATA, 0, true, b"User-agent: *\nDis"),
                (GO_AWAY, 0, false, &[0, 0, 0, 0, 0, 0, 0, 2]),
            ]),
            "the server's response ended early",
        ),
        (
            "reset",
            sends(&[(RST_STREAM, 0, true, &[0, 0, 0, 2])]),
            "the server closed or reset the connection",
        ),
        (
            "a huge head",
            script(|mut to, stream| async move {
                let long = vec![b'v'; 10_000];
                to.frame(HEADERS, 0, stream, OK).await;
                for _ in 0..27 {
                    // A literal field `x` of 10,000 bytes.
                    let field = [&[0, 1, b'x', 127, 0x91, 0x4d][..], &long].concat();
                    to.frame(CONTINUATION, 0, stream, &field).await;
                }
                to.frame(CONTINUATION, END_HEADERS, stream, &[]).await;
                to
            }),
            "the server's response is not valid HTTP, or its head has more bytes or fields than robotgate accepts",
        ),
        ("silence", sends(&[]), "the server was silent for too long"),
        (
            "silence in the content",
            sends(&[(HEADERS, END_HEADERS, true, OK), (DATA, 0, true, b"User-agent: *")]),
            "the server was silent for too long",
        ),
        (
            "a flood of interim responses",
            script(|mut to, stream| async move {
                for _ in 0..5_000 {
                    to.fields(stream, &[(b":status", b"103")], false).await;
                }
                to
            }),
            "the server's response is not valid HTTP, or its head has more bytes or fields than robotgate accepts",
        ),
    ] {
        println!("{name}");
        let gate = Gate::with(SHORT).await;
        let origin = Http2Origin::with(script, sends(&[])).await;
        let response = gate.get(&origin.url()).await;
        refused(&response, "unreachable");
        let decision = gate.decision_for(&origin.url()).await;
        assert_eq!(decision["robots_error"], why, "{name}: {decision:#}");
    }
}

#[tokio::test]
async fn a_robots_txt_request_rejected_unprocessed_is_repeated() {
    for (name, turned_away) in [
        ("refused", sends(&[(RST_STREAM, 0, true, &[0, 0, 0, 7])])),
        ("away", sends(&[(GO_AWAY, 0, false, &[0, 0, 0, 0, 0, 0, 0, 0])])),
        ("HTTP/1.1 is required", sends(&[(RST_STREAM, 0, true, &[0, 0, 0, 13])])),
    ] {
        println!("{name}");
        let gate = Gate::start().await;
        let origin = Http2Origin::with(turned_away, sends(LAST_NOT_FOUND)).await;
        // Wait only for the decision: the request for the page might use the connection on which the origin rejected
        // the request for the robots.txt, and get no response there.
        let request = tokio::spawn(gate.get(&origin.url()).into_future());
        let decision = gate.decision_for(&origin.url()).await;
        assert_eq!(decision["reason"], "no-robots", "{name}: {decision:#}");
        request.abort();
    }
}

#[tokio::test]
async fn an_http_2_response_without_content_keeps_the_http_1_connection() {
    let origin = Http2Origin::start(sends(&[(HEADERS, END_HEADERS | END_STREAM, true, OK)])).await;
    let gate = Gate::start().await;
    let mut proxy = Connection::to(gate.address()).await.unwrap();

    let response = proxy.get(&origin.url()).await;

    assert_eq!((response.status, response.field("Content-Length")), (200, Some("0")));
    let other = Origin::start().anything("page").spawn().await;
    assert_eq!(
        proxy.get(&other.url("/")).await.text(),
        "page",
        "on the same connection"
    );
}
