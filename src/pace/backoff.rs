//! The pauses after a site has responded with 429 or 503 (RFC 6585 §4, RFC 9110 §15.6.4, §10.2.3).

use std::time::{Duration, Instant};

/// The pauses of one origin. An incident is a period in which the site is too busy, however many times it responds with
/// 429 or 503.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// When the last incident began. A 429 or 503 to a request that began before then belongs to this incident.
    began: Option<Instant>,
    until: Option<Instant>,
    /// Number of incidents that began without a `Retry-After` and are not forgiven yet; see
    /// [`is_forgiven`](Self::is_forgiven).
    unspecified: u32,
}

// === impl Backoff ===

impl Backoff {
    /// Returns the end of the last pause, which can be in the past.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Records that a request that began at `began` got a 429 or 503 at `now`.
    ///
    /// `asked` is the `Retry-After`; zero counts as missing, because a busy site cannot mean that the next request may
    /// follow immediately. If the `Retry-After` is missing, `spread` (0 to 1) sets the jitter that lengthens the pause.
    pub(super) fn note(&mut self, now: Instant, began: Instant, asked: Option<Duration>, spread: f64) {
        let is_new = self.began.is_none_or(|incident| began > incident);
        if is_new {
            if self.is_forgiven(now) {
                self.unspecified = 0;
            }
            self.began = Some(now);
        }
        let pause = match asked.filter(|asked| !asked.is_zero()) {
            Some(asked) => asked.min(LONGEST_PAUSE),
            None if !is_new => return,
            None => {
                let doubled = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(self.unspecified).unwrap_or(u32::MAX));
                self.unspecified = self.unspecified.saturating_add(1);
                let spread = 1.0 + JITTER * spread.clamp(0.0, 1.0);
                doubled.min(LONGEST_PAUSE).mul_f64(spread).min(LONGEST_PAUSE)
            }
        };
        // A later response never shortens the pause.
        self.until = self.until.max(now.checked_add(pause));
    }

    /// Records a pause that the fleet reported. Never shortens the current pause.
    pub(super) fn extend(&mut self, until: Instant) {
        self.until = self.until.max(Some(until));
    }

    /// Returns whether earlier incidents no longer count: there is no pause now, and the next pause is as short as the
    /// first one.
    pub(super) fn is_forgiven(&self, now: Instant) -> bool {
        let quiet_for = self.until.map(|until| now.checked_duration_since(until));
        let forgiven_after = match self.unspecified {
            0 => Duration::ZERO,
            _ => QUIET,
        };
        quiet_for.is_none_or(|quiet| quiet.is_some_and(|quiet| quiet >= forgiven_after))
    }
}

/// The pause after the first incident without a `Retry-After`. Each further incident of this kind doubles it.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause, with or without a `Retry-After`.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// If no incident begins for this time after a pause, the next pause is as short as the first one.
pub(crate) const QUIET: Duration = Duration::from_secs(30 * 60);
/// Jitter lengthens a pause by at most this share of it, and never shortens a pause.
pub(crate) const JITTER: f64 = 0.1;

#[cfg(test)]
pub(crate) use self::tests::INCIDENTS;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const DAY: u64 = 24 * 60 * 60;

    fn pauses(answers: &[Answer], spread: f64) -> Vec<u64> {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut backoff = Backoff::default();
        let note = |&(began, now, asked): &Answer| {
            backoff.note(at(now), at(began), asked.map(Duration::from_secs), spread);
            backoff.until().map_or(0, |until| (until - start).as_secs())
        };
        answers.iter().map(note).collect()
    }

    /// A case: what it shows, the responses of the site, and when the pause ends after each of them.
    type Case = (&'static str, &'static [Answer], &'static [u64]);
    /// When the request began, when its response came, and the response's `Retry-After`, in seconds.
    type Answer = (u64, u64, Option<u64>);

    /// A script on the fleet's server computes these pauses too, so a test of the fleet uses the same cases.
    pub(crate) const INCIDENTS: &[Case] = &[
        ("Retry-After counts", &[(0, 1, Some(120))], &[121]),
        ("but no longer than a day", &[(0, 1, Some(9_999_999_999))], &[1 + DAY]),
        ("zero, or a date in the past, says nothing", &[(0, 1, Some(0))], &[61]),
        ("without it, a minute", &[(0, 1, None)], &[61]),
        (
            "each incident doubles it",
            &[(0, 1, None), (61, 62, None), (182, 183, None)],
            &[61, 182, 423],
        ),
        (
            "answers to requests that were under way together are one incident",
            &[(0, 10, None), (3, 11, None), (10, 90, None)],
            &[70, 70, 70],
        ),
        (
            "of one incident, the longest Retry-After counts",
            &[(0, 1, Some(30)), (0, 2, Some(90)), (0, 3, Some(5)), (0, 4, None)],
            &[31, 92, 92, 92],
        ),
        (
            "an incident with a Retry-After doubles nothing",
            &[(0, 1, Some(5)), (6, 7, Some(5)), (12, 13, None)],
            &[6, 12, 73],
        ),
        (
            "half an hour after the pause, all is forgiven",
            &[(0, 0, None), (60, 60, None), (180, 180 + 30 * MINUTE, None)],
            &[60, 180, 180 + 31 * MINUTE],
        ),
        (
            "not a second earlier",
            &[(0, 0, None), (180, 60 + 30 * MINUTE - 1, None)],
            &[60, 60 + 32 * MINUTE - 1],
        ),
    ];

    #[test]
    fn a_pause_lasts_as_long_as_the_site_asks_or_doubles() {
        for (what, answers, ends) in INCIDENTS {
            assert_eq!(pauses(answers, 0.0), *ends, "{what}");
        }
    }

    #[test]
    fn no_pause_is_longer_than_a_day() {
        let mut answers = Vec::new();
        let (mut now, mut ends) = (0, 0);
        for _ in 0..80 {
            answers.push((now, now, None));
            ends = *pauses(&answers, 1.0).last().expect("an answer");
            assert!(ends - now <= DAY);
            now = ends;
        }
        let last = answers.last().expect("an answer").1;
        assert_eq!(ends - last, DAY);
    }

    #[test]
    fn jitter_lengthens_a_pause_but_not_a_retry_after() {
        assert_eq!(pauses(&[(0, 0, None)], 1.0), [66]);
        assert_eq!(pauses(&[(0, 0, None)], 7.0), [66]);
        assert_eq!(pauses(&[(0, 0, Some(60))], 1.0), [60]);
    }

    #[test]
    fn incidents_are_forgiven_after_the_pause_or_half_an_hour_later() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut backoff = Backoff::default();
        assert!(backoff.is_forgiven(start));
        backoff.note(start, start, Some(Duration::from_secs(5)), 0.0);
        assert!(!backoff.is_forgiven(at(4)));
        assert!(backoff.is_forgiven(at(5)));
        backoff.note(at(6), at(6), None, 0.0);
        assert!(!backoff.is_forgiven(at(66 + 30 * MINUTE - 1)));
        assert!(backoff.is_forgiven(at(66 + 30 * MINUTE)));
    }
}
