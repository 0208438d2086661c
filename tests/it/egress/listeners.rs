//! Nobody comes back to the proxy through it, whatever is allowed.

use crate::support::{Gate, refused};

#[tokio::test]
async fn its_own_listener_is_closed_however_it_is_addressed() {
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
            assert!(details.contains("where this proxy itself listens"), "{details}");
        }
        let authority = format!("127.0.0.1:{port}");
        refused(&gate.connect(&authority).await.refused(), "egress");
    }
}

#[tokio::test]
async fn a_reload_keeps_it_closed() {
    let gate = Gate::start().await;
    let url = format!("http://{}/", gate.address());
    refused(&gate.get(&url).await, "egress");
    gate.reconfigure("[egress]\nallow = ['127.0.0.1', '::/0']");
    gate.reloaded(1).await;
    refused(&gate.get(&url).await, "egress");
}
