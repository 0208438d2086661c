//! Plays a case: the client and the origin of its script, with a gate between them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;

use super::{
    http2,
    peer::{Got, Late, Peer},
    script::{Act, Case, End, Step, Way, fill},
    show,
};
use crate::{
    exchanges::{
        ledger::{Entry, Ledger, are_complete},
        strict::{self, End as Ended, Read},
    },
    support::{Alpn, BoxIo, Certificate, Gate, NAME},
};

struct Scene<'c> {
    case: &'c Case,
    gate: &'c Gate,
    ledger: &'c Ledger,
    authority: String,
    peers: mpsc::UnboundedReceiver<Peer>,
    origins: Vec<Peer>,
    clients: BTreeMap<usize, Client>,
}

struct Client {
    peer: Peer,
    /// The bytes that the script has sent on this connection. [`methods`](Self::methods) parses them.
    sent: Vec<u8>,
}

/// Plays the case and returns its transcript. Values that differ between runs are masked.
pub async fn play(case: &Case, gate: &Gate, ledger: &Ledger) -> String {
    let mut scene = Scene::new(case, gate, ledger).await;
    let mut text = String::new();
    for step in &case.steps {
        if let Err(Late) = scene.take(step).await {
            text += &format!("!! waited in vain: {}\n", step.text);
            break;
        }
    }
    scene.end(text).await
}

// === impl Scene ===

impl<'c> Scene<'c> {
    async fn new(case: &'c Case, gate: &'c Gate, ledger: &'c Ledger) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let tls = case.way.is_https().then(|| acceptor(case.way));
        let authority = format!("{NAME}:{port}");
        let (sender, mut peers) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Continue after the end of the case: the port stays in use, so that no other case gets it.
                let _ = incoming(stream, tls.as_ref(), &sender).await;
            }
        });
        warm(case, gate, &mut peers, &authority).await;
        Self {
            case,
            gate,
            ledger,
            authority,
            peers,
            origins: Vec::new(),
            clients: BTreeMap::new(),
        }
    }

    async fn take(&mut self, step: &Step) -> Result<(), Late> {
        if let Act::Log(count) = step.act {
            return self
                .logged(|entries| are_complete(entries) && entries.len() >= count)
                .await
                .map(drop);
        }
        let (case, authority) = (self.case, self.authority.clone());
        let is_client = step.end == End::Client;
        let sent = match &step.act {
            Act::Send(template, _) => fill(template, case.way, &authority),
            _ => Vec::new(),
        };
        let (peer, methods) = self.peer(step.end, step.number, &sent).await?;
        let read = |got: &Got| match is_client {
            true => strict::responses(&got.bytes, &methods, got.ended),
            false => strict::requests(&got.bytes),
        };
        match step.act {
            Act::Send(_, waited) => {
                peer.send(sent);
                if waited {
                    peer.sent().await?;
                }
            }
            Act::Complete(count) => {
                peer.wait(|got| (complete(&read(got), is_client) >= count).then_some(()))
                    .await?
            }
            Act::Head(count) => {
                peer.wait(|got| (read(got).messages.len() >= count).then_some(()))
                    .await?
            }
            Act::Content(length) => {
                let has = |read: &Read| read.messages.last().is_some_and(|last| last.content.len() >= length);
                peer.wait(|got| has(&read(got)).then_some(())).await?;
            }
            Act::Bytes(length) => peer.wait(|got| (got.bytes.len() >= length).then_some(())).await?,
            Act::Behind(length) => {
                peer.wait(|got| (got.bytes.len() >= read(got).end + length).then_some(()))
                    .await?;
            }
            Act::Ended => peer.wait(|got| got.ended.then_some(())).await?,
            Act::Finish => peer.finish(),
            Act::Close => peer.close(),
            Act::Drop => peer.cut(),
            Act::Reset => peer.reset(),
            Act::Log(_) => {}
        }
        Ok(())
    }

    /// Returns the peer that a step concerns, once it is connected. For a client, also returns the methods of its
    /// requests.
    async fn peer(&mut self, end: End, number: usize, sent: &[u8]) -> Result<(&mut Peer, Vec<String>), Late> {
        match end {
            End::Origin => {
                while self.origins.len() < number {
                    let arrived = tokio::time::timeout(PATIENCE, self.peers.recv()).await;
                    self.origins.push(arrived.ok().flatten().ok_or(Late)?);
                }
                Ok((&mut self.origins[number - 1], Vec::new()))
            }
            End::Client => {
                if !self.clients.contains_key(&number) {
                    let io = dial(self.case.way, self.gate, &self.authority).await;
                    let client = Client {
                        peer: Peer::over(io),
                        sent: Vec::new(),
                    };
                    self.clients.insert(number, client);
                }
                let client = self.clients.get_mut(&number).expect("inserted above");
                client.sent.extend(sent);
                let methods = client.methods();
                Ok((&mut client.peer, methods))
            }
        }
    }

    async fn end(mut self, mut text: String) -> String {
        let mut open = Vec::new();
        for (number, client) in &mut self.clients {
            client.peer.finish();
            if client.peer.wait(|got| got.ended.then_some(())).await.is_err() && !client.peer.got().ended {
                open.push(*number);
            }
        }
        while let Ok(peer) = self.peers.try_recv() {
            self.origins.push(peer);
        }
        for origin in &mut self.origins {
            origin.close();
        }
        if self.logged(are_complete).await.is_err() {
            text += "!! a completion is missing\n";
        }
        for (at, origin) in self.origins.iter().enumerate() {
            text += &format!("origin {} saw\n{}", at + 1, show::requests(&origin.got()));
        }
        for (number, client) in &self.clients {
            let got = client.peer.got();
            text += &format!("client {number} got\n{}", show::responses(&got, &client.methods()));
            if open.contains(number) {
                text += "!! the gate did not close\n";
            }
        }
        text += "log\n";
        for entry in self.ledger.about(&self.authority) {
            text += &show::exchange(&entry);
        }
        show::masked(&text, &self.authority)
    }

    async fn logged(&self, condition: impl Fn(&[Entry]) -> bool) -> Result<(), Late> {
        let logged = self.ledger.wait(&self.authority, PATIENCE, condition).await;
        logged.map(drop).map_err(|_| Late)
    }
}

