//! Parses the `Crawl-delay` lines of a robots.txt: how many seconds agents should wait between two requests. These
//! lines were never standardised.
//!
//! This module does not decide whether robotgate obeys the delay.

use std::{sync::Arc, time::Duration};

use super::{AgentLine, Choice, Statement, StatementKind, entry::offset};

#[derive(Debug, Default)]
pub(super) struct CrawlDelays(Box<[ForAgent]>);

#[derive(Debug)]
struct ForAgent {
    /// Where the agent's name begins in the file.
    start: u32,
    length: u32,
    delay: Duration,
}

// === impl CrawlDelays ===

impl CrawlDelays {
    /// Collects the `Crawl-delay` values among `statements`, which must borrow from `body` itself and not from a copy:
    /// the offset of an agent's name in `body` is computed from the name's address in memory.
    pub(super) fn new(body: &[u8], statements: &[Statement<'_>]) -> Self {
        let mut delays = Vec::new();
        let stated = statements
            .iter()
            .filter(|statement| statement.kind == StatementKind::CrawlDelay)
            .filter_map(|statement| Some((&statement.agents, crawl_delay(&statement.value)?)));
        // If several delays follow the same user-agent lines, the longest counts.
        let mut run: Option<(&Arc<[AgentLine<'_>]>, Duration)> = None;
        for (agents, delay) in stated {
            match &mut run {
                Some((last, longest)) if Arc::ptr_eq(last, agents) => *longest = delay.max(*longest),
                _ => {
                    list(body, run.replace((agents, delay)), &mut delays);
                }
            }
        }
        list(body, run, &mut delays);
        Self(delays.into())
    }

    pub(super) fn of(&self, body: &[u8], choice: Choice<'_>) -> Option<Duration> {
        let meant = self.0.iter().filter(|entry| {
            let start = entry.start as usize;
            AgentLine::new(&body[start..start + entry.length as usize], 0).names(choice)
        });
        meant.map(|entry| entry.delay).max()
    }

    pub(super) fn weight(&self) -> usize {
        size_of_val(&*self.0)
    }
}

fn list(body: &[u8], run: Option<(&Arc<[AgentLine<'_>]>, Duration)>, delays: &mut Vec<ForAgent>) {
    let Some((agents, delay)) = run else { return };
    delays.extend(agents.iter().map(|agent| ForAgent {
        // `agent.value` is a slice of `body`, so the difference of the addresses is its offset.
        start: offset(agent.value.as_ptr().addr().wrapping_sub(body.as_ptr().addr())),
        length: offset(agent.value.len()),
        delay,
    }));
}

pub(super) fn crawl_delay(value: &str) -> Option<Duration> {
    let (integer, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_decimal = is_number(fraction) && (is_number(integer) || integer.is_empty());
    let seconds: f64 = is_decimal.then(|| value.parse().ok())??;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robots::{Profile, RobotsTxt};

    #[test]
    fn a_crawl_delay_is_a_decimal_number_of_seconds() {
        for (value, milliseconds) in [
            ("10", Some(10_000)),
            ("0", Some(0)),
            ("1.5", Some(1500)),
            ("0.25", Some(250)),
            (".5", Some(500)),
            ("007", Some(7000)),
            ("", None),
            (".", None),
            ("5.", None),
            ("-1", None),
            ("+1", None),
            ("10s", None),
            ("10 seconds", None),
            ("1,5", None),
            ("1e3", None),
            ("1.2.3", None),
            ("inf", None),
            ("NaN", None),
            ("٣", None),
        ] {
            assert_eq!(crawl_delay(value), milliseconds.map(Duration::from_millis), "{value:?}");
        }
        assert_eq!(crawl_delay(&"9".repeat(400)), Some(Duration::MAX));
    }

    #[test]
    fn a_crawl_delay_applies_to_the_agents_above_it() {
        let body = b"Crawl-delay: 99\nUser-agent: Foo/2\nUser-agent: MJ12bot\nCrawl-delay: 3\nCrawl-delay: 2\n\
                     Crawl-delay: soon\nUser-agent: *\nDisallow: /a\nCrawl-delay: 7\nUser-agent: foo\nDisallow:\n\
                     Crawl-delay: 4\nUser-agent: none\nDisallow: /b";
        for profile in [Profile::Google, Profile::Rfc9309] {
            let robots = RobotsTxt::parse_as(profile, body);
            for (choice, seconds) in [
                (Choice::Product("foo"), Some(4)),
                (Choice::Product("mj12BOT"), Some(3)),
                (Choice::Everyone, Some(7)),
                (Choice::Product("none"), None),
                (Choice::Product("other"), None),
            ] {
                let delay = robots.crawl_delay(choice);
                assert_eq!(delay, seconds.map(Duration::from_secs), "{choice:?}");
            }
        }
    }

    #[test]
    fn many_delays_and_agents_take_at_most_twice_the_size_of_the_file() {
        let body = "User-agent: a\n".repeat(10_000) + &"Crawl-delay: 1\n".repeat(10_000);
        let robots = RobotsTxt::parse(body.as_bytes());
        let before = robots.weight();
        assert_eq!(robots.crawl_delay(Choice::Product("a")), Some(Duration::from_secs(1)));
        assert!(robots.weight() - before <= 2 * body.len());
    }
}
