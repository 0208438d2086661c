//! Parses the values of lines about the use of content.

use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::{
    robots::record::trim,
    usage::{Label, Vocabulary},
};

/// Whether one line allows each use, in the order of [`Vocabulary::labels`]. `None` if the line does not say.
pub(super) type Values = [Option<bool>; MAX_LABELS];

/// Splits `/path dictionary` at the white space. If the value does not begin with `/`, all of it is the dictionary.
pub(crate) fn split_path(value: &[u8]) -> (&[u8], &[u8]) {
    if !value.starts_with(b"/") {
        return (b"", value);
    }
    match value.iter().position(|byte| matches!(byte, b' ' | b'\t')) {
        Some(end) => (&value[..end], trim(&value[end..])),
        None => (value, b""),
    }
}

/// Parses a `Content-Usage` dictionary, such as `train-ai=n, search=y`. Returns the known labels with a valid value,
/// and for each whether the site allows that use.
pub fn content_usage(value: &[u8]) -> impl Iterator<Item = (&'static Label, bool)> {
    let labels = Vocabulary::ContentUsage.labels().iter();
    labels
        .zip(usage(value))
        .filter_map(|(label, said)| Some((label, said?)))
}

/// Parses a `Content-Signal` value, such as `ai-train=no, search=yes`. Returns the known labels with a valid value, and
/// for each whether the site allows that use.
pub fn content_signal(value: &[u8]) -> impl Iterator<Item = (&'static Label, bool)> {
    let labels = Vocabulary::ContentSignal.labels().iter();
    labels
        .zip(signals(value))
        .filter_map(|(label, said)| Some((label, said?)))
}

/// Parses a dictionary (RFC 9651). Ignores an entry whose value is not the token `y` or `n`, and the whole dictionary
/// if it has a syntax error.
pub(super) fn usage(value: &[u8]) -> Values {
    let mut values = Values::default();
    let Ok(dictionary) = Parser::new(value).parse::<Dictionary>() else {
        return values;
    };
    for (said, label) in values.iter_mut().zip(Vocabulary::ContentUsage.labels()) {
        let token = match dictionary.get(label.name) {
            Some(ListEntry::Item(item)) => match &item.bare_item {
                BareItem::Token(token) => Some(token.as_str()),
                _ => None,
            },
            _ => None,
        };
        *said = match token {
            Some("y") => Some(true),
            Some("n") => Some(false),
            _ => None,
        };
    }
    values
}

/// Parses items such as `search=yes`, in upper or lower case. For the same key, `no` wins over `yes`.
pub(super) fn signals(value: &[u8]) -> Values {
    let mut values = Values::default();
    for signal in value.split(|byte| *byte == b',') {
        let Some(at) = memchr::memchr(b'=', signal) else {
            continue;
        };
        let (key, value) = (trim(&signal[..at]), trim(&signal[at + 1..]));
        let mut labels = Vocabulary::ContentSignal.labels().iter();
        let Some(label) = labels.position(|label| key.eq_ignore_ascii_case(label.name.as_bytes())) else {
            continue;
        };
        if value.eq_ignore_ascii_case(b"no") {
            values[label] = Some(false);
        } else if value.eq_ignore_ascii_case(b"yes") {
            values[label].get_or_insert(true);
        }
    }
    values
}

/// Number of labels of the largest vocabulary.
pub(super) const MAX_LABELS: usize = 3;
