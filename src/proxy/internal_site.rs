//! `http://robotgate.internal/`: robotgate's own pages, for clients that use robotgate as their proxy. One of them is
//! the certificate of the certificate authority. Every client that may connect to robotgate can get it there.
//!
//! A request is for this site if its parsed target names this host. robotgate then resolves no name, forwards nothing,
//! and makes and logs no decision. No pages exist under another scheme or port, or through a CONNECT.

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

/// Returns robotgate's own page for `target`, which is on the internal site.
///
/// # Errors
/// Fails if there is no page under this URL and method.
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
    // `from_utf8_lossy` replaces no bytes here, because a target is always valid UTF-8.
    let path = String::from_utf8_lossy(&target.path);
    if path.split('?').next() == Some("/problems") {
        let document = problems::page(form);
        return Ok(OwnResponse::document(document.content_type, document.body));
    }
    let certificate = generation.authority().map(Certificate::from);
    let settings = ClientSettings::new(&proxy(&connection.listener, generation), Ca::Here(CA_NAME));
    // This does not fail, because an IP address with a port is always a valid address of a proxy.
    let settings = settings.map_err(|_| InternalSiteError::Missing(trust::Missing::Page))?;
    let document = trust::page(&path, form, certificate.as_ref(), &settings)?;
    Ok(OwnResponse::document(document.content_type, document.body))
}

/// Returns the proxy URL that the client used to connect to robotgate.
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
        // If an IPv4 client has connected to an IPv6 listener, name the IPv4 form of the address: the client does not
        // know the IPv6 form.
        std::net::SocketAddr::new(address.ip().to_canonical(), address.port())
    };
    match address {
        Some(address) => format!("{scheme}://{}", canonical(address)),
        None => format!("{scheme}://127.0.0.1:3128"),
    }
}
