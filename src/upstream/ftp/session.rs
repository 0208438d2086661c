//! A session with an FTP server. Logs in anonymously, and transfers files in binary mode.
//!
//! The caller has to limit the time that a command may take. suppaftp limits a reply to 256 KiB.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use suppaftp::{
    Encoding, FtpError, Mode, Status,
    tokio::{AsyncFtpStream, AsyncNoTlsStream, TransferStream},
    types::{FileType, Response},
};

use super::{Connected, Progress};
use crate::{text::plain_message, upstream::Fault};

pub(super) struct Session {
    ftp: AsyncFtpStream,
    /// Whether the last EPSV or PASV succeeded. If so, a refusal is about the next command, such as RETR.
    has_dialled: Arc<AtomicBool>,
    /// The folder in which the session is right after the login, without a slash at its end. The paths of URLs begin
    /// there (RFC 1738 §3.2.2).
    folder: Vec<u8>,
    pub(super) progress: Progress,
}

pub(super) type Transfer = TransferStream<AsyncNoTlsStream>;

#[derive(Debug)]
pub(super) enum Failed {
    Refused(Reply),
    Fault(Fault),
}

/// A reply other than those that a command expects (RFC 959 §4.2). Usually, it refuses the command.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: u16,
    /// The first line of the reply with its code. Control characters are escaped.
    pub(super) text: String,
}

/// Turns each byte into one character, because servers do not say how file names are encoded.
#[derive(Debug)]
struct Bytes;

// === impl Session ===

impl Session {
    pub(super) async fn open(connected: Connected) -> Result<Self, Failed> {
        let has_dialled = Arc::new(AtomicBool::new(false));
        let (data, dialled) = (connected.data, has_dialled.clone());
        let progress = connected.progress;
        let ftp = AsyncFtpStream::connect_with_stream(connected.control)
            .await
            .map_err(Failed::not_about_a_file)?;
        progress.add(1);
        let mut ftp = ftp.passive_stream_builder(move |named| {
            dialled.store(true, Ordering::Relaxed);
            let data = data.clone();
            Box::pin(async move {
                let dialled = data.dial(named).await;
                dialled.map_err(|fault| FtpError::ConnectionError(io::Error::other(fault)))
            })
        });
        ftp.set_mode(Mode::ExtendedPassive);
        ftp.set_encoding(Bytes).await;
        ftp.login(ANONYMOUS, PASSWORD).await.map_err(Failed::of_login)?;
        progress.add(1);
        ftp.transfer_type(FileType::Binary)
            .await
            .map_err(Failed::not_about_a_file)?;
        progress.add(1);
        let folder = match ftp.pwd().await.map_err(Failed::from) {
            Ok(folder) => login_folder(&folder),
            Err(Failed::Refused(_)) => Vec::new(),
            Err(failed) => return Err(failed),
        };
        progress.add(1);
        Ok(Self {
            ftp,
            has_dialled,
            folder,
            progress,
        })
    }

    /// Returns an absolute path. Some servers replace a `~` at the beginning of a relative path by a home folder.
    fn absolute(&self, path: &[u8]) -> String {
        text(&[&self.folder, path].concat())
    }

    /// Returns the size of a file in bytes (RFC 3659 §4).
    pub(super) async fn size(&mut self, path: &[u8]) -> Result<u64, Failed> {
        let size = self.ftp.size(self.absolute(path)).await;
        self.progress.add(1);
        let size = size?;
        Ok(u64::try_from(size).unwrap_or(u64::MAX))
    }

