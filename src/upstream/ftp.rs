//! Sends a request to an FTP server (RFC 959). Takes the head of an HTTP request, and returns the head and the content
//! of an HTTP response. So the proxy and the fetcher of robots.txt files use an FTP server like an HTTP server.
//!
//! `session` sends commands to the server and reads its replies. `exchange` chooses the commands for a request, and
//! converts the replies to HTTP. `conditions` evaluates `Range`, `If-Range` and `If-Modified-Since`. `listing` makes an
//! HTML page of the names in a folder. robotgate logs in as `anonymous`, uses passive mode, and opens a new session for
//! each request.

mod conditions;
mod exchange;
mod listing;
mod session;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::{net::TcpStream, sync::mpsc};

use self::exchange::{Output, Request};
use super::Fault;
use crate::{egress::Listening, origin::Target};

/// A connection to an FTP server, for one request. Sends nothing before [`send_head`](Self::send_head). Commands are
/// sent only while this value is polled, so dropping it stops the request.
pub struct Ftp {
    connected: Option<Connected>,
    progress: Progress,
    work: Option<Work>,
    parts: mpsc::Receiver<Part>,
    /// The result of `work`, if it has ended but the caller has not read all parts of the response yet.
    ended: Option<Result<(), Fault>>,
    is_ended: bool,
}

/// A connection to the server, over which nothing has been sent.
struct Connected {
    control: TcpStream,
    data: DataRules,
    progress: Progress,
}

/// Counts the server's replies and the bytes of its content. As long as the count grows, the server is not silent.
#[derive(Clone, Default)]
struct Progress(Arc<AtomicU64>);

/// Where data connections may go: only to the IP address of the control connection, and never to a listener of
/// robotgate.
#[derive(Clone)]
struct DataRules {
    /// The server's address, which the egress guard has checked.
    server: SocketAddr,
    listening: Listening,
    /// Time limit for connecting.
    within: Duration,
}

/// A part of a response. The head comes first.
enum Part {
    Head(Box<ResponseHeader>),
    Content(Bytes),
}

type Work = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

// === impl Ftp ===

impl Ftp {
    /// Connects to the server at `address`, which the egress guard has checked. The time limit is `within`, also for
    /// each data connection. Data connections never go to an address in `listening`.
    ///
    /// # Errors
    /// Fails if the connection cannot be made.
    pub async fn connect(address: SocketAddr, listening: &Listening, within: Duration) -> Result<Self, Fault> {
        let control = dial(address, within).await?;
        let data = DataRules {
            server: address,
            listening: listening.clone(),
            within,
        };
        let progress = Progress::default();
        let connected = Connected {
            control,
            data,
            progress: progress.clone(),
        };
        Ok(Self {
            connected: Some(connected),
            progress,
            work: None,
            // A placeholder: `send_head` replaces it.
            parts: mpsc::channel(1).1,
            ended: None,
            is_ended: false,
        })
    }

    /// Begins a GET or HEAD request for `target`.
    ///
    /// # Errors
    /// Fails if the method is not GET or HEAD, if the path is not valid for an FTP server, or if this connection
    /// already had a request.
    pub fn send_head(&mut self, head: &RequestHeader, target: &Target) -> Result<(), Fault> {
        let connected = self.connected.take();
        let connected = connected.ok_or_else(|| Fault::Internal("the FTP session is used".to_owned()))?;
        let request = Request::new(head, target)?;
        let (sender, parts) = mpsc::channel(1);
        self.parts = parts;
        self.work = Some(Box::pin(exchange::run(connected, request, Output(sender))));
        Ok(())
    }

