//! Checks the lines about the use of content, such as `Content-Usage: train-ai=n`. Decisions use `robots::usage`
//! instead.

use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::{
    super::{StatementKind, record::trim, usage::split_path},
    Findings, Lint, quoted,
};
use crate::usage::Vocabulary;

pub(super) fn check(number: u32, kind: StatementKind, value: &[u8], findings: &mut Findings) {
    match kind {
        StatementKind::ContentSignal => check_signals(number, value, findings),
        StatementKind::ContentUsage => check_dictionary(number, value, findings),
        StatementKind::Sitemap | StatementKind::CrawlDelay | StatementKind::License => {}
    }
}

fn check_signals(number: u32, value: &[u8], findings: &mut Findings) {
    let mut signals = value.split(|byte| *byte == b',').map(trim);
    if signals.clone().all(<[u8]>::is_empty) {
        let message = "This `Content-Signal` says nothing: write signals like `search=yes, ai-train=no`.";
        return findings.add(number, Lint::UsageValue, message);
    }
    let mut check = |signal: &[u8]| {
        let Some(at) = memchr::memchr(b'=', signal) else {
            let message = format!(
                "{} has no `=`, so it says nothing: write `=yes` or `=no` after the label.",
                quoted(signal)
            );
            return findings.add(number, Lint::UsageValue, message);
        };
        let (label, value) = (trim(&signal[..at]), trim(&signal[at + 1..]));
        if !is_known(Vocabulary::ContentSignal, |known| {
            label.eq_ignore_ascii_case(known.as_bytes())
        }) {
            return report_label(number, Vocabulary::ContentSignal, label, findings);
        }
        if !value.eq_ignore_ascii_case(b"yes") && !value.eq_ignore_ascii_case(b"no") {
            let message = format!(
                "The value of {} is {}, so the signal says nothing: write `yes` or `no`.",
                quoted(label),
                quoted(value)
            );
            findings.add(number, Lint::UsageValue, message);
        }
    };
    signals
        .by_ref()
        .filter(|signal| !signal.is_empty())
        .for_each(&mut check);
}

fn check_dictionary(number: u32, value: &[u8], findings: &mut Findings) {
    let (_, dictionary) = split_path(value);
    if dictionary.is_empty() {
        let message = "This `Content-Usage` says nothing: write labels like `train-ai=n, search=y`.";
        return findings.add(number, Lint::UsageValue, message);
    }
    let Ok(dictionary) = Parser::new(dictionary).parse::<Dictionary>() else {
        let message = format!(
            "{} is not a dictionary (RFC 9651), so the whole line says nothing: write labels in lower case like \
             `train-ai=n, search=y`.",
            quoted(dictionary)
        );
        return findings.add(number, Lint::UsageValue, message);
    };
    for (label, entry) in &dictionary {
        let label = label.as_str();
        if !is_known(Vocabulary::ContentUsage, |known| label == known) {
            report_label(number, Vocabulary::ContentUsage, label.as_bytes(), findings);
            continue;
        }
        let token = match entry {
            ListEntry::Item(item) => match &item.bare_item {
                BareItem::Token(token) => token.as_str(),
                _ => "",
            },
            ListEntry::InnerList(_) => "",
        };
        if !matches!(token, "y" | "n") {
            let message = format!(
                "The value of {} is neither `y` nor `n`, so the label says nothing: write one of them, without quotes.",
                quoted(label.as_bytes())
            );
            findings.add(number, Lint::UsageValue, message);
        }
    }
}

fn is_known(vocabulary: Vocabulary, is: impl Fn(&str) -> bool) -> bool {
    vocabulary.labels().iter().any(|known| is(known.name))
}

fn report_label(number: u32, vocabulary: Vocabulary, label: &[u8], findings: &mut Findings) {
    let known: Vec<_> = vocabulary
        .labels()
        .iter()
        .map(|label| format!("`{}`", label.name))
        .collect();
    let message = format!(
        "The label {} is unknown, and robotgate ignores it. The known labels are {}.",
        quoted(label),
        known.join(", ")
    );
    findings.add(number, Lint::UsageLabel, message);
}
