//! The origin's HTTP/2.

use bytes::Bytes;
use http::{Response, header};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{super::Outcome, Answers};

/// Serves a connection until its peer closes it.
pub async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, answers: &Answers) -> Outcome<()> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(accepted) = connection.accept().await {
        let (request, mut respond) = accepted?;
        let answer = answers.of(request.uri().path());
        let response = Response::builder()
            .header(header::SERVER, "origin")
            .header(header::CONTENT_TYPE, answer.kind)
            .header(header::CONTENT_LENGTH, answer.content.len())
            .body(())?;
        let content: Bytes = answer.content.clone();
        // h2 buffers what the peer's window does not allow yet.
        respond.send_response(response, false)?.send_data(content, true)?;
        let mut content = request.into_body();
        if !content.is_end_stream() {
            tokio::spawn(async move {
                while let Some(Ok(data)) = content.data().await {
                    drop(content.flow_control().release_capacity(data.len()));
                }
            });
        }
    }
    Ok(())
}
