//! An address at which attempts to connect time out.
//!
//! If the queue of a listener is full, the kernel drops the first packet of each further handshake. So this listener
//! accepts nothing and fills its own queue. Other connections then time out.

use std::{net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

pub struct Blackhole {
    address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Blackhole {
    pub async fn start() -> Self {
        Self::at([127, 0, 0, 1], 0).await
    }

    /// Creates a black hole at a given address and port, for example at 127.0.0.2 and the port of an origin.
    pub async fn at(address: [u8; 4], port: u16) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((address, port).into()).expect("a free port");
        let listener = socket.listen(1).expect("a listener");
        let address = listener.local_addr().expect("a bound socket has an address");
        let mut queue = Vec::new();
        // Connects until an attempt hangs, because then the queue is full.
        while let Ok(connected) = tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            queue.push(connected.expect("the queue takes it"));
        }
        Self {
            address,
            _listener: listener,
            _queue: queue,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }
}
