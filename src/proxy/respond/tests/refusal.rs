//! Tests the response to a refused request: status, header fields and body.

use serde_json::json;

use super::*;

#[test]
fn a_refusal_by_a_rule_names_the_rule() {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let grounds = by_rule(&decision, "Disallow: /private");
    let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");

    assert_eq!(answer.head.status, 403);
    assert_eq!(answer.head.get_reason_phrase(), Some("Disallowed by robots.txt"));
    assert_eq!(
        header(&answer, "robots-decision"),
        "deny; reason=rule; line=3; rule=\"Disallow: /private\"; group=\"*\"; bot=\"AcmeBot\"; \
         robots=\"https://a.example/robots.txt\"; id=\"0192f0c1-2345-7abc-8def-0123456789ab\""
    );
    assert_eq!(
        header(&answer, "proxy-status"),
        "robotgate; error=http_request_denied; details=\"robots.txt line 3: Disallow: /private\""
    );
    assert_eq!(header(&answer, "cache-control"), "no-store");
    assert_eq!(header(&answer, "content-length"), answer.body.len().to_string());
    assert_eq!(
        json(&answer),
        json!({
            "type": "http://robotgate.internal/problems#rule",
            "title": "Disallowed by robots.txt",
            "status": 403,
            "detail": "A rule of the site's robots.txt disallows this URL. \
                       Line 3 of https://a.example/robots.txt: Disallow: /private",
            "instance": "urn:uuid:0192f0c1-2345-7abc-8def-0123456789ab",
            "reason": "rule",
            "rule": "Disallow: /private",
            "line": 3,
            "group": "*",
            "bot": "AcmeBot",
            "robots": "https://a.example/robots.txt",
        })
    );
}

#[test]
fn a_client_that_prefers_text_gets_the_refusal_as_text() {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let grounds = by_rule(&decision, "Disallow: /private");
    let request = accepting(&["text/plain"]);
    let answer = OwnResponse::refusal(&grounds, &request, &Refusals::default(), "robotgate");
    assert_eq!(
        text(&answer),
        "403 Disallowed by robots.txt\n\n\
         A rule of the site's robots.txt disallows this URL. \
         Line 3 of https://a.example/robots.txt: Disallow: /private\n\n\
         The rule's group in the robots.txt: *\n\
         The bot that robotgate identified: AcmeBot\n\
         The decision's id in the audit log: 0192f0c1-2345-7abc-8def-0123456789ab\n"
    );
    assert_eq!(header(&answer, "content-length"), answer.body.len().to_string());
    let as_json = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");
    for name in ["robots-decision", "proxy-status", "cache-control"] {
        assert_eq!(header(&answer, name), header(&as_json, name));
    }
}

