//! A web site for tests (an origin), plain or with TLS. It can send any bytes, and records the requests that it gets.

mod http2;
mod reply;
mod request;
mod serve;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::{net::TcpSocket, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use self::{
    reply::{Reply, Step},
    request::Request,
};
use super::tls::Certificate;

/// The host name of the site, for tests in which the name does not matter.
pub const NAME: &str = "shop.example";
/// A robots.txt that disallows `/private`, for tests in which the rules do not matter.
pub const ROBOTS: &str = "User-agent: *\nDisallow: /private\n";

pub struct Origin {
    address: SocketAddr,
    scheme: &'static str,
    site: Arc<Site>,
    accepting: JoinHandle<()>,
    closing: CancellationToken,
    /// Keeps the port after the site was shut down, so that no other test gets it.
    reserved: Option<TcpSocket>,
}

/// Sets up a site. [`spawn`](Self::spawn) starts it.
#[derive(Default)]
pub struct Builder {
    pages: HashMap<String, Handler>,
    fallback: Option<Handler>,
    certificate: Option<Certificate>,
    alpn: Option<Vec<Vec<u8>>>,
    retrying: bool,
}

type Handler = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The state that all connections to a site share.
#[derive(Default)]
struct Site {
    pages: Mutex<HashMap<String, Handler>>,
    fallback: Option<Handler>,
    tls: Mutex<Option<Arc<ServerConfig>>>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    /// Number of replies that the client did not read to the end.
    cut: AtomicUsize,
}

// === impl Builder ===

impl Builder {
    /// Sets the text of the robots.txt.
    pub fn robots(self, text: &str) -> Self {
        self.page("/robots.txt", text)
    }

    /// Adds a page of plain text.
    pub fn page(self, path: &str, body: &str) -> Self {
        self.reply(path, Reply::ok("text/plain", body.to_owned()))
    }

    /// Sets a fixed reply for a path.
    pub fn reply(self, path: &str, reply: Reply) -> Self {
        self.on(path, move |_| reply.clone())
    }

    /// Sets a handler for requests for a path.
    pub fn on(mut self, path: &str, handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        self.pages.insert(path.to_owned(), Arc::new(handler));
        self
    }

    /// Sets a handler for all other paths. Without one, they get a 404.
    pub fn otherwise(mut self, handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        self.fallback = Some(Arc::new(handler));
        self
    }

    /// Responds with `body` to requests for all other paths, except `/robots.txt`, which gets a 404.
    pub fn anything(self, body: &str) -> Self {
        let page = Reply::ok("text/plain", body.to_owned());
        self.otherwise(move |request| match request.path() {
            "/robots.txt" => Reply::status(404),
            _ => page.clone(),
        })
    }

    /// Uses TLS with a valid certificate for [`NAME`], `other.example` and 127.0.0.1.
    pub fn tls(self) -> Self {
        self.certificate(Certificate::of(&[NAME, "other.example", "127.0.0.1"]))
    }

    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Uses TLS with the first of these protocols that the client offers, such as `h2` for HTTP/2. A site on which this
    /// is not called speaks HTTP/1.1.
    pub fn alpn(mut self, protocols: &[&str]) -> Self {
        self.alpn = Some(protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect());
        self.tls()
    }

    /// Uses TLS, and answers the first ClientHello of most clients with a HelloRetryRequest.
    pub fn retrying(mut self) -> Self {
        self.retrying = true;
        self.tls()
    }

    pub async fn spawn(self) -> Origin {
        let listener = bind(([127, 0, 0, 1], 0).into()).listen(1024).expect("a listener");
        let address = listener.local_addr().expect("a bound socket has an address");
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let site = Arc::new(Site {
            pages: Mutex::new(self.pages),
            fallback: self.fallback,
            tls: Mutex::new(self.certificate.map(|certificate| {
                let config = if self.retrying {
                    certificate.retrying_server_config()
                } else {
                    certificate.server_config()
                };
                let mut config = (*config).clone();
                config.alpn_protocols = self.alpn.unwrap_or(config.alpn_protocols);
                Arc::new(config)
            })),
            ..Site::default()
        });
        let closing = CancellationToken::new();
        let accepting = tokio::spawn(serve::accept(listener, site.clone(), closing.clone()));
        Origin {
            address,
            scheme,
            site,
            accepting,
            closing,
            reserved: None,
        }
    }
}

// === impl Origin ===

impl Origin {
    /// Begins to set up a site, which has no pages yet.
    pub fn start() -> Builder {
        Builder::default()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns `shop.example:PORT`, the target of a CONNECT.
    pub fn authority(&self) -> String {
        format!("{NAME}:{}", self.port())
    }

    /// Returns the URL of a path under [`NAME`].
    pub fn url(&self, path: &str) -> String {
        self.url_at(NAME, path)
    }

    /// Returns the URL of a path under another name.
    pub fn url_at(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme, self.port())
    }

    /// Replaces the reply for a path.
    pub fn change(&self, path: &str, reply: Reply) {
        self.site
            .pages
            .lock()
            .insert(path.to_owned(), Arc::new(move |_| reply.clone()));
    }

    /// Changes the certificate that new connections get.
    pub fn present(&self, certificate: &Certificate) {
        *self.site.tls.lock() = Some(certificate.server_config());
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.site.requests.lock().clone()
    }

    pub fn requests_for(&self, path: &str) -> Vec<Request> {
        self.requests()
            .into_iter()
            .filter(|request| request.path() == path)
            .collect()
    }

    /// Counts the requests for a path.
    pub fn count(&self, path: &str) -> usize {
        self.site
            .requests
            .lock()
            .iter()
            .filter(|request| request.path() == path)
            .count()
    }

    /// Returns the only request for a path.
    ///
    /// # Panics
    /// If there is not exactly one.
    #[track_caller]
    pub fn only_request_for(&self, path: &str) -> Request {
        let mut requests = self.requests_for(path);
        assert_eq!(requests.len(), 1, "all requests: {:#?}", self.requests());
        requests.remove(0)
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.site.connections.load(Ordering::SeqCst)
    }

    /// Returns how many replies the client did not read to the end: it closed the connection or reset the stream.
    pub fn cut(&self) -> usize {
        self.site.cut.load(Ordering::SeqCst)
    }

    /// Closes the listener and all connections. From then on, connections are refused.
    pub async fn shut_down(&mut self) {
        self.reserved = Some(bind(self.address));
        self.closing.cancel();
        (&mut self.accepting).await.expect("the site did not panic");
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

// === impl Site ===

impl Site {
    fn answer(&self, request: &Request) -> Reply {
        let page = self.pages.lock().get(request.path()).cloned();
        match page.or_else(|| self.fallback.clone()) {
            Some(handler) => handler(request),
            None => Reply::status(404),
        }
    }

    fn count_cut(&self) {
        self.cut.fetch_add(1, Ordering::SeqCst);
    }
}

/// Binds an address that other sockets of this function can also bind, but no others. A socket that does not listen
/// refuses connections.
fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseport(true).expect("Linux has this option");
    socket.bind(address).expect("a free port");
    socket
}
