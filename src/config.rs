//! Parses a TOML file, environment variables and `--set` into a checked [`Config`], or into a list of mistakes.
//!
//! Each default is defined once: where its key is read, or in the `Default` of its type. Nothing here panics, opens a
//! socket or creates a file. The only files that this module reads are the configuration, and the root certificates,
//! credentials and other secrets that it names, except private keys.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::bot::{AgentPattern, Bot, Bots, Enforcement};
use crate::evidence::EvidenceOptions;
use crate::pace::Policy as Pace;
use crate::seal::SealOptions;
use crate::text::Second;
use crate::usage::UsagePolicy;

mod admin;
mod bots;
mod build;
mod canonical;
mod checker;
mod egress;
mod environment;
mod error;
mod expect;
mod fleet;
mod https;
mod keys;
mod locate;
mod pace;
mod proxy;
mod reader;
mod reading;
mod replayed;
mod robots;
mod schema;
mod sections;
mod settings;
mod show;
mod sources;
mod table;
mod text;
pub mod units;
mod watch;

pub use crate::audit::Output;
pub use crate::decision::{HttpsMode, Unverifiable};
pub use admin::{Admin, AdminToken};
pub use bots::IdentityRules;
pub use canonical::Canonical;
pub use egress::Egress;
pub use environment::{Environment, host_name};
pub use error::{ConfigError, Problem, Problems};
pub use expect::Expectation;
pub use fleet::Fleet;
pub use https::{Https, TunnelException};
pub use proxy::{ClientLimits, HeadLimits, Proxy, Tls};
pub use robots::Robots;
pub use sections::{Audit, Cache, Refusals};
pub use settings::{How, KeyChange, Settings};
pub use sources::{BadSetting, FILE_VARIABLE, SET_PREFIX, Setting, Sources};
pub use watch::{WatchError, Watcher};

use checker::Reads;
use keys::Recording;
use reading::Reading;
use table::Table;
use text::SourceText;

/// A checked configuration. Every section is optional; see `conf/robotgate.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub proxy: Proxy,
    pub https: Https,
    pub robots: Robots,
    pub refusals: Refusals,
    pub cache: Cache,
    /// `[evidence]`: the store of the robots.txt files and configurations that decisions are based on. `None` if it is
    /// not enabled.
    pub evidence: Option<EvidenceOptions>,
    /// `evidence.seal-path` and `evidence.seal-origin`: the folder with the hash tree of the audit log and the tree's
    /// signed checkpoint, and the name of the log in checkpoints.
    pub seal: SealOptions,
    /// `evidence.seal`: whether the proxy itself seals the audit log.
    pub seals: bool,
    /// `[fleet]`: the server that several robotgates share. `None` if `fleet.url` is not set.
    pub fleet: Option<Fleet>,
    pub egress: Egress,
    /// `[pace]`: how fast bots may send requests to one site; `None` for no limits.
    pub pace: Option<Pace>,
    pub usage: UsagePolicy,
    pub audit: Audit,
    pub admin: Admin,
    pub identity: IdentityRules,
    pub bots: Bots,
    /// `[[expect]]`, in the order of the file; [`crate::expect`] runs these cases.
    pub expect: Vec<Expectation>,
    /// The keys that are set in the file, in environment variables or with `--set`.
    pub settings: Settings,
    /// Everything that is set, as one text in a fixed form, with its digest.
    pub canonical: Canonical,
}

// === impl Config ===

