//! Turns an origin's host into addresses that bots may reach. This module opens no connections to origins.
//!
//! robotgate connects to exactly the address that it checked, so that a name cannot evade the check by resolving to
//! another address later.

mod guard;
mod listening;
mod resolve;
mod roots;
mod special;

use std::net::{IpAddr, SocketAddr};

pub use self::{
    guard::{Destinations, Guard, Ports, Prohibited},
    listening::Listening,
    resolve::{ResolveError, Resolver, ResolverError},
    roots::{Roots, RootsError},
    special::Special,
};
use crate::origin::{Host, Origin};

/// Resolves names, and checks with the guard which addresses bots may reach.
#[derive(Debug, Clone)]
pub struct Egress {
    pub resolver: Resolver,
    pub guard: Guard,
    /// The addresses on which robotgate itself listens. Bots may not reach them.
    pub listening: Listening,
}

/// Why there is no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Prohibited(#[from] Prohibited),
}

// === impl Egress ===

impl Egress {
    /// Checks a destination without resolving its name.
    ///
    /// # Errors
    /// Fails if the guard refuses the scheme, the name or the port, or if the host is an IP address that bots must not
    /// reach.
    pub fn screen(&self, origin: &Origin) -> Result<(), Prohibited> {
        screen(&self.guard, &self.listening, origin)
    }

    /// Returns the checked addresses of `origin` in the order in which to try them. The list is never empty.
    ///
    /// # Errors
    /// Fails if the guard refuses the scheme, the name or the port, if the name cannot be resolved, or if bots may
    /// reach none of the host's addresses.
    pub async fn addresses(&self, origin: &Origin) -> Result<Vec<SocketAddr>, EgressError> {
        self.guard.screen(origin)?;
        let (host, port) = (&origin.host, origin.port);
        let found = match host {
            Host::Ip(address) => [*address].into(),
            Host::Name(name) => self.resolver.lookup(name).await?,
        };
        let mut refused = None;
        let checked: Vec<SocketAddr> = found
            .iter()
            .map(|address: &IpAddr| SocketAddr::new(*address, port))
            .filter(|address| match self.check(host, *address) {
                Ok(()) => true,
                Err(prohibited) => {
                    refused.get_or_insert(prohibited);
                    false
                }
            })
            .collect();
        match (checked.is_empty(), refused) {
            (false, _) => Ok(checked),
            (true, Some(prohibited)) => Err(prohibited.into()),
            (true, None) => Err(ResolveError::NoAddress.into()),
        }
    }

    /// Checks again that `address` does not lead to robotgate itself, because a reload may have added a listener since
    /// the first check. Call this after connecting and before sending.
    ///
    /// # Errors
    /// Fails if robotgate now listens there.
    pub fn check_again(&self, address: SocketAddr) -> Result<(), EgressError> {
        match self.listening.is_reached_by(address) {
            true => Err(Prohibited::OwnListener(address).into()),
            false => Ok(()),
        }
    }

    fn check(&self, host: &Host, address: SocketAddr) -> Result<(), Prohibited> {
        check(&self.guard, &self.listening, host, address)
    }
}

/// Checks a destination against `guard` and robotgate's own listeners without resolving its name.
///
/// # Errors
/// Fails if the guard refuses the scheme, the name or the port, or if the host is an IP address that bots must not
/// reach.
pub fn screen(guard: &Guard, listening: &Listening, origin: &Origin) -> Result<(), Prohibited> {
    guard.screen(origin)?;
    match &origin.host {
        Host::Ip(address) => check(guard, listening, &origin.host, SocketAddr::new(*address, origin.port)),
        Host::Name(_) => Ok(()),
    }
}

fn check(guard: &Guard, listening: &Listening, host: &Host, address: SocketAddr) -> Result<(), Prohibited> {
    guard.check(host, address.ip())?;
    if listening.is_reached_by(address) {
        return Err(Prohibited::OwnListener(address));
    }
    Ok(())
}
