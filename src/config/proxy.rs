//! `[proxy]`: where robotgate listens, what it calls itself, and how long it waits for others.
//!
//! It binds nothing; an address that is taken is found out later.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use toml::Spanned;

use super::check::Checker;
use super::written::{self, OneOrMany};
use crate::bot::is_token;

mod limits;
mod tls;

pub use limits::Limits;
pub use tls::Tls;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3128);
const DEFAULT_NAME: &str = "robotgate";
const THREADS: RangeInclusive<usize> = 1..=1024;

const DEFAULT_HEADER_BYTES: u64 = 64 << 10;
/// Less is no room for a URL and some cookies; pingora takes no more than 1 MiB, with what was read too far.
const HEADER_BYTES: (RangeInclusive<u64>, &str) = (1 << 10..=512 << 10, "from 1KiB to 512KiB");
const DEFAULT_HEADER_FIELDS: u32 = 128;
/// pingora takes no more.
const HEADER_FIELDS: RangeInclusive<u32> = 1..=256;

/// Longer than a day is a slip of the unit, shorter than a millisecond would refuse everybody.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);
/// A bot's WebSocket may last for weeks.
const LIFETIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(365 * 24 * 60 * 60);
const SHUTDOWNS: RangeInclusive<Duration> = Duration::ZERO..=*TIMEOUTS.end();

/// The `[proxy]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Addresses to listen on, at least one, each once. Port 0 leaves the choice to the system.
    pub listen: Vec<SocketAddr>,
    /// Worker threads, 1 to 1024; by default one for each core.
    pub threads: usize,
    /// The pseudonym in Via (RFC 9110 §7.6.3) and Proxy-Status (RFC 9209 §2), a token.
    pub name: Arc<str>,
    /// Whether requests go on with an entry in Via. Responses always have one.
    pub via: bool,
    /// Whether allowed responses carry `Robots-Decision` too.
    pub annotate_allowed: bool,
    /// The fields of requests that are not forwarded.
    pub strip: Vec<HeaderName>,
    /// Bytes of the header section of a request, its first line included.
    pub max_header_bytes: usize,
    /// Fields in the header section of a request.
    pub max_header_fields: usize,
    /// How long a client may take to send the header section of a request.
    pub header_timeout: Duration,
    /// How long a TLS handshake may take, with a client or an origin.
    pub handshake_timeout: Duration,
    /// How long connecting to an origin may take.
    pub connect_timeout: Duration,
    /// How long an origin may be silent.
    pub read_timeout: Duration,
    /// How long either side may refuse to take a byte.
    pub write_timeout: Duration,
    /// How long a connection is kept without a request on it.
    pub idle_timeout: Duration,
    /// How long a tunnel or a WebSocket may be silent.
    pub tunnel_idle_timeout: Duration,
    /// How long a tunnel or a WebSocket may last.
    pub tunnel_timeout: Duration,
    /// How long a client may be silent in the middle of its request's content.
    pub body_timeout: Duration,
    /// How long open exchanges may go on after a shutdown was asked for; zero ends them at once.
    pub shutdown_timeout: Duration,
    pub limits: Limits,
    /// The listeners that speak TLS, where there are some.
    pub tls: Option<Tls>,
}

// === impl Proxy ===

impl Proxy {
    pub(super) fn check(written: written::Proxy, checker: &mut Checker<'_>) -> Self {
        let limits = Limits::check(&written, checker);
        let mut timeout = |written, seconds| checker.duration(written, Duration::from_secs(seconds), TIMEOUTS);
        let header_timeout = timeout(written.header_timeout, 30);
        let handshake_timeout = timeout(written.handshake_timeout, 10);
        let connect_timeout = timeout(written.connect_timeout, 10);
        let read_timeout = timeout(written.read_timeout, 60);
        let write_timeout = timeout(written.write_timeout, 60);
        let idle_timeout = timeout(written.idle_timeout, 60);
        let tunnel_idle_timeout = timeout(written.tunnel_idle_timeout, 600);
        let body_timeout = timeout(written.body_timeout, 60);
        let tunnel_timeout = checker.duration(written.tunnel_timeout, Duration::from_secs(24 * 60 * 60), LIFETIMES);
        let shutdown_timeout = checker.duration(written.shutdown_timeout, Duration::from_secs(30), SHUTDOWNS);

        let listen = written
            .listen
            .map_or_else(|| vec![DEFAULT_LISTEN], |written| listen(written, checker));
        let tls = written.tls.and_then(|tls| Tls::check(tls, &listen, checker));

        Self {
            listen,
            threads: threads(written.threads, checker),
            name: written
                .name
                .and_then(|name| checker.parsed(&name, pseudonym))
                .unwrap_or(DEFAULT_NAME.into()),
            via: written.via.unwrap_or(true),
            annotate_allowed: written.annotate_allowed.unwrap_or(true),
            strip: checker.each(written.strip, stripped_field),
            // At most 512 KiB.
            max_header_bytes: checker.size(written.max_header_bytes, DEFAULT_HEADER_BYTES, HEADER_BYTES) as usize,
            max_header_fields: checker.number(&written.max_header_fields, DEFAULT_HEADER_FIELDS, HEADER_FIELDS)
                as usize,
            header_timeout,
            handshake_timeout,
            connect_timeout,
            read_timeout,
            write_timeout,
            idle_timeout,
            tunnel_idle_timeout,
            tunnel_timeout,
            body_timeout,
            shutdown_timeout,
            limits,
            tls,
        }
    }
}

