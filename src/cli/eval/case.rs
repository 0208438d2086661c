//! Answers one input line of `robotgate eval`, a JSON object. The answer repeats the fields of the line, except the
//! robots.txt and the fields that the answer itself sets.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
    rc::Rc,
};

use data_encoding::{BASE64, BASE64_NOPAD, DecodeError};
use serde::{
    Serialize, Serializer,
    de::{Deserialize, Deserializer, MapAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use crate::robots::{Profile, RobotsTxt, RuleId, Usage, path_of_url};
use crate::usage::{Label, Vocabulary};

use super::cache::Cache;

/// A cache for `robots` and one for `robots_b64`: the same JSON string has another meaning in each.
pub(super) struct Files {
    text: Cache,
    base64: Cache,
}

/// A JSON object whose values are not parsed.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A JSON string. It is borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct CaseInput<'a> {
    robots: Rc<RobotsTxt>,
    agent: Cow<'a, str>,
    url: Cow<'a, str>,
}

#[derive(serde::Serialize)]
struct EvalOutput<'a> {
    allowed: bool,
    /// 0 if no rule decided.
    line: u32,
    rule: Option<Cow<'a, str>>,
    group: Option<&'a str>,
    /// What `Content-Usage` lines say for each label, such as `train-ai`: `y`, `n` or null. `None` if the path is
    /// disallowed.
    usage: Option<Labels>,
    /// The numbers of the `Content-Usage` lines that apply to the path. Empty if the path is disallowed.
    usage_lines: Vec<u32>,
    /// What `Content-Signal` lines say for each label, such as `ai-train`: `yes`, `no` or null.
    signals: Labels,
}

/// What a robots.txt says for each label of a vocabulary, such as `ai-train` in `Content-Signal`.
struct Labels {
    vocabulary: Vocabulary,
    allowed: Vec<Option<bool>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BadLine {
    #[error("the line is not UTF-8; send a robots.txt that is not UTF-8 as base64 in `robots_b64`")]
    NotUtf8,
    #[error("the line ends before its JSON does; write each object on one line")]
    Incomplete,
    #[error("the line is not valid JSON near column {0}")]
    NotJson(usize),
    #[error("the line is not a JSON object")]
    NotAnObject,
    #[error("the field `{0}` is missing or null")]
    Missing(&'static str),
    #[error("the field `{0}` is not a string")]
    NotAString(&'static str),
    #[error("the field `{0}` has one half of a surrogate pair (U+D800 to U+DFFF) without the other")]
    NotText(&'static str),
    #[error(
        "the fields `robots` and `robots_b64` are missing or null; send one of them, empty if the site has no \
         robots.txt"
    )]
    NoRobots,
    #[error("the line has both `robots` and `robots_b64`; send one of them")]
    TwoRobots,
    #[error("the field `robots_b64` is not standard base64 without line breaks: {0}")]
    NotBase64(DecodeError),
}

/// The outer result is an error if writing fails, the inner one if the line is bad.
pub(super) fn answer(
    line: &[u8],
    number: u64,
    files: &mut Files,
    output: &mut impl Write,
) -> io::Result<Result<(), BadLine>> {
    let fields = match Fields::read(line) {
        Ok(fields) => fields,
        Err(bad) => {
            Fields(Vec::new()).write_error(&bad, number, output)?;
            return Ok(Err(bad));
        }
    };
    match fields.question(files) {
        Ok(question) => {
            fields.write_answer(&question.answer(), output)?;
            Ok(Ok(()))
        }
        Err(bad) => {
            fields.write_error(&bad, number, output)?;
            Ok(Err(bad))
        }
    }
}

// === impl Files ===

impl Files {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            text: Cache::new(profile),
            base64: Cache::new(profile),
        }
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    fn read(line: &'a [u8]) -> Result<Self, BadLine> {
        let line = std::str::from_utf8(line).map_err(|_| BadLine::NotUtf8)?;
        serde_json::from_str(line).map_err(|error| match error.classify() {
            Category::Data => BadLine::NotAnObject,
            Category::Eof => BadLine::Incomplete,
            // `error.column()` counts bytes, but the message counts characters.
            _ => BadLine::NotJson(line.char_indices().take_while(|(at, _)| *at < error.column()).count()),
        })
    }

    fn question(&self, files: &mut Files) -> Result<CaseInput<'a>, BadLine> {
        Ok(CaseInput {
            agent: self.string("agent")?,
            url: self.string("url")?,
            robots: self.robots(files)?,
        })
    }

