//! An FTP server that keeps to the protocol, except where a test says otherwise.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
};

use crate::support::Latch;

/// A running server.
pub struct FtpServer {
    address: SocketAddr,
    commands: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
pub struct Builder {
    files: BTreeMap<String, Vec<u8>>,
    /// What the server does instead of the usual, by the verb of the command. The greeting has the verb "".
    answers: BTreeMap<&'static str, Answer>,
}

/// What the server does about a command.
#[derive(Clone)]
pub enum Answer {
    /// It sends these lines.
    Reply(String),
    /// It sends this again and again.
    Forever(&'static str),
    Silence,
    /// It closes the control connection.
    Close,
    /// It replies with 150 and sends this over the data connection. Then it closes the data connection and sends this
    /// reply.
    Transfer(Vec<u8>, &'static str),
    /// Like `Transfer` with the reply 226, but it waits for the latch after this many bytes.
    TransferWithPause(Vec<u8>, usize, Latch),
    /// It replies with 150 and leaves the data connection open, without a byte.
    NoData,
}

struct Session {
    script: Arc<Builder>,
    control: OwnedWriteHalf,
    data: Option<TcpListener>,
    folder: String,
    from: usize,
}

// === impl FtpServer ===

impl FtpServer {
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub fn url(&self, path: &str) -> String {
        format!("ftp://{}{path}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the commands of all clients so far.
    pub fn commands(&self) -> Vec<String> {
        self.commands.lock().clone()
    }

    /// Returns how many commands have this verb.
    pub fn count(&self, verb: &str) -> usize {
        let commands = self.commands();
        commands.iter().filter(|command| verb_of(command) == verb).count()
    }
}

impl Drop for FtpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

// === impl Builder ===

impl Builder {
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    /// Sets what the server does about a command with this verb.
    pub fn on(mut self, verb: &'static str, answer: Answer) -> Self {
        self.answers.insert(verb, answer);
        self
    }

    /// Sets the reply to a command with this verb.
    pub fn reply(self, verb: &'static str, line: &str) -> Self {
        self.on(verb, Answer::Reply(format!("{line}\r\n")))
    }

    pub async fn start(self) -> FtpServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let commands = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::new(self), commands.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, script.clone(), seen.clone()));
            }
        });
        FtpServer {
            address,
            commands,
            accepting,
        }
    }

    fn has_folder(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.keys().any(|file| file.starts_with(&folder))
    }
}

/// Serves a client until one side closes. Errors mean that the client has left.
async fn serve(stream: TcpStream, script: Arc<Builder>, seen: Arc<Mutex<Vec<String>>>) {
    let (reader, control) = stream.into_split();
    let mut session = Session {
        script,
        control,
        data: None,
        folder: "/".to_owned(),
        from: 0,
    };
    let mut lines = BufReader::new(reader);
    if session.answer("").await.is_none() {
        return hold(lines).await;
    }
    loop {
        let mut line = Vec::new();
        match lines.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let command = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        seen.lock().push(command.clone());
        if session.answer(&command).await.is_none() {
            return hold(lines).await;
        }
    }
}

/// Waits until the client leaves.
async fn hold(mut lines: BufReader<OwnedReadHalf>) {
    let mut rest = Vec::new();
    let _ = lines.read_to_end(&mut rest).await;
}

