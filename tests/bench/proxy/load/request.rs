//! A client's request, and the expected response.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU32, Ordering},
};

use super::super::AGENT;

#[derive(Clone, Copy)]
pub struct Request {
    pub host: Host,
    pub path: &'static str,
    /// Number of bytes of content. If it is not 0, the method is POST.
    pub content: usize,
    /// The expected status.
    pub status: u16,
    /// Approximate size of the response in bytes. The client reads about this much at once, within limits.
    pub answer: usize,
}

#[derive(Clone, Copy)]
pub enum Host {
    One(SocketAddr),
    /// A different address of 127.64.0.0/10 for each request, at this port.
    Each(u16),
}

/// Number of requests so far whose host is `Host::Each`.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

// === impl Request ===

impl Request {
    /// Returns the origin for the next request.
    pub fn origin(&self) -> SocketAddr {
        match self.host {
            Host::One(origin) => origin,
            Host::Each(port) => {
                let next = REQUESTS.fetch_add(1, Ordering::Relaxed) & 0x3f_ffff;
                let address = u32::from(Ipv4Addr::new(127, 64, 0, 0)) | next;
                (Ipv4Addr::from(address), port).into()
            }
        }
    }

    pub fn method(&self) -> &'static str {
        if self.content > 0 { "POST" } else { "GET" }
    }

    /// Returns the request in HTTP/1.1, to an origin or, in absolute form, to a proxy.
    pub fn bytes(&self, origin: SocketAddr, absolute: bool) -> Vec<u8> {
        let (method, path) = (self.method(), self.path);
        let prefix = if absolute {
            format!("http://{origin}")
        } else {
            String::new()
        };
        let mut text = format!(
            "{method} {prefix}{path} HTTP/1.1\r\nHost: {origin}\r\nUser-Agent: {AGENT}/1.0 (+https://bench.example/bot)\r\n\
             Accept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
        );
        if self.content > 0 {
            text += &format!(
                "Content-Type: application/octet-stream\r\nContent-Length: {}\r\n",
                self.content
            );
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len() + self.content, b'x');
        bytes
    }

    /// Returns the CONNECT for an origin.
    pub fn connect(origin: SocketAddr) -> Vec<u8> {
        format!("CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\nUser-Agent: {AGENT}/1.0\r\n\r\n").into_bytes()
    }
}
