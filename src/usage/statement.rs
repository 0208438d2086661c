//! What a site says about using its content for one purpose, and the refusals because of that.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::{Purpose, Vocabulary, VocabularyPolicy};
use crate::text::words;

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
    /// The number of a line of the robots.txt, counted from 1.
    Line(u32),
    /// The number of an entry of the `tdmrep.json`, counted from 1.
    Entry(u32),
    /// The name of a field of the response.
    Field(&'static str),
}

/// A refusal because of what the bot uses content for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseRefusal {
    Forbidden(UseStatement),
    /// No statement of the site allows the use, and the configuration refuses such requests (`usage.unknown`).
    Unknown(Purpose),
    /// The site's `tdmrep.json`, which can forbid the use, is still being fetched.
    Pending(Purpose),
}

words! {
    /// The kind of a [`UseRefusal`].
    pub enum WhyRefused {
        Forbidden = "forbidden",
        Unknown = "unknown",
        Pending = "pending",
    }
}

// === impl UseStatement ===

impl UseStatement {
    /// Returns the value as the site writes it, such as `n`, `no` or `1`.
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

    /// Returns the number of the line in the robots.txt, if the statement comes from there.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        match self.source {
            UseSource::Line(line) => Some(line),
            UseSource::Entry(_) | UseSource::Field(_) => None,
        }
    }

    /// Returns in one line what the site says, such as `Content-Usage: train-ai=n`.
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

    /// Returns whether the statement forbids the use, and the configuration enforces the statement's vocabulary.
    #[must_use]
    pub fn refuses(&self) -> bool {
        !self.allowed && self.policy == VocabularyPolicy::Enforce
    }
}

impl fmt::Display for UseStatement {
    /// Writes, for example, `line 3 of the robots.txt says Content-Usage: train-ai=n, which forbids the purpose
    /// ai-train`.
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
    /// Explains the refusal to people. `None` for `Forbidden`, which the site's own statement explains.
    pub fn sentence(self, purpose: &str) -> Option<String> {
        match self {
            Self::Forbidden => None,
            Self::Unknown => Some(format!(
                "no statement of the site allows the purpose {purpose}, and the configuration refuses such requests \
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

    /// Returns the statement of the site that forbids the use, if there is one.
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
