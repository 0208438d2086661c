//! A request to an FTP server (RFC 959), in the form of HTTP: a head comes in, and a response with its content comes out.
//! So the proxy and the fetcher of robots.txt files use an FTP server like any other.
//!
//! `exchange` says what is asked of the server and what its replies mean in HTTP, over a `session` with the server.
//! `conditions` are those of the request. `listing` makes a page of the names in a folder. The client is anonymous, the
//! mode is passive, and a session is for one request.

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

/// A connection to an FTP server, and the one request on it. Nothing is sent before
/// [`send_head`](Self::send_head). All work is done while it is polled, so it stops when this is dropped.
pub struct Ftp {
    connected: Option<Connected>,
    progress: Progress,
    work: Option<Work>,
    parts: mpsc::Receiver<Part>,
    /// How the work ended, if parts of the response are still to be read.
    ended: Option<Result<(), Fault>>,
    is_ended: bool,
}

/// A connection to the server, over which nothing has been sent.
struct Connected {
    control: TcpStream,
    data: DataRules,
    progress: Progress,
}

/// Counts the server's replies and the bytes of its content. As long as it grows, the server is not silent.
#[derive(Clone, Default)]
struct Progress(Arc<AtomicU64>);

/// Where data connections go: to the address of the control connection, and never to a listener of robotgate.
#[derive(Clone)]
struct DataRules {
    /// The server's address, which the egress guard has checked.
    server: SocketAddr,
    listening: Listening,
    /// Time for connecting.
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
    /// Connects to the server at `address`, which the egress guard has checked, within the time `within`. Data
    /// connections get the same time, and none goes to an address in `listening`.
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
            // Replaced with the request.
            parts: mpsc::channel(1).1,
            ended: None,
            is_ended: false,
        })
    }

    /// Begins the request, a GET or HEAD. Its content is not read.
    ///
    /// # Errors
    /// Fails if the method or the path is not for an FTP server, or if there was a request before.
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

    /// Returns content of the response, or `None` at its end. Before that end, the server has said that the transfer is
    /// complete.
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
        // The channel can be pending even if it contains a part: when the task has to let others run (tokio's budget).
        // Its end, and not that of the work, says that there are no more parts.
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
    /// Fails if the address is not that of the control connection, if the port is below 1024, or if the connection
    /// cannot be made.
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
            // Commands are short, and each waits for its reply. A socket that does not know the option works too.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(Fault::from_connect(&error)),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}

/// The ports below are those of other services of the server, which may trust its own addresses.
const MIN_DATA_PORT: u16 = 1024;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// After some operations, tokio lets a task wait so that others can run, wherever it is then.
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
