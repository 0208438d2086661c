mod again;
mod flow;
mod hostile;
mod life;

use std::{future::poll_fn, task::Poll};

use h2::server::SendResponse;
use http::{Request, Response, StatusCode};
use pingora_http::ResponseHeader;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::mpsc,
};

use super::*;

const IDLE: Duration = Duration::from_secs(60);

type Received = (Request<h2::RecvStream>, SendResponse<Bytes>);

struct Origin {
    requests: mpsc::UnboundedReceiver<Received>,
}

/// An origin whose frames the test encodes itself.
struct Raw(DuplexStream);

// === impl Origin ===

impl Origin {
    async fn start(bounds: Bounds, configure: impl FnOnce(&mut h2::server::Builder)) -> (SharedConnection, Self) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let mut builder = h2::server::Builder::new();
        configure(&mut builder);
        let (shared, server) = tokio::join!(SharedConnection::open(ours, &bounds, IDLE), builder.handshake(theirs));
        let mut server = server.expect("a handshake");
        let (give, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(request)) = server.accept().await {
                give.send(request).ok();
            }
        });
        (shared.expect("a connection"), Self { requests })
    }

    async fn next_request(&mut self) -> Received {
        within(self.requests.recv()).await.expect("a request")
    }
}

// === impl Raw ===

impl Raw {
    async fn start(bounds: Bounds) -> (SharedConnection, Self) {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let shared = SharedConnection::open(ours, &bounds, IDLE).await.expect("a connection");
        let mut raw = Self(theirs);
        let mut preface = [0; 24];
        raw.0.read_exact(&mut preface).await.expect("a preface");
        raw.send(SETTINGS, 0, 0, b"").await;
        (shared, raw)
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a length");
        let head = [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.0.write_all(&head).await.expect("room");
        self.0.write_all(payload).await.expect("room");
    }

    async fn wait_for_requests(&mut self, count: usize) {
        for _ in 0..count {
            self.next(&[HEADERS]).await.expect("a request");
        }
    }

    async fn next(&mut self, kinds: &[u8]) -> Option<(u8, Vec<u8>)> {
        loop {
            let mut head = [0; 9];
            within(self.0.read_exact(&mut head)).await.ok()?;
            let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
            within(self.0.read_exact(&mut payload)).await.ok()?;
            if kinds.contains(&head[3]) {
                return Some((head[3], payload));
            }
        }
    }
}

fn get(path: &str) -> Request<()> {
    let uri = format!("https://a.example{path}");
    let request = Request::builder().version(http::Version::HTTP_2).uri(uri);
    request.body(()).expect("a request")
}

/// Fails the test if `work` takes a day. This takes no real time: tokio's paused clock jumps when no task can run.
async fn within<T>(work: impl Future<Output = T>) -> T {
    let day = Duration::from_secs(24 * 60 * 60);
    tokio::time::timeout(day, work).await.expect("it hangs")
}

async fn head(stream: &mut Stream) -> Result<ResponseHeader, StreamError> {
    within(poll_fn(|cx| stream.poll_head(cx))).await
}

async fn content(stream: &mut Stream) -> Result<Vec<u8>, StreamError> {
    let mut all = Vec::new();
    while let Some(part) = within(poll_fn(|cx| stream.poll_content(cx))).await? {
        all.extend_from_slice(&part);
    }
    Ok(all)
}

async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never is so");
}

async fn send_all(sender: &mut h2::SendStream<Bytes>, mut content: Bytes, mut sent: impl FnMut(usize)) {
    while !content.is_empty() {
        sender.reserve_capacity(content.len());
        let room = poll_fn(|cx| sender.poll_capacity(cx)).await;
        let Some(Ok(room)) = room else { return };
        sent(room);
        sender
            .send_data(content.split_to(room), content.is_empty())
            .expect("it is open");
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` in HPACK's static table.
const OK: u8 = 0x88;
