//! `egress.allow`, `egress.deny` and `egress.ports`, at the start and after a reload.

use super::{CLOSED, OPEN, open_origin, through_connect};
use crate::support::{Gate, allowed, failed, refused};

#[tokio::test]
async fn names_can_be_allowed_and_denied_and_deny_wins() {
    let origin = open_origin().await;
    let gate = Gate::with(
        "[egress]
        allow = ['intranet.example', '.corp.example', '127.0.0.1', 'both.example']
        deny = ['pay.corp.example', '.closed.example', 'both.example', '127.0.0.7']",
    )
    .await;
    let fetch = |host: &str| gate.get(&origin.url_at(host, "/x"));
    let metadata = [169, 254, 169, 254];
    gate.dns().point("metadata.corp.example", metadata);
    gate.dns().point("seven.corp.example", [127, 0, 0, 7]);

    for host in ["intranet.example", "corp.example", "git.corp.example", "127.0.0.1"] {
        allowed(&fetch(host).await, "no-robots");
    }
    for (host, cause) in [
        ("pay.corp.example", "pay.corp.example is closed to bots by egress.deny"),
        ("PAY.corp.example.", "pay.corp.example is closed to bots by egress.deny"),
        ("closed.example", "closed.example is closed"),
        ("www.closed.example", "www.closed.example is closed"),
        ("both.example", "both.example is closed"),
        ("metadata.corp.example", "169.254.169.254 is a link-local address"),
        ("seven.corp.example", "127.0.0.7 is closed to bots by egress.deny"),
        ("127.0.0.7", "127.0.0.7 is closed to bots by egress.deny"),
        ("127.0.0.2", "127.0.0.2 is a loopback address"),
    ] {
        let response = fetch(host).await;
        refused(&response, "egress");
        let details = response.proxy_status().param("details").unwrap();
        assert!(details.contains(cause), "{host}: {details}");
    }
    for host in ["pay.corp.example", "www.closed.example"] {
        refused(&through_connect(&gate, &format!("{host}:443")).await, "egress");
        assert_eq!(gate.dns().queries(host), 0, "{host}");
    }
}

#[tokio::test]
async fn localhost_is_this_machine_without_a_dns_query() {
    let origin = open_origin().await;
    let gate = Gate::with("[egress]\nallow = ['.localhost']").await;
    for name in ["localhost", "shop.localhost"] {
        gate.dns().point(name, [10, 0, 0, 1]);
        allowed(&gate.get(&origin.url_at(name, "/x")).await, "no-robots");
        assert_eq!(gate.dns().queries(name), 0, "{name}");
    }
    let gate = Gate::with(CLOSED).await;
    for name in ["localhost", "shop.localhost"] {
        refused(&gate.get(&origin.url_at(name, "/x")).await, "egress");
    }
}

#[tokio::test]
async fn ports_of_other_protocols_are_closed_unless_configured() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    for port in [1, 22, 25, 6667, 10080] {
        let response = gate.get(&format!("http://127.0.0.1:{port}/")).await;
        refused(&response, "egress");
        let cause = format!(
            "port {port} is closed to bots; to open it, the operator can set egress.ports = ['1-65535', {port}] (a \
             range alone does not open this port)"
        );
        assert_eq!(response.proxy_status().param("details"), Some(cause));
        refused(&through_connect(&gate, &format!("a.example:{port}")).await, "egress");
    }
    let gate = Gate::with("[egress]\nports = ['1-65535', 1]").await;
    // No program listens on this port, so the machine refuses the connection.
    refused(&gate.get("http://127.0.0.1:1/").await, "unreachable");
    refused(&gate.get("http://127.0.0.1:22/").await, "egress");
    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
}

#[tokio::test]
async fn a_reload_of_the_lists_takes_effect_immediately() {
    let origin = open_origin().await;
    let gate = Gate::with(CLOSED).await;
    let (by_name, by_address) = (origin.url("/x"), origin.url_at("127.0.0.1", "/x"));
    refused(&gate.get(&by_name).await, "egress");
    refused(&gate.get(&by_address).await, "egress");

    gate.reconfigure(OPEN);
    gate.reloaded(1).await;
    allowed(&gate.get(&by_name).await, "no-robots");
    allowed(&gate.get(&by_address).await, "no-robots");

    for (count, egress) in [(2, "deny = ['127.0.0.1', 'shop.example']"), (3, "ports = [80, 443]")] {
        gate.reconfigure(&format!("{OPEN}\n{egress}"));
        gate.reloaded(count).await;
        refused(&gate.get(&by_name).await, "egress");
        refused(&gate.get(&by_address).await, "egress");
    }
    gate.reconfigure(CLOSED);
    gate.reloaded(4).await;
    // The copy allows the request. Only resolving the name shows that it leads to a forbidden address.
    failed(&gate.get(&by_name).await, 502, &["destination_ip_prohibited"]);
}
