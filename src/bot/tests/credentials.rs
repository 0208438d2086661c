//! Tests how a credentials file is read, and which secrets are accepted.

use std::sync::Arc;

use super::super::proof::{Presented, PresentedCredential, Proof};
use super::*;

fn assigned(text: &str) -> Credentials {
    let mut credentials = Credentials::parse(text).expect("a good file");
    credentials.assign(|_| [0].into());
    credentials
}

#[test]
fn a_file_can_have_comments_and_several_secrets_for_a_name() {
    let text = format!(
        "# made by hand\n\n{}\r\n  {}  \n   # old\n{}\n",
        line("acme", "first"),
        line("other", "x"),
        line("acme", "second")
    );
    let credentials = assigned(&text);

    assert_eq!(credentials.names(), [("acme", 2), ("other", 1)]);
    for (name, secret, holds) in [
        ("acme", "first", true),
        ("acme", "second", true),
        ("other", "x", true),
        ("acme", "x", false),
        ("other", "first", false),
        ("acme", "", false),
        ("ACME", "first", false),
        ("nobody", "first", false),
        ("", "first", false),
    ] {
        let verified = credentials.verify(name.as_bytes(), secret.as_bytes());
        assert_eq!(verified.is_some(), holds, "{name}:{secret}");
        assert!(verified.is_none_or(|verified| verified.name() == name));
    }
    assert!(credentials.verify(b"\xff", b"first").is_none());
    assert!(Credentials::default().verify(b"acme", b"first").is_none());
}

#[test]
fn an_error_names_the_number_of_a_bad_line_and_not_its_text() {
    let good = line("acme", "secret");
    let hash = good.split_once('$').expect("a line").1;
    for (text, faults) in [
        ("acme".to_owned(), vec![(1, LineFault::Name)]),
        (format!("\n{good}\n:sha256${hash}"), vec![(3, LineFault::Name)]),
        (format!("two words:sha256${hash}"), vec![(1, LineFault::Name)]),
        (format!("a\u{7}b:sha256${hash}"), vec![(1, LineFault::Name)]),
        ("acme:hunter2".to_owned(), vec![(1, LineFault::Kind)]),
        (format!("acme:sha512${hash}"), vec![(1, LineFault::Kind)]),
        ("acme:sha256$c2FsdHNhbHQ".to_owned(), vec![(1, LineFault::Kind)]),
        (
            "acme:sha256$c2FsdHNhbHQ$aGFzaA".to_owned(),
            vec![(1, LineFault::Spoilt)],
        ),
        (format!("acme:sha256$!${}", &hash[2..]), vec![(1, LineFault::Spoilt)]),
        (good.replace("sha256$", "sha256$$"), vec![(1, LineFault::Spoilt)]),
        (good[..good.len() - 1].to_owned(), vec![(1, LineFault::Spoilt)]),
        (format!("{good}="), vec![(1, LineFault::Spoilt)]),
        ("x\ny".to_owned(), vec![(1, LineFault::Name), (2, LineFault::Name)]),
    ] {
        let bad = Credentials::parse(&text).expect_err(&text);
        let found: Vec<_> = bad.iter().map(|bad| (bad.line, bad.fault)).collect();
        assert_eq!(found, faults, "{text}");
        for bad in bad {
            let message = bad.to_string();
            assert!(!message.contains("hunter2") && !message.contains(hash), "{message}");
            assert!(message.contains("robotgate credential add NAME"), "{message}");
        }
    }
}

#[test]
fn a_name_is_one_word_without_a_colon() {
    for (name, fits) in [
        ("acme-prod", true),
        ("b\u{fc}cher", true),
        ("a#", true),
        ("", false),
        ("a:b", false),
        ("#a", false),
        ("a b", false),
        ("a\u{a0}b", false),
        ("a\n", false),
        ("a\u{202e}b", false),
        ("a\u{200b}b", false),
        ("a\u{2066}b", false),
        ("\u{feff}a", false),
        (&*"a".repeat(129), false),
    ] {
        assert_eq!(is_name(name), fits, "{name:?}");
        let parsed = Credentials::parse(&line(name, "secret"));
        assert_eq!(parsed.is_ok_and(|read| read.has(name)), fits, "{name:?}");
    }
}

#[test]
fn a_credential_that_no_bot_has_is_not_verified() {
    let credentials = Credentials::parse(&line("acme", "secret")).expect("a good file");
    assert_eq!(credentials.idle(), ["acme"]);
    assert!(credentials.verify(b"acme", b"secret").is_none());
}

#[test]
fn a_credential_record_is_valid_while_its_secret_is_in_the_file() {
    let first = line("acme", "first");
    let before = assigned(&first);
    let credential_record = before.verify(b"acme", b"first").expect("it fits").credential_record();
    let resalted = SecretHash::new([8; SALT], b"first").line("acme");

    for (what, text, holds) in [
        ("the same", first.clone(), true),
        ("rotation begins", format!("{first}\n{}", line("acme", "second")), true),
        ("rotation ends", line("acme", "second"), false),
        ("removed", String::new(), false),
        ("of another name", line("other", "first"), false),
        ("made anew", resalted, false),
    ] {
        assert_eq!(assigned(&text).recheck(&credential_record).is_some(), holds, "{what}");
    }
    let idle = Credentials::parse(&first).expect("a good file");
    assert!(
        idle.recheck(&credential_record).is_none(),
        "it identifies no bot any more"
    );
}

#[test]
fn debug_output_has_no_hash_and_no_secret() {
    let text = line("acme", "a-very-secret-word");
    let hash = text.rsplit('$').next().expect("a hash").to_owned();
    let credentials = assigned(&text);
    let verified = credentials.verify(b"acme", b"a-very-secret-word").expect("it fits");
    let credential_record = verified.credential_record();
    let presented = Presented {
        credential: PresentedCredential::Field(b"Basic a-very-secret-word"),
        ..Presented::default()
    };
    let bots = Bots::new(vec![Arc::new(super::identify::bot("acme", AcceptedProofs::default()))]);
    let bots = bots.with_credentials(credentials.clone());
    for printed in [
        format!("{credentials:?}"),
        format!("{verified:?}"),
        format!("{credential_record:?}"),
        format!("{presented:?}"),
        format!("{:?}", PresentedCredential::Inherited(&credential_record)),
        format!("{:?}", Proof::Credential(verified)),
        format!("{bots:?}"),
    ] {
        assert!(
            !printed.contains("secret-word") && !printed.contains(&hash),
            "{printed}"
        );
        assert!(!printed.contains("[7, 7") && !printed.contains("115, 101"), "{printed}");
    }
}
