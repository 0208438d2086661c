//! Clients that send nothing or bad requests, stop halfway, or do not trust the gate's certificate.

use super::{gate_still_works, start};
use crate::support::{Alpn, Gate, NAME, Origin, Roots, wait};

#[tokio::test]
async fn a_client_that_sends_too_little_is_disconnected() {
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
        let mut connection = gate.dial().await;
        connection.send(bytes).await;
        connection.read_to_end().await;
    }
    assert!(gate.runs());
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn a_tunnel_without_a_whole_handshake_is_closed() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::with("[proxy]\nhandshake-timeout = \"300ms\"").await;

    let mut silent = gate.connect(&origin.authority()).await.opened().plain();
    silent.read_to_end().await;

    let mut stalled = gate.connect(&origin.authority()).await.opened().plain();
    stalled.send(b"\x16\x03\x01").await;
    stalled.read_to_end().await;
    gate.wait_for_log("that the handshake stalled", |line| {
        line.says("a client's TLS handshake inside a CONNECT took too long")
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_authority_is_logged_with_a_fix() {
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
    let fix = format!(
        "robotgate env CLIENT --config {}",
        gate.file("robotgate.toml").display()
    );
    assert_eq!(line.field("fix"), Some(&*fix), "what to do: {line:#?}");
    assert!(line.says(NAME), "where it wanted to go: {line:#?}");
}

/// Each kind of event is logged at most once a second, with the number of such events since the start.
#[tokio::test]
async fn a_flood_of_bad_requests_does_not_flood_the_log() {
    const REQUESTS: usize = 30;
    let mut gone = Origin::start().spawn().await;
    gone.shut_down().await;
    let gate = Gate::with("[proxy]\nname = \"gate\"").await;
    let ask = async |bytes: String| {
        let mut connection = gate.dial().await;
        connection.send(bytes).await;
        connection.read_to_end().await;
    };
    let head = |host: &str, more: &str| {
        format!(
            "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nConnection: close\r\n{more}\r\n"
        )
    };
    let totals = |message: &str| -> Vec<u64> {
        let lines = gate
            .log()
            .into_iter()
            .filter(|line| line.message().starts_with(message));
        lines
            .map(|line| line.json["such_events_since_start"].as_u64().expect("a count"))
            .collect()
    };
    let bytes: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("a request was refused as malformed", &|_| {
            "GET / HTTP/1.1\r\n\r\n".to_owned()
        }),
        ("a client spoke TLS to a listener for plain HTTP", &|_| {
            "\x16\x03\x01".to_owned()
        }),
        (
            "refused a request whose Via field already has this proxy's name",
            &|_| head("a.example", "Via: 1.1 gate\r\n"),
        ),
        ("the robots.txt could not be fetched", &|at| {
            head(&format!("site-{at}.example:{}", gone.port()), "")
        }),
    ];
    for (message, bytes) in bytes {
        for at in 0..REQUESTS {
            ask(bytes(at)).await;
        }
        let logged = wait::until(message, || Some(totals(message)).filter(|logged| !logged.is_empty())).await;
        assert!(logged.len() < REQUESTS && logged[0] == 1, "{message}: {logged:?}");
        let mut at = REQUESTS;
        let total = wait::until_async("the next line", async || {
            at += 1;
            ask(bytes(at)).await;
            totals(message).get(logged.len()).copied()
        })
        .await;
        assert!(total > REQUESTS as u64 || logged.len() > 1, "{message}: {total}");
    }
}

#[tokio::test]
async fn clients_that_disconnect_at_any_point_do_no_harm() {
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

    gate_still_works(&mut gate, &origin).await;
}
