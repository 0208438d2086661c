//! What `cases.rs` does not test of the engine, such as the rule and group that it names, access to a whole origin, and
//! files made to be slow.

use std::time::Duration;

use robotgate::robots::{RobotsTxt, RuleKind, SiteAccess};
use rustix::time::{ClockId, clock_gettime};

#[test]
fn a_rule_is_shown_as_written() {
    let robots =
        RobotsTxt::parse(b"\xEF\xBB\xBFUser-agent: Foo\xFF/2 x\r\n\r\n \tDisalow : /caf\xC3\xA9%2f \x0b# why\r\n");
    let found = robots.agent("foo").decide(b"/caf%C3%A9%2Fx");
    let rule = robots.rule(found.rule.expect("the rule matches"));
    assert_eq!(rule.kind, RuleKind::Disallow);
    assert_eq!(rule.pattern, "/caf%C3%A9%2F");
    assert_eq!(rule.text, "Disalow : /caf\u{e9}%2f");
    assert_eq!(rule.line, 3);
}

#[test]
fn invalid_utf_8_is_replaced_in_the_shown_rule() {
    let robots = RobotsTxt::parse(b"user-agent:*\ndisallow\xFF: /x\xFE");
    let found = robots.agent("a").decide(b"/x%FE");
    let rule = robots.rule(found.rule.expect("the rule matches"));
    assert_eq!(rule.text, "disallow\u{fffd}: /x\u{fffd}");
    assert_eq!(rule.pattern, "/x%FE");
}

#[test]
fn the_group_is_the_agent_whose_rules_apply() {
    let robots =
        RobotsTxt::parse(b"User-agent: FOObot/2\nUser-agent: *\nDisallow: /a\nUser-agent: foobot\nUser-agent: empty");
    for (agent, group, specific, allowed) in [
        ("foobot", "FOObot", true, false),
        ("other", "*", false, false),
        ("Empty", "empty", true, true),
    ] {
        let picked = robots.agent(agent);
        assert_eq!(picked.group(), Some(group));
        assert_eq!(picked.is_specific(), specific);
        assert_eq!(picked.decide(b"/a").allowed, allowed);
    }
    let nobody = RobotsTxt::parse(b"Disallow: /");
    assert_eq!(nobody.agent("a").group(), None);
    assert_eq!(nobody.agent("a").site_access(), SiteAccess::AllAllowed);
}

#[test]
fn a_token_with_digits_matches_the_first_word_of_an_agent() {
    let robots = RobotsTxt::parse(
        b"User-agent: mj12BOT/v1.4 (x)\nDisallow: /a\nUser-agent: 360Spider\tx\nDisallow: /b\n\
          User-agent: a.b, c\nDisallow: /c\nUser-agent: *\nDisallow: /d",
    );
    for (token, group, path) in [
        ("MJ12bot", "mj12BOT", b"/a"),
        ("360spider", "360Spider", b"/b"),
        ("MJ", "mj", b"/a"),
        ("a.b,", "a.b,", b"/c"),
        ("a.b", "*", b"/d"),
        ("MJ12bot/v1.4", "*", b"/d"),
        ("", "*", b"/d"),
        ("*", "*", b"/d"),
    ] {
        let picked = robots.product(token);
        assert_eq!(picked.group(), Some(group), "{token}");
        assert!(!picked.decide(path).allowed, "{token}");
    }
    assert_eq!(robots.agent("MJ12bot").group(), Some("*"));
    // A quirk of Google's parser: it reads a user-agent's name only up to the first character that is no letter, `-` or
    // `_`. If nothing is left, the name matches an empty agent.
    assert!(robots.agent("").is_specific());
}

#[test]
fn the_site_access_summarizes_all_rules() {
    use SiteAccess::{AllAllowed, AllDisallowed, Mixed};
    for (rules, access) in [
        ("", AllAllowed),
        ("disallow:", AllAllowed),
        ("disallow: foo\ndisallow: $", AllAllowed),
        ("allow: /\ndisallow: /", AllAllowed),
        ("allow: /**\ndisallow: /x", AllAllowed),
        ("allow: /\ndisallow: /x", Mixed),
        ("disallow: /", AllDisallowed),
        ("disallow: *", AllDisallowed),
        ("disallow: /*$", AllDisallowed),
        ("disallow: */", AllDisallowed),
        ("disallow: */*", AllDisallowed),
        ("disallow: /x\ndisallow: /", AllDisallowed),
        ("disallow: /\nallow:", AllDisallowed),
        ("disallow: /\nallow: x", AllDisallowed),
        ("disallow: /\nallow: /x", Mixed),
        ("disallow: /$", Mixed),
        ("disallow: /x", Mixed),
        // An `Allow` for an index page also allows the path `/`, but not the whole site.
        ("disallow: /\nallow: /index.html", Mixed),
    ] {
        let robots = RobotsTxt::parse(format!("user-agent: *\n{rules}").as_bytes());
        assert_eq!(robots.agent("a").site_access(), access, "{rules}");
    }
}

