//! Opens connections to origins ([`Origins`]), keeps HTTP/1.1 connections for the next request (`pool`), and lets
//! requests share HTTP/2 connections (`sharing`, [`http2`]). [`Server`] is one request and its response, over
//! [`Http1`], HTTP/2 or [`Ftp`].

mod certificate;
mod fault;
mod ftp;
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
    ftp::Ftp,
    http1::Http1,
    origins::{OriginConnection, Origins, Wanted},
    server::{Content, Repeat, Server},
};
use crate::{
    origin::{Host, Origin, Scheme},
    text::words,
};

words! {
    /// The ways in which a request and its response can fail. All but the last four are error types of RFC 9209 §2.3.
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
        ClientGone = "client_gone",
        /// A tunnel or a WebSocket was idle for too long.
        Idle = "idle",
        /// A tunnel or a WebSocket reached its maximum lifetime.
        Lifetime = "lifetime",
        /// robotgate cut off the exchange before its end, for example because it stopped.
        Aborted = "aborted",
    }
}

impl ProxyError {
    /// Returns whether the site, or the network between robotgate and the site, caused the error. An address that
    /// robotgate prohibits counts as the site's error.
    pub fn is_of_site(self) -> bool {
        !matches!(
            self,
            Self::HttpRequestError
                | Self::HttpRequestDenied
                | Self::ProxyInternalError
                | Self::ProxyLoopDetected
                | Self::ClientGone
                | Self::Idle
                | Self::Lifetime
                | Self::Aborted
        )
    }
}

/// Checks that pingora would verify the certificate of `origin` for the origin's name.
///
/// # Errors
/// Fails for an https origin if the name has three or more labels and an underscore in the first one. pingora would
/// replace this underscore, and verify the certificate for another name.
pub fn check_name(origin: &Origin) -> Result<(), Fault> {
    let Host::Name(name) = &origin.host else {
        return Ok(());
    };
    let replaced = name
        .split_once('.')
        .is_some_and(|(first, rest)| first.contains('_') && rest.contains('.'));
    match origin.scheme {
        Scheme::Https if replaced => Err(Fault::Underscore),
        Scheme::Https | Scheme::Http | Scheme::Ftp => Ok(()),
    }
}

/// Connects to `origin` at `address`, which the egress guard has checked. TCP and TLS together take at most `within`,
/// and https certificates are verified even for an IP address.
///
/// # Errors
/// Fails if the connection cannot be made.
pub async fn connect(
    connector: &TransportConnector,
    origin: &Origin,
    address: SocketAddr,
    alpn: ALPN,
    within: Duration,
) -> Result<Stream, Fault> {
    let peer = peer(origin, address, alpn);
    // Do not use pingora's own timeouts: they start a thread that wakes up 100 times a second for ever.
    match tokio::time::timeout(within, connector.new_stream(&peer)).await {
        Ok(connected) => connected.map_err(|error| Fault::from_pingora(&error)),
        Err(_) => Err(Fault::ConnectionTimeout),
    }
}

fn peer(origin: &Origin, address: SocketAddr, alpn: ALPN) -> HttpPeer {
    // pingora disables verification if the server name is empty, so pass even an IP address as the server name. rustls
    // sends no SNI for an IP address (RFC 6066 §3).
    let server_name = match &origin.host {
        Host::Name(name) => name.to_string(),
        Host::Ip(address) => address.to_string(),
    };
    let tls = origin.scheme == Scheme::Https;
    let mut peer = HttpPeer::new(address, tls, server_name);
    peer.options.alpn = alpn;
    peer
}

/// Returns how long connecting to the next of `left` untried addresses may take. This is an equal share of the
/// remaining time, but at least a second (or `total`, if `total` is shorter).
pub fn share_of(total: Duration, spent: Duration, left: usize) -> Duration {
    let left = u32::try_from(left.max(1)).unwrap_or(u32::MAX);
    (total.saturating_sub(spent) / left).max(MIN_CONNECT.min(total))
}

/// Most addresses that work respond within this time.
const MIN_CONNECT: Duration = Duration::from_secs(1);
