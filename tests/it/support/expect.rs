//! Assertions. Those about a response show the whole response if they fail.

use std::collections::BTreeSet;

use super::{Field, Response};

/// Asserts that the request was allowed for this reason, and that the origin responded with 200.
#[track_caller]
pub fn allowed(response: &Response, reason: &str) -> Field {
    assert_eq!(response.status, 200, "{response:#?}");
    let decision = response.decision();
    assert_eq!(decision.value(), "allow", "{response:#?}");
    assert_eq!(decision.param("reason").as_deref(), Some(reason), "{response:#?}");
    decision
}

/// Asserts that the request was refused for this reason.
#[track_caller]
pub fn refused(response: &Response, reason: &str) -> Field {
    assert_eq!(response.status, 403, "{response:#?}");
    let decision = response.decision();
    assert_ne!(decision.value(), "allow", "{response:#?}");
    assert_eq!(decision.param("reason").as_deref(), Some(reason), "{response:#?}");
    let error = match reason {
        "egress" => "destination_ip_prohibited",
        _ => "http_request_denied",
    };
    assert_eq!(
        response.proxy_status().param("error").as_deref(),
        Some(error),
        "{response:#?}"
    );
    decision
}

/// Asserts that the response is an error of the proxy, with this status and one of these error types in `Proxy-Status`.
#[track_caller]
pub fn failed(response: &Response, status: u16, errors: &[&str]) {
    assert_eq!(response.status, status, "{response:#?}");
    let error = response.proxy_status().param("error").unwrap_or_default();
    assert!(
        errors.contains(&error.as_str()),
        "{error:?} is none of {errors:?}: {response:#?}"
    );
}

/// Asserts that two lists contain the same names, in any order. If not, shows the names that are missing in `place` and
/// those that are unexpected there.
#[track_caller]
pub fn same_members<'a>(place: &str, found: impl IntoIterator<Item = &'a str>, wanted: &[&'a str]) {
    let found: BTreeSet<&str> = found.into_iter().collect();
    let wanted: BTreeSet<&str> = wanted.iter().copied().collect();
    let missing: Vec<_> = wanted.difference(&found).collect();
    let extra: Vec<_> = found.difference(&wanted).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{place}: missing {missing:?}, unexpected {extra:?}"
    );
}
