//! The way out: turns an origin's host into addresses that bots may reach, and hands those out as
//! the only ones to be dialled.
//!
//! A name is resolved once for a connection, and the address that was checked is the address that
//! is dialled: a name that answers differently the second time gains nothing. Nothing here
//! connects.

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
use crate::origin::Host;

/// The resolver and the guard that checks what it finds.
#[derive(Debug, Clone)]
pub struct Egress {
    pub resolver: Resolver,
    pub guard: Guard,
    /// Never within reach, whatever the guard allows.
    pub listening: Listening,
}

/// Why there is no address to dial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Prohibited(#[from] Prohibited),
}

// === impl Egress ===

impl Egress {
    /// What can be said of a destination before a name is resolved.
    ///
    /// # Errors
    /// Bots may not go there, wherever it is.
    pub fn screen(&self, host: &Host, port: u16) -> Result<(), Prohibited> {
        screen(&self.guard, &self.listening, host, port)
    }

    /// The checked addresses of `host`, in the order in which to try them; never an empty list.
    ///
    /// # Errors
    /// The name has no address, or none that bots may reach.
    pub async fn addresses(&self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, EgressError> {
        self.guard.screen(host, port)?;
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

    /// Whether there is something else behind an address that was checked and is now connected to, but not sent to: robotgate
    /// may have begun to listen there meanwhile, and has said so before anybody could connect.
    ///
    /// # Errors
    /// It has.
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

/// What `guard` says of a destination before a name is resolved, and whether robotgate itself is `listening` there.
///
/// # Errors
/// Bots may not go there, wherever it is.
pub fn screen(guard: &Guard, listening: &Listening, host: &Host, port: u16) -> Result<(), Prohibited> {
    guard.screen(host, port)?;
    match host {
        Host::Ip(address) => check(guard, listening, host, SocketAddr::new(*address, port)),
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