/// Addresses to listen on, at least one, each once.
pub(super) fn listen(written: Spanned<OneOrMany>, checker: &mut Checker<'_>) -> Vec<SocketAddr> {
    let span = written.span();
    let items = match written.into_inner() {
        OneOrMany::One(text) => vec![Spanned::new(span, text)],
        OneOrMany::Many(items) if items.is_empty() => {
            checker.complain(span, "an empty list would listen nowhere; write at least one address");
            return vec![DEFAULT_LISTEN];
        }
        OneOrMany::Many(items) => items,
    };

    let mut addresses = Vec::new();
    for item in items {
        let Some(address) = checker.parsed(&item, address) else {
            continue;
        };
        // Port 0 is another port each time.
        if address.port() != 0 && addresses.contains(&address) {
            checker.complain(item.span(), format!("{address} stands in this list twice"));
        }
        addresses.push(address);
    }
    addresses
}

/// An address with a port, and a hint for the usual ways of leaving one half out.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let shape = "write an IP address and a port";
    if let Some(port) = text
        .strip_prefix(':')
        .or_else(|| text.strip_prefix("*:"))
        .filter(|port| port.parse::<u16>().is_ok())
    {
        return Err(format!(
            r#""{text}" leaves out the address; write "127.0.0.1:{port}" for this machine only, "[::]:{port}" for every network"#
        ));
    }
    if text.parse::<u16>().is_ok() {
        return Err(format!(
            r#""{text}" leaves out the address; {shape}, like "127.0.0.1:{text}""#
        ));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => Err(format!(r#""{text}" leaves out the port; write "{text}:3128""#)),
        Ok(IpAddr::V6(_)) => Err(format!(r#""{text}" leaves out the port; write "[{text}]:3128""#)),
        Err(_) if text.starts_with("localhost:") => Err(format!(
            r#""{text}" is a name; write "{}""#,
            text.replacen("localhost", "127.0.0.1", 1)
        )),
        Err(_) => Err(format!(
            r#""{text}" is not an address to listen on; {shape}, like "127.0.0.1:3128""#
        )),
    }
}

fn threads(written: Option<Spanned<i64>>, checker: &mut Checker<'_>) -> usize {
    let default = checker.environment().cores.clamp(*THREADS.start(), *THREADS.end());
    let Some(written) = written else { return default };
    match usize::try_from(*written.get_ref()) {
        Ok(threads) if THREADS.contains(&threads) => threads,
        _ => {
            let (low, high) = (THREADS.start(), THREADS.end());
            let message = format!(
                "{} threads cannot be; write a number from {low} to {high}, or leave it out for one for each core",
                written.get_ref()
            );
            checker.complain(written.span(), message);
            default
        }
    }
}

/// The name of a request field that need not reach the origin.
fn stripped_field(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
        format!(r#""{text}" is not the name of a field; write one without its colon, like "X-Original-URL""#)
    })?;
    match name.as_str() {
        "via" => Err(format!(
            r#""{text}" cannot be stripped: robotgate sets it itself, and loops of proxies show in it"#
        )),
        "host" | "content-length" | "transfer-encoding" | "trailer" | "expect" => Err(format!(
            r#""{text}" cannot be stripped: a request cannot be read or answered without it"#
        )),
        "connection"
        | "keep-alive"
        | "proxy-connection"
        | "proxy-authorization"
        | "proxy-authenticate"
        | "te"
        | "upgrade" => Err(format!(
            r#""{text}" cannot be stripped: it is for one connection, and robotgate sees to it itself"#
        )),
        _ => Ok(name),
    }
}

fn pseudonym(text: &str) -> Result<Arc<str>, String> {
    // Proxy-Status wants a token that begins with a letter (RFC 9651 §3.3.4).
    if is_token(text) && text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Ok(text.into());
    }
    Err(format!(
        r#""{text}" cannot stand in Via and Proxy-Status; write one word that begins with a letter, of letters, digits, "-", "_" and ".", like "robotgate""#
    ))
}
