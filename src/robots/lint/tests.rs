//! Tests which findings `lint` reports for a robots.txt. `tests/truth.rs` tests that the findings are true.

mod file;
mod hostile;
mod lines;
mod rules;
mod truth;

use super::{
    super::{LIMIT, RobotsTxt, counted},
    Lint::*,
    *,
};

type Case<'a> = (&'a [u8], &'a [(u32, Lint)]);

fn check(cases: &[Case<'_>]) {
    for (file, expected) in cases {
        let findings = lint(file);
        let found: Vec<(u32, Lint)> = findings.iter().map(|finding| (finding.line, finding.code)).collect();
        assert_eq!(found, *expected, "{}\n{findings:#?}", file.escape_ascii());
    }
}

#[test]
fn codes_are_unique_and_in_kebab_case() {
    let names: std::collections::BTreeSet<&str> = Lint::ALL.iter().map(|lint| lint.as_str()).collect();
    assert_eq!(names.len(), Lint::ALL.len());
    let kebab = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    assert!(names.iter().all(|name| name.chars().all(kebab)));
}

#[test]
fn a_finding_has_its_text_line_message_and_severity() {
    let findings = lint(b"User-agent: *\nDisallow: /a\n Allow: /a\x1b \n\tDisallow: /a\r\n");
    let [control, duplicate] = &findings[..] else {
        panic!("{findings:#?}");
    };
    assert_eq!(control.text, " Allow: /a\\u{1b}");
    assert_eq!((duplicate.line, duplicate.related), (4, Some(2)));
    assert_eq!(duplicate.message, "This rule is the same as line 2.");
    assert_eq!(duplicate.severity, Severity::Note);
}
