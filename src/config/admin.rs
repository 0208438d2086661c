//! `[admin]`: where the admin API listens, and its token.
//!
//! This module opens no socket. It reads only the token file, and never shows the token.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checker::{Checker, Reads};
use super::proxy::{self, Proxy};
use super::table::Table;
use crate::files::{self, SecretError};
use subtle::ConstantTimeEq as _;

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3180);
/// Allowed length of a token in bytes. A shorter one could be guessed.
const TOKEN_BYTES: RangeInclusive<usize> = 16..=4096;

/// The `[admin]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Addresses to listen on. If the list is empty, only the socket next to the cache file leads to the admin API.
    pub listen: Vec<SocketAddr>,
    /// The token that clients of the admin listener must present. Without a token, the API can listen only on loopback
    /// addresses.
    pub token: Option<AdminToken>,
    pub token_file: Option<PathBuf>,
}

/// A bearer token (RFC 6750 §2.1), compared in constant time and never shown.
#[derive(Clone)]
pub struct AdminToken(Arc<str>);

// === impl Admin ===

impl Admin {
    pub(super) fn read(table: &Table<'_>, proxy: &Proxy) -> Self {
        let checker = table.checker;
        let listen = table.texts("listen");
        table.has_default("listen", DEFAULT_LISTEN.to_string());
        let raw = table.text("token-file");
        let token_file = raw.as_ref().and_then(|path| checker.path(path));
        let token = match (&raw, &token_file) {
            (Some(raw), Some(path)) if checker.reads == Reads::All => checker.taken(raw.span(), AdminToken::read(path)),
            _ => None,
        };
        let listen = match listen {
            None => vec![DEFAULT_LISTEN],
            Some(listen) if listen.get_ref().is_empty() => Vec::new(),
            Some(listen) => {
                let span = listen.span();
                let addresses = proxy::addresses(listen, DEFAULT_LISTEN, checker);
                check_reach(&addresses, &span, raw.is_some(), checker);
                check_apart(&addresses, &span, proxy, checker);
                addresses
            }
        };
        Self {
            listen,
            token,
            token_file,
        }
    }
}

/// Without a token, only this machine may reach the admin API, because the API shows which sites bots visit.
fn check_reach(addresses: &[SocketAddr], span: &Range<usize>, has_token: bool, checker: &Checker<'_>) {
    let open = addresses
        .iter()
        .find(|address| !address.ip().to_canonical().is_loopback());
    if let Some(open) = open.filter(|_| !has_token) {
        checker.complain(
            span.clone(),
            format!(
                "other machines can reach {open}, so the admin API needs a token; add token-file = \"admin-token\" to \
                 [admin], or listen only on \"127.0.0.1:{}\"",
                open.port()
            ),
        );
    }
}

fn check_apart(addresses: &[SocketAddr], span: &Range<usize>, proxy: &Proxy, checker: &Checker<'_>) {
    let tls = proxy.tls.iter().flat_map(|tls| &tls.listen);
    let tls = tls.map(|address| ("proxy.tls.listen", address));
    let plain = proxy.listen.iter().map(|address| ("proxy.listen", address));
    // Two listeners may both have port 0, because the system chooses a different port for each.
    let taken = plain
        .chain(tls)
        .find(|(_, one)| one.port() != 0 && addresses.contains(one));
    if let Some((key, both)) = taken {
        let message = format!("{key} uses {both} too; write another port for operators");
        checker.complain(span.clone(), message);
    }
}

// === impl AdminToken ===

impl AdminToken {
    /// Reads the token from the first line of a file that other users cannot access. No error contains the token.
    fn read(path: &Path) -> Result<Self, String> {
        let (file, low, high) = (path.display(), TOKEN_BYTES.start(), TOKEN_BYTES.end());
        let bytes = files::read_secret(path).map_err(|error| match &error {
            SecretError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                format!("{error}, or create the file with \"(umask 77; openssl rand -hex 32 > {file})\"")
            }
            _ => error.to_string(),
        })?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let token = str::from_utf8(line.trim_ascii())
            .ok()
            .filter(|token| TOKEN_BYTES.contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic()));
        token.map(|token| Self(token.into())).ok_or_else(|| {
            format!(
                "the first line of {file} is not a token; write {low} to {high} ASCII letters, digits and \
                 punctuation marks without white space, such as \"openssl rand -hex 32\" prints"
            )
        })
    }

    /// Returns whether `presented` is the token. An attacker who measures how long this takes learns only whether the
    /// length is right.
    pub fn is(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl PartialEq for AdminToken {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.0.as_bytes())
    }
}

impl Eq for AdminToken {}
