//! Decides whether a site forbids the purposes of a bot, after robots.txt has allowed the URL.

use http::HeaderMap;
use serde::Serialize;

use super::{Decision, Question, Reason, Verdict, response_fields};
use crate::{
    bot::{Enforcement, Identity},
    copy::Sha256,
    origin::{Readings, Scheme},
    robots::{Agent, Preference},
    text::words,
    usage::{Label, Purpose, Purposes, UseRefusal, UseSource, UseStatement, Vocabulary, VocabularyPolicy},
};

/// What a site says about the purposes of a bot. A decision on a bot without purposes has no such report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    pub purposes: Purposes,
    pub said: Vec<UseStatement>,
    /// If the verdict is `deny` because of a purpose of the bot: which purpose, and why.
    pub refused: Option<UseRefusal>,
    /// `None` if the decision does not depend on the site's `tdmrep.json`.
    pub tdmrep: Option<TdmrepState>,
    /// SHA-256 of the `tdmrep.json` that was used.
    pub tdmrep_sha256: Option<Sha256>,
    /// Whether the robots.txt forbids a purpose of the bot for some paths only, in a vocabulary that the configuration
    /// enforces. robotgate then cannot decide a tunnel, because it does not see the path.
    #[serde(skip)]
    pub(crate) is_partial: bool,
}

words! {
    /// What is known of a site's `tdmrep.json` when a request is decided.
    pub enum TdmrepState {
        /// The site has the file.
        Found = "file",
        /// The site has no file, or robotgate could never fetch it.
        None = "none",
        /// The first fetch of the file has not ended.
        Pending = "pending",
        /// The file can matter, but this decision was made without it.
        NotAsked = "not-asked",
    }
}

// === impl UsageReport ===

impl UsageReport {
    pub(super) fn new(purposes: Purposes) -> Self {
        Self {
            purposes,
            ..Self::default()
        }
    }

    /// Returns the statement that refuses the request. If `refused` is `None`, returns the first statement that forbids
    /// a use.
    pub fn deciding_statement(&self) -> Option<&UseStatement> {
        match &self.refused {
            Some(refused) => refused.statement(),
            None => self.said.iter().find(|statement| !statement.allowed),
        }
    }

    pub(super) fn refuses(&self) -> bool {
        self.said.iter().any(UseStatement::refuses)
    }

    /// Adds `said`, the statements about another reading of the path. A use stays allowed only if `said` allows it too,
    /// and what `said` forbids is forbidden.
    fn tighten(&mut self, said: &[UseStatement]) {
        let allows = |kept: &UseStatement| said.iter().any(|other| other.allowed && other.is_same_label(kept));
        self.said.retain(|kept| !kept.allowed || allows(kept));
        for forbidden in said.iter().filter(|statement| !statement.allowed) {
            self.add(*forbidden);
        }
    }

    /// Adds a statement. Of two with the same vocabulary, label and purpose, only one stays: one that forbids the use,
    /// or else the first.
    pub(super) fn add(&mut self, statement: UseStatement) {
        match self.said.iter_mut().find(|other| other.is_same_label(&statement)) {
            Some(other) if other.allowed && !statement.allowed => *other = statement,
            Some(_) => {}
            None => self.said.push(statement),
        }
    }
}

// === impl Question ===

impl Question {
    pub(super) fn usage_report(&self) -> Option<Box<UsageReport>> {
        let purposes = self.subject.purposes;
        (!purposes.is_empty()).then(|| Box::new(UsageReport::new(purposes)))
    }

    /// Adds what the robots.txt says about the path. If it forbids a use for any reading of the path, the use counts as
    /// forbidden. Returns `None` and leaves the report incomplete if that takes more work than `budget`.
    pub(super) fn add_usage_of_path(
        &self,
        report: &mut UsageReport,
        agent: Agent<'_>,
        readings: &Readings<'_>,
        budget: &mut usize,
    ) -> Option<()> {
        let is_read = |vocabulary: &Vocabulary| self.terms.usage.of(*vocabulary) != VocabularyPolicy::Off;
        if !Vocabulary::IN_ROBOTS_TXT.iter().any(is_read) {
            return Some(());
        }
        for (number, reading) in readings.all().enumerate() {
            let text = readings.text(reading);
            *budget = budget.checked_sub(text.len())?;
            let usage = agent.usage_within(&text, budget)?;
            let mut of_reading = UsageReport::new(report.purposes);
            self.add_usage(&mut of_reading, |vocabulary, label| {
                let Preference { allowed, line } = usage.preference(vocabulary, label.name)?;
                Some((allowed, line))
            });
            match number {
                0 => report.said = of_reading.said,
                _ => report.tighten(&of_reading.said),
            }
        }
        Some(())
    }

    pub(super) fn add_usage_of_site(&self, report: &mut UsageReport, agent: Agent<'_>) {
        let usage = agent.usage_of_site();
        let mut is_refused_everywhere = false;
        let mut is_refused_somewhere = false;
        self.add_usage(report, |vocabulary, label| {
            let found = usage.of_site(vocabulary, label.name)?;
            let is_asked = label
                .purposes
                .iter()
                .any(|purpose| self.subject.purposes.contains(*purpose));
            let is_refused = !found.allowed && is_asked && self.terms.usage.of(vocabulary) == VocabularyPolicy::Enforce;
            is_refused_everywhere |= is_refused && found.everywhere;
            is_refused_somewhere |= is_refused;
            // If a use is allowed for some paths only, it may be forbidden for the unknown path in the tunnel.
            (!found.allowed || found.everywhere).then_some((found.allowed, found.line))
        });
        report.is_partial = is_refused_somewhere && !is_refused_everywhere;
    }

