//! `robotgate env --write`: writes the files that a client needs in addition to its environment variables.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustls::pki_types::CertificateDer;

use crate::{
    pem,
    trust::{
        self,
        clients::{Contents, File, MARK, is_ours},
    },
};

/// Why a file was not written. Other files may already have been written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(
        "{0:?} cannot be written into every client's settings: name a folder whose absolute path has only ASCII \
         letters, digits and -_./@%+"
    )]
    Folder(PathBuf),
    #[error("{0} exists, and robotgate env did not write it: move it away, or name another folder")]
    Taken(PathBuf),
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{path}, the file of this system's root certificates, is not valid PEM ({error}); rebuild it, \
         for example with update-ca-certificates"
    )]
    SystemRoot { path: String, error: pem::PemError },
}

/// Returns the absolute path as text. Fails if it has a character that some client's settings would have to quote, or
/// would take as a separator.
pub(super) fn folder(path: &Path) -> Result<String, WriteError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.to_str().map(|text| text.trim_end_matches('/'));
    let is_usable = |text: &&str| trust::is_plain(text) && !text.contains([':', ',', '=']);
    let usable = text.filter(is_usable).map(str::to_owned);
    usable.ok_or(WriteError::Folder(path))
}

/// Returns a warning if a file needs the system's root certificates, but robotgate did not find them.
pub(super) fn write(
    folder: &str,
    files: &[File],
    authority: &[CertificateDer<'_>],
) -> Result<Option<String>, WriteError> {
    let system = SYSTEM_ROOTS
        .iter()
        .find_map(|path| Some((*path, fs::read_to_string(path).ok()?)));
    let system = system.as_ref().map(|(path, pem)| (*path, pem.as_str()));
    for file in files {
        let contents = contents(&file.contents, authority, system)?;
        let path = Path::new(folder).join(file.name);
        put(&path, &contents, if file.is_executable { 0o755 } else { 0o644 })?;
    }
    let has_roots = |file: &File| matches!(file.contents, Contents::Roots | Contents::KeyStore);
    let lacks_roots = system.is_none() && files.iter().any(has_roots);
    Ok(lacks_roots.then(|| {
        format!(
            "found no root certificates of this system (looked for {}), so the files in {folder} trust only \
             robotgate's authority, and clients refuse the certificates of hosts in [[https.tunnel]]",
            SYSTEM_ROOTS.join(", ")
        )
    }))
}

/// `system` is the path and the content of the file with the system's root certificates.
fn contents(
    contents: &Contents,
    authority: &[CertificateDer<'_>],
    system: Option<(&str, &str)>,
) -> Result<Vec<u8>, WriteError> {
    // Write only the certificates: the certificate authority's file may also contain a private key.
    let authority_pem: String = authority.iter().map(pem::certificate).collect();
    Ok(match (contents, system) {
        (Contents::Text(text), _) => text.clone().into_bytes(),
        (Contents::Authority, _) => format!("Written by {MARK}: robotgate's authority.\n{authority_pem}").into_bytes(),
        (Contents::Roots, Some((_, roots))) => {
            format!("Written by {MARK}: robotgate's authority, and the roots of this system.\n{authority_pem}\n{roots}")
                .into_bytes()
        }
        (Contents::Roots, None) => format!(
            "Written by {MARK}: robotgate's authority alone, as no file of this system's roots was found.\n{authority_pem}"
        )
        .into_bytes(),
        (Contents::KeyStore, system) => {
            let (path, roots) = system.unwrap_or_default();
            let roots = pem::certificates(roots.as_bytes()).map_err(|error| WriteError::SystemRoot {
                path: path.to_owned(),
                error,
            })?;
            let roots = roots.into_iter().map(|(_, root)| root);
            let all: Vec<_> = authority.iter().cloned().chain(roots).collect();
            trust::jks(MARK, &all)
        }
    })
}

/// Replaces the file in one step, so that no program reads a part of it. Fails if the file exists and `robotgate env`
/// did not write it.
fn put(path: &Path, contents: &[u8], mode: u32) -> Result<(), WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    match fs::read(path) {
        Ok(before) if !is_ours(&before) => return Err(WriteError::Taken(path.to_owned())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = PathBuf::from(name);
    let write = || {
        let options = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished);
        let mut file = options?;
        file.write_all(contents)?;
        // Ignore the umask: other users' clients have to read the file, and it contains no secret.
        file.set_permissions(Permissions::from_mode(mode))?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|error| {
        // Ignore an error here: the unfinished file may not exist.
        let _ = fs::remove_file(&unfinished);
        failed(error)
    })
}

/// The root certificates of Debian, Alpine and Arch; Fedora; SUSE; macOS and the BSDs. Do not use the variable
/// `SSL_CERT_FILE`: an earlier `robotgate env` may have set it.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unreadable_system_roots_are_reported() {
        let authority = [CertificateDer::from(vec![0x30, 0])];
        let of = |kind, system| contents(&kind, &authority, system);
        let text = |system| String::from_utf8(of(Contents::Roots, system).expect("contents")).expect("text");
        let alone = text(None);
        assert!(
            alone.contains("alone, as no file of this system's roots was found.\n-----BEGIN"),
            "{alone}"
        );
        assert!(text(Some(("/roots", "the roots"))).ends_with("the roots"));
        assert!(of(Contents::KeyStore, None).is_ok());

        let bad = "# a comment\n-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        let error = of(Contents::KeyStore, Some(("/roots", bad)))
            .expect_err("no PEM")
            .to_string();
        assert!(
            error.starts_with(
                "/roots, the file of this system's root certificates, is not valid PEM (line 3 is not base64);"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_folder_becomes_absolute_and_must_not_need_quotes() {
        for (path, is_taken) in [
            ("/srv/trust/", true),
            ("trust", true),
            ("/a b", false),
            ("/a:b", false),
            ("/$(id)", false),
        ] {
            assert_eq!(folder(Path::new(path)).is_ok(), is_taken, "{path}");
        }
        assert!(folder(Path::new("trust")).is_ok_and(|path| path.starts_with('/') && path.ends_with("/trust")));
    }

    #[test]
    fn only_files_that_robotgate_wrote_are_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("php/wgetrc");
        let ours = format!("# {MARK}\n");
        for (text, mode) in [(&ours, 0o644), (&(ours.clone() + "more"), 0o755)] {
            put(&path, text.as_bytes(), mode).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(fs::read_to_string(&path).expect("a file"), *text);
            assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, mode);
        }
        fs::write(&path, "my own").expect("written");
        let refused = put(&path, ours.as_bytes(), 0o644);
        assert!(matches!(refused, Err(WriteError::Taken(_))), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "my own");
        let left = fs::read_dir(folder.path().join("php")).expect("a folder").count();
        assert_eq!(left, 1, "nothing unfinished is left");
    }
}
