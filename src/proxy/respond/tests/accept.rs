//! Whether a client gets JSON or text.

use super::*;

#[test]
fn json_is_for_all_who_do_not_prefer_text() {
    for (accept, prefers) in [
        (&[][..], false),
        (&[""], false),
        (&["*/*"], false),
        (&["application/json"], false),
        (&["application/problem+json"], false),
        (&["application/*"], false),
        (&["application/json, text/plain, */*"], false),
        (&["application/json;q=0.9, text/plain;q=0.9"], false),
        (&["text/plain;q=0.5, application/json"], false),
        (&["image/avif,image/webp,*/*;q=0.8"], false),
        (&["text/plain;q=0, */*;q=0.1"], false),
        (&["application/xml"], false),
        (&["text/css"], false),
        (&["text/plain;q=0"], false),
        (&["text/plain;q=none"], false),
        (&["text/plain;q=NaN"], false),
        (&["text/plain;q=-1"], false),
        (&["text/plain"], true),
        (&["TEXT/Plain"], true),
        (&["text/plain;charset=utf-8"], true),
        (&["text/plain;charset=utf-8;q=0.5, application/json;q=0.4"], true),
        (&["text/*"], true),
        (&["text/html"], true),
        (
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            true,
        ),
        (&["text/plain, */*;q=0.5"], true),
        (&["text/plain ; Q=0.5 , application/json ; q=0.1"], true),
        (&["application/json;q=0.5, text/*"], true),
        (&["application/problem+json;q=0, */*"], true),
        (&["application/*;q=0.2", "text/plain;q=0.3"], true),
        (&["text/plain;q=5"], true),
    ] {
        assert_eq!(prefers_text(&accepting(accept)), prefers, "{accept:?}");
    }
}

#[test]
fn a_field_that_is_no_text_says_nothing() {
    let mut request = HeaderMap::new();
    let value = http::HeaderValue::from_bytes(b"text/plain\xFF").expect("a field value");
    request.insert(header::ACCEPT, value);
    assert!(!prefers_text(&request));
}

#[test]
fn weights_are_thousandths() {
    for (weight, parts) in [
        ("0", 0),
        ("1", 1000),
        ("1.000", 1000),
        ("0.5", 500),
        (".25", 250),
        ("0.001", 1),
        ("2", 1000),
        ("inf", 1000),
        ("-0.5", 0),
        ("NaN", 0),
        ("", 0),
        ("high", 0),
    ] {
        assert_eq!(thousandths(weight), parts, "{weight:?}");
    }
}
