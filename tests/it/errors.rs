//! Failures to reach the origin or to get its response: 502 or 504 with the `Proxy-Status` error type of RFC 9209, or a
//! response that breaks off, but never a refusal because of robots.txt.
//!
//! In each case the robots.txt could be fetched, so the verdict is `allow` and only the page fails.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::support::{Blackhole, Certificate, DnsAnswer, End, Gate, NAME, Origin, Reply, Response, Step, failed};

/// Starts an origin that allows everything and closes its connections, so that each request opens its own.
async fn origin(tls: bool) -> Origin {
    let origin = Origin::start().otherwise(|_| Reply::status(404).header("Connection", "close").then(Step::Close));
    if tls {
        origin.tls().spawn().await
    } else {
        origin.spawn().await
    }
}

/// Makes the gate fetch the robots.txt before the failure occurs.
async fn warm(gate: &Gate, origin: &Origin) {
    assert_eq!(gate.get(&origin.url("/warm")).await.status, 404);
}

async fn fails(gate: &Gate, origin: &Origin, status: u16, errors: &[&str]) -> Response {
    let url = origin.url("/x");
    let response = gate.get(&url).await;
    failed(&response, status, errors);
    assert!(
        !response
            .field("Robots-Decision")
            .is_some_and(|value| value.starts_with("deny")),
        "{response:#?}"
    );
    let decision = gate.decision_for(&url).await;
    assert_eq!(decision["verdict"], "allow", "{decision:#}");
    let completion = gate.completion_of(&decision).await;
    assert_eq!(completion["status"], status, "{completion:#}");
    assert_eq!(
        completion["error"].as_str(),
        response.proxy_status().param("error").as_deref()
    );
    response
}

#[tokio::test]
async fn each_kind_of_broken_response_has_its_own_error() {
    let half = "HTTP/1.1 200 OK\r\nContent-";
    let ended = ["connection_terminated", "http_response_incomplete"];
    for (way, reply, errors) in [
        ("reset", Reply::script([Step::Reset]), &ended[..]),
        ("close", Reply::script([Step::Close]), &ended),
        ("half a head", Reply::raw(half), &ended),
        (
            "half a head, then reset",
            Reply::script([Step::send(half), Step::Reset]),
            &ended,
        ),
        (
            "no HTTP",
            Reply::raw("220 mail.example ESMTP\r\n\r\n"),
            &["http_protocol_error"],
        ),
        (
            "another protocol, unasked",
            Reply::raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
            &["http_protocol_error"],
        ),
    ] {
        println!("{way}");
        let origin = Origin::start().reply("/x", reply).spawn().await;
        let gate = Gate::start().await;
        fails(&gate, &origin, 502, errors).await;
    }
}

