use std::{sync::mpsc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// Starts a server that sends `garbage` after the login. The receiver gets the number of bytes that were sent.
async fn endless(garbage: &'static [u8]) -> (FleetServer, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let (tell, told) = mpsc::channel();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("a gate connects");
        let _ = client.read(&mut [0; 1024]).await;
        // The answers to the commands of the login: one HELLO and two CLIENT SETINFO.
        let mut sent = 0;
        if client.write_all(b"%1\r\n+proto\r\n:3\r\n+OK\r\n+OK\r\n").await.is_ok() {
            let block = garbage.repeat(64 * 1024 / garbage.len());
            while let Ok(written @ 1..) = client.write(&block).await {
                sent += written;
            }
        }
        tell.send(sent)
    });
    let info = redis::IntoConnectionInfo::into_connection_info("redis://localhost").expect("a URL");
    let login = info
        .redis_settings()
        .clone()
        .set_protocol(redis::ProtocolVersion::RESP3);
    let endpoint = Endpoint::Tcp("127.0.0.1".to_owned(), port);
    (FleetServer { endpoint, login }, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_or_unrequested_answers_end_the_connection() {
    for (what, garbage) in [
        ("a text without an end", &b"+endless"[..]),
        ("a long text", b"$9223372036854775807\r\nxxxx"),
        ("lists in lists", b"*1\r\n"),
        ("a list without an end", b"*1000000000\r\n_\r\n_\r\n_\r\n"),
        ("answers that nobody asked for", b"+OK\r\n"),
        ("a message without an end", b">1000000000\r\n$7\r\nmessage\r\n"),
    ] {
        let (server, told) = endless(garbage).await;
        let (end, ended) = mpsc::channel();
        let connection = server.connect(move |push| drop(end.send(push.kind))).await.expect(what);
        let sent = tokio::task::spawn_blocking(move || told.recv_timeout(Duration::from_secs(100)));
        let sent = sent.await.expect("no panic").expect("it ends");
        // `sent` includes bytes in the buffers of the operating system, so it can be larger than `MAX_UNREAD`.
        assert!(sent < 8 * MAX_UNREAD, "{what}: {sent}");
        let kind = ended.recv().expect("the gate is told");
        assert_eq!(kind, redis::PushKind::Disconnection, "{what}");
        let mut redis = connection.redis.clone();
        let asked = redis::cmd("PING").query_async::<()>(&mut redis).await;
        assert!(asked.is_err(), "{what}");
    }
}
