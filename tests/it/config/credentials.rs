//! The credentials file: who may read it, its content, and the bots that its names identify.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use robotgate::bot::SecretHash;
use robotgate::config::{Config, Sources};
use tempfile::TempDir;

use crate::support::CliOutput;

struct Folder(TempDir);

impl Folder {
    fn with(config: &str, credentials: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.config(), config).unwrap();
        fs::write(folder.credentials(), credentials).unwrap();
        folder.chmod(0o640);
        folder
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("robotgate.toml")
    }

    fn credentials(&self) -> PathBuf {
        self.0.path().join("credentials")
    }

    fn chmod(&self, mode: u32) {
        fs::set_permissions(self.credentials(), Permissions::from_mode(mode)).unwrap();
    }

    fn load(&self) -> Result<Config, String> {
        let path = self.0.path().display().to_string();
        Config::load(&Sources::from(&*self.config())).map_err(|error| error.to_string().replace(&path, "DIR"))
    }
}

fn line(name: &str) -> String {
    SecretHash::new([1; 16], b"secret").line(name)
}

const BOTS: &str = r#"
    [identity]
    credentials = "credentials"
    required = true

    [[bot]]
    name = "AcmeBot"
    user-agents = ["AcmeBot"]

    [[bot]]
    name = "images"
    user-agents = ["AcmeImages"]
    credentials = ["acme-prod", "acme-staging"]

    [[bot]]
    name = "free"
    user-agents = ["FreeBot"]
    credentials = []

    [[bot]]
    name = "own"
    user-agents = ["OwnBot"]
"#;

#[test]
fn a_credential_belongs_to_the_bot_that_lists_it_or_has_its_name() {
    let file = ["AcmeBot", "acme-prod", "acme-staging", "acme-prod", "old"]
        .map(line)
        .join("\n");
    let config = Folder::with(BOTS, &file).load().unwrap();

    let of = |name: &str| {
        let bot = config.bots.named(name).unwrap();
        bot.accepted_proofs
            .credentials
            .iter()
            .map(|name| &**name)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("AcmeBot"), ["AcmeBot"]);
    assert_eq!(of("images"), ["acme-prod", "acme-staging"]);
    assert!(of("free").is_empty());
    // The bot requires this credential although the file lacks it, so that removing a credential never admits clients
    // without proof.
    assert_eq!(of("own"), ["own"]);
    assert_eq!(config.bots.missing_credentials(), [("own", "own")]);
    let credentials = config.bots.credentials().unwrap();
    assert_eq!(credentials.idle(), ["old"]);
    assert_eq!(credentials.names().len(), 4);
    assert!(config.identity.required);
}

#[test]
fn a_bot_with_a_missing_credential_is_reported() {
    let folder = Folder::with(BOTS, &line("acme-prod"));
    let config = folder.load().unwrap();
    assert_eq!(
        config.bots.missing_credentials(),
        [("AcmeBot", "AcmeBot"), ("images", "acme-staging"), ("own", "own")]
    );
}

#[tokio::test]
async fn check_advises_empty_credentials_for_a_bot_proven_by_its_network() {
    const WARNING: &str = "the bot \"LabBot\": its credential \"LabBot\" is not in the credentials file, so clients \
                           with its User-Agent are refused unless they have another proof; run: robotgate credential \
                           add LabBot --config ";
    let bot = "[identity]\ncredentials = \"credentials\"\n[cache]\npersist = false\n[https]\nmode = \"tunnel\"\n\
               [[bot]]\nname = \"LabBot\"\nuser-agents = [\"LabBot\"]\nnetworks = [\"10.1.0.0/16\"]\n";
    for (more, is_warned) in [("", true), ("credentials = []\n", false)] {
        let folder = Folder::with(&format!("{bot}{more}"), &line("other"));
        let output = CliOutput::of(&["check", folder.config().to_str().unwrap()], "").await;
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(output.errors.contains(WARNING), is_warned, "{}", output.errors);
    }
}