    fn add_usage(&self, report: &mut UsageReport, mut said: impl FnMut(Vocabulary, &Label) -> Option<(bool, u32)>) {
        let policy = &self.terms.usage;
        let read = |vocabulary: &Vocabulary| policy.of(*vocabulary) != VocabularyPolicy::Off;
        for vocabulary in Vocabulary::IN_ROBOTS_TXT.into_iter().filter(read) {
            for label in vocabulary.labels() {
                if let Some((allowed, line)) = said(vocabulary, label) {
                    let source = UseSource::Line(line);
                    let statements = policy.statements(report.purposes, vocabulary, label, allowed, source);
                    statements.for_each(|statement| report.add(statement));
                }
            }
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Returns whether the decision still needs the site's `tdmrep.json`.
    pub(super) fn needs_tdmrep(&self) -> bool {
        // The TDM Reservation Protocol is for web sites, not for FTP.
        let is_web = self.target().origin.scheme != Scheme::Ftp;
        let is_read = is_web && self.question.terms.usage.tdmrep != VocabularyPolicy::Off;
        let mines = |report: &UsageReport| report.purposes.contains(Purpose::Tdm);
        self.can_settle() && is_read && self.usage.as_deref().is_some_and(mines)
    }

    /// Refuses the request if there is a [`UseRefusal`]: the site forbids a purpose of the bot, or does not allow it
    /// (`usage.unknown`), or its `tdmrep.json` is still being fetched.
    pub(super) fn settle_usage(&mut self) {
        if !self.can_settle() {
            return;
        }
        let policy = self.question.terms.usage;
        let Some(report) = self.usage.as_deref_mut() else {
            return;
        };
        // In a tunnel, whose path is unknown, ignore lines that forbid a use for some paths only.
        let counts = |said: &&UseStatement| {
            let is_of_some_paths = report.is_partial && !said.allowed && matches!(said.source, UseSource::Line(_));
            !is_of_some_paths
        };
        let said: Vec<UseStatement> = report.said.iter().filter(counts).copied().collect();
        let is_pending = report.tdmrep == Some(TdmrepState::Pending) && policy.can_refuse(&[Vocabulary::Tdmrep]);
        let pending = is_pending.then_some(UseRefusal::Pending(Purpose::Tdm));
        report.refused = pending.or_else(|| policy.refusal(report.purposes, &said));
        if report.refused.is_some() {
            self.refuse(Verdict::Deny, Reason::Usage);
        }
    }

    /// Returns whether the request is refused only until the site's `tdmrep.json` has been fetched.
    pub(super) fn waits_for_tdmrep(&self) -> bool {
        let refused = self.usage.as_deref().and_then(|usage| usage.refused);
        self.reason == Reason::Usage && matches!(refused, Some(UseRefusal::Pending(_)))
    }

    /// Returns whether a forbidden use can still change the verdict. It cannot change a refusal, not even one
    /// that robotgate only reports.
    fn can_settle(&self) -> bool {
        match self.verdict {
            Verdict::Allow => true,
            Verdict::Unverifiable => self.forwarded && self.enforcement == Enforcement::Enforce,
            Verdict::Deny | Verdict::Defer => false,
        }
    }

    /// Returns what these fields of the origin's response say about the purposes of the bot.
    pub fn said_by(&self, response: &HeaderMap) -> Vec<UseStatement> {
        let purposes = self.purposes();
        if purposes.is_empty() {
            return Vec::new();
        }
        let is_bot = |name: &str| match &self.question.subject.identity {
            Identity::Bot(bot) => bot.goes_by().any(|own| own.eq_ignore_ascii_case(name)),
            _ => false,
        };
        response_fields::said(response, &self.question.terms.usage, purposes, is_bot)
    }

    /// Adds what the origin's response says. Returns `true` if the response forbids a use, and no earlier statement
    /// forbids any.
    pub fn add_said(&mut self, said: &[UseStatement]) -> bool {
        let Some(report) = &mut self.usage else {
            return false;
        };
        let forbade = report.deciding_statement().is_some();
        report.said.extend(said);
        !forbade && report.deciding_statement().is_some()
    }

    /// Returns the refusal that replaces this decision, and the enforced statement in the origin's response that causes
    /// it. `None` if there is no such statement, or the bot's enforcement is not `enforce`.
    pub fn withdrawn(&self, said: &[UseStatement]) -> Option<(Self, UseStatement)> {
        let statement = said.iter().find(|statement| statement.refuses())?;
        if self.enforcement != Enforcement::Enforce {
            return None;
        }
        let mut withdrawn = self.clone();
        let report = withdrawn.usage.as_deref_mut()?;
        report.said.extend(said);
        report.refused = Some(UseRefusal::Forbidden(*statement));
        withdrawn.refuse(Verdict::Deny, Reason::Usage);
        Some((withdrawn, *statement))
    }

    /// Returns whether the origin's response can change the decision, by forbidding one of the bot's purposes. For that,
    /// the request must be forwarded, and the bot must have purposes.
    pub fn depends_on_response(&self) -> bool {
        self.forwarded && !self.purposes().is_empty()
    }

    /// Returns the purposes that the origin's response can forbid; none for an exempt bot and for the robots.txt
    /// itself.
    pub fn purposes(&self) -> Purposes {
        self.usage
            .as_deref()
            .map_or_else(Purposes::default, |report| report.purposes)
    }
}
