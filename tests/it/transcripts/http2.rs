//! Converts between HTTP/1.1, in which scripts are written, and HTTP/2 on the connection. If a script ends early, the
//! stream is reset.

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::{HeaderMap, Request, Response};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf},
    sync::mpsc,
};

use super::peer::Peer;
use crate::{
    exchanges::strict::{self, End, Framing, Message, Read},
    support::{BoxIo, Io},
};

/// Returns a connection on which a script writes requests and reads responses in HTTP/1.1. Each request becomes a
/// stream on `io`.
pub fn client(io: BoxIo, authority: String) -> BoxIo {
    let (near, far) = tokio::io::duplex(ROOM);
    tokio::spawn(async move {
        let (mut sender, connection) = h2::client::handshake(io).await.expect("HTTP/2 starts");
        tokio::spawn(async move { drop(connection.await) });
        let (mut script, mut out) = tokio::io::split(far);
        let mut buffer = Vec::new();
        for number in 0.. {
            let read = |bytes: &[u8]| strict::requests(bytes).messages.into_iter().nth(number);
            let Some(head) = fill(&mut script, &mut buffer, read).await else {
                return;
            };
            let (method, path, _) = head.request_line().expect("a request line");
            let mut request = Request::builder()
                .method(method)
                .uri(format!("https://{authority}{path}"));
            for (name, value) in head.fields.iter().filter(|(name, _)| !is_for_http1(name)) {
                request = request.header(name.to_ascii_lowercase(), value);
            }
            let ends = matches!(head.framing, Framing::Nothing | Framing::Length(0));
            let request = request.body(()).expect("a request");
            let mut ready = sender.clone().ready().await.expect("a connection that is open");
            let (response, sending) = ready.send_request(request, ends).expect("a stream");
            sender = ready;
            let method = method.to_owned();
            let answering = async {
                // If the stream is reset, the script receives nothing more.
                let (head, content) = response.await.ok()?.into_parts();
                let start = format!("HTTP/1.1 {}", head.status.as_str());
                let has_content = method != "HEAD" && !matches!(head.status.as_u16(), 204 | 304);
                write(&mut out, &start, &head.headers, content, has_content).await
            };
            let content = async {
                let read = |bytes: &[u8]| strict::requests(bytes).messages.into_iter().nth(number);
                relay(&mut script, &mut buffer, sending, read).await;
                std::future::pending::<()>().await;
            };
            let answered = tokio::select! {
                answered = answering => answered,
                () = content => None,
            };
            if answered.is_none() {
                return;
            }
        }
    });
    Box::new(near)
}

/// Makes each stream on `io` look like a separate connection, and sends it to `peers`.
pub async fn origin(io: impl Io + 'static, peers: mpsc::UnboundedSender<Peer>) {
    let Ok(mut connection) = h2::server::handshake(io).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (near, far) = tokio::io::duplex(ROOM);
        // This fails after the end of the case, which does not matter.
        let _ = peers.send(Peer::over(Box::new(near)));
        tokio::spawn(stream(request, respond, far));
    }
}

async fn stream(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, script: DuplexStream) {
    let (mut script, mut out) = tokio::io::split(script);
    let (head, content) = request.into_parts();
    let method = head.method.to_string();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let authority = head.uri.authority().map_or("", |authority| authority.as_str());
    let start = format!("{method} {path} HTTP/1.1\r\n:authority-: {authority}").replace(":authority-", "Authority");
    let has_content = !content.is_end_stream();
    tokio::spawn(async move { write(&mut out, &start, &head.headers, content, has_content).await });

    let mut buffer = Vec::new();
    let methods = [method];
    let read = |bytes: &[u8]| final_response(strict::responses(bytes, &methods, false));
    let Some(head) = fill(&mut script, &mut buffer, read).await else {
        return respond.send_reset(Reason::INTERNAL_ERROR);
    };
    let mut response = Response::builder().status(head.status().expect("a status"));
    for (name, value) in head.fields.iter().filter(|(name, _)| !is_for_http1(name)) {
        response = response.header(name.to_ascii_lowercase(), value);
    }
    let ends = matches!(head.framing, Framing::Nothing | Framing::Length(0));
    let Ok(sending) = respond.send_response(response.body(()).expect("a response"), ends) else {
        return;
    };
    if !ends {
        relay(&mut script, &mut buffer, sending, read).await;
    }
}

