//! What bots use content for, and what sites say about that: the purposes, the vocabularies in which sites speak, and
//! the policy for each vocabulary. No I/O and no clock.
//!
//! Each vocabulary has labels of its own. One table, [`Vocabulary::labels`], says which purposes each label covers.
//! [`crate::robots`] reads the vocabularies of a robots.txt, [`TdmRep`](crate::copy::TdmRep) a site's `tdmrep.json`,
//! and [`crate::decision`] the fields of a response.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::text::words;

words! {
    /// What a bot uses content for.
    #[derive(PartialOrd, Ord)]
    pub enum Purpose {
        /// To build a search index, and to show results that link to the page.
        Search = "search",
        /// As input to a model that answers a question, for example after a search.
        AiInput = "ai-input",
        /// To train or fine-tune models.
        AiTrain = "ai-train",
        /// Text and data mining (Directive (EU) 2019/790, article 4).
        Tdm = "tdm",
    }
}

words! {
    /// A vocabulary in which sites say what their content may be used for.
    #[derive(PartialOrd, Ord)]
    pub enum Vocabulary {
        /// `Content-Signal` lines of a robots.txt (contentsignals.org).
        ContentSignal = "content-signal",
        /// `Content-Usage` in a robots.txt or a response (draft-ietf-aipref-attach-05, draft-ietf-aipref-vocab-07).
        ContentUsage = "content-usage",
        /// `tdm-reservation` in `/.well-known/tdmrep.json` or a response (TDM Reservation Protocol).
        Tdmrep = "tdmrep",
        /// `noai` and `noimageai` in the `X-Robots-Tag` field of a response.
        XRobotsTag = "x-robots-tag",
    }
}

words! {
    /// What happens if a site forbids a use.
    #[derive(Default)]
    pub enum VocabularyPolicy {
        /// robotgate does not read the vocabulary.
        Off = "off",
        /// The request is forwarded, and robotgate reports what the site says.
        #[default]
        Report = "report",
        /// The request is refused.
        Enforce = "enforce",
    }
}

words! {
    /// What happens if a site says nothing about a purpose.
    #[derive(Default)]
    pub enum Unknown {
        /// The use is allowed.
        #[default]
        Allow = "allow",
        /// The request is refused.
        Deny = "deny",
    }
}

words! {
    /// The kind of a [`UseRefusal`].
    pub enum WhyRefused {
        Forbidden = "forbidden",
        Unknown = "unknown",
        Pending = "pending",
    }
}

/// The `[usage]` section of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsagePolicy {
    pub content_signal: VocabularyPolicy,
    pub content_usage: VocabularyPolicy,
    pub tdmrep: VocabularyPolicy,
    pub x_robots_tag: VocabularyPolicy,
    pub unknown: Unknown,
}

/// A set of purposes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purposes(u8);

/// A label of a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The label as sites write it.
    pub name: &'static str,
    /// The purposes that the label is about.
    pub purposes: &'static [Purpose],
}

/// What a site says about one purpose of a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseStatement {
    pub vocabulary: Vocabulary,
    pub label: &'static str,
    pub purpose: Purpose,
    pub allowed: bool,
    pub source: UseSource,
    pub policy: VocabularyPolicy,
}

/// Where a site says how its content may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseSource {
    /// The number of a line of the robots.txt, from 1.
    Line(u32),
    /// The number of an entry of the `tdmrep.json`, from 1.
    Entry(u32),
    /// The name of a field of the response.
    Field(&'static str),
}

/// Why a request is refused because of a bot's purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseRefusal {
    /// The site forbids the use.
    Forbidden(UseStatement),
    /// No statement of the site allows the use, and the configuration refuses such requests (`usage.unknown`).
    Unknown(Purpose),
    /// The site's `tdmrep.json`, which can forbid the use, is still being fetched.
    Pending(Purpose),
}

// === impl Vocabulary ===

impl Vocabulary {
    /// The vocabularies that can occur in a robots.txt.
    pub const IN_ROBOTS_TXT: [Self; 2] = [Self::ContentSignal, Self::ContentUsage];

