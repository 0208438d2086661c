//! The way out: turns an origin's host into addresses that bots may reach, and hands those out as
//! the only ones to be dialled.
//!
//! A name is resolved once for a connection, and the address that was checked is the address that
//! is dialled: a name that answers differently the second time gains nothing. Nothing here
//! connects.

mod guard;
mod resolve;
mod roots;

use std::net::{IpAddr, SocketAddr};

pub use self::{
    guard::{Guard, Prohibited},
    resolve::{ResolveError, Resolver, ResolverError},
    roots::{Roots, RootsError},
};
use crate::origin::Host;

/// The resolver and the guard that checks what it finds.
#[derive(Debug, Clone)]
pub struct Egress {
    pub resolver: Resolver,
    pub guard: Guard,
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
    /// The checked addresses of `host`, in the order in which to try them; never an empty list.
    ///
    /// # Errors
    /// The name has no address, or none that bots may reach.
    pub async fn addresses(&self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, EgressError> {
        let found = match host {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolver.lookup(name).await?,
        };
        let mut refused = None;
        let checked: Vec<SocketAddr> = found
            .into_iter()
            .filter(|address: &IpAddr| match self.guard.check(*address) {
                Ok(()) => true,
                Err(prohibited) => {
                    refused.get_or_insert(prohibited);
                    false
                }
            })
            .map(|address| SocketAddr::new(address, port))
            .collect();
        match (checked.is_empty(), refused) {
            (false, _) => Ok(checked),
            (true, Some(prohibited)) => Err(prohibited.into()),
            (true, None) => Err(ResolveError::NoAddress.into()),
        }
    }
}
