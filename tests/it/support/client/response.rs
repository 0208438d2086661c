//! A response, as a client sees it.

use std::io;

use serde_json::Value;

use crate::support::{
    Field,
    wire::{End, Fields, Wire},
};

#[derive(Debug)]
pub struct Response {
    /// `HTTP/1.1` or `HTTP/2`.
    pub version: String,
    pub status: u16,
    /// The reason phrase. HTTP/2 has none, so it is empty there.
    pub reason: String,
    pub headers: Fields,
    pub body: Vec<u8>,
    /// The trailer fields. They are read only in HTTP/2.
    pub trailers: Fields,
    pub end: End,
    /// Whether the connection can be used for another request.
    pub stays_open: bool,
}

impl Response {
    /// Reads the response to a request with this method. Skips interim responses, such as 100.
    pub async fn read(wire: &mut Wire, method: &str) -> io::Result<Self> {
        let (version, status, reason, headers) = loop {
            let Some((line, headers)) = wire.head().await? else {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "closed without a response",
                ));
            };
            let (version, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let status: u16 = status
                .parse()
                .map_err(|_| io::Error::other(format!("no status line: {line:?}")))?;
            if !(100..200).contains(&status) || status == 101 {
                break (version.to_owned(), status, reason.to_owned(), headers);
            }
        };
        let mut body = Vec::new();
        let opened = method == "CONNECT" && (200..300).contains(&status);
        let end = if method == "HEAD" || matches!(status, 101 | 204 | 304) || opened {
            End::Nothing
        } else if headers.lists("Transfer-Encoding", "chunked") {
            wire.chunked(&mut body).await
        } else if let Some(length) = headers.field("Content-Length") {
            let length = length.parse().map_err(io::Error::other)?;
            wire.counted(length, &mut body).await
        } else {
            wire.until_closed(&mut body).await
        };
        let stays_open = version == "HTTP/1.1"
            && !headers.lists("Connection", "close")
            && matches!(end, End::Nothing | End::Length | End::Chunked);
        Ok(Self {
            version,
            status,
            reason,
            headers,
            body,
            trailers: Fields::default(),
            end,
            stays_open,
        })
    }

    /// Returns the status line, such as `HTTP/1.1 403 Disallowed by robots.txt`.
    pub fn status_line(&self) -> String {
        format!("{} {} {}", self.version, self.status, self.reason)
    }

    /// Returns the first value of the header field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.headers.field(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the body as JSON.
    ///
    /// # Panics
    /// If the body is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:#?}"))
    }

    /// Returns the `Robots-Decision` field.
    ///
    /// # Panics
    /// If the response does not have exactly one such field, or it is not a structured item.
    #[track_caller]
    pub fn decision(&self) -> Field {
        assert_eq!(
            self.headers.all("Robots-Decision").count(),
            1,
            "one Robots-Decision: {self:#?}"
        );
        Field::item(self.field("Robots-Decision").expect("counted above"))
    }

    /// Returns the last member of the `Proxy-Status` field.
    ///
    /// # Panics
    /// If the response has no such field, or it is not a structured list.
    #[track_caller]
    pub fn proxy_status(&self) -> Field {
        match self.field("Proxy-Status") {
            Some(value) => Field::last_of(value),
            None => panic!("no Proxy-Status: {self:#?}"),
        }
    }
}
