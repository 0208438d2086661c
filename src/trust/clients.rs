//! What has to be set in each client so that it goes through the proxy and trusts its certificates, as lines for a POSIX
//! shell: settings, and comments that say what they do not tell. Pure; the texts themselves are in `table`.

mod guess;
mod table;

pub use self::guess::{fix, guess};
use super::settings::Settings;

/// A client, or a system with all that use its store of certificates.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// As `robotgate env` takes it: lower case.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// In one line.
    pub about: &'static str,
    pub group: Group,
    /// How it goes through the proxy.
    proxy: &'static str,
    /// How it trusts the authority.
    trust: &'static str,
    /// How it says who it is, where the proxy asks for that.
    credential: &'static str,
}

/// What belongs together in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Client,
    Browser,
    System,
}

/// Every client, in the order in which people look for them.
pub fn all() -> &'static [Client] {
    table::CLIENTS
}

/// The client of that name, however it is capitalised.
pub fn find(name: &str) -> Option<&'static Client> {
    let is_it = |other: &&str| other.eq_ignore_ascii_case(name);
    all()
        .iter()
        .find(|client| is_it(&client.name) || client.aliases.iter().any(is_it))
}

// === impl Client ===

impl Client {
    /// Everything that has to be set.
    pub fn settings(&self, settings: &Settings) -> String {
        settings.fill(&format!("{}{}", self.proxy, self.trust))
    }

    /// Only what leads through the proxy: for one that has no authority.
    pub fn proxy_settings(&self, settings: &Settings) -> String {
        settings.fill(self.proxy)
    }

    /// How the client says who it is, as comments.
    pub fn credential(&self, settings: &Settings) -> String {
        settings.fill(self.credential)
    }
}

// === impl Group ===

impl Group {
    pub fn title(self) -> &'static str {
        match self {
            Group::Client => "Clients and languages",
            Group::Browser => "Browsers and what drives them",
            Group::System => "Whole systems",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Ca;

    fn settings() -> Settings {
        let ca = Ca::At("/a folder/it's/ca.pem".to_owned());
        Settings::new("http://127.0.0.1:3128", ca).unwrap_or_else(|error| panic!("{error}"))
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

    #[test]
    fn every_text_is_filled_in_and_its_comments_fit_a_terminal() {
        for client in all() {
            let text = client.settings(&settings()) + &client.credential(&settings());
            for left in ["{proxy", "{server", "{ca", "{host", "{port"] {
                assert!(!text.contains(left), "{}: {left}", client.name);
            }
            assert!(text.ends_with('\n'), "{}", client.name);
            let lines = client.proxy.lines().chain(client.trust.lines());
            for line in lines.filter(|line| line.starts_with('#')) {
                assert!(line.len() <= 118, "{}: {line}", client.name);
            }
        }
    }

    #[test]
    fn a_shell_takes_every_text() {
        for client in all() {
            let text = client.settings(&settings()) + &client.credential(&settings());
            let run = std::process::Command::new("sh").args(["-n", "-c", &text]).output();
            let run = run.unwrap_or_else(|error| panic!("{error}"));
            assert!(run.status.success(), "{}: {run:?}", client.name);
        }
    }
}
