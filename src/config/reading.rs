//! Parses the text of a configuration, applies environment variables and `--set`, and collects the mistakes.

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

pub(super) fn all_keys(environment: &Environment) -> Vec<Key> {
    let (document, text) = (DeTable::new(), SourceText::default());
    let checker = Checker::new(environment, &text, Reads::Nothing).recording(Recording::All);
    Table::file(&document, &checker, Config::read);
    checker.into_results().1
}

// === impl SourceText ===

impl SourceText {
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

fn not_text(name: &str, bytes: &[u8], valid_up_to: usize) -> ConfigError {
    let text = SourceText::new(name, &String::from_utf8_lossy(bytes), Path::new("/"), &[]);
    // `text` contains a character in place of each invalid part of `bytes`. The first invalid byte has the same offset
    // in both, because only valid text is before it.
    let complaint = Complaint {
        span: valid_up_to..valid_up_to + 1,
        missing: None,
        message: "this byte is not UTF-8; save the file as UTF-8".to_owned(),
    };
    ConfigError::Invalid(Problems::new(&text, &DeTable::new(), vec![complaint]))
}
