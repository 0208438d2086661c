//! Tests that text from a site cannot end a header field or line, whatever it contains.

use proptest::prelude::*;

use super::*;

fn refuse(rule: &str, group: &str) -> OwnResponse {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let grounds = DecisionTexts {
        group: Some(group.into()),
        ..by_rule(&decision, rule)
    };
    let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");
    let decision = header(&answer, "robots-decision");
    let (value, params) = item(decision);
    assert_eq!(value, "deny", "{rule:?}");
    let names: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["reason", "line", "rule", "group", "bot", "robots", "id"],
        "{rule:?}"
    );
    let (name, params) = only_member(header(&answer, "proxy-status"));
    assert_eq!((name.as_str(), params.len()), ("robotgate", 2), "{rule:?}");
    let body = json(&answer);
    assert_eq!(body["rule"], rule, "the body has the rule as it is");
    assert_eq!(body["group"], group, "the body has the group as it is");
    answer
}

fn rule_in_header(rule: &str) -> String {
    let answer = refuse(rule, "*");
    let (_, params) = item(header(&answer, "robots-decision"));
    let (_, rule) = params.into_iter().find(|(name, _)| name == "rule").expect("a rule");
    rule
}

#[test]
fn a_rule_is_escaped_for_the_header() {
    for (rule, expected) in [
        (
            "Disallow: /\"; verdict=allow; x=\"",
            r#"Disallow: /"; verdict=allow; x=""#,
        ),
        ("Disallow: /\\", r"Disallow: /\"),
        ("Disallow: /\\\"", r#"Disallow: /\""#),
        ("Disallow: /\r\nSet-Cookie: a=b", "Disallow: /%0D%0ASet-Cookie: a=b"),
        ("Disallow: /\0\t\u{1b}[31m\u{7f}", "Disallow: /%00%09%1B[31m%7F"),
        ("Disallow: /é", "Disallow: /%C3%A9"),
        ("Disallow: /ツ\u{fffd}", "Disallow: /%E3%83%84%EF%BF%BD"),
        ("Disallow: /\u{2028}\u{85}", "Disallow: /%E2%80%A8%C2%85"),
    ] {
        let expected = format!("\"{expected}\"");
        assert_eq!(rule_in_header(rule), expected, "{rule:?}");
    }
}

#[test]
fn a_rule_of_any_length_leaves_the_header_section_small() {
    for text in ["x", "\"", "\\", "é", "\r\n"] {
        let rule = format!("Disallow: /{}", text.repeat(16_000));
        let answer = refuse(&rule, &rule);
        let size: usize = (answer.head.headers.iter())
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        assert!(size < 8 * 1024, "{size} bytes of fields for {text:?}");
        assert!(rule_in_header(&rule).ends_with("...\""), "it says that it was cut");
    }
    let rule = format!("Disallow: /{}", "x".repeat(MAX_STRING - "Disallow: /".len()));
    assert_eq!(
        rule_in_header(&rule),
        format!("\"{rule}\""),
        "up to its greatest length it is whole"
    );
}

#[test]
fn an_error_from_an_origin_cannot_break_a_header() {
    let texts = ["\r\nX: y", "\"; error=none; x=\"", "é\0", &"x".repeat(100_000)];
    for text in texts {
        let fault = Fault::TlsCertificate(text.to_owned());
        let answer = OwnResponse::problem(&Problem::Fault(&fault), &HeaderMap::new(), "robotgate");
        let (name, params) = only_member(header(&answer, "proxy-status"));
        assert_eq!(name, "robotgate");
        assert_eq!(params[0], ("error".to_owned(), "tls_certificate_error".to_owned()));
        assert_eq!(params.len(), 2);
        assert_eq!(json(&answer)["detail"], fault.to_string());
    }
}

proptest! {
    #[test]
    fn no_rule_breaks_a_header(rule in "\\PC{0,40}|(?s).{0,40}", group in "(?s).{0,20}") {
        let answer = refuse(&rule, &group);
        let wire = answer.to_http1(false);
        let text = String::from_utf8(wire).expect("ASCII");
        prop_assert_eq!(text.matches("\r\n\r\n").count(), 1);
        prop_assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\r' | b'\n')));
    }
}
