//! Whether the proxy could be put up by a configuration: all that a start or a reload would fail for, in the same words,
//! as far as it can be told beside a proxy that runs. It makes nothing and listens nowhere.

use std::{net::SocketAddr, time::SystemTime};

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
    store::{Disk, DiskError},
};

/// Why it could not be.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// What may go wrong all the same.
#[derive(Debug)]
pub struct Doubts {
    /// The addresses that are taken now, and the keys that name them: by the robotgate that runs, as it should be, or by
    /// another program.
    pub taken: Vec<(SocketAddr, &'static str)>,
    /// Why the copies could not be kept on disk. A start goes on without, a reload does not.
    pub disk: Option<DiskError>,
}

/// Looks at all that `config` names.
///
/// # Errors
/// What a start, or a reload, would fail for; the first of it.
pub fn check(config: &Config) -> Result<Doubts, Unusable> {
    check_files(config)?;
    Ok(Doubts {
        taken: listen::check(config)?,
        disk: check_disk(config).err(),
    })
}

/// What a reload would fail for, before it makes anything.
///
/// # Errors
/// The first of it.
pub fn check_reload(config: &Config) -> Result<(), SetupError> {
    check_files(config)?;
    check_disk(config)?;
    Ok(())
}

fn check_disk(config: &Config) -> Result<(), DiskError> {
    config.cache.path.as_deref().map_or(Ok(()), Disk::check)
}

fn check_files(config: &Config) -> Result<(), SetupError> {
    Resolver::new(&config.egress.dns)?;
    Roots::gather(&config.https.extra_roots)?;
    if config.https.mode == HttpsMode::Intercept {
        match Authority::load(&config.https.ca_certificate, &config.https.ca_key, SystemTime::now()) {
            Ok(_) => {}
            // It would be made.
            Err(AuthorityError::Missing { .. }) => {
                Authority::check_folders(&config.https.ca_certificate, &config.https.ca_key)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(tls) = &config.proxy.tls {
        server_tls::build(tls)?;
    }
    AuditLog::check(&config.audit.output)?;
    Ok(())
}
