//! Gets cached robots.txt files for the command `robotgate cache`: from the running proxy, or else from the cache file.
//!
//! Closes the cache file before the command prints anything, so that a proxy that starts meanwhile can open it: a proxy
//! that cannot open the file at its start keeps copies only in memory. All functions block.

use std::{
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use axum::body::{Body, Bytes, to_bytes};
use http::{Method, Request, StatusCode, header};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, de::DeserializeOwned};
use url::form_urlencoded;

use super::{
    row::{Detail, Forgot, Page, Row},
    socket::path_beside,
    stats::{Count, Stats},
    view,
};
use crate::{
    config::Config,
    copy::Policy,
    files::hits_file_limit,
    origin::Origin,
    store::{CopyFile, Disk, FileError},
};

/// Access to the cached robots.txt files for one query.
pub struct Copies {
    path: PathBuf,
    policy: Policy,
    has_fleet: bool,
    source: CopySource,
    warn: fn(&str),
}

enum CopySource {
    Proxy(Proxy),
    File(CopyFile),
}

/// A connection to the socket of a running proxy.
struct Proxy {
    socket: PathBuf,
    stream: UnixStream,
}

struct Talk {
    socket: PathBuf,
    sender: SendRequest<String>,
    warn: fn(&str),
}

/// Why a command got nothing from the proxy or the cache file.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(
        "with cache.persist = false there is no cache file, and this command cannot read the proxy's memory. Remove \
         persist from the configuration to have a cache file"
    )]
    NotKept,
    #[error(
        "there is no cache file at {}. If the proxy uses another one, run this command as the proxy's user and with \
         its --config; for a service, also set STATE_DIRECTORY to its state folder, such as /var/lib/robotgate. \
         Otherwise, the proxy has not created the file; its log may say why", .0.display()
    )]
    Nothing(PathBuf),
    #[error(
        "{} is in use by a process that does not answer on the socket {}. If a robotgate is starting or stopping, or \
         another robotgate command is running, wait. Otherwise, it is a robotgate without a socket (see its log, or \
         restart it), or another program (stop it)", .path.display(), .socket.display()
    )]
    Locked { path: PathBuf, socket: PathBuf },
    #[error(
        "no access to {}: only the proxy's user and root may use it; with sudo, also give --config or STATE_DIRECTORY",
        .0.display()
    )]
    Denied(PathBuf),
    #[error("{} cannot be used: {why}{}", .path.display(), advice(.why))]
    Unusable { path: PathBuf, why: FileError },
    #[error("{} cannot be read or changed: {error}{}", .path.display(), advice(.error))]
    File { path: PathBuf, error: FileError },
    #[error("this command cannot talk to the proxy at {}: {error}{}", .socket.display(), match hits_file_limit(.error) {
        true => "; this command needs more open files (ulimit -n)",
        false => "",
    })]
    Talk { socket: PathBuf, error: io::Error },
    #[error(
        "the proxy at {} gave no complete answer within {} s; try again. If this does not help, check its disk, or \
         restart it", .0.display(), ANSWER_TIMEOUT.as_secs()
    )]
    Silent(PathBuf),
    #[error("the proxy's answer was cut off; try again")]
    Cut,
    #[error(
        "this command cannot read the proxy's answer, probably because the proxy runs another version; restart the \
         proxy after an upgrade"
    )]
    Foreign,
    #[error("{0}")]
    Proxy(String),
}

/// An error response of the proxy (RFC 9457). Only its `detail`, a sentence for people, is read.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

fn advice(error: &FileError) -> &'static str {
    match error {
        FileError::Damaged(_) => "; the next start of the proxy repairs it or moves it aside",
        error => error.advice_for_reader(),
    }
}

// === impl Copies ===

