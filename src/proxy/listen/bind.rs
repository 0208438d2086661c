//! Binds the sockets of a new configuration, even if an old socket that is about to close still uses the port.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use rustix::net::sockopt::set_socket_reuseport;
use tokio::net::{TcpListener, TcpSocket};

use super::{Socket, Speaks};

/// Why robotgate cannot listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}{}", hint(error, key))]
pub struct ListenError {
    address: SocketAddr,
    key: &'static str,
    error: io::Error,
}

#[derive(Debug)]
pub(super) enum Bound {
    Listening(Arc<TcpListener>),
    NotListening(TcpSocket),
}

/// Sockets that share their ports with other sockets of robotgate, until this value is dropped. While a port is shared,
/// another program of the same user could bind it and take connections.
#[derive(Debug, Default)]
pub(super) struct SharedPorts(Vec<Arc<TcpListener>>);

/// Binds a socket to `address`. `leaving` are the sockets that are about to close. If one of them uses the port, the
/// new socket shares the port with the sockets in `all` that use it.
pub(super) fn bind(
    address: SocketAddr,
    speaks: Speaks,
    all: &[Socket],
    leaving: &[Socket],
    shared: &mut SharedPorts,
) -> Result<(Bound, SocketAddr), ListenError> {
    let bound = bind_without_listening(address, all, leaving, shared).and_then(|socket| {
        let address = socket.local_addr()?;
        Ok((Bound::NotListening(socket), address))
    });
    bound.map_err(|error| ListenError::new(address, speaks, error))
}

/// Binds the address for a moment. Returns `true` if the address is in use.
pub(super) fn check(address: SocketAddr, speaks: Speaks) -> Result<bool, ListenError> {
    match socket(address).and_then(|socket| socket.bind(address)) {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(true),
        // systemd may have opened a port below 1024 that this process may not bind. If a socket listens there, report
        // only that the address is in use.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && has_listener(address) => Ok(true),
        Err(error) => Err(ListenError::new(address, speaks, error)),
    }
}

/// Returns whether some socket listens on exactly this address, as far as the kernel's list can be read.
fn has_listener(address: SocketAddr) -> bool {
    let (file, ip) = match address.ip() {
        IpAddr::V4(ip) => ("/proc/self/net/tcp", ip.octets().to_vec()),
        IpAddr::V6(ip) => ("/proc/self/net/tcp6", ip.octets().to_vec()),
    };
    // `/proc/net/tcp` writes an address as 32-bit words in the machine's byte order, in hexadecimal.
    let words = ip
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let local: String = words.map(|word| format!("{word:08X}")).collect();
    let local = format!("{local}:{:04X}", address.port());
    let table = fs::read_to_string(file).unwrap_or_default();
    table.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        fields.next() == Some(&*local) && fields.nth(1) == Some(LISTENING)
    })
}

fn bind_without_listening(
    address: SocketAddr,
    all: &[Socket],
    leaving: &[Socket],
    shared: &mut SharedPorts,
) -> io::Result<TcpSocket> {
    let bound = socket(address).and_then(|socket| socket.bind(address).map(|()| socket));
    let has_port = |socket: &&Socket| socket.address.port() == address.port();
    match bound {
        // A socket that is about to close has the port. Share the port, for example to bind 127.0.0.1:3128 while
        // 0.0.0.0:3128 is still open.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && leaving.iter().any(|socket| has_port(&socket)) => {
            for socket in all.iter().filter(has_port) {
                shared.share(&socket.socket)?;
            }
            let socket = socket(address)?;
            socket.set_reuseport(true)?;
            socket.bind(address)?;
            Ok(socket)
        }
        bound => bound,
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Connections of an earlier robotgate process must not prevent a start.
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

// === impl Bound ===

impl Bound {
    pub(super) fn listen(self, address: SocketAddr, speaks: Speaks) -> Result<Arc<TcpListener>, ListenError> {
        match self {
            Bound::Listening(socket) => Ok(socket),
            Bound::NotListening(socket) => {
                let listening = socket.listen(BACKLOG);
                let socket = listening.map_err(|error| ListenError::new(address, speaks, error))?;
                let socket = Arc::new(socket);
                stop_sharing(&socket);
                Ok(socket)
            }
        }
    }
}

// === impl SharedPorts ===

impl SharedPorts {
    fn share(&mut self, socket: &Arc<TcpListener>) -> io::Result<()> {
        self.0.push(socket.clone());
        Ok(set_socket_reuseport(&**socket, true)?)
    }
}

impl Drop for SharedPorts {
    fn drop(&mut self) {
        self.0.iter().for_each(stop_sharing);
    }
}

fn stop_sharing(socket: &Arc<TcpListener>) {
    if let Err(error) = set_socket_reuseport(&**socket, false) {
        tracing::debug!(%error, "SO_REUSEPORT could not be cleared");
    }
}

// === impl ListenError ===

impl ListenError {
    fn new(address: SocketAddr, speaks: Speaks, error: io::Error) -> Self {
        Self {
            address,
            key: speaks.key(),
            error,
        }
    }
}

fn hint(error: &io::Error, key: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "; another program (perhaps another robotgate) or another address of this configuration has this port: \
                 stop the program or change {key}"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another in {key}, or let systemd open it (docs/install.md)"
            )
        }
        io::ErrorKind::AddrNotAvailable => format!("; this machine has no such address: correct {key}"),
        io::ErrorKind::InvalidInput => format!(
            "; correct {key}: an IPv6 address that begins with fe80 needs the number of its interface, as in \
             [fe80::1%2]:3128"
        ),
        _ => String::new(),
    }
}

/// `TCP_LISTEN` in `/proc/net/tcp`.
const LISTENING: &str = "0A";

pub(super) const BACKLOG: u32 = 4096;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_listener_is_found_by_its_exact_address() {
        for ip in ["127.0.0.1", "0.0.0.0", "::1", "::"] {
            let listener = TcpListener::bind((ip, 0)).unwrap();
            let address = listener.local_addr().unwrap();

            assert!(has_listener(address), "{address}");
            let other = SocketAddr::new([127, 0, 0, 99].into(), address.port());
            assert!(!has_listener(other), "{other}");
        }
    }

    #[test]
    fn a_client_connection_is_not_taken_for_a_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();

        assert!(!has_listener(client.local_addr().unwrap()));
    }
}
