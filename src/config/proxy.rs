//! `[proxy]` and `[proxy.tls]`: where robotgate listens, its name, the fields that it changes, its timeouts, and the
//! limits for clients.
//!
//! This module reads root certificates, but no private key. It opens no socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use rustls::pki_types::CertificateDer;

use super::checker::{Checker, List};
use super::https::roots;
use super::table::{NONE, Table};
use crate::bot::is_token;

/// An example for messages about `proxy.tls.listen`, which has no default.
const EXAMPLE_TLS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3129);
const DEFAULT_NAME: &str = "robotgate";
const THREADS: RangeInclusive<usize> = 1..=1024;

/// Allowed values of `max-header-bytes`. The maximum must be below 1 MiB, which is pingora's limit for the head and the
/// bytes that are read with it.
const HEADER_BYTES: (RangeInclusive<u64>, &str) = (1 << 10..=512 << 10, "from 1KiB to 512KiB");
/// Allowed values of `max-header-fields`. pingora accepts at most 256 fields.
const HEADER_FIELDS: RangeInclusive<usize> = 1..=256;

/// Allowed timeouts. A timeout of more than a day probably has the wrong unit.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);
/// Allowed values of `tunnel-timeout`. The WebSocket of a bot can last for weeks.
const LIFETIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(365 * 24 * 60 * 60);
const SHUTDOWNS: RangeInclusive<Duration> = Duration::ZERO..=*TIMEOUTS.end();
/// Allowed values of the limits for clients, except `max-http2-streams`. More than ten million is probably a mistake.
const COUNTS: RangeInclusive<u32> = 1..=10_000_000;
const COUNTS_USIZE: RangeInclusive<usize> = 1..=10_000_000;

/// The `[proxy]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Addresses to listen on, at least one. Only addresses with port 0 can occur twice.
    pub listen: Vec<SocketAddr>,
    /// Number of worker threads, 1 to 1024; by default one for each core.
    pub threads: usize,
    /// The name of this proxy in the fields Via (RFC 9110 §7.6.3) and Proxy-Status (RFC 9209 §2). It is a token.
    pub name: Arc<str>,
    /// Whether robotgate adds itself to the Via field of forwarded requests. It always adds itself to that of forwarded
    /// responses.
    pub via: bool,
    /// Whether all responses to allowed requests have a `Robots-Decision` field. If false, such a response has it only
    /// if the site forbids a use of the content.
    pub annotate_allowed: bool,
    /// Names of the request fields that are not forwarded.
    pub strip: Vec<HeaderName>,
    pub head: HeadLimits,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// How long a client may take for a TLS handshake. For an origin's handshake, `connect_timeout` applies.
    pub handshake_timeout: Duration,
    /// How long robotgate may take to connect to an origin, including the TLS handshake.
    pub connect_timeout: Duration,
    /// How long robotgate waits for the next bytes from an origin.
    pub read_timeout: Duration,
    /// How long robotgate waits until a client or an origin accepts more bytes.
    pub write_timeout: Duration,
    /// How long robotgate keeps an idle connection to a client or an origin open.
    pub idle_timeout: Duration,
    /// How long a tunnel or a WebSocket may be idle.
    pub tunnel_idle_timeout: Duration,
    /// How long a tunnel or a WebSocket may last.
    pub tunnel_timeout: Duration,
    /// How long a client may pause in the middle of its request's content.
    pub body_timeout: Duration,
    /// How long open exchanges may continue after robotgate begins to stop. Zero ends them immediately.
    pub shutdown_timeout: Duration,
    pub limits: ClientLimits,
    pub tls: Option<Tls>,
}

/// Limits of the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Maximum number of bytes from the request line to the empty line.
    pub bytes: usize,
    pub fields: usize,
}

/// Limits for clients in `[proxy]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Maximum number of connections of all clients together.
    pub connections: usize,
    /// Maximum number of connections of one client.
    pub client_connections: usize,
    /// Maximum number of requests of one client at the same time. A tunnel counts as one request.
    pub client_requests: usize,
    /// Maximum number of robots.txt and `tdmrep.json` files that robotgate fetches, or waits to fetch, for one client
    /// at the same time.
    pub client_fetches: usize,
    /// Maximum number of certificates per minute, on average, that one client's CONNECTs can make robotgate issue.
    pub client_leaves: u32,
    /// After this number of requests on one connection, robotgate closes the connection gracefully.
    pub connection_requests: u32,
    /// Maximum number of requests at the same time on one HTTP/2 connection.
    pub http2_streams: u32,
    /// How many requests a client may cancel on one HTTP/2 connection in ten seconds on average.
    pub http2_resets: u32,
}

