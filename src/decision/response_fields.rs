//! Reads what the fields of a response say about the use of its content.

use http::HeaderMap;

use crate::{
    robots::content_usage,
    usage::{Label, Purposes, UsagePolicy, UseSource, UseStatement, Vocabulary},
};

/// Returns what `fields` say about `purposes`. `is_bot` says whether a name in an `X-Robots-Tag` field means the bot.
pub(super) fn said(
    fields: &HeaderMap,
    policy: &UsagePolicy,
    purposes: Purposes,
    is_bot: impl Fn(&str) -> bool,
) -> Vec<UseStatement> {
    let mut said = Vec::new();
    let mut add = |field, vocabulary: Vocabulary, label: &Label, allowed: bool| {
        said.extend(policy.statements(purposes, vocabulary, label, allowed, UseSource::Field(field)));
    };
    let values = |name: &str| fields.get_all(name).iter().map(http::HeaderValue::as_bytes);
    // Read all `Content-Usage` fields as one dictionary (RFC 9651 §4.2), and then each alone, so that a use that any
    // field forbids is forbidden.
    let dictionary: Vec<_> = values(CONTENT_USAGE).collect();
    let of_dictionary: Vec<_> = content_usage(&dictionary.join(&b", "[..])).collect();
    let each = || dictionary.iter().flat_map(|field| content_usage(field));
    for label in Vocabulary::ContentUsage.labels() {
        let is_forbidden = of_dictionary.contains(&(label, false)) || each().any(|said| said == (label, false));
        if is_forbidden || of_dictionary.contains(&(label, true)) {
            add(CONTENT_USAGE, Vocabulary::ContentUsage, label, !is_forbidden);
        }
    }
    let items = || values(TDM_RESERVATION).flat_map(|value| value.split(|byte| *byte == b','));
    let reservations = || items().map(<[u8]>::trim_ascii);
    for label in Vocabulary::Tdmrep.labels() {
        if reservations().any(|value| value == b"1") {
            add(TDM_RESERVATION, Vocabulary::Tdmrep, label, false);
        } else if reservations().any(|value| value == b"0") {
            add(TDM_RESERVATION, Vocabulary::Tdmrep, label, true);
        }
    }
    // A response can contain a directive a thousand times, so each is added only once.
    for label in Vocabulary::XRobotsTag.labels() {
        let is_forbidden = |value| forbidden_by_robots_tag(value, &is_bot).any(|found| found == label);
        if values(X_ROBOTS_TAG).any(is_forbidden) {
            add(X_ROBOTS_TAG, Vocabulary::XRobotsTag, label, false);
        }
    }
    said
}

/// Returns the directives in an `X-Robots-Tag` field that forbid the bot a use. In `examplebot: noai, noimageai`, both
/// directives apply only to `examplebot`.
///
/// A colon can also follow a directive, as in `unavailable_after: 25 Jun 2010 15:00:00`. So the text before a colon
/// counts as a bot's name only if it is no known directive, and a known directive or nothing follows the colon.
fn forbidden_by_robots_tag(value: &[u8], is_bot: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static Label> {
    let mut applies = true;
    value.split(|byte| *byte == b',').filter_map(move |item| {
        let mut directive = item.trim_ascii();
        if let Some(colon) = memchr::memchr(b':', directive) {
            let (name, rest) = (directive[..colon].trim_ascii(), directive[colon + 1..].trim_ascii());
            if !is_directive(name) && (rest.is_empty() || is_directive(rest)) {
                applies = name == b"*" || str::from_utf8(name).is_ok_and(&is_bot);
                directive = rest;
            }
        }
        let mut labels = Vocabulary::XRobotsTag.labels().iter().filter(|_| applies);
        labels.find(|label| directive.eq_ignore_ascii_case(label.name.as_bytes()))
    })
}

/// Returns whether `text` is a known directive, with or without a value after a colon.
fn is_directive(text: &[u8]) -> bool {
    let end = memchr::memchr(b':', text).unwrap_or(text.len());
    let name = text[..end].trim_ascii();
    let begins_with_max = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"max-"));
    let mut known = DIRECTIVES.iter();
    begins_with_max || known.any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