    /// Returns when a file was last modified (RFC 3659 §3), if the server says so.
    pub(super) async fn modified(&mut self, path: &[u8]) -> Result<Option<SystemTime>, Failed> {
        let modified = self.ftp.mdtm(self.absolute(path)).await;
        self.progress.add(1);
        match modified.map_err(Failed::from) {
            // Ignore times outside 1970–9998: `httpdate` panics on times that are too early or too late.
            Ok(modified) => Ok(Some(modified.and_utc().timestamp())
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds < YEAR_9999)
                .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))),
            Err(Failed::Refused(reply)) if !reply.is_temporary() => Ok(None),
            // Some servers send malformed times.
            Err(Failed::Fault(Fault::Ftp(_))) => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    pub(super) async fn enter(&mut self, path: &[u8]) -> Result<(), Failed> {
        let entered = self.ftp.cwd(self.absolute(path)).await;
        self.progress.add(1);
        Ok(entered?)
    }

    /// Begins to read a file at byte `from`. Also returns where the content really begins: at 0 if the server can send
    /// only the whole file.
    pub(super) async fn retrieve(&mut self, path: &[u8], from: u64) -> Result<(Transfer, u64), Failed> {
        let command = format!("RETR {}", self.absolute(path));
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        if from > 0 {
            match self.transfer(&command, from).await {
                Err(Failed::Refused(reply)) if reply.is_unsupported() => {}
                began => return began.map(|transfer| (transfer, from as u64)),
            }
        }
        Ok((self.transfer(&command, 0).await?, 0))
    }

    /// Begins to list the folder that was entered last. Also returns whether the list is in the format of MLSD (RFC
    /// 3659 §7), and not of LIST.
    pub(super) async fn list(&mut self) -> Result<(Transfer, bool), Failed> {
        match self.transfer("MLSD", 0).await {
            Err(Failed::Refused(reply)) if reply.is_permanent() => Ok((self.transfer("LIST", 0).await?, false)),
            began => Ok((began?, true)),
        }
    }

    /// Opens a data connection and sends `command`. Uses PASV if the server does not know EPSV (RFC 2428).
    async fn transfer(&mut self, command: &str, from: usize) -> Result<Transfer, Failed> {
        match self.transfer_once(command, from).await {
            Err(Failed::Refused(reply)) if reply.is_permanent() && !self.has_dialled.load(Ordering::Relaxed) => {
                self.ftp.set_mode(Mode::Passive);
                let began = self.transfer_once(command, from).await;
                match began {
                    // The server refuses PASV too, which says nothing about the file.
                    Err(Failed::Refused(reply))
                        if reply.is_permanent() && !self.has_dialled.load(Ordering::Relaxed) =>
                    {
                        Err(Failed::Fault(reply.fault()))
                    }
                    began => began,
                }
            }
            began => began,
        }
    }

    async fn transfer_once(&mut self, command: &str, from: usize) -> Result<Transfer, Failed> {
        self.has_dialled.store(false, Ordering::Relaxed);
        if from > 0 {
            self.ftp.resume_transfer(from).await?;
        }
        let began = self.ftp.custom_data_command(command, &BEGINS).await;
        self.progress.add(1);
        Ok(began.map(|(_, transfer)| transfer)?)
    }
}

// === impl Failed ===

impl Failed {
    /// Gives a refused login the code 421 if the server is busy, and 530 (RFC 959 §5.4) if it does not accept anonymous
    /// users. Any other refusal stays the same if it is temporary, and otherwise becomes a fault.
    fn of_login(error: FtpError) -> Self {
        match Self::from(error) {
            Self::Refused(reply) if reply.says_busy() => Self::Refused(Reply { code: BUSY, ..reply }),
            Self::Refused(reply) if matches!(reply.code, NOT_LOGGED_IN | 532 | NEEDS_ACCOUNT) => Self::Refused(Reply {
                code: NOT_LOGGED_IN,
                ..reply
            }),
            Self::Refused(reply) if !reply.is_temporary() => Self::Fault(reply.fault()),
            failed => failed,
        }
    }

    /// Turns a permanent refusal into a fault, because its code could be mistaken for a reply about the requested file.
    fn not_about_a_file(error: FtpError) -> Self {
        match Self::from(error) {
            Self::Refused(reply) if reply.is_permanent() => Self::Fault(reply.fault()),
            failed => failed,
        }
    }
}

