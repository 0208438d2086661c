//! What each client needs to use the proxy and trust its certificates, as lines for a POSIX shell. The texts are in
//! `table.toml`. Does no I/O.

mod files;
mod guess;

use std::{collections::BTreeMap, sync::LazyLock};

pub use self::{
    files::{Contents, File, MARK, files, is_ours},
    guess::guess,
};
use super::settings::ClientSettings;

/// A client such as curl, or a whole system whose programs share one store of certificates.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClientProgram {
    /// In lower case.
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub about: String,
    pub group: ClientKind,
    /// The lines that make the client use the proxy.
    proxy: String,
    /// The lines that make the client trust the authority.
    trust: String,
    /// How to give the client a credential, if a secret in the proxy's address is not enough.
    credential: Option<String>,
    /// Texts that replace `proxy` and `trust` if `robotgate env --write` writes files.
    #[serde(default)]
    with_files: FileTexts,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FileTexts {
    proxy: Option<String>,
    trust: Option<String>,
}

/// The heading under which `robotgate env` lists a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKind {
    Client,
    Browser,
    System,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ClientTable {
    /// Maps a placeholder, without its braces, to a text that several clients share.
    fragments: BTreeMap<String, String>,
    file: Vec<files::Template>,
    client: Vec<ClientProgram>,
}

static TABLE: LazyLock<ClientTable> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the table is a part of the program, and tests read it"
    )]
    let mut table: ClientTable =
        toml::from_str(include_str!("clients/table.toml")).expect("the table is TOML of this shape");
    let fragments = std::mem::take(&mut table.fragments);
    let expand = |text: &mut String| {
        for (name, fragment) in &fragments {
            // A fragment ends with a line end, so also replace the line end after its placeholder.
            *text = text
                .replace(&format!("{{{name}}}\n"), fragment)
                .replace(&format!("{{{name}}}"), fragment);
        }
    };
    for client in &mut table.client {
        expand(&mut client.proxy);
        expand(&mut client.trust);
        let more = [
            &mut client.credential,
            &mut client.with_files.proxy,
            &mut client.with_files.trust,
        ];
        more.into_iter().flatten().for_each(expand);
    }
    table.file.iter_mut().for_each(|file| expand(&mut file.text));
    table
});

/// Returns all clients, in the order of `table.toml`.
pub fn all() -> &'static [ClientProgram] {
    &TABLE.client
}

/// Returns the client with this name or alias, ignoring case.
pub fn find(name: &str) -> Option<&'static ClientProgram> {
    let is_it = |other: &String| other.eq_ignore_ascii_case(name);
    all()
        .iter()
        .find(|client| is_it(&client.name) || client.aliases.iter().any(is_it))
}

// === impl ClientProgram ===

impl ClientProgram {
    /// Returns the lines that make the client use the proxy and trust its certificates.
    pub fn settings(&self, settings: &ClientSettings) -> String {
        let text = self.with_files.trust.as_ref().filter(|_| settings.folder().is_some());
        self.proxy_settings(settings) + &settings.fill(text.unwrap_or(&self.trust))
    }

    /// Returns only the lines that make the client use the proxy.
    pub fn proxy_settings(&self, settings: &ClientSettings) -> String {
        let text = self.with_files.proxy.as_ref().filter(|_| settings.folder().is_some());
        settings.fill(text.unwrap_or(&self.proxy))
    }

    /// Returns how to give the client a credential. Empty if the proxy's address has a secret and the client reads it.
    pub fn credential(&self, settings: &ClientSettings) -> String {
        match &self.credential {
            Some(text) => settings.fill(text),
            None if settings.has_secret() => String::new(),
            None => settings.fill(IN_URL),
        }
    }
}

const IN_URL: &str = "# The proxy asks for a credential: write it into its address, NAME:SECRET@{host}:{port}.\n";

// === impl ClientKind ===