#[tokio::test]
async fn a_silent_origin_is_a_504() {
    for (way, reply) in [
        ("silence", Reply::script([Step::Stall])),
        (
            "half a head",
            Reply::script([Step::send("HTTP/1.1 200 OK\r\n"), Step::Stall]),
        ),
    ] {
        println!("{way}");
        let origin = Origin::start().reply("/x", reply).spawn().await;
        let gate = Gate::with("[proxy]\nread-timeout = \"300ms\"").await;
        fails(
            &gate,
            &origin,
            504,
            &["connection_read_timeout", "http_response_timeout"],
        )
        .await;
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_502() {
    let mut origin = origin(false).await;
    let gate = Gate::start().await;
    warm(&gate, &origin).await;

    origin.shut_down().await;

    fails(&gate, &origin, 502, &["connection_refused"]).await;
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_does_not_hide_the_fault_of_another() {
    let allowed = "allow = [\"127.0.0.0/8\", \"fe80::/10\"]";
    let gate = Gate::with(&format!("[egress]\n{allowed}\n[https]\nmode = \"tunnel\"")).await;
    // Without an interface in the address, the system refuses to connect to a link-local address.
    let addresses = ["127.0.0.1", "fe80::1"].map(|address| address.parse().expect("an address"));
    gate.dns().answer(NAME, DnsAnswer::Addresses(addresses.to_vec()));

    let mut plain = origin(false).await;
    warm(&gate, &plain).await;
    plain.shut_down().await;
    fails(&gate, &plain, 502, &["connection_refused"]).await;
    let completion = gate.completion_of(&gate.decision_for(&plain.url("/x")).await).await;
    assert_eq!(completion["upstream"], format!("127.0.0.1:{}", plain.port()));

    let mut tunneled = origin(true).await;
    let connect = || gate.connect(&tunneled.authority()).user_agent("TestBot/1.0");
    drop(connect().await.opened());
    let again = connect();
    tunneled.shut_down().await;
    failed(&again.await.refused(), 502, &["connection_refused"]);
}

#[tokio::test]
async fn a_connection_that_is_never_made_is_a_504() {
    let origin = origin(false).await;
    let gate = Gate::with("[proxy]\nconnect-timeout = \"300ms\"").await;
    warm(&gate, &origin).await;
    let hole = Blackhole::at([127, 0, 0, 2], origin.port()).await;

    gate.dns().point(NAME, hole.address().ip());

    fails(&gate, &origin, 504, &["connection_timeout"]).await;
}

#[tokio::test]
async fn a_name_that_no_longer_resolves_is_an_error() {
    for (answer, status, errors) in [
        (DnsAnswer::NoSuchName, 502, &["dns_error"]),
        (DnsAnswer::ServerFailure, 502, &["dns_error"]),
        (DnsAnswer::Addresses(vec![]), 502, &["dns_error"]),
        (DnsAnswer::Silence, 504, &["dns_timeout"]),
    ] {
        println!("{errors:?}");
        let origin = origin(false).await;
        let gate = Gate::start().await;
        warm(&gate, &origin).await;
        gate.dns().answer(NAME, answer);
        fails(&gate, &origin, status, errors).await;
    }
}

#[tokio::test]
async fn a_name_that_changes_to_a_prohibited_address_is_a_502() {
    for address in [[169, 254, 169, 254], [10, 0, 0, 1]] {
        let origin = origin(false).await;
        let gate = Gate::start().await;
        warm(&gate, &origin).await;

        gate.dns().point(NAME, address);

        fails(&gate, &origin, 502, &["destination_ip_prohibited"]).await;
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_a_502() {
    let origin = origin(true).await;
    let gate = Gate::start().await;
    warm(&gate, &origin).await;

    origin.present(&Certificate::of_unknown_root(&[NAME]));

    let response = fails(&gate, &origin, 502, &["tls_certificate_error"]).await;
    assert_eq!(response.proxy_status().value(), "robotgate");
}

#[tokio::test]
async fn tls_that_breaks_before_a_response_is_a_terminated_connection() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    let acceptor = TlsAcceptor::from(Certificate::of(&[NAME]).server_config());
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut tls = acceptor.accept(stream).await.expect("a handshake");
            let mut request = Vec::with_capacity(4096);
            tls.read_buf(&mut request).await.expect("a request");
            if request.starts_with(b"GET /robots.txt") {
                let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                tls.write_all(none).await.expect("an open connection");
                tls.shutdown().await.expect("an open connection");
            } else {
                tls.write_all(b"HTTP/1.1 200 OK\r\n").await.expect("an open connection");
                let (stream, _) = tls.get_mut();
                stream.write_all(b"no record of TLS").await.expect("an open connection");
            }
        }
    });
    let gate = Gate::start().await;

    let response = gate.get(&format!("https://{NAME}:{port}/x")).await;

    failed(&response, 502, &["connection_terminated"]);
    serving.abort();
}

#[tokio::test]
async fn a_truncated_response_is_logged() {
    let part = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npart";
    let origin = Origin::start()
        .reply("/x", Reply::script([Step::send(part), Step::Reset]))
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/x")).await;

    assert!(response.status == 502 || response.end == End::Cut, "{response:#?}");
    let completion = gate.completion_of(&gate.decision_for(&origin.url("/x")).await).await;
    assert!(completion["error"].is_string(), "{completion:#}");
}

#[tokio::test]
async fn errors_of_the_origin_are_forwarded() {
    let origin = Origin::start()
        .reply("/x", Reply::status(502).body("the origin's own"))
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/x")).await;

    assert_eq!((response.status, response.text().as_str()), (502, "the origin's own"));
    assert_eq!(response.decision().value(), "allow");
    assert_eq!(response.field("Proxy-Status"), None, "it was no error of ours");
}
