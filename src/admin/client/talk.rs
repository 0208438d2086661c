//! One question to a proxy over its socket, and the answer, within bounds of size and time: a process
//! that is stuck keeps nobody waiting for ever.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use super::AdminError;
use crate::admin::protocol::{Line, MAX_LINE, Request, line};

/// A connection to a proxy.
#[derive(Debug)]
pub(super) struct Talk {
    socket: PathBuf,
    stream: UnixStream,
}

// === impl Talk ===

impl Talk {
    /// Connects. `None` where nobody listens.
    pub(super) fn with(socket: &Path) -> Result<Option<Self>, AdminError> {
        let socket = socket.to_owned();
        let stream = match UnixStream::connect(&socket) {
            Ok(stream) => stream,
            Err(error) => {
                return match error.kind() {
                    // A socket without anybody is of a proxy that was killed; InvalidInput is a path too long for one.
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidInput => {
                        Ok(None)
                    }
                    // Of the socket, or of its folder.
                    io::ErrorKind::PermissionDenied => Err(AdminError::Denied(socket)),
                    _ => Err(AdminError::Talk { socket, error }),
                };
            }
        };
        Ok(Some(Self { socket, stream }))
    }

    /// Asks, and hands each line of the answer but the last to `each`; what is a note, to `tell`.
    pub(super) fn ask(self, tell: fn(&str), request: &Request, mut each: impl FnMut(Line)) -> Result<(), AdminError> {
        let Self { socket, mut stream } = self;
        let failed = |error: io::Error| AdminError::Talk {
            socket: socket.clone(),
            error: match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::other(format!("nothing came for {PATIENCE:?}")),
                _ => error,
            },
        };
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .and_then(|()| stream.write_all(&line(request)))
            .map_err(failed)?;
        let mut answer = BufReader::new(stream);
        let mut said = Vec::new();
        loop {
            said.clear();
            (&mut answer)
                .take(MAX_LINE)
                .read_until(b'\n', &mut said)
                .map_err(failed)?;
            if said.last() != Some(&b'\n') {
                return Err(AdminError::Cut);
            }
            match serde_json::from_slice(&said) {
                Ok(Line::End) => return Ok(()),
                Ok(Line::Error(error)) => return Err(AdminError::Told(error)),
                Ok(Line::Note(note)) => tell(&note),
                Ok(told) => each(told),
                Err(_) => return Err(AdminError::Foreign),
            }
        }
    }
}

/// How long the proxy may say nothing, which is longer than a disk that takes nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
