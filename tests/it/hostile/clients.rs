//! Clients that say nothing, stop half-way, or do not trust us.

use std::time::{Duration, Instant};

use super::{is_well, start};
use crate::support::{Alpn, Gate, NAME, Origin, Roots};

#[tokio::test]
async fn a_client_that_says_too_little_is_dropped_in_time() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let mut gate = Gate::with("[proxy]\nheader-timeout = \"300ms\"").await;
    let url = origin.url("/x");

    for (way, bytes) in [
        ("nothing", String::new()),
        ("three letters", "GET".to_owned()),
        ("half of CONNECT", "CONN".to_owned()),
        ("half a head", format!("GET {url} HTTP/1.1\r\nHost: h\r\n")),
        (
            "half of a CONNECT",
            format!("CONNECT {} HTTP/1.1\r\nHost: h\r\n", origin.authority()),
        ),
    ] {
        println!("{way}");
        let start = Instant::now();
        let mut connection = gate.dial().await;
        connection.send(bytes).await;
        connection.read_to_end().await;
        assert!(start.elapsed() < Duration::from_secs(5), "{way}: {:?}", start.elapsed());
    }
    assert!(gate.runs());
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_is_said_is_closed_in_time() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::with("[proxy]\nhandshake-timeout = \"300ms\"").await;
    let start = Instant::now();

    let mut silent = gate.connect(&origin.authority()).await.opened().plain();
    silent.read_to_end().await;

    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_client_that_does_not_trust_us_is_named_with_what_to_do() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::start().await;

    let tunnel = gate.connect(&origin.authority()).await.opened().trusting(Roots::none());
    assert!(tunnel.try_tls(NAME, Alpn::Http1).await.is_err());

    let line = gate
        .wait_for_log("a client that does not trust us", |line| line.says("does not trust"))
        .await;
    assert!(
        line.field("client")
            .is_some_and(|client| client.starts_with("127.0.0.1")),
        "{line:#?}"
    );
    assert_eq!(line.level(), "WARN", "{line:#?}");
    assert_eq!(line.field("fix"), Some("robotgate env"), "what to do: {line:#?}");
    assert!(line.says(NAME), "where it wanted to go: {line:#?}");
}

#[tokio::test]
async fn clients_that_hang_up_anywhere_do_no_harm() {
    let (origin, mut gate) = start().await;
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot\r\nContent-Length: 9\r\n\r\nbody",
        origin.url("/x"),
        origin.authority()
    );
    let connect = format!("CONNECT {} HTTP/1.1\r\nHost: {NAME}\r\n\r\n", origin.authority());

    for bytes in [request.as_str(), connect.as_str()] {
        for end in 0..=bytes.len() {
            let mut connection = gate.dial().await;
            connection.try_send(&bytes.as_bytes()[..end]).await;
        }
    }

    is_well(&mut gate, &origin).await;
}
