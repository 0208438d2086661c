//! Tests the findings about agents, groups and rules.

use super::*;

#[test]
fn findings_about_agents_are_reported() {
    check(&[
        (
            b"User-agent:\nDisallow: /a",
            &[(0, NoRules), (1, EmptyUserAgent), (1, UnreachableGroup)],
        ),
        (
            b"User-agent: *bot\nUser-agent: ?\nDisallow: /a",
            &[(0, NoRules), (1, UnreachableGroup)],
        ),
        (b"User-agent: *bot\nUser-agent: a\nDisallow: /a", &[(1, UnnamedAgent)]),
        (b"User-agent: 360Spider\nDisallow: /a", &[(1, UnnamedAgent)]),
        (b"User-agent :\nUser-agent: a\nDisallow: /a", &[(1, EmptyUserAgent)]),
        (
            b"User-agent: \xFF\nUser-agent: a\nDisallow: /a",
            &[(1, NotUtf8), (1, UnnamedAgent)],
        ),
        (b"User-agent: a, b\nDisallow: /a", &[(1, SeveralAgents)]),
        (b"User-agent: a b\nDisallow: /a", &[(1, CutAgent)]),
        (b"User-agent: MJ12bot\nDisallow: /a", &[(1, CutAgent)]),
        (b"User-agent: Googlebot*\nDisallow: /a", &[(1, CutAgent)]),
        (b"User-agent: * b\nDisallow: /a", &[(1, CutAgent)]),
        (
            b"User-agent: Mozilla/5.0 (compatible; a/1.0)\nDisallow: /a",
            &[(1, CutAgent)],
        ),
        (b"User-agent: Googlebot/2.1\nDisallow: /a", &[(1, AgentVersion)]),
        (
            b"User-agent: a\nUser-agent: b\nUser-agent: A\nDisallow: /a",
            &[(3, RepeatedAgent)],
        ),
    ]);
}

#[test]
fn findings_about_groups_are_reported() {
    check(&[
        (
            b"Disallow: /a\nAllow: /b\n",
            &[(0, NoRules), (1, RuleBeforeUserAgent), (2, RuleBeforeUserAgent)],
        ),
        (
            b"User-agent: a\nDisallow: /a\n\nUser-agent: A/2\nDisallow: /b",
            &[(4, AgentVersion), (4, MergedGroups)],
        ),
        (b"User-agent: a\n\nUser-agent: b\nDisallow: /a", &[(3, JoinedGroups)]),
        (
            b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /a",
            &[(2, IgnoredKey), (3, JoinedGroups)],
        ),
        (b"User-agent: a\n# b\nUser-agent: b\n\nDisallow: /a", &[]),
        (
            b"User-agent: a\nDisallow: /a\nUser-agent: b\n",
            &[(3, GroupWithoutRules)],
        ),
        (b"User-agent: a\nDisallow: /a\nUser-agent: a\n", &[(3, MergedGroups)]),
        (b"User-agent: *\n", &[(0, NoRules), (1, GroupWithoutRules)]),
        (b"User-agent: a\nAllow: /a\nAllow: /b", &[(2, OnlyAllows)]),
        (
            b"User-agent: a\nAllow: /a\nUser-agent: a\nDisallow: /b",
            &[(2, RedundantRule), (3, MergedGroups)],
        ),
        (b"User-agent: a\nAllow: /", &[]),
    ]);
}