fn verb_of(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

// === impl Session ===

impl Session {
    /// Does what the script or the protocol says. Returns `None` if the server does nothing more.
    async fn answer(&mut self, command: &str) -> Option<()> {
        let verb = verb_of(command);
        let argument = command.get(verb.len() + 1..).unwrap_or_default().to_owned();
        let planned = self.script.answers.get(verb).cloned();
        // Open the data port even if the script gives another reply: a later transfer may use this port.
        if matches!(verb, "EPSV" | "PASV") {
            self.data = Some(TcpListener::bind("127.0.0.1:0").await.ok()?);
        }
        if let Some(planned) = planned {
            return self.follow(planned).await;
        }
        let port = self.data.as_ref().and_then(|data| Some(data.local_addr().ok()?.port()));
        let port = port.unwrap_or_default();
        let file = self.script.files.get(&argument).cloned();
        match (verb, file) {
            ("", _) => self.send("220 ready").await,
            ("USER", _) => self.send("331 send a password").await,
            ("PASS", _) => self.send("230 logged in").await,
            ("TYPE", _) => self.send("200 done").await,
            ("PWD", _) => self.send("257 \"/\" is the folder").await,
            ("CWD", _) if self.script.has_folder(&argument) => {
                self.folder = format!("{}/", argument.trim_end_matches('/'));
                self.send("250 done").await
            }
            ("EPSV", _) => self.send(&format!("229 passive (|||{port}|)")).await,
            ("PASV", _) => self.send(&passive("127,0,0,1", port)).await,
            ("SIZE", Some(file)) => self.send(&format!("213 {}", file.len())).await,
            ("MDTM", Some(_)) => self.send("213 20261101120000").await,
            ("REST", _) => {
                self.from = argument.parse().ok()?;
                self.send("350 go on").await
            }
            ("RETR", Some(file)) => {
                let from = std::mem::take(&mut self.from);
                self.transfer(&file[from..], "226 done").await
            }
            ("MLSD", _) => {
                let list = self.list();
                self.transfer(list.as_bytes(), "226 done").await
            }
            ("CWD" | "SIZE" | "MDTM" | "RETR", _) => self.send("550 no such file").await,
            _ => self.send("500 unknown command").await,
        }
    }

    async fn follow(&mut self, answer: Answer) -> Option<()> {
        match answer {
            Answer::Reply(lines) => self.control.write_all(lines.as_bytes()).await.ok(),
            Answer::Forever(text) => loop {
                self.control.write_all(text.as_bytes()).await.ok()?;
            },
            Answer::Silence => None,
            Answer::Close => {
                self.control.shutdown().await.ok()?;
                None
            }
            Answer::Transfer(content, reply) => self.transfer(&content, reply).await,
            Answer::TransferWithPause(content, at, latch) => {
                let mut data = self.begin().await?;
                data.write_all(&content[..at]).await.ok()?;
                latch.opened().await;
                data.write_all(&content[at..]).await.ok()?;
                drop(data);
                self.send("226 done").await
            }
            Answer::NoData => {
                let data = self.begin().await?;
                wait_for_end(data).await;
                None
            }
        }
    }

    /// Lists the entered folder as in RFC 3659 §7.
    fn list(&self) -> String {
        let mut list = "type=cdir; .\r\ntype=pdir; ..\r\n".to_owned();
        let mut last = String::new();
        for (path, content) in &self.script.files {
            let Some(name) = path.strip_prefix(&self.folder) else {
                continue;
            };
            let (name, is_folder) = name.split_once('/').map_or((name, false), |(folder, _)| (folder, true));
            if name == last {
                continue;
            }
            list += &match is_folder {
                true => format!("type=dir; {name}\r\n"),
                false => format!("type=file;size={};modify=20261101120000; {name}\r\n", content.len()),
            };
            last = name.to_owned();
        }
        list
    }

    async fn transfer(&mut self, content: &[u8], reply: &str) -> Option<()> {
        let mut data = self.begin().await?;
        // This fails if the client has closed the data connection, which does not matter.
        let _ = data.write_all(content).await;
        drop(data);
        self.send(reply).await
    }

    async fn begin(&mut self) -> Option<TcpStream> {
        let data = self.data.take()?;
        self.send("150 here it comes").await?;
        data.accept().await.ok().map(|(stream, _)| stream)
    }

    async fn send(&mut self, line: &str) -> Option<()> {
        self.control.write_all(format!("{line}\r\n").as_bytes()).await.ok()
    }
}

/// Returns the reply to a PASV.
pub fn passive(address: &str, port: u16) -> String {
    format!("227 passive ({address},{},{})", port / 256, port % 256)
}

async fn wait_for_end(mut stream: impl AsyncRead + Unpin) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}