fn final_response(read: Read) -> Option<Message> {
    read.messages.into_iter().find(Message::is_final)
}

async fn fill(
    script: &mut ReadHalf<DuplexStream>,
    buffer: &mut Vec<u8>,
    read: impl Fn(&[u8]) -> Option<Message>,
) -> Option<Message> {
    loop {
        if let Some(message) = read(buffer) {
            return Some(message);
        }
        if script.read_buf(buffer).await.unwrap_or(0) == 0 {
            return None;
        }
    }
}

async fn relay(
    script: &mut ReadHalf<DuplexStream>,
    buffer: &mut Vec<u8>,
    mut sending: SendStream<Bytes>,
    read: impl Fn(&[u8]) -> Option<Message>,
) {
    let mut sent = 0;
    loop {
        let message = read(buffer).expect("it has begun");
        if matches!(message.framing, Framing::Nothing | Framing::Length(0)) {
            break;
        }
        let data = Bytes::copy_from_slice(&message.content[sent..]);
        sent = message.content.len();
        let is_complete = message.end == End::Complete;
        // Sending fails if the peer has reset the stream, which does not matter.
        if is_complete && !message.trailers.is_empty() {
            let _ = sending.send_data(data, false);
            let _ = sending.send_trailers(trailers(&message));
            break;
        }
        if is_complete || !data.is_empty() {
            let _ = sending.send_data(data, is_complete);
        }
        if is_complete {
            break;
        }
        if script.read_buf(buffer).await.unwrap_or(0) == 0 {
            match message.framing {
                Framing::UntilClose => drop(sending.send_data(Bytes::new(), true)),
                _ => sending.send_reset(Reason::CANCEL),
            }
            return;
        }
    }
    // Keep the stream of a request open while the script runs, and reset it when the script ends.
    if read(buffer).is_some_and(|message| message.request_line().is_some()) {
        while script.read_buf(buffer).await.unwrap_or(0) > 0 {}
        sending.send_reset(Reason::CANCEL);
    }
}

fn trailers(message: &Message) -> HeaderMap {
    let fields = message.trailers.iter().filter_map(|line| line.split_once(": "));
    let field = |(name, value): (&str, &str)| (name.parse().expect("a name"), value.parse().expect("a value"));
    fields.map(field).collect()
}

/// Writes a message as it arrives. Returns `None` if the stream was reset or the script has ended.
async fn write(
    out: &mut WriteHalf<DuplexStream>,
    start: &str,
    headers: &HeaderMap,
    mut content: RecvStream,
    has_content: bool,
) -> Option<()> {
    let mut text = format!("{start}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    let in_chunks = has_content && !headers.contains_key("content-length");
    if in_chunks {
        text += "transfer-encoding: chunked\r\n";
    }
    out.write_all((text + "\r\n").as_bytes()).await.ok()?;
    while let Some(data) = content.data().await {
        let data = data.ok()?;
        let _ = content.flow_control().release_capacity(data.len());
        if in_chunks && !data.is_empty() {
            out.write_all(format!("{:x}\r\n", data.len()).as_bytes()).await.ok()?;
        }
        out.write_all(&data).await.ok()?;
        if in_chunks && !data.is_empty() {
            out.write_all(b"\r\n").await.ok()?;
        }
    }
    let trailers = content.trailers().await.ok()?.unwrap_or_default();
    if in_chunks {
        let mut text = "0\r\n".to_owned();
        for (name, value) in &trailers {
            text += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
        }
        out.write_all((text + "\r\n").as_bytes()).await.ok()?;
    }
    Some(())
}

/// Returns whether this field is only for HTTP/1.1, because HTTP/2 expresses it in another way.
fn is_for_http1(name: &str) -> bool {
    ["host", "connection", "transfer-encoding", "keep-alive"]
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other))
}

const ROOM: usize = 64 * 1024;
