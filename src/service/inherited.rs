//! Listening sockets that this process was started with: those that it had systemd keep before the restart, and those of
//! a `.socket` unit (`sd_listen_fds(3)`). They are known by their address.
//!
//! It binds nothing. What nobody uses is told of.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use listenfd::ListenFd;

use super::notify::Notifier;

/// The sockets, and what is known of them.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Socket>);

#[derive(Debug)]
struct Socket {
    address: SocketAddr,
    /// `None` once it was taken.
    listener: Option<TcpListener>,
    /// Whether systemd keeps it by our own wish, and would go on when we close it.
    kept: bool,
}

// === impl Inherited ===

impl Inherited {
    /// Takes what systemd passed on. The environment changes, so no other thread may run yet.
    pub fn from_env() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::with_capacity(passed.len());
        let names = names.split(':').chain(std::iter::repeat(""));
        for (index, name) in (0..passed.len()).zip(names) {
            match passed
                .take_tcp_listener(index)
                .and_then(|socket| socket.map(Socket::new).transpose())
            {
                Ok(socket) => sockets.extend(socket.map(|socket| socket.named(name))),
                Err(error) => tracing::warn!(
                    name,
                    %error,
                    "systemd passed on something that is no listening TCP socket; it is not used"
                ),
            }
        }
        Self(sockets)
    }

    /// The sockets. Nothing that asks for them blocks.
    pub fn take(&mut self) -> Vec<TcpListener> {
        self.0.iter_mut().filter_map(|socket| socket.listener.take()).collect()
    }

    /// Tells of those that are not `in_use`: they were closed, so that no client waits there for an answer that never
    /// comes.
    pub fn tell_of_rest(self, in_use: &[SocketAddr], notifier: &Notifier) {
        for Socket { address, kept, .. } in self.0 {
            if in_use.contains(&address) {
                continue;
            }
            if kept {
                notifier.release(address);
                tracing::info!(%address, "a socket of before the restart is closed: the configuration does not name it");
            } else {
                tracing::warn!(
                    %address,
                    "systemd passes on a socket that the configuration does not name; nobody answers there: name it in \
                     proxy.listen, or take it out of the .socket unit"
                );
            }
        }
    }
}

// === impl Socket ===

impl Socket {
    fn new(listener: TcpListener) -> io::Result<Self> {
        if !rustix::net::sockopt::socket_acceptconn(&listener)? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener: Some(listener),
            kept: false,
        })
    }

    fn named(mut self, name: &str) -> Self {
        self.kept = name == name_of(self.address);
        self
    }
}

/// What a socket is called while systemd keeps it. Such a name may hold no `:`.
pub(super) fn name_of(address: SocketAddr) -> String {
    address.to_string().replace(':', "_")
}
