//! Logs clients that reject the certificates which robotgate uses to intercept connections. The log names the client,
//! and a command that shows how to make the client trust the local certificate authority.
//!
//! A client rejects a certificate in one of three ways:
//!
//! - It sends a TLS alert.
//! - It closes the connection during the handshake.
//! - It closes the connection right after the handshake, before the first byte of a request. Node.js and programs that
//!   use GnuTLS check the certificate only then.
//!
//! Chromium also closes connections in the last two ways although it trusts the certificate: it opens a spare
//! connection, and closes it once another one serves its requests over HTTP/2. So a close is a sign of rejection only
//! if the same program sends nothing on its other connections to the same origin.

use std::{
    hash::Hash,
    time::{Duration, SystemTime},
};

use http::HeaderValue;

use super::{client_connection::OuterConnect, context::Context, handshake::cause};
use crate::{origin::Scheme, ratelimited::ratelimited, text::plain, trust::RejectionKind, trust::clients};

/// Logs why a TLS handshake with a client failed. Looks for the client's alert in the text of `error`, because pingora
/// reports the alert only there.
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
            ratelimited!(info, %client, %origin, error = cause, "a TLS handshake with a client failed");
        }
    }
}

/// Logs that a client closed a connection without sending anything on it. Logs this only for a TLS connection inside a
/// CONNECT that the client closed soon after the handshake, because the client may then have rejected the certificate.
/// `after` is the time from the moment when the client could first send, until it closed the connection.
pub(super) async fn log_silent_close(after: Duration, context: &Context) {
    if let Some(outer_connect) = &context.connection.outer_connect
        && outer_connect.origin.scheme == Scheme::Https
        && after < AT_ONCE
    {
        log_close("closed after the handshake", outer_connect, context).await;
    }
}

/// Notes that a client sent bytes on a connection inside a CONNECT, so it trusts the certificate.
pub(super) fn note_trust(context: &Context) {
    if let Some(outer_connect) = &context.connection.outer_connect
        && let Some(program) = program(outer_connect, context)
    {
        context.live.rejections.note_trust(program, SystemTime::now());
    }
}

/// Logs that a client closed a connection, probably because it rejects the certificate. Logs nothing if the client is a
/// browser, or if its other connections show that it trusts the certificate.
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

/// Returns the client's address, the User-Agent of its CONNECT, and the CONNECT's origin. Connections that agree in all
/// three probably belong to the same program. Returns `None` if the CONNECT has no User-Agent.
fn program<'a>(outer_connect: &'a OuterConnect, context: &Context) -> Option<impl Hash + 'a> {
    let user_agent = outer_connect.user_agent.as_ref()?;
    Some((
        context.connection.guard.key(),
        &outer_connect.origin,
        user_agent.as_bytes(),
    ))
}

/// Returns whether the client is a browser. If a browser closes a connection, this does not show that it rejects the
/// certificate: to reject one, browsers send an alert, and they close spare connections at any time.
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

/// TLS alerts that reject a certificate (RFC 8446 §6.2), by rustls's names for them. Java and browsers, which check
/// certificates by rules of their own, send `certificate_unknown`.
const ALERTS: [&str; 4] = ["UnknownCA", "BadCertificate", "CertificateUnknown", "UnknownCa"];
const GONE: [&str; 3] = ["handshake eof", "reset by peer", "Broken pipe"];
/// Maximum length of a User-Agent in the log, in bytes.
const MAX_USER_AGENT: usize = 200;
/// After a client closed a connection, robotgate waits this long for bytes on the client's other connections, which
/// would show that the client trusts the certificate. A client closes a spare connection when it is about to use
/// another one.
const GRACE: Duration = Duration::from_secs(1);
/// A client that rejects the certificate closes the connection soon after the handshake. If it closes the connection
/// later than this, robotgate does not log a rejection.
const AT_ONCE: Duration = Duration::from_secs(1);
