//! The cache of TLS server configurations: one certificate for each name, limited in number and never expired; and the
//! TLS sessions.

use parking_lot::Mutex;
use robotgate::authority::{Leaves, MintError};
use rustls::{HandshakeKind, version::TLS12};
use tokio::task::JoinSet;

use super::*;
use crate::support::wait;

#[derive(Clone)]
struct Clock(Arc<Mutex<SystemTime>>);

// === impl Clock ===

impl Clock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(SystemTime::now())))
    }

    fn set(&self, change: impl FnOnce(SystemTime) -> SystemTime) {
        let mut now = self.0.lock();
        *now = change(*now);
    }

    fn leaves(&self) -> Leaves {
        let clock = self.clone();
        Leaves::with_clock(Arc::new(authority()), 16, move || *clock.0.lock())
    }
}

fn leaves(capacity: usize) -> Leaves {
    Leaves::new(Arc::new(authority()), capacity)
}

fn client(leaves: &Leaves) -> ClientConfig {
    client_trusting(leaves.authority().certificate_der())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_simultaneous_requests_share_one_leaf() {
    let leaves = leaves(16);
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let leaves = leaves.clone();
        tasks.spawn(async move { leaves.server_config(dns("example.com")).await.unwrap() });
    }
    let configs = tasks.join_all().await;
    assert!(configs.iter().all(|config| Arc::ptr_eq(config, &configs[0])));
    assert_eq!(leaves.minted(), 1);
    assert_eq!(leaves.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_name_has_its_own_leaf() {
    let leaves = leaves(16);
    assert!(leaves.is_empty());
    for name in [dns("example.com"), dns("localhost"), ip("192.0.2.1"), ip("2001:db8::1")] {
        let server = leaves.server_config(name.clone()).await.unwrap();
        let shown = name.to_string();
        handshake(&server, &Arc::new(client(&leaves)), shown.trim_matches(['[', ']'])).unwrap();
    }
    assert_eq!((leaves.len(), leaves.minted()), (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_leaves_is_bounded() {
    let leaves = leaves(64);
    for index in 0..500 {
        leaves.server_config(dns(&format!("{index}.example"))).await.unwrap();
        assert!(leaves.len() <= 64);
    }
    assert!(leaves.len() > 32);
    assert_eq!(leaves.minted(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_of_size_zero_still_issues_leaves() {
    let leaves = leaves(0);
    for name in ["a.example", "b.example", "a.example"] {
        leaves.server_config(dns(name)).await.unwrap();
        assert!(leaves.len() <= 1);
    }
}

/// Runs on one thread, so that the first caller is cancelled before its certificate is issued.
#[tokio::test]
async fn a_leaf_is_kept_if_its_caller_is_cancelled() {
    let leaves = leaves(16);
    {
        let mut call = Box::pin(leaves.server_config(dns("example.com")));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    let config = leaves.server_config(dns("example.com")).await.unwrap();
    assert_eq!(leaves.minted(), 1);
    assert!(Arc::ptr_eq(
        &config,
        &leaves.server_config(dns("example.com")).await.unwrap()
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_cancelled_at_any_point_do_not_block_the_name() {
    let leaves = leaves(16);
    for index in 0..200_u64 {
        let name = dns(&format!("{}.example", index / 10));
        let call = leaves.server_config(name.clone());
        let _ = tokio::time::timeout(Duration::from_micros(index * 7 % 500), call).await;
        wait::within("the leaf", leaves.server_config(name)).await.unwrap();
    }
    assert!(leaves.minted() >= 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_not_cached() {
    let clock = Clock::new();
    let leaves = clock.leaves();
    let name = || dns("example.com");
    clock.set(|now| now + 5000 * DAY);
    for _ in 0..2 {
        assert!(matches!(
            leaves.server_config(name()).await,
            Err(MintError::Expired { .. })
        ));
    }
    clock.set(|now| now - 5000 * DAY);
    leaves.server_config(name()).await.unwrap();
    assert!(matches!(
        leaves.server_config(dns("*.example.com")).await,
        Err(MintError::Name { .. })
    ));
    assert_eq!(leaves.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_renew_a_leaf_once_after_half_its_lifetime() {
    let clock = Clock::new();
    let leaves = clock.leaves();
    let first = leaves.server_config(dns("example.com")).await.unwrap();
    clock.set(|now| now + 44 * DAY);
    assert!(Arc::ptr_eq(
        &first,
        &leaves.server_config(dns("example.com")).await.unwrap()
    ));
    clock.set(|now| now + 2 * DAY);
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let leaves = leaves.clone();
        tasks.spawn(async move { leaves.server_config(dns("example.com")).await.unwrap() });
    }
    let second = tasks.join_all().await;
    assert!(!Arc::ptr_eq(&first, &second[0]));
    assert!(second.iter().all(|config| Arc::ptr_eq(config, &second[0])));
    assert_eq!((leaves.minted(), leaves.len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaf_that_is_not_yet_valid_is_replaced() {
    let clock = Clock::new();
    clock.set(|now| now + 10 * DAY);
    let leaves = clock.leaves();
    leaves.server_config(dns("example.com")).await.unwrap();
    clock.set(|now| now - Duration::from_secs(1800));
    leaves.server_config(dns("example.com")).await.unwrap();
    assert_eq!(
        leaves.minted(),
        1,
        "half an hour lies within what the leaf was backdated by"
    );
    clock.set(|now| now - 9 * DAY);
    leaves.server_config(dns("example.com")).await.unwrap();
    assert_eq!(leaves.minted(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_http_version_that_both_support_is_chosen() {
    let leaves = leaves(16);
    let server = leaves.server_config(dns("example.com")).await.unwrap();
    for (offered, chosen) in [
        (&["http/1.1", "h2"][..], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let mut client = client(&leaves);
        client.alpn_protocols = offered.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let (client, _) = handshake(&server, &Arc::new(client), "example.com").unwrap();
        assert_eq!(client.alpn_protocol(), chosen.map(str::as_bytes));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_resume_with_tls_1_2_and_tls_1_3() {
    let leaves = leaves(16);
    let server = leaves.server_config(dns("example.com")).await.unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(leaves.authority().certificate_der().clone()).unwrap();
    let tls12 = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    for client in [client(&leaves), tls12] {
        let client = Arc::new(client);
        let (first, _) = handshake(&server, &client, "example.com").unwrap();
        assert_eq!(first.handshake_kind(), Some(HandshakeKind::Full));
        let (second, _) = handshake(&server, &client, "example.com").unwrap();
        assert_eq!(second.handshake_kind(), Some(HandshakeKind::Resumed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_resume_without_a_server_name() {
    let leaves = leaves(16);
    let server = leaves.server_config(ip("192.0.2.1")).await.unwrap();
    let client = Arc::new(client(&leaves));
    handshake(&server, &client, "192.0.2.1").unwrap();
    let (second, server) = handshake(&server, &client, "192.0.2.1").unwrap();
    assert_eq!(server.server_name(), None);
    assert_eq!(second.handshake_kind(), Some(HandshakeKind::Resumed));
}

/// If an attacker connects a client to the server for another name, the client must verify the certificate again.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ticket_is_valid_for_one_name_only() {
    let leaves = leaves(16);
    let one = leaves.server_config(dns("one.example")).await.unwrap();
    let other = leaves.server_config(dns("other.example")).await.unwrap();
    let client = Arc::new(client(&leaves));
    handshake(&one, &client, "one.example").unwrap();
    let error = handshake(&other, &client, "one.example").unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
}