#[test]
fn the_fields_of_a_refusal_are_valid_structured_fields() {
    let decision = decided(Verdict::Deny, Reason::LastCopy);
    let grounds = by_rule(&decision, r#"Disallow: /"quoted"\path"#);
    let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "gate-1.example");
    assert_eq!(
        item(header(&answer, "robots-decision")),
        expected(
            "deny",
            &[
                ("reason", "last-copy"),
                ("line", "3"),
                ("rule", r#""Disallow: /"quoted"\path""#),
                ("group", "\"*\""),
                ("bot", "\"AcmeBot\""),
                ("robots", "\"https://a.example/robots.txt\""),
                ("id", "\"0192f0c1-2345-7abc-8def-0123456789ab\""),
            ]
        )
    );
    assert_eq!(
        only_member(header(&answer, "proxy-status")),
        expected(
            "gate-1.example",
            &[
                ("error", "http_request_denied"),
                ("details", r#""robots.txt line 3: Disallow: /"quoted"\path""#),
            ]
        )
    );
}

#[test]
fn a_refusal_without_a_rule_names_its_cause() {
    for (verdict, reason, title) in [
        (
            Verdict::Deny,
            Reason::Unreachable,
            "Disallowed: robots.txt is unreachable",
        ),
        (
            Verdict::Deny,
            Reason::Unidentified,
            "Disallowed: bot not identified by its User-Agent",
        ),
        (
            Verdict::Unverifiable,
            Reason::Unverifiable,
            "Disallowed: robotgate cannot see the path in a tunnel",
        ),
        (
            Verdict::Deny,
            Reason::ConnectRefused,
            "Disallowed: CONNECT is refused here",
        ),
    ] {
        let decision = decided(verdict, reason);
        let answer = OwnResponse::refusal(&decision.clone(), &HeaderMap::new(), &Refusals::default(), "robotgate");
        assert_eq!(answer.head.status, 403, "{reason:?}");
        assert_eq!(answer.head.get_reason_phrase(), Some(title), "{reason:?}");
        let (value, params) = item(header(&answer, "robots-decision"));
        assert_eq!(value, verdict.as_str(), "{reason:?}");
        let names: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["reason", "bot", "robots", "id"], "{reason:?}");
        assert_eq!(params[0].1, reason.as_str());
        let (_, params) = only_member(header(&answer, "proxy-status"));
        assert_eq!(params[1], ("details".to_owned(), format!("\"{title}\"")), "{reason:?}");
        let body = json(&answer);
        assert_eq!(body["detail"], reason.sentence(), "{reason:?}");
        assert_eq!(body["reason"], reason.as_str(), "{reason:?}");
        for member in ["rule", "line", "group"] {
            assert_eq!(body.get(member), None, "{reason:?} has no {member}");
        }
    }
}

#[test]
fn a_refusal_for_an_unreachable_robots_txt_has_the_error() {
    let decision = decided(Verdict::Deny, Reason::Unreachable);
    let grounds = DecisionTexts {
        robots_error: Some("the server answered 503".to_owned()),
        ..decision.clone()
    };
    let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");
    let (_, params) = only_member(header(&answer, "proxy-status"));
    let details = "\"Disallowed: robots.txt is unreachable: the server answered 503\"";
    assert_eq!(params[1].1, details);
    let body = json(&answer);
    let detail = body["detail"].as_str().expect("a text");
    assert!(detail.starts_with(Reason::Unreachable.sentence()), "{detail}");
    assert!(
        detail.ends_with(" https://a.example/robots.txt: the server answered 503."),
        "{detail}"
    );
}

#[test]
fn a_refusal_for_a_prohibited_address_says_its_kind() {
    let decision = decided(Verdict::Deny, Reason::Egress);
    let error = "10.0.0.1 is a private address, which bots cannot reach unless egress.allow lists it";
    let grounds = DecisionTexts {
        robots_error: Some(error.to_owned()),
        ..decision.clone()
    };
    let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");
    let (_, params) = only_member(header(&answer, "proxy-status"));
    let error_type = ("error".to_owned(), "destination_ip_prohibited".to_owned());
    assert_eq!(params, [error_type, ("details".to_owned(), format!("\"{error}\""))]);
    let detail = json(&answer)["detail"].as_str().expect("a text").to_owned();
    let sentence = Reason::Egress.sentence().trim_end_matches('.');
    assert_eq!(detail, format!("{sentence}: {error}."));
}

#[test]
fn the_decision_field_marks_requests_that_report_forwards() {
    for (enforcement, reason, forwarded, params) in [
        (
            Enforcement::Enforce,
            Reason::Unreachable,
            false,
            &["reason", "bot", "robots", "id"][..],
        ),
        (
            Enforcement::Report,
            Reason::Unreachable,
            true,
            &["reason", "enforcement", "bot", "robots", "id"],
        ),
        // With this reason, a request is refused even under `report`.
        (
            Enforcement::Report,
            Reason::Egress,
            false,
            &["reason", "bot", "robots", "id"],
        ),
        (
            Enforcement::Exempt,
            Reason::Exempt,
            true,
            &["reason", "bot", "robots", "id"],
        ),
    ] {
        let decision = DecisionTexts {
            enforcement,
            forwarded,
            ..decided(Verdict::Deny, reason)
        };
        let (_, found) = item(&decision.clone().field());
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, params, "{enforcement}");
    }
}

