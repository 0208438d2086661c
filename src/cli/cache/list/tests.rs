use std::time::{Duration, SystemTime};

use super::*;
use crate::copy::Due;

fn row(origin: &str, holds: &'static str, failing: bool) -> Row {
    let time = |seconds: u64| {
        Some(Timestamp(
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000 + seconds),
        ))
    };
    Row {
        origin: origin.to_owned(),
        holds: holds.into(),
        meaning: "".into(),
        due: Due::No,
        status: (!failing).then_some(200),
        fetched: time(0),
        expires: time(86_400),
        failing_since: failing.then(|| time(60)).flatten(),
        error: None,
        answered: None,
        bytes: None,
        sha256: None,
        source: None,
        verdicts: None,
    }
}

#[test]
fn columns_align_with_their_headers() {
    let rows = [
        row("http://a.example", "rules", false),
        row("https://longer.example:8443", "unreachable", true),
    ];
    insta::assert_snapshot!(table(&rows, None, Paint::none()), @r"
    ORIGIN                       HOLDS        STATUS  FETCHED           UNTIL             FAILING SINCE
    http://a.example             rules        200     2026-09-21 14:13  2026-09-22 14:13  -
    https://longer.example:8443  unreachable  -       2026-09-21 14:13  2026-09-22 14:13  2026-09-21 14:14
    ");
    insta::assert_snapshot!(table(&rows[..1], None, Paint::none()), @r"
    ORIGIN            HOLDS  STATUS  FETCHED           UNTIL
    http://a.example  rules  200     2026-09-21 14:13  2026-09-22 14:13
    ");
}

#[test]
fn long_origins_are_shortened_only_for_a_given_width() {
    let rows = [row(&format!("https://{}.example", "long".repeat(20)), "rules", false)];
    let cut = table(&rows, Some(80), Paint::none());
    assert!(cut.lines().all(|line| line.chars().count() <= 80), "{cut}");
    assert!(cut.contains('…'), "{cut}");
    assert!(table(&rows, None, Paint::none()).contains(&rows[0].origin));
    let rows = [row("https://long-name.internal:65535", "unreachable", true)];
    let cut = table(&rows, Some(40), Paint::none());
    assert!(cut.contains("\nhttps://long…:65535  unreachable"), "{cut}");
}

#[test]
fn control_characters_in_a_row_are_escaped() {
    let rows = [row("https://a\u{1b}[2J", "rules", false)];
    assert!(!table(&rows, None, Paint::none()).contains('\u{1b}'));
}
