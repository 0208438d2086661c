//! Tests the HTTP/1.1 bytes of responses that robotgate sends without pingora.

use super::*;

fn read(bytes: &[u8]) -> (u16, String, Vec<(String, String)>, &[u8]) {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    let len = match response.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        other => panic!("{other:?}: {}", bytes.escape_ascii()),
    };
    assert_eq!(response.version, Some(1));
    let fields = response.headers.iter().map(|field| {
        let value = std::str::from_utf8(field.value).expect("ASCII");
        (field.name.to_ascii_lowercase(), value.to_owned())
    });
    (
        response.code.expect("a status"),
        response.reason.expect("a phrase").to_owned(),
        fields.collect(),
        &bytes[len..],
    )
}

fn values<'a>(fields: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    let named = fields.iter().filter(|(there, _)| there == name);
    named.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn a_refusal_is_a_complete_response() {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let grounds = by_rule(&decision, "Disallow: /\r\n\"é");
    let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");
    let bytes = answer.to_http1(true);
    assert!(bytes.starts_with(b"HTTP/1.1 403 Disallowed by robots.txt\r\n"));
    let (status, phrase, fields, content) = read(&bytes);
    assert_eq!((status, phrase.as_str()), (403, "Disallowed by robots.txt"));
    assert_eq!(content, answer.body);
    assert_eq!(values(&fields, "content-length"), [content.len().to_string()]);
    assert_eq!(values(&fields, "connection"), ["close"]);
    for (name, value) in &answer.head.headers {
        assert_eq!(
            values(&fields, name.as_str()),
            [value.to_str().expect("ASCII")],
            "{name}"
        );
    }
    assert_eq!(fields.len(), answer.head.headers.len() + 1);
}

#[test]
fn a_response_without_content_has_its_content_length() {
    let answer = OwnResponse::problem(&Problem::Audit, &HeaderMap::new(), "robotgate");
    let bytes = answer.to_http1(false);
    let (status, phrase, fields, content) = read(&bytes);
    assert_eq!((status, phrase.as_str()), (503, "Audit Log Unavailable"));
    assert_eq!(content, b"");
    assert_eq!(values(&fields, "content-length"), [answer.body.len().to_string()]);
}

#[test]
fn every_title_is_a_valid_status_line() {
    for problem in [
        Problem::Head(&HeadError::Timeout),
        Problem::Head(&HeadError::TooLarge(1024)),
        Problem::Target(&TargetError::OriginForm),
        Problem::Fault(&Fault::ConnectionRefused),
        Problem::Fault(&Fault::ReadTimeout),
        Problem::Fault(&Fault::Internal("x".to_owned())),
        Problem::Loop,
        Problem::Leaf,
        Problem::Request,
    ] {
        let answer = OwnResponse::problem(&problem, &HeaderMap::new(), "robotgate");
        let bytes = answer.to_http1(true);
        let (status, phrase, _, content) = read(&bytes);
        assert_eq!(status, answer.head.status.as_u16(), "{problem:?}");
        assert_eq!(Some(phrase.as_str()), answer.head.get_reason_phrase(), "{problem:?}");
        assert_eq!(content, answer.body, "{problem:?}");
    }
}
