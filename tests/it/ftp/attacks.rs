//! Servers that name another address, keep robotgate busy, or break off. robotgate reports an error, and does not
//! connect to another address.

use tokio::net::TcpListener;

use super::{Answer, EXEMPT, FtpServer, files, get, server::passive};
use crate::support::{End, Gate, failed};

/// Starts a gate that fetches no robots.txt, so that each server attacks during the test's own request.
async fn gate(config: &str) -> Gate {
    Gate::with(&format!("{config}\n{EXEMPT}")).await
}

#[tokio::test]
async fn data_connections_to_other_hosts_or_closed_ports_are_refused() {
    let inside = TcpListener::bind("127.0.0.2:0").await.expect("a free port");
    let port = inside.local_addr().expect("a bound socket has an address").port();
    let gate = gate("").await;
    let own_port = gate.admin_address().port();
    for builder in [
        files()
            .reply("EPSV", "500 what?")
            .reply("PASV", &passive("127,0,0,2", port)),
        files()
            .reply("EPSV", "500 what?")
            .reply("PASV", &passive("10,0,0,1", port)),
        files()
            .reply("EPSV", "500 what?")
            .reply("PASV", &passive("0,0,0,0", port)),
        files()
            .reply("EPSV", "500 what?")
            .reply("PASV", &passive("127,0,0,1", 22)),
        files().reply("EPSV", "229 passive (|||22|)"),
        files().reply("EPSV", "229 passive (|||1023|)"),
        files().reply("EPSV", "229 passive (|||0|)"),
        // A listener of robotgate itself.
        files().reply("EPSV", &format!("229 passive (|||{own_port}|)")),
    ] {
        let server = builder.start().await;
        let url = server.url("/pub/a.txt");
        let response = gate.get(&url).await;
        failed(&response, 502, &["destination_ip_prohibited"]);
        assert_eq!(server.count("RETR"), 0);
        let completion = gate.completion_of(&gate.decision_for(&url).await).await;
        assert_eq!(completion["error"], "destination_ip_prohibited", "{completion:#}");
        assert_eq!(completion["upstream"], server.address().to_string(), "{completion:#}");
    }
    let nobody = std::future::poll_fn(|cx| match inside.poll_accept(cx) {
        std::task::Poll::Ready(_) => std::task::Poll::Ready(false),
        std::task::Poll::Pending => std::task::Poll::Ready(true),
    });
    assert!(nobody.await, "robotgate connected to another address");
}

#[tokio::test]
async fn data_connections_need_no_entry_in_egress_ports() {
    let server = files().start().await;
    let gate = Gate::with(&format!("[egress]\nports = [{}]", server.address().port())).await;
    assert_eq!(get(&gate, &server, "/pub/a.txt").await.text(), "0123456789");
}

#[tokio::test]
async fn malformed_replies_are_a_fault() {
    for (verb, reply) in [
        ("", "hello"),
        ("USER", "33"),
        ("EPSV", "229 passive (|||99999|)"),
        ("SIZE", "213 many"),
        ("SIZE", "213 99999999999999999999999"),
    ] {
        let server = files().reply(verb, reply).start().await;
        let gate = gate("").await;
        failed(&get(&gate, &server, "/pub/a.txt").await, 502, &["http_protocol_error"]);
    }
}

#[tokio::test]
async fn replies_without_end_are_cut_off() {
    for (verb, text) in [
        ("", "220-welcome\r\n"),
        ("", "220 welcome "),
        ("USER", "331-more\r\n"),
        ("SIZE", "213-more\r\n"),
        ("RETR", "150-more\r\n"),
    ] {
        let server = files().on(verb, Answer::Forever(text)).start().await;
        let gate = gate("").await;
        let before = gate.peak_memory();
        failed(&get(&gate, &server, "/pub/a.txt").await, 502, &["http_protocol_error"]);
        let more = gate.peak_memory().saturating_sub(before);
        assert!(more < 8 << 20, "{verb}: {more} bytes");
    }
}

#[tokio::test]
async fn a_silent_server_is_abandoned_after_the_read_timeout() {
    for verb in ["", "USER", "PASS", "TYPE", "PWD", "SIZE", "MDTM", "EPSV", "RETR"] {
        let server = files().on(verb, Answer::Silence).start().await;
        let gate = gate("[proxy]\nread-timeout = '300ms'").await;
        failed(
            &get(&gate, &server, "/pub/a.txt").await,
            504,
            &["connection_read_timeout"],
        );
    }
    let server = files().on("RETR", Answer::NoData).start().await;
    let gate = gate("[proxy]\nread-timeout = '2s'").await;
    let response = get(&gate, &server, "/pub/a.txt").await;
    assert_eq!((response.status, response.end), (200, End::Cut));
}

#[tokio::test]
async fn a_server_that_closes_the_connection_is_a_502() {
    for verb in ["", "USER", "TYPE", "SIZE", "RETR"] {
        let server = files().on(verb, Answer::Close).start().await;
        let gate = gate("").await;
        failed(
            &get(&gate, &server, "/pub/a.txt").await,
            502,
            &["connection_terminated"],
        );
    }
}

#[tokio::test]
async fn an_incomplete_file_is_not_forwarded_as_complete() {
    for (size, content, reply) in [
        // In the first two cases, the size is known and all bytes arrive, but the server says that the transfer failed.
        ("213 10", "0123456789", "426 broken off"),
        ("213 10", "0123456789", "451 disk"),
        ("213 10", "01234", "226 done"),
        ("213 10", "", "226 done"),
        ("500 what?", "0123456789", "426 broken off"),
    ] {
        let transfer = Answer::Transfer(content.into(), reply);
        let server = files().reply("SIZE", size).on("RETR", transfer).start().await;
        let gate = gate("").await;
        let url = server.url("/pub/a.txt");
        let response = gate.get(&url).await;
        assert_eq!(
            (response.status, response.end),
            (200, End::Cut),
            "{size} {content} {reply}"
        );
        let completion = gate.completion_of(&gate.decision_for(&url).await).await;
        assert_eq!(completion["error"], "http_response_incomplete", "{completion:#}");
    }
}

#[tokio::test]
async fn a_file_that_grows_is_cut_at_its_announced_size() {
    let transfer = Answer::Transfer(b"0123456789 and more".to_vec(), "426 broken off");
    let server = files().on("RETR", transfer).start().await;
    let gate = gate("").await;
    let response = get(&gate, &server, "/pub/a.txt").await;
    assert_eq!((response.text().as_str(), response.end), ("0123456789", End::Length));
}

#[tokio::test]
async fn a_transfer_whose_client_disconnects_is_logged_as_client_gone() {
    let server = FtpServer::builder().file("/a", vec![b'x'; 50_000_000]).start().await;
    let gate = gate("").await;
    let url = server.url("/a");
    let mut client = gate.dial().await;
    let host = server.address();
    client
        .send(format!(
            "GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot\r\n\r\n"
        ))
        .await;
    client.read_exactly(100_000).await;
    drop(client);
    let completion = gate.completion_of(&gate.decision_for(&url).await).await;
    assert_eq!(completion["error"], "client_gone", "{completion:#}");
}
