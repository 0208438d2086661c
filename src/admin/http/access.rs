//! Access control of the admin listener. If a token is configured, clients must present it. If none is configured, only
//! clients on this machine are served, and requests from web pages of other origins are refused. The paths in [`OPEN`]
//! need no token, and web pages may request them. Does no I/O.

use std::{net::IpAddr, sync::Arc};

use axum::{extract::State, middleware::Next, response::Response};
use http::{HeaderMap, Version, header, request::Parts};

use super::{Context, connection::ConnectionInfo, problem::Problem};
use crate::config::AdminToken;

pub(super) async fn check(
    State(context): State<Arc<Context>>,
    request: axum::extract::Request,
    next: Next,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let generation = context.live.generation();
    may_ask(&head, generation.config.admin.token.as_ref())?;
    drop(generation);
    Ok(next.run(http::Request::from_parts(head, body)).await)
}

fn may_ask(head: &Parts, token: Option<&AdminToken>) -> Result<(), Problem> {
    let path = head.uri.path();
    match token {
        Some(_) if OPEN.contains(&path) => Ok(()),
        Some(token) => match bearer(&head.headers) {
            None => Err(Problem::NoToken),
            Some(presented) if token.is(presented) => Ok(()),
            Some(_) => Err(Problem::WrongToken),
        },
        // Removing the token from the configuration must not open the API to every machine.
        None if !is_from_this_host(head) => Err(Problem::Remote),
        None if !is_local_name(head) => Err(Problem::Host),
        None if !OPEN.contains(&path) && is_of_another_page(&head.headers) => Err(Problem::CrossSite),
        None => Ok(()),
    }
}

/// Returns the token of a request (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut fields = headers.get_all(header::AUTHORIZATION).iter();
    let (field, None) = (fields.next()?.as_bytes(), fields.next()) else {
        return None;
    };
    let (scheme, token) = field.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

fn is_from_this_host(head: &Parts) -> bool {
    head.extensions
        .get::<ConnectionInfo>()
        .is_some_and(|info| info.is_local)
}

/// Accepts only `localhost` and IP addresses. A web site could make any other name resolve to this machine (DNS
/// rebinding), and its pages would then have the same origin as this API.
fn is_local_name(head: &Parts) -> bool {
    if let Some(host) = head.uri.host() {
        return is_local(host);
    }
    let mut fields = head.headers.get_all(header::HOST).iter();
    match (fields.next(), fields.next()) {
        // HTTP/1.0 needs no Host field, and no browser uses HTTP/1.0.
        (None, None) => head.version == Version::HTTP_10,
        (Some(host), None) => host.to_str().is_ok_and(|host| is_local(without_port(host))),
        _ => false,
    }
}

fn is_local(host: &str) -> bool {
    let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost") || inside.unwrap_or(host).parse::<IpAddr>().is_ok()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Returns whether a browser says that a page of another origin sends the request.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

/// Paths whose responses contain nothing secret, so they need no token. The operators' page itself asks for the token.
pub(super) const OPEN: [&str; 8] = [
    "/",
    "/page.css",
    "/page.js",
    "/healthz",
    "/readyz",
    "/ca.pem",
    "/ca.crt",
    "/trust",
];

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(target: &str, fields: &[(&'static str, &str)]) -> Parts {
        let request = fields.iter().fold(Request::get(target), |request, (name, value)| {
            request.header(*name, *value)
        });
        let request = request.extension(ConnectionInfo { is_local: true });
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn without_a_token_the_host_must_be_a_loopback_or_local_name() {
        for (host, is_served) in [
            ("127.0.0.1:3180", true),
            ("127.0.0.1", true),
            ("[::1]:3180", true),
            ("[::1]", true),
            ("localhost:3180", true),
            ("LocalHost", true),
            ("10.0.0.7:3180", true),
            ("gate.example:3180", false),
            ("localhost.example", false),
            ("127.0.0.1.example:3180", false),
            ("", false),
            ("::1", true),
        ] {
            let served = may_ask(&head("/metrics", &[("host", host)]), None).is_ok();
            assert_eq!(served, is_served, "{host}");
        }
        assert!(may_ask(&head("http://gate.example/", &[("host", "127.0.0.1")]), None).is_err());
        let twice = [("host", "127.0.0.1"), ("host", "127.0.0.1")];
        assert!(may_ask(&head("/", &twice), None).is_err());
        assert!(may_ask(&head("/", &[]), None).is_err());
    }

    #[test]
    fn without_a_token_other_machines_are_refused() {
        let mut head = head("/api/v1/status", &[("host", "192.0.2.7:3180")]);
        assert!(may_ask(&head, None).is_ok());
        head.extensions.insert(ConnectionInfo { is_local: false });
        assert!(matches!(may_ask(&head, None), Err(Problem::Remote)));
        head.extensions.clear();
        assert!(matches!(may_ask(&head, None), Err(Problem::Remote)));
    }

    #[test]
    fn pages_of_other_origins_get_no_data() {
        for (site, is_served) in [
            ("same-origin", true),
            ("none", true),
            ("same-site", false),
            ("cross-site", false),
        ] {
            let fields = [("host", "localhost"), ("sec-fetch-site", site)];
            assert_eq!(
                may_ask(&head("/api/v1/status", &fields), None).is_ok(),
                is_served,
                "{site}"
            );
            assert!(may_ask(&head("/", &fields), None).is_ok(), "{site}");
        }
    }

    #[test]
    fn the_token_is_read_from_a_single_authorization_field() {
        for (fields, presented) in [
            (&[][..], None),
            (&[("authorization", "Bearer abc")][..], Some(&b"abc"[..])),
            (&[("authorization", "bearer  abc ")][..], Some(b"abc")),
            (&[("authorization", "Basic abc")][..], None),
            (&[("authorization", "Bearer")][..], None),
            (
                &[("authorization", "Bearer abc"), ("authorization", "Bearer abc")][..],
                None,
            ),
        ] {
            assert_eq!(bearer(&head("/", fields).headers), presented, "{fields:?}");
        }
    }
}
