//! Tests of the harness: its servers, clients and parsers behave as tests expect.

use std::time::Duration;

use tokio::net::UdpSocket;

use crate::support::{
    Alpn, Ask, Blackhole, Certificate, Connection, Dns, DnsAnswer, End, Field, Latch, NAME, Origin, ROBOTS, Reply,
    Roots, Step, wait,
};

#[tokio::test]
async fn a_test_origin_serves_pages_and_records_requests() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "hello").spawn().await;
    let mut connection = Connection::to(origin.address()).await.unwrap();

    let page = connection.get("/x?a=1").header("X-Odd", "yes").await;
    let missing = connection.ask("POST", "/nowhere").body(b"abc").await;
    let robots = connection.ask("HEAD", "/robots.txt").await;
    let chunked = connection.ask("POST", "/x").chunks(&["he", "llo"]).await;

    assert_eq!(
        (page.status, page.text().as_str(), page.end),
        (200, "hello", End::Length)
    );
    assert_eq!((missing.status, robots.status, chunked.status), (404, 200, 200));
    assert_eq!((robots.body.len(), robots.field("Content-Length")), (0, Some("33")));
    let requests = origin.requests();
    assert_eq!(
        requests.iter().map(|r| r.method.as_str()).collect::<Vec<_>>(),
        ["GET", "POST", "HEAD", "POST"]
    );
    assert_eq!(
        (requests[0].target.as_str(), requests[0].field("x-odd")),
        ("/x?a=1", Some("yes"))
    );
    assert_eq!((requests[0].version.as_str(), requests[3].connection), ("HTTP/1.1", 0));
    assert_eq!(
        (requests[1].body.as_slice(), requests[3].body.as_slice()),
        (&b"abc"[..], &b"hello"[..])
    );
    assert_eq!((origin.count("/robots.txt"), origin.connections()), (1, 1));
}

#[tokio::test]
async fn a_test_origin_misbehaves_as_scripted() {
    let latch = Latch::new();
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    let drip = Step::Drip {
        bytes: "HTTP/1.1 204 Slow\r\n\r\n".into(),
        every: Duration::from_millis(1),
    };
    let origin = Origin::start()
        .reply("/cut", Reply::raw(half))
        .reply("/reset", Reply::script([Step::send(half), Step::Reset]))
        .reply("/drip", Reply::script([drip]))
        .reply("/chunks", Reply::chunked(["one ", "two"]))
        .reply("/until-close", Reply::raw("HTTP/1.1 200 OK\r\n\r\nall of it"))
        .reply(
            "/endless",
            Reply::script([Step::Endless("HTTP/1.1 100 More\r\n\r\n".into())]),
        )
        .reply("/later", Reply::ok("text/plain", "late").after(&latch))
        .spawn()
        .await;
    let get = |path: &str| Ask::fresh(origin.address(), "GET", path);

    assert_eq!(get("/cut").await.end, End::Cut);
    assert_eq!(get("/reset").await.end, End::Cut);
    assert_eq!(get("/drip").await.status, 204);
    let chunks = get("/chunks").await;
    assert_eq!((chunks.text().as_str(), chunks.end), ("one two", End::Chunked));
    assert_eq!(get("/until-close").await.end, End::Close);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), get("/endless").send())
            .await
            .is_err()
    );
    let late = tokio::spawn(get("/later").into_future());
    wait::until("the request", || (origin.count("/later") == 1).then_some(())).await;
    assert!(!late.is_finished());
    latch.open();
    assert_eq!(late.await.unwrap().text(), "late");
}

#[tokio::test]
async fn a_test_origin_uses_the_given_certificate() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let tls = |roots: Roots| {
        let address = origin.address();
        async move {
            Connection::to(address)
                .await
                .unwrap()
                .tunnel(roots)
                .try_tls(NAME, Alpn::Http1)
                .await
        }
    };

    let mut good = tls(Roots::of_origins()).await.unwrap();
    assert_eq!(good.get("/x").await.text(), "secret");
    assert_eq!(origin.requests()[0].sni.as_deref(), Some(NAME));
    assert!(tls(Roots::none()).await.is_err());
    for bad in [
        Certificate::expired(&[NAME]),
        Certificate::of(&["other.example"]),
        Certificate::of_unknown_root(&[NAME]),
    ] {
        origin.present(&bad);
        assert!(tls(Roots::of_origins()).await.is_err());
    }
}

