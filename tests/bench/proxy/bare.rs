//! A forward proxy that consists only of pingora's `HttpProxy`, for plain HTTP. It shows the cost of the framework.

use std::{io::Read as _, net::SocketAddr, thread};

use async_trait::async_trait;
use http::header::HOST;
use pingora::{
    Error, ErrorType,
    proxy::{ProxyHttp, Session, http_proxy_service},
    server::{Server, configuration::ServerConf},
    upstreams::peer::HttpPeer,
};

use super::process;

struct Bare;

#[async_trait]
impl ProxyHttp for Bare {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, session: &mut Session, (): &mut ()) -> pingora::Result<Box<HttpPeer>> {
        let host = session.req_header().headers.get(HOST);
        let address: Option<SocketAddr> = host.and_then(|host| host.to_str().ok()?.parse().ok());
        match address {
            Some(address) => Ok(Box::new(HttpPeer::new(address, false, String::new()))),
            None => Error::e_explain(ErrorType::InvalidHTTPHeader, "Host names no address and port"),
        }
    }
}

/// Serves `listen` until the benchmark ends.
pub fn run(listen: &str) -> ! {
    // Standard input is a pipe from the benchmark. It closes when the benchmark ends, even after a crash.
    thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    let conf = ServerConf {
        threads: process::cores(),
        upstream_keepalive_pool_size: KEPT,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Bare);
    service.add_tcp(listen);
    server.add_service(service);
    server.run_forever()
}

/// Number of connections to origins that are kept; enough for every case.
const KEPT: usize = 4096;