    /// Returns the labels that robotgate knows, and the purposes that each covers. It ignores other labels.
    #[must_use]
    pub const fn labels(self) -> &'static [Label] {
        match self {
            Self::ContentSignal => CONTENT_SIGNAL,
            Self::ContentUsage => CONTENT_USAGE,
            Self::Tdmrep => TDMREP,
            Self::XRobotsTag => X_ROBOTS_TAG,
        }
    }
}

const CONTENT_SIGNAL: &[Label] = &[
    Label::new("search", &[Purpose::Search]),
    Label::new("ai-input", &[Purpose::AiInput]),
    Label::new("ai-train", &[Purpose::AiTrain]),
];
const CONTENT_USAGE: &[Label] = &[
    Label::new("train-ai", &[Purpose::AiTrain]),
    Label::new("search", &[Purpose::Search]),
];
const TDMREP: &[Label] = &[Label::new("tdm-reservation", &[Purpose::Tdm])];
const X_ROBOTS_TAG: &[Label] = &[
    Label::new("noai", &[Purpose::AiInput, Purpose::AiTrain]),
    Label::new("noimageai", &[Purpose::AiInput, Purpose::AiTrain]),
];

// === impl Label ===

impl Label {
    const fn new(name: &'static str, purposes: &'static [Purpose]) -> Self {
        Self { name, purposes }
    }
}

// === impl UsagePolicy ===

impl UsagePolicy {
    #[must_use]
    pub fn of(&self, vocabulary: Vocabulary) -> VocabularyPolicy {
        match vocabulary {
            Vocabulary::ContentSignal => self.content_signal,
            Vocabulary::ContentUsage => self.content_usage,
            Vocabulary::Tdmrep => self.tdmrep,
            Vocabulary::XRobotsTag => self.x_robots_tag,
        }
    }

    /// Returns whether a request can be refused because of what a site says, or does not say, in these vocabularies.
    #[must_use]
    pub fn can_refuse(&self, vocabularies: &[Vocabulary]) -> bool {
        let is_enforced = |vocabulary: &Vocabulary| self.of(*vocabulary) == VocabularyPolicy::Enforce;
        self.unknown == Unknown::Deny || vocabularies.iter().any(is_enforced)
    }

    /// Returns a statement for each of `purposes` that `label` covers. `allowed` says whether the value of the label
    /// allows the use. Returns no statements if the configuration turns the vocabulary off.
    pub fn statements(
        &self,
        purposes: Purposes,
        vocabulary: Vocabulary,
        label: &Label,
        allowed: bool,
        source: UseSource,
    ) -> impl Iterator<Item = UseStatement> + use<> {
        let policy = self.of(vocabulary);
        let (name, covered) = (label.name, label.purposes);
        let covered = covered.iter().copied().filter(move |purpose| {
            let is_read = policy != VocabularyPolicy::Off;
            is_read && purposes.contains(*purpose)
        });
        covered.map(move |purpose| UseStatement {
            vocabulary,
            label: name,
            purpose,
            allowed,
            source,
            policy,
        })
    }

    /// Returns why a request of a bot with `purposes` is refused; `None` if it is not. `said` is what the site says.
    /// One statement that forbids a purpose is enough, if its vocabulary is enforced.
    #[must_use]
    pub fn refusal(&self, purposes: Purposes, said: &[UseStatement]) -> Option<UseRefusal> {
        let forbidden = said.iter().find(|statement| statement.refuses());
        if let Some(statement) = forbidden {
            return Some(UseRefusal::Forbidden(*statement));
        }
        let is_allowed = |purpose| said.iter().any(|said| said.purpose == purpose && said.allowed);
        let unknown = purposes.iter().find(|purpose| !is_allowed(*purpose));
        unknown
            .filter(|_| self.unknown == Unknown::Deny)
            .map(UseRefusal::Unknown)
    }
}

// === impl Purposes ===

impl Purposes {
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn contains(self, purpose: Purpose) -> bool {
        self.0 & (1 << purpose as u8) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Purpose> {
        Purpose::ALL.into_iter().filter(move |purpose| self.contains(*purpose))
    }
}

impl FromIterator<Purpose> for Purposes {
    fn from_iter<I: IntoIterator<Item = Purpose>>(purposes: I) -> Self {
        Self(purposes.into_iter().fold(0, |set, purpose| set | 1 << purpose as u8))
    }
}

impl Serialize for Purposes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Purpose::as_str))
    }
}

