//! `robotgate credential`: the resulting file, its mode, and the output.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::PathBuf,
};

use robotgate::{
    bot::Credentials,
    config::{Config, Sources},
};
use tempfile::TempDir;

use crate::support::CliOutput;

const CONFIG: &str = r#"
    [proxy]
    listen = "127.0.0.1:3128"

    [identity]
    credentials = "credentials"

    [[bot]]
    name = "AcmeBot"
    user-agents = ["AcmeBot"]

    [[bot]]
    name = "images"
    user-agents = ["AcmeImages"]
    credentials = ["acme-prod", "shared"]

    [[bot]]
    name = "news"
    user-agents = ["AcmeNews"]
    credentials = ["shared"]
"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("robotgate.toml"), CONFIG).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("credentials")).unwrap()
    }

    fn mode(&self) -> u32 {
        fs::metadata(self.path("credentials")).unwrap().mode() & 0o7777
    }

    fn chmod(&self, mode: u32) {
        fs::set_permissions(self.path("credentials"), Permissions::from_mode(mode)).unwrap();
    }

    async fn run(&self, args: &[&str], input: &str) -> CliOutput {
        let config = self.path("robotgate.toml");
        let args = [&["credential"], args, &["--config", config.to_str().unwrap()]].concat();
        CliOutput::of(&args, input).await
    }

    async fn stdout_of(&self, args: &[&str]) -> String {
        let output = self.run(args, "").await;
        assert_eq!((output.code, output.errors.as_str()), (Some(0), ""), "{}", output.out);
        output.out
    }
}

fn secret_in(output: &str) -> &str {
    let (_, rest) = output.split_once("    http://").expect("a URL");
    let (userinfo, _) = rest.split_once('@').expect("a proxy");
    userinfo.split_once(':').expect("a secret").1
}

