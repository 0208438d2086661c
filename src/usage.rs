//! What bots use content for, what sites say about that, and the policy for each vocabulary in which they say it. This
//! module does no I/O and reads no clock.
//!
//! [`Vocabulary::labels`] says which purposes each label of a vocabulary covers. [`crate::robots`] reads the
//! vocabularies of a robots.txt, [`TdmRep`](crate::copy::TdmRep) a `tdmrep.json`, and [`crate::decision`] the fields of
//! a response.

mod statement;

use serde::{Serialize, Serializer};

pub use self::statement::{UseRefusal, UseSource, UseStatement, WhyRefused};
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
    /// What happens if a site forbids a use in a vocabulary.
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
    /// What happens if no enforced statement forbids a purpose of the bot, but the site does not allow all purposes of
    /// the bot.
    #[derive(Default)]
    pub enum Unknown {
        /// The use is allowed.
        #[default]
        Allow = "allow",
        /// The request is refused.
        Deny = "deny",
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purposes(u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The label as sites write it.
    pub name: &'static str,
    pub purposes: &'static [Purpose],
}

// === impl Vocabulary ===

impl Vocabulary {
    /// The vocabularies that can occur in a robots.txt.
    pub const IN_ROBOTS_TXT: [Self; 2] = [Self::ContentSignal, Self::ContentUsage];

    /// Returns the labels that robotgate knows. It ignores other labels.
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

    /// Returns a statement for each of `purposes` that `label` covers, or none if the vocabulary is off. `allowed` says
    /// whether the site allows the use.
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

    /// Returns why a request of a bot with `purposes` is refused, or `None` if it is not. An enforced statement that
    /// forbids a purpose outweighs all that allow it.
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
    fn an_enforced_statement_of_any_vocabulary_can_refuse_a_use() {
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