    fn robots(&self, files: &mut Files) -> Result<Rc<RobotsTxt>, BadLine> {
        match (self.get("robots"), self.get("robots_b64")) {
            (Some(_), Some(_)) => Err(BadLine::TwoRobots),
            (None, None) => Err(BadLine::NoRobots),
            (Some(json), None) => files.text.file(json.get(), || {
                string("robots", json).map(|text| text.into_owned().into_bytes())
            }),
            (None, Some(json)) => files.base64.file(json.get(), || {
                let text = string("robots_b64", json)?;
                let padded = text.len() % 4 == 0;
                let base64 = if padded { BASE64 } else { BASE64_NOPAD };
                base64.decode(text.as_bytes()).map_err(BadLine::NotBase64)
            }),
        }
    }

    fn string(&self, name: &'static str) -> Result<Cow<'a, str>, BadLine> {
        string(name, self.get(name).ok_or(BadLine::Missing(name))?)
    }

    /// If several fields have this name, the last one counts, as in most JSON parsers. `null` counts as missing.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, json) = self.0.iter().rfind(|(known, _)| known == name)?;
        (json.get() != "null").then_some(*json)
    }

    fn write_answer(&self, answer: &EvalOutput<'_>, output: &mut impl Write) -> io::Result<()> {
        output.write_all(b"{")?;
        self.write_others(output)?;
        let mut json = Vec::with_capacity(128);
        serde_json::to_writer(&mut json, answer)?;
        // Leave out the opening brace: it was written at the beginning.
        output.write_all(&json[1..])?;
        output.write_all(b"\n")
    }

    fn write_error(&self, bad: &BadLine, number: u64, output: &mut impl Write) -> io::Result<()> {
        output.write_all(b"{")?;
        self.write_others(output)?;
        let error = serde_json::to_string(&bad.to_string())?;
        writeln!(output, "\"error\":{error},\"input_line\":{number}}}")
    }

    /// Leaves out the robots.txt, which is large, and fields with the name of an output field. For example, a copied
    /// field `error` would look like a failure.
    fn write_others(&self, output: &mut impl Write) -> io::Result<()> {
        for (name, json) in &self.0 {
            if matches!(&**name, "robots" | "robots_b64") || OUTPUT.contains(&&**name) {
                continue;
            }
            serde_json::to_writer(&mut *output, name)?;
            write!(output, ":{json},")?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((Text(name), json)) = map.next_entry()? {
                    fields.push((name, json));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

// === impl CaseInput ===

impl CaseInput<'_> {
    fn answer(&self) -> EvalOutput<'_> {
        let agent = self.robots.agent(&self.agent);
        let path = path_of_url(self.url.as_bytes());
        let found = agent.decide(&path);
        // The proxy limits the work for this call, so that other requests need not wait. Here, there are no other
        // requests.
        let usage = agent.usage_within(&path, &mut usize::MAX.clone()).unwrap_or_default();
        EvalOutput {
            allowed: found.allowed,
            line: found.rule.map_or(0, RuleId::line),
            rule: found.rule.map(|id| self.robots.rule(id).text),
            group: agent.group(),
            usage: found.allowed.then(|| Labels::of(&usage, Vocabulary::ContentUsage)),
            usage_lines: match found.allowed {
                true => agent.usage_lines(&path),
                false => Vec::new(),
            },
            signals: Labels::of(&usage, Vocabulary::ContentSignal),
        }
    }
}

// === impl Labels ===

impl Labels {
    fn of(usage: &Usage, vocabulary: Vocabulary) -> Self {
        let said = |label: &Label| Some(usage.preference(vocabulary, label.name)?.allowed);
        Self {
            vocabulary,
            allowed: vocabulary.labels().iter().map(said).collect(),
        }
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (yes, no) = match self.vocabulary {
            Vocabulary::ContentSignal => ("yes", "no"),
            _ => ("y", "n"),
        };
        let value = |allowed: &Option<bool>| allowed.map(|allowed| if allowed { yes } else { no });
        let names = self.vocabulary.labels().iter().map(|label| label.name);
        serializer.collect_map(names.zip(self.allowed.iter().map(value)))
    }
}

fn string<'a>(name: &'static str, json: &'a RawValue) -> Result<Cow<'a, str>, BadLine> {
    match serde_json::from_str(json.get()) {
        Ok(Text(text)) => Ok(text),
        Err(error) if error.is_data() => Err(BadLine::NotAString(name)),
        // The whole line is valid JSON, so the only possible error in a string is an unpaired surrogate.
        Err(_) => Err(BadLine::NotText(name)),
    }
}

/// The fields that an answer sets.
const OUTPUT: [&str; 9] = [
    "allowed",
    "line",
    "rule",
    "group",
    "usage",
    "usage_lines",
    "signals",
    "error",
    "input_line",
];
