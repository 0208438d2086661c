//! Listeners that are added, removed and changed while the gate runs.

use std::{fs, net::SocketAddr};

use crate::{
    reload::Load,
    support::{Ask, Certificate, CliOutput, Connection, Gate, Latch, Origin, Reply, allowed, wait},
};

fn listening(gate: &Gate) -> Vec<SocketAddr> {
    let lines = gate.log().into_iter().filter(|line| line.message() == "listening");
    let addresses = lines.filter(|line| line.field("speaks") != Some("admin"));
    addresses
        .map(|line| line.field("address").unwrap().parse().unwrap())
        .collect()
}

async fn is_open(address: SocketAddr) -> bool {
    Connection::to(address).await.is_ok()
}

async fn ask(address: SocketAddr, url: &str) {
    allowed(
        &Ask::fresh(address, "GET", url).send().await.expect("a response"),
        "no-robots",
    );
}

fn listen(addresses: &[String]) -> String {
    format!("[proxy]\nlisten = {addresses:?}")
}

#[tokio::test]
async fn a_reload_changes_listeners_and_running_exchanges_continue() {
    let latch = Latch::new();
    let origin = Origin::start()
        .page("/x", "page")
        .reply("/slow", Reply::ok("text/plain", "at last").after(&latch))
        .spawn()
        .await;
    let gate = Gate::start().await;
    let old = gate.address();
    let slow = tokio::spawn(gate.get(&origin.url("/slow")).send());
    wait::until("the request", || (origin.count("/slow") == 1).then_some(())).await;

    gate.reconfigure(&listen(&["127.0.0.1:0".to_owned(), "127.0.0.2:0".to_owned()]));
    gate.reloaded(1).await;
    let new = *listening(&gate).last().expect("it tells of the new one");
    assert_eq!(listening(&gate), [old, new], "the old one is not bound anew");
    ask(old, &origin.url("/x")).await;
    ask(new, &origin.url("/x")).await;

    gate.reconfigure(&listen(&["127.0.0.2:0".to_owned()]));
    gate.reloaded(2).await;
    assert!(!is_open(old).await, "{old} is given up");
    ask(new, &origin.url("/x")).await;

    latch.open();
    let slow = slow.await.unwrap().expect("the exchange was not broken off");
    assert_eq!(slow.text(), "at last");
}

#[tokio::test]
async fn changing_between_one_address_and_all_loses_no_request() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let port = gate.address().port();
    let load: Vec<Load> = (0..4).map(|_| Load::start(&gate, &origin.url("/x"))).collect();

    // The first change only writes the number of the port in place of 0, so the socket stays the same.
    for (round, address) in ["127.0.0.1", "0.0.0.0", "127.0.0.1", "[::]", "0.0.0.0", "127.0.0.1"]
        .into_iter()
        .enumerate()
    {
        gate.reconfigure(&listen(&[format!("{address}:{port}")]));
        gate.reloaded(round + 1).await;
        assert_eq!(
            is_open(format!("127.0.0.2:{port}").parse().unwrap()).await,
            address != "127.0.0.1",
            "{address}"
        );
    }

    for worker in load {
        let (served, failures) = worker.stop().await;
        assert!(served > 0);
        assert_eq!(failures, Vec::<String>::new(), "of {served}");
    }
}

#[tokio::test]
async fn a_reload_can_switch_a_port_to_tls() {
    let origin = Origin::start().page("/x", "page").spawn().await;
    let (certificate, key) = Certificate::of(&["proxy.example"]).to_pem();
    let gate = Gate::builder()
        .put("proxy.pem", certificate)
        .put("key.pem", key)
        .start()
        .await;
    let address = gate.address();
    ask(address, &origin.url("/x")).await;

    gate.reconfigure(&format!(
        "[proxy]\nlisten = \"127.0.0.2:0\"\ntls = {{ listen = \"{address}\", certificate = \"proxy.pem\", key = \"key.pem\" }}"
    ));
    gate.reloaded(1).await;

    let result = Ask::fresh(address, "GET", &origin.url("/x")).send().await;
    assert!(result.is_err(), "{result:?}");
    assert_eq!(gate.tls_address().await, address);
    let warned = gate.wait_for_log("a failed handshake", |line| {
        line.message().contains("handshake with the proxy failed")
    });
    warned.await;
}

