//! CONNECT requests as real clients send them, and a response that all of these clients understand.

use crate::support::{Alpn, Ask, Gate, NAME, Origin, allowed, same_members};

#[tokio::test]
async fn the_response_to_a_connect_is_sent_in_one_write() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::start().await;

    let tunnel = gate.connect(&origin.authority()).await.opened();

    let answer = String::from_utf8(tunnel.answer.clone()).expect("a head is text");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer:?}");
    assert_eq!(answer.matches("\r\n").count(), 2, "{answer:?}");
    let names = tunnel.headers.0.iter().map(|(name, _)| name.as_str());
    same_members("the headers", names, &[]);
}

#[tokio::test]
async fn every_form_of_a_connect_is_understood() {
    type Change = fn(Ask<'static>) -> Ask<'static>;
    let ways: [(&str, Change); 7] = [
        ("with no User-Agent, as most", |ask| ask),
        ("with a User-Agent", |ask| ask.user_agent("TestBot/1.0")),
        ("HTTP/1.0 without Host, as urllib", |ask| ask.http_1_0().without("Host")),
        ("HTTP/1.0 with Host", |ask| ask.http_1_0()),
        ("Host without the port, as aiohttp and undici", |ask| {
            ask.set("Host", NAME)
        }),
        ("Proxy-Connection, as curl", |ask| {
            ask.header("Proxy-Connection", "Keep-Alive")
        }),
        ("Connection: close, as undici", |ask| ask.header("Connection", "close")),
    ];
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;

    for (way, change) in ways {
        println!("{way}");
        let tunnel = gate.connect(&origin.authority()).with_ask(change).await.opened();
        let mut inside = tunnel.tls(NAME, Alpn::Http1).await;
        allowed(&inside.get("/x").await, "no-robots");
    }
}

#[tokio::test]
async fn a_client_may_send_its_first_bytes_in_pieces() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::start().await;
    let mut connection = gate.dial().await;

    for piece in ["C", "ONN", "ECT ", &origin.authority(), " HTTP/1.1\r\n", "\r\n"] {
        connection.send(piece).await;
        tokio::task::yield_now().await;
    }

    let answer = String::from_utf8(connection.read().await).expect("a head is text");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
}