#[test]
fn findings_about_patterns_are_reported() {
    check(&[
        (b"User-agent: *\nDisallow: https://a.example/b", &[(2, UrlInRule)]),
        (
            b"User-agent: *\nDisallow: b/\nDisallow: ?c\nAllow: b/index.html",
            &[(2, NoLeadingSlash), (3, NoLeadingSlash), (4, NoLeadingSlash)],
        ),
        (b"User-agent: *\nDisallow: $", &[(2, NeverMatches)]),
        (b"User-agent: *\nDisallow: /a /b", &[(2, SpaceInPattern)]),
        (
            b"User-agent: *\nDisallow: /a$b\nDisallow: /c$$",
            &[(2, DollarInside), (3, DollarInside)],
        ),
        (
            b"User-agent: *\nDisallow: /a\\.html\nDisallow: /[0-9]",
            &[(2, RegularExpression), (3, RegularExpression)],
        ),
        (
            b"User-agent: *\nDisallow: /[a-f0-9]\nDisallow: /b[A-Z_-]+\nDisallow: /[^/]c",
            &[(2, RegularExpression), (3, RegularExpression), (4, RegularExpression)],
        ),
        (
            b"User-agent: *\nDisallow: /?a[]=\nDisallow: /?b[by-date]=\nDisallow: /?c[0]",
            &[],
        ),
        (
            b"User-agent: *\nDisallow: /a/../b\nDisallow: /.\nDisallow: /?/../",
            &[(2, DotSegment)],
        ),
        (b"User-agent: *\nDisallow: /%61\nDisallow: /%2F", &[(2, NeedlessEscape)]),
        (
            b"User-agent: *\nDisallow: /%\nDisallow: /a%zz",
            &[(2, BrokenEscape), (3, BrokenEscape)],
        ),
        (
            b"User-agent: *\nDisallow: /a*\nDisallow: /b**c\nDisallow: /d*$\nDisallow: /*e$",
            &[(2, UselessWildcard), (3, UselessWildcard), (4, UselessWildcard)],
        ),
        (b"User-agent: *\nDisallow: /robots.txt", &[(2, RobotsTxtRule)]),
    ]);
}

