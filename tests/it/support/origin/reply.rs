//! What a test site replies: a correct message, a list of steps, or both.

use std::{io::Write, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::super::latch::Latch;

#[derive(Clone)]
pub enum Step {
    Send(Bytes),
    /// Sends nothing and does not close the connection, until the test is over.
    Stall,
    Close,
    /// Resets the connection (RST). Over HTTP/2, resets only the stream of this request.
    Reset,
    /// Breaks the connection. Over HTTP/2, all requests on the connection fail.
    Break,
    Drip {
        bytes: Bytes,
        every: Duration,
    },
    /// Sends the same bytes again and again, until the peer accepts no more.
    Endless(Bytes),
    Wait(Latch),
    /// Sends back everything that it receives until the peer closes the connection. Use this step after a
    /// protocol upgrade.
    Echo,
}

/// A message and then a list of steps; either can be missing. The connection stays open afterwards, unless a step ends
/// it.
#[derive(Clone, Default)]
pub struct Reply {
    pub(super) before: Vec<Step>,
    pub(super) message: Option<Message>,
    pub(super) script: Vec<Step>,
}

#[derive(Clone)]
pub(super) struct Message {
    pub(super) status: u16,
    reason: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) framed: bool,
}

// === impl Step ===

impl Step {
    pub fn send(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Send(Bytes::from(bytes.into()))
    }
}

// === impl Reply ===

impl Reply {
    /// Creates a reply with status 200 and a body.
    pub fn ok(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("Content-Type", content_type).body(body)
    }

    /// Creates a reply with this status and an empty body.
    pub fn status(status: u16) -> Self {
        let framed = status != 204 && status != 304;
        let message = Message {
            status,
            reason: "Whatever".into(),
            headers: Vec::new(),
            body: Bytes::new(),
            framed,
        };
        Self {
            message: Some(message),
            ..Self::default()
        }
    }

    /// Creates a reply with status 302 that redirects to a URL.
    pub fn redirect(url: &str) -> Self {
        Self::status(302).header("Location", url)
    }

    /// Creates a reply with status 200 and a body in `Content-Encoding: gzip`.
    pub fn gzip(body: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).expect("memory takes it");
        let packed = encoder.finish().expect("memory takes it");
        Self::ok("text/plain", packed).header("Content-Encoding", "gzip")
    }

    /// Creates a reply with status 200 and chunked content, one chunk for each piece.
    pub fn chunked<const N: usize>(pieces: [&str; N]) -> Self {
        let mut text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        for piece in pieces {
            text += &format!("{:x}\r\n{piece}\r\n", piece.len());
        }
        Self::script([Step::send(text + "0\r\n\r\n")])
    }

    /// Creates a reply that consists only of these steps.
    pub fn script(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            script: steps.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a reply that sends only these bytes, and then closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::script([Step::send(bytes), Step::Close])
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.message_mut().headers.push((name.into(), value.into()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.message_mut().body = Bytes::from(body.into());
        self
    }

    /// Leaves out the Content-Length and the body of the message. The content is what the steps send until they close
    /// the connection, or over HTTP/2 the stream.
    pub fn without_message_body(mut self) -> Self {
        self.message_mut().framed = false;
        self
    }

    /// Delays the whole reply until the latch opens.
    pub fn after(mut self, latch: &Latch) -> Self {
        self.before.push(Step::Wait(latch.clone()));
        self
    }

    /// Appends a step.
    pub fn then(mut self, step: Step) -> Self {
        self.script.push(step);
        self
    }

    pub(super) fn steps(self, method: &str) -> Vec<Step> {
        let message = self.message.map(|message| message.bytes(method));
        self.before
            .into_iter()
            .chain(message.map(Step::send))
            .chain(self.script)
            .collect()
    }

    fn message_mut(&mut self) -> &mut Message {
        self.message
            .as_mut()
            .expect("a script has no fields; write them into its bytes")
    }
}

// === impl Message ===

impl Message {
    fn bytes(self, method: &str) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        if self.framed {
            bytes.extend(format!("Content-Length: {}\r\n", self.body.len()).into_bytes());
        }
        bytes.extend(b"\r\n");
        if method != "HEAD" && self.framed {
            bytes.extend(&self.body);
        }
        bytes
    }
}
