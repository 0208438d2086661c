//! Reads a configuration from the text of its sources: parses, applies what environment variables and `--set` set, and
//! collects the mistakes.

use std::fs;
use std::path::Path;

use toml::de::DeTable;

use super::canonical::Canonical;
use super::checker::{Checker, Reads};
use super::environment::Environment;
use super::error::{Complaint, ConfigError, Problems};
use super::keys::{self, Key, Recording};
use super::reader;
use super::settings::Settings;
use super::sources::Sources;
use super::text::{SourceText, to_table};
use super::{Config, Table};

/// A configuration, as far as it could be read, and its mistakes.
pub(super) struct Reading<'t> {
    pub document: DeTable<'t>,
    pub config: Config,
    pub complaints: Vec<Complaint>,
    /// The keys that the parser recorded.
    pub keys: Vec<Key>,
}

// === impl Reading ===

impl<'t> Reading<'t> {
    pub(super) fn of(environment: &Environment, text: &'t SourceText, reads: Reads, recording: Recording) -> Self {
        let (document, syntax_errors) = DeTable::parse_recoverable(text.of_file());
        let mut document = document.into_inner();
        // The first syntax error usually causes the later ones, so only the first is reported.
        let syntax_error = syntax_errors.first();
        let mut complaints =
            Vec::from_iter(syntax_error.map(|error| reader::syntax(error, text.of_file(), environment)));
        if text.has_overrides() {
            let texts = keys::texts(&all_keys(environment));
            complaints.extend(text.apply(&mut document, &texts));
        }
        let checker = Checker::new(environment, text, reads).recording(recording);
        let config = Table::file(&document, &checker, Config::read);
        let (mistakes, keys) = checker.into_results();
        if syntax_error.is_none() {
            complaints.extend(mistakes);
        }
        Self {
            document,
            config,
            complaints,
            keys,
        }
    }

    /// Returns the configuration, or the error that lists all mistakes.
    pub(super) fn checked(self, text: &SourceText) -> Result<Config, ConfigError> {
        if !self.complaints.is_empty() {
            let problems = Problems::new(text, &self.document, self.complaints);
            return Err(ConfigError::Invalid(problems));
        }
        let table = to_table(&self.document);
        Ok(Config {
            canonical: Canonical::of_table(&table),
            settings: Settings::of(table),
            ..self.config
        })
    }
}

/// Returns all keys that the parser knows.
pub(super) fn all_keys(environment: &Environment) -> Vec<Key> {
    let (document, text) = (DeTable::new(), SourceText::default());
    let checker = Checker::new(environment, &text, Reads::Nothing).recording(Recording::All);
    Table::file(&document, &checker, Config::read);
    checker.into_results().1
}

// === impl SourceText ===

impl SourceText {
    /// Reads the configuration file, if `sources` names one. Appends what environment variables and `--set` set.
    pub(super) fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let Some(path) = sources.file() else {
            return Ok(Self::new("", "", Path::new("/"), sources.overrides()));
        };
        let unreadable = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let bytes = fs::read(path).map_err(unreadable)?;
        if bytes.trim_ascii().is_empty() {
            return Err(ConfigError::Empty(path.to_owned()));
        }
        // Make the path absolute, so that a later change of the working directory does not matter.
        let absolute = std::path::absolute(path).map_err(unreadable)?;
        let base = absolute.parent().unwrap_or(Path::new("/"));
        let name = path.display().to_string();
        match str::from_utf8(&bytes) {
            Ok(text) => Ok(Self::new(&name, text, base, sources.overrides())),
            Err(error) => Err(not_text(&name, &bytes, error.valid_up_to())),
        }
    }
}

/// Returns the error for a configuration file that is not UTF-8, the only encoding of TOML.
fn not_text(name: &str, bytes: &[u8], valid_up_to: usize) -> ConfigError {
    let text = SourceText::new(name, &String::from_utf8_lossy(bytes), Path::new("/"), &[]);
    // `valid_up_to` is an offset in `bytes`. It is also right in the lossy text, because this text begins with the same
    // bytes up to that offset.
    let complaint = Complaint {
        span: valid_up_to..valid_up_to + 1,
        missing: None,
        message: "this byte is not UTF-8; save the file as UTF-8".to_owned(),
    };
    ConfigError::Invalid(Problems::new(&text, &DeTable::new(), vec![complaint]))
}
