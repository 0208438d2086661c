//! The pair on the disk: made once, never overwritten, and refused when something is wrong with it.

use std::{collections::HashSet, sync::Barrier, thread};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_first_start_makes_a_pair_and_the_second_loads_it() {
    let mut place = Place::new();
    place.certificate = place.directory.path().join("a/b/ca.pem");
    place.key = place.directory.path().join("a/c/ca.key");

    let made = place.create();
    assert_eq!(mode(&place.key), 0o600);
    assert_eq!(mode(&place.certificate), 0o644);
    assert_eq!(mode(&place.directory.path().join("a")), 0o700);
    assert_eq!(mode(&place.directory.path().join("a/c")), 0o700);

    let (loaded, origin) = place.load_or_create().unwrap();
    assert_eq!(origin, Provenance::Loaded);
    assert_eq!(loaded.fingerprint(), made.fingerprint());
    assert_eq!(place.load().unwrap().fingerprint(), made.fingerprint());
    assert_eq!(
        loaded.certificate_pem(),
        fs::read_to_string(&place.certificate).unwrap()
    );
}

#[test]
fn nothing_else_is_left_behind() {
    let place = Place::new();
    place.create();
    assert_eq!(place.names(), ["ca.key", "ca.pem"]);
}

#[test]
fn loading_makes_nothing() {
    let place = Place::new();
    assert!(matches!(place.load(), Err(AuthorityError::Missing { .. })));
    assert!(place.names().is_empty());
}

#[test]
fn half_a_pair_is_refused_and_left_alone() {
    for (half, other) in [("ca.key", "ca.pem"), ("ca.pem", "ca.key")] {
        let place = Place::new();
        place.create();
        fs::remove_file(place.directory.path().join(other)).unwrap();
        let before = fs::read(place.directory.path().join(half)).unwrap();

        for error in [place.load_or_create().unwrap_err(), place.load().unwrap_err()] {
            let AuthorityError::Half { present, missing } = &error else {
                panic!("{error}");
            };
            assert!(present.ends_with(half) && missing.ends_with(other));
        }
        assert_eq!(place.names(), [half]);
        assert_eq!(fs::read(place.directory.path().join(half)).unwrap(), before);
    }
}

#[test]
fn half_a_pair_is_refused_where_the_other_has_no_directory() {
    let mut place = Place::new();
    place.create();
    place.key = place.directory.path().join("elsewhere/ca.key");
    assert!(matches!(place.load_or_create(), Err(AuthorityError::Half { .. })));
    assert_eq!(place.names(), ["ca.key", "ca.pem"]);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let place = Place::new();
    place.create();
    for mode in [0o640, 0o604, 0o644] {
        fs::set_permissions(&place.key, fs::Permissions::from_mode(mode)).unwrap();
        let error = place.load_or_create().unwrap_err();
        assert!(
            matches!(error, AuthorityError::Exposed { mode: found, .. } if found == mode),
            "{error}"
        );
    }
    let advice = place.load().unwrap_err().to_string();
    assert!(
        advice.contains(&format!("chmod 600 {}", place.key.display())),
        "{advice}"
    );
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    let place = Place::new();
    place.create();
    for (pem, hint) in [
        ("", "in PEM form:"),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "(it is encrypted)",
        ),
    ] {
        place.write_key(pem);
        let error = place.load().unwrap_err();
        assert!(matches!(error, AuthorityError::NoKey { .. }), "{error}");
        assert!(error.to_string().contains(hint), "{error}");
    }
    place.write_key("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n");
    assert!(matches!(place.load(), Err(AuthorityError::Key { .. })));
    place.write_key(&KeyPair::generate().unwrap().serialize_pem());
    assert!(matches!(place.load(), Err(AuthorityError::Mismatch { .. })));
}

#[test]
fn a_clock_that_was_never_set_makes_no_authority() {
    let place = Place::new();
    let error = Authority::load_or_create(&place.certificate, &place.key, SystemTime::UNIX_EPOCH + DAY).unwrap_err();
    assert!(matches!(error, AuthorityError::Clock(_)), "{error}");
    assert!(error.to_string().contains("1970-01-02T00:00:00Z"), "{error}");
    assert!(place.names().is_empty());
}

#[test]
fn one_path_for_both_is_refused_before_anything_is_written() {
    let mut place = Place::new();
    place.key = place.certificate.clone();
    assert!(matches!(place.load_or_create(), Err(AuthorityError::SamePath(_))));
    assert!(place.names().is_empty());
}

#[test]
fn links_that_lead_nowhere_are_not_replaced() {
    let place = Place::new();
    for path in [&place.certificate, &place.key] {
        std::os::unix::fs::symlink("nowhere", path).unwrap();
    }
    assert!(matches!(place.load_or_create(), Err(AuthorityError::Read { .. })));
    assert!(place.certificate.is_symlink() && place.key.is_symlink());
}

/// A process killed between the two final names.
#[test]
fn a_creation_cut_short_is_finished() {
    for (named, waiting) in [("ca.key", "ca.pem"), ("ca.pem", "ca.key")] {
        let place = Place::new();
        let fingerprint = place.create().fingerprint();
        let at = |name| place.directory.path().join(name);
        fs::hard_link(at(named), place.unfinished(&at(named))).unwrap();
        fs::rename(at(waiting), place.unfinished(&at(waiting))).unwrap();

        assert!(matches!(place.load(), Err(AuthorityError::Half { .. })));
        assert_eq!(place.create().fingerprint(), fingerprint);
        assert_eq!(place.names(), ["ca.key", "ca.pem"]);
    }
}

/// A process killed while it wrote.
#[test]
fn what_never_got_a_name_is_made_anew() {
    let place = Place::new();
    fs::write(place.unfinished(&place.key), "-----BEGIN PRIV").unwrap();
    let fingerprint = place.create().fingerprint();
    assert_eq!(place.names(), ["ca.key", "ca.pem"]);
    assert_eq!(place.load().unwrap().fingerprint(), fingerprint);
}

/// A process killed with only the tidying left to do.
#[test]
fn what_is_of_no_use_any_more_is_tidied_up() {
    let place = Place::new();
    place.create();
    fs::hard_link(&place.key, place.unfinished(&place.key)).unwrap();
    assert_eq!(place.load_or_create().unwrap().1, Provenance::Loaded);
    assert_eq!(place.names(), ["ca.key", "ca.pem"]);
}

#[test]
fn what_waits_but_does_not_fit_finishes_nothing() {
    let place = Place::new();
    place.create();
    let other = Place::new();
    other.create();
    fs::rename(&other.certificate, place.unfinished(&place.certificate)).unwrap();
    fs::remove_file(&place.certificate).unwrap();
    assert!(matches!(place.load_or_create(), Err(AuthorityError::Half { .. })));
    assert!(!place.certificate.exists());
}

#[test]
fn starts_at_once_agree_on_one_pair() {
    for _ in 0..20 {
        let place = Place::new();
        let together = Barrier::new(16);
        let starts: Vec<_> = thread::scope(|scope| {
            let start = || {
                together.wait();
                let (authority, origin) = place.load_or_create().unwrap();
                (authority.fingerprint(), origin)
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let fingerprints: HashSet<_> = starts.iter().map(|(fingerprint, _)| fingerprint).collect();
        assert_eq!(fingerprints.len(), 1);
        let made = starts.iter().filter(|(_, origin)| *origin == Provenance::Created);
        assert_eq!(made.count(), 1);
        assert_eq!(place.names(), ["ca.key", "ca.pem"]);
    }
}