/// The `[proxy.tls]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Addresses to listen on, at least one. Only addresses with port 0 can occur twice.
    pub listen: Vec<SocketAddr>,
    /// The proxy's certificate chain, without the root; PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The root certificates with which robotgate checks clients' certificates. If empty, robotgate asks clients for no
    /// certificate.
    pub client_roots: Arc<[CertificateDer<'static>]>,
}

// === impl Proxy ===

impl Proxy {
    /// The address on which robotgate listens if `proxy.listen` is not set.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

    pub(super) fn read(table: &Table<'_>) -> Self {
        let timeout = |key, seconds| table.duration(key, Duration::from_secs(seconds), TIMEOUTS);
        let listen = table.texts("listen");
        table.has_default("listen", Self::DEFAULT_LISTEN.to_string());
        let listen = listen.map_or_else(
            || vec![Self::DEFAULT_LISTEN],
            |raw| addresses(raw, Self::DEFAULT_LISTEN, table.checker),
        );
        let cores = table.checker.environment.cores.clamp(*THREADS.start(), *THREADS.end());
        let name = table.parsed("name", pseudonym);
        table.has_default("name", DEFAULT_NAME);
        let strip = table.checker.each(table.list("strip"), stripped_field);
        table.has_default("strip", NONE);
        let of_threads = [" threads", ", or remove the key for one thread per core"];
        Self {
            threads: table.number_of(of_threads, "threads", cores, THREADS),
            name: name.unwrap_or(DEFAULT_NAME.into()),
            via: table.flag_or("via", true),
            annotate_allowed: table.flag_or("annotate-allowed", true),
            strip,
            head: HeadLimits {
                // The value is at most 512 KiB, so the cast loses nothing.
                bytes: table.size("max-header-bytes", 64 << 10, HEADER_BYTES) as usize,
                fields: table.number("max-header-fields", 128, HEADER_FIELDS),
            },
            header_timeout: timeout("header-timeout", 30),
            handshake_timeout: timeout("handshake-timeout", 10),
            connect_timeout: timeout("connect-timeout", 10),
            read_timeout: timeout("read-timeout", 60),
            write_timeout: timeout("write-timeout", 60),
            idle_timeout: timeout("idle-timeout", 60),
            tunnel_idle_timeout: timeout("tunnel-idle-timeout", 600),
            tunnel_timeout: table.duration("tunnel-timeout", Duration::from_secs(24 * 60 * 60), LIFETIMES),
            body_timeout: timeout("body-timeout", 60),
            shutdown_timeout: table.duration("shutdown-timeout", Duration::from_secs(30), SHUTDOWNS),
            limits: ClientLimits {
                connections: table.number("max-connections", 65_536, COUNTS_USIZE),
                client_connections: table.number("max-client-connections", 4_096, COUNTS_USIZE),
                client_requests: table.number("max-client-requests", 4_096, COUNTS_USIZE),
                client_fetches: table.number("max-client-fetches", 4_096, COUNTS_USIZE),
                client_leaves: table.number("max-client-leaves", 6_000, COUNTS),
                connection_requests: table.number("max-connection-requests", 10_000, COUNTS),
                http2_streams: table.number("max-http2-streams", 100, 1..=10_000),
                http2_resets: table.number("max-http2-resets", 200, COUNTS),
            },
            tls: table.table("tls", |tls| Tls::read(tls, &listen)),
            listen,
        }
    }
}

// === impl Tls ===

