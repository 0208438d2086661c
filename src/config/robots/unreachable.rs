//! `[robots.unreachable]`: what holds while a robots.txt cannot be had, and when it is asked for again.
//!
//! It fetches nothing and knows no origin. The defaults are those of [`crate::cache`].

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use super::{DAY, too_long};
use crate::config::check::Checker;
use crate::config::written;
use crate::copy::{Retry, Then, Unreachable};

/// Zero is the RFC's to choose (§2.4). Past a year nobody waits for the end; `then = "deny"` is to have none.
const DENIALS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(365 * 24 * 60 * 60);
/// Under a second a server in trouble would be pressed; over a day one that is well again would not be heard.
const RETRIES: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;

pub(super) fn check(written: written::Unreachable, checker: &mut Checker<'_>) -> Unreachable {
    let default = Unreachable::default();
    let then = written.then;
    if let Some(without_copy) = &written.without_copy
        && then != Then::LastCopy
    {
        checker.complain(
            without_copy.span(),
            r#"this has no effect unless then is "last-copy"; leave out either this or then"#,
        );
    }
    Unreachable {
        deny_for: checker.duration(written.deny_for, default.deny_for, DENIALS),
        then,
        without_copy: written.without_copy.map_or(default.without_copy, Spanned::into_inner),
        retry: retry(
            [written.retry_first, written.retry_busy, written.retry_longest],
            default.retry,
            checker,
        ),
    }
}

/// The waits, of which none is longer than the longest. As with the ttls, those that are not written give way to it,
/// and it is raised only by saying so.
fn retry(
    [first, busy, longest]: [Option<Spanned<written::Amount>>; 3],
    default: Retry,
    checker: &mut Checker<'_>,
) -> Retry {
    let longest = checker.duration(longest, default.longest, RETRIES);
    let mut no_longer = |written: Option<Spanned<written::Amount>>, default: Duration| {
        let at = written.as_ref().map(Spanned::span);
        let wait = checker.duration(written, default.min(longest), RETRIES);
        if let Some(span) = at.filter(|_| wait > longest) {
            checker.complain(span, too_long(wait, "retry-longest", longest));
        }
        wait
    };
    Retry {
        first: no_longer(first, default.first),
        busy: no_longer(busy, default.busy),
        longest,
    }
}
