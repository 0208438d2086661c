//! The peers of a gate: a client, an origin and a name server. A request on an open connection causes no allocation in
//! them.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
};

/// A client with a kept connection to the gate.
pub struct Client {
    gate: TcpStream,
    request: String,
    /// The beginning of the expected response.
    status: &'static str,
    /// The end of the expected response.
    end: &'static str,
}

/// Runs `work` on a runtime of one thread.
pub fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// Returns the configuration of a gate that uses this name server.
pub fn config(dns: SocketAddr, cache: &str) -> String {
    // The log has its own folder, because the folder of the configuration is watched. The gate creates no authority,
    // because the number of instructions for that varies.
    format!(
        r#"
        [proxy]
        listen = "127.0.0.1:0"
        threads = 2
        [admin]
        listen = "127.0.0.1:0"
        [audit]
        path = "log/audit.jsonl"
        [https]
        mode = "tunnel"
        [cache]
        {cache}
        [egress]
        allow = ["127.0.0.0/8", "::1/128"]
        dns = ["{dns}"]
        [[bot]]
        name = "example"
        user-agents = ["ExampleBot"]
        robots-agents = ["ExampleBot"]
        "#
    )
}

/// Starts an origin that serves a page of 1 KiB, and its robots.txt.
pub async fn origin() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let page: Arc<str> = answer("text/html", &format!("{:>1$}", PAGE_END, PAGE_LENGTH)).into();
    let robots: Arc<str> = answer("text/plain", ROBOTS).into();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (page, robots) = (page.clone(), robots.clone());
            tokio::spawn(async move {
                let mut head = [0; 4096];
                while let Ok(length @ 1..) = read_until(&mut stream, &mut head, b"\r\n\r\n").await {
                    let answer = match head[..length].starts_with(b"GET /robots.txt ") {
                        true => &robots,
                        false => &page,
                    };
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn answer(kind: &str, content: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nServer: example\r\nDate: Mon, 02 Nov 2026 10:00:00 GMT\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\nLast-Modified: Mon, 02 Nov 2026 09:00:00 GMT\r\nETag: \"1\"\r\nConnection: keep-alive\r\n\r\n{content}",
        content.len()
    )
}

/// Starts a name server that answers 127.0.0.1 and ::1 for each name, with a time to live of a day.
pub async fn name_server() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut query = [0; 1024];
        loop {
            let (length, client) = socket.recv_from(&mut query).await.unwrap();
            // RFC 1035 §4.1: an empty label ends the name, and the type and class come after it.
            let name = 12 + query[12..length].iter().position(|byte| *byte == 0).unwrap();
            let question = &query[12..name + 5];
            let is_ipv6 = question[question.len() - 3] == 28;
            let mut reply = vec![query[0], query[1], 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
            reply.extend(question);
            // The answer has the same name, type and class, and a time to live of a day.
            reply.extend([0xc0, 12]);
            reply.extend(&question[question.len() - 4..]);
            reply.extend(86_400_u32.to_be_bytes());
            match is_ipv6 {
                true => reply.extend([0, 16].into_iter().chain(Ipv6Addr::LOCALHOST.octets())),
                false => reply.extend([0, 4].into_iter().chain(Ipv4Addr::LOCALHOST.octets())),
            }
            socket.send_to(&reply, client).await.unwrap();
        }
    });
    address
}

// === impl Client ===

impl Client {
    /// Connects to a gate. The client will request a page of the origin that the robots.txt allows (if `is_allowed`) or
    /// disallows.
    pub async fn connect(gate: SocketAddr, origin: SocketAddr, is_allowed: bool) -> Self {
        let gate = TcpStream::connect(gate).await.unwrap();
        gate.set_nodelay(true).unwrap();
        let authority = format!("site.example:{}", origin.port());
        let (folder, status, end) = match is_allowed {
            true => ("shop", "HTTP/1.1 200 ", PAGE_END),
            false => ("account", "HTTP/1.1 403 ", "}\n"),
        };
        let request = format!(
            "GET http://{authority}/{folder}/items/42?colour=blue HTTP/1.1\r\nHost: {authority}\r\n\
             User-Agent: ExampleBot/1.0 (+https://example.com/bot)\r\nAccept: */*\r\n\
             Accept-Encoding: gzip\r\n\r\n"
        );
        Self {
            gate,
            request,
            status,
            end,
        }
    }

    /// Requests the page and checks the response.
    pub async fn get(&mut self) {
        self.gate.write_all(self.request.as_bytes()).await.unwrap();
        let mut answer = [0; 8192];
        let length = read_until(&mut self.gate, &mut answer, self.end.as_bytes())
            .await
            .unwrap();
        let answer = &answer[..length];
        assert!(
            answer.starts_with(self.status.as_bytes()),
            "{}",
            String::from_utf8_lossy(answer)
        );
    }
}

async fn read_until(stream: &mut TcpStream, buffer: &mut [u8], end: &[u8]) -> std::io::Result<usize> {
    let mut length = 0;
    loop {
        match stream.read(&mut buffer[length..]).await? {
            0 => return Ok(length),
            read => length += read,
        }
        if buffer[..length].ends_with(end) {
            return Ok(length);
        }
    }
}

/// The robots.txt that the origin serves, and by which `cost decision` decides.
pub const ROBOTS: &str = "\
User-agent: *
Disallow: /

User-agent: ExampleBot
Disallow: /search
Disallow: /cart
Disallow: /*?sort=
Disallow: /shop/*/reviews$
Disallow: /account/
Allow: /account/help
Allow: /shop/
Crawl-delay: 1

Sitemap: http://site.example/sitemap.xml
";

const PAGE_END: &str = "the end";
const PAGE_LENGTH: usize = 1024;
