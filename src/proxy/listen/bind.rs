//! Binding a socket, also where one that is about to be given up has the port still.

use std::{io, net::SocketAddr, sync::Arc};

use rustix::net::sockopt::set_socket_reuseport;
use tokio::net::{TcpListener, TcpSocket};

use super::{Socket, Speaks};

/// A socket cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}{}", hint(error, key))]
pub struct ListenError {
    address: SocketAddr,
    key: &'static str,
    error: io::Error,
}

/// Takes the socket that was `inherited`, or binds one, beside `all` that are there, of which `leaving` are not named any more.
pub(super) fn bind(
    address: SocketAddr,
    speaks: Speaks,
    inherited: Option<std::net::TcpListener>,
    all: &[Socket],
    leaving: &[Socket],
) -> Result<(Arc<TcpListener>, SocketAddr), ListenError> {
    let bound = inherited.map_or_else(|| listen(address, false), TcpListener::from_std);
    let bound = match bound {
        // 0.0.0.0:3128 cannot be bound where 127.0.0.1:3128 is, unless both are willing to share.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => beside(address, all, leaving).unwrap_or(Err(error)),
        bound => bound,
    };
    let bound = bound.and_then(|socket| {
        let bound = socket.local_addr()?;
        Ok((Arc::new(socket), bound))
    });
    bound.map_err(|error| ListenError {
        address,
        key: speaks.key(),
        error,
    })
}

/// Binds a socket that shares its port with those that have it; `None` where none of them is leaving.
fn beside(address: SocketAddr, all: &[Socket], leaving: &[Socket]) -> Option<io::Result<TcpListener>> {
    let has_port = |socket: &&Socket| socket.address.port() == address.port();
    leaving.iter().find(has_port)?;
    let share = |socket: &Socket| set_socket_reuseport(&*socket.socket, true);
    let shared = all.iter().filter(has_port).try_for_each(share);
    Some(shared.map_err(io::Error::from).and_then(|()| listen(address, true)))
}

/// Shares its port with nobody any more, now that those in the way are gone: another program of the same user could
/// take a part of the connections.
pub(super) fn settle(socket: &Socket) {
    if let Err(error) = set_socket_reuseport(&*socket.socket, false) {
        tracing::debug!(%error, address = %socket.address, "SO_REUSEPORT could not be taken back");
    }
}

/// Binds the address and gives it up at once. Nobody can connect meanwhile.
pub(super) fn check(address: SocketAddr, speaks: Speaks) -> Result<(), ListenError> {
    match socket(address).and_then(|socket| socket.bind(address)) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => Err(ListenError {
            address,
            key: speaks.key(),
            error,
        }),
        _ => Ok(()),
    }
}

/// A listening socket that a crowd of bots does not overrun.
fn listen(address: SocketAddr, sharing: bool) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    if sharing {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As after any restart: what an earlier connection left behind is no reason not to start.
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

fn hint(error: &io::Error, key: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("; another program listens there, perhaps another robotgate: stop it or change {key}")
        }
        io::ErrorKind::PermissionDenied => format!("; ports below 1024 need a privilege: choose another in {key}"),
        io::ErrorKind::AddrNotAvailable => format!("; this machine has no such address: correct {key}"),
        _ => String::new(),
    }
}

/// Connections that may wait to be accepted; the system may grant fewer.
const BACKLOG: u32 = 4096;