impl Copies {
    /// Finds the running proxy, or else the cache file. Queries call `warn` with each warning for the user.
    ///
    /// # Errors
    /// Fails if robotgate keeps no copies on disk, or if this command cannot access them.
    pub fn find(config: &Config, warn: fn(&str)) -> Result<Self, AdminError> {
        let path = config.cache.path.as_deref().ok_or(AdminError::NotKept)?;
        let started = Instant::now();
        loop {
            let found = Self::look(path, config, warn);
            match found {
                // Try again: another command closes the file soon, or a proxy that is starting creates its socket soon.
                Err(AdminError::Locked { .. }) if started.elapsed() < LOCK_TIMEOUT => std::thread::sleep(PAUSE),
                found => return found,
            }
        }
    }

    fn look(path: &Path, config: &Config, warn: fn(&str)) -> Result<Self, AdminError> {
        let found = |source| Self {
            path: path.to_owned(),
            policy: config.robots.policy,
            has_fleet: config.fleet.is_some(),
            source,
            warn,
        };
        if let Some(proxy) = Proxy::beside(path)? {
            return Ok(found(CopySource::Proxy(proxy)));
        }
        let path = path.to_owned();
        match Disk::read_only(&path) {
            Ok(file) => Ok(found(CopySource::File(file))),
            Err(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Err(AdminError::Nothing(path)),
            Err(FileError::Locked) => {
                let socket = path_beside(&path);
                Err(AdminError::Locked { path, socket })
            }
            Err(why) => Err(AdminError::Unusable { path, why }),
        }
    }

    /// Returns the path of the cache file if no running proxy uses this file.
    pub fn file_without_proxy(&self) -> Option<&Path> {
        matches!(self.source, CopySource::File(_)).then_some(&self.path)
    }

    /// Returns every known origin whose name contains `filter`, sorted by name.
    ///
    /// # Errors
    /// Fails if the proxy's answer or the cache file cannot be read.
    pub fn list(self, filter: &str) -> Result<Vec<Row>, AdminError> {
        if filter.len() > MAX_ORIGIN {
            return Ok(Vec::new());
        }
        let filter = filter.to_ascii_lowercase();
        self.ask(
            |file, policy| view::rows(file, "", &filter, usize::MAX, policy).map(|(rows, _)| rows),
            async |talk| {
                let (mut rows, mut after) = (Vec::new(), String::new());
                loop {
                    let query = [("search", &*filter), ("limit", "500"), ("after", &after)];
                    let page = talk.ask(Method::GET, "/api/v1/origins", &query).await?;
                    let Page { origins, next, .. } = page.ok_or(AdminError::Foreign)?;
                    rows.extend(origins);
                    match next {
                        Some(next) => after = next,
                        None => return Ok(rows),
                    }
                }
            },
        )
    }

    /// Returns all that is known about an origin; `None` if nothing is known.
    ///
    /// # Errors
    /// Fails if the proxy's answer or the cache file cannot be read.
    pub fn show(self, origin: &Origin) -> Result<Option<Detail>, AdminError> {
        self.ask(
            |file, policy| view::detail(file, origin, policy),
            async |talk| {
                let query = [("origin", &*origin.to_string())];
                talk.ask(Method::GET, "/api/v1/origins/detail", &query).await
            },
        )
    }

    /// Makes the running proxy forget an origin. If no proxy runs, removes the origin from the cache file.
    ///
    /// # Errors
    /// Fails if the cache file may still contain the origin. The proxy could then know it again after a restart.
    pub fn forget(self, origin: &Origin) -> Result<Forgot, AdminError> {
        let (name, has_fleet) = (origin.to_string(), self.has_fleet);
        self.ask(
            |file, _| {
                Ok(Forgot {
                    forgotten: file.forget(origin)?,
                    origin: name.clone(),
                    // Only a running proxy can tell the fleet's server to forget the origin.
                    fleet_told: has_fleet.then_some(false),
                })
            },
            async |talk| {
                let query = [("origin", &*name)];
                let forgot = talk.ask(Method::POST, "/api/v1/origins/forget", &query).await?;
                forgot.ok_or(AdminError::Foreign)
            },
        )
    }

    /// Returns statistics of the cache.
    ///
    /// # Errors
    /// Fails if the proxy's answer or the cache file cannot be read.
    pub fn stats(self) -> Result<Stats, AdminError> {
        let path = self.path.clone();
        self.ask(
            |file, policy| {
                let mut count = Count::default();
                view::count(file, "", usize::MAX, &mut count, policy)?;
                Stats::new(&path, file, count, None)
            },
            async |talk| {
                let stats = talk.ask(Method::GET, "/api/v1/origins/stats", &[]).await?;
                stats.ok_or(AdminError::Foreign)
            },
        )
    }

    fn ask<T>(
        self,
        of_file: impl FnOnce(&CopyFile, &Policy) -> Result<T, FileError>,
        of_proxy: impl AsyncFnOnce(&mut Talk) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        match self.source {
            CopySource::Proxy(proxy) => proxy.talk(self.warn, of_proxy),
            CopySource::File(file) => Disk::guarded(file, |file| of_file(file, &self.policy))
                .map_err(|error| AdminError::File { path: self.path, error }),
        }
    }
}

// === impl Proxy ===

impl Proxy {
    /// Connects to the socket next to the cache file `file`, if a process listens there.
    fn beside(file: &Path) -> Result<Option<Self>, AdminError> {
        let socket = path_beside(file);
        match UnixStream::connect(&socket) {
            Ok(stream) => Ok(Some(Self { socket, stream })),
            Err(error) => match error.kind() {
                // There is no socket or no folder for it, a killed proxy left the socket, or the socket's path is too
                // long (`InvalidInput`).
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::InvalidInput => Ok(None),
                io::ErrorKind::PermissionDenied => Err(AdminError::Denied(socket)),
                _ => Err(AdminError::Talk { socket, error }),
            },
        }
    }

