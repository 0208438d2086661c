//! The connection on which a request arrived: its client, its listener and, for a request inside a CONNECT, that
//! CONNECT. This module never says what the client may do.

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

#[derive(Debug, Clone)]
pub(super) struct ClientConnection {
    pub(super) client: SocketAddr,
    pub(super) certificate: Option<Arc<VerifiedCertificate>>,
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) listener: Listener,
    pub(super) outer_connect: Option<Arc<OuterConnect>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Listener {
    /// The local address is looked up only when it is needed.
    pub(super) socket: Option<Arc<SocketDigest>>,
    pub(super) tls: bool,
}

#[derive(Debug)]
pub(super) struct VerifiedCertificate {
    pub(super) certificate: ClientCertificate,
    /// The `proxy.tls.client-roots` by which the certificate was verified.
    pub(super) roots: Arc<[CertificateDer<'static>]>,
}

#[derive(Debug)]
pub(super) struct OuterConnect {
    pub(super) origin: Origin,
    /// The valid credential in the CONNECT, if it has one. It counts as the credential of the requests in the tunnel.
    pub(super) credential_record: Option<CredentialRecord>,
    pub(super) user_agent: Option<HeaderValue>,
    /// The server name in the tunnel's TLS handshake (RFC 6066 §3), if it is not the CONNECT's host.
    pub(super) other_name: OnceLock<Box<str>>,
    pub(super) resets: Resets,
    /// Set when the client ends the HTTP/2 connection in the tunnel, or when that connection breaks.
    pub(super) client_ended: Arc<AtomicBool>,
}

// === impl ClientConnection ===

impl ClientConnection {
    pub(super) fn direct(client: SocketAddr, guard: Arc<ConnectionGuard>, listener: Listener) -> Self {
        Self {
            client,
            listener,
            certificate: None,
            guard,
            outer_connect: None,
        }
    }

    pub(super) fn client_for_log(&self) -> SocketAddr {
        self.guard.for_log(self.client)
    }

    pub(super) fn inside(&self, outer_connect: Arc<OuterConnect>) -> Self {
        Self {
            outer_connect: Some(outer_connect),
            ..self.clone()
        }
    }

    /// Returns the client's certificate, unless it has expired or `proxy.tls.client-roots` has changed since the
    /// handshake.
    pub(super) fn certificate(&self, proxy: &Proxy, now: impl Fn() -> SystemTime) -> Option<&ClientCertificate> {
        let vouched = self.certificate.as_deref()?;
        let roots = &proxy.tls.as_ref()?.client_roots;
        let trusted = Arc::ptr_eq(roots, &vouched.roots) || *roots == vouched.roots;
        Some(&vouched.certificate).filter(|certificate| trusted && certificate.holds(now()))
    }

    /// Counts an HTTP/2 request that the client cancelled. A client that cancels too many is disconnected, because a
    /// cancelled request costs robotgate more work than the client.
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

    /// Notes `name` if it is not the CONNECT's host. All requests in the tunnel are then refused, because they could be
    /// meant for either host.
    pub(super) fn note_server_name(&self, name: &str) {
        if !self.origin.host.matches(name) {
            // Cannot fail: a TLS handshake requests only one name.
            let _ = self.other_name.set(name.into());
        }
    }
}