impl std::str::FromStr for Purpose {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_word(text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("\"{text}\" is not a purpose; write one of {known}")
        })
    }
}

// === impl UseStatement ===

impl UseStatement {
    /// Returns the value as the site writes it: `y` or `n`, `yes` or `no`, `0` or `1`, or the label itself.
    #[must_use]
    pub fn value(&self) -> &'static str {
        match (self.vocabulary, self.allowed) {
            (Vocabulary::ContentSignal, true) => "yes",
            (Vocabulary::ContentSignal, false) => "no",
            (Vocabulary::ContentUsage, true) => "y",
            (Vocabulary::ContentUsage, false) => "n",
            (Vocabulary::Tdmrep, true) => "0",
            (Vocabulary::Tdmrep, false) => "1",
            (Vocabulary::XRobotsTag, _) => self.label,
        }
    }

    /// Returns the line of the robots.txt that makes the statement.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        match self.source {
            UseSource::Line(line) => Some(line),
            UseSource::Entry(_) | UseSource::Field(_) => None,
        }
    }

    /// Returns what the site says, as it writes it.
    #[must_use]
    pub fn text(&self) -> String {
        let (label, value) = (self.label, self.value());
        match (self.source, self.vocabulary) {
            (UseSource::Line(_), Vocabulary::ContentSignal) => format!("Content-Signal: {label}={value}"),
            (UseSource::Line(_), _) => format!("Content-Usage: {label}={value}"),
            (UseSource::Field(_), Vocabulary::XRobotsTag | Vocabulary::Tdmrep) => value.to_owned(),
            (UseSource::Entry(_) | UseSource::Field(_), _) => format!("{label}={value}"),
        }
    }

    /// Returns whether both statements have the same vocabulary, label and purpose.
    #[must_use]
    pub fn is_same_label(&self, other: &Self) -> bool {
        (self.vocabulary, self.label, self.purpose) == (other.vocabulary, other.label, other.purpose)
    }

    /// Returns whether the statement forbids the use, and the configuration enforces what this vocabulary says.
    #[must_use]
    pub fn refuses(&self) -> bool {
        !self.allowed && self.policy == VocabularyPolicy::Enforce
    }
}

impl fmt::Display for UseStatement {
    /// Writes what the site says, where, and the purpose that it is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            UseSource::Line(line) => write!(f, "line {line} of the robots.txt")?,
            UseSource::Entry(entry) => write!(f, "entry {entry} of /.well-known/tdmrep.json")?,
            UseSource::Field(field) => write!(f, "the response's {field} field")?,
        }
        let verb = if self.allowed { "allows" } else { "forbids" };
        write!(f, " says {}, which {verb} the purpose {}", self.text(), self.purpose)
    }
}

impl Serialize for UseStatement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("UseStatement", 6)?;
        self.add_to::<S>(&mut fields)?;
        fields.end()
    }
}

impl UseStatement {
    fn add_to<S: Serializer>(&self, fields: &mut S::SerializeStruct) -> Result<(), S::Error> {
        fields.serialize_field("purpose", self.purpose.as_str())?;
        fields.serialize_field("vocabulary", self.vocabulary.as_str())?;
        fields.serialize_field("key", self.label)?;
        fields.serialize_field("value", self.value())?;
        match self.source {
            UseSource::Line(line) => fields.serialize_field("line", &line)?,
            UseSource::Entry(entry) => fields.serialize_field("entry", &entry)?,
            UseSource::Field(field) => fields.serialize_field("field", field)?,
        }
        fields.serialize_field("policy", self.policy.as_str())
    }
}

// === impl WhyRefused ===

