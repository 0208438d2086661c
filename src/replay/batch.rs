//! Decides the requests of many log lines again, on all cores, and keeps in memory the texts that the lines name.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::SystemTime,
};

use super::{
    Finding, LoggedDecision, Missing, ReplayOutcome, Scenario, Texts, is_as_logged, line::LoggedLine, replay, what_if,
};
use crate::{
    config::Config,
    copy::{RobotsCopy, Sha256, TdmRep},
    evidence::{EvidenceReader, FileError, Version},
    parallel::in_parallel,
    robots::Profile,
};

/// Decides the requests of log lines again, with the texts of a store of evidence.
pub struct Replayer {
    read: ReadTexts,
    histories: Option<ReadHistories>,
    versions: HashMap<String, Vec<Version>>,
    cores: usize,
    /// When `weight` exceeds this, all robots.txt and `tdmrep.json` texts are dropped.
    max_weight: usize,
    configs: HashMap<Sha256, Result<Arc<Config>, Missing>>,
    copies: HashMap<(Sha256, Profile), Arc<RobotsCopy>>,
    tdmreps: HashMap<Sha256, TdmRep>,
    /// The digests of texts that the store of evidence does not have.
    absent: BTreeSet<Sha256>,
    /// Approximate size of `copies` and `tdmreps` in memory, in bytes.
    weight: usize,
}

/// Reads texts by their digests. The result lacks texts that the store of evidence does not have.
pub type ReadTexts = Box<dyn Fn(&[Sha256]) -> Result<HashMap<Sha256, Vec<u8>>, FileError> + Send + Sync>;

/// Reads for each origin the versions of its robots.txt, the oldest first.
pub type ReadHistories = Box<dyn Fn(&[&str]) -> Result<Vec<Vec<Version>>, FileError> + Send + Sync>;

/// The result for one line of a log.
#[derive(Debug)]
pub enum Replayed<'a, O = ReplayOutcome> {
    Decision(Box<LoggedDecision<'a>>, O),
    /// [`Replayer::what_if`] ran out of time before it decided this line.
    Skipped,
    Unreadable,
    /// A record that is not a decision, or an empty line.
    Other,
}

// === impl Replayer ===

