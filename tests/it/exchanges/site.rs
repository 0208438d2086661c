//! The origin of the [scenarios](super::scenario): responds as the scenario says, and records the requests.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{
    scenario::Scenario,
    strict::{self, End, Message, Rest},
};

/// The origin, which all scenarios share.
pub struct Site {
    address: SocketAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    scenarios: HashMap<u64, Arc<Scenario>>,
    seen: HashMap<u64, Vec<Seen>>,
    wrong: Vec<String>,
}

/// A request that the origin received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub ask: usize,
    /// Whether the connection had a request before.
    pub kept: bool,
    /// Whether a byte of the response was sent.
    pub answered: bool,
    pub message: Message,
}

// === impl Site ===

impl Site {
    pub async fn start() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let site = Arc::new(Self {
            address: listener.local_addr()?,
            state: Mutex::default(),
        });
        let accepting = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let site = accepting.clone();
                // Errors are ignored here, because the proxy notices that the connection has ended.
                tokio::spawn(async move { drop(site.serve(stream).await) });
            }
        });
        Ok(site)
    }

    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    pub fn add(&self, number: u64, scenario: Arc<Scenario>) {
        self.state.lock().scenarios.insert(number, scenario);
    }

    /// Returns the requests of a scenario, in the order in which their heads arrived.
    pub fn seen(&self, number: u64) -> Vec<Seen> {
        self.state.lock().seen.get(&number).cloned().unwrap_or_default()
    }

    /// Forgets the requests of a scenario. Later requests of the scenario are not [`wrong`](Self::wrong).
    pub fn forget(&self, number: u64) {
        self.state.lock().seen.remove(&number);
    }

    /// Describes everything received that is no valid request of any scenario.
    pub fn wrong(&self) -> Vec<String> {
        self.state.lock().wrong.clone()
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut bytes = Vec::new();
        let mut kept = false;
        loop {
            let read = strict::requests(&bytes);
            let Some(head) = read.messages.first() else {
                if let Rest::Broken(why) = read.rest {
                    let wrong = format!("{why}: {}", bytes[read.end..].escape_ascii());
                    self.state.lock().wrong.push(wrong);
                    return Ok(());
                }
                if stream.read_buf(&mut bytes).await? == 0 {
                    if !bytes.is_empty() {
                        self.state
                            .lock()
                            .wrong
                            .push(format!("a part of a head: {}", bytes.escape_ascii()));
                    }
                    return Ok(());
                }
                continue;
            };
            let target = head.request_line().map_or("", |(_, target, _)| target).to_owned();
            if target == "/robots.txt" {
                let robots = "User-agent: *\nDisallow: /no/\n";
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    robots.len()
                );
                return stream.write_all((head + robots).as_bytes()).await;
            }
            let known = parse(&target).and_then(|(number, ask)| {
                let scenario = self.state.lock().scenarios.get(&number)?.clone();
                (ask < scenario.asks.len()).then_some((number, ask, scenario))
            });
            let Some((number, ask, scenario)) = known else {
                self.state
                    .lock()
                    .wrong
                    .push(format!("nobody asked for this: {}", bytes.escape_ascii()));
                return Ok(());
            };
            let seen = Seen {
                ask,
                kept,
                answered: false,
                message: head.clone(),
            };
            let at = {
                let mut state = self.state.lock();
                let all = state.seen.entry(number).or_default();
                all.push(seen);
                all.len() - 1
            };
            let seen_at = SeenAt {
                site: self,
                number,
                ask,
                at,
            };
            if !self
                .exchange(&mut stream, &mut bytes, &seen_at, &scenario, &target)
                .await?
            {
                return Ok(());
            }
            kept = true;
        }
    }

    /// Responds to one request. Returns whether another request can follow on the connection.
    async fn exchange(
        &self,
        stream: &mut TcpStream,
        bytes: &mut Vec<u8>,
        seen_at: &SeenAt<'_>,
        scenario: &Scenario,
        target: &str,
    ) -> io::Result<bool> {
        let ask = &scenario.asks[seen_at.ask];
        let answer = &ask.answer;
        let taken = !answer.early;
        if taken && !take_content(stream, bytes, seen_at).await? {
            return Ok(false);
        }
        let (mut wire, _, _) = answer.bytes(ask.method, target);
        let ends_by_close = answer.ends_by_close(ask.method);
        if let Some(share) = answer.cut {
            wire.truncate(wire.len() * usize::from(share) / 256);
        }
        let behind = if answer.cut.is_some() || ends_by_close {
            ""
        } else {
            answer.extra
        };
        // Send the end of the response together with `extra`, so that `extra` arrives before the proxy decides whether
        // to keep the connection.
        let tail = wire.split_off(wire.len().saturating_sub(20));
        for piece in pieces(&wire, scenario.piece) {
            seen_at.answered();
            stream.write_all(piece).await?;
            tokio::task::yield_now().await;
        }
        if !tail.is_empty() || !behind.is_empty() {
            seen_at.answered();
            stream.write_all(&[&tail, behind.as_bytes()].concat()).await?;
        }
        if answer.cut.is_some() && answer.reset {
            stream.set_zero_linger()?;
            return Ok(false);
        }
        let says_close = seen_at.says_close();
        if answer.cut.is_some() || ends_by_close || answer.closes || answer.says_close || answer.fault.is_some() {
            stream.shutdown().await?;
            // Wait until the peer has closed the connection too. Closing it with unread bytes would reset it, and the
            // peer would lose the response.
            let mut rest = Vec::new();
            let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
            bytes.extend(rest);
            if (taken || seen_at.take(bytes))
                && let Rest::Broken(why) = strict::requests(bytes).rest
            {
                self.state.lock().wrong.push(format!("{why}: {}", bytes.escape_ascii()));
            }
            return Ok(false);
        }
        Ok((taken || take_content(stream, bytes, seen_at).await?) && !says_close)
    }
}

