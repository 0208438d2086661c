//! The addresses on which this robotgate listens. Bots must not reach them through robotgate.
//!
//! This module sends nothing. It binds a socket to find out whether an address belongs to this machine.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
};

use arc_swap::ArcSwap;

use super::special::reached;

/// The addresses of all listeners. Clones share one list, so a request that began before a reload sees new listeners
/// too.
#[derive(Debug, Clone, Default)]
pub struct Listening(Arc<ArcSwap<Vec<SocketAddr>>>);

// === impl Listening ===

impl Listening {
    /// Replaces the list. An address must be in the list before robotgate listens on it.
    pub fn set(&self, addresses: Vec<SocketAddr>) {
        self.0.store(Arc::new(addresses));
    }

    pub fn add(&self, addresses: &[SocketAddr]) {
        self.0.rcu(|before| {
            let mut all = Vec::clone(before);
            all.extend(addresses);
            all
        });
    }

    pub fn addresses(&self) -> Arc<Vec<SocketAddr>> {
        self.0.load_full()
    }

    /// Returns whether a connection to `address` would reach one of robotgate's listeners.
    pub fn is_reached_by(&self, address: SocketAddr) -> bool {
        let there = reached(address.ip());
        let addresses = self.0.load();
        let mut listeners = (addresses.iter())
            .filter(|listener| listener.port() == address.port())
            .map(|listener| listener.ip().to_canonical());
        // A connection to an unspecified address, such as 0.0.0.0, reaches this machine.
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

/// Returns whether a socket on `listener` accepts connections to all addresses of this machine that have the IP version
/// of `there`.
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
    fn a_connection_back_to_a_listener_is_recognized() {
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
