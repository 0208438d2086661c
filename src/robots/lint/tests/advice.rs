//! What is not told to go, as something would change without it.

use super::{super::*, Lint::*, check};

#[test]
fn a_rule_that_keeps_groups_apart_is_not_told_to_go() {
    check(&[
        (
            b"User-agent: *\nContent-Signal: x\nAllow: /\nUser-agent: b\nDisallow: /\nUser-agent: *\nDisallow: /c",
            &[(2, IgnoredKey), (3, LoneRule), (6, MergedGroups)],
        ),
        (
            b"User-agent: *\nDisallow:\nUser-agent: b\nDisallow: /\nUser-agent: *\nDisallow: /c",
            &[(2, LoneRule), (5, MergedGroups)],
        ),
        // Of those that could go, one has to stay.
        (
            b"User-agent: *\nDisallow:\nAllow:\nUser-agent: *\nDisallow: /c",
            &[(2, LoneRule), (3, EmptyRule), (4, MergedGroups)],
        ),
        (
            b"User-agent: *\nDisallow: /robots.txt\nUser-agent: b\nDisallow: /",
            &[(2, RobotsTxtRule)],
        ),
        // Another rule stays, if one that is in vain.
        (
            b"User-agent: *\nDisallow:\nDisallow: c\nUser-agent: *\nDisallow: /c",
            &[(2, EmptyRule), (3, NoLeadingSlash), (4, MergedGroups)],
        ),
    ]);
    let findings = lint(b"User-agent: *\nDisallow:\nUser-agent: *\nDisallow: /c");
    assert_eq!(
        findings[0].message,
        "An empty `Disallow` forbids nothing, and takes nothing back of what other rules forbid. But leave it, as the one \
         rule of the group of line 1 that stays: without any, its user-agents would share the rules of a group that \
         follows."
    );
}

#[test]
fn a_star_that_may_decide_is_not_told_to_go() {
    for (rules, expected) in [
        (&b"Allow: /a\nDisallow: /ab*"[..], &[(3, UselessWildcard)][..]),
        (b"Allow: /a\nDisallow: /a*", &[(3, WildcardWeight)]),
        (b"Allow: /abc\nDisallow: /a*", &[(3, UselessWildcard)]),
        // The tie is the allow's.
        (b"Allow: /ab\nDisallow: /a*", &[(3, UselessWildcard)]),
        (b"Disallow: /*ab\nAllow: /ab*", &[(3, WildcardWeight)]),
        (b"Disallow: /*abc\nAllow: /ab*", &[(3, UselessWildcard)]),
        // Both may shrink.
        (
            b"Allow: /abc**\nDisallow: /a***c*",
            &[(2, WildcardWeight), (3, WildcardWeight)],
        ),
        // The directory of an index page shrinks with it.
        (b"Allow: /a**/index.html\nDisallow: /a*/", &[(2, UselessWildcard)]),
        (b"Allow: /a**/index.html\nDisallow: /a/bcd", &[(2, WildcardWeight)]),
        // An agent in several scopes.
        (
            b"User-agent: c\nAllow: /a\nUser-agent: *\nDisallow: /a*",
            &[(5, WildcardWeight)],
        ),
        // A sign that would become the end.
        (b"Disallow: /a$*", &[]),
    ] {
        let findings = lint(&[b"User-agent: *\n", rules].concat());
        let mut found: Vec<(u32, Lint)> = findings.iter().map(|finding| (finding.line, finding.code)).collect();
        found.retain(|(_, code)| matches!(code, UselessWildcard | WildcardWeight));
        assert_eq!(found, expected, "{}\n{findings:#?}", rules.escape_ascii());
    }
}

#[test]
fn a_name_that_comes_again_may_be_more_of_one() {
    let findings = lint(b"User-agent: a\nDisallow: /a\nUser-agent: a\nUser-agent: A\nUser-agent: a*\nDisallow: /b");
    let repeated = findings.iter().filter(|finding| finding.code == RepeatedAgent);
    let told: Vec<_> = repeated
        .map(|finding| (finding.line, finding.related, &*finding.message))
        .collect();
    assert_eq!(
        told,
        [
            (4, Some(3), "The group names `A` twice: remove this line."),
            (5, Some(4), "The group names `a` twice."),
        ]
    );
}
