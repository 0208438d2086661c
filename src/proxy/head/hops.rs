//! Checks what a request says about its connection: fields for the next hop (RFC 9110 §7.6.1), and upgrades (§7.8).
//! Pure functions, without I/O.
//!
//! Only an upgrade to a WebSocket is forwarded. Through other protocols, a client could send requests that are not
//! decided.

use super::{HeadError, checks::values_of};

/// Refuses a `Connection` field that is malformed, or names one of the fields in `END_TO_END`. The proxy would have to
/// remove the named field, so the origin would get a different request from the one that was decided.
pub(super) fn check_connection(request: &httparse::Request<'_, '_>) -> Result<(), HeadError> {
    for option in options(request, "connection") {
        if !is_token(option) {
            return Err(HeadError::Syntax(
                "its Connection field contains something that is not a token",
            ));
        }
        if END_TO_END
            .iter()
            .any(|name| option.eq_ignore_ascii_case(name.as_bytes()))
        {
            return Err(HeadError::Syntax(
                "its Connection field lists a header field that is meant for the origin too, such as Host or Authorization",
            ));
        }
    }
    Ok(())
}

/// Refuses several Upgrade fields, and upgrades that could hide requests: to HTTP/2 in clear text, to TLS, and to a
/// WebSocket that is not requested as RFC 6455 §4.1 demands. Returns whether the request is for a WebSocket.
pub(super) fn check_upgrade(request: &httparse::Request<'_, '_>) -> Result<bool, HeadError> {
    let wrong = |what| Err(HeadError::Syntax(what));
    if values_of(request, "http2-settings").next().is_some() {
        return wrong("it asks for HTTP/2 without TLS, which robotgate does not support");
    }
    let mut fields = values_of(request, "upgrade");
    let Some(upgrade) = fields.next() else {
        return Ok(false);
    };
    if fields.next().is_some() {
        return wrong("it has several Upgrade fields");
    }
    for protocol in options(request, "upgrade") {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        if [&b"h2c"[..], b"h2", b"http", b"tls"]
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other))
        {
            return wrong("it asks for HTTP/2 without TLS or an upgrade to TLS, which robotgate does not support");
        }
    }
    // Other upgrades, and a WebSocket in HTTP/1.0, are ignored (RFC 9110 §7.8).
    if !upgrade.eq_ignore_ascii_case(b"websocket") || request.version == Some(0) {
        return Ok(false);
    }
    check_websocket(request).map(|()| true)
}

fn check_websocket(request: &httparse::Request<'_, '_>) -> Result<(), HeadError> {
    let only = |name| {
        let mut fields = values_of(request, name);
        fields.next().filter(|_| fields.next().is_none())
    };
    let content = values_of(request, "transfer-encoding").next().is_some()
        || values_of(request, "content-length").any(|length| length != b"0");
    let wrong = if request.method != Some("GET") {
        "a WebSocket request must use GET"
    } else if content {
        "a WebSocket request must not have content"
    } else if !options(request, "connection").any(|option| option.eq_ignore_ascii_case(b"upgrade")) {
        "it has an Upgrade field, but its Connection field does not list it"
    } else if only("sec-websocket-version") != Some(b"13") {
        "a WebSocket request must have one Sec-WebSocket-Version field, with the value 13"
    } else if !only("sec-websocket-key").is_some_and(is_key) {
        "a WebSocket request must have one Sec-WebSocket-Key, 16 bytes in base64"
    } else {
        return Ok(());
    };
    Err(HeadError::Syntax(wrong))
}

fn is_key(key: &[u8]) -> bool {
    data_encoding::BASE64.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

fn options<'r, 'b>(request: &'r httparse::Request<'_, 'b>, name: &'r str) -> impl Iterator<Item = &'b [u8]> + 'r {
    values_of(request, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|option| !option.is_empty())
}

fn is_token(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(crate::bot::is_token)
}

/// Fields that a request must not list in `Connection`: they are for the origin, or say where the content ends.
const END_TO_END: [&str; 22] = [
    "accept",
    "accept-encoding",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "from",
    "host",
    "max-forwards",
    "range",
    "referer",
    "transfer-encoding",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];
