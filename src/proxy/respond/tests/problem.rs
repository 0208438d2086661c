//! Tests the response to a request that robotgate cannot serve.

use std::collections::HashSet;

use super::*;
use crate::{
    egress::{EgressError, Guard, ResolveError},
    origin::{Host, HostPortError},
    proxy::limits::Limit,
};

fn response_to(problem: &Problem<'_>) -> (u16, String, String) {
    let answer = OwnResponse::problem(problem, &HeaderMap::new(), "robotgate");
    assert!(!has(&answer, "robots-decision"), "an error is no verdict");
    assert_eq!(header(&answer, "cache-control"), "no-store");
    assert_eq!(header(&answer, "content-length"), answer.body.len().to_string());

    let (name, params) = only_member(header(&answer, "proxy-status"));
    assert_eq!(name, "robotgate");
    let names: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["error", "details"]);
    let (_, error) = params[0].clone();

    let body = json(&answer);
    let status = answer.head.status.as_u16();
    assert_eq!(body["status"], status);
    assert_eq!(body["type"], format!("http://robotgate.internal/problems#{error}"));
    assert_eq!(body["title"].as_str(), answer.head.get_reason_phrase());
    let members: HashSet<&str> = body
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, HashSet::from(["type", "title", "status", "detail"]));
    let (logged, detail) = problem.for_log();
    assert_eq!(
        (logged.as_str(), body["detail"].as_str()),
        (error.as_str(), Some(detail.as_str()))
    );
    let phrase = answer.head.get_reason_phrase().unwrap_or_default().to_owned();
    (status, error, phrase)
}

#[test]
fn an_unusable_head_is_a_client_error() {
    for (error, status, title) in [
        (HeadError::Timeout, 408, "Request Timeout"),
        (HeadError::TooLarge(1024), 431, "Request Header Fields Too Large"),
        (HeadError::TooManyFields(1), 431, "Request Header Fields Too Large"),
        (HeadError::Syntax("x"), 400, "Bad Request"),
        (HeadError::TargetCharacter('<'), 400, "Bad Request"),
        (HeadError::ConnectTarget(HostPortError::Host), 400, "Bad Request"),
        (
            HeadError::TargetHostEscaped(Host::Name("a.example".into())),
            400,
            "Bad Request",
        ),
        (
            HeadError::HostEscaped(Host::Name("a.example".into())),
            400,
            "Bad Request",
        ),
        (HeadError::ConnectPort, 400, "Bad Request"),
        (HeadError::HostDiffers, 400, "Bad Request"),
        (HeadError::TargetScheme, 400, "Bad Request"),
        (HeadError::NestedConnect, 400, "Bad Request"),
    ] {
        let expected = (status, "http_request_error".to_owned(), title.to_owned());
        assert_eq!(response_to(&Problem::Head(&error)), expected, "{error:?}");
    }
}

#[test]
fn an_unusable_target_is_a_client_error() {
    for error in [
        TargetError::OriginForm,
        TargetError::Scheme,
        TargetError::HostPort(HostPortError::UserInfo),
        TargetError::Host(HostPortError::Port),
        TargetError::HostDiffers,
        TargetError::ThroughDiffers,
        TargetError::Encoding,
        TargetError::Ambiguous,
    ] {
        let expected = (400, "http_request_error".to_owned(), "Bad Request".to_owned());
        assert_eq!(response_to(&Problem::Target(&error)), expected, "{error:?}");
    }
}

#[test]
fn an_upstream_fault_has_the_type_and_status_of_rfc_9209() {
    let origin = "http://169.254.169.254".parse().expect("an origin");
    let prohibited = Guard::default().screen(&origin).expect_err("prohibited");
    let resolve = |error| Fault::from(EgressError::from(error));
    let text = || "x".to_owned();
    for (fault, status, error) in [
        (resolve(ResolveError::NotFound), 502, "dns_error"),
        (resolve(ResolveError::NoAddress), 502, "dns_error"),
        (resolve(ResolveError::Code(text())), 502, "dns_error"),
        (resolve(ResolveError::Other(text())), 502, "dns_error"),
        (resolve(ResolveError::Timeout), 504, "dns_timeout"),
        (EgressError::from(prohibited).into(), 502, "destination_ip_prohibited"),
        (Fault::Unroutable, 502, "destination_ip_unroutable"),
        (Fault::ConnectionRefused, 502, "connection_refused"),
        (Fault::ConnectionTerminated, 502, "connection_terminated"),
        (Fault::ConnectionTimeout, 504, "connection_timeout"),
        (Fault::ReadTimeout, 504, "connection_read_timeout"),
        (Fault::WriteTimeout, 504, "connection_write_timeout"),
        (Fault::TlsProtocol(text()), 502, "tls_protocol_error"),
        (Fault::TlsCertificate(text()), 502, "tls_certificate_error"),
        (Fault::TlsAlert(text()), 502, "tls_alert_received"),
        (Fault::ResponseIncomplete, 502, "http_response_incomplete"),
        (Fault::HttpProtocol, 502, "http_protocol_error"),
        (Fault::Internal(text()), 500, "proxy_internal_error"),
    ] {
        let title = match status {
            500 => "Internal Server Error",
            502 => "Bad Gateway",
            _ => "Gateway Timeout",
        };
        let expected = (status, error.to_owned(), title.to_owned());
        assert_eq!(response_to(&Problem::Fault(&fault)), expected, "{fault:?}");
    }
}

#[test]
fn each_problem_of_the_proxy_itself_has_its_own_response() {
    for (problem, status, error, title) in [
        (Problem::Loop, 502, "proxy_loop_detected", "Proxy Loop Detected"),
        (Problem::Audit, 503, "proxy_internal_error", "Audit Log Unavailable"),
        (Problem::Evidence, 503, "proxy_internal_error", "Evidence Unavailable"),
        (Problem::Leaf, 500, "proxy_internal_error", "Internal Server Error"),
        (Problem::Request, 400, "http_request_error", "Bad Request"),
        (Problem::Overloaded, 503, "http_request_denied", "Service Unavailable"),
    ] {
        let expected = (status, error.to_owned(), title.to_owned());
        assert_eq!(response_to(&problem), expected, "{problem:?}");
    }
}

#[test]
fn a_temporary_problem_has_retry_after_and_keeps_the_connection() {
    for (problem, passes) in [
        (Problem::Overloaded, true),
        (Problem::Audit, true),
        (Problem::Limit(Limit::ClientFetches), true),
        (Problem::Limit(Limit::ClientRequests), true),
        (Problem::Loop, false),
        (Problem::Request, false),
        (Problem::Slow, false),
        (Problem::Leaf, false),
    ] {
        let answer = OwnResponse::problem(&problem, &HeaderMap::new(), "robotgate");
        assert_eq!(has(&answer, "retry-after"), passes, "{problem:?}");
        assert_eq!(answer.keeps_connection, passes, "{problem:?}");
    }
    let answer = OwnResponse::problem(&Problem::Overloaded, &HeaderMap::new(), "robotgate");
    assert_eq!(header(&answer, "retry-after"), "10");
    assert!(
        json(&answer)["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("try again"))
    );
}

#[test]
fn a_client_that_prefers_text_gets_a_problem_as_text() {
    let answer = OwnResponse::problem(
        &Problem::Fault(&Fault::ConnectionRefused),
        &accepting(&["text/plain"]),
        "robotgate",
    );
    assert_eq!(text(&answer), "502 Bad Gateway\n\nthe server refused the connection\n");
}