impl From<FtpError> for Failed {
    fn from(error: FtpError) -> Self {
        match error {
            FtpError::UnexpectedResponse(response) => match Reply::new(&response) {
                Some(reply) => Self::Refused(reply),
                None => Self::Fault(Fault::Ftp("its reply has no code".to_owned())),
            },
            FtpError::ConnectionError(error) => Self::Fault(match error.downcast::<Fault>() {
                Ok(fault) => fault,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Fault::Ftp(error.to_string()),
                Err(_) => Fault::ConnectionTerminated,
            }),
            FtpError::BadResponse | FtpError::InvalidAddress(_) => {
                Self::Fault(Fault::Ftp("a reply is malformed".to_owned()))
            }
            error => Self::Fault(Fault::Internal(error.to_string())),
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

// === impl Reply ===

impl Reply {
    fn new(response: &Response) -> Option<Self> {
        let line = response.body.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
        let code = str::from_utf8(line.get(..3)?).ok()?.parse().ok()?;
        let text = String::from_utf8_lossy(line);
        Some(Self {
            code,
            text: plain_message(&text, MAX_TEXT).into_owned(),
        })
    }

    pub(super) fn fault(&self) -> Fault {
        Fault::Ftp(format!("it answered {}", self.text))
    }

    /// Returns whether the text says that the server is busy. The code is not enough: some busy servers send 530, which
    /// usually refuses the login for good.
    pub(super) fn says_busy(&self) -> bool {
        let text = self.text.to_ascii_lowercase();
        BUSY_WORDS.iter().any(|word| text.contains(word))
    }

    pub(super) fn is_permanent(&self) -> bool {
        (500..600).contains(&self.code)
    }

    pub(super) fn is_temporary(&self) -> bool {
        (400..500).contains(&self.code)
    }

    pub(super) fn is_unsupported(&self) -> bool {
        (500..=504).contains(&self.code)
    }
}

// === impl Bytes ===

impl Encoding for Bytes {
    fn decode(&self, bytes: &[u8]) -> String {
        text(bytes)
    }

    fn encode(&self, text: &str) -> io::Result<Vec<u8>> {
        let byte = |character| u8::try_from(u32::from(character)).map_err(io::Error::other);
        text.chars().map(byte).collect()
    }
}

/// Returns `name` without a slash at its end. `name` is the folder in which the session is right after the login. If it
/// is not a plain absolute path or is too long, returns an empty path, which means the root.
fn login_folder(name: &str) -> Vec<u8> {
    let folder = name.trim_end_matches('/');
    // Control connections cannot carry an unescaped byte FF (RFC 854).
    let is_safe = |character: char| !character.is_ascii_control() && character < '\u{ff}';
    let is_plain = |segment: &str| !matches!(segment, "" | "." | "..");
    let is_usual = folder.starts_with('/')
        && folder.split('/').skip(1).all(is_plain)
        && folder.chars().all(is_safe)
        && folder.len() <= MAX_FOLDER;
    match is_usual {
        true => Bytes.encode(folder).unwrap_or_default(),
        false => Vec::new(),
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The user of anonymous FTP (RFC 1635).
const ANONYMOUS: &str = "anonymous";
/// Servers ask for an email address. Those that check it usually look only for an `@`.
const PASSWORD: &str = "anonymous@";
const BEGINS: [Status; 2] = [Status::AboutToSend, Status::AlreadyOpen];
pub(super) const NOT_LOGGED_IN: u16 = 530;
const NEEDS_ACCOUNT: u16 = 332;
const BUSY: u16 = 421;
const BUSY_WORDS: [&str; 6] = ["too many", "maximum", "limit", "connections", "busy", "try again"];
/// In seconds since 1970.
const YEAR_9999: u64 = 253_370_764_800;
/// Maximum length of `Session::folder`, in bytes. Keeps a command with the longest path of a URL below 512 bytes.
const MAX_FOLDER: usize = 100;
/// [`Reply::text`] is cut after about this many bytes.
const MAX_TEXT: usize = 256;
