//! The socket next to the cache file, for `robotgate cache` and `robotgate health` while the proxy runs. Only the
//! proxy's own user and root can open it.
//!
//! Only a process that has the cache file open may create the socket. So if the socket already exists, a killed proxy
//! left it.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, PermissionsExt as _},
        net::UnixListener as StdListener,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::{net::UnixListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::http::AdminServer;

/// The open socket, and the task that accepts its connections.
#[derive(Debug)]
pub struct Serving {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The file of a listening socket, removed on drop. Must be dropped before the cache file is closed, or the drop can
/// remove the socket of the next process.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum SocketError {
    #[error("its path is longer than {MAX_PATH} bytes; choose a shorter cache.path (a reload is enough)")]
    TooLong,
    #[error("a file that is not a socket has this name; move it away, and restart robotgate")]
    Taken,
    #[error("{0}; correct this, or choose another folder for cache.path, and restart robotgate")]
    Io(#[from] io::Error),
}

pub(super) fn path_beside(file: &Path) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(".sock");
    path.into()
}

// === impl Serving ===

impl Serving {
    /// Needs a tokio runtime, and the caller must have the cache file `file` open. Returns `None` if the socket cannot
    /// be created.
    pub fn start(file: &Path, admin_server: Arc<AdminServer>) -> Option<Self> {
        let bound = Socket::bind(file).and_then(|(socket, listener)| Ok((socket, UnixListener::from_std(listener)?)));
        let (socket, listener) = bound
            .inspect_err(|error| {
                tracing::warn!(
                    path = %path_beside(file).display(),
                    "cannot create the socket that `robotgate cache` needs, so `robotgate cache` fails: {error}"
                );
            })
            .ok()?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, socket, admin_server, stop.clone()));
        Some(Self { stop, task })
    }

    /// Stops accepting connections and removes the socket. Call this before the cache file is closed, or it can remove
    /// the socket of the next process.
    pub async fn stop(self) {
        self.stop.cancel();
        // A panic is already on stderr.
        let _ = self.task.await;
    }
}

async fn accept(listener: UnixListener, socket: Socket, admin_server: Arc<AdminServer>, stop: CancellationToken) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(admin_server.clone().serve_socket(stream, stop.clone()))),
            Err(error) => {
                tracing::debug!(%error, "a connection to the socket next to cache.path could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(socket);
}

// === impl Socket ===

impl Socket {
    /// The caller must have the cache file `file` open.
    fn bind(file: &Path) -> Result<(Self, StdListener), SocketError> {
        let path = path_beside(file);
        if path.as_os_str().as_bytes().len() > MAX_PATH {
            return Err(SocketError::TooLong);
        }
        remove_stale(&path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(io::Error::from)?;
        let address = SocketAddrUnix::new(&path).map_err(io::Error::from)?;
        bind(&socket, &address).map_err(io::Error::from)?;
        let made = Self { path };
        // Nobody can connect before `listen`, so the mode of the file did not matter until here.
        fs::set_permissions(&made.path, fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG).map_err(io::Error::from)?;
        Ok((made, StdListener::from(socket)))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The next start replaces a file that is left.
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

/// Maximum length of a socket's path, in bytes (unix(7)).
const MAX_PATH: usize = 107;
const BACKLOG: i32 = 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_socket_is_private_and_is_removed_when_it_closes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("robots.redb");
        let (socket, _listener) = Socket::bind(&file).unwrap();
        let path = folder.path().join("robots.redb.sock");
        assert_eq!(socket.path, path);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_left_by_a_killed_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("robots.redb");
        let killed = StdListener::bind(path_beside(&file)).unwrap();
        drop(killed);
        assert!(UnixStream::connect(path_beside(&file)).is_err());
        let (socket, _listener) = Socket::bind(&file).unwrap();
        assert!(UnixStream::connect(&socket.path).is_ok());
    }

    #[test]
    fn a_file_in_place_of_the_socket_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("robots.redb.sock");
        fs::write(&taken, "precious").unwrap();
        let bound = Socket::bind(&folder.path().join("robots.redb"));
        assert!(matches!(bound, Err(SocketError::Taken)));
        assert_eq!(fs::read_to_string(taken).unwrap(), "precious");
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let bound = Socket::bind(&folder.path().join("x".repeat(MAX_PATH)));
        assert!(matches!(bound, Err(SocketError::TooLong)));
    }
}
