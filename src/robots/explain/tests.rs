//! Tests which rules an explanation lists, and why each lost. Integration tests check that [`explain`] and
//! [`Agent::decide`](super::super::Agent::decide) have the same result.

use super::*;

fn losses(body: &str, path: &str) -> Vec<(u32, LossReason)> {
    let why = explain(Profile::Google, body.as_bytes(), Choice::Everyone, path.as_bytes());
    let losses = why.competitors.iter();
    losses.map(|other| (other.rule.line, other.lost)).collect()
}

#[test]
fn each_losing_rule_has_its_reason() {
    use LossReason::{DoesNotMatch, NeverMatches, ShorterMatch, TieAllowWins, TieEarlier};
    for (rules, path, expected) in [
        ("disallow: /", "/", vec![]),
        ("disallow: /\nallow: /", "/", vec![(2, TieAllowWins)]),
        ("allow: /\nallow: /*", "/", vec![(2, ShorterMatch)]),
        ("disallow: /a\ndisallow: /a", "/a", vec![(3, TieEarlier)]),
        (
            "disallow: /a\ndisallow: /a/b",
            "/a",
            vec![(3, DoesNotMatch { fits: 2 })],
        ),
        // The rule for `/b` is shorter than the winner, so it is not listed.
        ("disallow: /aa\ndisallow: /b", "/aa", vec![]),
        (
            "disallow: /b\ndisallow: /aa$\ndisallow: a",
            "/a",
            vec![
                (3, DoesNotMatch { fits: 2 }),
                (2, DoesNotMatch { fits: 1 }),
                (4, NeverMatches),
            ],
        ),
        // Only bytes before the first `*` count for the order, so the rule for `/p/x` is listed first.
        (
            "disallow: /*/*?*ls=\ndisallow: /p/x",
            "/p/a?l",
            vec![(3, DoesNotMatch { fits: 3 }), (2, DoesNotMatch { fits: 6 })],
        ),
        ("disallow:\nallow:", "/", vec![(2, TieAllowWins)]),
        // Four rules of the same length match. The first `Allow` of them decides.
        (
            "disallow: /a\nallow: /b\nallow: /a\nallow: /*\nallow: /a",
            "/a",
            vec![
                (2, TieAllowWins),
                (5, TieEarlier),
                (6, TieEarlier),
                (3, DoesNotMatch { fits: 1 }),
            ],
        ),
    ] {
        assert_eq!(
            losses(&format!("user-agent: *\n{rules}"), path),
            expected,
            "{rules} on {path}"
        );
    }
}

#[test]
fn an_allow_of_an_index_page_also_applies_to_its_directory() {
    let body = b"user-agent: *\ndisallow: /d\nallow: /d/index.html\n";
    let why = explain(Profile::Google, body, Choice::Everyone, b"/d/");
    let rule = why.rule.expect("the directory is allowed");
    assert_eq!((rule.line, &*rule.pattern, rule.directory), (3, "/d/$", true));
    assert_eq!(&*rule.text, "allow: /d/index.html");

    let why = explain(Profile::Rfc9309, body, Choice::Everyone, b"/d/");
    assert_eq!(why.rule.map(|rule| rule.line), Some(2), "the RFC has no such rule");
}

#[test]
fn explain_lists_the_groups_that_apply() {
    let body = b"disallow: /x\nUser-agent: FooBot/2 # why\nuser agent: *\nDisallow: /a\nUser-agent: foobot\n\
                 User-agent: MJ12bot\nAllow: /a\n";
    let seen = |choice| {
        let why = explain(Profile::Google, body, choice, b"/a");
        let agents = why.groups.iter().flat_map(|group| &group.agents);
        let named: Vec<_> = agents
            .map(|agent| (agent.name().into_owned(), agent.line, agent.names(why.choice)))
            .collect();
        (why.choice, why.considered, why.allowed, named)
    };
    let line = |name: &str, line, named| (name.to_owned(), line, named);

    let foo = Choice::Product("FOOBOT");
    let both = vec![
        line("FooBot/2", 2, true),
        line("*", 3, false),
        line("foobot", 5, true),
        line("MJ12bot", 6, false),
    ];
    assert_eq!(seen(foo), (foo, 2, true, both));

    let first = vec![line("FooBot/2", 2, false), line("*", 3, true)];
    for choice in [
        Choice::Product("other"),
        Choice::Product(""),
        Choice::Agent("MJ12bot"),
        Choice::Everyone,
    ] {
        assert_eq!(seen(choice), (Choice::Everyone, 1, false, first.clone()), "{choice:?}");
    }

    let mj12 = Choice::Product("mj12bot");
    let second = vec![line("foobot", 5, false), line("MJ12bot", 6, true)];
    assert_eq!(seen(mj12), (mj12, 1, true, second));
}

#[test]
fn a_file_without_rules_for_the_agent_allows() {
    for body in ["", "disallow: /", "user-agent: b\ndisallow: /", "user-agent: *\n"] {
        let why = explain(Profile::Google, body.as_bytes(), Choice::Product("a"), b"/");
        assert!(
            why.allowed && why.rule.is_none() && why.competitors.is_empty(),
            "{body}"
        );
        assert_eq!(why.considered, 0, "{body}");
    }
}

#[test]
fn lines_are_numbered_as_the_parser_numbers_them() {
    let lines: Vec<_> = numbered_lines(b"\xEF\xBB\xBFa\r\nb\0c\rd").collect();
    assert_eq!(lines, [(1, &b"a"[..]), (2, b"b"), (3, b"d")]);
}
