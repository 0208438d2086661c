//! Tests what the state of an origin means after a reload has changed the profile.

use super::*;

const TYPO: &str = "User-agent: *\nDisalow: /p\n";

fn google() -> Policy {
    Policy::default()
}

fn rfc9309() -> Policy {
    Policy {
        profile: Profile::Rfc9309,
        soft_404: false,
        ..Policy::default()
    }
}

impl History {
    fn read_under(mut self, policy: Policy) -> Self {
        self.state = self.state.under(&policy);
        self.policy = policy;
        assert!(self.state.is_under(&self.policy));
        self
    }

    fn allows(&self, second: u64) -> bool {
        let copy = self.answer(second).copy().expect("a copy decides");
        copy.robots.agent("a").decide(b"/p").allowed
    }
}

#[test]
fn a_copy_parsed_under_another_profile_keeps_its_age() {
    let before = History::new().then(5, received(200, TYPO));
    let source_fetch = before.source_fetch();
    assert!(!before.allows(6));
    let copy = before.answer(6).copy().expect("rules").clone();

    let after = before.read_under(rfc9309());
    assert!(after.allows(6));
    assert_eq!(after.source_fetch(), source_fetch);
    let reread = after.answer(6).copy().expect("rules");
    assert_eq!((&reread.sha256, reread.fetched), (&copy.sha256, copy.fetched));
    assert_eq!(reread.robots.profile(), Profile::Rfc9309);
    assert_eq!(after.due(6), Due::No);
    assert_eq!(after.due(5 + 20 * HOUR), Due::Background, "it keeps its age");
    assert_eq!(
        after.state.weight(),
        OriginState::unknown().weight() + reread.weight(),
        "the copy and the last good one are one"
    );
    assert!(!after.read_under(google()).allows(6));
}

#[test]
fn the_last_good_copy_is_parsed_under_the_new_profile() {
    let history = History::new()
        .then(0, received(200, TYPO))
        .then(2 * DAYS, received(404, ""))
        .then(3 * DAYS, time_out())
        .read_under(rfc9309());
    assert!(matches!(history.answer(33 * DAYS), Answer::LastCopy(..)));
    assert!(history.allows(33 * DAYS));
    assert!(!history.read_under(google()).allows(33 * DAYS));
}

#[test]
fn an_unknown_origin_fits_every_profile() {
    let unknown = OriginState::unknown();
    assert!(unknown.is_under(&google()) && unknown.is_under(&rfc9309()));
    let failed = History::new().then(0, time_out());
    assert!(failed.state.is_under(&google()) && !failed.state.is_under(&rfc9309()));
    let (since, expires) = (failed.source_fetch().fetched, failed.expires());
    let failed = failed.read_under(rfc9309());
    assert_eq!((failed.source_fetch().fetched, failed.expires()), (since, expires));
}

#[test]
fn a_status_gets_its_meaning_from_the_current_profile() {
    let busy = History::new()
        .then(0, received(200, RULES))
        .then(DAYS, received(429, ""));
    assert!(matches!(busy.answer(DAYS), Answer::Unreachable(Some(_))));
    let busy = busy.read_under(rfc9309());
    assert_eq!(busy.answer(DAYS), Answer::NoRobots);
    assert_eq!(busy.source_fetch().status, Some(429));
    assert_eq!(busy.expires(), DAYS + HOUR, "an hour after the 429 came");
    let busy = busy.read_under(google());
    assert!(matches!(busy.answer(DAYS), Answer::Unreachable(Some(_))));
    assert_eq!(busy.expires(), DAYS + 5 * MINUTE);
    assert!(matches!(busy.answer(31 * DAYS), Answer::LastCopy(..)), "30 days later");

    // The 429 counted as a failed refresh. Under the new profile, it means that there is no robots.txt.
    let busy = History::new()
        .then(0, received(200, RULES))
        .then(20 * HOUR, received(429, ""));
    assert!(matches!(busy.answer(21 * HOUR), Answer::Rules(_)));
    assert_eq!(busy.read_under(rfc9309()).answer(20 * HOUR), Answer::NoRobots);

    let soft = History::new().then(0, received(503, "Page not found"));
    assert_eq!(soft.answer(1), Answer::Soft404);
    let soft = soft.then(50 * MINUTE, time_out()).read_under(rfc9309());
    assert!(matches!(soft.answer(51 * MINUTE), Answer::Unreachable(Some(_))));
    assert!(
        matches!(soft.answer(30 * DAYS), Answer::UnreachableTooLong(_)),
        "30 days later"
    );

    for status in [404, 403] {
        let none = History::new().then(0, received(status, "")).read_under(rfc9309());
        assert_eq!(none.answer(1), Answer::NoRobots);
    }
}

#[test]
fn a_refused_ftp_login_keeps_the_known_rules_under_every_profile() {
    let refused = Fetched::Failed(FetchError::Status(403).into());
    let history = History::new().then(0, received(200, RULES)).then(20 * HOUR, refused);
    let history = history.read_under(rfc9309());
    assert!(matches!(history.answer(21 * HOUR), Answer::Rules(_)));
    assert!(matches!(
        history.read_under(google()).answer(21 * HOUR),
        Answer::Rules(_)
    ));
}

#[test]
fn a_fetch_under_the_old_profile_parses_all_copies_with_it() {
    let received = History::new().then(0, received(200, TYPO)).read_under(rfc9309());
    let state = |history: History, fetched| {
        let mut late = History {
            policy: google(),
            ..history
        };
        late = late.then(20 * HOUR, fetched);
        assert!(late.state.is_under(&google()) && !late.state.is_under(&rfc9309()));
        late
    };
    let received = state(received, time_out());
    assert!(!received.allows(21 * HOUR), "it is parsed under the fetch's profile");
    assert!(received.read_under(rfc9309()).allows(21 * HOUR));
}

#[test]
fn a_text_with_a_line_end_behind_the_limit_can_be_restored() {
    for end in ["", "\n", "\r\n"] {
        let rules = "User-agent: *\nDisallow: /private\n";
        let body = rules.to_owned() + &"#".repeat(crate::robots::LIMIT - rules.len()) + end;
        // A fetch keeps only the part of the body that `counted` returns.
        let body = crate::robots::counted(body.as_bytes(), crate::robots::LIMIT);
        let history = History::new().then(0, received(200, str::from_utf8(body).expect("ASCII")));
        let state = &history.state;
        let restored = state.save().restore(state.text()).map(|restored| restored.save());
        assert_eq!(restored, Some(state.save()), "{end:?}");
    }
}
