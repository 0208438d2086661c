//! `[https]`: what a CONNECT gets, whose certificates robotgate shows and whose it trusts.
//!
//! It makes no certificate. The only files that it reads are `extra-roots`.

use std::path::PathBuf;
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use toml::Spanned;

use super::check::Checker;
use super::written;
use crate::decision::{HttpsMode, Unverifiable};

pub(super) mod roots;
mod tunnel;

pub use tunnel::TunnelException;

/// The `[https]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Https {
    /// What a CONNECT gets.
    pub mode: HttpsMode,
    /// What settles a tunnel that only part of a robots.txt forbids.
    pub unverifiable: Unverifiable,
    /// The authority's certificate, PEM. Nothing says yet that the file is there.
    pub ca_certificate: PathBuf,
    /// The authority's private key, PEM.
    pub ca_key: PathBuf,
    /// Certificates trusted beside the system's roots; read when the configuration is.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Hosts that are let through as tunnels, in the file's order; see [`Https::tunnel_exception`].
    pub tunnels: Vec<TunnelException>,
}

// === impl Https ===

impl Https {
    pub(super) fn check(written: written::Https, checker: &mut Checker<'_>) -> Self {
        let key_at = written
            .ca_key
            .as_ref()
            .or(written.ca_certificate.as_ref())
            .map(Spanned::span);
        let ca_certificate = checker.path_or_state(written.ca_certificate, "ca.pem");
        let ca_key = checker.path_or_state(written.ca_key, "ca-key.pem");
        if let Some(span) = key_at.filter(|_| ca_certificate == ca_key) {
            checker.complain(
                span,
                "ca-certificate and ca-key name the same file; the key needs one of its own",
            );
        }
        Self {
            mode: written.mode,
            unverifiable: written.unverifiable,
            ca_certificate,
            ca_key,
            extra_roots: roots::read(written.extra_roots, checker),
            tunnels: written
                .tunnel
                .into_iter()
                .filter_map(|entry| TunnelException::check(entry, checker))
                .collect(),
        }
    }

    /// The entry that lets this host through as a tunnel at this time, if one does.
    ///
    /// The host is a name in ASCII (punycode) or an IP address, without a port; case, a trailing dot and an IPv6
    /// address's brackets do not count.
    pub fn tunnel_exception(&self, host: &str, now: SystemTime) -> Option<&TunnelException> {
        self.tunnels
            .iter()
            .find(|tunnel| tunnel.holds(now) && tunnel.host.covers(host))
    }
}
