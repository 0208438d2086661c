//! The rules of a robots.txt for one agent, and the decision on one path (RFC 9309 §2.2).
//!
//! It reads no clock and does no I/O. A decision allocates only if the RFC profile has to normalize the path.

use super::{
    Choice, Explanation, Profile, RobotsTxt, RuleId, Rules, escape, explain, names, path_index::PathIndex,
    search::Search, site_access::SiteAccess, usage::SiteUsage, usage::Usage,
};

/// The rules of a file for one agent: those of all groups that name it, or if there is none, of all groups for `*`.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    robots: &'a RobotsTxt,
    /// Number of the agent's set of rules; see [`super::ruleset`].
    set: Option<u32>,
    group: Option<&'a str>,
    specific: bool,
}

/// A decision on one path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Match {
    pub allowed: bool,
    /// The rule that decided. `None` if no rule matched, or for `/robots.txt` in the RFC profile: both allow the path.
    pub rule: Option<RuleId>,
}

// === impl Agent ===

impl<'a> Agent<'a> {
    pub(super) fn named(robots: &'a RobotsTxt, group: &'a str, set: u32) -> Self {
        Self {
            robots,
            set: Some(set),
            group: Some(group),
            specific: true,
        }
    }

    pub(super) fn unnamed(robots: &'a RobotsTxt, set: Option<u32>) -> Self {
        Self {
            robots,
            set,
            group: set.map(|_| "*"),
            specific: false,
        }
    }

