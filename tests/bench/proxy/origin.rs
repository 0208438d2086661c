//! The origin: a separate process that responds immediately, so that the measurement shows the proxy.
//!
//! One port speaks plain HTTP/1.1. A second one speaks HTTP/1.1 and HTTP/2 over TLS. A third one speaks plain HTTP/1.1
//! on every address of the machine, so that each address in 127.0.0.0/8 is an origin. The third port closes connections
//! from other machines.

pub mod answers;
mod http1;
mod http2;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{Ipv4Addr, SocketAddr, TcpListener as StdListener},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
};
use tokio_rustls::TlsAcceptor;

use self::answers::Answers;
use super::{
    Outcome,
    certificates::{self, HTTP2},
    process::{self, Process},
};

/// A handle for the origin's process.
pub struct Origin {
    process: Process,
    pub plain: SocketAddr,
    pub tls: SocketAddr,
    /// The port on which every address of 127.0.0.0/8 is an origin.
    pub any_port: u16,
}

#[derive(Clone, Copy)]
enum Port {
    Plain,
    Tls,
    Any,
}

const QUEUE: i32 = 4096;
const LOCAL: Ipv4Addr = Ipv4Addr::LOCALHOST;

// === impl Origin ===

impl Origin {
    /// Starts the process, which reads its certificate from `folder`.
    pub fn start(folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--origin").arg(folder).stdout(Stdio::piped());
        let mut process = Process::start(&mut command, &folder.join("origin.log"))?;
        let output = process.take_output().ok_or("the origin has no output")?;
        let mut ports = String::new();
        BufReader::new(output).read_line(&mut ports)?;
        let ports: Vec<u16> = ports.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [plain, tls, any_port] = ports[..] else {
            return Err("the origin did not start".into());
        };
        Ok(Self {
            process,
            plain: (LOCAL, plain).into(),
            tls: (LOCAL, tls).into(),
            any_port,
        })
    }

    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// Runs the origin's process until the benchmark ends.
pub fn run(folder: &Path) -> Outcome<()> {
    let listeners = [
        (Port::Plain, StdListener::bind((LOCAL, 0))?),
        (Port::Tls, StdListener::bind((LOCAL, 0))?),
        (Port::Any, StdListener::bind((Ipv4Addr::UNSPECIFIED, 0))?),
    ];
    let acceptor = TlsAcceptor::from(certificates::origin_config(folder)?);
    let mut ports = Vec::new();
    for (_, listener) in &listeners {
        listener.set_nonblocking(true)?;
        // The queue is longer than the standard library's, because a connection that does not fit has to wait for a
        // second.
        rustix::net::listen(listener, QUEUE)?;
        ports.push(listener.local_addr()?.port().to_string());
    }
    for _ in 0..process::threads() {
        let mut cloned = Vec::new();
        for (port, listener) in &listeners {
            cloned.push((*port, listener.try_clone()?));
        }
        let acceptor = acceptor.clone();
        thread::spawn(move || serve(cloned, &acceptor));
    }
    println!("{}", ports.join(" "));
    // Standard input is a pipe from the benchmark. It closes when the benchmark ends, even after a crash.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn serve(listeners: Vec<(Port, StdListener)>, acceptor: &TlsAcceptor) {
    let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    runtime.block_on(async {
        for (port, listener) in listeners {
            if let Ok(listener) = TcpListener::from_std(listener) {
                tokio::spawn(accept(port, listener, acceptor.clone()));
            }
        }
        std::future::pending::<()>().await;
    });
}

async fn accept(port: Port, listener: TcpListener, acceptor: TlsAcceptor) {
    let answers = Answers::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) if peer.ip().is_loopback() => {
                let (acceptor, answers) = (acceptor.clone(), answers.clone());
                tokio::spawn(async move { converse(port, stream, acceptor, answers).await });
            }
            Ok(_) => {}
            // For example, the process has reached its limit of open files. Let other connections close first.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Serves a connection. The caller can ignore errors, because the load generator counts them.
async fn converse(port: Port, stream: TcpStream, acceptor: TlsAcceptor, answers: Answers) -> Outcome<()> {
    stream.set_nodelay(true)?;
    if !matches!(port, Port::Tls) {
        return http1::serve(stream, &answers).await;
    }
    let stream = acceptor.accept(stream).await?;
    if stream.get_ref().1.alpn_protocol() == Some(HTTP2) {
        http2::serve(stream, &answers).await
    } else {
        http1::serve(stream, &answers).await
    }
}
