//! Tests the findings about single lines.

use super::*;

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
                (UsageLabel, "The known labels are `search`, `ai-input`, `ai-train`"),
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
            &[(UsageLabel, "The known labels are `train-ai`, `search`")],
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
