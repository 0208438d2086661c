//! Properties that hold for any file, agent and URL.

use proptest::{collection::vec, prelude::*, sample::select};
use robotgate::robots::path_of_url;

use super::{
    invariants::{holds, likely_urls},
    model::LONGEST_LINE,
};

const AGENTS: &[&str] = &[
    "a",
    "FooBot",
    "foo-bot",
    "MJ",
    "MJ12bot",
    "b",
    "*",
    "",
    "8",
    "foo\u{e9}",
];

proptest! {
    #![proptest_config(of_cases(200))]

    #[test]
    fn the_properties_hold_for_any_bytes(body: Vec<u8>, agent: String, url: Vec<u8>) {
        holds(&body, &agent, &[&url]);
    }

    #[test]
    fn the_properties_hold_for_plausible_files(body in body(line()), agent in select(AGENTS), urls in urls()) {
        holds(&body, agent, &slices(&urls));
    }

    #[test]
    fn the_properties_hold_for_damaged_files(
        body in body(line()),
        damage in vec((any::<prop::sample::Index>(), select(DAMAGE)), 1..6),
        agent in select(AGENTS),
        urls in urls(),
    ) {
        let mut body = body;
        for (at, bytes) in damage {
            let at = at.index(body.len() + 1);
            body.splice(at..at, bytes.iter().copied());
        }
        holds(&body, agent, &slices(&urls));
    }

    #[test]
    fn the_properties_hold_for_groups_that_share_agents(body in body(crowded_line()), agent in select(CROWD), urls in urls()) {
        holds(&body, agent, &slices(&urls));
    }

    #[test]
    fn the_properties_hold_for_likely_urls(body in body(line()), agent in select(AGENTS)) {
        holds(&body, agent, &slices(&likely_urls(&body, 12)));
    }

    /// There are so many patterns with wildcards that the engine sorts them by pairs of bytes that a path must contain.
    #[test]
    fn the_properties_hold_for_many_wildcards(
        rules in vec(bytes(r"(?-u:Allow|Disallow): ?(?-u:/|\*|/b)([ab]{0,3}\*){1,3}[abc]{1,5}(?-u:\$|)"), 40..80),
        path in bytes("/[ab]{20,200}c?"),
        everyone: bool,
    ) {
        let mut body = if everyone { b"User-agent: *\n".to_vec() } else { b"User-agent: a\n".to_vec() };
        for (n, rule) in rules.iter().enumerate() {
            if n % 30 == 29 {
                body.extend(b"User-agent: b\nUser-agent: a\n");
            }
            body.extend(rule);
            body.push(b'\n');
        }
        holds(&body, "a", &[&path]);
    }

    #[test]
    fn a_path_begins_with_a_slash_and_is_read_unchanged_again(url: Vec<u8>) {
        let path = path_of_url(&url);
        prop_assert!(path.starts_with(b"/"));
        prop_assert!(!path.contains(&0));
        // If the path is put after a host, it stays the same.
        let again = [b"http://e", &*path].concat();
        prop_assert_eq!(path_of_url(&again), path);
    }
}

proptest! {
    #![proptest_config(of_cases(64))]

    /// The length limit can cut a line in the key, the value, an escape, a character, or the line end.
    #[test]
    fn the_properties_hold_for_lines_near_the_length_limit(
        key in select(&["Disallow:", "Allow:", "User-agent:", "Disallow", "#", "x:"][..]),
        filling in select(&[b' ', b'\t', b':', b'b'][..]),
        value in bytes(PATTERN),
        tail in select(&["", "$", "*b", "\u{e9}", "\u{30c4}", "%2f", "/index.htm", "#x", " "][..]),
        over in 0..24_usize,
        end in line_end(),
        urls in urls(),
    ) {
        let head = [key.as_bytes(), b" "].concat();
        let rest = [&*value, tail.as_bytes()].concat();
        let fill = (LONGEST_LINE + over).saturating_sub(head.len() + rest.len() + 12);
        let long = [head, vec![filling; fill], rest].concat();
        let body = [b"User-agent: a\n".to_vec(), long, end, b"Disallow: /b\nAllow: /b/a\n".to_vec()].concat();
        let urls: Vec<_> = urls.into_iter().chain(likely(&value, tail)).collect();
        for agent in ["a", "b"] {
            holds(&body, agent, &slices(&urls));
        }
    }
}

