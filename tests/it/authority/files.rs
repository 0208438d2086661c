//! The authority's files: they are created once, never overwritten, and rejected if something is wrong with them.

use std::{collections::HashSet, sync::Barrier, thread};

use super::*;
use crate::support::CliOutput;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_first_start_creates_a_pair_and_the_second_loads_it() {
    let mut files = CaFiles::new();
    files.certificate = files.directory.path().join("a/b/ca.pem");
    files.key = files.directory.path().join("a/c/ca.key");

    let made = files.create();
    assert_eq!(mode(&files.key), 0o600);
    assert_eq!(mode(&files.certificate), 0o644);
    assert_eq!(mode(&files.directory.path().join("a")), 0o700);
    assert_eq!(mode(&files.directory.path().join("a/c")), 0o700);

    let (loaded, origin) = files.load_or_create().unwrap();
    assert_eq!(origin, Provenance::Loaded);
    assert_eq!(loaded.fingerprint(), made.fingerprint());
    assert_eq!(files.load().unwrap().fingerprint(), made.fingerprint());
    assert_eq!(
        loaded.certificate_pem(),
        fs::read_to_string(&files.certificate).unwrap()
    );
}

#[test]
fn creation_leaves_only_the_two_files() {
    let files = CaFiles::new();
    files.create();
    assert_eq!(files.names(), ["ca.key", "ca.pem"]);
}

#[test]
fn loading_creates_no_file() {
    let files = CaFiles::new();
    assert!(matches!(files.load(), Err(AuthorityError::Missing { .. })));
    assert!(files.names().is_empty());
}

#[test]
fn a_pair_with_one_file_missing_is_refused_and_unchanged() {
    for (half, other) in [("ca.key", "ca.pem"), ("ca.pem", "ca.key")] {
        let files = CaFiles::new();
        files.create();
        fs::remove_file(files.directory.path().join(other)).unwrap();
        let before = fs::read(files.directory.path().join(half)).unwrap();

        for error in [files.load_or_create().unwrap_err(), files.load().unwrap_err()] {
            let AuthorityError::Half { present, missing } = &error else {
                panic!("{error}");
            };
            assert!(present.ends_with(half) && missing.ends_with(other));
        }
        assert_eq!(files.names(), [half]);
        assert_eq!(fs::read(files.directory.path().join(half)).unwrap(), before);
    }
}

#[test]
fn a_pair_with_a_missing_directory_is_refused() {
    let mut files = CaFiles::new();
    files.create();
    files.key = files.directory.path().join("elsewhere/ca.key");
    assert!(matches!(files.load_or_create(), Err(AuthorityError::Half { .. })));
    assert_eq!(files.names(), ["ca.key", "ca.pem"]);
}

#[test]
fn a_key_that_others_can_read_or_the_group_can_write_is_refused() {
    let files = CaFiles::new();
    files.create();
    for (mode, chmod) in [(0o604, "chmod 600"), (0o644, "chmod 640"), (0o660, "chmod 640")] {
        fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
        let error = files.load_or_create().unwrap_err();
        assert!(matches!(error, AuthorityError::Exposed(_)), "{error}");
        let advice = error.to_string();
        assert!(advice.contains(&format!("{chmod} {}", files.key.display())), "{advice}");
    }
}

/// Kubernetes makes root the owner of a Secret's files, so a pod can read them only through their group.
#[test]
fn a_key_that_its_group_can_read_is_loaded() {
    let files = CaFiles::new();
    files.create();
    for mode in [0o640, 0o440] {
        fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
        files.load().unwrap();
    }
}

#[test]
fn unusable_keys_are_refused() {
    let files = CaFiles::new();
    files.create();
    for (pem, hint) in [
        ("", "in PEM form:"),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "an encrypted private key, which robotgate cannot read:",
        ),
    ] {
        files.write_key(pem);
        let error = files.load().unwrap_err();
        assert!(matches!(error, AuthorityError::NoKey { .. }), "{error}");
        assert!(error.to_string().contains(hint), "{error}");
    }
    files.write_key("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n");
    assert!(matches!(files.load(), Err(AuthorityError::Key { .. })));
    files.write_key(&KeyPair::generate().unwrap().serialize_pem());
    assert!(matches!(files.load(), Err(AuthorityError::Mismatch { .. })));
}

#[test]
fn no_authority_is_created_with_an_unset_clock() {
    let files = CaFiles::new();
    let error = Authority::load_or_create(&files.certificate, &files.key, SystemTime::UNIX_EPOCH + DAY).unwrap_err();
    assert!(matches!(error, AuthorityError::Clock(_)), "{error}");
    assert!(error.to_string().contains("1970-01-02T00:00:00Z"), "{error}");
    assert!(files.names().is_empty());
}

