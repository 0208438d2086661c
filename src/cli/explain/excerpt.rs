//! Shows lines of a robots.txt with their numbers, escaped for a terminal: the line of a rule with its neighbours, and
//! user-agent lines without neighbours.

use std::fmt::Write as _;

use crate::{
    cli::{
        colour::{Colour, Paint},
        columns::cut,
    },
    robots::numbered_lines,
};

pub(super) struct Excerpt<'a> {
    pub(super) body: &'a [u8],
    /// The line to mark. It is shown with its neighbours.
    pub(super) rule: Option<u32>,
    /// The user-agent lines to show without neighbours, in ascending order.
    pub(super) agents: &'a [u32],
    pub(super) width: usize,
}

// === impl Excerpt ===

impl Excerpt<'_> {
    pub(super) fn write(&self, out: &mut String, paint: Paint) {
        let mut last = 0;
        let digits = self.last().to_string().len();
        let mut lines = numbered_lines(self.body).peekable();
        while let Some((number, line)) = lines.next() {
            // Skip the empty line that the parser sees after the last line end, because a person does not see it.
            let is_end = line.is_empty() && lines.peek().is_none();
            if is_end || !self.shows(number) {
                continue;
            }
            if number != last + 1 {
                put(out, paint.in_colour(Colour::Faint, format_args!("  {:>digits$} …", "")));
            }
            last = number;
            let text = String::from_utf8_lossy(line);
            let text = cut(text.trim_end(), self.width.saturating_sub(digits + 5));
            let (mark, colour) = match (self.rule == Some(number), self.agents.contains(&number)) {
                (true, _) => ('>', Some(Colour::Strong)),
                (false, true) => (' ', None),
                (false, false) => (' ', Some(Colour::Faint)),
            };
            let numbered = format!("{mark} {number:>digits$} | {text}");
            match colour {
                Some(colour) => put(out, paint.in_colour(colour, numbered.trim_end())),
                None => put(out, numbered.trim_end()),
            }
        }
    }

    fn shows(&self, number: u32) -> bool {
        let near = self.rule.is_some_and(|rule| {
            // Lines above the group of the rule may belong to a group that does not apply.
            let group = self.agents.iter().rfind(|agent| **agent < rule);
            rule.abs_diff(number) <= AROUND && group.is_none_or(|group| number >= *group)
        });
        near || self.agents.contains(&number)
    }

    fn last(&self) -> u32 {
        let rule = self.rule.map_or(0, |rule| rule.saturating_add(AROUND));
        self.agents.last().map_or(rule, |agent| rule.max(*agent))
    }
}

fn put(out: &mut String, line: impl std::fmt::Display) {
    let _ = writeln!(out, "{line}");
}

/// How many lines to show before and after the marked line.
const AROUND: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_shows_the_rule_and_the_agents_with_nearby_lines() {
        let body = b"User-agent: a\n#\n#\n#\n#\nAllow: /\x1b[2J\n\nDisallow: /long/long/long\n# x\0y\n\n\n#\n";
        let mut out = String::new();
        let excerpt = Excerpt {
            body,
            rule: Some(8),
            agents: &[1],
            width: 28,
        };
        excerpt.write(&mut out, Paint::none());
        let expected = "\
\x20  1 | User-agent: a
     …
   5 | #
   6 | Allow: /\\u{1b}[2J
   7 |
>  8 | Disallow: /long/long…
   9 | # x
  10 |
  11 |
";
        assert_eq!(out, expected);
    }

    #[test]
    fn the_excerpt_begins_with_the_group_of_the_rule() {
        let body = b"User-agent: a\nDisallow: /x\nUser-agent: *\nDisallow: /y\nUser-agent: a\nDisallow: /z\n";
        let mut out = String::new();
        let excerpt = Excerpt {
            body,
            rule: Some(6),
            agents: &[1, 5],
            width: 28,
        };
        excerpt.write(&mut out, Paint::none());
        assert_eq!(
            out,
            "  1 | User-agent: a\n    …\n  5 | User-agent: a\n> 6 | Disallow: /z\n"
        );
    }
}
