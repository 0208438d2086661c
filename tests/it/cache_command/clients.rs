//! Hostile clients of the socket do no harm. `robotgate cache` handles a closed pipe and unexpected responses.

use std::process::Stdio;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    process::Command,
};

use super::{ROBOTS, cache, rows};
use crate::support::{Gate, Origin, allowed, wait};

async fn connect(gate: &Gate) -> UnixStream {
    let connected = UnixStream::connect(gate.file("robots.redb.sock")).await;
    connected.expect("the gate listens")
}

async fn response_to(gate: &Gate, bytes: &[u8]) -> String {
    let mut client = connect(gate).await;
    // The gate may close the connection before everything is sent or read.
    drop(client.write_all(bytes).await);
    let mut received = Vec::new();
    drop(wait::within("the end of the answer", client.read_to_end(&mut received)).await);
    String::from_utf8(received).expect("text")
}

#[tokio::test]
async fn hostile_clients_of_the_socket_do_no_harm() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::start().await;
    allowed(&gate.get(&site.url("/1")).await, "no-rule");

    for nonsense in [
        &b"\xff\x00nonsense\n"[..],
        b"{\"ask\":\"list\",\"filter\":\"\"}\n",
        &[b'x'; 100_000],
    ] {
        let received = response_to(&gate, nonsense).await;
        assert!(received.is_empty() || received.starts_with("HTTP/1.1 4"), "{received}");
    }
    // Open more connections than the maximum.
    let (mut silent, mut deaf) = (Vec::new(), Vec::new());
    let requests = "GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    for _ in 0..40 {
        silent.push(connect(&gate).await);
        let mut client = connect(&gate).await;
        client.write_all(requests.as_bytes()).await.expect("it listens");
        deaf.push(client);
    }

    allowed(&gate.get(&site.url("/2")).await, "no-rule");
    assert_eq!(rows(&gate).await.len(), 1);
    assert!(gate.stop().await.success());
    assert!(!gate.file("robots.redb.sock").exists());
    drop((silent, deaf));
}

#[tokio::test]
async fn a_closed_pipe_ends_the_list_without_an_error() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&site.url("/1")).await, "no-rule");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_robotgate"))
        .args(["cache", "list", "--config"])
        .arg(gate.file("robotgate.toml"))
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .await
        .expect("the binary is there");
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}

#[tokio::test]
async fn an_unexpected_response_of_the_proxy_is_reported() {
    let mut gate = Gate::start().await;
    gate.stop().await;
    let listener = UnixListener::bind(gate.file("robots.redb.sock")).expect("a free name");
    let ok = |content: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len());
    let another = "robotgate: this command cannot read the proxy's answer, probably because the proxy runs another \
                   version; restart the proxy after an upgrade\n";
    let cut = "robotgate: the proxy's answer was cut off; try again\n";
    let note = "robotgate: note: the disk is slow or cannot be written now, so this may not be the latest state\n";
    for (answer, code, errors) in [
        ("{\"error\":\"this is no request\"}\n".to_owned(), 1, another),
        (ok("{\"sites\":[]}"), 1, another),
        (ok("[]").replace("200 OK", "404 Not Found"), 1, another),
        (ok("{}").replace("200 OK", "503 Service Unavailable"), 1, another),
        (
            ok("{\"detail\":\"come back\"}").replace("200 OK", "503 Service Unavailable"),
            1,
            "robotgate: come back\n",
        ),
        (String::new(), 1, cut),
        (ok("{\"origins\":[],\"next\":null}").replace('}', ""), 1, cut),
        (
            ok("{\"origins\":[],\"next\":null}").replace("OK\r\n", "OK\r\nWarning: 199 - \"late\"\r\n"),
            0,
            note,
        ),
    ] {
        let serving = async {
            let (mut client, _) = listener.accept().await.expect("the command connects");
            let read = client.read(&mut [0; 4096]).await;
            assert!(read.expect("a request") > 0);
            client.write_all(answer.as_bytes()).await.expect("it reads");
        };
        let args = ["list", "--json"];
        let ((), output) = tokio::join!(serving, cache(&gate, &args));
        assert_eq!((output.code, &*output.errors), (Some(code), errors), "{answer}");
        assert_eq!(output.out, "");
    }
}
