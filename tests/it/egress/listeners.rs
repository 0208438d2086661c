//! No request through the proxy reaches the proxy itself, regardless of `egress.allow`.

use super::through_connect;
use crate::support::{Gate, refused};

#[tokio::test]
async fn bots_cannot_reach_the_proxy_itself_by_any_address() {
    for (listen, others) in [
        ("127.0.0.1:0", &["0.0.0.0", "[::]"][..]),
        ("0.0.0.0:0", &["127.0.0.2", "127.255.0.1", "0.0.0.0"]),
    ] {
        let everything = "allow = ['0.0.0.0/0', '::/0', '.example']";
        let gate = Gate::with(&format!("[proxy]\nlisten = '{listen}'\n[egress]\n{everything}")).await;
        let port = gate.address().port();
        let same = ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]", "gate.example"];
        for host in same.iter().chain(others) {
            println!("{listen}: {host}");
            let response = gate.get(&format!("http://{host}:{port}/")).await;
            refused(&response, "egress");
            let details = response.proxy_status().param("details").unwrap();
            assert!(
                details.ends_with("is an address of this proxy itself, which bots cannot reach through it; ask it directly, not through the proxy"),
                "{details}"
            );
        }
        let authority = format!("127.0.0.1:{port}");
        refused(&through_connect(&gate, &authority).await, "egress");
    }
}

#[tokio::test]
async fn after_a_reload_bots_still_cannot_reach_the_proxy_itself() {
    let gate = Gate::start().await;
    let url = format!("http://{}/", gate.address());
    refused(&gate.get(&url).await, "egress");
    gate.reconfigure("[egress]\nallow = ['127.0.0.1', '::/0']");
    gate.reloaded(1).await;
    refused(&gate.get(&url).await, "egress");
}

/// Clients keep requesting the same page on an unused port, while robotgate starts to listen on it.
#[tokio::test]
async fn a_new_listener_is_closed_to_bots_from_its_first_moment() {
    const EXEMPT: &str = "[[bot]]\nname = \"tester\"\nuser-agents = [\"TestBot\"]\nenforcement = \"exempt\"\n";
    let gate = std::sync::Arc::new(Gate::with(EXEMPT).await);
    for round in 0..5 {
        // No other test uses this address.
        let free = std::net::TcpListener::bind("127.0.77.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let bots: Vec<_> = (0..4)
            .map(|_| {
                let (gate, done) = (gate.clone(), done.clone());
                tokio::spawn(async move {
                    let mut answers = std::collections::BTreeSet::new();
                    while !done.load(std::sync::atomic::Ordering::SeqCst) {
                        answers.insert(gate.get(&format!("http://127.0.77.1:{port}/healthz")).await.status);
                    }
                    answers
                })
            })
            .collect();
        gate.reconfigure(&format!("{EXEMPT}[admin]\nlisten = \"127.0.77.1:{port}\""));
        gate.reloaded(round + 1).await;
        assert_eq!(gate.admin_address().port(), port);
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        for bot in bots {
            let answers = bot.await.unwrap();
            // Either no program listened, or the egress guard refused the address.
            assert!(answers.iter().all(|status| [502, 403].contains(status)), "{answers:?}");
        }
    }
}
