//! Builds a request that a test sends. To send it, await it.

use std::{io, net::SocketAddr, pin::Pin};

use super::{Connection, Response};
use crate::support::wait::within;

/// A request and the connection that it uses.
pub struct Ask<'a> {
    route: Route<'a>,
    pub(super) message: Message,
}

/// The parts of a request. Every part can be set; the defaults are those of a well-behaved bot.
pub struct Message {
    pub method: String,
    pub target: String,
    version: &'static str,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

enum Route<'a> {
    /// A new connection to this address.
    Fresh(SocketAddr),
    Kept(&'a mut Connection),
}

impl Ask<'static> {
    /// Creates a request that opens a new connection to `to`.
    pub fn fresh(to: SocketAddr, method: &str, target: &str) -> Self {
        Self::new(Route::Fresh(to), method, target, host_of(target))
    }
}

impl<'a> Ask<'a> {
    /// Creates a request on an open connection. If the target contains no host, the Host field is that of the
    /// connection.
    pub fn kept(connection: &'a mut Connection, method: &str, target: &str) -> Self {
        let host = if target.starts_with('/') {
            connection.host().to_owned()
        } else {
            host_of(target).to_owned()
        };
        Self::new(Route::Kept(connection), method, target, &host)
    }

    fn new(route: Route<'a>, method: &str, target: &str, host: &str) -> Self {
        let message = Message {
            method: method.into(),
            target: target.into(),
            version: "HTTP/1.1",
            headers: vec![("Host".into(), host.into()), ("User-Agent".into(), USER_AGENT.into())],
            body: Vec::new(),
        };
        Self { route, message }
    }

    /// Adds a header field, even if the request already has one of that name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.message.headers.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.message.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    /// Sets a header field to this value, and removes all other values that it has.
    pub fn set(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    pub fn user_agent(self, value: &str) -> Self {
        self.set("User-Agent", value)
    }

    /// Sets a body with a Content-Length.
    pub fn body(mut self, body: &[u8]) -> Self {
        self.message.body = body.to_vec();
        self.header("Content-Length", &body.len().to_string())
    }

    /// Sets a chunked body, one chunk for each piece.
    pub fn chunks(mut self, pieces: &[&str]) -> Self {
        for piece in pieces {
            self.message
                .body
                .extend(format!("{:x}\r\n{piece}\r\n", piece.len()).into_bytes());
        }
        self.message.body.extend(b"0\r\n\r\n");
        self.header("Transfer-Encoding", "chunked")
    }

    pub fn http_1_0(mut self) -> Self {
        self.message.version = "HTTP/1.0";
        self
    }

    /// Sends the request and reads the response.
    ///
    /// # Errors
    /// Fails if the connection fails before the response. In this case, a test that awaits the request without `send`
    /// panics.
    pub async fn send(self) -> io::Result<Response> {
        let what = format!("the response to {} {}", self.message.method, self.message.target);
        let exchange = async {
            match self.route {
                Route::Fresh(to) => Connection::to(to).await?.exchange(&self.message).await,
                Route::Kept(connection) => connection.exchange(&self.message).await,
            }
        };
        within(&what, exchange).await
    }
}

// === impl Message ===

impl Message {
    /// Serializes the request as HTTP/1.1.
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} {}\r\n", self.method, self.target, self.version);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let mut bytes = (text + "\r\n").into_bytes();
        bytes.extend(&self.body);
        bytes
    }
}

impl<'a> IntoFuture for Ask<'a> {
    type Output = Response;
    type IntoFuture = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let what = format!("{} {}", self.message.method, self.message.target);
            self.send().await.unwrap_or_else(|error| panic!("{what}: {error}"))
        })
    }
}

/// Returns the host and port of a URL or of the target of a CONNECT. Returns an empty text for a path.
fn host_of(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

pub const USER_AGENT: &str = "TestBot/1.0";
