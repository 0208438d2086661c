//! The keys of `[fleet]`, and the files with its secrets.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::support::{CliOutput, Gate};

#[tokio::test]
async fn files_with_secrets_must_not_be_open_to_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = async |text: &str| {
        let file = folder.path().join("robotgate.toml");
        fs::write(&file, text).expect("the folder is ours");
        CliOutput::of(&["check", file.to_str().expect("text")], "").await
    };
    let write = |name: &str, text: &str, mode: u32| {
        let path: &Path = &folder.path().join(name);
        fs::write(path, text).expect("the folder is ours");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    write("open", "0123456789abcdef", 0o644);
    write("short", "0123456789", 0o600);
    write("key", "0123456789abcdef", 0o600);
    write("no.pem", "", 0o600);
    let base = "[audit]\npath = \"log/a\"\n[fleet]\n";
    let url = "url = \"rediss://redis.example\"\n";
    for (text, told) in [
        (format!("{base}{url}key-file = \"open\""), "every user can read it"),
        (format!("{base}{url}key-file = \"short\""), "fewer than 16 bytes"),
        (format!("{base}{url}password-file = \"none\""), "cannot read"),
        (format!("{base}{url}ca-file = \"no.pem\""), "contains no certificate"),
        (format!("{base}key-file = \"key\""), "url is missing"),
        (format!("{base}size = 3"), "url is missing"),
        (format!("{base}{url}username-file = \"key\""), "a user needs a password"),
        (
            format!("{base}url = \"redis://u:secret@s.example\""),
            "put them into files",
        ),
        (
            format!("{base}url = \"http://s.example\""),
            "redis://, rediss:// or unix://",
        ),
        (format!("{base}{url}key-prefix = \"a b\""), "cannot begin the keys"),
        (format!("{base}{url}[pace]"), "like size = 3"),
        (format!("{base}{url}size = 0"), "write a number from 1 to 10000"),
        (format!("{base}{url}on-loss = \"wait\""), "share"),
    ] {
        let checked = check(&text).await;
        assert_eq!(checked.code, Some(1), "{text}");
        assert!(checked.errors.contains(told), "{told}: {}", checked.errors);
    }
    // `size` is required only with `[pace]` and the default of `on-loss`, `share`.
    for text in [
        "",
        "on-loss = 'local'\n[pace]",
        "on-loss = 'refuse'\n[pace]",
        "size = 3\n[pace]",
    ] {
        let checked = check(&format!("[fleet]\n{url}{text}")).await;
        assert_eq!(checked.code, Some(0), "{text}: {}", checked.errors);
    }
}

#[tokio::test]
async fn a_reload_shows_no_password_of_a_mistyped_address() {
    let gate = Gate::start().await;
    gate.reconfigure("[fleet]\nurl = 'redis://gate:hidden@redis.example'");
    let line = gate
        .wait_for_log("the reload to fail", |line| line.says("put them into files"))
        .await;
    let status = crate::admin::get(&gate, "/api/v1/status").await.to_string();
    assert!(status.contains("put them into files"), "{status}");
    for shown in [format!("{line:?}"), status] {
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
