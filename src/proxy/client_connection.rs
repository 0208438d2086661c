//! The connection on which a request arrived: its client, its listener and, for a request inside a CONNECT, that
//! CONNECT.
//!
//! This module identifies the client, but never says what the client may do: each request is decided separately.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::{Instant, SystemTime},
};

use http::HeaderValue;
use pingora::protocols::SocketDigest;
use rustls::pki_types::CertificateDer;

use super::{clients::ConnectionGuard, limits::Resets};
use crate::{
    bot::{ClientCertificate, CredentialRecord},
    config::Proxy,
    origin::Origin,
};

/// A client's connection to a listener, or a CONNECT tunnel on that connection.
#[derive(Debug, Clone)]
pub(super) struct ClientConnection {
    pub(super) client: SocketAddr,
    pub(super) certificate: Option<Arc<VerifiedCertificate>>,
    /// Counts the client's connection as open until this guard is dropped.
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) listener: Listener,
    pub(super) outer_connect: Option<Arc<OuterConnect>>,
}

/// The listener to which the client connected.
#[derive(Debug, Clone, Default)]
pub(super) struct Listener {
    /// The socket of the client's connection. Its local address is looked up only when it is needed.
    pub(super) socket: Option<Arc<SocketDigest>>,
    /// Whether the listener speaks TLS (`[proxy.tls]`).
    pub(super) tls: bool,
}

/// A client's certificate, and the root certificates against which it was checked.
#[derive(Debug)]
pub(super) struct VerifiedCertificate {
    pub(super) certificate: ClientCertificate,
    /// The value of `proxy.tls.client-roots` at the time of the handshake.
    pub(super) roots: Arc<[CertificateDer<'static>]>,
}

/// The CONNECT that a request came through.
#[derive(Debug)]
pub(super) struct OuterConnect {
    pub(super) origin: Origin,
    /// The credential in the CONNECT. It says which bot sends the requests in the tunnel, but not what the bot may do.
    pub(super) credential_record: Option<CredentialRecord>,
    /// The User-Agent of the CONNECT. Few clients send one.
    pub(super) user_agent: Option<HeaderValue>,
    /// The server name that the client requests in the tunnel's TLS handshake (RFC 6066 §3), if that is not the
    /// CONNECT's host.
    pub(super) other_name: OnceLock<Box<str>>,
    /// Counts the requests over HTTP/2 in the tunnel that the client cancelled.
    pub(super) resets: Resets,
    /// Set when the client ends the HTTP/2 connection in the tunnel.
    pub(super) client_ended: Arc<AtomicBool>,
}

// === impl ClientConnection ===

impl ClientConnection {
    /// Describes a connection whose requests do not come through a CONNECT.
    pub(super) fn direct(client: SocketAddr, guard: Arc<ConnectionGuard>, listener: Listener) -> Self {
        Self {
            client,
            listener,
            certificate: None,
            guard,
            outer_connect: None,
        }
    }

    /// Returns the client's address for the operational log, masked if the configuration says so (`audit.mask-client`).
    pub(super) fn client_for_log(&self) -> SocketAddr {
        self.guard.for_log(self.client)
    }

    /// Describes the tunnel that `outer_connect` opened on this connection. Requests in the tunnel have the client and
    /// the listener of this connection.
    pub(super) fn inside(&self, outer_connect: Arc<OuterConnect>) -> Self {
        Self {
            outer_connect: Some(outer_connect),
            ..self.clone()
        }
    }

    /// Returns the client's certificate. Returns `None` if the client sent none, if the certificate has expired, or if
    /// `proxy.tls.client-roots` has changed since the handshake.
    pub(super) fn certificate(&self, proxy: &Proxy, now: impl Fn() -> SystemTime) -> Option<&ClientCertificate> {
        let vouched = self.certificate.as_deref()?;
        let roots = &proxy.tls.as_ref()?.client_roots;
        let trusted = Arc::ptr_eq(roots, &vouched.roots) || *roots == vouched.roots;
        Some(&vouched.certificate).filter(|certificate| trusted && certificate.holds(now()))
    }

    /// Counts a request in the tunnel that the client cancelled. A client that cancels too many is disconnected:
    /// over HTTP/2, a cancelled request costs the client almost nothing, but robotgate has already worked on it.
    pub(super) fn count_reset(&self) {
        if let Some(outer_connect) = &self.outer_connect {
            outer_connect.resets.count(Instant::now());
        }
    }
}

// === impl OuterConnect ===

impl OuterConnect {
    pub(super) fn new(
        origin: Origin,
        credential_record: Option<CredentialRecord>,
        user_agent: Option<HeaderValue>,
        http2_resets: u32,
    ) -> Self {
        Self {
            origin,
            credential_record,
            user_agent,
            other_name: OnceLock::new(),
            resets: Resets::new(http2_resets, Instant::now()),
            client_ended: Arc::default(),
        }
    }

    /// Notes the server name that the client requests in the tunnel's TLS handshake, if it differs from the CONNECT's
    /// host. robotgate then refuses all requests in the tunnel, because they could be meant for either host.
    ///
    /// A handshake without a name does no harm: robotgate decides the requests for the CONNECT's host, and names this
    /// host in its own TLS handshake with the site.
    pub(super) fn note_server_name(&self, name: &str) {
        if !self.origin.host.matches(name) {
            // `set` fails only if a name is already set. That cannot happen, because a TLS handshake requests only one
            // name.
            let _ = self.other_name.set(name.into());
        }
    }
}
