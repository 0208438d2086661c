//! A name is resolved only once for each connection, and robotgate connects to the address that it checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::open_origin;
use crate::support::{DnsAnswer, Gate, NAME, Origin, allowed, failed, refused};

const HERE: [u8; 4] = [127, 0, 0, 1];
const PRIVATE: [u8; 4] = [10, 0, 0, 1];

/// Returns an answer of the name server that changes: each query gets the next of these sets of addresses.
fn changing(sets: &[&[[u8; 4]]]) -> DnsAnswer {
    let set = |set: &&[[u8; 4]]| set.iter().map(|address| IpAddr::from(*address)).collect();
    DnsAnswer::Changing(sets.iter().map(set).collect())
}

async fn upstream(gate: &Gate, url: &str) -> Option<String> {
    let decision = gate.decision_for(url).await;
    let completion = gate.completion_of(&decision).await;
    completion["upstream"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn the_fetch_and_the_page_connect_to_the_address_they_checked() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    // One query is for the robots.txt, one for the page. The third set is not used.
    gate.dns().answer(NAME, changing(&[&[HERE], &[HERE], &[PRIVATE]]));

    let url = origin.url("/x");
    allowed(&gate.get(&url).await, "no-robots");
    assert_eq!(upstream(&gate, &url).await, Some(origin.address().to_string()));
    assert_eq!(gate.dns().queries(NAME), 2);
}

#[tokio::test]
async fn the_log_has_the_addresses_of_the_robots_txt_and_of_the_page() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    // No program listens on the second address.
    gate.dns().answer(NAME, changing(&[&[HERE], &[[127, 0, 0, 2]]]));

    let url = origin.url("/x");
    failed(&gate.get(&url).await, 502, &["connection_refused"]);
    let fetches = gate.fetches_of(&origin.url(""));
    assert_eq!(fetches[0]["upstream"], origin.address().to_string(), "{fetches:#?}");
    assert_eq!(
        upstream(&gate, &url).await,
        Some(format!("127.0.0.2:{}", origin.port()))
    );
    assert_eq!(gate.decision_for(&url).await["robots_fetched"], fetches[0]["time"]);
}

#[tokio::test]
async fn a_page_whose_name_changes_to_a_closed_address_fails() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    gate.dns().answer(NAME, changing(&[&[HERE], &[PRIVATE]]));

    let url = origin.url("/x");
    failed(&gate.get(&url).await, 502, &["destination_ip_prohibited"]);
    assert_eq!(upstream(&gate, &url).await, None);
    assert_eq!((origin.count("/robots.txt"), origin.count("/x")), (1, 0));
}

#[tokio::test]
async fn a_name_is_refused_while_it_has_a_closed_address() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    gate.dns().answer(NAME, changing(&[&[PRIVATE], &[HERE]]));

    refused(&gate.get(&origin.url("/x")).await, "egress");
    assert_eq!((origin.connections(), gate.dns().queries(NAME)), (0, 1));
}

#[tokio::test]
async fn addresses_are_cached_for_their_time_to_live() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    let answer = DnsAnswer::ForAnHour {
        ipv4: Some(HERE.into()),
        ipv6: None,
    };
    gate.dns().answer(NAME, answer);

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
    gate.dns().point(NAME, PRIVATE);
    allowed(&gate.get(&origin.url("/y")).await, "no-robots");

    assert_eq!(gate.dns().queries(NAME), 1);
}

#[tokio::test]
async fn ipv6_addresses_are_not_cached_if_the_ipv4_lookup_failed() {
    let (origin, earlier) = (open_origin().await, open_origin().await);
    let gate = Gate::start().await;
    let answer = DnsAnswer::ForAnHour {
        ipv4: None,
        ipv6: Some(Ipv6Addr::LOCALHOST),
    };
    gate.dns().answer(NAME, answer);
    // The configuration allows 127.0.0.1 but not ::1.
    refused(&gate.get(&earlier.url("/x")).await, "egress");

    gate.dns().point(NAME, Ipv4Addr::LOCALHOST);
    let url = origin.url("/x");
    allowed(&gate.get(&url).await, "no-robots");

    assert_eq!(upstream(&gate, &url).await, Some(origin.address().to_string()));
}

#[tokio::test]
async fn a_tunnel_connects_to_the_address_it_checked() {
    let origin = Origin::start().robots("").tls().spawn().await;
    for (answers, opened) in [
        (changing(&[&[HERE], &[HERE], &[PRIVATE]]), true),
        (changing(&[&[HERE], &[PRIVATE], &[HERE]]), false),
    ] {
        let gate = Gate::with("[https]\nmode = 'tunnel'").await;
        gate.dns().answer(NAME, answers);
        let connected = gate.connect(&origin.authority()).user_agent("TestBot/1.0").await;
        if opened {
            drop(connected.opened());
        } else {
            failed(&connected.refused(), 502, &["destination_ip_prohibited"]);
        }
        assert_eq!(gate.dns().queries(NAME), 2);
    }
}

#[tokio::test]
async fn only_the_open_addresses_of_a_name_are_used() {
    let origin = open_origin().await;
    let gate = Gate::start().await;
    gate.dns()
        .answer(NAME, changing(&[&[PRIVATE, HERE, [169, 254, 169, 254]]]));

    let url = origin.url("/x");
    allowed(&gate.get(&url).await, "no-robots");
    assert_eq!(upstream(&gate, &url).await, Some(origin.address().to_string()));
}