    /// Returns the head of the response.
    ///
    /// # Errors
    /// Fails if the server does not keep to the protocol, or its data connection is not allowed.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHeader, Fault>> {
        self.poll_part(cx).map(|part| match part? {
            Some(Part::Head(head)) => Ok(*head),
            Some(Part::Content(_)) | None => Err(Fault::Internal("the FTP response has no head".to_owned())),
        })
    }

    /// Returns the next part of the response's content, or `None` at its end.
    ///
    /// # Errors
    /// Fails if the content is incomplete.
    pub fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        self.poll_part(cx).map(|part| match part? {
            Some(Part::Content(content)) => Ok(Some(content)),
            Some(Part::Head(_)) => Err(Fault::Internal("the FTP response has two heads".to_owned())),
            None => Ok(None),
        })
    }

    /// Returns a number that grows whenever the server sends something.
    pub fn progress(&self) -> u64 {
        self.progress.0.load(Ordering::Relaxed)
    }

    /// Returns whether the end of the response has been read.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Part>, Fault>> {
        if let Poll::Ready(Some(part)) = self.parts.poll_recv(cx) {
            return Poll::Ready(Ok(Some(part)));
        }
        if let Some(work) = &mut self.work
            && let Poll::Ready(ended) = work.as_mut().poll(cx)
        {
            self.work = None;
            self.ended = Some(ended);
        }
        // The first `poll_recv` can return `Pending` although the channel contains a part: tokio does so if the task
        // has used up its budget and has to let other tasks run. So even if `work` has ended, the channel can contain a
        // part. Only the end of the channel means that all parts were read.
        if let Some(part) = ready!(self.parts.poll_recv(cx)) {
            return Poll::Ready(Ok(Some(part)));
        }
        self.is_ended = true;
        Poll::Ready(self.ended.take().unwrap_or(Ok(())).map(|()| None))
    }
}

// === impl Progress ===

impl Progress {
    fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }
}

// === impl DataRules ===

impl DataRules {
    /// Opens the data connection to the address that the server named.
    ///
    /// # Errors
    /// Fails if the IP address is not that of the control connection, if the port is below 1024, if robotgate itself
    /// listens there, or if the connection cannot be made.
    async fn dial(&self, named: SocketAddr) -> Result<TcpStream, Fault> {
        let is_server = named.ip().to_canonical() == self.server.ip().to_canonical();
        if !is_server || named.port() < MIN_DATA_PORT {
            return Err(Fault::DataAddress(named));
        }
        let address = SocketAddr::new(self.server.ip(), named.port());
        if self.listening.is_reached_by(address) {
            return Err(Fault::DataAddress(named));
        }
        dial(address, self.within).await
    }
}

/// Connects to a checked address within the time `within`.
async fn dial(address: SocketAddr, within: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // Send each command at once: commands are short, and each one waits for the reply to the previous one.
            // Ignore an error, because the connection works without this option too.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(Fault::from_connect(&error)),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}

/// Minimum port of a data connection. The ports below it belong to well-known services, and no FTP server can make
/// robotgate connect to these.
const MIN_DATA_PORT: u16 = 1024;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// After a number of operations, tokio makes a task wait so that others can run. The test uses up a different part
    /// of this number in each round, so that the task has to wait at a different place.
    #[tokio::test]
    async fn no_part_is_lost_wherever_the_task_has_to_wait() {
        for before in 0..=128 {
            let (sender, parts) = mpsc::channel(1);
            let send = async move {
                let sent = sender.send(Part::Content(Bytes::from_static(b"the end"))).await;
                sent.map_err(|_| Fault::ResponseIncomplete)
            };
            let mut ftp = Ftp {
                connected: None,
                progress: Progress::default(),
                work: Some(Box::pin(send)),
                parts,
                ended: None,
                is_ended: false,
            };
            tokio::task::yield_now().await;
            for _ in 0..before {
                tokio::task::consume_budget().await;
            }
            let content = poll_fn(|cx| ftp.poll_content(cx)).await;
            assert_eq!(content.unwrap().as_deref(), Some(&b"the end"[..]), "{before}");
            assert!(poll_fn(|cx| ftp.poll_content(cx)).await.unwrap().is_none());
        }
    }
}