#[test]
fn every_reason_gives_a_valid_decision_field() {
    for reason in Reason::ALL {
        for verdict in [Verdict::Allow, Verdict::Deny, Verdict::Unverifiable] {
            let decision = decided(verdict, reason);
            let (value, params) = item(&by_rule(&decision, "Allow: /").field());
            assert_eq!(value, verdict.as_str());
            assert_eq!(params[0], ("reason".to_owned(), reason.as_str().to_owned()));
        }
    }
}

#[test]
fn a_missing_proof_is_a_407_only_if_credentials_would_help() {
    let decision = decided(Verdict::Deny, Reason::Unauthenticated);
    for (challenge, status, phrase) in [
        (true, 407, "Proxy Authentication Required"),
        (false, 403, "Disallowed: bot does not prove who it is"),
    ] {
        let grounds = DecisionTexts {
            challenge,
            ..decision.clone()
        };
        let answer = OwnResponse::refusal(&grounds, &HeaderMap::new(), &Refusals::default(), "robotgate");
        assert_eq!(answer.head.status, status);
        assert_eq!(answer.head.get_reason_phrase(), Some(phrase));
        let field = answer.head.headers.get(header::PROXY_AUTHENTICATE);
        let field = field.map(|value| value.to_str().expect("ASCII"));
        assert_eq!(
            field,
            challenge.then_some("Basic realm=\"robotgate\", charset=\"UTF-8\"")
        );
        let (value, params) = item(header(&answer, "robots-decision"));
        assert_eq!((value.as_str(), params[0].1.as_str()), ("deny", "unauthenticated"));
        assert_eq!(
            (&json(&answer)["status"], &json(&answer)["title"]),
            (&json!(status), &json!(phrase))
        );
        let detail = json(&answer)["detail"].to_string();
        assert!(detail.contains("it lacks a required proof"), "{detail}");
        assert_eq!(detail.contains("NAME:SECRET@"), challenge, "{detail}");
    }
}

#[test]
fn the_configured_status_is_used_for_refusals_by_robots_txt() {
    let refusals = Refusals {
        status: StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
        unreachable_status: StatusCode::SERVICE_UNAVAILABLE,
    };
    for reason in Reason::ALL {
        let decision = decided(Verdict::Deny, reason);
        let answer = OwnResponse::refusal(&decision.clone(), &HeaderMap::new(), &refusals, "robotgate");
        let status = match reason {
            Reason::Rule | Reason::LastCopy => 451,
            Reason::Unreachable => 503,
            _ => 403,
        };
        assert_eq!(answer.head.status, status, "{reason:?}");
        assert_eq!(answer.head.get_reason_phrase(), Some(reason.phrase()), "{reason:?}");
        assert_eq!(json(&answer)["status"], status, "{reason:?}");
        assert!(answer.keeps_connection, "{reason:?}");

        let challenged = DecisionTexts {
            challenge: true,
            ..decision.clone()
        };
        let answer = OwnResponse::refusal(&challenged, &HeaderMap::new(), &refusals, "robotgate");
        assert_eq!(answer.head.status, 407, "{reason:?}");
    }
}

#[test]
fn a_temporary_refusal_has_retry_after() {
    let decision = decided(Verdict::Deny, Reason::Unreachable);
    for (retry_after, field) in [(Some(60), Some("60")), (None, None)] {
        let grounds = DecisionTexts {
            retry_after,
            ..decision.clone()
        };
        let request = accepting(&["text/plain"]);
        let answer = OwnResponse::refusal(&grounds, &request, &Refusals::default(), "robotgate");
        let found = answer.head.headers.get(header::RETRY_AFTER);
        assert_eq!(found.map(|value| value.as_bytes()), field.map(str::as_bytes));
        assert_eq!(text(&answer).contains("\nTry again in 60 s.\n"), field.is_some());
    }
}
