//! How a request came here: from which client and, inside a CONNECT, through which one. pingora carries it from the
//! connection to each request on it, over HTTP/1.1 and HTTP/2 alike.
//!
//! It says who came, and nothing of what they may do: each request is decided on its own.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::{Instant, SystemTime},
};

use http::HeaderValue;
use pingora::protocols::{Digest, raw_connect::ProxyDigest};
use pingora_http::ResponseHeader;
use rustls::pki_types::CertificateDer;

use super::{clients::Visit, limits::Resets};
use crate::{
    bot::{ClientCertificate, Voucher},
    config::Proxy,
    origin::Origin,
};

/// How requests come by one connection, or by one CONNECT over it.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) client: SocketAddr,
    pub(super) certificate: Option<Arc<Vouched>>,
    /// The client's place among those that are connected.
    pub(super) visit: Arc<Visit>,
    pub(super) through: Option<Arc<Through>>,
}

/// The certificate that a client has shown, and who vouched for it.
#[derive(Debug)]
pub(super) struct Vouched {
    pub(super) certificate: ClientCertificate,
    /// `proxy.tls.client-roots` at that time.
    pub(super) roots: Arc<[CertificateDer<'static>]>,
}

/// The CONNECT that a request came through.
#[derive(Debug)]
pub(super) struct Through {
    /// What it named.
    pub(super) origin: Origin,
    /// Of the credential that it came with: it says who is inside, and nothing of what they may.
    pub(super) voucher: Option<Voucher>,
    /// The CONNECT's User-Agent, which few clients send.
    pub(super) user_agent: Option<HeaderValue>,
    /// Set where the TLS inside asks for another name (RFC 6066 §3).
    pub(super) other_name: OnceLock<Box<str>>,
    /// Of HTTP/2 inside.
    pub(super) resets: Resets,
}

// === impl Arrival ===

impl Arrival {
    /// For requests that come over a connection of their own.
    pub(super) fn direct(client: SocketAddr, visit: Arc<Visit>) -> Self {
        Self {
            client,
            certificate: None,
            visit,
            through: None,
        }
    }

    /// For requests of the same client that come through a CONNECT.
    pub(super) fn through(&self, through: Arc<Through>) -> Self {
        Self {
            through: Some(through),
            ..self.clone()
        }
    }

    /// The certificate of the client, while it holds and those who vouched for it are still trusted.
    pub(super) fn certificate(&self, proxy: &Proxy, now: SystemTime) -> Option<&ClientCertificate> {
        let vouched = self.certificate.as_deref()?;
        let roots = &proxy.tls.as_ref()?.client_roots;
        let trusted = Arc::ptr_eq(roots, &vouched.roots) || *roots == vouched.roots;
        Some(&vouched.certificate).filter(|certificate| trusted && certificate.holds(now))
    }

    /// What a request's connection carries.
    pub(super) fn of(digest: Option<&Digest>) -> Option<&Self> {
        let proxy_digest = digest?.proxy_digest.as_ref()?;
        proxy_digest.user_data.as_ref()?.downcast_ref()
    }

    /// As pingora carries it.
    pub(super) fn into_digest(self) -> ProxyDigest {
        // The response is never looked at.
        let response = match ResponseHeader::build(200, None) {
            Ok(response) => response,
            Err(_) => unreachable!("200 is a status"),
        };
        ProxyDigest::new(Box::new(response), Some(Box::new(self)))
    }
}

// === impl Through ===

impl Through {
    pub(super) fn new(
        origin: Origin,
        voucher: Option<Voucher>,
        user_agent: Option<HeaderValue>,
        http2_resets: u32,
    ) -> Self {
        Self {
            origin,
            voucher,
            user_agent,
            other_name: OnceLock::new(),
            resets: Resets::new(http2_resets, Instant::now()),
        }
    }

    /// Notes the name that the TLS inside asks for. What two readers could take for another host than the CONNECT named
    /// is no name that requests can be decided under. TLS without a name does no harm here: the requests inside are
    /// decided on the CONNECT's host, and robotgate names that host to the site itself.
    pub(super) fn asked_for(&self, name: &str) {
        if !self.origin.host.is_meant_by(name) {
            // Each connection is asked for one name.
            let _ = self.other_name.set(name.into());
        }
    }
}
