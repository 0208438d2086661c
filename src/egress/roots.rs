//! The certificate authorities that origins' certificates are checked against: the system's and
//! those that the operator adds.
//!
//! pingora takes them as the path of one PEM file, so they are written to an anonymous file in
//! memory that lives as long as the [`Roots`] do.

use std::{
    fs::File,
    io::Write as _,
    os::fd::{AsRawFd as _, OwnedFd},
};

use rustls::{RootCertStore, pki_types::CertificateDer};

use crate::pem;

/// A bundle of roots, at a path that pingora can read.
#[derive(Debug)]
pub struct Roots {
    file: File,
    /// How many of them are the system's.
    pub system: usize,
    /// How many the operator added.
    pub extra: usize,
}

/// The bundle cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    #[error("cannot make a file in memory for the root certificates: {0}")]
    Memory(#[from] std::io::Error),
    #[error("root certificate {0} of https.extra-roots cannot be used: {1}")]
    Extra(usize, rustls::Error),
}

// === impl Roots ===

impl Roots {
    /// Gathers the system's roots and `extra`. A root of the system that rustls cannot use is
    /// left out, as every browser does; one of the operator's is an error.
    ///
    /// # Errors
    /// One of `extra` is no usable certificate authority; no memory file can be made.
    pub fn gather(extra: &[CertificateDer<'static>]) -> Result<Self, RootsError> {
        let mut usable = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "cannot read some of the system's root certificates");
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

    /// Where the bundle can be read, by this process and as long as `self` lives.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}
