//! Plays [scenarios](super::scenario) through a proxy, and checks what each side received against the
//! [model](super::model).

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use super::{
    ledger::{Entry, Ledger, are_complete},
    model::{self, Went},
    scenario::{How, Scenario},
    site::{Seen, Site, path, pieces},
    strict,
};

/// A proxy under test, and the origin behind it.
pub struct Bench {
    proxy: SocketAddr,
    site: Arc<Site>,
    ledger: Ledger,
    next: AtomicU64,
}

/// The bytes that a client has received so far, and whether the connection has ended.
type Got = (Vec<u8>, bool);

// === impl Bench ===

impl Bench {
    /// Creates a bench for the proxy at address `proxy`, whose audit log is the file `audit`. The proxy must allow
    /// 127.0.0.1.
    ///
    /// # Errors
    /// If there is no port for the origin.
    pub async fn start(proxy: SocketAddr, audit: PathBuf) -> io::Result<Self> {
        Ok(Self {
            proxy,
            site: Site::start().await?,
            ledger: Ledger::of(audit),
            next: AtomicU64::new(0),
        })
    }

    /// Plays the scenario that `bytes` describe.
    ///
    /// # Errors
    /// Returns which rule of the model was broken.
    pub async fn play(&self, bytes: &[u8]) -> Result<(), String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let scenario = Arc::new(Scenario::from_bytes(bytes));
        self.site.add(number, scenario.clone());
        let authority = self.site.authority();
        let played = tokio::time::timeout(PATIENCE, self.act(&scenario, number, &authority)).await;
        let (sent, got, ended) = match played {
            Ok(Ok(went)) => went,
            Ok(Err(error)) => return Err(format!("the proxy cannot be connected to: {error}")),
            Err(_) => return Err(format!("the client waited in vain\n{scenario:#?}")),
        };
        let (entries, seen) = self.outcome(number, &authority, &scenario).await?;
        let went = Went {
            scenario: &scenario,
            number,
            authority: &authority,
            sent: &sent,
            got: &got,
            ended,
            seen: &seen,
            entries: &entries,
        };
        let wrong = self.site.wrong();
        let verdict = match wrong.first() {
            Some(wrong) => Err(format!("the origin saw what is no request of any client's: {wrong}")),
            None => model::check(&went),
        };
        let verdict = verdict.map_err(|wrong| format!("{wrong}\n{went}\n{scenario:#?}"));
        self.site.forget(number);
        for folder in ["yes", "no"] {
            self.ledger.forget(&format!("{authority}/{folder}/{number}"));
        }
        verdict
    }

    /// Returns the decisions and what the origin has seen. Waits for a decision on each request that the origin has
    /// seen, because the proxy may forward a request after the client has left.
    async fn outcome(
        &self,
        number: u64,
        authority: &str,
        scenario: &Scenario,
    ) -> Result<(Vec<Entry>, Vec<Seen>), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut entries = Vec::new();
            for folder in ["yes", "no"] {
                let about = format!("{authority}/{folder}/{number}");
                let logged = self.ledger.wait(&about, PATIENCE, are_complete).await;
                entries
                    .extend(logged.map_err(|entries| format!("a completion is missing: {entries:#?}\n{scenario:#?}"))?);
            }
            entries.sort_by_key(|entry| entry.at);
            let seen = self.site.seen(number);
            let is_decided = |seen: &Seen| seen.ask < entries.len();
            if seen.iter().all(is_decided) || Instant::now() > deadline {
                return Ok((entries, seen));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Plays the client. Returns the bytes that it sent and received, and whether the proxy closed the connection.
    async fn act(&self, scenario: &Scenario, number: u64, authority: &str) -> io::Result<(Vec<u8>, Vec<u8>, bool)> {
        let stream = TcpStream::connect(self.proxy).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let (sender, got) = watch::channel((Vec::new(), false));
        let reading = tokio::spawn(read(reader, sender));
        let mut client = Client {
            writer,
            got,
            sent: Vec::new(),
            methods: scenario.asks.iter().map(|ask| ask.method.to_owned()).collect(),
        };
        client.act(scenario, number, authority).await;
        let (got, ended) = client.got.borrow().clone();
        let sent = std::mem::take(&mut client.sent);
        reading.abort();
        Ok((sent, got, ended))
    }
}

