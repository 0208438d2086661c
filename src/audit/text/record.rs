//! Decides what a line of text says about each kind of record, and in which colour.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::{colour::Colour, columns::cut_end, decision::Reason, usage::WhyRefused};

/// A record of any kind, with the fields that the text shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    pub(super) event: String,
    pub(super) time: String,
    pub(super) id: String,
    instance: String,
    // Fields of records about a request.
    verdict: String,
    reason: String,
    forwarded: bool,
    bot: Option<String>,
    method: String,
    url: String,
    rule: Option<String>,
    line: Option<u32>,
    robots_error: Option<String>,
    usage: Value,
    error_detail: Option<String>,
    purpose: String,
    key: String,
    value: String,
    field: Option<String>,
    // Fields of records about a fetch and what it changed.
    origin: String,
    robots_url: String,
    tdmrep_url: String,
    status: Option<u16>,
    error: Option<String>,
    holds: Option<String>,
    robots_sha256_before: Option<String>,
    robots_sha256: Option<String>,
    rules: Option<String>,
    rules_added: usize,
    rules_removed: usize,
    requests: usize,
    newly_denied: usize,
    newly_allowed: usize,
    // Fields of records about robotgate itself.
    version: String,
    config_file: Option<String>,
    cause: String,
    cut_off: Option<u64>,
    config: u64,
    by: String,
    known: Option<bool>,
}

/// What a line of text says, apart from the time.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) colour: Colour,
    pub(super) label: String,
    pub(super) request: Request,
    pub(super) why: String,
}

/// The part of a line that names the bot and the URL.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    /// The text before the URL, such as the bot's name and the method, or `configuration 3 is in force`.
    pub(super) who: String,
    pub(super) url: String,
}

// === impl Record ===

impl Record {
    pub(super) fn decision(self) -> Shown {
        let is_allowed = self.verdict == "allow";
        let colour = match (is_allowed, self.forwarded) {
            (true, _) => Colour::Good,
            (false, true) => Colour::Warning,
            (false, false) => Colour::Bad,
        };
        let rule = self.line.zip(self.rule);
        let rule = rule.map(|(line, rule)| format!("line {line}: {}", cut_end(&rule, MAX_RULE)));
        let mut why = basis(&self.reason, rule.as_deref()).into_owned();
        let refused = refused(&self.usage["refused"]);
        for more in [self.robots_error, refused].into_iter().flatten() {
            why = format!("{why}: {more}");
        }
        if self.forwarded && !is_allowed {
            why.push_str(" (forwarded)");
        }
        let who = format!("{} {} ", shown_bot(self.bot.as_deref()), self.method);
        Shown::new(colour, &self.verdict, Request::new(who, self.url), why)
    }

    /// Returns `None` if the exchange succeeded. `request` is what the line of the decision showed.
    pub(super) fn completion(self, request: Option<Request>) -> Option<Shown> {
        let error = self.error?;
        let status = self.status.map_or_else(String::new, |status| format!("{status} "));
        let detail = self
            .error_detail
            .map_or_else(String::new, |detail| format!(": {detail}"));
        let request = request.unwrap_or_else(|| Request::new("request ", self.id));
        let why = format!("{status}{error}{detail}");
        Some(Shown::new(Colour::Warning, "error", request, why))
    }

    pub(super) fn withdrawn(self) -> Shown {
        let (key, value, field) = (self.key, self.value, self.field.unwrap_or_default());
        let said = match key == value || key == field {
            true => value,
            false => format!("{key}={value}"),
        };
        let request = Request::new(format!("{} ", shown_bot(self.bot.as_deref())), self.url);
        let why = format!("the response says {field}: {said}, which forbids {}", self.purpose);
        Shown::new(Colour::Bad, "withdrawn", request, why)
    }

    pub(super) fn fetch(self) -> Shown {
        let status = self.status.map_or_else(String::new, |status| format!("{status}, "));
        let colour = warns_if(self.error.is_some());
        let error = self.error.map_or_else(String::new, |error| format!(": {error}"));
        let why = format!("{status}{}{error}", self.holds.as_deref().unwrap_or("unknown"));
        let url = self.robots_url + &self.tdmrep_url;
        Shown::new(colour, &self.event, Request::new("", url), why)
    }

    pub(super) fn shared(self) -> Shown {
        let why = format!("{}, fetched by another robotgate", self.holds.unwrap_or_default());
        Shown::new(Colour::Faint, "robots", Request::robots(&self.origin), why)
    }