impl Replayer {
    /// Creates a replayer that uses all cores.
    pub fn new(store: EvidenceReader) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let history = store.clone();
        Self::with(Box::new(move |digests| store.read(digests)), cores, MAX_WEIGHT)
            .with_histories(Box::new(move |origins| history.histories(origins)))
    }

    /// Creates a replayer that uses `cores` threads, and about `max_weight` bytes for texts.
    pub fn with(read: ReadTexts, cores: usize, max_weight: usize) -> Self {
        Self {
            read,
            histories: None,
            versions: HashMap::new(),
            cores,
            max_weight,
            configs: HashMap::new(),
            copies: HashMap::new(),
            tdmreps: HashMap::new(),
            absent: BTreeSet::new(),
            weight: 0,
        }
    }

    /// If a logged decision used no robots.txt, lets [`what_if`](Self::what_if) use the one that the site had at the
    /// time of the request.
    #[must_use]
    pub fn with_histories(self, histories: ReadHistories) -> Self {
        let histories = Some(histories);
        Self { histories, ..self }
    }

    /// Decides the requests of log lines again, and returns the results in the order of the lines. Fails if the store
    /// of evidence cannot be read.
    pub fn replay<'a>(&mut self, lines: &[&'a [u8]]) -> Result<Vec<Replayed<'a>>, FileError> {
        self.each(lines, None, |replayer, logged| Some(replayer.outcome(logged)))
    }

    /// Decides the requests of log lines as if `change` had been in force, and skips the lines that are left once
    /// `is_late` returns true. Fails if the store of evidence cannot be read.
    pub fn what_if<'a>(
        &mut self,
        lines: &[&'a [u8]],
        change: &Scenario,
        is_late: impl Fn() -> bool + Sync,
    ) -> Result<Vec<Replayed<'a, Finding>>, FileError> {
        self.each(lines, Some(change), |replayer, logged| {
            let config = replayer.config_of(logged, Some(change)).ok();
            let texts = replayer.texts_of(logged, config);
            (!is_late()).then(|| what_if(logged, change, replayer.config_of(logged, None), texts))
        })
    }

    /// Returns whether the `[pace]` limits of `change` differ from those of the configuration of at least one decision.
    pub fn changes_pace(&self, replayed: &[Replayed<'_, Finding>], change: &Scenario) -> bool {
        replayed.iter().any(|replayed| match replayed {
            Replayed::Decision(logged, _) => change.changes_pace(self.config_of(logged, None).ok()),
            _ => false,
        })
    }

    /// Decides the lines in portions whose texts roughly fit into `max_weight`.
    fn each<'a, O: Send>(
        &mut self,
        lines: &[&'a [u8]],
        change: Option<&Scenario>,
        decide: impl Fn(&Self, &LoggedDecision<'_>) -> Option<O> + Sync,
    ) -> Result<Vec<Replayed<'a, O>>, FileError> {
        let mut all = Vec::with_capacity(lines.len());
        for some in lines.chunks((self.max_weight / LARGEST).max(1)) {
            all.extend(self.some(some, change, &decide)?);
        }
        Ok(all)
    }

    /// Decides one portion of the lines. Does not read texts that `change` replaces.
    fn some<'a, O: Send>(
        &mut self,
        lines: &[&'a [u8]],
        change: Option<&Scenario>,
        decide: impl Fn(&Self, &LoggedDecision<'_>) -> Option<O> + Sync,
    ) -> Result<Vec<Replayed<'a, O>>, FileError> {
        let mut parsed = in_parallel(self.cores, lines, |line| LoggedLine::parse(line));
        if let Some(change) = change {
            self.fill_in_lookups(&mut parsed, change)?;
        }
        let concerned = |logged: &LoggedDecision<'_>| change.is_none_or(|change| change.concerns(logged));
        let decisions = parsed.iter().filter_map(|line| match line {
            LoggedLine::Decision(logged) if concerned(logged) => Some(&**logged),
            _ => None,
        });
        self.read_texts(decisions, change)?;
        let outcomes = in_parallel(self.cores, &parsed, |line| match line {
            LoggedLine::Decision(logged) => decide(self, logged),
            LoggedLine::Other | LoggedLine::Unreadable => None,
        });
        let all = parsed.into_iter().zip(outcomes);
        Ok(all
            .map(|both| match both {
                (LoggedLine::Decision(logged), Some(outcome)) => Replayed::Decision(logged, outcome),
                (LoggedLine::Decision(_), None) => Replayed::Skipped,
                (LoggedLine::Unreadable, _) => Replayed::Unreadable,
                _ => Replayed::Other,
            })
            .collect())
    }

    /// Some decisions used no robots.txt, but may need one with `change`. Adds to their lines which robots.txt the site
    /// had before the request, or that it had none, as far as the store of evidence says.
    fn fill_in_lookups(&mut self, parsed: &mut [LoggedLine<'_>], change: &Scenario) -> Result<(), FileError> {
        let Some(read) = &self.histories else { return Ok(()) };
        let mut without: Vec<(&mut LoggedDecision<'_>, SystemTime)> = parsed
            .iter_mut()
            .filter_map(|line| match line {
                LoggedLine::Decision(logged)
                    if !logged.has_lookup()
                        && !is_as_logged(logged)
                        && !change.replaces(logged)
                        && change.concerns(logged) =>
                {
                    let time = logged.time().ok()?;
                    Some((&mut **logged, time))
                }
                _ => None,
            })
            .collect();
        let origins = without.iter().map(|(logged, _)| &*logged.origin);
        let new: BTreeSet<&str> = origins.filter(|origin| !self.versions.contains_key(*origin)).collect();
        if !new.is_empty() {
            let new: Vec<&str> = new.into_iter().collect();
            let histories = read(&new)?;
            self.versions.extend(new.into_iter().map(str::to_owned).zip(histories));
        }
        for (logged, time) in &mut without {
            let versions = self.versions.get(&*logged.origin);
            let seen = versions.and_then(|versions| versions.iter().rfind(|version| version.first_seen <= *time));
            match seen.map(|version| (version.text.as_ref(), version.status)) {
                Some((Some(text), _)) => logged.robots_sha256 = Some(text.sha256),
                // The site had no robots.txt. With every configuration, all these statuses mean the same.
                Some((None, status)) if (300..500).contains(&status) && status != 429 => {
                    logged.robots_status = Some(404);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the configuration and the texts of a decision, as far as they are in memory. Replaying more lines can
    /// drop them.
    pub fn sources(&self, logged: &LoggedDecision<'_>) -> (Option<&Config>, Texts<'_>) {
        let config = self.config_of(logged, None).ok();
        (config, self.texts_of(logged, config))
    }

    /// Returns the configuration of `change` or, if it has none, the one that the log line names. Fails if the line
    /// names none, if the store of evidence does not have it, or if this version of robotgate does not accept it.
    pub fn config_of<'s>(
        &'s self,
        logged: &LoggedDecision<'_>,
        change: Option<&'s Scenario>,
    ) -> Result<&'s Config, Missing> {
        if let Some(config) = change.and_then(Scenario::config) {
            return Ok(config);
        }
        let sha256 = logged.config_sha256.ok_or(Missing::NoConfig)?;
        match self.configs.get(&sha256) {
            Some(Ok(config)) => Ok(config),
            Some(Err(missing)) => Err(missing.clone()),
            None => Err(Missing::Config(sha256)),
        }
    }

    fn texts_of(&self, logged: &LoggedDecision<'_>, config: Option<&Config>) -> Texts<'_> {
        let robots = logged.robots_sha256.zip(config);
        let robots = robots.and_then(|(sha256, config)| self.copies.get(&(sha256, config.robots.policy.profile)));
        let tdmrep = logged.tdmrep_sha256().and_then(|sha256| self.tdmreps.get(&sha256));
        Texts { robots, tdmrep }
    }

    fn outcome(&self, logged: &LoggedDecision<'_>) -> ReplayOutcome {
        match self.config_of(logged, None) {
            Ok(config) => replay(logged, config, self.texts_of(logged, Some(config))),
            Err(missing) => ReplayOutcome::NotReplayable(missing),
        }
    }

    fn read_texts<'l, 'a: 'l>(
        &mut self,
        decisions: impl Iterator<Item = &'l LoggedDecision<'a>> + Clone,
        change: Option<&Scenario>,
    ) -> Result<(), FileError> {
        let configs = decisions.clone().filter_map(|logged| logged.config_sha256);
        let new: BTreeSet<Sha256> = configs.filter(|sha256| !self.configs.contains_key(sha256)).collect();
        for (sha256, text) in self.read(new)? {
            let config = text.map_or(Err(Missing::Config(sha256)), |text| {
                let config = str::from_utf8(&text)
                    .ok()
                    .and_then(|text| Config::for_replay(text).ok());
                config.map(Arc::new).ok_or(Missing::BadConfig(sha256))
            });
            self.configs.insert(sha256, config);
        }
        if self.weight > self.max_weight {
            self.copies.clear();
            self.tdmreps.clear();
            self.weight = 0;
        }
        let tdmreps = decisions.clone().filter_map(|logged| logged.tdmrep_sha256());
        let new = tdmreps.filter(|sha256| !self.tdmreps.contains_key(sha256) && !self.absent.contains(sha256));
        for (sha256, text) in self.read(new.collect())? {
            match text {
                Some(text) => {
                    self.weight += text.len();
                    self.tdmreps.insert(sha256, TdmRep::parse(&text));
                }
                None => drop(self.absent.insert(sha256)),
            }
        }
        let needed = decisions.filter(|logged| change.is_none_or(|change| !change.replaces(logged)));
        let named = needed.filter_map(|logged| {
            let config = self.config_of(logged, change).ok()?;
            Some((logged.robots_sha256?, config.robots.policy.profile))
        });
        let new: HashMap<(Sha256, Profile), ()> = named
            .filter(|key| !self.copies.contains_key(key) && !self.absent.contains(&key.0))
            .map(|key| (key, ()))
            .collect();
        let texts = self.read(new.keys().map(|(sha256, _)| *sha256).collect())?;
        let new: Vec<_> = new.into_keys().collect();
        let copies = in_parallel(self.cores, &new, |(sha256, profile)| {
            let text = texts.get(sha256)?.as_deref()?;
            Some(Arc::new(RobotsCopy::new(*profile, text, SystemTime::UNIX_EPOCH)))
        });
        for (key, copy) in new.into_iter().zip(copies) {
            match copy {
                Some(copy) => {
                    self.weight += copy.weight();
                    self.copies.insert(key, copy);
                }
                None => drop(self.absent.insert(key.0)),
            }
        }
        Ok(())
    }

    /// Reads texts in portions, because a running proxy cannot write to the store of evidence during a read.
    fn read(&self, digests: BTreeSet<Sha256>) -> Result<Found, FileError> {
        let digests: Vec<_> = digests.into_iter().collect();
        let mut all = Found::with_capacity(digests.len());
        for some in digests.chunks(AT_ONCE) {
            let mut found = (self.read)(some)?;
            all.extend(some.iter().map(|sha256| (*sha256, found.remove(sha256))));
        }
        Ok(all)
    }
}

/// The text for each digest; `None` if the store of evidence does not have it.
type Found = HashMap<Sha256, Option<Vec<u8>>>;

/// Roughly how much memory the texts may take, in bytes.
const MAX_WEIGHT: usize = 512 * 1024 * 1024;
/// Roughly how much memory the largest robots.txt takes, in bytes.
const LARGEST: usize = 1024 * 1024;
const AT_ONCE: usize = 2_000;
