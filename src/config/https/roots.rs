//! Files of root certificates: `https.extra-roots`, trusted beside the system's, and `proxy.tls.client-roots`.
//!
//! It reads files and judges whether they hold certificates that can be trusted; it trusts none by itself.

use rustls::pki_types::CertificateDer;
use toml::Spanned;

use crate::config::check::Checker;
use crate::{pem, regular_file};

/// The certificates of all files, in order.
pub(in crate::config) fn read(
    written: Option<Spanned<Vec<Spanned<String>>>>,
    checker: &mut Checker<'_>,
) -> Vec<CertificateDer<'static>> {
    let mut roots = Vec::new();
    for item in written.map(Spanned::into_inner).unwrap_or_default() {
        let Some(path) = checker.path(&item) else { continue };
        let bytes = match regular_file::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                checker.complain(item.span(), format!("cannot read {}: {error}", path.display()));
                continue;
            }
        };
        match pem::roots(&bytes) {
            Ok(certificates) => roots.extend(certificates),
            Err(why) => checker.complain(item.span(), format!("{} {why}", path.display())),
        }
    }
    roots
}
