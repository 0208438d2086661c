//! The root certificates for verifying origins: those of the system and those that the operator adds.
//!
//! pingora expects the path of a PEM file, so the certificates are written to an anonymous file in memory.

use std::{
    fs::File,
    io::Write as _,
    os::fd::{AsRawFd as _, OwnedFd},
};

use rustls::{RootCertStore, pki_types::CertificateDer};

use crate::pem;

/// Root certificates, in a file that pingora can read.
#[derive(Debug)]
pub struct Roots {
    file: File,
    /// Number of system roots.
    pub system: usize,
    /// Number of roots that the operator added.
    pub extra: usize,
}

/// Why the file with the root certificates could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    #[error("cannot make a file in memory for the root certificates: {0}")]
    Memory(#[from] std::io::Error),
    #[error("root certificate {0} of https.extra-roots cannot be used: {1}")]
    Extra(usize, rustls::Error),
}

// === impl Roots ===

impl Roots {
    /// Collects the system's root certificates and `extra`. Skips those of the system that rustls cannot use.
    ///
    /// # Errors
    /// Fails if a certificate in `extra` cannot be used as a root, or no memory file can be created.
    pub fn gather(extra: &[CertificateDer<'static>]) -> Result<Self, RootsError> {
        let mut usable = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "cannot read root certificates of the system, so robotgate may be unable to verify some sites");
        }
        let mut bundle = String::new();
        let mut system = 0;
        for root in &found.certs {
            if usable.add(root.clone()).is_ok() {
                bundle.push_str(&pem::certificate(root));
                system += 1;
            }
        }
        for (index, root) in extra.iter().enumerate() {
            usable
                .add(root.clone())
                .map_err(|error| RootsError::Extra(index + 1, error))?;
            bundle.push_str(&pem::certificate(root));
        }
        let memory: OwnedFd = rustix::fs::memfd_create("robotgate-roots", rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(std::io::Error::from)?;
        let mut file = File::from(memory);
        file.write_all(bundle.as_bytes())?;
        Ok(Self {
            file,
            system,
            extra: extra.len(),
        })
    }

    /// Returns the path of the file. It is valid in this process as long as `self` exists.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}
