//! Tests how `Accept` chooses whether a body is JSON, text or HTML.

use super::*;

#[test]
fn json_is_sent_unless_another_type_is_preferred() {
    for (accept, preferred) in [
        (&[][..], Body::Json),
        (&[""], Body::Json),
        (&["*/*"], Body::Json),
        (&["application/json"], Body::Json),
        (&["application/problem+json"], Body::Json),
        (&["application/*"], Body::Json),
        (&["application/json, text/plain, */*"], Body::Json),
        (&["application/json;q=0.9, text/plain;q=0.9"], Body::Json),
        (&["text/plain;q=0.5, application/json"], Body::Json),
        (&["image/avif,image/webp,*/*;q=0.8"], Body::Json),
        (&["text/plain;q=0, */*;q=0.1"], Body::Json),
        (&["application/xml"], Body::Json),
        (&["text/css"], Body::Json),
        (&["text/plain;q=0"], Body::Json),
        (&["text/plain;q=none"], Body::Json),
        (&["text/plain;q=NaN"], Body::Json),
        (&["text/plain;q=-1"], Body::Json),
        (&["text/plain"], Body::Text),
        (&["TEXT/Plain"], Body::Text),
        (&["text/plain;charset=utf-8"], Body::Text),
        (&["text/plain;charset=utf-8;q=0.5, application/json;q=0.4"], Body::Text),
        (&["text/*"], Body::Text),
        (&["text/html"], Body::Html),
        (
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            Body::Html,
        ),
        (&["text/plain, */*;q=0.5"], Body::Text),
        (&["text/plain ; Q=0.5 , application/json ; q=0.1"], Body::Text),
        (&["application/json;q=0.5, text/*"], Body::Text),
        (&["application/problem+json;q=0, */*"], Body::Text),
        (&["application/*;q=0.2", "text/plain;q=0.3"], Body::Text),
        (&["text/plain;q=5"], Body::Text),
        (&["text/html, text/plain;q=0.9, */*;q=0.1"], Body::Html),
        (&["text/html, text/plain"], Body::Html),
        (&["text/html;q=0.5, text/plain"], Body::Text),
        (
            &["text/html;q=0.5, application/json;q=0.9, text/plain;q=0.7"],
            Body::Json,
        ),
        (&["text/html, application/json"], Body::Json),
        (&["text/html;q=0, */*;q=0.5"], Body::Json),
    ] {
        assert_eq!(Body::preferred(&accepting(accept)), preferred, "{accept:?}");
    }
}

#[test]
fn an_accept_field_that_is_not_text_is_ignored() {
    let mut request = HeaderMap::new();
    let value = http::HeaderValue::from_bytes(b"text/plain\xFF").expect("a field value");
    request.insert(header::ACCEPT, value);
    assert_eq!(Body::preferred(&request), Body::Json);
}

#[test]
fn weights_are_read_as_thousandths() {
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
