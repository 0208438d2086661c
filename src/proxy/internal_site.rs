//! `http://robotgate.internal/`: robotgate's own pages, such as the certificate of its authority, for every client that
//! may connect. Requests to this site are neither forwarded nor decided, and are not in the audit log.

mod problems;

use http::Method;
use pingora::protocols::l4::socket::SocketAddr as PeerAddr;
use pingora_http::RequestHeader;

use super::{
    client_connection::{ClientConnection, Listener},
    generation::Generation,
    respond::{InternalSiteError, OwnResponse, shows_html},
};
use crate::{
    origin::{Scheme, Target},
    trust::{self, CA_NAME, Ca, Certificate, ClientSettings, Form},
};

pub(super) fn answer(
    request: &RequestHeader,
    target: &Target,
    connection: &ClientConnection,
    generation: &Generation,
) -> Result<OwnResponse, InternalSiteError> {
    if target.origin.scheme != Scheme::Http || target.origin.port != Scheme::Http.default_port() {
        return Err(InternalSiteError::PlainHttp);
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(InternalSiteError::Method);
    }
    let form = match shows_html(&request.headers) {
        true => Form::Html,
        false => Form::Text,
    };
    // A target is always valid UTF-8.
    let path = String::from_utf8_lossy(&target.path);
    if path.split('?').next() == Some("/problems") {
        let document = problems::page(form);
        return Ok(OwnResponse::document(document.content_type, document.body));
    }
    let certificate = generation.authority().map(Certificate::from);
    let settings = ClientSettings::new(&proxy(&connection.listener, generation), Ca::InHome(CA_NAME));
    // This does not fail: a proxy's URL with an IP address and a port is valid.
    let settings = settings.map_err(|_| InternalSiteError::Missing(trust::Missing::Page))?;
    let document = trust::page(&path, form, certificate.as_ref(), &settings)?;
    Ok(OwnResponse::document(document.content_type, document.body))
}

fn proxy(listener: &Listener, generation: &Generation) -> String {
    let local = listener.socket.as_ref().and_then(|socket| socket.local_addr());
    let proxy = &generation.config.proxy;
    let address = match local {
        Some(PeerAddr::Inet(address)) => Some(address),
        _ => proxy.listen.first(),
    };
    let scheme = match listener.tls {
        true => "https",
        false => "http",
    };
    let canonical = |address: &std::net::SocketAddr| {
        // An IPv4 client of an IPv6 listener knows only the IPv4 form of the address.
        std::net::SocketAddr::new(address.ip().to_canonical(), address.port())
    };
    match address {
        Some(address) => format!("{scheme}://{}", canonical(address)),
        None => format!("{scheme}://127.0.0.1:3128"),
    }
}
