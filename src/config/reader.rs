//! Writes the messages for syntax errors, unknown keys and values of the wrong type. They say what to write instead.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue, Error};

use super::checker::Reads;
use super::environment::Environment;
use super::error::Complaint;
use super::keys::Recording;
use super::reading::Reading;
use super::text::SourceText;

/// Reports a syntax error in `text`. For the most common one, a value without quotes, the message says how to write it.
pub(super) fn syntax(error: &Error, text: &str, environment: &Environment) -> Complaint {
    let span = error.span().unwrap_or_default();
    let value = bare_value(text, span.start);
    let advice = value.as_ref().and_then(|value| match &text[value.clone()] {
        "" => Some("the value is missing".to_owned()),
        word if in_list(text[..value.start].trim_end()) && is_value(word) => {
            Some("the list is not closed: write ] at its end".to_owned())
        }
        word => how_to_write(word, &text[..value.start], environment),
    });
    let (span, message) = match (value, advice) {
        (Some(value), Some(advice)) => (value, advice),
        _ if error.message() == "duplicate key" => (span.clone(), duplicate(text, span.start)),
        _ => (span, format!("this is not TOML: {}", error.message())),
    };
    Complaint {
        message,
        span,
        missing: None,
    }
}

/// `at` is the byte where the name of the duplicate section or key begins. Most often, somebody appended an example to
/// a file that already has the section.
fn duplicate(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let (before, line) = (&text[..start], text[start..].lines().next().unwrap_or_default().trim());
    if !line.starts_with('[') {
        return "this key is set twice; remove one of the two".to_owned();
    }
    let section = line.trim_start_matches('[').split(']').next().unwrap_or_default();
    let list = format!("[[{section}]]");
    let follows_list = before.lines().any(|line| line.trim_start().starts_with(&list));
    if line.starts_with("[[") != follows_list {
        return format!(
            "this file has both [{section}] and [[{section}]]; if it is a list, write [[{section}]] each time"
        );
    }
    let header = format!("[{section}]");
    let first = (1..)
        .zip(before.lines())
        .find(|(_, line)| line.trim_start().starts_with(&header));
    let place = first.map_or("this file".to_owned(), |(number, _)| format!("line {number}"));
    format!("the section {header} is already in {place}; put its keys there")
}

/// Returns the range of the unquoted value at the byte `at`, if it follows `key =` or is an item of a list.
fn bare_value(text: &str, at: usize) -> Option<Range<usize>> {
    let delimiters = ['"', '\'', '=', '[', ']', '{', '}', ',', '#', '\n'];
    let (before, after) = text.split_at_checked(at)?;
    let from = before.rfind(delimiters).map_or(0, |delimiter| delimiter + 1);
    let to = after.find(delimiters).map_or(text.len(), |length| at + length);
    let before = text[..from].trim_end();
    let at_end = text[to..].is_empty() || text[to..].starts_with(['#', '\n']);
    let is_value = before.ends_with('=') && at_end;
    let is_item = before.ends_with(['[', ',']) && (at_end || text[to..].starts_with([',', ']'])) && in_list(before);
    if !is_value && !is_item {
        return None;
    }
    let run = &text[from..to];
    let start = from + run.len() - run.trim_start_matches([' ', '\t']).len();
    Some(start..start + run.trim().len())
}

fn is_value(word: &str) -> bool {
    DeTable::parse(&format!("key = {word}")).is_ok()
}

/// Returns whether `text` ends inside a list that began with `key = [`.
fn in_list(text: &str) -> bool {
    let open = text.rfind('[').filter(|open| !text[*open..].contains([']', '{']));
    open.is_some_and(|open| text[..open].trim_end().ends_with('='))
}

/// Says how to write `word`, an unquoted value that follows the text `before`. To find out which type the key takes,
/// reads `before` as a configuration, with an empty string as the value of the key.
///
/// Returns `None` if `word` is probably a misspelt number or date, for which the TOML parser's message is better.
fn how_to_write(word: &str, before: &str, environment: &Environment) -> Option<String> {
    let end = if in_list(before.trim_end()) { "]" } else { "" };
    let probe = format!("{before}''{end}");
    let source = SourceText::new("", &probe, Path::new("/"), &[]);
    let complaints = match DeTable::parse(&probe) {
        Ok(_) => Reading::of(environment, &source, Reads::Nothing, Recording::Nothing).complaints,
        Err(_) => Vec::new(),
    };
    let mut here = complaints
        .iter()
        .filter(|complaint| complaint.span.start == before.len());
    match here.find_map(|complaint| complaint.message.strip_prefix("found the string \"\", but expected ")) {
        Some(_) if word.starts_with(|c: char| c.is_ascii_digit()) => None,
        Some(expected) => Some(format!("write {expected}")),
        None => Some(quote(word)),
    }
}

