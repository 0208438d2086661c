//! A name server over UDP, which the tests' proxies use. Every name resolves to 127.0.0.1 unless a test changes that.
//!
//! Answers have a TTL of zero, so that nobody caches them and a change takes effect immediately. Only
//! [`DnsAnswer::ForAnHour`] can be cached.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{net::UdpSocket, task::JoinHandle};

/// What the name server answers when it is asked for a name.
#[derive(Clone)]
pub enum DnsAnswer {
    /// These addresses. If there are none, the answer is empty (NODATA).
    Addresses(Vec<IpAddr>),
    /// The first query of a type gets the first list of addresses, the second query the second list, and so on. All
    /// further queries get the last list.
    Changing(Vec<Vec<IpAddr>>),
    /// One address of each type, which can be cached for an hour. A query for a type without an address gets a server
    /// failure.
    ForAnHour {
        ipv4: Option<Ipv4Addr>,
        ipv6: Option<Ipv6Addr>,
    },
    NoSuchName,
    ServerFailure,
    Silence,
}

pub struct Dns {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Zone {
    answers: HashMap<String, DnsAnswer>,
    queries: HashMap<(String, u16), usize>,
}

// === impl Dns ===

impl Dns {
    pub async fn start() -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        let zone = Arc::new(Mutex::new(Zone::default()));
        let task = tokio::spawn(serve(socket, zone.clone()));
        Self { address, zone, task }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer for `name`.
    pub fn answer(&self, name: &str, answer: DnsAnswer) {
        self.zone.lock().answers.insert(name.to_ascii_lowercase(), answer);
    }

    /// Makes `name` resolve to this address.
    pub fn point(&self, name: &str, address: impl Into<IpAddr>) {
        self.answer(name, DnsAnswer::Addresses(vec![address.into()]));
    }

    /// Returns how often the IPv4 address of `name` was asked for.
    pub fn queries(&self, name: &str) -> usize {
        self.zone
            .lock()
            .queries
            .get(&(name.to_ascii_lowercase(), A))
            .copied()
            .unwrap_or(0)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, zone: Arc<Mutex<Zone>>) {
    let mut packet = [0; 4096];
    while let Ok((length, from)) = socket.recv_from(&mut packet).await {
        let reply = zone.lock().reply(&packet[..length]);
        if let Some(reply) = reply {
            // If the datagram is lost, the resolver repeats the query.
            drop(socket.send_to(&reply, from).await);
        }
    }
}

// === impl Zone ===

impl Zone {
    /// Returns the packet that answers a query packet (RFC 1035 §4), or `None` if the query gets no answer.
    fn reply(&mut self, query: &[u8]) -> Option<Vec<u8>> {
        let (name, kind, end) = question(query)?;
        let seen = self.queries.entry((name.clone(), kind)).or_default();
        *seen += 1;
        let localhost = DnsAnswer::Addresses(vec![Ipv4Addr::LOCALHOST.into()]);
        let answer = self.answers.get(&name).unwrap_or(&localhost);
        let (code, addresses) = match answer {
            DnsAnswer::Addresses(addresses) => (OK, addresses.clone()),
            DnsAnswer::Changing(sets) => (OK, sets.get(*seen - 1).or(sets.last()).cloned().unwrap_or_default()),
            DnsAnswer::ForAnHour { ipv4, ipv6 } => {
                let ipv4 = ipv4.map(IpAddr::V4).filter(|_| kind == A);
                let address = ipv4.or(ipv6.map(IpAddr::V6).filter(|_| kind == AAAA));
                (address.map_or(SERVFAIL, |_| OK), Vec::from_iter(address))
            }
            DnsAnswer::NoSuchName => (NXDOMAIN, vec![]),
            DnsAnswer::ServerFailure => (SERVFAIL, vec![]),
            DnsAnswer::Silence => return None,
        };
        let seconds = match answer {
            DnsAnswer::ForAnHour { .. } => 60 * 60,
            _ => 0,
        };
        let record = |&address| record(address, kind, seconds);
        let records: Vec<Vec<u8>> = addresses.iter().filter_map(record).collect();
        let mut reply = query[..2].to_vec();
        reply.extend([0x85, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
        reply.extend(&query[12..end]);
        reply.extend(records.concat());
        Some(reply)
    }
}

/// Parses the question of a query. Returns the name in lower case, the type, and the position after the question.
fn question(query: &[u8]) -> Option<(String, u16, usize)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    (query.len() >= at + 4).then(|| (labels.join("."), kind, at + 4))
}

fn record(address: IpAddr, kind: u16, seconds: u32) -> Option<Vec<u8>> {
    let bytes = match (address, kind) {
        (IpAddr::V4(v4), A) => v4.octets().to_vec(),
        (IpAddr::V6(v6), AAAA) => v6.octets().to_vec(),
        _ => return None,
    };
    let mut record = vec![0xc0, 12];
    record.extend(kind.to_be_bytes());
    record.extend([0, 1]);
    record.extend(seconds.to_be_bytes());
    record.extend([0, bytes.len() as u8]);
    record.extend(bytes);
    Some(record)
}

const A: u16 = 1;
const AAAA: u16 = 28;
const OK: u8 = 0;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
