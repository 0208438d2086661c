//! The ways in which a request target can reach an origin, so that tests can try all of them.

use crate::support::{Alpn, Connection, Gate, NAME, Origin, Response};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// An `http://` URL as the request target.
    Absolute,
    /// An `https://` URL as the request target.
    AbsoluteHttps,
    /// Plain HTTP inside a CONNECT.
    PlainInside,
    /// HTTP/1.1 inside an intercepted CONNECT.
    Http1Inside,
    /// HTTP/2 inside an intercepted CONNECT.
    Http2Inside,
}

/// An origin with a robots.txt, and a way to reach it.
pub struct Site<'g> {
    pub origin: Origin,
    way: Way,
    gate: &'g Gate,
    inside: Option<Connection>,
}

// === impl Way ===

impl Way {
    pub const ALL: [Self; 5] = [
        Self::Absolute,
        Self::AbsoluteHttps,
        Self::PlainInside,
        Self::Http1Inside,
        Self::Http2Inside,
    ];

    fn is_absolute(self) -> bool {
        matches!(self, Self::Absolute | Self::AbsoluteHttps)
    }

    fn is_plain(self) -> bool {
        matches!(self, Self::Absolute | Self::PlainInside)
    }

    async fn inside(self, gate: &Gate, origin: &Origin) -> Option<Connection> {
        if self.is_absolute() {
            return None;
        }
        let tunnel = gate.connect(&origin.authority()).await.opened();
        Some(match self {
            Self::Http1Inside => tunnel.tls(NAME, Alpn::Http1).await,
            Self::Http2Inside => tunnel.tls(NAME, Alpn::Http2).await,
            _ => tunnel.plain(),
        })
    }
}

// === impl Site ===

impl<'g> Site<'g> {
    /// Starts an origin whose robots.txt has `rules` for everyone, from line 2 on. Every other path is a page.
    pub async fn reached_by(way: Way, gate: &'g Gate, rules: &str) -> Self {
        let origin = Origin::start()
            .robots(&format!("User-agent: *\n{rules}\n"))
            .anything("page");
        let origin = if way.is_plain() { origin } else { origin.tls() };
        let origin = origin.spawn().await;
        Self {
            inside: way.inside(gate, &origin).await,
            origin,
            way,
            gate,
        }
    }

    /// Connects again after a bad request has ended the connection.
    pub async fn again(&mut self) {
        self.inside = self.way.inside(self.gate, &self.origin).await;
    }

    /// Requests a path and query, spelled as `target`.
    pub async fn get(&mut self, target: &str) -> Response {
        println!("{:?} | {target}", self.way);
        match &mut self.inside {
            Some(inside) => inside.get(target).await,
            None => {
                // Set the Host field, because `Gate::get` might not find the end of the host before an unusual target.
                let host = self.origin.authority();
                self.gate.get(&self.origin.url(target)).set("Host", &host).await
            }
        }
    }

    /// Does the same as [`get`](Self::get), with octets that need not be UTF-8, over HTTP/1.1.
    pub async fn get_octets(&mut self, target: &[u8]) -> Response {
        println!("{:?} | {}", self.way, target.escape_ascii());
        let authority = self.origin.authority();
        let front = if self.inside.is_some() {
            String::new()
        } else {
            self.origin.url("")
        };
        let head = format!(" HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: TestBot/1.0\r\n\r\n");
        let request = [b"GET ", front.as_bytes(), target, head.as_bytes()].concat();
        let mut dialled;
        let connection = match &mut self.inside {
            Some(inside) => inside,
            None => {
                dialled = self.gate.dial().await;
                &mut dialled
            }
        };
        connection.send(request).await;
        connection.response_to("GET").await
    }

    /// Returns the last target that the origin received.
    pub fn last_target(&self) -> String {
        let requests = self.origin.requests();
        requests.last().expect("it was asked for its robots.txt").target.clone()
    }
}
