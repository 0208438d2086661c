//! Checks whether an origin's `101` opens the WebSocket that a client asked for (RFC 6455 §4.1). Through any other
//! `101`, the client could send requests that robotgate does not decide. Does no I/O.

use http::{HeaderMap, HeaderValue, header};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

pub(super) fn is_accepted(request: &HeaderMap, response: &HeaderMap) -> bool {
    let lists = |name, option: &str| {
        let values = response.get_all(name).iter().map(HeaderValue::as_bytes);
        values
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|found| found.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
    };
    let Some(key) = request.get(header::SEC_WEBSOCKET_KEY) else {
        return false;
    };
    let mut accepts = response.get_all(header::SEC_WEBSOCKET_ACCEPT).iter();
    let fits = accepts
        .next()
        .is_some_and(|accept| accept.as_bytes() == accept_of(key.as_bytes()).as_bytes());
    fits && accepts.next().is_none()
        && lists(header::CONNECTION, "upgrade")
        && response.get_all(header::UPGRADE).iter().count() == 1
        && lists(header::UPGRADE, "websocket")
}

fn accept_of(key: &[u8]) -> String {
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key);
    digest.update(GUID);
    data_encoding::BASE64.encode(digest.finish().as_ref())
}

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_the_response_to_this_handshake_opens_a_websocket() {
        let request = fields(&[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]);
        let good = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ];
        assert!(is_accepted(&request, &fields(&good)));
        assert!(!is_accepted(&HeaderMap::new(), &fields(&good)));
        for (at, value) in [
            (0, "close"),
            (1, "h2c"),
            (1, "websocket/13"),
            (2, "s3pPLMBiTxaQ9kYGzzhZRbK+xOp="),
            (2, ""),
        ] {
            let mut bad = good;
            bad[at].1 = value;
            assert!(!is_accepted(&request, &fields(&bad)), "{bad:?}");
            let mut less = good.to_vec();
            less.remove(at);
            assert!(!is_accepted(&request, &fields(&less)), "{less:?}");
        }
    }
}
