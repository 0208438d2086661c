//! Each `*` that adds nothing to what a pattern matches, and whether it can be left out: it adds to
//! the pattern's length, and so to its rank.
//!
//! Never compares what patterns match: lengths alone say whether a rank could come to lie on the
//! other side of another. It errs to silence.

use std::borrow::Cow;

use super::{
    super::{Profile, RuleKind, escape::of_pattern},
    Findings, Lint,
    groups::Rule,
    shape::Shape,
};

/// How long the patterns of some rules are, and would be without useless `*`: in order, so that it
/// takes little to count those below a length.
#[derive(Default)]
pub(super) struct Lengths {
    allow: Spans,
    disallow: Spans,
}

#[derive(Default)]
struct Spans {
    least: Vec<usize>,
    most: Vec<usize>,
}

/// Says which `*` of `rule` is of no use. `all` has the lengths of all rules that any agent of
/// `rule` has, this one's among them.
pub(super) fn check(rule: &Rule<'_>, pattern: &str, all: &Lengths, findings: &mut Findings) {
    let Some(without) = without(pattern) else { return };
    if Shape::new(pattern).is_none_or(|shape| shape.is_universal()) {
        return;
    }
    let free = spans(rule.kind, pattern, &without)
        .into_iter()
        .flatten()
        .all(|(least, most)| all.is_free(rule.kind, least, most));
    let (why, advice) = if pattern.ends_with("*$") {
        let why = "A `*` before the final `$` takes its meaning away, and any path that begins so matches";
        (why, "leave out both")
    } else if pattern.ends_with('*') {
        let why = "A pattern matches all that begins so, with or without a `*` at the end";
        (why, "leave it out")
    } else {
        ("Two `*` in a row match what one does", "leave one out")
    };
    if free {
        findings.add(rule.line, Lint::UselessWildcard, format!("{why}: {advice}."));
    } else {
        let message = format!(
            "{why}, but the longer of two patterns wins: if it were left out, a rule that says the opposite could win \
             against this one."
        );
        findings.add(rule.line, Lint::WildcardWeight, message);
    }
}

/// What matches the same as `pattern`, with fewer `*`. `None` where there is no such thing.
fn without(pattern: &str) -> Option<Cow<'_, str>> {
    let open = pattern.strip_suffix('$').filter(|body| body.ends_with('*'));
    let body = open.unwrap_or(pattern).trim_end_matches('*');
    // One that stood for itself before a `*` would be the end of the path.
    if body.len() < pattern.len() && body.ends_with('$') {
        return None;
    }
    let mut short = Cow::Borrowed(body);
    if body.contains("**") {
        let mut last = ' ';
        short
            .to_mut()
            .retain(|char| std::mem::replace(&mut last, char) != '*' || char != '*');
    }
    (short.len() < pattern.len()).then_some(short)
}

/// The lengths between which those of a rule's patterns lie: its own, and the directory's that it
/// may stand for.
fn spans(kind: RuleKind, pattern: &str, without: &str) -> [Option<(usize, usize)>; 2] {
    let directory = |pattern| Shape::directory(pattern).map(|(_, length)| length);
    let directories = directory(without).zip(directory(pattern));
    [
        Some((without.len(), pattern.len())),
        directories.filter(|_| kind == RuleKind::Allow),
    ]
}

// === impl Lengths ===

impl Lengths {
    pub(super) fn of<'r>(rules: impl IntoIterator<Item = &'r Rule<'r>>) -> Self {
        let mut lengths = Self::default();
        for rule in rules {
            let pattern = of_pattern(Profile::Google, rule.value);
            let without = without(&pattern).unwrap_or(Cow::Borrowed(&*pattern));
            let own = match rule.kind {
                RuleKind::Allow => &mut lengths.allow,
                RuleKind::Disallow => &mut lengths.disallow,
            };
            for (least, most) in spans(rule.kind, &pattern, &without).into_iter().flatten() {
                own.least.push(least);
                own.most.push(most);
            }
        }
        for spans in [&mut lengths.allow, &mut lengths.disallow] {
            spans.least.sort_unstable();
            spans.most.sort_unstable();
        }
        lengths
    }

    /// Whether a pattern that shrinks from `most` to `least` beats just those of the other kind that
    /// it did before, however many of them shrink as well.
    fn is_free(&self, kind: RuleKind, least: usize, most: usize) -> bool {
        let below = |lengths: &[usize], limit| lengths.partition_point(|length| *length < limit);
        // Those that it may beat now and those that it must beat then: the tie is the allow's.
        let (may, must) = match kind {
            RuleKind::Allow => (
                below(&self.disallow.least, most + 1),
                below(&self.disallow.most, least + 1),
            ),
            RuleKind::Disallow => (below(&self.allow.least, most), below(&self.allow.most, least)),
        };
        may == must
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matches_the_same_with_fewer() {
        for (pattern, expected) in [
            ("/a*", Some("/a")),
            ("/a**$", Some("/a")),
            ("/a*$", Some("/a")),
            ("/a***b**c$", Some("/a*b*c$")),
            ("**a*", Some("*a")),
            ("/a*b", None),
            ("/*a$", None),
            // The sign would become the end.
            ("/a$*", None),
            ("/a$**$", None),
            ("/a$**b*", Some("/a$*b")),
        ] {
            assert_eq!(without(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
