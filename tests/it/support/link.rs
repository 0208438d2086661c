//! A TCP proxy between robotgates and a Redis server. A test can disturb its connections.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream, UnixStream},
    task::JoinSet,
    time::sleep,
};

/// How the server's responses are disturbed.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Responses do not arrive. A connection that has lost a response delivers nothing more, even after the fault.
    Drop,
    Delay(Duration),
    /// The connection ends in the middle of a response.
    Cut,
    /// In place of a response, an endless text arrives.
    Endless,
}

/// A TCP proxy in front of a server's socket.
pub struct Link {
    address: SocketAddr,
    fault: Arc<Mutex<Option<Fault>>>,
    connections: Arc<AtomicUsize>,
    // Dropping this closes all connections.
    _accepting: JoinSet<()>,
}

impl Link {
    pub async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let fault = Arc::<Mutex<Option<Fault>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let mut accepting = JoinSet::new();
        accepting.spawn({
            let (fault, count) = (fault.clone(), connections.clone());
            async move {
                let mut connections = JoinSet::new();
                while let Ok((client, _)) = listener.accept().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    let server = UnixStream::connect(&socket).await.expect("the server listens");
                    connections.spawn(forward(client, server, fault.clone()));
                }
            }
        });
        Self {
            address,
            fault,
            connections,
            _accepting: accepting,
        }
    }

    /// Returns the URL at which a robotgate reaches the server.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns how many connections there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Begins a fault, or ends it.
    pub fn set(&self, fault: Option<Fault>) {
        *self.fault.lock() = fault;
    }
}

async fn forward(client: TcpStream, server: UnixStream, fault: Arc<Mutex<Option<Fault>>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
            let mut answer = &buffer[..length];
            let fault = *fault.lock();
            match fault {
                None => {}
                Some(Fault::Drop) => std::future::pending().await,
                Some(Fault::Delay(delay)) => sleep(delay).await,
                Some(Fault::Endless) => {
                    let text = [&b"+"[..], &[b'x'; 64 * 1024]].concat();
                    while to_client.write_all(&text).await.is_ok() {}
                    return;
                }
                Some(Fault::Cut) => answer = &answer[..length / 2],
            }
            if to_client.write_all(answer).await.is_err() || matches!(fault, Some(Fault::Cut)) {
                return;
            }
        }
    };
    tokio::select! {
        () = answers => {}
        _ = copy(&mut from_client, &mut to_server) => {}
    }
}
