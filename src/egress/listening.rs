//! Where this robotgate listens itself, so that no bot comes back to it through it.
//!
//! It sends nothing. Whether an address is one of the machine's the system is asked, by a socket that
//! is closed at once, and only where the port is one of robotgate's own.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
};

use arc_swap::ArcSwap;

use super::special::reached;

/// The addresses that are listened on, with the ports that were bound. Clones are of one list, so that a request that was
/// begun under an earlier configuration knows those of the latest.
#[derive(Debug, Clone, Default)]
pub struct Listening(Arc<ArcSwap<Vec<SocketAddr>>>);

// === impl Listening ===

impl Listening {
    /// Listens there, and no longer elsewhere. What is bound has to be told of before anybody can connect to it.
    pub fn set(&self, addresses: Vec<SocketAddr>) {
        self.0.store(Arc::new(addresses));
    }

    /// Listens there, too.
    pub fn add(&self, addresses: &[SocketAddr]) {
        self.0.rcu(|before| {
            let mut all = Vec::clone(before);
            all.extend(addresses);
            all
        });
    }

    /// Whether a connection to `address` would be accepted here.
    pub fn is_reached_by(&self, address: SocketAddr) -> bool {
        let there = reached(address.ip());
        let addresses = self.0.load();
        let mut listeners = (addresses.iter())
            .filter(|listener| listener.port() == address.port())
            .map(|listener| listener.ip().to_canonical());
        // To connect to the unspecified address is to connect to the machine itself.
        listeners.any(|listener| {
            listener == there || there.is_unspecified() || accepts_for(listener, there) && is_local(there)
        })
    }
}

impl FromIterator<SocketAddr> for Listening {
    fn from_iter<I: IntoIterator<Item = SocketAddr>>(addresses: I) -> Self {
        let listening = Self::default();
        listening.set(addresses.into_iter().collect());
        listening
    }
}

/// Whether a listener at `listener` takes connections to every address of the machine, that of `there`'s
/// family included.
fn accepts_for(listener: IpAddr, there: IpAddr) -> bool {
    listener.is_unspecified() && (listener.is_ipv6() || there.is_ipv4())
}

fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_known_however_it_is_addressed() {
        for (listener, address, is_reached) in [
            ("127.0.0.1:3128", "127.0.0.1:3128", true),
            ("127.0.0.1:3128", "127.0.0.1:3129", false),
            ("127.0.0.1:3128", "127.0.0.2:3128", false),
            ("127.0.0.1:3128", "0.0.0.0:3128", true),
            ("127.0.0.1:3128", "[::]:3128", true),
            ("127.0.0.1:3128", "[::ffff:127.0.0.1]:3128", true),
            ("127.0.0.1:3128", "[64:ff9b::127.0.0.1]:3128", true),
            ("[::ffff:127.0.0.1]:3128", "127.0.0.1:3128", true),
            ("0.0.0.0:3128", "127.0.0.1:3128", true),
            ("0.0.0.0:3128", "127.9.8.7:3128", true),
            ("0.0.0.0:3128", "127.0.0.1:80", false),
            ("0.0.0.0:3128", "192.0.2.1:3128", false),
            ("[::]:3128", "127.0.0.1:3128", true),
            ("[::]:3128", "[2001:db8::1]:3128", false),
        ] {
            let listening: Listening = [listener.parse().expect("an address")].into_iter().collect();
            let address = address.parse().expect("an address");
            assert_eq!(listening.is_reached_by(address), is_reached, "{listener}: {address}");
        }
    }
}
