//! Logs clients that reject robotgate's certificates, with a command that shows how to make the client trust the local
//! authority.
//!
//! A client rejects a certificate by a TLS alert, or by closing the connection during the handshake or right after it
//! (Node.js and GnuTLS). Chromium also closes spare connections in this way, although it trusts the certificate. So a
//! close does not count if the client is a browser, or if the same program sends something on another connection to the
//! same origin.

use std::{
    hash::Hash,
    time::{Duration, SystemTime},
};

use http::HeaderValue;

use super::{client_connection::OuterConnect, context::Context, handshake::cause};
use crate::{origin::Scheme, ratelimited::ratelimited, text::plain, trust::RejectionKind, trust::clients};

/// Logs why a TLS handshake with a client failed. pingora reports the client's alert only in the text of `error`.
pub(super) async fn log_failed_handshake(error: &pingora::Error, outer_connect: &OuterConnect, context: &Context) {
    let text = error.to_string();
    let cause = cause(error);
    let is_alert = ALERTS.iter().any(|alert| text.contains(alert));
    let is_gone = GONE.iter().any(|sign| text.contains(sign));
    match (is_alert, is_gone) {
        (true, _) => log_rejection(RejectionKind::Distrust, &cause, outer_connect, context),
        (_, true) => log_close(&cause, outer_connect, context).await,
        _ => {
            let (client, origin) = (context.connection.client_for_log(), &outer_connect.origin);
            ratelimited!(info, %client, %origin, error = cause, "a client's TLS handshake inside a CONNECT failed");
        }
    }
}

/// Logs that a client closed a TLS connection inside a CONNECT without a request, if it did so soon after the
/// handshake. The client may then have rejected the certificate.
pub(super) async fn log_silent_close(after: Duration, context: &Context) {
    if let Some(outer_connect) = &context.connection.outer_connect
        && outer_connect.origin.scheme == Scheme::Https
        && after < AT_ONCE
    {
        log_close("closed after the handshake", outer_connect, context).await;
    }
}

/// Notes that a client sent bytes inside a CONNECT, so it trusts the certificate.
pub(super) fn note_trust(context: &Context) {
    if let Some(outer_connect) = &context.connection.outer_connect
        && let Some(program) = program(outer_connect, context)
    {
        context.live.rejections.note_trust(program, SystemTime::now());
    }
}

/// Logs that a client closed a connection, unless the client is a browser or trusts the certificate on another
/// connection, or robotgate is stopping.
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

/// Returns what connections of the same program probably have in common: the client's IPv4 address or IPv6 /64 network,
/// and the User-Agent and the origin of the CONNECT.
fn program<'a>(outer_connect: &'a OuterConnect, context: &Context) -> Option<impl Hash + 'a> {
    let user_agent = outer_connect.user_agent.as_ref()?;
    Some((
        context.connection.guard.key(),
        &outer_connect.origin,
        user_agent.as_bytes(),
    ))
}

/// Returns whether the client is a browser. If it closes a connection, this is no sign of rejection: browsers reject by
/// an alert, and close spare connections at any time.
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
    let fix = context.live.rejections.fix(user_agent);
    let client = context.connection.client_for_log();
    let generation = context.live.current();
    let user_agent = user_agent.map(|text| generation.config.audit.privacy.user_agent(text));
    let user_agent = user_agent.as_deref();
    match kind {
        RejectionKind::Distrust => ratelimited!(
            warn, %client, user_agent, origin, alert = cause, count, fix,
            "a client does not trust robotgate's certificate: `{fix}` shows what to set in the client; or let the \
             host through with [[https.tunnel]]"
        ),
        RejectionKind::Closed => ratelimited!(
            warn, %client, user_agent, origin, alert = cause, count, fix,
            "a client closed the connection when it saw robotgate's certificate, probably because it does not trust \
             this certificate: `{fix}` shows what to set in the client; or let the host through with [[https.tunnel]]"
        ),
    }
}

/// TLS alerts that reject a certificate (RFC 8446 §6.2), by rustls's names. Java and browsers send
/// `certificate_unknown`.
const ALERTS: [&str; 4] = ["UnknownCA", "BadCertificate", "CertificateUnknown", "UnknownCa"];
const GONE: [&str; 3] = ["handshake eof", "reset by peer", "Broken pipe"];
const MAX_USER_AGENT: usize = 200;
/// After a close, robotgate waits this long for bytes on the client's other connections, which would show trust.
const GRACE: Duration = Duration::from_secs(1);
/// A close after the handshake counts as a rejection only within this time.
const AT_ONCE: Duration = Duration::from_secs(1);
