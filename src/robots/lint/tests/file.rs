//! Tests the findings about a file as a whole: its kind, its size and its bytes.

use super::*;

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