const CONTENT_USAGE: &str = "content-usage";
const TDM_RESERVATION: &str = "tdm-reservation";
const X_ROBOTS_TAG: &str = "x-robots-tag";
/// The known directives, besides those that begin with `max-`.
const DIRECTIVES: [&str; 19] = [
    "all",
    "index",
    "follow",
    "none",
    "noindex",
    "nofollow",
    "noarchive",
    "nocache",
    "nosnippet",
    "noimageindex",
    "notranslate",
    "nositelinkssearchbox",
    "nopagereadaloud",
    "noodp",
    "noydir",
    "indexifembedded",
    "noai",
    "noimageai",
    "unavailable_after",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::{Purpose, VocabularyPolicy};

    fn all_enforced() -> UsagePolicy {
        UsagePolicy {
            content_signal: VocabularyPolicy::Enforce,
            content_usage: VocabularyPolicy::Enforce,
            tdmrep: VocabularyPolicy::Enforce,
            x_robots_tag: VocabularyPolicy::Enforce,
            ..UsagePolicy::default()
        }
    }

    fn read(fields: &[(&'static str, &str)]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().expect("a field value"));
        }
        let is_bot = |name: &str| name.eq_ignore_ascii_case("AcmeBot");
        let said = said(&headers, &all_enforced(), Purpose::ALL.into_iter().collect(), is_bot);
        let text = |said: &UseStatement| {
            let UseStatement {
                vocabulary,
                label,
                purpose,
                ..
            } = said;
            format!("{vocabulary} {label}={} {purpose}", said.value())
        };
        said.iter().map(text).collect()
    }

    #[test]
    fn usage_statements_are_read_from_response_fields() {
        type Case<'a> = (&'a [(&'static str, &'a str)], &'a [&'a str]);

        let noai = ["x-robots-tag noai=noai ai-input", "x-robots-tag noai=noai ai-train"];
        let cases: &[Case<'_>] = &[
            (
                &[("content-usage", "train-ai=n")],
                &["content-usage train-ai=n ai-train"],
            ),
            (&[("content-usage", "search=y")], &["content-usage search=y search"]),
            (
                &[("content-usage", "train-ai=y"), ("content-usage", "train-ai=n")],
                &["content-usage train-ai=n ai-train"],
            ),
            (&[("content-usage", "train-ai=n,")], &[]),
            (
                &[("content-usage", "train-ai=n"), ("content-usage", "train-ai=y")],
                &["content-usage train-ai=n ai-train"],
            ),
            (
                &[
                    ("content-usage", ""),
                    ("content-usage", "train-ai=n"),
                    ("content-usage", "?!"),
                ],
                &["content-usage train-ai=n ai-train"],
            ),
            (&[("tdm-reservation", "0, 1")], &["tdmrep tdm-reservation=1 tdm"]),
            (&[("content-usage", "/ train-ai=n")], &[]),
            (&[("tdm-reservation", " 1 ")], &["tdmrep tdm-reservation=1 tdm"]),
            (&[("tdm-reservation", "0")], &["tdmrep tdm-reservation=0 tdm"]),
            (
                &[("tdm-reservation", "0"), ("tdm-reservation", "1")],
                &["tdmrep tdm-reservation=1 tdm"],
            ),
            (&[("tdm-reservation", "yes")], &[]),
            (&[("x-robots-tag", "noindex, NoAI")], &noai),
            (&[("x-robots-tag", "acmebot: noindex, noai")], &noai),
            (&[("x-robots-tag", "OtherBot: noai")], &[]),
            (&[("x-robots-tag", "OtherBot: noindex, noai")], &[]),
            (&[("x-robots-tag", "OtherBot: noindex, AcmeBot: noai")], &noai),
            (&[("x-robots-tag", "max-snippet: 20, noai")], &noai),
            (&[("x-robots-tag", "max-foo: 3, noai")], &noai),
            (&[("x-robots-tag", "max-image-preview: none, noai")], &noai),
            (&[("x-robots-tag", "foo: 3, noai")], &noai),
            (&[("x-robots-tag", "OtherBot: foo, noai")], &noai),
            (&[("x-robots-tag", "OtherBot: , noai")], &[]),
            (&[("x-robots-tag", "OtherBot: max-snippet: 20, noai")], &[]),
            (
                &[(
                    "x-robots-tag",
                    "OtherBot: unavailable_after: 25 Jun 2010 15:00:00 GMT, noai",
                )],
                &[],
            ),
            (
                &[("x-robots-tag", "unavailable_after: 25 Jun 2010 15:00:00 GMT, noai")],
                &noai,
            ),
            (&[("x-robots-tag", "*: noai")], &noai),
            (&[("x-robots-tag", "OtherBot: noindex, *: noai")], &noai),
            (
                &[("x-robots-tag", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noai")],
                &noai,
            ),
            (&[("x-robots-tag", "noai, noai, noai"), ("x-robots-tag", "noai")], &noai),
            (&[("x-robots-tag", "OtherBot: none"), ("x-robots-tag", "noai")], &noai),
            (&[("x-robots-tag", "noaia, none")], &[]),
        ];
        for (fields, expected) in cases {
            assert_eq!(read(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn statements_of_disabled_vocabularies_or_for_other_purposes_are_ignored() {
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static("content-usage"),
            http::HeaderValue::from_static("train-ai=n, search=n"),
        )]);
        let purposes = Purposes::from_iter([Purpose::Search]);
        let of = |policy: &UsagePolicy| said(&headers, policy, purposes, |_| false);
        let [only] = of(&UsagePolicy::default())[..] else {
            panic!("one statement");
        };
        assert_eq!(
            (only.purpose, only.refuses()),
            (Purpose::Search, false),
            "only reported"
        );
        let off = UsagePolicy {
            content_usage: VocabularyPolicy::Off,
            ..all_enforced()
        };
        assert_eq!(of(&off), []);
    }
}
