//! One end of a connection, controlled by a script. It reads all bytes as they arrive, and sends only on request.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{mpsc, watch},
};

use crate::support::BoxIo;

/// One end of a connection.
pub struct Peer {
    got: watch::Receiver<Got>,
    commands: mpsc::UnboundedSender<Command>,
    /// Number of bytes that the script has told this end to send.
    given: usize,
}

/// The state of the connection so far.
#[derive(Clone, Debug, Default)]
pub struct Got {
    pub bytes: Vec<u8>,
    /// Whether no more bytes will arrive.
    pub ended: bool,
    /// Number of bytes that have been sent, or that can no longer be sent.
    sent: usize,
}

enum Command {
    Send(Vec<u8>),
    Finish,
    /// Closes the connection in an orderly way.
    Close,
    /// Closes the connection, without TLS close_notify if there is TLS.
    Drop,
    Reset,
}

/// The error if a condition was not met in time.
#[derive(Debug)]
pub struct Late;

// === impl Peer ===

impl Peer {
    pub fn over(io: BoxIo) -> Self {
        let (sender, got) = watch::channel(Got::default());
        let (commands, receiver) = mpsc::unbounded_channel();
        tokio::spawn(run(io, sender, receiver));
        Self {
            got,
            commands,
            given: 0,
        }
    }

    pub fn send(&mut self, bytes: Vec<u8>) {
        self.given += bytes.len();
        self.command(Command::Send(bytes));
    }

    /// Waits until everything has been sent, or can no longer be sent.
    pub async fn sent(&mut self) -> Result<(), Late> {
        let given = self.given;
        self.wait(|got| (got.sent >= given).then_some(())).await
    }

    pub fn finish(&mut self) {
        self.command(Command::Finish);
    }

    pub fn close(&mut self) {
        self.command(Command::Close);
    }

    pub fn cut(&mut self) {
        self.command(Command::Drop);
    }

    pub fn reset(&mut self) {
        self.command(Command::Reset);
    }

    /// Returns the state so far.
    pub fn got(&self) -> Got {
        self.got.borrow().clone()
    }

    pub async fn wait<T>(&mut self, mut condition: impl FnMut(&Got) -> Option<T>) -> Result<T, Late> {
        let mut answer = None;
        let holds = self.got.wait_for(|got| {
            answer = condition(got);
            answer.is_some()
        });
        let waited = tokio::time::timeout(PATIENCE, holds).await.map(|held| held.is_ok());
        match waited {
            Ok(true) => answer.ok_or(Late),
            _ => Err(Late),
        }
    }

    fn command(&self, command: Command) {
        // This fails if the connection is broken.
        let _ = self.commands.send(command);
    }
}

async fn run(io: BoxIo, got: watch::Sender<Got>, mut commands: mpsc::UnboundedReceiver<Command>) {
    let (mut reader, mut writer) = tokio::io::split(io);
    let mut chunk = vec![0; 64 * 1024];
    let mut pending: Vec<u8> = Vec::new();
    let (mut ended, mut finishing, mut broken) = (false, false, false);
    loop {
        if pending.is_empty() && finishing {
            finishing = false;
            broken = true;
            let _ = writer.shutdown().await;
        }
        tokio::select! {
            read = reader.read(&mut chunk), if !ended => {
                let read = read.unwrap_or(0);
                ended = read == 0;
                got.send_modify(|got| {
                    got.bytes.extend(&chunk[..read]);
                    got.ended = ended;
                });
            }
            wrote = writer.write(&pending), if !pending.is_empty() => {
                let mut wrote = wrote.unwrap_or(0);
                if wrote == 0 || writer.flush().await.is_err() {
                    broken = true;
                    wrote = pending.len();
                }
                pending.drain(..wrote);
                got.send_modify(|got| got.sent += wrote);
            }
            command = commands.recv() => match command {
                Some(Command::Send(bytes)) if broken => got.send_modify(|got| got.sent += bytes.len()),
                Some(Command::Send(bytes)) => pending.extend(bytes),
                Some(Command::Finish) => finishing = true,
                Some(Command::Close) => {
                    // Over TLS, this first sends a close_notify, which can block if the other side does not read.
                    let _ = tokio::time::timeout(PATIENCE, writer.shutdown()).await;
                    break;
                }
                Some(Command::Drop) | None => break,
                Some(Command::Reset) => {
                    reader.unsplit(writer).reset_on_close();
                    break;
                }
            },
        }
    }
    got.send_modify(|got| got.ended = true);
}

/// Time limit of a step. A step that succeeds takes far less.
const PATIENCE: Duration = Duration::from_secs(10);
