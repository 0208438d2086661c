//! The configuration: a TOML file as written becomes a [`Config`], checked, or a list of all that is wrong with it.
//!
//! What was written (`written`) is kept apart from what it means (the sections below), so that a value in a [`Config`]
//! needs no second look. Nothing here panics, opens a socket or creates a file; reading touches the file itself, and
//! the certificates and credentials that it names.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use toml::{Spanned, de::DeTable};

use crate::bot::Bots;

mod admin;
mod audit;
mod bots;
mod cache;
mod check;
mod egress;
mod environment;
mod error;
mod expect;
mod https;
mod identity;
mod parts;
mod place;
mod proxy;
mod reader;
mod refusals;
mod robots;
mod settings;
pub mod units;
mod warnings;
mod watch;
mod written;

pub use crate::decision::{HttpsMode, Unverifiable};
pub use admin::{Admin, AdminToken};
pub use audit::{Audit, Output};
pub use cache::Cache;
pub use egress::Egress;
pub use environment::{Environment, host_name};
pub use error::{ConfigError, Problem, Problems};
pub use expect::Expectation;
pub use https::{Https, TunnelException};
pub use identity::{CredentialsError, IdentityRules};
pub use proxy::{Limits, Proxy, Tls};
pub use refusals::Refusals;
pub use robots::Robots;
pub use settings::{Change, How, Settings};
pub use watch::{WatchError, Watcher};

use check::Checker;
use place::{Complaint, Places};
use written::{File, Table};

/// A configuration that was checked. Every key has a default; see `conf/robotgate.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `[proxy]`: where robotgate listens, and how long it waits.
    pub proxy: Proxy,
    /// `[https]`: what a CONNECT gets, and whom robotgate trusts.
    pub https: Https,
    /// `[robots]`: how robots.txt files are read and fetched, how long they are kept, and what failures mean.
    pub robots: Robots,
    /// `[refusals]`: the statuses that refused requests get.
    pub refusals: Refusals,
    /// `[cache]`: how much is kept in memory, and what is kept on disk.
    pub cache: Cache,
    /// `[egress]`: which addresses bots may reach.
    pub egress: Egress,
    /// `[audit]`: where the log goes.
    pub audit: Audit,
    /// `[admin]`: where operators ask.
    pub admin: Admin,
    /// `[identity]`: what becomes of requests that name no bot, and how clients prove who they are.
    pub identity: IdentityRules,
    /// `[[bot]]`, in the file's order.
    pub bots: Bots,
    /// `[[expect]]`, in the file's order. They are read here; [`crate::expect`] runs them.
    pub expect: Vec<Expectation>,
    /// What of this the file sets.
    pub settings: Settings,
}