#[tokio::test]
async fn add_prints_the_secret_once_and_stores_its_hash() {
    let folder = Folder::new();

    let output = folder.stdout_of(&["add", "AcmeBot"]).await;

    let secret = secret_in(&output);
    assert!(
        output.contains(&format!("    http://AcmeBot:{secret}@127.0.0.1:3128\n")),
        "{output}"
    );
    assert_eq!(output.matches(secret).count(), 1, "{output}");
    assert!(
        output.contains("systemctl reload robotgate") && output.contains("SIGHUP"),
        "{output}"
    );
    assert_eq!(secret.len(), 43);
    assert!(!folder.text().contains(secret));
    assert_eq!(folder.mode(), 0o640);
    assert_eq!(folder.text().lines().count(), 1);
    assert!(folder.text().starts_with("AcmeBot:sha256$"));

    for name in ["acme-prod", "shared"] {
        assert_ne!(secret_in(&folder.stdout_of(&["add", name]).await), secret);
    }
    let config = Config::load(&Sources::from(&*folder.path("robotgate.toml"))).unwrap();
    assert_eq!(
        config.bots.named("AcmeBot").unwrap().accepted_proofs.credentials.len(),
        1
    );
    let left: Vec<_> = fs::read_dir(folder.0.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing but the two files: {left:?}");
}

#[tokio::test]
async fn add_prints_an_https_url_if_the_proxy_has_a_tls_listener() {
    let folder = Folder::new();
    let tls = "[proxy.tls]\nlisten = \"127.0.0.1:3129\"\ncertificate = \"proxy.pem\"\nkey = \"proxy-key.pem\"\n";
    fs::write(folder.path("robotgate.toml"), format!("{CONFIG}\n{tls}")).unwrap();
    let secret = "correct horse battery staple";

    for output in [
        folder.stdout_of(&["add", "AcmeBot"]).await,
        folder.run(&["add", "AcmeBot", "--stdin"], secret).await.out,
    ] {
        assert_eq!(output.matches("    https://AcmeBot:").count(), 1, "{output}");
        assert!(output.contains("@127.0.0.1:3129\n"), "{output}");
        assert!(!output.contains("http://"), "{output}");
        let plain =
            "Do not use the listener without TLS (127.0.0.1:3128): the client would send the secret in clear text.\n";
        assert!(output.contains(plain), "{output}");
    }
}

#[tokio::test]
async fn a_name_may_have_several_secrets_until_the_old_ones_are_removed() {
    let folder = Folder::new();
    folder.stdout_of(&["add", "AcmeBot"]).await;
    fs::write(folder.path("credentials"), format!("# ours\n{}", folder.text())).unwrap();
    folder.stdout_of(&["add", "shared"]).await;

    let output = folder.stdout_of(&["add", "AcmeBot"]).await;
    let config = folder.path("robotgate.toml");
    let command = format!(
        "robotgate credential remove AcmeBot --all-but-last --config {}\n",
        config.display()
    );
    assert!(output.contains(&command), "{output}");
    assert_eq!(
        folder.stdout_of(&["list"]).await,
        "AcmeBot  2 secrets  AcmeBot\nshared   1 secret   images, news\n"
    );
    let newest = folder.text().lines().last().unwrap().to_owned();

    let output = folder.stdout_of(&["remove", "AcmeBot", "--all-but-last"]).await;
    assert!(output.starts_with("1 secret of AcmeBot removed.\n"), "{output}");
    assert!(folder.text().starts_with("# ours\nshared:"), "{}", folder.text());
    assert_eq!(folder.text().lines().last(), Some(&*newest));
    let output = folder.stdout_of(&["remove", "AcmeBot", "--all-but-last"]).await;
    assert_eq!(output, "AcmeBot has only one secret; nothing was removed.\n");

    folder.stdout_of(&["remove", "AcmeBot"]).await;
    assert_eq!(folder.text().lines().count(), 2);
    let gone = folder.run(&["remove", "AcmeBot"], "").await;
    assert_eq!(gone.code, Some(1));
    assert!(
        gone.errors.contains("has no credential with the name \"AcmeBot\""),
        "{}",
        gone.errors
    );
}

#[tokio::test]
async fn simultaneous_adds_lose_no_credential() {
    let folder = Folder::new();
    let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    let runs = names.iter().map(|name| {
        let config = folder.path("robotgate.toml");
        let name = name.clone();
        tokio::spawn(async move {
            CliOutput::of(&["credential", "add", &name, "--config", config.to_str().unwrap()], "").await
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let output = run.await.unwrap();
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    let credentials = Credentials::parse(&folder.text()).unwrap();
    assert_eq!(credentials.names().len(), names.len());
}

#[tokio::test]
async fn a_given_secret_is_read_from_standard_input_and_not_printed() {
    let folder = Folder::new();
    let secret = "correct horse battery staple";

    let output = folder.run(&["add", "AcmeBot", "--stdin"], &format!("{secret}\n")).await;
    assert_eq!((output.code, output.errors.as_str()), (Some(0), ""));
    assert!(
        output.out.contains("    http://AcmeBot:SECRET@127.0.0.1:3128\n"),
        "{}",
        output.out
    );
    assert!(!output.out.contains("horse") && !folder.text().contains("horse"));

    let short = folder.run(&["add", "AcmeBot", "--stdin"], "hunter2\n").await;
    assert_eq!(short.code, Some(1));
    assert!(short.errors.contains("fewer than 22 characters") && !short.errors.contains("hunter2"));
    assert_eq!(folder.text().lines().count(), 1);
}

#[tokio::test]
async fn the_credentials_file_keeps_its_mode_and_its_link() {
    let folder = Folder::new();
    folder.stdout_of(&["add", "AcmeBot"]).await;
    folder.chmod(0o600);
    folder.stdout_of(&["add", "shared"]).await;
    assert_eq!(folder.mode(), 0o600);

    fs::rename(folder.path("credentials"), folder.path("real")).unwrap();
    symlink("real", folder.path("credentials")).unwrap();
    folder.stdout_of(&["add", "acme-prod"]).await;
    assert!(folder.path("credentials").is_symlink());
    assert_eq!(folder.text().lines().count(), 3);

    folder.chmod(0o644);
    for action in [&["add", "shared"][..], &["remove", "shared"], &["list"]] {
        let output = folder.run(action, "").await;
        assert_eq!(output.code, Some(1));
        assert!(
            output.errors.contains("its mode is 0644") && output.errors.contains("chmod 640 "),
            "{}",
            output.errors
        );
        assert_eq!(output.out, "");
    }
    assert_eq!(folder.text().lines().count(), 3);
}

#[tokio::test]
async fn invalid_names_and_arguments_are_errors() {
    let folder = Folder::new();
    for name in ["a:b", "two words", "", "#a", "a\u{7}", "a\u{202e}b", "a\u{200b}"] {
        let output = folder.run(&["add", name], "").await;
        assert_eq!(output.code, Some(1), "{name:?}");
        assert!(
            output.errors.contains("cannot be the name of a credential"),
            "{}",
            output.errors
        );
    }
    assert!(!folder.path("credentials").exists());
    let empty = folder.run(&["list"], "").await;
    assert_eq!((&*empty.out, empty.code), ("", Some(0)));
    assert!(empty.errors.contains("has no credentials"), "{}", empty.errors);

    let unknown = folder.run(&["add", "nobody"], "").await;
    assert_eq!(unknown.code, Some(0));
    assert!(
        unknown.errors.contains("no bot accepts the credential \"nobody\""),
        "{}",
        unknown.errors
    );
    assert!(
        unknown.errors.contains("credentials = [\"nobody\"]"),
        "{}",
        unknown.errors
    );
    assert_eq!(folder.stdout_of(&["list"]).await, "nobody  1 secret   no bot\n");

    fs::write(folder.path("credentials"), "hunter2\n").unwrap();
    let bad = folder.run(&["add", "AcmeBot"], "").await;
    assert_eq!(bad.code, Some(1));
    assert!(
        bad.errors
            .contains("credentials:1: the line does not begin with a name"),
        "{}",
        bad.errors
    );
    assert!(!bad.errors.contains("hunter2"), "{}", bad.errors);

    fs::write(folder.path("robotgate.toml"), "# nothing\n").unwrap();
    let none = folder.run(&["add", "AcmeBot"], "").await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.errors.contains("[identity]\n    credentials = \"credentials\""),
        "{}",
        none.errors
    );
    let none = CliOutput::of(&["credential", "list"], "").await;
    assert!(
        none.errors
            .contains("name the proxy's configuration with --config FILE"),
        "{}",
        none.errors
    );
}

#[tokio::test]
async fn check_warns_of_unused_and_missing_credentials() {
    let folder = Folder::new();
    for name in ["acme-prod", "shared"] {
        folder.stdout_of(&["add", name]).await;
    }
    folder.run(&["add", "old"], "").await;
    let config = folder.path("robotgate.toml");

    let output = CliOutput::of(&["check", config.to_str().unwrap()], "").await;

    assert_eq!(output.code, Some(0));
    assert!(
        output.errors.contains("the credential \"old\" identifies no bot"),
        "{}",
        output.errors
    );
    assert!(
        output.errors.contains("robotgate credential remove old --config "),
        "{}",
        output.errors
    );
    assert!(
        output
            .errors
            .contains("the bot \"AcmeBot\": its credential \"AcmeBot\" is not in the credentials file"),
        "{}",
        output.errors
    );
    let about_credentials = output.errors.lines().filter(|line| line.contains("credential"));
    assert_eq!(about_credentials.count(), 2, "{}", output.errors);
}
