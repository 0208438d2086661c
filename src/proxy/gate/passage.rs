//! What one request carries from step to step, and which of its origin's addresses is tried.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::Version;
use pingora::{Error, ErrorType, Result, protocols::ALPN, proxy::Session, upstreams::peer::HttpPeer};

use crate::{
    metrics::Method,
    origin::Origin,
    proxy::{clients::Asking, exchange::Exchange, generation::Generation},
    upstream::{self, Fault, Timeouts},
};

/// See the module's text.
pub(in crate::proxy) struct Passage {
    pub(super) exchange: Exchange,
    /// The origin's checked addresses, found once; those that did not answer are taken off.
    addresses: Vec<SocketAddr>,
    connecting: Option<Instant>,
    /// Informational responses of the origin so far.
    pub(super) informational: usize,
    pub(super) fault: Option<Fault>,
    /// Its place among the requests of its client.
    pub(super) asking: Option<Asking>,
}

// === impl Passage ===

impl Passage {
    pub(super) fn new(generation: Arc<Generation>) -> Self {
        Self {
            // The request is not known yet.
            exchange: Exchange::new(generation, Method::Other),
            addresses: Vec::new(),
            connecting: None,
            informational: 0,
            fault: None,
            asking: None,
        }
    }

    /// The origin, at the next of its addresses that is to be tried.
    pub(super) async fn peer(&mut self, session: &Session) -> Result<HttpPeer> {
        let connecting = *self.connecting.get_or_insert_with(Instant::now);
        let generation = self.exchange.generation.clone();
        let Some(origin) = self
            .exchange
            .decision()
            .map(|decision| decision.target().origin.clone())
        else {
            return Error::e_explain(ErrorType::InternalError, "no decision was taken");
        };
        if self.addresses.is_empty() {
            match reach(&generation, &origin).await {
                Ok(addresses) => self.addresses = addresses,
                Err(fault) => {
                    self.fault = Some(fault);
                    return Err(Error::new_up(ErrorType::ConnectError));
                }
            }
        }
        let Some(address) = self.addresses.first().copied() else {
            return Error::e_explain(ErrorType::InternalError, "there is no address left");
        };
        self.exchange.upstream = Some(address);
        let proxy = &generation.config.proxy;
        let timeouts = Timeouts {
            connect: upstream::share_of(proxy.connect_timeout, connecting.elapsed(), self.addresses.len()),
            read: silence(session, proxy),
            write: proxy.write_timeout,
            idle: proxy.idle_timeout,
        };
        // The origin is spoken to as the client speaks: upgrades exist in HTTP/1.1 only, and
        // trailers that a client waits for come through in HTTP/2.
        let alpn = match session.req_header().version {
            Version::HTTP_2 => ALPN::H2H1,
            _ => ALPN::H1,
        };
        let peer = upstream::peer(&origin, address, alpn, timeouts);
        Ok(match session.is_upgrade_req() {
            true => upstream::for_upgrade(peer),
            false => peer,
        })
    }

    /// Notes that there is a connection, an earlier one or of its own.
    pub(super) fn note_connected(&mut self, reused: bool) {
        self.fault = None;
        self.exchange.timings.connect = self.connecting.filter(|_| !reused).map(|since| since.elapsed());
    }

    /// That robotgate itself has not begun to listen there since the address was checked. Nothing was sent yet.
    pub(super) fn check_connected(&mut self) -> Result<()> {
        let Some(address) = self.exchange.upstream else {
            return Ok(());
        };
        match self.exchange.generation.egress.check_again(address) {
            Ok(()) => Ok(()),
            Err(prohibited) => {
                self.fault = Some(prohibited.into());
                Err(Error::new_up(ErrorType::ConnectError))
            }
        }
    }

    /// Notes why an address could not be connected to. Whether there is another to be tried.
    pub(super) fn note_not_connected(&mut self, error: &Error) -> bool {
        self.fault = Some(Fault::from_pingora(error));
        let more = self.addresses.len() > 1;
        if more {
            self.addresses.remove(0);
        }
        more
    }
}

/// The checked addresses of `origin`, never none.
async fn reach(generation: &Generation, origin: &Origin) -> Result<Vec<SocketAddr>, Fault> {
    upstream::check_name(origin)?;
    Ok(generation.egress.addresses(&origin.host, origin.port).await?)
}

/// How long either side may say nothing: what may become a WebSocket is allowed more.
fn silence(session: &Session, times: &crate::config::Proxy) -> Duration {
    if session.is_upgrade_req() {
        times.tunnel_idle_timeout
    } else {
        times.read_timeout
    }
}
