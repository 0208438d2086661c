//! Tests which findings `lint` reports for a robots.txt. `tests/truth.rs` tests that the findings are true.

mod hostile;
mod truth;

use super::{
    super::{LIMIT, RobotsTxt, counted},
    Lint::*,
    *,
};

/// A file, and its expected findings with their lines.
type Case<'a> = (&'a [u8], &'a [(u32, Lint)]);

fn check(cases: &[Case<'_>]) {
    for (file, expected) in cases {
        let findings = lint(file);
        let found: Vec<(u32, Lint)> = findings.iter().map(|finding| (finding.line, finding.code)).collect();
        assert_eq!(found, *expected, "{}\n{findings:#?}", file.escape_ascii());
    }
}

#[test]
fn a_good_file_has_no_findings() {
    check(&[
        (b"User-agent: *\nDisallow:", &[]),
        (b"User-agent: *\nDisallow: /a # why\n\n# B\nuser-agent: b\nUSER-AGENT : c-d_e\nAllow: /", &[]),
        (b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n\nSitemap: https://a.example/s.xml", &[]),
        (b"Sitemap: https://a.example/\xC3\xA9.xml\nUser-agent: a\nDisallow: /\xC3\xA9\nDisallow: /*.pdf$\nDisallow: *x", &[]),
        (b"# \xFF \0 https://a.example:80\nUser-agent: a\r\nDisallow: /%20%2f%C3%a9\rDisallow: /$", &[]),
    ]);
}

#[test]
fn findings_about_the_file_itself_are_reported() {
    check(&[
        (b"", &[(0, EmptyFile)]),
        (b"\n\n", &[(0, NoRules)]),
        (b"# nothing", &[(0, NoRules)]),
        (b"Sitemap: https://a.example/s.xml\n", &[(0, NoRules)]),
        (b"User-agent: *\nDisallow: /", &[(2, BlocksEverything)]),
        (b"User-agent: *\nDisallow: *\nAllow: /$", &[]),
        (b"User-agent: a\nDisallow: /", &[]),
        (b" \n<!DOCTYPE html>\n<p>Allow me: 1 < 2\n\xFF", &[(0, Html)]),
        (b"\xEF\xBB\xBF<?xml version='1.0'?>", &[(0, Html)]),
        (
            b"<pre>\nUser-agent: *\nDisallow: b\n</pre>",
            &[(0, Html), (3, NoLeadingSlash)],
        ),
        (b"< 2", &[(0, NoRules), (1, NotARecord)]),
        (b"\xFF\xFEU\0s\0e\0r\0", &[(0, Utf16)]),
        (b"\0U\0s\0e\0r", &[(0, Utf16)]),
        (b"\x1f\x8b\x08\0compressed", &[(0, Binary)]),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0\nUser-agent: *\nDisallow: /a\0",
            &[(0, Binary)],
        ),
    ]);
}

#[test]
fn findings_about_bytes_are_reported() {
    let long = [b"User-agent: *\nDisallow: /", &[b'x'; 17_000][..]].concat();
    let long_with_comment = [b"User-agent: *\nDisallow: /a #", &[b'x'; 17_000][..]].concat();
    let long_with_blanks = [b"User-agent: *\nDisallow: /a", &[b' '; 17_000][..]].concat();
    check(&[
        (b"\xEF\xBB\xBFUser-agent: *\nDisallow: /a", &[(1, ByteOrderMark)]),
        (b"\xEF\xBBUser-agent: *\nDisallow: /a", &[(1, ByteOrderMark)]),
        (
            b"User-agent: *\nDisallow: /a\n\xEF\xBB\xBFDisallow: /b\n\xEF\xBB\xBF# c\n",
            &[(3, MisplacedByteOrderMark)],
        ),
        (b"User-agent: *\nDisallow: /a\0b", &[(2, Nul)]),
        (b"User-agent: *\nDisallow: /a # \0", &[]),
        (b"User-agent: *\nDisallow: /a\0 # b", &[(2, Nul)]),
        (&long, &[(2, LongLine)]),
        (&long_with_comment, &[]),
        (&long_with_blanks, &[]),
        (b"User-agent: *\nDisallow: /\xE9", &[(2, NotUtf8)]),
        (b"User-agent: *\nDisallow: /a\xC2\xA0", &[(2, InvisibleCharacter)]),
        ("User-agent: *\nDisallow: /\u{647}\u{200c}\u{627}".as_bytes(), &[]),
        (
            b"User-agent: *\n\xC2\xA0Disallow: /a",
            &[
                (0, NoRules),
                (1, GroupWithoutRules),
                (2, InvisibleCharacter),
                (2, MisspeltKey),
            ],
        ),
    ]);
}

#[test]
fn a_file_past_the_limit_is_cut_at_a_line() {
    let rule = b"Disallow: /123456789\n";
    let head = b"User-agent: *\nDisallow:\n";
    let fill = [&head[..], &vec![b'#'; LIMIT - head.len() - 1], b"\n"].concat();
    assert_eq!(fill.len(), LIMIT);
    check(&[
        (&fill, &[]),
        (&[&fill[..], b"x"].concat(), &[(4, TooLarge)]),
        (&[&fill[..LIMIT - 1], b"x\nno rule"].concat(), &[(4, TooLarge)]),
        (&[&fill[..LIMIT - 1], b"xx\nno rule"].concat(), &[(3, TooLarge)]),
        (&vec![b'x'; LIMIT + 1], &[(0, NoRules), (1, TooLarge)]),
        // Only the first line after the limit is reported.
        (&[&fill[..], &rule.repeat(1000)].concat(), &[(4, TooLarge)]),
    ]);
    let findings = lint(&[&fill[..], rule].concat());
    assert_eq!(findings[0].text, "Disallow: /123456789");
}

#[test]
fn the_line_at_the_size_limit_is_judged_as_the_proxy_reads_it() {
    for (last, counts) in [
        (&b"Disallow: /last\n"[..], [true, true]),
        (b"Disallow: /last\r\n", [true, true]),
        (b"Disallow: /last\r", [true, true]),
        (b"Disallow: /last", [true, false]),
    ] {
        for (over, counts) in counts.into_iter().enumerate() {
            let head = b"User-agent: *\n";
            let fill = vec![b'\n'; LIMIT + over - head.len() - last.len()];
            let file = [&head[..], &fill, last].concat();
            let read = RobotsTxt::parse(counted(&file, LIMIT));
            let shown = last.escape_ascii();
            assert_eq!(
                !read.product("a").decide(b"/last").allowed,
                counts,
                "{shown}, {over} over"
            );
            let findings = lint(&file);
            let lost = findings.iter().find(|finding| finding.code == TooLarge);
            let is_last = lost.map(|finding| finding.text.starts_with("Disallow: /last"));
            assert_eq!(is_last, (!counts).then_some(true), "{shown}, {over} over");
            let none = findings.iter().any(|finding| finding.code == NoRules);
            assert_eq!(none, !counts, "{shown}, {over} over");
        }
    }
}

#[test]
fn findings_about_keys_are_reported() {
    check(&[
        (
            b"Useragent: *\nDisalow: /a\nDisallowed: /b\nAllows: /a/b\nuser agent: b\nDisallow: /c",
            &[
                (1, AcceptedTypo),
                (2, AcceptedTypo),
                (3, AcceptedTypo),
                (4, AcceptedTypo),
                (5, AcceptedTypo),
            ],
        ),
        (
            b"User-agent *\nDisallow /a\nDisalow /b",
            &[
                (1, MissingColon),
                (2, MissingColon),
                (3, AcceptedTypo),
                (3, MissingColon),
            ],
        ),
        (
            b"User-agent: *\nDisallow: /a\nDisallow /b /c\nAllow",
            &[(3, LostRecord), (4, LostRecord)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nDisallow /b:c",
            &[(3, MissingColon), (3, NoLeadingSlash)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nDisllow: /b\nAlow /c\nuser_agent: b",
            &[(3, MisspeltKey), (4, MisspeltKey), (5, MisspeltKey)],
        ),
        (
            b"User-agent: *\nDisallow: /a\nCrawl-delay: 5\nHost: a.example\nNoindex: /b\nFoo-bar: 1\ncrawl-delay 5",
            &[
                (3, IgnoredKey),
                (4, IgnoredKey),
                (5, IndexKey),
                (6, UnknownKey),
                (7, IgnoredKey),
            ],
        ),
        (
            b"User-agent: *\nDisallow: /a\n// rules: none\nsome prose\n: /b\n<br>",
            &[(3, NotARecord), (4, NotARecord), (5, NotARecord), (6, NotARecord)],
        ),
        (
            b"User-agent: Googlebot Disallow: /\nUser-agent: * Disallow: /\nDisallow: /a Allow: /b\nUser-agent: a b",
            &[
                (1, SwallowedRecord),
                (2, SwallowedRecord),
                (3, SwallowedRecord),
                (3, SpaceInPattern),
                (4, CutAgent),
                (4, GroupWithoutRules),
            ],
        ),
        (
            b"User-agent: *\nDisallow:\nSitemap: https://a.example/s.xml User-agent: b # Disallow: /",
            &[(3, SwallowedRecord)],
        ),
        (
            b"User-agent: *\nDisallow: /a#b\nDisallow: /c # d\nDisallow: /e# f\nDisallow: /g#\nDisallow:#h\n",
            &[(2, HashInValue), (6, EmptyRule)],
        ),
    ]);
}

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
        // The longer rule wins.
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
        // If both patterns have wildcards, there is a finding only if one matches everything that the other matches.
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
fn messages_quote_the_text_that_is_lost() {
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
    ] {
        let findings = lint(file.as_bytes());
        assert!(
            findings.iter().any(|finding| finding.message == message),
            "{file}: {findings:#?}"
        );
    }
}

#[test]
fn rules_that_no_agent_shares_are_not_compared() {
    check(&[
        (b"User-agent: *\nDisallow: /a\nUser-agent: b\nDisallow: /a", &[]),
        // `Disallow: /a/b/c` could be removed for `b`, but not for `a`, which also has `Allow: /a/b`. So it is not
        // reported.
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
fn a_crawl_delay_is_a_number_of_seconds() {
    check(&[(
        b"User-agent: *\nDisallow:\nCrawl-delay: 2.5\nCrawl-delay: 5s\nCrawl-delay: -1\nCrawl-delay:",
        &[
            (3, IgnoredKey),
            (4, IgnoredKey),
            (4, CrawlDelayValue),
            (5, IgnoredKey),
            (5, CrawlDelayValue),
            (6, IgnoredKey),
            (6, CrawlDelayValue),
        ],
    )]);
}

#[test]
fn lines_about_use_are_checked() {
    let of = |line: &str| {
        let file = format!("User-agent: *\nDisallow: /private\n{line}\n");
        let findings = lint(file.as_bytes());
        let shown = findings.into_iter().map(|finding| {
            assert_eq!(finding.line, 3, "{finding:?}");
            (finding.code, finding.message)
        });
        shown.collect::<Vec<_>>()
    };
    for (line, expected) in [
        ("Content-Signal: search=yes, ai-input=no, ai-train=no", &[][..]),
        ("Content-Signal: Search = YES , ai-train=No,", &[]),
        ("Content-Signal:", &[(UsageValue, "says nothing")]),
        ("Content-Signal: ,", &[(UsageValue, "says nothing")]),
        (
            "Content-Signal: search, ai-train=no",
            &[(UsageValue, "`search` has no `=`")],
        ),
        ("Content-Signal: search=y", &[(UsageValue, "`search` is `y`")]),
        ("Content-Signal: ai-train=", &[(UsageValue, "write `yes` or `no`")]),
        (
            "Content-Signal: use=reference, train=no",
            &[
                (UsageLabel, "`use` is unknown"),
                (UsageLabel, "It knows `search`, `ai-input`, `ai-train`"),
            ],
        ),
        ("Content-Usage: train-ai=n, search=y", &[]),
        ("Content-Usage: /a/ train-ai=n", &[]),
        ("Content-Usage:", &[(UsageValue, "says nothing")]),
        ("Content-Usage: /a/", &[(UsageValue, "says nothing")]),
        (
            "Content-Usage: Train-AI=n",
            &[(UsageValue, "is not a dictionary (RFC 9651)")],
        ),
        ("Content-Usage: train-ai=n,", &[(UsageValue, "is not a dictionary")]),
        ("Content-Usage: train-ai=no", &[(UsageValue, "neither `y` nor `n`")]),
        ("Content-Usage: train-ai=\"n\"", &[(UsageValue, "neither `y` nor `n`")]),
        ("Content-Usage: train-ai", &[(UsageValue, "neither `y` nor `n`")]),
        ("Content-Usage: train-ai=(y n)", &[(UsageValue, "neither `y` nor `n`")]),
        (
            "Content-Usage: ai-train=n",
            &[(UsageLabel, "It knows `train-ai`, `search`")],
        ),
        (
            "License: https://a.example/rsl.xml",
            &[(IgnoredKey, "Google ignores `License`")],
        ),
    ] {
        let found = of(line);
        let codes: Vec<_> = found.iter().map(|(code, _)| *code).collect();
        let expected_codes: Vec<_> = expected.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, expected_codes, "{line}: {found:?}");
        for ((_, message), (_, part)) in found.iter().zip(expected) {
            assert!(message.contains(part), "{line}: {message}");
        }
    }
    check(&[(
        b"Content-Usage: train-ai=n\nUser-agent: *\nDisallow: /a\n",
        &[(1, RuleBeforeUserAgent)],
    )]);
}

#[test]
fn findings_about_sitemaps_are_reported() {
    check(&[
        (
            b"User-agent: *\nDisallow:\nSitemap: /s.xml\nSitemap:\nSitemap: a.example/s",
            &[(3, RelativeSitemap), (4, RelativeSitemap), (5, RelativeSitemap)],
        ),
        (
            b"User-agent: *\nDisallow:\nSitemap: https://a.example/s\nsite-map: https://a.example/s",
            &[(4, DuplicateSitemap)],
        ),
        (
            b"User-agent: *\nDisallow:\nSitemap https://a.example/s",
            &[(3, MissingColon), (3, RelativeSitemap)],
        ),
    ]);
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

#[test]
fn a_repeated_agent_line_with_more_text_is_not_to_be_removed() {
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
