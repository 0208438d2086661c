//! Connections of the load generator: TCP, CONNECT, TLS.

use std::{net::SocketAddr, sync::Arc};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{super::Outcome, Proxy, Request, http1::Http1};

/// Connects from an address in 127.0.0.0/16 that depends on the client's number, because proxies limit connections
/// of one address, and one address has a limited number of ports.
pub async fn tcp(to: SocketAddr, client: usize) -> Outcome<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if client >= CLIENTS_OF_AN_ADDRESS {
        let number = u8::try_from(client / CLIENTS_OF_AN_ADDRESS)?;
        socket.bind(([127, 0, number, 1], 0).into())?;
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Opens a TLS connection to the origin, through a tunnel if there is a proxy.
pub async fn tls(
    proxy: Proxy,
    origin: SocketAddr,
    config: &Arc<ClientConfig>,
    client: usize,
) -> Outcome<TlsStream<TcpStream>> {
    let mut stream = tcp(proxy.unwrap_or(origin), client).await?;
    if proxy.is_some() {
        let mut http = Http1::over(stream, CONNECT_ANSWER);
        let status = http.connect(&Request::connect(origin)).await?;
        if status != 200 {
            return Err(format!("the CONNECT was answered with {status}").into());
        }
        stream = http.into_inner();
    }
    let name = ServerName::IpAddress(origin.ip().into());
    Ok(TlsConnector::from(config.clone()).connect(name, stream).await?)
}

const CLIENTS_OF_AN_ADDRESS: usize = 1000;
const CONNECT_ANSWER: usize = 4096;
