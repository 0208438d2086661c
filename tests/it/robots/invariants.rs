//! Properties that hold for any file, agent and URL. The tests in `properties.rs` check them for random files, and the
//! fuzz target `decide` includes this file.
//!
//! The functions panic with a message if a property does not hold.

use robotgate::robots::{Match, Profile, RobotsTxt, SiteAccess, path_of_url};

use super::{model, rfc9309};

/// A profile in the engine and in the model, which must agree.
pub struct Way {
    pub name: &'static str,
    pub engine: fn(&[u8]) -> RobotsTxt,
    pub model: Model,
}

/// Takes a file, an agent and a URL. Returns whether the agent may fetch the URL, and the line that decides (0 if no
/// rule does).
pub type Model = fn(&[u8], &str, &[u8]) -> (bool, u32);

/// Every profile.
pub const WAYS: &[Way] = &[
    Way {
        name: "google",
        engine: RobotsTxt::parse,
        model: model::decide,
    },
    Way {
        name: "rfc9309",
        engine: |body| RobotsTxt::parse_as(Profile::Rfc9309, body),
        model: rfc9309::decide,
    },
];

/// Asserts all properties, in every profile.
pub fn holds(body: &[u8], agent: &str, urls: &[&[u8]]) {
    for way in WAYS {
        let robots = (way.engine)(body);
        assert!(
            robots.weight() <= most_weight(body.len()),
            "{}: {} bytes for a file of {}",
            way.name,
            robots.weight(),
            body.len()
        );
        for url in urls {
            agrees_with_the_model(way, &robots, body, agent, url);
            rules_are_quoted_from_their_lines(way, &robots, body, agent, url);
            site_access_agrees_with_each_path(way, &robots, agent, url);
        }
    }
}

/// Returns the maximum memory for a file of `length` bytes. A file of many short rules uses most.
fn most_weight(length: usize) -> usize {
    40 * length + 10_000
}

fn agrees_with_the_model(way: &Way, robots: &RobotsTxt, body: &[u8], agent: &str, url: &[u8]) {
    let found = robots.agent(agent).decide(&path_of_url(url));
    let line = found.rule.map_or(0, |id| robots.rule(id).line);
    assert_eq!(
        (found.allowed, line),
        (way.model)(body, agent, url),
        "{}: engine and model differ for {agent:?}, {}, in:\n{}",
        way.name,
        url.escape_ascii(),
        body.escape_ascii()
    );
}

fn rules_are_quoted_from_their_lines(way: &Way, robots: &RobotsTxt, body: &[u8], agent: &str, url: &[u8]) {
    let lines = model::lines(body);
    let path = path_of_url(url);
    for picked in [robots.agent(agent), robots.product(agent)] {
        let Match { allowed, rule } = picked.decide(&path);
        let Some(id) = rule else {
            assert!(allowed, "{}: disallowed by no rule", way.name);
            continue;
        };
        let rule = robots.rule(id);
        let line = (rule.line as usize).checked_sub(1).and_then(|index| lines.get(index));
        let line = line.unwrap_or_else(|| panic!("{}: line {} of {}", way.name, rule.line, lines.len()));
        // If a line is cut at the length limit in the middle of a character, the character is shown as a replacement
        // character.
        let line = String::from_utf8_lossy(&line[..line.len().min(model::LONGEST_LINE)]);
        let text = rule.text.to_string();
        assert!(line.contains(&text), "{}: {text:?} is not in {line:?}", way.name);
        assert!(rule.pattern.is_ascii(), "{}: {:?}", way.name, rule.pattern);
        assert!(picked.group().is_some(), "{}: a rule of no group", way.name);
    }
}

fn site_access_agrees_with_each_path(way: &Way, robots: &RobotsTxt, agent: &str, url: &[u8]) {
    for picked in [robots.agent(agent), robots.product(agent)] {
        let allowed = picked.decide(&path_of_url(url)).allowed;
        let holds = match picked.site_access() {
            SiteAccess::AllAllowed => allowed,
            // In a profile that always allows the robots.txt, no rule can disallow it.
            SiteAccess::AllDisallowed => !allowed || *path_of_url(url) == *b"/robots.txt",
            SiteAccess::Mixed => true,
        };
        assert!(
            holds,
            "{}: {:?} is not so for {}",
            way.name,
            picked.site_access(),
            url.escape_ascii()
        );
    }
}

/// Returns at most `count` URLs that a file's own patterns are likely to match. Random paths seldom match any but the
/// shortest patterns.
pub fn likely_urls(body: &[u8], count: usize) -> Vec<Vec<u8>> {
    let lines = model::lines(body);
    let values = lines.iter().filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some(line[colon + 1..].trim_ascii())
    });
    values.take(count).map(url_for).collect()
}

fn url_for(pattern: &[u8]) -> Vec<u8> {
    let mut url = b"http://e".to_vec();
    for byte in pattern.strip_suffix(b"$").unwrap_or(pattern) {
        match byte {
            b'*' => url.extend_from_slice(b"a/"),
            0x80.. => url.extend(format!("%{byte:02X}").bytes()),
            _ => url.push(*byte),
        }
    }
    url
}
