//! Serves the HTTP/2 connections of a test site. A reply is the same as over HTTP/1.1: a message, and then steps. The
//! bytes of the steps are sent as content.

use std::{future::poll_fn, io, sync::Arc};

use bytes::Bytes;
use h2::{Reason, SendStream, server::SendResponse};
use tokio::sync::Notify;

use super::{Reply, Request, Site, Step};
use crate::support::{
    io::Io,
    wire::{End, Fields},
};

pub(super) async fn serve(
    io: impl Io + 'static,
    site: Arc<Site>,
    number: usize,
    sni: Option<String>,
) -> io::Result<()> {
    let mut connection = h2::server::handshake(io).await.map_err(io::Error::other)?;
    let mut streams = tokio::task::JoinSet::new();
    let broken = Arc::new(Notify::new());
    loop {
        let stream = tokio::select! {
            stream = connection.accept() => stream,
            () = broken.notified() => None,
        };
        let Some(stream) = stream else { return Ok(()) };
        let (request, respond) = stream.map_err(io::Error::other)?;
        let (site, sni, broken) = (site.clone(), sni.clone(), broken.clone());
        streams.spawn(async move {
            let request = Request {
                connection: number,
                sni,
                ..read(request).await
            };
            site.requests.lock().push(request.clone());
            let answered = answer(site.answer(&request), &request.method, respond, &broken).await;
            answered.inspect_err(|_| site.count_cut())
        });
    }
}

/// Converts a request to the form of HTTP/1.1: its `:authority` becomes the Host field.
async fn read(request: http::Request<h2::RecvStream>) -> Request {
    let (head, mut content) = request.into_parts();
    let authority = head.uri.authority().map(|authority| authority.to_string());
    let host = authority.map(|authority| ("Host".to_owned(), authority));
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut body = Vec::new();
    let mut end = if content.is_end_stream() {
        End::Nothing
    } else {
        End::Length
    };
    while let Some(part) = content.data().await {
        let Ok(part) = part else {
            end = End::Cut;
            break;
        };
        body.extend_from_slice(&part);
        // This fails if the stream has ended, which does not matter.
        drop(content.flow_control().release_capacity(part.len()));
    }
    Request {
        method: head.method.to_string(),
        target: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        version: "HTTP/2".to_owned(),
        received: std::time::Instant::now(),
        headers: Fields(host.into_iter().chain(head.headers.iter().map(field)).collect()),
        body,
        end,
        connection: 0,
        sni: None,
    }
}

async fn answer(reply: Reply, method: &str, mut respond: SendResponse<Bytes>, broken: &Notify) -> io::Result<()> {
    for step in reply.before {
        if let Step::Wait(latch) = step {
            latch.opened().await;
        }
    }
    let mut response = http::Response::builder();
    let mut body = Bytes::new();
    if let Some(message) = reply.message {
        response = response.status(message.status);
        for (name, value) in &message.headers {
            response = response.header(name, value);
        }
        if message.framed {
            response = response.header("content-length", message.body.len());
        }
        if message.framed && method != "HEAD" {
            body = message.body;
        }
    }
    let response = response.body(()).expect("a head");
    let is_complete = body.is_empty() && reply.script.is_empty();
    let sending = respond.send_response(response, is_complete);
    let mut sending = sending.map_err(io::Error::other)?;
    if is_complete {
        return Ok(());
    }
    send(&mut sending, body, reply.script.is_empty()).await?;
    for step in reply.script {
        match step {
            Step::Send(bytes) => send(&mut sending, bytes, false).await?,
            Step::Stall => std::future::pending().await,
            Step::Close => break,
            Step::Reset => {
                sending.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            Step::Break => {
                broken.notify_one();
                std::future::pending().await
            }
            Step::Drip { bytes, every } => {
                let mut ticks = tokio::time::interval(every);
                for byte in bytes {
                    ticks.tick().await;
                    send(&mut sending, Bytes::copy_from_slice(&[byte]), false).await?;
                }
            }
            Step::Endless(bytes) => loop {
                send(&mut sending, bytes.clone(), false).await?;
            },
            Step::Wait(latch) => latch.opened().await,
            Step::Echo => panic!("nothing is upgraded over HTTP/2"),
        }
    }
    // This fails if the message has already ended the stream, which does not matter.
    drop(sending.send_data(Bytes::new(), true));
    Ok(())
}

/// Sends all of `bytes`, and waits whenever the peer's flow control allows no more.
async fn send(to: &mut SendStream<Bytes>, mut bytes: Bytes, last: bool) -> io::Result<()> {
    while !bytes.is_empty() {
        to.reserve_capacity(bytes.len());
        let room = match poll_fn(|cx| to.poll_capacity(cx)).await {
            Some(room) => room.map_err(io::Error::other)?,
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        let part = bytes.split_to(room.min(bytes.len()));
        to.send_data(part, last && bytes.is_empty()).map_err(io::Error::other)?;
    }
    Ok(())
}
