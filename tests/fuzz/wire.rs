//! Parses the head of a request as an origin does.

use robotgate::origin::{HostPort, Origin};

/// The only request on the wire.
pub struct OnWire {
    pub method: String,
    pub path: Vec<u8>,
}

/// Parses the only request on `wire`, which goes to `origin`.
///
/// # Panics
/// If there is not exactly one request, or two parsers could read it differently.
pub fn only_request(wire: &[u8], origin: &Origin) -> OnWire {
    let mut fields = [httparse::EMPTY_HEADER; 160];
    let mut request = httparse::Request::new(&mut fields);
    let read = request.parse(wire);
    assert_eq!(
        read,
        Ok(httparse::Status::Complete(wire.len())),
        "{}",
        wire.escape_ascii()
    );

    let lines = wire.split_inclusive(|byte| *byte == b'\n');
    assert!(lines.into_iter().all(|line| line.ends_with(b"\r\n")));
    let path = request.path.unwrap_or_default().as_bytes();
    assert!(
        path.starts_with(b"/") || (path == b"*" && request.method == Some("OPTIONS")),
        "{}",
        path.escape_ascii()
    );
    assert!(
        path.iter().all(|byte| *byte > b' ' && !matches!(byte, 0x7F | b'#')),
        "{}",
        path.escape_ascii()
    );

    let values = |name: &'static str| {
        let named = request
            .headers
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value)
    };
    let hosts: Vec<_> = values("host").collect();
    assert_eq!(hosts, [origin.host_field().as_bytes()]);
    let host = HostPort::parse(hosts[0]).expect("it is of an origin");
    assert!(origin.is_named_by(&host), "{origin} {host:?}");
    assert!(values("content-length").chain(values("transfer-encoding")).count() <= 1);
    OnWire {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
    }
}
