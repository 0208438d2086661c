//! The certificate authority: its files, its leaves, and the TLS servers made from them.

use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose};
use robotgate::{
    authority::{Authority, AuthorityError, Provenance},
    origin::Host,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, ServerName},
};
use tempfile::TempDir;

mod chain;
mod files;
mod leaf;
mod leaves;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct CaFiles {
    directory: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

// === impl CaFiles ===

impl CaFiles {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            certificate: directory.path().join("ca.pem"),
            key: directory.path().join("ca.key"),
            directory,
        }
    }

    fn with(certificates: &[String], key: &KeyPair) -> Self {
        let files = Self::new();
        fs::write(&files.certificate, certificates.concat()).unwrap();
        files.write_key(&key.serialize_pem());
        files
    }

    fn write_key(&self, pem: &str) {
        fs::write(&self.key, pem).unwrap();
        fs::set_permissions(&self.key, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn create(&self) -> Authority {
        let (authority, origin) = self.load_or_create().unwrap();
        assert_eq!(origin, Provenance::Created);
        authority
    }

    fn load_or_create(&self) -> Result<(Authority, Provenance), AuthorityError> {
        Authority::load_or_create(&self.certificate, &self.key, SystemTime::now())
    }

    fn load(&self) -> Result<Authority, AuthorityError> {
        Authority::load(&self.certificate, &self.key, SystemTime::now())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn unfinished(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap().to_str().unwrap();
        self.directory.path().join(format!(".{name}.robotgate-unfinished"))
    }
}

fn authority() -> Authority {
    CaFiles::new().create()
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = (SystemTime::now() - DAY).into();
    params.not_after = (SystemTime::now() + 300 * DAY).into();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn dns(name: &str) -> Host {
    Host::Name(name.into())
}

fn ip(address: &str) -> Host {
    Host::Ip(address.parse().unwrap())
}

fn client_trusting(root: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Performs a TLS handshake in memory, and passes the client everything that the server sends after it, such as
/// tickets.
fn handshake(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
    name: &str,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    while client.wants_write() || server.wants_write() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut wire = wire.as_slice();
        while !wire.is_empty() {
            server.read_tls(&mut wire.by_ref()).unwrap();
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut wire = wire.as_slice();
        while !wire.is_empty() {
            client.read_tls(&mut wire.by_ref()).unwrap();
            client.process_new_packets()?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok((client, server))
}
