//! What a robots.txt says to one agent, and the decision on one path (RFC 9309 §2.2).
//!
//! Never allocates, reads no clock and does no I/O: this is what runs for every request.

use super::{
    RobotsTxt, RuleId, escape,
    names::Name,
    table::{NONE, Reach, Table},
};

/// The rules that a file has for one agent: those of all groups that name it, else those of all
/// groups for `*`, else none.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    robots: &'a RobotsTxt,
    tables: &'a [u32],
    group: Option<&'a str>,
    specific: bool,
}

/// A decision on one path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Match {
    /// Whether the path may be fetched.
    pub allowed: bool,
    /// The rule that decided. `None` where none matched, which allows; an empty rule matches and
    /// allows, too.
    pub rule: Option<RuleId>,
}

/// What can be said of an origin as a whole, when the path is out of sight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Whole {
    /// Every path is allowed.
    AllAllowed,
    /// Every path is disallowed (but `/robots.txt`, which no rule can forbid).
    AllDisallowed,
    /// It depends on the path, or may.
    Mixed,
}

// === impl Agent ===

impl<'a> Agent<'a> {
    /// Of an agent that the file names.
    pub(super) fn named(robots: &'a RobotsTxt, name: &Name) -> Self {
        Self {
            robots,
            tables: &robots.sets[name.set as usize],
            group: Some(name.written.of(&robots.text)),
            specific: true,
        }
    }

    /// Of any other.
    pub(super) fn unnamed(robots: &'a RobotsTxt) -> Self {
        let set = robots.everyone.map(|set| &*robots.sets[set as usize]);
        Self {
            robots,
            tables: set.unwrap_or_default(),
            group: set.map(|_| "*"),
            specific: false,
        }
    }

    /// The user-agent under which the rules were picked: the agent's own, as the file first writes
    /// it, or `*`. `None` where the file has neither, and so allows everything.
    #[must_use]
    pub fn group(&self) -> Option<&'a str> {
        self.group
    }

    /// Whether the file names this agent itself. Then the groups for `*` do not hold, even where
    /// the agent's own have no rules.
    #[must_use]
    pub fn is_specific(&self) -> bool {
        self.specific
    }

    /// Decides `path`, which must begin with `/` and holds parameters and query too, as
    /// [`path_of_url`](super::path_of_url) returns it: the rule with the longest pattern that
    /// matches wins, and an allow wins a tie (RFC 9309 §2.2.2).
    ///
    /// ```
    /// use robotgate::robots::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse(b"User-agent: *\nDisallow: /private\nAllow: /private/*.css$");
    /// let agent = robots.agent("AnyBot");
    /// assert!(agent.decide(b"/").allowed);
    /// assert!(agent.decide(b"/private/site.css").allowed);
    ///
    /// let refused = agent.decide(b"/private/site.css?v=2");
    /// assert!(!refused.allowed);
    /// assert_eq!(refused.rule.map(|id| robots.rule(id).line), Some(2));
    /// ```
    #[must_use]
    pub fn decide(&self, path: &[u8]) -> Match {
        let path = &*escape::of_path(self.robots.profile, path);
        let ranked = self.robots.ranked();
        let mut sieve = None;
        let best = self
            .tables()
            .fold(NONE, |best, table| table.find(ranked, path, &mut sieve, best));
        if best == NONE {
            return Match {
                allowed: true,
                rule: None,
            };
        }
        let pattern = ranked.pattern(best);
        Match {
            allowed: pattern.allows(),
            rule: Some(pattern.rule),
        }
    }

    /// What holds whatever the path, for a tunnel whose paths cannot be seen. It errs to
    /// [`Whole::Mixed`]: patterns are looked at one by one, not at what several cover together.
    #[must_use]
    pub fn whole(&self) -> Whole {
        let reach = self
            .tables()
            .fold(Reach::NOWHERE, |reach, table| reach.and(table.reach()));
        // A pattern that matches every path hides all that rank below it, so what matters is which
        // kinds stand above it, itself included. Without one, `universal` is `NONE`, which nothing
        // exceeds.
        if reach.disallow == NONE || reach.disallow > reach.universal {
            Whole::AllAllowed
        } else if reach.allow > reach.universal {
            Whole::AllDisallowed
        } else {
            Whole::Mixed
        }
    }

    fn tables(&self) -> impl Iterator<Item = &'a Table> {
        let tables = &self.robots.tables;
        self.tables.iter().map(|table| &tables[*table as usize])
    }
}
