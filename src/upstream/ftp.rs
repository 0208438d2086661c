//! Sends a request to an FTP server (RFC 959), and converts the server's replies to an HTTP response. So the proxy and
//! the fetcher of robots.txt files use an FTP server like an HTTP server.
//!
//! robotgate logs in as `anonymous`, uses passive mode, and opens a new session for each request.

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

/// A connection to an FTP server, for one request. Commands are sent only while this value is polled, so dropping it
/// stops the request.
pub struct Ftp {
    connected: Option<Connected>,
    progress: Progress,
    work: Option<Work>,
    parts: mpsc::Receiver<Part>,
    /// The result of `work`, once `work` has ended. The caller gets it after the last part of the response.
    ended: Option<Result<(), Fault>>,
    is_ended: bool,
}

struct Connected {
    control: TcpStream,
    data: DataRules,
    progress: Progress,
}

/// Grows with the server's replies and with each byte of content. As long as it grows, the server is not silent.
#[derive(Clone, Default)]
struct Progress(Arc<AtomicU64>);

/// Where data connections may go: only to the server's IP address, to ports from [`MIN_DATA_PORT`] up, and never to a
/// listener of robotgate.
#[derive(Clone)]
struct DataRules {
    /// The egress guard has checked this address.
    server: SocketAddr,
    listening: Listening,
    within: Duration,
}

enum Part {
    Head(Box<ResponseHeader>),
    Content(Bytes),
}

type Work = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

// === impl Ftp ===

impl Ftp {
    /// Connects to the server at `address`, which the egress guard has checked. Opening this connection, and later each
    /// data connection, takes at most `within`.
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
    /// Fails for other methods, for a path that is not valid for an FTP server, and if this connection already had a
    /// request.
    pub fn send_head(&mut self, head: &RequestHeader, target: &Target) -> Result<(), Fault> {
        let connected = self.connected.take();
        let connected = connected.ok_or_else(|| Fault::Internal("the FTP session was used before".to_owned()))?;
        let request = Request::new(head, target)?;
        let (sender, parts) = mpsc::channel(1);
        self.parts = parts;
        self.work = Some(Box::pin(exchange::run(connected, request, Output(sender))));
        Ok(())
    }

    /// Returns the head of the response.
    ///
    /// # Errors
    /// Fails if the server does not keep to the protocol, a connection fails, or the data connection is not allowed.
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

    /// Returns a number that grows while the server replies and sends content.
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
        // `poll_recv` above can also return `Pending` because the task has used up its tokio budget. So only the end of
        // the channel means that all parts were read.
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

async fn dial(address: SocketAddr, within: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // Send each short command at once, because the next one waits for its reply. Ignore an error: the
            // connection also works without this option.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(Fault::from_connect(&error)),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}

/// Minimum port of a data connection, so that no FTP server can make robotgate connect to a well-known service.
const MIN_DATA_PORT: u16 = 1024;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Each round uses up a different part of the task's tokio budget, so that the task has to wait at a different
    /// place.
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