pub(super) fn quote(word: &str) -> String {
    format!("put it in quotes: {word:?}")
}

pub(super) fn unknown_key(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("there is no such key; did you mean \"{near}\"?"),
        None => format!("there is no such key; the keys here are {}", listed(known, "and", "")),
    }
}

/// Returns the error for an unknown key outside all sections. Most often, somebody wrote `proxy-name` for `proxy.name`,
/// or `PROXY_NAME` for `PROXY__NAME` in the name of a variable.
pub(super) fn unknown_section(name: &str, known: &[&str]) -> String {
    let lower = name.to_ascii_lowercase().replace('_', "-");
    let split = known.iter().find_map(|section| {
        let key = lower.strip_prefix(section)?.strip_prefix('-')?;
        Some((section, key))
    });
    match split {
        Some((section, key)) => format!(
            "there is no such key; did you mean \"{section}.{key}\"? (in the name of a variable, {}__{})",
            section.to_ascii_uppercase(),
            key.to_ascii_uppercase().replace('-', "_")
        ),
        None => unknown_key(name, known),
    }
}

/// `message` is serde's error, which lists the choices in back quotes.
pub(super) fn unknown_choice(name: &str, message: &str) -> String {
    let choices: Vec<&str> = choices(message).collect();
    format!(
        "\"{name}\" is not one of the choices; write {}",
        listed(&choices, "or", "\"")
    )
}

pub(super) fn choices(message: &str) -> impl Iterator<Item = &str> {
    let (_, choices) = message.rsplit_once(", expected ").unwrap_or_default();
    choices.split('`').skip(1).step_by(2)
}

pub(super) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Lists the names, as in `a, b or c`.
fn listed(names: &[&str], last: &str, quote: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{quote}{name}{quote}")).collect();
    match quoted.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Returns the known key with the smallest edit distance from `name`, if this distance is small compared with the key's
/// length. If no key is so close, returns the longest key with which `name` begins.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let closest = known.iter().map(|key| (strsim::levenshtein(&name, key), *key)).min();
    let begins = |key: &&&str| name.strip_prefix(**key).is_some_and(|rest| rest.starts_with('-'));
    closest
        .filter(|(slips, key)| *slips <= 1.max(key.len().min(name.len()) / 3))
        .map(|(_, key)| key)
        .or_else(|| known.iter().filter(begins).max_by_key(|key| key.len()).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_key_is_suggested() {
        let known = ["listen", "threads", "idle-timeout"];
        assert_eq!(nearest("lisen", &known), Some("listen"));
        assert_eq!(nearest("idle_timeout", &known), Some("idle-timeout"));
        assert_eq!(nearest("Threads", &known), Some("threads"));
        assert_eq!(nearest("listen_address", &known), Some("listen"));
        assert_eq!(nearest("listening", &known), None);
        assert_eq!(nearest("colour", &known), None);
    }

    #[test]
    fn a_duplicate_names_the_first_place() {
        for (text, expected) in [
            (
                "[egress]\nallow = []\n[egress]\ndeny = []\n",
                "the section [egress] is already in line 1; put its keys there",
            ),
            (
                "# not [[egress]]\n[egress]\nallow = []\n[egress]\ndeny = []\n",
                "the section [egress] is already in line 2; put its keys there",
            ),
            (
                "[ftp]\nenabled = true\n[proxy]\nname = 'a'\nvia = true\n  name = 'b'\n",
                "this key is set twice; remove one of the two",
            ),
            (
                "[[bot]]\nname = 'a'\n[bot]\nname = 'b'\n",
                "this file has both [bot] and [[bot]]; if it is a list, write [[bot]] each time",
            ),
            (
                "[bot]\nname = 'a'\n[[bot]]\nname = 'b'\n",
                "this file has both [bot] and [[bot]]; if it is a list, write [[bot]] each time",
            ),
            (
                "egress.allow = []\n[egress]\ndeny = []\n",
                "the section [egress] is already in this file; put its keys there",
            ),
        ] {
            let error = DeTable::parse(text).expect_err("a duplicate");
            let complaint = syntax(&error, text, &Environment::from_vars(|_| None));
            assert_eq!(complaint.message, expected, "{text}");
        }
    }

    #[test]
    fn a_key_with_the_name_of_its_section_before_it_is_explained() {
        let known = ["proxy", "https"];
        assert_eq!(
            unknown_section("proxy-idle-timeout", &known),
            "there is no such key; did you mean \"proxy.idle-timeout\"? (in the name of a variable, PROXY__IDLE_TIMEOUT)"
        );
        assert_eq!(unknown_section("prox", &known), unknown_key("prox", &known));
    }
}
