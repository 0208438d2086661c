//! The socket beside the file of the copies, for the user alone whom the proxy runs as.
//!
//! Who binds it has the file open, so whatever stands in its place is of a proxy that was killed.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// A socket that listens. Its file goes when this is dropped, which has to come before the file of the
/// copies is closed: who opens that next binds a socket of the same name.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) path: PathBuf,
}

/// There can be no socket.
#[derive(Debug, thiserror::Error)]
pub(super) enum SocketError {
    #[error("its path is longer than {MAX_PATH} bytes; choose a shorter cache.path")]
    TooLong,
    #[error("there is a file of that name which is no socket; move it away")]
    Taken,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Where the socket for the file of the copies is.
pub(super) fn path_beside(file: &Path) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(".sock");
    path.into()
}

// === impl Socket ===

impl Socket {
    /// Listens beside `file`, which the caller has open.
    pub(super) fn bind(file: &Path) -> Result<(Self, UnixListener), SocketError> {
        let path = path_beside(file);
        if path.as_os_str().as_bytes().len() > MAX_PATH {
            return Err(SocketError::TooLong);
        }
        remove_stale(&path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(io::Error::from)?;
        let address = SocketAddrUnix::new(&path).map_err(io::Error::from)?;
        bind(&socket, &address).map_err(io::Error::from)?;
        // What its mode is until here is of no account: nobody can connect before it listens.
        let made = Self { path };
        // What its mode is until here is of no account: nobody can connect before it listens.
        fs::set_permissions(&made.path, fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG).map_err(io::Error::from)?;
        Ok((made, UnixListener::from(socket)))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that stays is replaced by the next start.
        let _ = fs::remove_file(&self.path);
    }
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(fs::remove_file(path)?),
        Ok(_) => Err(SocketError::Taken),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes of a socket's path, which the system bounds (unix(7)).
const MAX_PATH: usize = 107;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

#[cfg(test)]
mod tests;