// === impl Client ===

impl Client {
    /// Returns the methods of the requests so far, as far as they can be parsed. Adds a GET for a response to an
    /// invalid request.
    fn methods(&self) -> Vec<String> {
        let read = strict::requests(&self.sent);
        let method = |message: &strict::Message| message.request_line().map_or("", |(method, ..)| method).to_owned();
        read.messages.iter().map(method).chain(["GET".to_owned()]).collect()
    }
}

/// Counts the complete messages. Interim responses to a client do not count.
fn complete(read: &Read, of_client: bool) -> usize {
    let counts = |message: &&strict::Message| message.end == Ended::Complete && (!of_client || message.is_final());
    read.messages.iter().filter(counts).count()
}

async fn dial(way: Way, gate: &Gate, authority: &str) -> BoxIo {
    let connection = match way {
        Way::Plain | Way::Https => gate.dial().await,
        Way::Inside => gate.connect(authority).await.opened().plain(),
        Way::H2 | Way::H2ToH2 => {
            let io = gate.connect(authority).await.opened().io(NAME, Alpn::Http2).await;
            return http2::client(io, authority.to_owned());
        }
        Way::Tls | Way::TlsToH2 => gate.connect(authority).await.opened().tls(NAME, Alpn::Http1).await,
    };
    connection.into_io()
}

fn acceptor(way: Way) -> TlsAcceptor {
    let mut config = (*Certificate::of(&[NAME]).server_config()).clone();
    if matches!(way, Way::TlsToH2 | Way::H2ToH2) {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    TlsAcceptor::from(Arc::new(config))
}

/// Sends a connection, or each of its streams, to `peers`. The returned error can be ignored, because the gate notices
/// that the connection has ended.
async fn incoming(
    stream: TcpStream,
    tls: Option<&TlsAcceptor>,
    peers: &mpsc::UnboundedSender<Peer>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let io: BoxIo = match tls {
        None => Box::new(stream),
        Some(tls) => {
            let stream = tls.accept(stream).await?;
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                tokio::spawn(http2::origin(stream, peers.clone()));
                return Ok(());
            }
            Box::new(stream)
        }
    };
    // This fails after the end of the case, which does not matter.
    let _ = peers.send(Peer::over(io));
    Ok(())
}

/// Makes the gate fetch the origin's robots.txt, on connections that the script does not see.
async fn warm(case: &Case, gate: &Gate, peers: &mut mpsc::UnboundedReceiver<Peer>, authority: &str) {
    let scheme = if case.way.is_https() { "https" } else { "http" };
    let serve = async {
        while let Some(mut peer) = peers.recv().await {
            let sends_request = |got: &Got| (!strict::requests(&got.bytes).messages.is_empty()).then_some(());
            if peer.wait(sends_request).await.is_err() {
                continue;
            }
            let answer = match &case.robots {
                Some(robots) => format!("HTTP/1.1 200 OK\r\nContent-Length: {}", robots.len()),
                None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0".to_owned(),
            };
            let robots = case.robots.as_deref().unwrap_or_default();
            let answer = format!("{answer}\r\nConnection: close\r\n\r\n{robots}");
            peer.send(answer.into_bytes());
            // The gate may close the connection without reading everything.
            let _ = peer.sent().await;
            let _ = peer.wait(|got| got.ended.then_some(())).await;
        }
    };
    let path = format!("/api/v1/decide?agent=TestBot&url={scheme}://{authority}/");
    // A gate with short time-outs may fail at the first attempt.
    let request = async {
        loop {
            let decided = gate.admin(&path).await;
            assert_eq!(decided.status, 200, "{}", decided.text());
            if decided.json()["reason"] != "unreachable" {
                return;
            }
        }
    };
    tokio::select! {
        () = request => {}
        () = serve => {}
    }
}

/// The same time limit as in [`Peer`].
const PATIENCE: Duration = Duration::from_secs(10);