struct Client {
    writer: OwnedWriteHalf,
    got: watch::Receiver<Got>,
    sent: Vec<u8>,
    methods: Vec<String>,
}

// === impl Client ===

impl Client {
    async fn act(&mut self, scenario: &Scenario, number: u64, authority: &str) {
        for (at, ask) in scenario.asks.iter().enumerate() {
            let bytes = ask.bytes(authority, &path(number, at, ask.refused));
            let breaks_off = scenario.break_off.filter(|break_off| break_off.ask == at);
            let share = breaks_off.and_then(|break_off| break_off.share);
            let length = share.map_or(bytes.len(), |share| bytes.len() * usize::from(share) / 256);
            let enough = if scenario.pipelined {
                usize::MAX
            } else {
                self.answers() + 1
            };
            let before = self.got.borrow().0.len();
            for piece in pieces(&bytes[..length], scenario.piece) {
                // The proxy may have closed the connection or responded early. The client then stops sending.
                if self.send(piece, enough).await.is_err() {
                    self.answered(at + 1).await;
                    return;
                }
            }
            if let Some(break_off) = breaks_off {
                if break_off.share.is_none() {
                    self.wait(|(bytes, ended)| bytes.len() > before || *ended).await;
                }
                return self.break_off(break_off.how).await;
            }
            if !scenario.pipelined && !self.answered(at + 1).await {
                return;
            }
        }
        self.answered(scenario.asks.len()).await;
    }

    /// Sends `piece`, unless `answers` responses or the end of the connection come first.
    async fn send(&mut self, mut piece: &[u8], answers: usize) -> io::Result<()> {
        let methods = self.methods.clone();
        while !piece.is_empty() {
            let done = |(bytes, ended): &Got| *ended || finals(bytes, &methods, *ended) >= answers;
            let sent = tokio::select! {
                sent = self.writer.write(piece) => sent?,
                _ = self.got.wait_for(done) => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            self.sent.extend(&piece[..sent]);
            piece = &piece[sent..];
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn break_off(&mut self, how: How) {
        match how {
            How::Close => {}
            How::Reset => drop(self.writer.as_ref().set_zero_linger()),
            How::Finish => {
                let _ = self.writer.shutdown().await;
                self.wait(|(_, ended)| *ended).await;
            }
        }
    }

    fn answers(&self) -> usize {
        let (bytes, ended) = &*self.got.borrow();
        finals(bytes, &self.methods, *ended)
    }

    /// Waits for this many complete responses, or the end of the connection. Returns whether the connection is still
    /// open.
    async fn answered(&mut self, number: usize) -> bool {
        let methods = self.methods.clone();
        self.wait(|(bytes, ended)| *ended || finals(bytes, &methods, *ended) >= number)
            .await;
        !self.got.borrow().1
    }

    async fn wait(&mut self, condition: impl FnMut(&Got) -> bool) {
        // The sender reports the end before it is dropped.
        let _ = self.got.wait_for(condition).await;
    }
}

async fn read(mut reader: OwnedReadHalf, got: watch::Sender<Got>) {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = reader.read(&mut chunk).await.unwrap_or(0);
        got.send_modify(|(bytes, ended)| {
            bytes.extend(&chunk[..read]);
            *ended = read == 0;
        });
        if read == 0 {
            return;
        }
    }
}

fn finals(bytes: &[u8], methods: &[String], ended: bool) -> usize {
    let read = strict::responses(bytes, methods, ended);
    let complete = |message: &&strict::Message| message.is_final() && message.end == strict::End::Complete;
    read.messages.iter().filter(complete).count()
}

/// Time limit for the client's part of a scenario, and for each wait for the log.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two readings of the log.
const PAUSE: Duration = Duration::from_millis(10);
