//! The filter of the list of refusals: `bot:AcmeBot reason:rule site:example.com since:1h`.
//!
//! A refusal passes if each field in the filter has one of the wanted values; a minus sign excludes a value. Words
//! without a field must occur in the bot, the verdict, the reason, the URL, the cause or the id. Reads no clock.

use std::{borrow::Cow, time::SystemTime};

use super::input::parse_time;
use crate::{
    audit::LoggedRefusal,
    decision::{Reason, Verdict},
    origin::Origin,
    text::words,
};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// In lower case.
    words: Vec<String>,
    wanted: Vec<(Field, Vec<String>)>,
    excluded: Vec<(Field, String)>,
    since: Option<SystemTime>,
    until: Option<SystemTime>,
}

words! {
    /// The fields that a filter can name.
    pub enum Field {
        Bot = "bot",
        Verdict = "verdict",
        Reason = "reason",
        Site = "site",
        Url = "url",
        Rule = "rule",
        Client = "client",
        Agent = "agent",
        Identity = "identity",
        Forwarded = "forwarded",
        Id = "id",
        Since = "since",
        Until = "until",
    }
}

// === impl Filter ===

impl Filter {
    /// Parses a filter. Relative times such as `1h` count back from `now`. The error is a sentence.
    pub(super) fn parse(text: &str, now: SystemTime) -> Result<Self, String> {
        let mut filter = Self::default();
        for term in terms(text)? {
            let (is_excluded, named) = match term.text.strip_prefix('-') {
                Some(rest) if !term.is_quoted => (true, rest),
                _ => (false, &*term.text),
            };
            // `https://a.example` is a word, not a field.
            let parts = named.split_once(':').filter(|(_, value)| !value.starts_with("//"));
            let Some((name, value)) = parts.filter(|_| !term.is_quoted) else {
                if !term.text.is_empty() {
                    filter.words.push(term.text.to_lowercase());
                }
                continue;
            };
            let field = Field::from_word(name).ok_or_else(|| {
                let known = Field::ALL.map(Field::as_str).join(", ");
                format!(
                    "there is no field {name:?}; the fields are {known}. Put a word with a colon in quotation marks"
                )
            })?;
            let value = field.checked(value)?;
            match (field, is_excluded) {
                (Field::Since, false) => filter.since = Some(parse_time(&value, now)?),
                (Field::Until, false) => filter.until = Some(parse_time(&value, now)?),
                (Field::Since | Field::Until, true) => return Err(format!("{name} cannot be excluded")),
                (_, true) => filter.excluded.push((field, value)),
                (_, false) => match filter.wanted.iter_mut().find(|(wanted, _)| *wanted == field) {
                    Some((_, values)) => values.push(value),
                    None => filter.wanted.push((field, vec![value])),
                },
            }
        }
        Ok(filter)
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn passes(&self, record: &LoggedRefusal<'_>) -> bool {
        let is_in_time = self.since.is_none_or(|since| record.time.0 >= since)
            && self.until.is_none_or(|until| record.time.0 < until);
        let has = |(field, values): &(Field, Vec<String>)| values.iter().any(|value| record.has(*field, value));
        is_in_time
            && self.wanted.iter().all(has)
            && !self.excluded.iter().any(|(field, value)| record.has(*field, value))
            && (self.words.is_empty() || {
                let text = record.text();
                self.words.iter().all(|word| text.contains(word))
            })
    }
}

// === impl Field ===

impl Field {
    /// Returns the value in lower case, or an error if the field cannot have this value.
    fn checked(self, value: &str) -> Result<String, String> {
        let known: &[&str] = match self {
            Self::Verdict => &Verdict::ALL.map(Verdict::as_str),
            Self::Reason => &Reason::ALL.map(Reason::as_str),
            Self::Forwarded => &["yes", "no"],
            _ if value.is_empty() => return Err(format!("{self} has no value; write {self}:VALUE")),
            _ => return Ok(value.to_lowercase()),
        };
        match known.contains(&value) {
            true => Ok(value.to_owned()),
            false => Err(format!(
                "{value:?} is not a value of {self}; write one of {}",
                known.join(", ")
            )),
        }
    }
}

// === impl LoggedRefusal ===

impl LoggedRefusal<'_> {
    /// `value` is in lower case.
    fn has(&self, field: Field, value: &str) -> bool {
        let contains = |text: &Cow<'_, str>| text.to_lowercase().contains(value);
        match field {
            Field::Bot => match &self.bot {
                Some(bot) => bot.to_lowercase() == value,
                None => value == "none",
            },
            Field::Verdict => self.verdict.as_str() == value,
            Field::Reason => self.reason.as_str() == value,
            Field::Site => self.is_at(value),
            Field::Url => contains(&self.url),
            Field::Rule => self.rule.as_ref().is_some_and(contains),
            Field::Client => self.client.starts_with(value),
            Field::Agent => self.user_agent.as_ref().is_some_and(contains),
            Field::Identity => *self.identity == *value,
            Field::Forwarded => self.forwarded == (value == "yes"),
            Field::Id => *self.id == *value,
            // `Filter::passes` compares the times.
            Field::Since | Field::Until => true,
        }
    }