// === impl Config ===

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or says what cannot be meant; then all its mistakes are in the error.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_by(path, |checker| checker)
    }

    /// As [`Config::load`], for those who make the credentials that the file names, or check none: they are not looked
    /// at, and each bot has those that it names, or may have one of its own name.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn load_without_credentials(path: &Path) -> Result<Self, ConfigError> {
        Self::load_by(path, |checker| checker.without_credentials())
    }

    fn load_by(path: &Path, set_up: fn(Checker<'_>) -> Checker<'_>) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let bytes = fs::read(path).map_err(unreadable)?;
        if bytes.trim_ascii().is_empty() {
            return Err(ConfigError::Empty(path.to_owned()));
        }
        // Absolute, so that a later change of the working directory moves nothing.
        let absolute = std::path::absolute(path).map_err(unreadable)?;
        let base = absolute.parent().unwrap_or(Path::new("/"));
        let name = path.display().to_string();
        match str::from_utf8(&bytes) {
            Ok(text) => Self::parse_by(&Environment::of_process(), &name, text, base, set_up),
            Err(error) => Err(not_text(&name, &bytes, error.valid_up_to())),
        }
    }

    /// Reads a text. The name stands in errors; relative paths count from the base directory.
    ///
    /// # Errors
    ///
    /// When the text says what cannot be meant, or names certificates that cannot be read.
    pub fn parse(file_name: &str, text: &str, base_dir: &Path) -> Result<Self, ConfigError> {
        Self::parse_in(&Environment::of_process(), file_name, text, base_dir)
    }

    /// As [`Config::parse`], with a given environment.
    ///
    /// # Errors
    ///
    /// As [`Config::parse`].
    pub fn parse_in(
        environment: &Environment,
        file_name: &str,
        text: &str,
        base_dir: &Path,
    ) -> Result<Self, ConfigError> {
        Self::parse_by(environment, file_name, text, base_dir, |checker| checker)
    }

    fn parse_by(
        environment: &Environment,
        file_name: &str,
        text: &str,
        base_dir: &Path,
        set_up: fn(Checker<'_>) -> Checker<'_>,
    ) -> Result<Self, ConfigError> {
        let (document, syntax_errors) = DeTable::parse_recoverable(text);
        let places = Places {
            file: file_name.into(),
            text,
            document: document.get_ref(),
        };
        let report = |complaints: Vec<Complaint>| {
            let problems = complaints
                .into_iter()
                .map(|complaint| places.problem(complaint))
                .collect();
            ConfigError::Invalid(Problems::new(problems))
        };
        if !syntax_errors.is_empty() {
            // What follows a mistake of syntax is most often its consequence; the first is what must be mended.
            return Err(report({
                let first = syntax_errors.iter().take(1);
                first.map(|error| reader::syntax(error, text)).collect()
            }));
        }

        let (file, mut complaints) = reader::read(&document, text);
        let mut checker = set_up(Checker::new(environment, base_dir, text));
        let mut config = Self::check(file, &mut checker);
        let unread = !complaints.is_empty();
        // A key that was taken out because it could not be read is not missing.
        complaints.extend(
            checker
                .into_complaints()
                .into_iter()
                .filter(|c| !unread || c.missing.is_none()),
        );
        if complaints.is_empty() {
            config.settings = Settings::of(text);
            Ok(config)
        } else {
            Err(report(complaints))
        }
    }

    /// The defaults in a given environment: what an empty file means.
    pub fn built_in(environment: &Environment) -> Self {
        // An empty file has nothing to complain about.
        Self::check(File::default(), &mut Checker::new(environment, Path::new("/"), ""))
    }

    fn check(file: File, checker: &mut Checker<'_>) -> Self {
        let cache_at = file.cache.0.path.as_ref().map(Spanned::span);
        check_certificates(&file, checker);
        let (identity, named) = IdentityRules::check(&file.identity.0, checker);
        let bots = bots::check(file.bot, named, checker);
        identity.check_required(file.identity.0.required.as_ref(), &bots, checker);
        let proxy = Proxy::check(file.proxy.0, checker);
        let config = Self {
            admin: Admin::check(file.admin.0, &proxy, checker),
            proxy,
            https: Https::check(file.https.0, checker),
            robots: Robots::check(file.robots.0, checker),
            refusals: Refusals::check(file.refusals.0, checker),
            cache: Cache::check(file.cache.0, checker),
            egress: Egress::check(file.egress.0, checker),
            audit: Audit::check(file.audit.0, checker),
            identity,
            bots,
            expect: file
                .expect
                .into_iter()
                .filter_map(|expect| Expectation::check(expect, checker))
                .collect(),
            settings: Settings::default(),
        };
        if let (Some(span), Some(name)) = (cache_at, config.other_use_of(config.cache.path.as_deref())) {
            let message =
                format!("{name} names the same file; each would write over the other's, so give this one its own");
            checker.complain(span, message);
        }
        config
    }

    /// The key that names `path` for something else than the copies.
    fn other_use_of(&self, path: Option<&Path>) -> Option<&'static str> {
        let audit = match &self.audit.output {
            Output::File(path) => Some(&**path),
            Output::Stdout => None,
        };
        let tls = self.proxy.tls.as_ref();
        [
            ("audit.path", audit),
            ("https.ca-certificate", Some(&*self.https.ca_certificate)),
            ("https.ca-key", Some(&*self.https.ca_key)),
            ("admin.token-file", self.admin.token_file.as_deref()),
            ("identity.credentials", self.identity.credentials.as_deref()),
            ("proxy.tls.certificate", tls.map(|tls| &*tls.certificate)),
            ("proxy.tls.key", tls.map(|tls| &*tls.key)),
        ]
        .into_iter()
        .find(|(_, other)| path.is_some() && *other == path)
        .map(|(name, _)| name)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::built_in(&Environment::of_process())
    }
}

/// That clients can show the certificates that bots are known by.
fn check_certificates(file: &File, checker: &mut Checker<'_>) {
    let tls = file.proxy.0.tls.as_ref().map(Spanned::get_ref);
    if tls.is_some_and(|Table(tls)| tls.client_roots.is_some()) {
        return;
    }
    let bots = file.bot.iter().map(Spanned::get_ref);
    for certificates in bots.filter_map(|Table(bot)| bot.certificates.as_ref()) {
        if !certificates.get_ref().is_empty() {
            checker.complain(
                certificates.span(),
                "no client can show a certificate: [proxy.tls] has to listen, and its client-roots to say who vouches \
                 for them",
            );
        }
    }
}

/// A file of other bytes than UTF-8, the only encoding of TOML.
fn not_text(name: &str, bytes: &[u8], valid_up_to: usize) -> ConfigError {
    let text = String::from_utf8_lossy(bytes);
    // Up to here the lossy text and the file are the same bytes.
    let complaint = Complaint {
        span: valid_up_to..valid_up_to + 1,
        missing: None,
        message: "this byte is not UTF-8; save the file as UTF-8".to_owned(),
    };
    let places = Places {
        file: Arc::from(name),
        text: &text,
        document: &DeTable::new(),
    };
    ConfigError::Invalid(Problems::new(vec![places.problem(complaint)]))
}
