//! The connections to origins ([`Origins`]): made, kept for the next request (`pool`), shared by HTTP/2 (`sharing`, [`http2`]);
//! one request and its response on one of them ([`Server`], over [`Http1`] or HTTP/2); and what goes wrong then ([`Fault`]).
//! The fetcher of robots.txt files and the gate use the same connections.

mod certificate;
mod fault;
mod http1;
pub mod http2;
mod origins;
mod pool;
mod server;
mod sharing;

use std::{net::SocketAddr, time::Duration};

use pingora::{
    connectors::TransportConnector,
    protocols::{ALPN, Stream},
    upstreams::peer::HttpPeer,
};

pub(crate) use self::certificate::in_words as certificate_fault;
pub use self::{
    fault::Fault,
    http1::Http1,
    origins::{Origins, Reached, Wanted},
    server::{Again, Content, Server},
};
use crate::{
    origin::{Host, Origin, Scheme},
    text::words,
};

words! {
    /// The one list of the ways in which an exchange fails, as the `Proxy-Status` field, the audit log and the metrics name
    /// them: an error type of RFC 9209 §2.3, or one of robotgate's own where that has none.
    pub enum ProxyError {
        DnsTimeout = "dns_timeout",
        DnsError = "dns_error",
        DestinationIpProhibited = "destination_ip_prohibited",
        DestinationIpUnroutable = "destination_ip_unroutable",
        ConnectionRefused = "connection_refused",
        ConnectionTerminated = "connection_terminated",
        ConnectionTimeout = "connection_timeout",
        ConnectionReadTimeout = "connection_read_timeout",
        ConnectionWriteTimeout = "connection_write_timeout",
        TlsProtocolError = "tls_protocol_error",
        TlsCertificateError = "tls_certificate_error",
        TlsAlertReceived = "tls_alert_received",
        HttpRequestError = "http_request_error",
        HttpRequestDenied = "http_request_denied",
        HttpResponseIncomplete = "http_response_incomplete",
        HttpResponseTransferCoding = "http_response_transfer_coding",
        HttpProtocolError = "http_protocol_error",
        ProxyInternalError = "proxy_internal_error",
        ProxyLoopDetected = "proxy_loop_detected",
        /// The client went away before the end.
        ClientGone = "client_gone",
        /// Nothing passed through a tunnel or a WebSocket for too long.
        Idle = "idle",
        /// A tunnel or a WebSocket lasted as long as it may.
        Lifetime = "lifetime",
        /// robotgate stopped before the end.
        Aborted = "aborted",
    }
}

/// Whether the certificate of `origin` can be checked under its own name.
///
/// # Errors
/// pingora replaces underscores in the first of three labels or more, and would take the
/// certificate of that other name.
pub fn check_name(origin: &Origin) -> Result<(), Fault> {
    let Host::Name(name) = &origin.host else {
        return Ok(());
    };
    let replaced = name
        .split_once('.')
        .is_some_and(|(first, rest)| first.contains('_') && rest.contains('.'));
    match origin.scheme {
        Scheme::Https if replaced => Err(Fault::Underscore),
        Scheme::Https | Scheme::Http => Ok(()),
    }
}

/// Connects to `origin` at `address`, which the egress guard has checked, TCP and TLS together `within` that time. The
/// certificate is verified, always, for a name and for an address alike.
///
/// # Errors
/// There is no connection to be had.
pub async fn connect(
    connector: &TransportConnector,
    origin: &Origin,
    address: SocketAddr,
    alpn: ALPN,
    within: Duration,
) -> Result<Stream, Fault> {
    let peer = peer(origin, address, alpn);
    // pingora's own time-outs would start a thread that wakes up 100 times a second from then on.
    match tokio::time::timeout(within, connector.new_stream(&peer)).await {
        Ok(connected) => connected.map_err(|error| Fault::from_pingora(&error)),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}

/// The peer that stands for `origin` at `address`.
fn peer(origin: &Origin, address: SocketAddr, alpn: ALPN) -> HttpPeer {
    // pingora switches verification off for an empty server name, so an address is given as one:
    // rustls then checks it against the certificate and sends no SNI (RFC 6066 §3).
    let server_name = match &origin.host {
        Host::Name(name) => name.to_string(),
        Host::Ip(address) => address.to_string(),
    };
    let tls = origin.scheme == Scheme::Https;
    let mut peer = HttpPeer::new(address, tls, server_name);
    peer.options.alpn = alpn;
    peer
}

/// What one of `left` addresses may take to connect, of `total` for all, of which `spent` is over:
/// one that never answers must leave time for the others.
pub fn share_of(total: Duration, spent: Duration, left: usize) -> Duration {
    let left = u32::try_from(left.max(1)).unwrap_or(u32::MAX);
    (total.saturating_sub(spent) / left).max(MIN_CONNECT.min(total))
}

/// Less is no fair try.
const MIN_CONNECT: Duration = Duration::from_secs(1);
