//! The files that `robotgate env --write` writes. This module returns their contents and writes nothing itself.

use super::TABLE;
use crate::trust::ClientSettings;

/// A file to write. Its `name` is a path in the folder that the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub name: &'static str,
    pub is_executable: bool,
    pub contents: Contents,
}

/// What a written file contains. Each written file also contains [`MARK`], by which robotgate recognizes its own files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    Text(String),
    /// The authority's certificate as PEM.
    Authority,
    /// All root certificates of the system and the authority's certificate, as PEM.
    Roots,
    /// All root certificates of the system and the authority's certificate, as a Java key store.
    KeyStore,
}

/// A file from `table.toml`. [`ClientSettings::fill`] replaces the placeholders in its text.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Template {
    name: String,
    #[serde(default)]
    executable: bool,
    pub(super) text: String,
}

/// Returns the files that `text` names, and those that these files name. Empty if the user wants no files written.
pub fn files(text: &str, settings: &ClientSettings) -> Vec<File> {
    let Some(folder) = settings.folder() else {
        return Vec::new();
    };
    let mut searched = text.to_owned();
    let mut files = Vec::new();
    for file in every(settings) {
        if !searched.contains(&format!("{folder}/{}", file.name)) {
            continue;
        }
        if let Contents::Text(text) = &file.contents {
            searched.push_str(text);
        }
        files.push(file);
    }
    files
}

/// A file comes before the files that its text names.
fn every(settings: &ClientSettings) -> impl Iterator<Item = File> {
    let small = TABLE.file.iter().map(|template| File {
        name: &template.name,
        is_executable: template.executable,
        contents: Contents::Text(settings.fill(&template.text)),
    });
    let shipped = SHIPPED
        .iter()
        .map(|(name, text)| (*name, Contents::Text((*text).to_owned())));
    let certificates = [
        ("roots.jks", Contents::KeyStore),
        ("roots.pem", Contents::Roots),
        ("ca.pem", Contents::Authority),
    ];
    let rest = shipped.chain(certificates).map(|(name, contents)| File {
        name,
        is_executable: false,
        contents,
    });
    small.chain(rest)
}

/// Returns whether these contents have the [`MARK`] of the files that `robotgate env --write` writes.
pub fn is_ours(contents: &[u8]) -> bool {
    memchr::memmem::find(contents, MARK.as_bytes()).is_some()
}

/// The text that every written file contains.
pub const MARK: &str = "robotgate env --write";

const SHIPPED: [(&str, &str); 4] = [
    ("robotgate.php", include_str!("../../../conf/clients/robotgate.php")),
    (
        "robotgate-node.cjs",
        include_str!("../../../conf/clients/robotgate-node.cjs"),
    ),
    (
        "scrapy_robotgate.py",
        include_str!("../../../conf/clients/scrapy_robotgate.py"),
    ),
    (
        "crawlee_robotgate.mjs",
        include_str!("../../../conf/clients/crawlee_robotgate.mjs"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::{Ca, clients};

    fn settings() -> ClientSettings {
        let ca = Ca::At("/etc/ca.pem".to_owned());
        let settings = ClientSettings::new("http://127.0.0.1:3128", ca).unwrap_or_else(|error| panic!("{error}"));
        settings.with_folder("/srv/trust")
    }

    fn names(client: &str) -> Vec<&'static str> {
        let client = clients::find(client).unwrap_or_else(|| panic!("{client}"));
        let files = files(&client.settings(&settings()), &settings());
        files.iter().map(|file| file.name).collect()
    }

    #[test]
    fn a_client_gets_all_files_that_its_text_needs() {
        for (client, expected) in [
            ("curl", &["roots.pem"][..]),
            ("wget", &["wgetrc", "roots.pem"]),
            (
                "php",
                &[
                    "php/robotgate-proxy.ini",
                    "php/robotgate-trust.ini",
                    "robotgate.php",
                    "roots.pem",
                ],
            ),
            ("java", &["roots.jks"]),
            ("node", &["robotgate-node.cjs", "ca.pem"]),
            ("scrapy", &["scrapy_robotgate.py", "roots.pem"]),
            ("crawlee", &["crawlee_robotgate.mjs", "ca.pem"]),
            ("chromium", &["robotgate-chromium", "ca.pem"]),
        ] {
            assert_eq!(names(client), expected, "{client}");
        }
    }

    #[test]
    fn every_file_is_marked_as_ours_and_belongs_to_a_client() {
        let settings = settings();
        for file in every(&settings) {
            if let Contents::Text(text) = &file.contents {
                assert!(is_ours(text.as_bytes()), "{}", file.name);
                assert!(!text.contains("{dir}") && !text.contains("{roots}"), "{text}");
            }
            let mut clients = clients::all().iter();
            assert!(
                clients.any(|client| names(&client.name).contains(&file.name)),
                "{}",
                file.name
            );
        }
    }
}