    fn talk<T>(
        self,
        warn: fn(&str),
        questions: impl AsyncFnOnce(&mut Talk) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let Self { socket, stream } = self;
        let start = || {
            stream.set_nonblocking(true)?;
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        };
        let runtime = match start() {
            Ok(runtime) => runtime,
            Err(error) => return Err(AdminError::Talk { socket, error }),
        };
        runtime.block_on(async {
            let stream = match tokio::net::UnixStream::from_std(stream) {
                Ok(stream) => TokioIo::new(stream),
                Err(error) => return Err(AdminError::Talk { socket, error }),
            };
            let (sender, connection) = handshake(stream).await.map_err(of_http)?;
            // If the connection fails, the queries on it fail too and report the error.
            tokio::spawn(connection);
            questions(&mut Talk { socket, sender, warn }).await
        })
    }
}

// === impl Talk ===

impl Talk {
    /// Returns `None` if the proxy responds with 404.
    async fn ask<T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, AdminError> {
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(method, path, query)).await;
        let (status, answer) = answered.map_err(|_| AdminError::Silent(self.socket.clone()))??;
        match status {
            StatusCode::OK => serde_json::from_slice(&answer)
                .map(Some)
                .map_err(|_| AdminError::Foreign),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(serde_json::from_slice(&answer)
                .map_or(AdminError::Foreign, |Problem { detail }| AdminError::Proxy(detail))),
        }
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(StatusCode, Bytes), AdminError> {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .finish();
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?{query}"))
            .header(header::HOST, "localhost")
            .body(String::new());
        let request = request.map_err(|_| AdminError::Foreign)?;
        let (head, body) = self.sender.send_request(request).await.map_err(of_http)?.into_parts();
        let answer = to_bytes(Body::new(body), MAX_ANSWER)
            .await
            .map_err(|_| AdminError::Cut)?;
        if head.headers.contains_key(header::WARNING) {
            (self.warn)("the disk is slow or cannot be written now, so this may not be the latest state");
        }
        Ok((head.status, answer))
    }
}

fn of_http(error: hyper::Error) -> AdminError {
    match error.is_parse() {
        true => AdminError::Foreign,
        false => AdminError::Cut,
    }
}

/// How long to try to open the cache file while another process has it open.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// Must exceed the time that the proxy waits for its writes to the disk before it answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an answer, in bytes. The largest has a robots.txt of 500 KiB twice: in base64, and as text with up
/// to six bytes for each byte (`\u0000`).
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Maximum length of an origin in bytes: a scheme, a name of 253 bytes and a port.
const MAX_ORIGIN: usize = 300;