#[test]
fn groups_too_large_to_be_merged_decide_the_same() {
    // Each agent is in the large group, and also has a small group of its own. A table for each agent with the rules of
    // both groups would take too much memory.
    let mut body = String::new();
    for n in 0..200 {
        body += &format!("user-agent: {}\n", name(n));
    }
    for n in 0..200 {
        body += &format!("disallow: /{n}/*x\n");
    }
    for n in 0..200 {
        body += &format!("user-agent: {}\nallow: /{n}/*xy$\n", name(n));
    }
    let robots = RobotsTxt::parse(body.as_bytes());
    assert!(robots.weight() < 10 * body.len() + 100_000, "{}", robots.weight());
    for n in 0..200 {
        let agent = robots.agent(&name(n));
        let line = |path: String| {
            let found = agent.decide(path.as_bytes());
            (found.allowed, found.rule.map(|id| robots.rule(id).line))
        };
        assert_eq!(line(format!("/{n}/x")), (false, Some(201 + n)));
        assert_eq!(line(format!("/{n}/xy")), (true, Some(402 + 2 * n)));
        assert_eq!(
            line(format!("/{}/xy", (n + 1) % 200)),
            (false, Some(201 + (n + 1) % 200))
        );
        assert_eq!(line("/".into()), (true, None));
    }
}

#[test]
fn files_made_to_be_slow_are_decided_quickly() {
    let long = "/".to_owned() + &"a".repeat(8_000);
    let stars = "*a".repeat(8_000);
    let nested: String = (1..1_500).map(|n| format!("disallow: {}$\n", &long[..n])).collect();
    let ordinary: String = (0..50_000).map(|n| format!("disallow: /{n}/page\n")).collect();
    // Processor time does not depend on the load of the machine.
    let time = |rules: &str| {
        let started = clock_gettime(ClockId::ThreadCPUTime);
        let robots = RobotsTxt::parse(format!("user-agent: a\n{rules}").as_bytes());
        assert!(robots.agent("a").decide(long.as_bytes()).allowed);
        assert!(robots.weight() < 40 * rules.len() + 100_000);
        let time = clock_gettime(ClockId::ThreadCPUTime) - started;
        Duration::try_from(time).expect("time goes on")
    };
    let limit = 10 * time(&ordinary);
    for rules in [
        format!("disallow: /{stars}b\ndisallow: /{stars}*b$\n"),
        format!("disallow: /{}b\n", "*aa".repeat(5_000)).repeat(20),
        format!("disallow: *{}b\n", "a".repeat(8_000)).repeat(20),
        nested,
        "disallow: /*aab*ab\n".repeat(20_000),
        "user-agent: a\nallow: /*x\nuser-agent: *\n".repeat(10_000),
    ] {
        let took = time(&rules);
        assert!(took < limit, "{took:?} of {limit:?}: {rules:.40}");
    }
}

/// The path contains every pair of bytes of every pattern, but at most one pattern matches it.
#[test]
fn the_matching_pattern_is_found_among_thousands_of_near_matches() {
    let numbers = 1000..4000;
    let rules: String = numbers.map(|n| format!("Disallow: /*ab*x{n}y\n")).collect();
    let robots = RobotsTxt::parse(format!("User-agent: *\n{rules}").as_bytes());
    let pairs: String = (0..100).map(|n| format!("x{}-{n:02}-{}y-", n % 10, n % 10)).collect();
    let decoys = format!("/{}{pairs}", "ab".repeat(200));
    let decide = |path: &str| {
        let found = robots.agent("a").decide(path.as_bytes());
        found.rule.map(|id| robots.rule(id).text.into_owned())
    };
    assert_eq!(decide(&decoys), None);
    for n in [1000, 2345, 3999] {
        let found = decide(&format!("{decoys}x{n}y"));
        assert_eq!(found.as_deref(), Some(&*format!("Disallow: /*ab*x{n}y")));
        assert_eq!(decide(&format!("/x{n}y{decoys}")), None, "in the wrong order");
    }
}

#[test]
fn robots_txt_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<RobotsTxt>();
}

fn name(n: u32) -> String {
    let letter = |n: u32| char::from_digit(10 + n % 26, 36).expect("a letter");
    ['x', letter(n / 26), letter(n)].into_iter().collect()
}