proptest! {
    #![proptest_config(of_cases(2))]

    #[test]
    fn the_properties_hold_for_files_of_many_rules(
        rules in vec(bytes(LONG_RULE), 10_000..12_000),
        every in 1..4_000_usize,
        urls in vec(any::<prop::sample::Index>(), 3),
    ) {
        let mut body = b"User-agent: a\nUser-agent: b\n".to_vec();
        for (n, rule) in rules.iter().enumerate() {
            if n % every == every - 1 {
                body.extend(b"User-agent: c\nUser-agent: a\n");
            }
            body.extend(rule);
            body.push(b'\n');
        }
        let urls: Vec<Vec<u8>> = urls.iter().flat_map(|at| likely_urls(at.get::<Vec<u8>>(&rules), 1)).collect();
        for agent in ["a", "c"] {
            holds(&body, agent, &slices(&urls));
        }
    }
}

/// Returns URLs for the whole pattern, and for the pattern after the length limit has cut off `tail`.
fn likely(value: &[u8], tail: &str) -> Vec<Vec<u8>> {
    let line = [b":", value, tail.as_bytes()].concat();
    let mut urls = likely_urls(&line, 1);
    urls.push([b"http://e", value].concat());
    urls
}

pub fn of_cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        cases,
        ..ProptestConfig::default()
    }
}

pub fn body(line: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![9 => Just(&b""[..]), 1 => select(MARKS)];
    let lines = vec((line, line_end()), 0..24);
    (start, lines).prop_map(|(start, lines)| {
        let lines = lines.into_iter().flat_map(|(line, end)| [line, end]);
        [start.to_vec()].into_iter().chain(lines).collect::<Vec<_>>().concat()
    })
}

fn line_end() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => Just("\n"),
        4 => Just("\r\n"),
        2 => Just("\r"),
        1 => select(&["\n\r", "\r\r\n", "\0\n", "\0", "\x0b\n", "\u{2028}", "\u{85}", ""][..]),
    ]
    .prop_map(|end| end.as_bytes().to_vec())
}

pub fn line() -> impl Strategy<Value = Vec<u8>> {
    let agent = bytes(concat!(
        r"(?i-u:user-agent|useragent|user agent)(?-u: ?:? ?)",
        r"(?-u:\*|\* x|\*\t|\*/|\*\*|a|b|FooBot|foobot/1|FooBot x|foo-bot|foo\xc3\xa9|a\xff|MJ12bot|MJ12bot/2|8|)",
    ));
    let rule = bytes(&[RULE, PATTERN, r"(?-u:|| |\t# x|#| /y|\x00|\x00y)"].concat());
    let other = bytes(r"(?-u:sitemap|crawl-delay|#|foo|)(?-u::?)(?-u: ?[a-z/:]{0,4})");
    prop_oneof![4 => agent, 9 => rule, 1 => other]
}

/// Generates lines with few names in many groups, so that each name has rules from all over the file.
fn crowded_line() -> impl Strategy<Value = Vec<u8>> {
    let agent = bytes(r"(?-u:User-agent: (?:[a-d*]|[a-d]/1|\* [a-d]))");
    let rule = bytes(&[r"(?-u:Disallow|Allow)(?-u:: ?)", PATTERN].concat());
    prop_oneof![1 => agent, 1 => rule]
}

pub fn urls() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let url = format!("(?-u:https?://e|//e|e|)(?-u:{PATTERN}|/|[?;#]{PATTERN})");
    vec(bytes(&url), 1..8)
}

fn slices(urls: &[Vec<u8>]) -> Vec<&[u8]> {
    urls.iter().map(Vec::as_slice).collect()
}

pub fn bytes(regex: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    prop::string::bytes_regex(regex).expect("the tests' expressions are sound")
}

const RULE: &str = r"(?i-u:disallow|dissallow|dissalow|disalow|diasllow|disallaw|disallows|allow|allowed)(?-u: ?:? ?)";

const CROWD: &[&str] = &["a", "b", "c", "d", "e"];

const MARKS: &[&[u8]] = &[
    b"\xEF\xBB\xBF",
    b"\xEF\xBB",
    b"\xEF",
    b"\xEF\xBB\xBF\xEF\xBB\xBF",
    b"\xFF\xFE",
];

const DAMAGE: &[&[u8]] = &[
    b"\0",
    b"\r",
    b"\n",
    b"#",
    b":",
    b"%",
    b"*",
    b"$",
    b" ",
    b"\xEF\xBB\xBF",
    b"\xC3",
    b"\xFF",
    b"\x0B",
    b"\x80",
];

/// Generates patterns from few letters and many special characters, so that they often match paths.
const PATTERN: &str = concat!(
    r"(?-u:(?:/|\*)?(?:[ab/*]|\*a|\*\*|/index\.html?|/index\.htm[*$/]|\?|\$|\$\*",
    r"|%2f|%2F|%2a|%24|%61|%C3%A9|%c3%a9|\xc3\xa9|\xff|%|%4){0,6}\$?)",
);

const LONG_RULE: &str = r"(?-u:(?:Disallow|Allow): /[a-c]{1,3}/(?:\*|[a-c]{1,4})/?[a-c]{0,3}(?:/index\.html)?[$*]?)";