impl ClientKind {
    pub fn title(self) -> &'static str {
        match self {
            ClientKind::Client => "Clients and languages",
            ClientKind::Browser => "Browsers and tools that control them",
            ClientKind::System => "Whole systems",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Ca;

    fn settings() -> ClientSettings {
        let ca = Ca::At("/a folder/it's/ca.pem".to_owned());
        ClientSettings::new("http://127.0.0.1:3128", ca).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_documentation_names_each_client() {
        let page = include_str!("../../docs/clients.md");
        for client in all() {
            assert!(
                page.contains(&format!("`{}`", client.name)),
                "docs/clients.md lacks {}",
                client.name
            );
        }
    }

    #[test]
    fn names_are_unique_and_found_in_any_case() {
        let mut names: Vec<_> = all()
            .iter()
            .flat_map(|client| client.aliases.iter().chain([&client.name]))
            .collect();
        for name in &names {
            assert!(find(name).is_some() && find(&name.to_uppercase()).is_some(), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(find("nothing").is_none());
    }

    fn texts(client: &ClientProgram) -> [String; 2] {
        [settings(), settings().with_folder("/srv/trust")]
            .map(|settings| client.settings(&settings) + &client.credential(&settings))
    }

    #[test]
    fn no_text_has_an_unfilled_placeholder_or_a_long_comment() {
        for client in all() {
            for text in texts(client) {
                for (name, _) in text.split('{').skip(1).filter_map(|part| part.split_once('}')) {
                    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
                    assert!(
                        name.is_empty() || !name.bytes().all(is_name),
                        "{}: {{{name}}}",
                        client.name
                    );
                }
                assert!(
                    text.ends_with('\n') && !text.contains("\n\n"),
                    "{}: {text}",
                    client.name
                );
            }
            let texts = [&client.with_files.proxy, &client.with_files.trust, &client.credential];
            let texts = [&client.proxy, &client.trust]
                .into_iter()
                .chain(texts.into_iter().flatten());
            let comments = texts.flat_map(|text| text.lines()).filter(|line| line.starts_with('#'));
            for line in comments {
                assert!(line.len() <= 118, "{}: {line}", client.name);
            }
        }
    }

    #[test]
    fn a_shell_can_parse_every_text() {
        for text in all().iter().flat_map(texts) {
            let run = std::process::Command::new("sh").args(["-n", "-c", &text]).output();
            let run = run.unwrap_or_else(|error| panic!("{error}"));
            assert!(run.status.success(), "{text}: {run:?}");
        }
    }

    #[test]
    fn texts_for_files_have_no_shell_function() {
        for client in all() {
            let text = client.settings(&settings().with_folder("/srv/trust"));
            assert!(
                !text.contains("() {") && !text.contains("() ("),
                "{}: {text}",
                client.name
            );
        }
    }

    #[test]
    fn client_settings_contain_the_secret_or_say_that_browsers_ignore_it() {
        let ca = Ca::At("/ca.pem".to_owned());
        let settings = ClientSettings::new("http://acme:open%2Bsesame@gate:3128", ca);
        let settings = settings.unwrap_or_else(|error| panic!("{error}"));
        for (client, expected) in [
            ("curl", "https_proxy=http://acme:open%2Bsesame@gate:3128"),
            (
                "java",
                r#"new PasswordAuthentication("acme", "open+sesame".toCharArray())"#,
            ),
            ("playwright", r#"username: "acme", password: "open+sesame""#),
            ("puppeteer", r#"{ username: "acme", password: "open+sesame" }"#),
            ("crawlee", r#"["http://acme:open%2Bsesame@gate:3128"]"#),
            ("chromium", "Browsers ignore a secret in the proxy's address"),
            ("selenium", "Browsers ignore a secret in the proxy's address"),
        ] {
            let client = find(client).unwrap_or_else(|| panic!("{client}"));
            let text = client.settings(&settings) + &client.credential(&settings);
            assert!(text.contains(expected), "{}: {text}", client.name);
        }
    }
}