#[tokio::test]
async fn the_test_client_supports_http_2() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let mut server = h2::server::handshake(far).await.unwrap();
        while let Some(Ok((request, mut respond))) = server.accept().await {
            let echo = format!("{} {}", request.method(), request.uri());
            let head = http::Response::builder()
                .status(403)
                .header("robots-decision", "deny")
                .body(())
                .unwrap();
            respond
                .send_response(head, false)
                .unwrap()
                .send_data(echo.into_bytes().into(), true)
                .unwrap();
        }
    });
    let mut connection = Connection::http2_over(near, "shop.example:1").await;

    let response = connection.get("/x").await;
    let more = connection.get_all(&["/a".into(), "/b".into()]).await;

    assert_eq!((response.status, response.decision().value().as_str()), (403, "deny"));
    assert_eq!(response.text(), "GET https://shop.example:1/x");
    assert_eq!(more[1].text(), "GET https://shop.example:1/b");
}

#[tokio::test]
async fn the_test_name_server_answers_as_configured() {
    let dns = Dns::start().await;
    dns.answer("gone.example", DnsAnswer::NoSuchName);
    dns.answer("broken.example", DnsAnswer::ServerFailure);
    dns.answer("mute.example", DnsAnswer::Silence);
    dns.answer(
        "moving.example",
        DnsAnswer::Changing(vec![vec![[192, 0, 2, 1].into()], vec![[192, 0, 2, 2].into()]]),
    );

    assert_eq!(lookup(&dns, "Shop.Example", 1).await, (0, vec![127, 0, 0, 1]));
    assert_eq!(lookup(&dns, "shop.example", 28).await, (0, vec![]));
    assert_eq!(lookup(&dns, "gone.example", 1).await, (3, vec![]));
    assert_eq!(lookup(&dns, "broken.example", 1).await, (2, vec![]));
    assert_eq!(lookup(&dns, "moving.example", 1).await, (0, vec![192, 0, 2, 1]));
    assert_eq!(lookup(&dns, "moving.example", 1).await, (0, vec![192, 0, 2, 2]));
    assert_eq!((dns.queries("shop.example"), dns.queries("moving.example")), (1, 2));

    // The name server answers in order, so an answer to the first query would arrive before the one to the second.
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    socket
        .send_to(&query(1, "mute.example", 1), dns.address())
        .await
        .unwrap();
    socket
        .send_to(&query(2, "shop.example", 1), dns.address())
        .await
        .unwrap();
    assert_eq!(reply(&socket).await[..2], [0, 2]);
}

fn query(id: u8, name: &str, kind: u8) -> Vec<u8> {
    let mut query = vec![0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, kind, 0, 1]);
    query
}

async fn reply(socket: &UdpSocket) -> Vec<u8> {
    let mut reply = vec![0; 512];
    let length = wait::within("a reply", socket.recv(&mut reply)).await.unwrap();
    reply.truncate(length);
    reply
}

/// Returns the response code and the last address, which is empty if there is none.
async fn lookup(dns: &Dns, name: &str, kind: u8) -> (u8, Vec<u8>) {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    socket.send_to(&query(7, name, kind), dns.address()).await.unwrap();
    let reply = reply(&socket).await;
    assert_eq!(reply[..2], [0, 7]);
    let address = match reply[7] {
        0 => &[],
        _ => &reply[reply.len() - 4..],
    };
    (reply[3] & 15, address.to_vec())
}

#[tokio::test]
async fn a_black_hole_answers_no_connection_attempt() {
    let hole = Blackhole::start().await;

    let attempt = tokio::net::TcpStream::connect(("127.0.0.1", hole.port()));

    assert!(tokio::time::timeout(Duration::from_millis(200), attempt).await.is_err());
}

#[test]
fn structured_fields_are_parsed() {
    let decision = Field::item(r#"deny; reason=no-rule; line=3; rule="Disallow: /\"x""#);
    assert_eq!(decision.value(), "deny");
    assert_eq!(decision.param("reason").as_deref(), Some("no-rule"));
    assert_eq!(
        (decision.kind("reason"), decision.kind("line"), decision.kind("rule")),
        (Some("token"), Some("integer"), Some("string"))
    );
    assert_eq!(decision.param("rule").as_deref(), Some("Disallow: /\"x"));
    assert_eq!(
        Field::last_of("other, robotgate; error=dns_error")
            .param("error")
            .as_deref(),
        Some("dns_error")
    );
}
