use std::time::Duration;

use super::*;
use crate::{
    copy::{Failure, FetchError, Freshness, Meaning, RobotsCopy},
    robots::Profile,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const TEXT: &[u8] = b"User-agent: *\nDisallow: /private\n";

/// A time in 2026, because robotgate does not trust a clock that is years behind.
fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn after(state: &OriginState, meaning: Meaning, status: u16, at: SystemTime) -> OriginState {
    state.after(meaning, status, Freshness::default(), at, 0.0, &Policy::default())
}

fn rules(text: &[u8], at: SystemTime) -> OriginState {
    let mut copy = RobotsCopy::new(Profile::Google, text, at);
    copy.etag = Some("\"v1\"".into());
    after(&OriginState::unknown(), Meaning::Rules(copy.into()), 200, at)
}

fn failing(state: &OriginState, at: SystemTime) -> OriginState {
    let failure = Failure::from(FetchError::Status(503));
    after(state, Meaning::Failed(failure), 503, at)
}

fn detail(state: OriginState, now: SystemTime) -> Detail {
    let origin = "https://a.example".parse().unwrap();
    Detail::of(&origin, state, None, &Policy::default(), now)
}

#[test]
fn a_row_of_rules_shows_their_fetch_and_their_text() {
    let detail = detail(rules(TEXT, noon()), noon() + HOUR);
    let row = &detail.row;
    assert_eq!(
        (&*row.origin, &*row.holds, row.due),
        ("https://a.example", "rules", Due::No)
    );
    assert_eq!((row.status, row.fetched), (Some(200), Some(Timestamp(noon()))));
    assert_eq!(row.expires, Some(Timestamp(noon() + 24 * HOUR)));
    assert_eq!((row.sha256, row.bytes), (Some(Sha256::of(TEXT)), Some(TEXT.len())));
    assert_eq!((row.failing_since, &row.error), (None, &None));
    assert_eq!(detail.etag.as_deref(), Some("\"v1\""));
    assert_eq!((&*detail.text().unwrap(), &detail.robots_b64), (TEXT, &None));
    let copy = detail.last_copy.unwrap();
    assert_eq!(
        (copy.status, copy.fetched, copy.bytes),
        (200, Timestamp(noon()), TEXT.len())
    );
}

#[test]
fn a_row_shows_a_failure_next_to_the_valid_copy() {
    let state = failing(&rules(TEXT, noon()), noon() + 20 * HOUR);
    let row = detail(state, noon() + 20 * HOUR).row;
    assert_eq!((&*row.holds, row.status), ("rules", Some(200)));
    assert_eq!(row.failing_since, Some(Timestamp(noon() + 20 * HOUR)));
    assert_eq!(row.error.as_deref(), Some("the server answered 503"));
}

#[test]
fn an_expired_copy_is_kept_but_does_not_decide() {
    let state = failing(&rules(TEXT, noon()), noon() + 25 * HOUR);
    let detail = detail(state, noon() + 26 * HOUR);
    assert_eq!((&*detail.row.holds, detail.row.due), ("unreachable", Due::Now));
    assert_eq!((detail.row.bytes, detail.row.sha256), (None, Some(Sha256::of(TEXT))));
    assert_eq!(detail.last_copy.unwrap().bytes, TEXT.len());
}

#[test]
fn a_text_that_is_not_utf_8_keeps_its_bytes() {
    let text = b"User-agent: \xff\xfe\n";
    let detail = detail(rules(text, noon()), noon());
    let json = serde_json::to_string(&detail).unwrap();
    let read: Detail = serde_json::from_str(&json).unwrap();
    assert_eq!(read, detail);
    assert_eq!(&*read.text().unwrap(), text);
    assert_eq!(read.robots.as_deref(), Some("User-agent: \u{fffd}\u{fffd}\n"));
}

#[test]
fn a_row_shows_what_a_status_means_in_the_current_profile() {
    let policy = Policy {
        profile: Profile::Rfc9309,
        ..Policy::default()
    };
    let origin = "https://a.example".parse().unwrap();
    // In the profile `google`, a 429 is a failure. In `rfc9309`, it means that there is no robots.txt, as any 4xx does.
    let failure = Failure::from(FetchError::Status(429));
    let state = after(&OriginState::unknown(), Meaning::Failed(failure), 429, noon());
    assert_eq!(detail(state.clone(), noon()).row.holds, "unreachable");
    let detail = Detail::of(&origin, state, None, &policy, noon());
    assert_eq!((&*detail.row.holds, &*detail.profile), ("no-robots", "rfc9309"));
}

#[test]
fn every_row_has_every_field() {
    let row = detail(rules(TEXT, noon()), noon()).row;
    let json = serde_json::to_value(&row).unwrap();
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 13, "{fields:?}");
    assert_eq!(serde_json::from_value::<Row>(json).unwrap(), row);
}
