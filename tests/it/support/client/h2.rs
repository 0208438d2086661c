//! A client's HTTP/2 connection.

use std::io;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, Version};

use super::Response;
use crate::support::{
    io::Io,
    wait::within,
    wire::{End, Fields},
};

pub struct Http2 {
    sender: SendRequest<Bytes>,
    authority: String,
}

/// A request that waits for its response.
pub struct Stream(ResponseFuture);

// === impl Http2 ===

impl Http2 {
    pub async fn over(io: impl Io + 'static, authority: &str) -> Self {
        let handshake = within("the start of HTTP/2", h2::client::handshake(io)).await;
        let (sender, connection) = handshake.expect("HTTP/2 starts");
        // The task ends with the connection. Its errors can be ignored, because the streams report them too.
        tokio::spawn(async move { drop(connection.await) });
        Self {
            sender,
            authority: authority.to_owned(),
        }
    }

    /// Sends a POST with a part of its content, and returns the response. The content is never ended.
    pub async fn send_in_part(
        &mut self,
        path: &str,
        headers: &[(String, String)],
        part: &[u8],
    ) -> io::Result<Response> {
        let uri = format!("https://{}{path}", self.authority);
        let mut request = Request::builder().version(Version::HTTP_2).method("POST").uri(uri);
        for (name, value) in headers {
            request = request.header(name.to_ascii_lowercase(), value);
        }
        let request = request.body(()).map_err(io::Error::other)?;
        let mut ready = self.sender.clone().ready().await.map_err(io::Error::other)?;
        let (response, mut sending) = ready.send_request(request, false).map_err(io::Error::other)?;
        sending
            .send_data(Bytes::copy_from_slice(part), false)
            .map_err(io::Error::other)?;
        let response = Stream(response).finish().await;
        // Dropping the sender cancels the request, so this comes after the response.
        drop(sending);
        response
    }

    /// Sends a request. Its Host field is sent as `:authority`.
    pub async fn start(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> io::Result<Stream> {
        let named = headers.iter().find(|(name, _)| name == "Host").map(|(_, host)| host);
        let uri = format!("https://{}{path}", named.unwrap_or(&self.authority));
        let mut request = Request::builder().version(Version::HTTP_2).method(method).uri(uri);
        for (name, value) in headers.iter().filter(|(name, _)| name != "Host") {
            request = request.header(name.to_ascii_lowercase(), value);
        }
        let request = request.body(()).map_err(io::Error::other)?;
        let mut ready = self.sender.clone().ready().await.map_err(io::Error::other)?;
        let (response, mut sending) = ready.send_request(request, body.is_empty()).map_err(io::Error::other)?;
        if !body.is_empty() {
            sending
                .send_data(Bytes::copy_from_slice(body), true)
                .map_err(io::Error::other)?;
        }
        Ok(Stream(response))
    }
}

// === impl Stream ===

impl Stream {
    pub async fn finish(self) -> io::Result<Response> {
        let (head, mut receiving) = self.0.await.map_err(io::Error::other)?.into_parts();
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut body = Vec::new();
        let mut end = End::Length;
        while let Some(data) = receiving.data().await {
            let Ok(data) = data else {
                end = End::Cut;
                break;
            };
            receiving
                .flow_control()
                .release_capacity(data.len())
                .map_err(io::Error::other)?;
            body.extend(data);
        }
        let trailers = receiving.trailers().await.ok().flatten().unwrap_or_default();
        Ok(Response {
            version: "HTTP/2".into(),
            status: head.status.as_u16(),
            reason: String::new(),
            headers: Fields(head.headers.iter().map(field).collect()),
            body,
            trailers: Fields(trailers.iter().map(field).collect()),
            end,
            stays_open: end != End::Cut,
        })
    }
}