#[test]
fn findings_about_conflicting_rules_are_reported() {
    check(&[
        (b"User-agent: *\nDisallow: /a\nDisallow: /a", &[(3, DuplicateRule)]),
        (
            b"User-agent: *\nDisallow: /a%c3\nDisallow: /a%C3",
            &[(3, DuplicateRule)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nUser-agent: *\nDisallow: /a",
            &[(3, MergedGroups), (4, DuplicateRule)],
        ),
        // Both patterns are equal, so the `Allow` wins.
        (b"User-agent: *\nDisallow: /a\nAllow: /a", &[(2, ShadowedRule)]),
        (
            b"User-agent: *\nAllow: /*\nDisallow: /a\nDisallow: /ab",
            &[(3, ShadowedRule)],
        ),
        (b"User-agent: *\nDisallow: /*.x$\nAllow: *.x$", &[(3, ShadowedRule)]),
        (
            b"User-agent: *\nAllow: /a\nDisallow: /a*",
            &[(2, ShadowedRule), (3, UselessWildcard)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nDisallow: /a*",
            &[(2, RedundantRule), (3, UselessWildcard)],
        ),
        (b"User-agent: *\nDisallow: /a/b\nDisallow: /a/", &[(2, RedundantRule)]),
        (b"User-agent: *\nDisallow: /a/*b$\nDisallow: /a/", &[(2, RedundantRule)]),
        (b"User-agent: *\nDisallow: /a/b/c\nAllow: /a/b\nDisallow: /a", &[]),
        (b"User-agent: *\nDisallow: /a/b/cde\nDisallow: /a\nAllow: /*b", &[]),
        (
            b"User-agent: *\nDisallow: /a/b\nDisallow: /a\nAllow: /*bcd",
            &[(2, RedundantRule)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nAllow: /b\nAllow: /",
            &[(3, RedundantRule), (4, RedundantRule)],
        ),
        (
            b"User-agent: *\nDisallow: /\nAllow: /a\nAllow: /a/b",
            &[(4, RedundantRule)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nAllow:\nDisallow:",
            &[(3, EmptyRule), (4, EmptyRule)],
        ),
        // Two patterns with wildcards give a finding only if one matches every path that the other matches.
        (b"User-agent: *\nAllow: /*/a/*b\nDisallow: /*a*b", &[]),
        (
            b"User-agent: *\nDisallow: /a/*b/c\nAllow: /a*/*/c",
            &[(2, ShadowedRule)],
        ),
        (b"User-agent: *\nDisallow: */a\nAllow: /*/a", &[]),
        (b"User-agent: *\nDisallow: /a\nAllow: /ab\nDisallow: /*b$", &[]),
        // `Allow: /b/index.html` also allows `/b/`.
        (
            b"User-agent: *\nDisallow: /*/$\nAllow: /b/in\nAllow: /b/index.html",
            &[],
        ),
        (
            b"User-agent: *\nDisallow: /a/\nAllow: /a/index.html\nAllow: /a/$",
            &[(4, RedundantRule)],
        ),
        (
            b"User-agent: *\nDisallow: /a/$\nAllow: /a/index.html",
            &[(2, ShadowedRule)],
        ),
        (
            b"User-agent: *\nDisallow: /a/\nAllow: /a/index.html*\nAllow: /a/index.html",
            &[(3, UselessWildcard), (4, RedundantRule)],
        ),
    ]);
}

#[test]
fn messages_quote_the_text_that_is_wrong() {
    for (file, message) in [
        (
            "User-agent: Googlebot Disallow: /",
            "A line holds one record, so `Disallow: /` is lost: it becomes part of the value before it. Write it on \
             its own line.",
        ),
        (
            "User-agent: *\nDisallow: /.*\\.php$",
            "`\\` looks like a piece of a regular expression, but patterns are not regular expressions: `*` stands for \
             any run of characters, a `$` at the end for the end of the path, and every other character for itself.",
        ),
        (
            "User-agent: *\nDisallow: /x/[a-f0-9]+",
            "`[a-f` looks like a piece of a regular expression, but patterns are not regular expressions: `*` stands \
             for any run of characters, a `$` at the end for the end of the path, and every other character for \
             itself.",
        ),
        (
            "User-agent: *\nDisallow:\nSitemap https://a.example/s",
            "The colon after `Sitemap` is missing. The next colon ends the key, so the value is `//a.example/s`.",
        ),
        (
            "User-agent: *\nContent-Usage train-ai=n\nDisallow: /a",
            "The colon after `Content-Usage` is missing, so robotgate ignores the line.",
        ),
    ] {
        let findings = lint(file.as_bytes());
        assert!(
            findings.iter().any(|finding| finding.message == message),
            "{file}: {findings:#?}"
        );
    }
}

#[test]
fn rules_of_groups_with_different_agents_are_not_compared() {
    check(&[
        (b"User-agent: *\nDisallow: /a\nUser-agent: b\nDisallow: /a", &[]),
        // `Disallow: /a/b/c` could be removed for `b`, but not for `a`, which also has `Allow: /a/b`.
        (
            b"User-agent: a\nUser-agent: b\nDisallow: /a/b/c\nDisallow: /a\nUser-agent: a\nAllow: /a/b",
            &[(5, MergedGroups)],
        ),
        (
            b"User-agent: MJ12\nDisallow: /a/b/c\nDisallow: /a\nUser-agent: MJ13\nAllow: /a/b",
            &[(1, CutAgent), (4, CutAgent)],
        ),
    ]);
}

#[test]
fn lint_does_not_advise_removing_a_repeated_agent_with_more_text() {
    let findings = lint(b"User-agent: a\nDisallow: /a\nUser-agent: a\nUser-agent: A\nUser-agent: a*\nDisallow: /b");
    let repeated = findings.iter().filter(|finding| finding.code == RepeatedAgent);
    let reported: Vec<_> = repeated
        .map(|finding| (finding.line, finding.related, &*finding.message))
        .collect();
    assert_eq!(
        reported,
        [
            (4, Some(3), "The group names `A` twice: remove this line."),
            (5, Some(4), "The group names `a` twice."),
        ]
    );
}