    pub(super) fn robots_changed(self) -> Shown {
        let what = match (&self.robots_sha256_before, &self.robots_sha256) {
            (None, _) => "the site has a robots.txt now; ",
            (_, None) => "the site no longer has a robots.txt; ",
            _ => "",
        };
        let rules = match self.rules.as_deref() {
            Some("unchanged") => "the rules are the same".to_owned(),
            Some(_) => format!("rules: {} added, {} removed", self.rules_added, self.rules_removed),
            None => "the rules were not compared".to_owned(),
        };
        let (requests, denied, allowed) = (self.requests, self.newly_denied, self.newly_allowed);
        let effect = match requests {
            0 => String::new(),
            _ => format!("; of {requests} recent requests, {denied} newly denied, {allowed} newly allowed"),
        };
        let why = format!("{what}{rules}{effect}");
        Shown::new(
            warns_if(denied + allowed > 0),
            "change",
            Request::robots(&self.origin),
            why,
        )
    }

    pub(super) fn start(self) -> Shown {
        let who = format!("robotgate {}, instance {}, ", self.version, self.instance);
        let file = self.config_file.unwrap_or_else(|| "no configuration file".to_owned());
        Shown::new(Colour::Faint, "start", Request::new(who, file), String::new())
    }

    pub(super) fn stop(self) -> Shown {
        let cut_off = self.cut_off.filter(|count| *count > 0);
        let cut_off = cut_off.map_or_else(String::new, |count| format!(", exchanges cut off: {count}"));
        let who = format!("robotgate, instance {}", self.instance);
        let why = format!("{}{cut_off}", self.cause);
        Shown::new(Colour::Faint, "stop", Request::new(who, ""), why)
    }

    pub(super) fn reload(self) -> Shown {
        let config = self.config;
        let who = match self.error {
            Some(_) => format!("rejected, configuration {config} stays in force"),
            None => format!("configuration {config} is in force"),
        };
        let colour = warns_if(self.error.is_some());
        Shown::new(
            colour,
            "reload",
            Request::new(who, ""),
            self.error.unwrap_or(self.cause),
        )
    }

    pub(super) fn forget(self) -> Shown {
        let by = match &*self.by {
            "fleet" => "another robotgate",
            _ => "an operator",
        };
        let known = match self.known {
            Some(false) => ", but nothing was known",
            _ => "",
        };
        let why = format!("at the request of {by}{known}");
        Shown::new(Colour::Faint, "forget", Request::new("", self.origin), why)
    }
}

/// Returns the reason and the rule of a decision, as text. If the reason is `rule`, returns only the rule.
pub fn basis<'r>(reason: &'r str, rule: Option<&'r str>) -> Cow<'r, str> {
    match rule {
        Some(rule) if reason == Reason::Rule.as_str() => rule.into(),
        Some(rule) => format!("{reason}, {rule}").into(),
        None => reason.into(),
    }
}

fn shown_bot(bot: Option<&str>) -> Cow<'_, str> {
    bot.map_or(Cow::Borrowed("-"), |bot| cut_end(bot, MAX_BOT))
}

/// `refused` is `usage.refused` of a decision.
pub(in crate::audit) fn refused(refused: &Value) -> Option<String> {
    let purpose = refused["purpose"].as_str()?;
    let why = refused["why"].as_str().and_then(WhyRefused::from_word);
    if let Some(sentence) = why.and_then(|why| why.sentence(purpose)) {
        return Some(sentence);
    }
    let [vocabulary, key, value] = ["vocabulary", "key", "value"].map(|field| refused[field].as_str());
    let (vocabulary, key, value) = (vocabulary?, key?, value?);
    let line = refused["line"].as_u64();
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    Some(format!("{purpose}, {line}{vocabulary} {key}={value}"))
}

fn warns_if(is_warning: bool) -> Colour {
    match is_warning {
        true => Colour::Warning,
        false => Colour::Faint,
    }
}

// === impl Shown ===

impl Shown {
    fn new(colour: Colour, label: &str, request: Request, why: String) -> Self {
        let label = label.to_owned();
        Self {
            colour,
            label,
            request,
            why,
        }
    }
}

// === impl Request ===

impl Request {
    fn new(who: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            who: who.into(),
            url: url.into(),
        }
    }

    fn robots(origin: &str) -> Self {
        Self::new("", format!("{origin}/robots.txt"))
    }
}

/// Maximum width of a bot's name, in columns of the terminal.
const MAX_BOT: usize = 24;
/// Maximum width of a rule, in columns of the terminal. A site can write a rule of any length.
const MAX_RULE: usize = 100;