struct SeenAt<'s> {
    site: &'s Site,
    number: u64,
    ask: usize,
    at: usize,
}

// === impl SeenAt ===

impl SeenAt<'_> {
    /// Calls `work` on the request. Returns `None` if the scenario was forgotten.
    fn with<T>(&self, work: impl FnOnce(&mut Seen) -> T) -> Option<T> {
        let mut state = self.site.state.lock();
        let seen = state.seen.get_mut(&self.number).and_then(|seen| seen.get_mut(self.at));
        seen.map(work)
    }

    fn answered(&self) {
        self.with(|seen| seen.answered = true);
    }

    fn says_close(&self) -> bool {
        let says = |seen: &mut Seen| {
            seen.message
                .all("connection")
                .any(|value| value.eq_ignore_ascii_case("close"))
        };
        self.with(says).unwrap_or(true)
    }

    /// Records what has arrived of the message at the start of `bytes`, and removes the message if it is complete.
    /// Returns `true` if it removed the message, or if `bytes` does not begin with a message.
    fn take(&self, bytes: &mut Vec<u8>) -> bool {
        let read = strict::requests(bytes);
        let Some(message) = read.messages.into_iter().next() else {
            return true;
        };
        let is_complete = message.end == End::Complete;
        if let End::Broken(why) = message.end {
            self.site
                .state
                .lock()
                .wrong
                .push(format!("{why}: {}", bytes.escape_ascii()));
        }
        let until = message.until;
        self.with(|seen| seen.message = message);
        if is_complete {
            bytes.drain(..until);
        }
        is_complete
    }
}

/// Reads the content of the request at the start of `bytes`. Returns whether it is complete.
async fn take_content(stream: &mut TcpStream, bytes: &mut Vec<u8>, seen_at: &SeenAt<'_>) -> io::Result<bool> {
    loop {
        if bytes.is_empty() || seen_at.take(bytes) {
            return Ok(true);
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(false);
        }
    }
}

/// Returns the path of a scenario's request.
pub fn path(number: u64, ask: usize, refused: bool) -> String {
    let folder = if refused { "no" } else { "yes" };
    format!("/{folder}/{number}/{ask}")
}

/// Parses a path into the numbers of the scenario and the request.
pub fn parse(path: &str) -> Option<(u64, usize)> {
    let mut parts = path.split('/').skip(2);
    let parsed = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(parsed)
}

/// Splits into pieces of `size` bytes, or into larger ones to limit their number. 0 does not split.
pub fn pieces(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let size = if size == 0 {
        bytes.len().max(1)
    } else {
        size.max(bytes.len() / 50)
    };
    bytes.chunks(size)
}

/// Time limit for a peer that does nothing.
pub const PATIENCE: Duration = Duration::from_secs(20);
