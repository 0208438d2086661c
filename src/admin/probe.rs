//! Asks a running robotgate whether it is alive or ready, for `robotgate health`. Blocks for a limited time, and reads
//! no file.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use axum::body::{Body, to_bytes};
use http::{Request, StatusCode, header};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::socket::path_beside;
use crate::config::Config;

/// What to ask a running robotgate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    Alive,
    Ready,
}

/// Where a robotgate answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Listener(SocketAddr),
    Socket(PathBuf),
}

/// The answer of a running robotgate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// Whether robotgate is alive or ready, as asked.
    pub is_yes: bool,
    /// The text of the answer, on one line.
    pub text: String,
}

/// Why no endpoint answered.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(
        "admin.listen is empty or has only port 0, and cache.persist is false, so this command has nothing to ask; set \
         admin.listen to an address such as 127.0.0.1:3180"
    )]
    Nowhere,
    #[error("no robotgate answered: {}; if robotgate listens elsewhere, name its configuration with --config, or its admin.listen with --address",
        .0.iter().map(|(at, why)| format!("{at}: {why}")).collect::<Vec<_>>().join(", and "))]
    Silent(Vec<(Endpoint, Failure)>),
}

/// Why an endpoint gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Connect(#[from] io::Error),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("no valid HTTP response: {0}")]
    Http(#[from] hyper::Error),
    #[error("the answer ({0}) is not that of an admin listener")]
    Foreign(StatusCode),
}

/// Returns the address at which a client on this machine reaches a listener.
pub fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

// === impl Endpoint ===

impl Endpoint {
    /// Returns the endpoints of a robotgate with this configuration, in the order in which to try them.
    pub fn of(config: &Config) -> Vec<Self> {
        // With port 0, the system chose the real port, which is not known here.
        let listeners = config.admin.listen.iter().filter(|address| address.port() != 0);
        let listeners = listeners.map(|address| Self::Listener(from_here(*address)));
        let socket = config.cache.path.as_deref().map(path_beside).map(Self::Socket);
        listeners.chain(socket).collect()
    }

    async fn ask(&self, probe: Probe) -> Result<ProbeAnswer, Failure> {
        match self {
            Self::Listener(address) => probe.ask(TcpStream::connect(address).await?).await,
            Self::Socket(path) => probe.ask(UnixStream::connect(path).await?).await,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener(address) => write!(f, "{address}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

// === impl Probe ===

impl Probe {
    /// Asks each endpoint in turn until one answers.
    ///
    /// # Errors
    /// Fails if none of them answers in time.
    pub fn run(self, endpoints: &[Endpoint]) -> Result<ProbeAnswer, ProbeError> {
        if endpoints.is_empty() {
            return Err(ProbeError::Nowhere);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut silent = Vec::new();
        for endpoint in endpoints {
            let answered = match &runtime {
                Ok(runtime) => runtime.block_on(async { tokio::time::timeout(TIMEOUT, endpoint.ask(self)).await }),
                Err(error) => Ok(Err(io::Error::from(error.kind()).into())),
            };
            match answered.unwrap_or(Err(Failure::Timeout)) {
                Ok(answer) => return Ok(answer),
                Err(why) => silent.push((endpoint.clone(), why)),
            }
        }
        Err(ProbeError::Silent(silent))
    }

    async fn ask(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<ProbeAnswer, Failure> {
        let (path, yes) = match self {
            Self::Alive => ("/healthz", "ok"),
            Self::Ready => ("/readyz", "ready"),
        };
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        // If the connection fails, the request on it fails too and reports the error.
        tokio::spawn(connection);
        let mut request = Request::new(String::new());
        *request.uri_mut() = http::Uri::from_static(path);
        let host = http::HeaderValue::from_static("localhost");
        request.headers_mut().insert(header::HOST, host);
        let (head, body) = sender.send_request(request).await?.into_parts();
        let is_yes = head.status == StatusCode::OK;
        let foreign = Failure::Foreign(head.status);
        let Ok(body) = to_bytes(Body::new(body), MAX_ANSWER).await else {
            return Err(foreign);
        };
        let text = String::from_utf8_lossy(&body).trim().replace('\n', "; ");
        match is_yes && text.starts_with(yes) || self == Self::Ready && head.status == StatusCode::SERVICE_UNAVAILABLE {
            true => Ok(ProbeAnswer { is_yes, text }),
            false => Err(foreign),
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(3);
const MAX_ANSWER: usize = 64 * 1024;
