//! No client of the admin listener, however slow or hostile, prevents others from using it.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{Gate, Origin, allowed, wait};

#[tokio::test]
async fn clients_that_do_not_read_delay_no_other_client() {
    let origin = Origin::start().page("/", "page").spawn().await;
    let gate = Gate::start().await;
    let requests = "GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    let mut crowd = Vec::new();
    // Opens more connections than one address may have, and requests more bytes of responses than all buffers can hold.
    for _ in 0..40 {
        let mut connection = TcpStream::connect(gate.admin_address()).await.unwrap();
        connection.write_all(requests.as_bytes()).await.unwrap();
        crowd.push(connection);
    }
    allowed(&gate.get(&origin.url("/")).await, "no-robots");
    assert_eq!(gate.admin("/healthz").await.status, 200);
}

#[tokio::test]
async fn malformed_requests_get_an_error_and_do_no_harm() {
    let gate = Gate::start().await;
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000));
    let fields = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(1000));
    for request in [
        "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "\r\n\r\n\r\n",
        &long,
        &fields,
    ] {
        let mut connection = TcpStream::connect(gate.admin_address()).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        connection.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // The gate may also reset the connection.
        let _ = wait::within("the end", connection.read_to_end(&mut answer)).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{request:.40}");
    }
    assert_eq!(gate.admin("/healthz").await.status, 200);
}