    /// Returns the group that applies: the agent's name, as the file first spells it, or `*`. `None` if no group
    /// applies.
    #[must_use]
    pub fn group(&self) -> Option<&'a str> {
        self.group
    }

    /// Returns whether the file names this agent. If so, the groups for `*` do not apply to it.
    #[must_use]
    pub fn is_specific(&self) -> bool {
        self.specific
    }

    /// Decides whether the agent may fetch `path`, which begins with `/` and includes the query (see
    /// [`path_of_url`](super::path_of_url)). The rule with the longest matching pattern wins, and `Allow` wins a tie
    /// (RFC 9309 §2.2.2).
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
        // The largest budget is never exceeded, so the decision is valid.
        self.find(path, usize::MAX).0
    }

    /// Decides like [`decide`](Self::decide), but returns `None` if this has to search more than `budget` bytes of the
    /// path because of patterns with wildcards. Subtracts the searched bytes from `budget`.
    ///
    /// The budget counts bytes and not time, so that the result is the same on every machine.
    ///
    /// ```
    /// use robotgate::robots::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse(b"User-agent: *\nDisallow: *.pdf\nDisallow: /private");
    /// let (agent, path) = (robots.agent("AnyBot"), b"/papers/2026.pdf");
    ///
    /// let mut budget = 20;
    /// assert_eq!(agent.decide_within(path, &mut budget), Some(agent.decide(path)));
    /// assert_eq!(budget, 4);
    /// assert_eq!(agent.decide_within(path, &mut budget), None);
    /// ```
    #[must_use]
    pub fn decide_within(&self, path: &[u8], budget: &mut usize) -> Option<Match> {
        let (found, searched) = self.find(path, *budget);
        let is_within = searched <= *budget;
        *budget = budget.saturating_sub(searched);
        is_within.then_some(found)
    }

    /// Returns what the agent may fetch of the site as a whole, for a tunnel whose paths are not visible.
    #[must_use]
    pub fn site_access(&self) -> SiteAccess {
        let Some(set) = self.set else {
            return SiteAccess::AllAllowed;
        };
        match &self.robots.rules {
            Rules::Narrow(rules) => rules.reach(set, &self.robots.text),
            Rules::Wide(rules) => rules.reach(set, &self.robots.text),
        }
        .site_access()
    }

    /// Explains the result of [`decide`](Self::decide) for `path`. Parses the whole file again.
    ///
    /// ```
    /// use robotgate::robots::{LossReason, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(b"User-agent: *\nDisallow: /shop\nAllow: /shop/sale");
    /// let why = robots.agent("AnyBot").explain(b"/shop/sale/1");
    /// assert!(why.allowed);
    /// assert_eq!((why.considered, why.groups[0].agents[0].line), (2, 1));
    /// let other = &why.competitors[0];
    /// assert_eq!((&*other.rule.text, other.lost), ("Disallow: /shop", LossReason::ShorterMatch));
    /// ```
    #[must_use]
    pub fn explain(&self, path: &[u8]) -> Explanation<'a> {
        explain(self.robots.profile, self.robots.body(), self.choice(), path)
    }

    /// Returns what the file says about the use of the content at `path`, without checking that the agent may fetch
    /// it. Subtracts the work (lines, user-agents and searched bytes) from `budget`, and returns `None` if the budget
    /// does not suffice.
    ///
    /// ```
    /// use robotgate::{robots::RobotsTxt, usage::Vocabulary};
    ///
    /// let body = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /blog/ train-ai=y\nContent-Signal: search=yes";
    /// let robots = RobotsTxt::parse(body);
    /// let agent = robots.agent("AnyBot");
    ///
    /// let usage = agent.usage_within(b"/blog/1", &mut usize::MAX.clone()).expect("within the budget");
    /// let train = usage.preference(Vocabulary::ContentUsage, "train-ai").expect("line 3 says so");
    /// assert_eq!((train.allowed, train.line), (true, 3));
    /// assert_eq!(usage.preference(Vocabulary::ContentUsage, "search"), None);
    /// assert_eq!(usage.preference(Vocabulary::ContentSignal, "search").map(|said| said.line), Some(4));
    /// ```
    #[must_use]
    pub fn usage_within(&self, path: &[u8], budget: &mut usize) -> Option<Usage> {
        let path = escape::of_path(self.robots.profile, path);
        let lines = self.robots.usage_lines();
        lines.find(self.robots.body(), self.choice(), &path, budget)
    }

    /// Returns the line numbers of the agent's `Content-Usage` lines with the longest pattern that matches `path`.
    /// Lines with a syntax error count too.
    #[must_use]
    pub fn usage_lines(&self, path: &[u8]) -> Vec<u32> {
        let path = escape::of_path(self.robots.profile, path);
        let lines = self.robots.usage_lines();
        lines.usage_lines(self.robots.body(), self.choice(), &path)
    }

    /// Returns everything that the file says to the agent about the use of content, for a tunnel whose paths are not
    /// visible.
    #[must_use]
    pub fn usage_of_site(&self) -> SiteUsage<'a> {
        let lines = self.robots.usage_lines();
        lines.of_site(self.robots.body(), self.choice())
    }

    fn choice(&self) -> Choice<'a> {
        match self.group {
            Some(name) if self.specific && names::is_product_token(name) => Choice::Agent(name),
            Some("") if self.specific => Choice::Agent(""),
            Some(name) if self.specific => Choice::Product(name),
            _ => Choice::Everyone,
        }
    }

    /// Decides on `path`, and returns how many bytes of the path were searched because of patterns with wildcards. If
    /// these are more than `budget`, the decision is not valid.
    fn find(&self, path: &[u8], budget: usize) -> (Match, usize) {
        match self.robots.profile {
            Profile::Google => self.find_spelled(path, budget),
            profile if profile.always_allows(path) => {
                let allowed = Match {
                    allowed: true,
                    rule: None,
                };
                (allowed, 0)
            }
            profile => self.find_spelled(&escape::of_path(profile, path), budget),
        }
    }

    /// Does the same as [`find`](Self::find), but does not normalize `path`, and makes no exception for `/robots.txt`.
    fn find_spelled(&self, path: &[u8], budget: usize) -> (Match, usize) {
        let mut search = Search::new(&self.robots.text, path, budget);
        self.search(&mut search);
        if search.is_long() {
            return self.find_indexed(search, path);
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

    /// Repeats a long search with a [`PathIndex`]. Not inlined, so that other searches do not take the index's 130 KiB
    /// of stack.
    #[inline(never)]
    fn find_indexed(&self, search: Search<'_>, path: &[u8]) -> (Match, usize) {
        let path_index = PathIndex::new(path);
        let mut search = search.with(&path_index);
        self.search(&mut search);
        Match::new(search)
    }
}

// === impl Match ===

impl Match {
    fn new(search: Search<'_>) -> (Self, usize) {
        let searched = search.searched();
        let (allowed, rule) = search.finish();
        (Self { allowed, rule }, searched)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_index_of_the_path_changes_no_decision(
            rules in "(user-agent: (a|b|\\*)\n)?((dis)?allow: (/|\\*)[ab/]{0,4}(\\*[ab]{0,4}){0,3}\\$?\n){0,60}",
            path in "/[ab/]{0,20}",
        ) {
            let robots = RobotsTxt::parse(format!("user-agent: *\n{rules}").as_bytes());
            for agent in ["a", "x"].map(|name| robots.agent(name)) {
                let search = Search::new(&robots.text, path.as_bytes(), usize::MAX);
                prop_assert_eq!(agent.find_indexed(search, path.as_bytes()).0, agent.decide(path.as_bytes()));
            }
        }

        #[test]
        fn a_sufficient_budget_changes_no_decision(
            rules in "((dis)?allow: /?[ab]{0,2}(\\*[ab]{0,3}){0,3}\\$?\n){0,20}",
            path in "/[ab/]{0,20}",
            budget in 0..200_usize,
        ) {
            let robots = RobotsTxt::parse(format!("user-agent: *\n{rules}").as_bytes());
            let (agent, path) = (robots.agent("a"), path.as_bytes());
            let mut left = usize::MAX;
            let unbounded = agent.decide_within(path, &mut left);
            prop_assert_eq!(unbounded, Some(agent.decide(path)));
            let work = usize::MAX - left;
            let mut left = budget;
            prop_assert_eq!(agent.decide_within(path, &mut left), unbounded.filter(|_| work <= budget));
            prop_assert!(work > budget || left == budget - work);
        }
    }
}
