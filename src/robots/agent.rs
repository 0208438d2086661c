//! What a robots.txt says to one agent, and the decision on one path (RFC 9309 §2.2).
//!
//! Reads no clock, does no I/O and allocates for nothing but a path that, to the letter of the RFC,
//! has to be spelled otherwise: this is what runs for every request.

use super::{
    Choice, Explanation, Profile, RobotsTxt, RuleId, Rules, escape, explain, names, search::Search, survey::Survey,
    whole::Whole,
};

/// The rules that a file has for one agent: those of all groups that name it, else those of all
/// groups for `*`, else none.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    robots: &'a RobotsTxt,
    /// Its set of rules; see [`super::ruleset`].
    set: Option<u32>,
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

// === impl Agent ===

impl<'a> Agent<'a> {
    /// Of an agent that the file names as `group`.
    pub(super) fn named(robots: &'a RobotsTxt, group: &'a str, set: u32) -> Self {
        Self {
            robots,
            set: Some(set),
            group: Some(group),
            specific: true,
        }
    }

    /// Of any other; `set` is the one for everyone.
    pub(super) fn unnamed(robots: &'a RobotsTxt, set: Option<u32>) -> Self {
        Self {
            robots,
            set,
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
        match self.robots.profile {
            Profile::Google => self.decide_spelled(path),
            profile if profile.always_allows(path) => Match {
                allowed: true,
                rule: None,
            },
            profile => self.decide_spelled(&escape::of_path(profile, path)),
        }
    }

    /// What holds whatever the path, for a tunnel whose paths cannot be seen. Looks at every rule.
    #[must_use]
    pub fn whole(&self) -> Whole {
        let Some(set) = self.set else {
            return Whole::AllAllowed;
        };
        match &self.robots.rules {
            Rules::Narrow(rules) => rules.reach(set, &self.robots.text),
            Rules::Wide(rules) => rules.reach(set, &self.robots.text),
        }
        .whole()
    }

    /// Why [`decide`](Self::decide) says what it says of `path`. Reads the whole file again.
    ///
    /// ```
    /// use robotgate::robots::{Lost, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(b"User-agent: *\nDisallow: /shop\nAllow: /shop/sale");
    /// let why = robots.agent("AnyBot").explain(b"/shop/sale/1");
    /// assert!(why.allowed);
    /// assert_eq!((why.considered, why.groups[0].agents[0].line), (2, 1));
    /// let other = &why.competitors[0];
    /// assert_eq!((&*other.rule.text, other.lost), ("Disallow: /shop", Lost::ShorterMatch));
    /// ```
    #[must_use]
    pub fn explain(&self, path: &[u8]) -> Explanation<'a> {
        let choice = match self.group {
            Some(name) if self.specific && names::is_product_token(name) => Choice::Agent(name),
            Some("") if self.specific => Choice::Agent(""),
            Some(name) if self.specific => Choice::Product(name),
            _ => Choice::Everyone,
        };
        explain(self.robots.profile, self.robots.body(), choice, path)
    }

    /// Decides a path in the spelling that it is compared in.
    fn decide_spelled(&self, path: &[u8]) -> Match {
        let mut search = Search::new(&self.robots.text, path);
        self.search(&mut search);
        if search.is_long() {
            return self.survey(search, path);
        }
        Match::new(search)
    }

    fn search(&self, search: &mut Search<'_>) {
        let Some(set) = self.set else {
            return;
        };
        match &self.robots.rules {
            Rules::Narrow(rules) => rules.search(set, search),
            Rules::Wide(rules) => rules.search(set, search),
        }
    }

    /// A survey takes more of the stack than other decisions should.
    #[inline(never)]
    fn survey(&self, search: Search<'_>, path: &[u8]) -> Match {
        let survey = Survey::new(path);
        let mut search = search.with(&survey);
        self.search(&mut search);
        Match::new(search)
    }
}

// === impl Match ===

impl Match {
    fn new(search: Search<'_>) -> Self {
        let (allowed, rule) = search.finish();
        Self { allowed, rule }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_survey_changes_no_decision(
            rules in "(user-agent: (a|b|\\*)\n)?((dis)?allow: (/|\\*)[ab/]{0,4}(\\*[ab]{0,4}){0,3}\\$?\n){0,60}",
            path in "/[ab/]{0,20}",
        ) {
            let robots = RobotsTxt::parse(format!("user-agent: *\n{rules}").as_bytes());
            for agent in ["a", "x"].map(|name| robots.agent(name)) {
                let search = Search::new(&robots.text, path.as_bytes());
                prop_assert_eq!(agent.survey(search, path.as_bytes()), agent.decide(path.as_bytes()));
            }
        }
    }
}