impl WhyRefused {
    /// Returns a sentence for people that explains the refusal. `None` for `Forbidden`, because the site's own
    /// statement explains that.
    pub fn sentence(self, purpose: &str) -> Option<String> {
        match self {
            Self::Forbidden => None,
            Self::Unknown => Some(format!(
                "no vocabulary of the site allows the purpose {purpose}, and the configuration requires that \
                 (usage.unknown)"
            )),
            Self::Pending => Some(format!(
                "the site's /.well-known/tdmrep.json is still being fetched, and it can forbid the purpose {purpose}"
            )),
        }
    }
}

// === impl UseRefusal ===

impl UseRefusal {
    #[must_use]
    pub fn purpose(&self) -> Purpose {
        match self {
            Self::Forbidden(statement) => statement.purpose,
            Self::Unknown(purpose) | Self::Pending(purpose) => *purpose,
        }
    }

    #[must_use]
    pub fn why(&self) -> WhyRefused {
        match self {
            Self::Forbidden(_) => WhyRefused::Forbidden,
            Self::Unknown(_) => WhyRefused::Unknown,
            Self::Pending(_) => WhyRefused::Pending,
        }
    }

    /// Returns what the site says; `None` if it says nothing.
    #[must_use]
    pub fn statement(&self) -> Option<&UseStatement> {
        match self {
            Self::Forbidden(statement) => Some(statement),
            Self::Unknown(_) | Self::Pending(_) => None,
        }
    }
}

impl fmt::Display for UseRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(statement) => statement.fmt(f),
            Self::Unknown(purpose) | Self::Pending(purpose) => {
                f.write_str(&self.why().sentence(purpose.as_str()).unwrap_or_default())
            }
        }
    }
}

impl Serialize for UseRefusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("UseRefusal", 7)?;
        fields.serialize_field("why", self.why().as_str())?;
        match self {
            Self::Forbidden(statement) => statement.add_to::<S>(&mut fields)?,
            Self::Unknown(purpose) | Self::Pending(purpose) => fields.serialize_field("purpose", purpose.as_str())?,
        }
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(vocabulary: Vocabulary, purpose: Purpose, allowed: bool, policy: VocabularyPolicy) -> UseStatement {
        UseStatement {
            vocabulary,
            label: "x",
            purpose,
            allowed,
            source: UseSource::Line(1),
            policy,
        }
    }

    #[test]
    fn an_enforced_no_of_any_vocabulary_refuses() {
        use Purpose::{AiTrain, Search};
        use Vocabulary::{ContentSignal, ContentUsage};
        use VocabularyPolicy::{Enforce, Report};

        let yes = statement(ContentSignal, AiTrain, true, Enforce);
        let no = statement(ContentUsage, AiTrain, false, Enforce);
        let reported = statement(ContentUsage, AiTrain, false, Report);
        let policy = |unknown| UsagePolicy {
            unknown,
            ..UsagePolicy::default()
        };
        let train = Purposes::from_iter([AiTrain]);
        let both = Purposes::from_iter([Search, AiTrain]);
        let unknown = |purpose| Some(UseRefusal::Unknown(purpose));
        for (purposes, said, lenient, strict) in [
            (train, &[][..], None, unknown(AiTrain)),
            (train, &[yes], None, None),
            (
                train,
                &[yes, no],
                Some(UseRefusal::Forbidden(no)),
                Some(UseRefusal::Forbidden(no)),
            ),
            (train, &[reported], None, unknown(AiTrain)),
            (train, &[reported, yes], None, None),
            (both, &[yes], None, unknown(Search)),
        ] {
            assert_eq!(policy(Unknown::Allow).refusal(purposes, said), lenient, "{said:?}");
            assert_eq!(policy(Unknown::Deny).refusal(purposes, said), strict, "{said:?}");
        }
    }

    #[test]
    fn every_purpose_has_a_vocabulary() {
        for purpose in Purpose::ALL {
            let mut labels = Vocabulary::ALL.into_iter().flat_map(Vocabulary::labels);
            assert!(labels.any(|label| label.purposes.contains(&purpose)), "{purpose}");
            assert_eq!(purpose.as_str().parse(), Ok(purpose));
        }
        let error = "training".parse::<Purpose>().expect_err("not a purpose");
        assert!(
            error.contains("write one of search, ai-input, ai-train, tdm"),
            "{error}"
        );
    }
}