    /// Returns whether `site` is the origin, its host, or a parent domain of its host.
    fn is_at(&self, site: &str) -> bool {
        let site = site.strip_suffix('/').unwrap_or(site);
        if *self.origin == *site {
            return true;
        }
        let host = self.origin.parse::<Origin>().map(|origin| origin.host.to_string());
        host.is_ok_and(|host| {
            let subdomain = host.strip_suffix(site);
            subdomain.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// Returns the text in which words without a field must occur, in lower case.
    fn text(&self) -> String {
        let who = self.bot.as_ref().or(self.user_agent.as_ref());
        let shown = [
            who.map_or("(no bot)", |who| who),
            self.verdict.as_str(),
            self.reason.as_str(),
            &self.url,
            &self.why(),
            &self.id,
        ];
        shown.join("\n").to_lowercase()
    }
}

struct Term {
    text: String,
    /// Whether the term begins with a quotation mark. A `:` or a leading `-` in it then has no special meaning.
    is_quoted: bool,
}

fn terms(text: &str) -> Result<Vec<Term>, String> {
    let mut terms = Vec::new();
    let (mut term, mut is_inside) = (None::<Term>, false);
    for character in text.chars() {
        match character {
            '"' => {
                is_inside = !is_inside;
                term.get_or_insert_with(|| Term {
                    text: String::new(),
                    is_quoted: true,
                });
            }
            space if space.is_whitespace() && !is_inside => terms.extend(term.take()),
            other => {
                let term = term.get_or_insert_with(|| Term {
                    text: String::new(),
                    is_quoted: false,
                });
                term.text.push(other);
            }
        }
    }
    match is_inside {
        true => Err("a quotation mark is not closed".to_owned()),
        false => {
            terms.extend(term);
            Ok(terms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Timestamp;

    const RECORD: &str = r#"{"time":"2026-11-22T08:00:00.000000Z","id":"0192","verdict":"deny","reason":"rule",
        "forwarded":false,"bot":"AcmeBot","user_agent":"AcmeBot/1.0","identity":"user-agent","client":"10.0.0.7:5000",
        "url":"https://shop.example.com/Private/a b","origin":"https://shop.example.com","rule":"Disallow: /Private",
        "line":3,"robots_error":null,"usage":null,"more":1}"#;

    fn now() -> SystemTime {
        let Timestamp(time) = serde_json::from_str("\"2026-11-22T09:00:00Z\"").unwrap();
        time
    }

    fn passes(filter: &str) -> bool {
        let record: LoggedRefusal<'_> = serde_json::from_str(RECORD).unwrap();
        Filter::parse(filter, now()).unwrap().passes(&record)
    }

    #[test]
    fn a_filter_selects_by_its_fields_and_words() {
        for (filter, expected) in [
            ("", true),
            ("bot:AcmeBot reason:rule site:example.com since:1h", true),
            ("bot:acmebot", true),
            ("bot:Acme", false),
            ("bot:other bot:acmebot", true),
            ("bot:acmebot reason:pace", false),
            ("bot:none", false),
            ("-bot:acmebot", false),
            ("-bot:other", true),
            ("site:shop.example.com", true),
            ("site:https://shop.example.com/", true),
            ("site:https://example.com", false),
            ("site:op.example.com", false),
            ("verdict:deny forwarded:no", true),
            ("forwarded:yes", false),
            ("url:/private", true),
            ("rule:\"Disallow: /Private\"", true),
            ("rule:/public", false),
            ("client:10.0.0.", true),
            ("client:0.0.7", false),
            ("agent:acmebot/1", true),
            ("identity:user-agent", true),
            ("identity:product-token", false),
            ("id:0192", true),
            ("id:019", false),
            ("since:59m", false),
            ("since:2026-11-22T08:00:00Z", true),
            ("until:2026-11-22T08:00:00Z", false),
            ("since:2h until:30m", true),
            ("line 3", true),
            ("\"line 3: disallow\"", true),
            ("\"line 4\"", false),
            ("https://shop.example.com/private", true),
            ("\"a b\"", true),
            ("nobody", false),
        ] {
            assert_eq!(passes(filter), expected, "{filter}");
        }
    }

    #[test]
    fn a_mistake_in_a_filter_is_named() {
        for (filter, error) in [
            ("host:a", "there is no field \"host\"; the fields are bot, "),
            (
                "reason:rules",
                "\"rules\" is not a value of reason; write one of rule, ",
            ),
            ("verdict:no", "\"no\" is not a value of verdict; write one of allow, "),
            ("forwarded:maybe", "write one of yes, no"),
            ("bot:", "bot has no value; write bot:VALUE"),
            ("since:yesterday", "\"yesterday\" is not a time"),
            ("-since:1h", "since cannot be excluded"),
            ("\"open", "a quotation mark is not closed"),
        ] {
            let found = Filter::parse(filter, now()).unwrap_err();
            assert!(found.contains(error), "{filter}: {found}");
        }
    }

    #[test]
    fn the_filter_bot_none_finds_requests_without_a_bot() {
        let record = RECORD.replace("\"AcmeBot\"", "null");
        let record: LoggedRefusal<'_> = serde_json::from_str(&record).unwrap();
        assert!(Filter::parse("bot:none", now()).unwrap().passes(&record));
    }
}
