//! The connection that a request came on: its client, its listener and, for a request inside a CONNECT, that CONNECT.
//!
//! It identifies the client, and never says what the client may do: each request is decided on its own.

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

/// A connection of a client, or a CONNECT on it.
#[derive(Debug, Clone)]
pub(super) struct ClientConnection {
    pub(super) client: SocketAddr,
    pub(super) certificate: Option<Arc<VerifiedCertificate>>,
    /// Counts the client's connection until it is dropped.
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) listener: Listener,
    pub(super) outer_connect: Option<Arc<OuterConnect>>,
}

/// The listener, as the client reached it.
#[derive(Debug, Clone, Default)]
pub(super) struct Listener {
    /// The client's connection. Its local address is looked up only when it is needed.
    pub(super) socket: Option<Arc<SocketDigest>>,
    /// Whether the listener speaks TLS (`[proxy.tls]`).
    pub(super) tls: bool,
}

/// A client's certificate, and the roots that it was checked against.
#[derive(Debug)]
pub(super) struct VerifiedCertificate {
    pub(super) certificate: ClientCertificate,
    /// `proxy.tls.client-roots` at the time of the handshake.
    pub(super) roots: Arc<[CertificateDer<'static>]>,
}

/// The CONNECT that a request came through.
#[derive(Debug)]
pub(super) struct OuterConnect {
    pub(super) origin: Origin,
    /// From the credential in the CONNECT. It says which bot is inside, and nothing of what the bot may do.
    pub(super) credential_record: Option<CredentialRecord>,
    /// The CONNECT's User-Agent, which few clients send.
    pub(super) user_agent: Option<HeaderValue>,
    /// Set if the TLS handshake in the tunnel asks for a different name (RFC 6066 §3).
    pub(super) other_name: OnceLock<Box<str>>,
    /// Cancelled requests of HTTP/2 inside.
    pub(super) resets: Resets,
    /// Set when the client ends the connection of HTTP/2 inside.
    pub(super) client_ended: Arc<AtomicBool>,
}

// === impl ClientConnection ===

impl ClientConnection {
    /// Describes a connection without a CONNECT.
    pub(super) fn direct(client: SocketAddr, guard: Arc<ConnectionGuard>, listener: Listener) -> Self {
        Self {
            client,
            listener,
            certificate: None,
            guard,
            outer_connect: None,
        }
    }

    /// Returns the client's address as the operational log may show it.
    pub(super) fn client_for_log(&self) -> SocketAddr {
        self.guard.for_log(self.client)
    }

    /// Describes a CONNECT of the same client.
    pub(super) fn inside(&self, outer_connect: Arc<OuterConnect>) -> Self {
        Self {
            outer_connect: Some(outer_connect),
            ..self.clone()
        }
    }

    /// Returns the client's certificate if it is still valid and its roots are still trusted.
    pub(super) fn certificate(&self, proxy: &Proxy, now: impl Fn() -> SystemTime) -> Option<&ClientCertificate> {
        let vouched = self.certificate.as_deref()?;
        let roots = &proxy.tls.as_ref()?.client_roots;
        let trusted = Arc::ptr_eq(roots, &vouched.roots) || *roots == vouched.roots;
        Some(&vouched.certificate).filter(|certificate| trusted && certificate.holds(now()))
    }

    /// Counts a request that its client cancelled, which HTTP/2 makes cheap.
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

    /// Notes the name that the TLS handshake in the tunnel asks for, if it is not the CONNECT's host. The requests
    /// inside cannot be decided on then, because two readers could disagree on their host. TLS without a name does no
    /// harm: the requests inside are decided on the CONNECT's host, and robotgate names that host to the site.
    pub(super) fn note_server_name(&self, name: &str) {
        if !self.origin.host.matches(name) {
            // A connection asks for only one name, so this is set once.
            let _ = self.other_name.set(name.into());
        }
    }
}
