//! From text to the file as written, with every mistake of syntax, key and type.
//!
//! It knows TOML and serde, and never what a value means.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error};

use super::place::{Complaint, Step, path, remove};
use super::written::File;

/// Reads the document; what cannot be read is reported and left out, so that the rest can still be checked.
///
/// serde stops at its first error. The entry at fault is therefore taken out and the rest read again.
pub(super) fn read(document: &Spanned<DeTable<'_>>, text: &str) -> (File, Vec<Complaint>) {
    let mut rest = document.clone();
    let mut complaints = Vec::new();
    loop {
        let error = match File::deserialize(Deserializer::from(rest.clone())) {
            Ok(file) => return (file, complaints),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_default();
        let path = path(rest.get_ref(), &span);
        complaints.push(Complaint {
            message: explain(error.message(), &path, text.get(span.clone()).unwrap_or_default()),
            span,
            missing: None,
        });
        // An error without a place leaves nothing to take out; without this the loop would not end.
        if !remove(rest.get_mut(), &path) {
            return (File::default(), complaints);
        }
    }
}

/// A mistake of syntax in `text`, in TOML's own words but for the most common one: a value without quotes.
pub(super) fn syntax(error: &Error, text: &str) -> Complaint {
    let span = error.span().unwrap_or_default();
    let value = bare_value(text, span.start);
    let advice = value.as_ref().and_then(|value| match &text[value.clone()] {
        "" => Some("the value is missing".to_owned()),
        word => how_to_write(word, &text[..value.start]),
    });
    let (span, message) = match (value, advice) {
        (Some(value), Some(advice)) => (value, advice),
        _ => (span, format!("this is not TOML: {}", error.message())),
    };
    Complaint {
        message,
        span,
        missing: None,
    }
}

/// The value without quotes around `at`: what stands behind `key =` or is an item of a list. `None` if `at` is in
/// anything else.
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

/// Whether `text` ends inside the list of a `key = [`.
fn in_list(text: &str) -> bool {
    let open = text.rfind('[').filter(|open| !text[*open..].contains([']', '{']));
    open.is_some_and(|open| text[..open].trim_end().ends_with('='))
}

/// What to write for a value without quotes, which follows `before`. The same file with an empty text in its place tells
/// which type the key takes. `None` for a number or date of a key that takes one: TOML's own words say what it lacks.
fn how_to_write(word: &str, before: &str) -> Option<String> {
    let end = if in_list(before.trim_end()) { "]" } else { "" };
    let probe = format!("{before}''{end}");
    let complaints = DeTable::parse(&probe).map_or_else(|_| Vec::new(), |document| read(&document, &probe).1);
    let here = complaints.iter().find(|complaint| complaint.span.start == before.len());
    match here.and_then(|complaint| complaint.message.strip_prefix("found the text \"\", but expected ")) {
        Some(_) if word.starts_with(|c: char| c.is_ascii_digit()) => None,
        Some(expected) => Some(format!("write {expected}")),
        None => Some(format!("put it in quotes: {word:?}")),
    }
}

/// serde's message about the value `source` in words that say what to write. A message of a form that is not known is
/// kept.
fn explain(message: &str, path: &[Step], source: &str) -> String {
    // TOML reads these words as numbers.
    let is_number_word = matches!(source.trim_start_matches(['+', '-']), "nan" | "inf");
    if message == "wanted string or table" {
        return match source.contains(['[', '{']) {
            true => "expected a text in quotes".to_owned(),
            false => format!("put it in quotes: {source:?}"),
        };
    }
    if message.starts_with("unknown field") {
        let (name, known) = quoted(message);
        return match nearest(name, &known) {
            Some(near) => format!("there is no such key; did you mean \"{near}\"?"),
            None => format!("there is no such key; the keys here are {}", listed(&known, "and", "")),
        };
    }
    if message.starts_with("unknown variant") {
        let (name, known) = quoted(message);
        return format!(
            "\"{name}\" is not one of the choices; write {}",
            listed(&known, "or", "\"")
        );
    }
    let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .and_then(|m| m.split_once(", expected "))
    else {
        return message.to_owned();
    };
    let section = match path {
        [Step::Key(key)] | [Step::Key(key), Step::Index(_)] => key.clone(),
        [Step::Key(section), Step::Key(key)] | [Step::Key(section), Step::Key(key), Step::Index(_)] => {
            format!("{section}.{key}")
        }
        _ => String::new(),
    };
    match (found, expected) {
        ("map", "a sequence") => format!("there may be several of these; write [[{section}]], in double brackets"),
        ("sequence", "a table") => format!("there is only one of these; write [{section}], in single brackets"),
        (_, "a sequence") if found.starts_with("string ") => {
            let text = found.trim_start_matches("string ");
            format!("this is a list, even of one; write [{text}]")
        }
        (_, "a string") if is_number_word => format!("put it in quotes: {source:?}"),
        _ => format!("found {}, but expected {}", plain(found), plain(expected)),
    }
}

/// serde's names of types in TOML's words.
fn plain(serde: &str) -> String {
    match serde {
        "a boolean" => "true or false, without quotes".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        "i64" => "a whole number".to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        "a TOML datetime" => "a date without quotes, like 2027-01-31".to_owned(),
        _ => {
            let words = serde.replacen("string \"", "the text \"", 1).replace('`', "");
            let number = words.strip_prefix("integer ").or(words.strip_prefix("floating point "));
            let words = number.map(|n| format!("the number {n}")).unwrap_or(words);
            words.strip_prefix("boolean ").map(str::to_owned).unwrap_or(words)
        }
    }
}

/// The name in the first back quotes, and those in the others.
fn quoted(message: &str) -> (&str, Vec<&str>) {
    let mut names = message.split('`').skip(1).step_by(2);
    let name = names.next().unwrap_or_default();
    (name, names.collect())
}

/// `a, b or c`.
fn listed(names: &[&str], last: &str, quote: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{quote}{name}{quote}")).collect();
    match quoted.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// The known key that was most likely meant: the one with the fewest slips, if those are few for its length.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    known
        .iter()
        .map(|key| (distance(&name, key), *key))
        .min()
        .filter(|(slips, key)| *slips <= 1.max(key.len().min(name.len()) / 3))
        .map(|(_, key)| key)
}

/// How many bytes must be put in, taken out or changed to make one of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.bytes().enumerate() {
            let change = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("listen", "lisen", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (slips, slips), "{a} {b}");
        }
    }

    #[test]
    fn only_a_near_key_is_proposed() {
        let known = ["listen", "threads", "idle-timeout"];
        assert_eq!(nearest("lisen", &known), Some("listen"));
        assert_eq!(nearest("idle_timeout", &known), Some("idle-timeout"));
        assert_eq!(nearest("Threads", &known), Some("threads"));
        assert_eq!(nearest("colour", &known), None);
    }
}