impl Tls {
    /// Returns `None` if the section is missing or incomplete. `plain` are the addresses of `proxy.listen`.
    fn read(table: &Table<'_>, plain: &[SocketAddr]) -> Option<Self> {
        table.span()?;
        let checker = table.checker;
        let listen = table
            .required("listen", &format!("\"{EXAMPLE_TLS}\""), Table::texts)
            .map(|listen| {
                let span = listen.span();
                let addresses = addresses(listen, EXAMPLE_TLS, checker);
                // Two listeners may both have port 0, because the system chooses a different port for each.
                if let Some(both) = addresses.iter().find(|one| one.port() != 0 && plain.contains(one)) {
                    checker.complain(
                        span,
                        format!("proxy.listen uses {both} too; write another port for TLS"),
                    );
                }
                addresses
            });
        let certificate = table.required("certificate", r#""proxy.pem""#, Table::text);
        let certificate = certificate.and_then(|path| checker.path(&path));
        let raw_key = table.required("key", r#""proxy-key.pem""#, Table::text);
        let key = raw_key.as_ref().and_then(|path| checker.path(path));
        if let Some(raw) = raw_key.filter(|_| key.is_some() && key == certificate) {
            checker.complain(raw.span(), "certificate and key name the same file; change one of them");
        }
        let client_roots = roots(table, "client-roots").into();
        Some(Self {
            listen: listen?,
            certificate: certificate?,
            key: key?,
            client_roots,
        })
    }
}

/// Error messages suggest the address `example`. For an empty list, which is an error, the result is also `example`.
pub(super) fn addresses(raw: List<'_>, example: SocketAddr, checker: &Checker<'_>) -> Vec<SocketAddr> {
    if raw.get_ref().is_empty() {
        checker.complain(
            raw.span(),
            "an empty list would listen nowhere; write at least one address",
        );
        return vec![example];
    }
    let mut addresses = Vec::new();
    for item in raw.into_inner() {
        let Some(address) = checker.parsed(&item, |text| address(text, example)) else {
            continue;
        };
        // An address with port 0 may occur twice, because the system chooses a different port for each.
        if address.port() != 0 && addresses.contains(&address) {
            checker.complain(item.span(), format!("{address} is in this list twice; remove one"));
        }
        addresses.push(address);
    }
    addresses
}

fn address(text: &str, example: SocketAddr) -> Result<SocketAddr, String> {
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
            r#""{text}" has no address; write "127.0.0.1:{port}" for this machine only, "[::]:{port}" for every network"#
        ));
    }
    if text.parse::<u16>().is_ok() {
        return Err(format!(r#""{text}" has no address; {shape}, like "127.0.0.1:{text}""#));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => Err(format!(r#""{text}" has no port; write "{text}:{}""#, example.port())),
        Ok(IpAddr::V6(_)) => Err(format!(r#""{text}" has no port; write "[{text}]:{}""#, example.port())),
        Err(_) if text.starts_with("localhost:") => Err(format!(
            r#""{text}" is a host name; write an IP address, like "{}""#,
            text.replacen("localhost", "127.0.0.1", 1)
        )),
        Err(_) => Err(format!(
            r#""{text}" is not an address to listen on; {shape}, like "{example}""#
        )),
    }
}

fn stripped_field(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
        format!(r#""{text}" is not the name of a request field; write it without a colon, like "X-Original-URL""#)
    })?;
    match name.as_str() {
        "via" => Err(format!(
            r#""{text}" cannot be stripped: robotgate detects loops of proxies by it"#
        )),
        "host" | "content-length" | "transfer-encoding" | "trailer" | "expect" => Err(format!(
            r#""{text}" cannot be stripped: HTTP itself uses it to transmit the request"#
        )),
        "connection"
        | "keep-alive"
        | "proxy-connection"
        | "proxy-authorization"
        | "proxy-authenticate"
        | "te"
        | "upgrade" => Err(format!(
            r#""{text}" cannot be stripped: it is about one connection, and robotgate handles it itself"#
        )),
        _ => Ok(name),
    }
}

fn pseudonym(text: &str) -> Result<Arc<str>, String> {
    // In Proxy-Status, a token must begin with a letter or `*` (RFC 9651 §3.3.4). robotgate accepts only a letter.
    if is_token(text) && text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Ok(text.into());
    }
    Err(format!(
        r#""{text}" is not a name that Via and Proxy-Status can contain; write one word of ASCII letters, digits, "-", "_" and "." that begins with a letter, like "robotgate""#
    ))
}
