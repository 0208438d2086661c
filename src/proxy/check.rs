//! Whether the proxy could be put up by a configuration: all that a start or a reload would fail for, in the same words,
//! as far as it can be told beside a proxy that runs. It makes nothing and listens nowhere.

use std::time::SystemTime;

use super::{
    generation::SetupError,
    listen::{self, ListenError},
    server_tls,
};
use crate::{
    audit::AuditLog,
    authority::{Authority, AuthorityError},
    config::{Config, HttpsMode},
    egress::{Resolver, Roots},
};

/// Why it could not be.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Looks at all that `config` names.
///
/// # Errors
/// What a start, or a reload, would fail for; the first of it.
pub fn check(config: &Config) -> Result<(), Unusable> {
    files(config)?;
    listen::check(config)?;
    Ok(())
}

fn files(config: &Config) -> Result<(), SetupError> {
    Resolver::new(&config.egress.dns)?;
    Roots::gather(&config.https.extra_roots)?;
    if config.https.mode == HttpsMode::Intercept {
        match Authority::load(&config.https.ca_certificate, &config.https.ca_key, SystemTime::now()) {
            // It would be made.
            Ok(_) | Err(AuthorityError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(tls) = &config.proxy.tls {
        server_tls::build(tls)?;
    }
    AuditLog::check(&config.audit.output)?;
    Ok(())
}
