//! Warnings about valid configurations, from `robotgate check` and in the log. Also tests how `check` and `run` get the
//! name of the file.

use std::fs;

use crate::support::{CliOutput, Gate};

const TUNNELS: &str = "[[https.tunnel]]\nhost = \".ended.example\"\nreason = \"r\"\nuntil = 2020-01-31\n\
                       [[https.tunnel]]\nhost = \"lasting.example\"\nreason = \"r\"\nuntil = 2999-01-01\n";
const ENDED: &str = "https.tunnel: the entry for .ended.example ended at 2020-02-01T00:00:00Z (until)";
const WATCHED: &str = "which robotgate watches for changes";

#[tokio::test]
async fn an_expired_tunnel_and_a_log_in_a_watched_folder_are_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gate.toml");
    fs::create_dir(folder.path().join("log")).unwrap();
    let ca = format!(
        "[https]\nca-certificate = {0:?}\nca-key = {1:?}\n",
        folder.path().join("a.pem"),
        folder.path().join("b.pem")
    );
    for (more, audit, warnings) in [
        (TUNNELS, "log/audit.jsonl", &[ENDED][..]),
        ("", "audit.jsonl", &[WATCHED]),
        (TUNNELS, "./log/../audit.jsonl", &[ENDED, WATCHED]),
        ("", "log/audit.jsonl", &[]),
    ] {
        let cache = "[cache]\npersist = false\n[admin]\nlisten = \"127.0.0.1:0\"\n[proxy]\nlisten = \"127.0.0.1:0\"\n";
        fs::write(&file, format!("{ca}{more}{cache}[audit]\npath = {audit:?}\n")).unwrap();
        let output = CliOutput::of(&["check", file.to_str().unwrap()], "").await;
        assert_eq!(output.code, Some(0), "{}", output.errors);
        let lines: Vec<&str> = output.errors.lines().collect();
        assert_eq!(lines.len(), warnings.len(), "{lines:#?}");
        for (line, warning) in lines.iter().zip(warnings) {
            assert!(
                line.starts_with("robotgate: warning: ") && line.contains(warning),
                "{line}"
            );
        }
    }
}

#[tokio::test]
async fn check_warns_if_the_user_agent_and_robots_agent_of_a_bot_differ() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gate.toml");
    for (bot, is_warned) in [
        ("name = 'shop'\nuser-agents = ['AcmeBot/2']", true),
        ("name = 'AcmeBot-News'\nuser-agents = ['AcmeBot']", true),
        (
            "name = 'shop'\nuser-agents = ['AcmeBot']\nenforcement = 'exempt'",
            false,
        ),
        (
            "name = 'shop'\nuser-agents = ['AcmeBot']\nrobots-agents = ['shop']",
            false,
        ),
        ("name = 'acmebot'\nuser-agents = ['Other', 'AcmeBot/2']", false),
        ("name = 'AcmeBot'\nuser-agents = ['Acme*']", false),
        (
            "name = 'shop'\nuser-agents = ['*acme.example*', 'acme.example/bot']",
            false,
        ),
    ] {
        let rest = "[cache]\npersist = false\n[https]\nmode = 'tunnel'\n[proxy]\nlisten = '127.0.0.1:0'\n\
                    [admin]\nlisten = '127.0.0.1:0'\n";
        fs::write(&file, format!("{rest}[[bot]]\n{bot}\n")).unwrap();
        let output = CliOutput::of(&["check", file.to_str().unwrap()], "").await;
        assert!(
            output.out.ends_with(" is fine: 1 bot, no [[expect]] cases\n"),
            "{output:?}"
        );
        let warning = "robotgate looks for the group of ";
        let is_named = output
            .errors
            .contains("write robots-agents = [\"AcmeBot\"] in its [[bot]]");
        assert_eq!(
            (output.errors.contains(warning), is_named),
            (is_warned, is_warned),
            "{bot}: {output:?}"
        );
    }
}