#[test]
fn a_bot_whose_name_cannot_name_a_credential_must_list_its_proofs() {
    const MISTAKE: &str = "\"Acme Bot\" cannot be the name of a credential; write credentials = [\"NAME\"]";
    for (more, is_accepted) in [
        ("", false),
        ("credentials = []\n", true),
        ("credentials = [\"acme\"]\n", true),
        ("networks = [\"10.1.0.0/16\"]\n", true),
    ] {
        let bot =
            format!("[[bot]]\nname = \"Acme Bot\"\nuser-agents = [\"AcmeBot\"]\nrobots-agents = [\"AcmeBot\"]\n{more}");
        let folder = Folder::with(
            &format!("[identity]\ncredentials = \"credentials\"\n{bot}"),
            &line("acme"),
        );
        let loaded = folder.load().map(drop);
        let is_mistake = loaded.as_ref().is_err_and(|error| error.contains(MISTAKE));
        assert_eq!(
            (loaded.is_ok(), is_mistake),
            (is_accepted, !is_accepted),
            "{more}: {loaded:?}"
        );
        // Without a credentials file, no bot needs a credential.
        let without = format!("{bot}[egress]\n");
        assert!(
            more.contains("acme") || Folder::with(&without, "").load().is_ok(),
            "{more}"
        );
    }
}

#[test]
fn a_credentials_file_that_others_can_access_is_refused() {
    let file = ["acme-prod", "acme-staging"].map(line).join("\n");
    let folder = Folder::with(BOTS, &file);
    for (mode, message) in [
        (0o600, None),
        (0o640, None),
        (0o400, None),
        (0o440, None),
        (
            0o644,
            Some("its mode is 0644, so every user can read it: run `chmod 640 DIR/credentials`"),
        ),
        (0o604, Some("run `chmod 600 DIR/credentials`")),
        (0o641, Some("every user can execute it")),
        (0o642, Some("every user can change it")),
        (0o646, Some("every user can read and change it")),
        (
            0o660,
            Some("its mode is 0660, so its group can do more than read it: run `chmod 640 DIR/credentials`"),
        ),
        (0o650, Some("its group can do more than read it")),
        (0o777, Some("run `chmod 640 DIR/credentials`")),
    ] {
        folder.chmod(mode);
        match (folder.load(), message) {
            (Ok(_), None) => {}
            (Err(error), Some(message)) => {
                assert!(error.contains(message), "{mode:o}: {error}");
                assert!(
                    error.contains("robotgate.toml:3:19: identity.credentials: DIR/credentials: "),
                    "{error}"
                );
            }
            (found, _) => panic!("{mode:o}: {found:?}"),
        }
    }
}

#[test]
fn bad_lines_are_reported_by_number_and_not_quoted() {
    let file = format!("{}\nacme-staging:hunter2\n\nhunter3\n", line("acme-prod"));
    let message = Folder::with(BOTS, &file).load().unwrap_err();
    assert!(
        message.contains("DIR/credentials:2: the name is not followed by a kind of hash that robotgate knows"),
        "{message}"
    );
    assert!(
        message.contains("DIR/credentials:4: the line does not begin with a name that a credential can have"),
        "{message}"
    );
    assert!(!message.contains("hunter"), "{message}");

    let folder = Folder::with(BOTS, "");
    fs::write(folder.credentials(), b"acme\xff:x").unwrap();
    let message = folder.load().unwrap_err();
    assert!(message.contains("DIR/credentials is not UTF-8"), "{message}");

    fs::remove_file(folder.credentials()).unwrap();
    let message = folder.load().unwrap_err();
    assert!(message.contains("cannot read DIR/credentials: "), "{message}");
}

#[test]
fn networks_and_certificates_of_a_bot_are_read() {
    let roots = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/config/root.pem");
    let config = super::good(&format!(
        "[proxy.tls]\nlisten = '127.0.0.1:0'\ncertificate = 'a.pem'\nkey = 'b.pem'\nclient-roots = ['{roots}']\n\
         [[bot]]\nname = 'a'\nuser-agents = ['x']\nnetworks = ['10.1.0.0/16', '::1']\n\
         certificates = ['a.example', 'spiffe://a/b']",
    ));
    let accepted_proofs = &config.bots.named("a").unwrap().accepted_proofs;
    assert_eq!(format!("{:?}", accepted_proofs.networks), "[10.1.0.0/16, ::1/128]");
    assert_eq!(
        format!("{:?}", accepted_proofs.certificates),
        r#"["a.example", "spiffe://a/b"]"#
    );
    assert!(accepted_proofs.are_required() && config.bots.credentials().is_none());
}
