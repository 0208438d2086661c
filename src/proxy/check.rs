//! Checks whether the proxy could start or reload with a configuration. The check creates nothing and does not listen.

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
    evidence::Evidence,
    store::{Disk, DiskError},
};

/// Why the proxy could not use a configuration.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Problems that make a start or a reload fail only in some cases.
#[derive(Debug)]
pub struct Warnings {
    /// Addresses that the running robotgate or another program uses, with the configuration keys that name them.
    pub taken: Vec<(SocketAddr, &'static str)>,
    /// Why robots.txt files cannot be kept on disk. A start continues without the disk, but a reload fails.
    pub disk: Option<DiskError>,
}

/// Checks the files and addresses that a start or a reload with `config` needs. Does not check the fleet's server.
///
/// # Errors
/// Fails with the error that a start or a reload would return about a file or an address, except those in [`Warnings`].
pub fn check(config: &Config) -> Result<Warnings, Unusable> {
    check_files(config)?;
    Ok(Warnings {
        taken: listen::check(config)?,
        disk: check_disk(config).err(),
    })
}

/// Checks the files that a reload with `config` needs, before the reload creates anything. Checks no addresses.
///
/// # Errors
/// Fails with the error that the reload would return about a file.
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
            // A start or a reload would create the certificate authority, so check only whether it could.
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
    if let Some(evidence) = config.evidence.as_ref().filter(|evidence| evidence.required) {
        Evidence::check(&evidence.path)?;
    }
    Ok(())
}