#[tokio::test]
async fn the_error_for_an_unusable_file_names_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gate.toml");
    for name in ["damaged.pem", "key.pem"] {
        fs::write(
            folder.path().join(name),
            "-----BEGIN CERTIFICATE-----\nAA.A\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
    }
    let pair = |certificate: &str| format!("[https]\nca-certificate = \"{certificate}\"\nca-key = \"key.pem\"\n");
    for (text, warning) in [
        (
            "[audit]\npath = \"none/audit.jsonl\"\n[https]\nmode = \"tunnel\"",
            "audit.path: cannot open the audit log",
        ),
        (&*pair("none.pem"), "https.ca-certificate and https.ca-key: "),
        (&pair("damaged.pem"), "https.ca-key: "),
    ] {
        fs::write(
            &file,
            format!("[cache]\npersist = false\n[proxy]\nlisten = \"127.0.0.1:0\"\n{text}"),
        )
        .unwrap();
        let checked = CliOutput::of(&["check", file.to_str().unwrap()], "").await;
        assert_eq!(checked.code, Some(1), "{text}");
        assert!(
            checked.errors.starts_with(&format!("robotgate: {warning}")),
            "{warning}: {}",
            checked.errors
        );
    }
}

#[tokio::test]
async fn a_start_and_a_reload_log_the_same_warnings() {
    // The test's audit log is next to the configuration, which also causes a warning.
    let gate = Gate::with(TUNNELS).await;
    let warned = |text: &str| {
        gate.log()
            .iter()
            .filter(|line| line.level() == "WARN" && line.says(text))
            .count()
    };
    assert_eq!((warned(ENDED), warned(WATCHED)), (1, 1));
    assert_eq!(warned("lasting.example"), 0);
    gate.reconfigure("[robots]\nwait = \"4s\"");
    gate.reloaded(1).await;
    crate::support::wait::until("the warning", || (warned(WATCHED) == 2).then_some(())).await;
}

#[tokio::test]
async fn check_takes_the_file_as_argument_or_option_and_run_only_as_option() {
    for args in [
        &["check", "none.toml"][..],
        &["check", "--config", "none.toml"],
        &["check", "-c", "none.toml"],
    ] {
        let output = CliOutput::of(args, "").await;
        assert_eq!(output.code, Some(1), "{args:?}");
        assert!(output.errors.contains("none.toml"), "{args:?}: {}", output.errors);
    }
    for (args, text) in [
        (&["check"][..], "robotgate check <FILE>"),
        (&["run", "gate.toml"], "robotgate run --config gate.toml"),
    ] {
        let output = CliOutput::of(args, "").await;
        assert_eq!((output.code, &*output.out), (Some(2), ""), "{args:?}");
        assert!(output.errors.contains(text), "{args:?}: {}", output.errors);
    }
}

#[tokio::test]
async fn check_warns_of_a_bot_without_a_proof_if_every_client_needs_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gate.toml");
    let bots = "[[bot]]\nname = 'A'\nuser-agents = ['A']\nnetworks = ['10.0.0.0/8']\n[[bot]]\nname = 'B'\nuser-agents = ['B']\n";
    for (required, is_warned) in [(true, true), (false, false)] {
        let rest = "[cache]\npersist = false\n[https]\nmode = 'tunnel'\n[proxy]\nlisten = '127.0.0.1:0'\n\
                    [admin]\nlisten = '127.0.0.1:0'\n";
        fs::write(&file, format!("{rest}[identity]\nrequired = {required}\n{bots}")).unwrap();
        let output = CliOutput::of(&["check", file.to_str().unwrap()], "").await;
        assert_eq!(output.code, Some(0), "{output:?}");
        let warning = "the bot \"B\" has no proof, and identity.required refuses clients without one";
        assert_eq!(output.errors.contains(warning), is_warned, "{output:?}");
        assert!(!output.errors.contains("\"A\""), "{output:?}");
    }
}
