use std::time::Duration;

use super::*;
use crate::{
    copy::{Freshness, Meaning, OriginState, Policy, RobotsCopy},
    robots::Profile,
};

#[test]
fn show_prints_the_current_answer_and_the_text() {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let copy = RobotsCopy::new(Profile::Google, b"User-agent: *\r\nDisallow: /\x1b\n", then);
    let policy = Policy::default();
    let state = OriginState::unknown().after(
        Meaning::Rules(copy.into()),
        200,
        Freshness::default(),
        then,
        0.0,
        &policy,
    );
    let now = then + Duration::from_secs(90);
    let detail = Detail::of(&"http://a.example".parse().unwrap(), state, &policy, now);
    insta::assert_snapshot!(report(&detail, now, Paint::none()), @r"
    Origin:        http://a.example
    Holds:         rules
    Meaning:       the rules below decide
    Status:        200
    Fetched:       2026-09-21 14:13 UTC, 1 min 30 s ago
    Until:         2026-09-22 14:13 UTC, in 23 h 58 min
    SHA-256:       2009641cc80f8b0c8b05fc6584430192cad8a5fef7a504ff954ecf08482e0232
    Bytes:         28

      1 | User-agent: *
      2 | Disallow: /\u{1b}
    ");
}

#[test]
fn the_text_is_shown_with_line_numbers() {
    for (text, shown) in [
        (&b""[..], ""),
        (b"a", "  1 | a\n"),
        (b"a\n\nb\n", "  1 | a\n  2 | \n  3 | b\n"),
    ] {
        assert_eq!(numbered(text, Paint::none()), shown);
    }
    assert_eq!(tamed(b"a\x1b\r\nb"), "a\\u{1b}\nb\n");
}
