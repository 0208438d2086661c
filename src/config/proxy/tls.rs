//! `[proxy.tls]`: the listeners that speak TLS with their clients, who use them as an `https://` proxy.
//!
//! It reads the roots that vouch for clients' certificates, and no key; it binds nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use toml::Spanned;

use crate::config::check::Checker;
use crate::config::https::roots;
use crate::config::written::{self, Table};

/// The `[proxy.tls]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Addresses to listen on, at least one, each once.
    pub listen: Vec<SocketAddr>,
    /// The certificate that clients are shown, and those between it and their root; PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Who vouches for the certificates of clients; where nobody does, none is asked for.
    pub client_roots: Arc<[CertificateDer<'static>]>,
}

// === impl Tls ===

impl Tls {
    pub(super) fn check(
        written: Spanned<Table<written::Tls>>,
        plain: &[SocketAddr],
        checker: &mut Checker<'_>,
    ) -> Option<Self> {
        let table = written.span();
        let Table(written) = written.into_inner();
        let listen = checker.required(written.listen, &table, ("listen", r#""127.0.0.1:3129""#));
        let listen = listen.map(|listen| {
            let span = listen.span();
            let addresses = super::listen(listen, checker);
            // Port 0 is another port each time.
            if let Some(both) = addresses.iter().find(|one| one.port() != 0 && plain.contains(one)) {
                checker.complain(
                    span,
                    format!("{both} is in proxy.listen too; TLS needs a port of its own"),
                );
            }
            addresses
        });
        let certificate = checker.required(written.certificate, &table, ("certificate", r#""proxy.pem""#));
        let certificate = certificate.and_then(|path| checker.path(&path));
        let key_at = written.key.as_ref().map(Spanned::span);
        let key = checker.required(written.key, &table, ("key", r#""proxy-key.pem""#));
        let key = key.and_then(|path| checker.path(&path));
        if let Some(span) = key_at.filter(|_| key.is_some() && key == certificate) {
            checker.complain(
                span,
                "certificate and key name the same file; the key needs one of its own",
            );
        }
        let client_roots = roots::read(written.client_roots, checker).into();
        Some(Self {
            listen: listen?,
            certificate: certificate?,
            key: key?,
            client_roots,
        })
    }
}