#[tokio::test]
async fn an_unusable_address_is_rejected_by_reload_and_noted_by_check() {
    let origin = Origin::start().page("/x", "page").spawn().await;
    let gate = Gate::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    for (address, why, check_warns) in [
        (
            "192.0.2.1:3128".to_owned(),
            "this machine has no such address: correct proxy.listen",
            true,
        ),
        (
            taken.to_string(),
            "another program (perhaps another robotgate) or another address",
            false,
        ),
    ] {
        let rejected = gate.logged("the new configuration was rejected; robotgate keeps the current one");
        gate.reconfigure(&listen(&["127.0.0.3:0".to_owned(), address]));
        wait::until("a rejection", || {
            (gate.logged("the new configuration was rejected; robotgate keeps the current one") > rejected)
                .then_some(())
        })
        .await;
        let mut lines = gate.log().into_iter().rev();
        let line = lines
            .find(|line| line.message() == "the new configuration was rejected; robotgate keeps the current one")
            .unwrap();
        let error = line.field("error").unwrap().to_owned();
        assert!(error.contains(why), "{error}");
        let output = CliOutput::of(&["check", gate.file("robotgate.toml").to_str().unwrap()], "").await;
        match check_warns {
            true => assert!(output.errors.contains(&error), "{output:#?}"),
            // `check` only warns about this port, because the running gate itself could be listening on it.
            false => assert!(
                output
                    .errors
                    .contains(&format!("warning: something already listens on {taken}")),
                "{output:#?}"
            ),
        }
        ask(gate.address(), &origin.url("/x")).await;
    }
    assert_eq!(listening(&gate), [gate.address()]);
}

#[tokio::test]
async fn a_failed_reload_loses_no_client_and_keeps_its_ports() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::with("[proxy]\nlisten = \"0.0.0.0:0\"").await;
    let port = gate.address().port();
    let load: Vec<Load> = (0..4).map(|_| Load::start(&gate, &origin.url("/x"))).collect();

    let before = fs::read_dir(gate.file("")).unwrap().count();
    for round in 1..=8 {
        // The gate can create all of these files except the log.
        gate.reconfigure(&format!(
            "[proxy]\nlisten = \"127.0.0.1:{port}\"\n[audit]\npath = \"none/{round}/audit.jsonl\"\n\
             [cache]\npath = \"other.redb\"\n[https]\nca-certificate = \"other.pem\"\nca-key = \"other-key.pem\""
        ));
        wait::until("a rejection", || {
            (gate.logged("the new configuration was rejected; robotgate keeps the current one") == round).then_some(())
        })
        .await;
    }
    for worker in load {
        let (served, failures) = worker.stop().await;
        assert!(served > 0);
        assert_eq!(failures, Vec::<String>::new(), "of {served}");
    }
    let after: Vec<_> = fs::read_dir(gate.file(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(after.len(), before, "{after:?}");

    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.set_reuseaddr(true).unwrap();
    other.set_reuseport(true).unwrap();
    let shared = other.bind(format!("127.0.0.1:{port}").parse().unwrap());
    assert_eq!(shared.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_reload_can_change_the_admin_address_and_token() {
    let gate = Gate::builder().put("token", "the-first-of-two-tokens\n").start().await;
    let old = gate.admin_address();
    let status = async |token: &str| {
        let response = gate
            .admin("/api/v1/status")
            .header("Authorization", &format!("Bearer {token}"));
        response.await.status
    };
    assert_eq!(gate.admin("/api/v1/status").await.status, 200);

    gate.reconfigure("[admin]\nlisten = \"127.0.0.2:0\"\ntoken-file = \"token\"");
    gate.reloaded(1).await;
    assert!(!is_open(old).await, "{old} is given up");
    assert_eq!(status("the-first-of-two-tokens").await, 200);
    assert_eq!(gate.admin("/api/v1/status").await.status, 401);

    fs::write(gate.file("token"), "the-second-of-two-tokens\n").unwrap();
    gate.reloaded(2).await;
    assert_eq!(status("the-first-of-two-tokens").await, 401);
    assert_eq!(status("the-second-of-two-tokens").await, 200);
    let line = gate
        .wait_for_log("the change", |line| line.field("key") == Some("admin.token-file"))
        .await;
    assert_eq!(line.field("before"), Some("default"));
    let lines = gate.log();
    let mut changes = lines
        .iter()
        .rev()
        .filter(|line| line.field("key") == Some("admin.token-file"));
    assert_eq!(changes.next().and_then(|line| line.field("how")), Some("another token"));
    assert!(lines.iter().all(|line| !line.text.contains("of-two-tokens")));

    gate.reconfigure("[admin]\nlisten = []");
    gate.reloaded(3).await;
    assert!(!is_open(gate.admin_address()).await);
}
