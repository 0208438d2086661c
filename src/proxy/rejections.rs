//! Logs clients that reject the certificates of the interception, which they do in three ways: by a TLS alert, by
//! closing in the middle of the handshake, or by closing right behind it, before a byte of a request (Node.js and what
//! is made with GnuTLS look at a certificate only then). The log names the client and what to set in it.
//!
//! Chromium closes connections in the last two ways too, though it trusts the certificate: it opens a spare one and
//! closes it as soon as another serves it over HTTP/2. So a close counts only where the same program sends nothing on
//! any other connection to the same origin either.

use std::{
    hash::Hash,
    time::{Duration, SystemTime},
};

use http::HeaderValue;

use super::{client_connection::OuterConnect, context::Context, handshake::cause};
use crate::{origin::Scheme, ratelimited::ratelimited, text::plain, trust::RejectionKind, trust::clients};

/// Logs why a client broke the handshake off. pingora passes the alert on only as text.
pub(super) async fn log_failed_handshake(error: &pingora::Error, outer_connect: &OuterConnect, context: &Context) {
    let text = error.to_string();
    let cause = cause(error);
    let is_alert = ALERTS.iter().any(|alert| text.contains(alert));
    let is_gone = GONE.iter().any(|sign| text.contains(sign));
    match (is_alert, is_gone) {
        (true, _) => log_rejection(RejectionKind::Distrust, &cause, outer_connect, context),
        (_, true) => log_close(&cause, outer_connect, context).await,
        _ => {
            let (client, origin) = (context.connection.client, &outer_connect.origin);
            ratelimited!(info, %client, %origin, error = cause, "a TLS handshake failed");
        }
    }
}

/// Logs a client that sent nothing on a connection, `after` it could. Only within TLS, and at once, does that say
/// something.
pub(super) async fn log_silent_close(after: Duration, context: &Context) {
    if let Some(outer_connect) = &context.connection.outer_connect
        && outer_connect.origin.scheme == Scheme::Https
        && after < AT_ONCE
    {
        log_close("closed after the handshake", outer_connect, context).await;
    }
}

/// Notes that a client sent something on a connection inside a CONNECT.
pub(super) fn note_trust(context: &Context) {
    if let Some(outer_connect) = &context.connection.outer_connect
        && let Some(program) = program(outer_connect, context)
    {
        context.live.rejections.note_trust(program, SystemTime::now());
    }
}

/// Logs a close, unless the client's other connections show that it means nothing.
async fn log_close(cause: &str, outer_connect: &OuterConnect, context: &Context) {
    if outer_connect.user_agent.as_ref().is_some_and(is_browser) {
        return;
    }
    if let Some(program) = program(outer_connect, context) {
        let mut stopping = context.shutdown.clone();
        tokio::select! {
            () = tokio::time::sleep(GRACE) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
        if context.live.rejections.trusts(program, SystemTime::now()) {
            return;
        }
    }
    if !*context.shutdown.borrow() {
        log_rejection(RejectionKind::Closed, cause, outer_connect, context);
    }
}

/// Which program it is and what it connects to, as far as the CONNECT says. Nobody knows which one sends no User-Agent.
fn program<'a>(outer_connect: &'a OuterConnect, context: &Context) -> Option<impl Hash + 'a> {
    let user_agent = outer_connect.user_agent.as_ref()?;
    Some((
        context.connection.guard.key(),
        &outer_connect.origin,
        user_agent.as_bytes(),
    ))
}

/// Browsers look at the certificate within the handshake, say so by an alert, and close spare connections at any time.
fn is_browser(user_agent: &HeaderValue) -> bool {
    let text = String::from_utf8_lossy(user_agent.as_bytes());
    matches!(clients::guess(&text), Some("chromium" | "firefox"))
}

fn log_rejection(kind: RejectionKind, cause: &str, outer_connect: &OuterConnect, context: &Context) {
    let client = context.connection.client;
    let user_agent = outer_connect
        .user_agent
        .as_ref()
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    let user_agent = user_agent.as_ref().map(|text| plain(text, MAX_USER_AGENT));
    let user_agent = user_agent.as_deref();
    context.live.metrics.distrusted(kind);
    let origin = outer_connect.origin.to_string();
    let due = context
        .live
        .rejections
        .note(client.ip(), user_agent, &origin, kind, SystemTime::now());
    let Some(count) = due else {
        return;
    };
    let fix = clients::fix(user_agent);
    match kind {
        RejectionKind::Distrust => ratelimited!(
            warn, %client, user_agent, origin, alert = cause, count, fix,
            "a client does not trust robotgate's certificate: `{fix}` shows what to set in the client; or let the \
             host through with [[https.tunnel]]"
        ),
        RejectionKind::Closed => ratelimited!(
            warn, %client, user_agent, origin, alert = cause, count, fix,
            "a client closed the connection when it saw robotgate's certificate, often because it does not trust it: \
             `{fix}` shows what to set in the client; or let the host through with [[https.tunnel]]"
        ),
    }
}

/// Alerts that say so (RFC 8446 §6.2), as rustls names them. What checks by other rules than its own, as Java and
/// browsers do, says `certificate_unknown`.
const ALERTS: [&str; 4] = ["UnknownCA", "BadCertificate", "CertificateUnknown", "UnknownCa"];
const GONE: [&str; 3] = ["handshake eof", "reset by peer", "Broken pipe"];
/// Bytes of a User-Agent that the log shows.
const MAX_USER_AGENT: usize = 200;
/// How long a client's other connections have to show that it trusts the certificate: a spare connection is closed when
/// another is about to be used.
const GRACE: Duration = Duration::from_secs(1);
/// How soon a client closes that has looked at the certificate.
const AT_ONCE: Duration = Duration::from_secs(1);