impl Config {
    /// Reads a configuration from its sources.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is empty, or if there are mistakes, which [`Problems`] lists.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        Self::load_by(sources, Reads::All)
    }

    /// Does the same as [`Config::load`], but does not read the files with secrets.
    pub fn load_without_credentials(sources: &Sources) -> Result<Self, ConfigError> {
        Self::load_by(sources, Reads::NoSecrets)
    }

    /// Does the same as [`Config::load`], but reads none of the files that the configuration names.
    pub fn load_alone(sources: &Sources) -> Result<Self, ConfigError> {
        Self::load_by(sources, Reads::Nothing)
    }

    /// Like [`Config::load_alone`], but a key with a mistake has its default. So `robotgate health` finds the running
    /// proxy even if the file has a mistake now.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is empty or is not UTF-8.
    pub fn load_in_part(sources: &Sources) -> Result<Self, ConfigError> {
        let text = SourceText::load(sources)?;
        Ok(Reading::of(&Environment::of_process(), &text, Reads::Nothing, Recording::Nothing).config)
    }

    /// Does the same as [`Config::load_alone`] with a text instead of a file. `file_name` appears in errors.
    pub fn parse_alone(file_name: &str, text: &str) -> Result<Self, ConfigError> {
        let text = SourceText::new(file_name, text, Path::new("/"), &[]);
        Self::parse_by(&Environment::of_process(), &text, Reads::Nothing)
    }

    fn load_by(sources: &Sources, reads: Reads) -> Result<Self, ConfigError> {
        Self::parse_by(&Environment::of_process(), &SourceText::load(sources)?, reads)
    }

    /// Parses a configuration text. `file_name` appears in errors. Relative paths start at `base_dir`.
    ///
    /// # Errors
    ///
    /// Fails if the text is invalid, or names certificates or secrets that cannot be read.
    pub fn parse(file_name: &str, text: &str, base_dir: &Path) -> Result<Self, ConfigError> {
        Self::parse_in(&Environment::of_process(), file_name, text, base_dir)
    }

    /// Does the same as [`Config::parse`] with the defaults of `environment` instead of this process's environment.
    pub fn parse_in(
        environment: &Environment,
        file_name: &str,
        text: &str,
        base_dir: &Path,
    ) -> Result<Self, ConfigError> {
        let text = SourceText::new(file_name, text, base_dir, &[]);
        Self::parse_by(environment, &text, Reads::All)
    }

    fn parse_by(environment: &Environment, text: &SourceText, reads: Reads) -> Result<Self, ConfigError> {
        Reading::of(environment, text, reads, Recording::Nothing).checked(text)
    }

    /// Returns the configuration in which each key has its default in `environment`.
    pub fn built_in(environment: &Environment) -> Self {
        // A text without keys has no mistakes to report.
        let text = SourceText::default();
        Reading::of(environment, &text, Reads::All, Recording::Nothing).config
    }

    fn read(file: &Table<'_>) -> Self {
        let proxy = file.table("proxy", Proxy::read);
        let https = file.table("https", Https::read);
        let robots = file.table("robots", Robots::read);
        let refusals = file.table("refusals", Refusals::read);
        let cache = file.table("cache", Cache::read);
        let (evidence, seal, seals) = file.table("evidence", |table| sections::evidence(table, &cache));
        let fleet = file.table("fleet", |table| Fleet::read(table, file.span_of("pace").is_some()));
        let ftp = file.table("ftp", |table| table.flag_or("enabled", true));
        let egress = file.table("egress", |table| Egress::read(table, ftp));
        let pace = file.table("pace", pace::read);
        let usage = file.table("usage", sections::usage);
        let audit = file.table("audit", Audit::read);
        let admin = file.table("admin", |table| Admin::read(table, &proxy));
        let (identity, bots) = bots::read(file);
        let config = Self {
            proxy,
            https,
            robots,
            refusals,
            cache,
            evidence,
            seal,
            seals,
            fleet,
            egress,
            pace,
            usage,
            audit,
            admin,
            identity,
            bots,
            expect: file.tables("expect", Expectation::read),
            settings: Settings::default(),
            canonical: Canonical::default(),
        };
        // If `audit.path` is set but has a mistake, that has been reported already.
        if config.seals && config.audit.output.file().is_none() && file.span_of("audit.path").is_none() {
            file.checker.complain(
                file.span_of("evidence.seal").unwrap_or_default(),
                "the log is on standard output, and only a file can be sealed; name one in audit.path",
            );
        }
        let evidence = config.evidence.as_ref().map(|evidence| &*evidence.path);
        for (key, path) in [
            ("cache.path", config.cache.path.as_deref()),
            ("evidence.path", evidence),
        ] {
            if let (Some(span), Some(name)) = (file.span_of(key), config.conflicting_use(key, path)) {
                let message = format!("{name} names the same file; use a different path for one of them");
                file.checker.complain(span, message);
            }
        }
        config
    }

    fn conflicting_use(&self, key: &str, path: Option<&Path>) -> Option<&'static str> {
        let tls = self.proxy.tls.as_ref();
        [
            ("audit.path", self.audit.output.file()),
            ("cache.path", self.cache.path.as_deref()),
            ("https.ca-certificate", Some(&*self.https.ca_certificate)),
            ("https.ca-key", Some(&*self.https.ca_key)),
            ("admin.token-file", self.admin.token_file.as_deref()),
            ("identity.credentials", self.identity.credentials.as_deref()),
            ("proxy.tls.certificate", tls.map(|tls| &*tls.certificate)),
            ("proxy.tls.key", tls.map(|tls| &*tls.key)),
        ]
        .into_iter()
        .find(|(name, other)| *name != key && path.is_some() && *other == path)
        .map(|(name, _)| name)
    }

    /// Returns warnings about a valid configuration. `file` is the configuration file.
    pub fn warnings(&self, file: Option<&Path>, now: SystemTime) -> Vec<String> {
        let ended = self.https.tunnels.iter().filter(|tunnel| !tunnel.holds(now));
        let ended = ended.map(|tunnel| {
            format!(
                "https.tunnel: the entry for {} ended at {} (until), so https.mode applies to this host. Write a later \
                 until, or remove the entry",
                tunnel.host,
                Second(tunnel.until)
            )
        });
        ended
            .chain(self.audit_is_watched(file))
            .chain(self.fleet_has_no_key())
            .chain(self.bots_without_proof())
            .collect()
    }

    /// Finds bots whose `user-agents` name products, but not the bot's name. For each of these bots, returns its name
    /// and the first of its products. robotgate looks for the bot's name in a robots.txt, but sites may have rules for
    /// the product. Leaves out exempt bots and bots with `robots-agents`.
    pub fn bots_looked_up_by_name(&self) -> Vec<(&str, &str)> {
        let is_set = |bot: &Bot| {
            let key = format!("bot.{}.robots-agents", bot.name);
            self.settings.iter().any(|(set, _)| set == key)
        };
        let bots = self.bots.iter().filter(|bot| bot.enforcement != Enforcement::Exempt);
        bots.filter(|bot| !is_set(bot))
            .filter_map(|bot| {
                let mut agents = bot.user_agents.iter().filter_map(AgentPattern::product);
                let first = agents.next()?;
                let is_name = |agent: &str| agent.eq_ignore_ascii_case(&bot.name);
                let is_named = is_name(first)
                    || agents.any(is_name)
                    || bot
                        .user_agents
                        .iter()
                        .any(|pattern| pattern.matches(bot.name.as_bytes()));
                (!is_named).then_some((&*bot.name, first))
            })
            .collect()
    }

    fn fleet_has_no_key(&self) -> Option<String> {
        let fleet = self.fleet.as_ref()?;
        fleet.settings.key.is_none().then(|| {
            format!(
                "fleet.key-file: without a key, anyone who can write to {} can forge the robots.txt of any site; make one \
                 key for all robotgates with \"(umask 77; openssl rand -hex 32 > fleet-key)\" and name it in fleet.key-file",
                fleet.settings.address
            )
        })
    }

    fn bots_without_proof(&self) -> impl Iterator<Item = String> {
        let bots = self.bots.iter().filter(|_| self.identity.required);
        bots.filter(|bot| !bot.accepted_proofs.are_required()).map(|bot| {
            format!(
                "the bot {:?} has no proof, and identity.required refuses clients without one: add credentials, \
                 certificates or networks to its [[bot]]",
                bot.name
            )
        })
    }

    /// Returns the files with credentials, the admin token and the fleet's secrets, but not those with private keys.
    /// robotgate reloads if one of the returned files changes.
    pub fn secret_files(&self) -> Vec<&Path> {
        let named = [&self.identity.credentials, &self.admin.token_file];
        let of_fleet = self.fleet.iter().flat_map(|fleet| &fleet.secret_files);
        named
            .into_iter()
            .flatten()
            .chain(of_fleet)
            .map(|path| &**path)
            .collect()
    }

    fn audit_is_watched(&self, file: Option<&Path>) -> Option<String> {
        let Output::File(log) = &self.audit.output else {
            return None;
        };
        let folder = |path: &Path| fs::canonicalize(std::path::absolute(path).ok()?.parent()?).ok();
        let log_folder = folder(log)?;
        let secrets = self.secret_files();
        let mut watched = secrets.into_iter().chain(file);
        let beside = watched.find(|path| folder(path).as_ref() == Some(&log_folder))?;
        Some(format!(
            "audit.path: the audit log {} is in the same folder as {}, which robotgate watches for changes, so \
             every line costs extra time; move the log to another folder",
            log.display(),
            beside.display()
        ))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::built_in(&Environment::of_process())
    }
}
