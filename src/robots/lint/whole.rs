//! What can be said of a file as a whole, once its groups are known.
//!
//! Never looks at a rule by itself, but for the one that shuts everyone out.

use super::{
    super::{RobotsTxt, Whole},
    Findings, Lint,
    groups::Group,
    octets::Disguise,
};

/// Says whether the file has rules, and whether they shut everyone out. `kept` is what counts of
/// `body`.
pub(super) fn check(
    body: &[u8],
    kept: &[u8],
    disguise: Option<Disguise>,
    groups: &[Group<'_>],
    findings: &mut Findings,
) {
    let binds = |group: &Group<'_>| !group.rules.is_empty() && group.agents.iter().any(|agent| agent.id.is_some());
    let ruled = groups.iter().any(binds);
    if let Some(disguise) = disguise {
        disguise.tell(ruled, findings);
    } else if body.is_empty() {
        findings.add(
            0,
            Lint::EmptyFile,
            "The file is empty: every crawler may fetch everything.",
        );
    } else if !ruled {
        let message = "No rule in the file binds anybody: every crawler may fetch everything.";
        findings.add(0, Lint::NoRules, message);
    }
    if ruled {
        check_everyone(kept, findings);
    }
}

fn check_everyone(kept: &[u8], findings: &mut Findings) {
    let robots = RobotsTxt::parse(kept);
    let everyone = robots.product("");
    if everyone.whole() != Whole::AllDisallowed {
        return;
    }
    if let Some(rule) = everyone.decide(b"/").rule {
        let message = "This shuts every crawler that has no group of its own out of the whole site.";
        findings.add(robots.rule(rule).line, Lint::BlocksEverything, message);
    }
}