#[test]
fn the_same_path_for_both_files_is_refused() {
    let mut files = CaFiles::new();
    files.key = files.certificate.clone();
    assert!(matches!(files.load_or_create(), Err(AuthorityError::SamePath(_))));
    assert!(files.names().is_empty());
}

#[test]
fn dangling_links_are_not_replaced() {
    let files = CaFiles::new();
    for path in [&files.certificate, &files.key] {
        std::os::unix::fs::symlink("nowhere", path).unwrap();
    }
    assert!(matches!(files.load_or_create(), Err(AuthorityError::Read { .. })));
    assert!(files.certificate.is_symlink() && files.key.is_symlink());
}

/// The process was killed after it had given only one of the files its final name.
#[test]
fn an_interrupted_creation_is_finished() {
    for (named, waiting) in [("ca.key", "ca.pem"), ("ca.pem", "ca.key")] {
        let files = CaFiles::new();
        let fingerprint = files.create().fingerprint();
        let at = |name| files.directory.path().join(name);
        fs::hard_link(at(named), files.unfinished(&at(named))).unwrap();
        fs::rename(at(waiting), files.unfinished(&at(waiting))).unwrap();

        assert!(matches!(files.load(), Err(AuthorityError::Half { .. })));
        assert_eq!(files.create().fingerprint(), fingerprint);
        assert_eq!(files.names(), ["ca.key", "ca.pem"]);
    }
}

#[test]
fn an_unfinished_file_is_replaced_by_a_new_pair() {
    let files = CaFiles::new();
    fs::write(files.unfinished(&files.key), "-----BEGIN PRIV").unwrap();
    let fingerprint = files.create().fingerprint();
    assert_eq!(files.names(), ["ca.key", "ca.pem"]);
    assert_eq!(files.load().unwrap().fingerprint(), fingerprint);
}

#[test]
fn a_leftover_temporary_file_is_removed() {
    let files = CaFiles::new();
    files.create();
    fs::hard_link(&files.key, files.unfinished(&files.key)).unwrap();
    assert_eq!(files.load_or_create().unwrap().1, Provenance::Loaded);
    assert_eq!(files.names(), ["ca.key", "ca.pem"]);
}

#[test]
fn an_unfinished_file_of_another_pair_is_not_used() {
    let files = CaFiles::new();
    files.create();
    let other = CaFiles::new();
    other.create();
    fs::rename(&other.certificate, files.unfinished(&files.certificate)).unwrap();
    fs::remove_file(&files.certificate).unwrap();
    assert!(matches!(files.load_or_create(), Err(AuthorityError::Half { .. })));
    assert!(!files.certificate.exists());
}

#[test]
fn simultaneous_starts_agree_on_one_pair() {
    for _ in 0..20 {
        let files = CaFiles::new();
        let together = Barrier::new(16);
        let starts: Vec<_> = thread::scope(|scope| {
            let start = || {
                together.wait();
                let (authority, origin) = files.load_or_create().unwrap();
                (authority.fingerprint(), origin)
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let fingerprints: HashSet<_> = starts.iter().map(|(fingerprint, _)| fingerprint).collect();
        assert_eq!(fingerprints.len(), 1);
        let made = starts.iter().filter(|(_, origin)| *origin == Provenance::Created);
        assert_eq!(made.count(), 1);
        assert_eq!(files.names(), ["ca.key", "ca.pem"]);
    }
}

#[tokio::test]
async fn ca_says_what_to_do_without_an_authority() {
    let files = CaFiles::new();
    let config = files.directory.path().join("robotgate.toml");
    for (mode, expected) in [
        ("intercept", "exists; start the proxy once to create them"),
        (
            "intercept",
            "If the proxy runs as a service and https.ca-certificate is not set, set STATE_DIRECTORY",
        ),
        (
            "tunnel",
            "https.mode is not \"intercept\", so robotgate needs no certificate authority",
        ),
    ] {
        let text = format!(
            "[https]\nmode = {mode:?}\nca-certificate = {:?}\nca-key = {:?}\n",
            files.certificate, files.key
        );
        fs::write(&config, text).expect("written");
        let output = CliOutput::of(&["ca", "show", "--config", &config.display().to_string()], "").await;
        assert_eq!((output.code, &*output.out), (Some(1), ""), "{output:?}");
        assert!(output.errors.contains(expected), "{output:?}");
    }
}
