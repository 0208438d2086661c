//! The load generator's HTTP/2.

use bytes::Bytes;
use h2::{Reason, client::SendRequest};
use http::Version;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    super::{AGENT, Outcome},
    Request,
    http1::Response,
};

#[derive(Clone)]
pub struct Http2(SendRequest<Bytes>);

impl Http2 {
    pub async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Outcome<Self> {
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .enable_push(false)
            .handshake(stream)
            .await?;
        // The task ends with the connection, whose errors also appear on the streams.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self(sender))
    }

    /// Sends a request without content and reads the whole response.
    pub async fn exchange(&self, request: &Request) -> Outcome<Response> {
        let request = http::Request::builder()
            .version(Version::HTTP_2)
            .method(request.method())
            .uri(format!("https://{}{}", request.origin(), request.path))
            .header("user-agent", format!("{AGENT}/1.0 (+https://bench.example/bot)"))
            .header("accept", "*/*")
            .header("accept-encoding", "gzip, deflate")
            .body(())?;
        let Ok(mut ready) = self.0.clone().ready().await else {
            return Ok(Response::Closed);
        };
        let (head, mut content) = match ready.send_request(request, true)?.0.await {
            Ok(response) => response.into_parts(),
            // The peer ended the connection in an orderly way while the request was being sent.
            Err(error) if error.is_go_away() && error.reason() == Some(Reason::NO_ERROR) => {
                return Ok(Response::Closed);
            }
            Err(error) => return Err(error.into()),
        };
        while let Some(data) = content.data().await {
            content.flow_control().release_capacity(data?.len())?;
        }
        Ok(Response::Complete {
            status: head.status.as_u16(),
            kept: true,
        })
    }
}

const WINDOW: u32 = 4 * 1024 * 1024;
