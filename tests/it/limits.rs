//! Limits for clients: a client that exceeds a limit is told which one, the event is counted, and other clients are
//! still served.

mod decisions;
mod files;
mod http2;
mod lifetime;

pub use self::decisions::{slow_path, slow_rules};
use crate::support::{
    Alpn, Connection, Gate, Latch, NAME, Origin, Reply, Response, Step, allowed, failed, wait::until,
};

#[track_caller]
fn exceeds_limit(response: &Response, status: u16, key: &str) {
    failed(response, status, &["http_request_denied"]);
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert!(details.contains(key), "{details:?} does not name {key}");
    assert!(response.text().contains(key), "{response:#?}");
}

/// Waits for the warning about the limit that `key` sets, and returns how often it says that the limit was exceeded.
async fn logged_total(gate: &Gate, key: &str) -> u64 {
    let line = gate.wait_for_log(key, |line| line.field("limit") == Some(key)).await;
    assert_eq!(line.level(), "WARN", "{line:?}");
    line.json["such_events_since_start"].as_u64().expect("a count")
}

async fn connect_and_get(gate: &Gate, url: &str) -> (Connection, Response) {
    let mut connection = gate.dial().await;
    let response = connection.get(url).await;
    (connection, response)
}

async fn slow_origin() -> (Origin, Latch) {
    let latch = Latch::new();
    let slow = Reply::script([
        Step::Wait(latch.clone()),
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"),
    ]);
    let origin = Origin::start()
        .page("/x", "page")
        .reply("/slow", slow)
        .tls()
        .spawn()
        .await;
    (origin, latch)
}

#[tokio::test]
async fn a_connection_over_the_limit_gets_an_error_and_is_closed() {
    for (key, status) in [("max-client-connections", 429), ("max-connections", 503)] {
        let origin = Origin::start().page("/x", "page").spawn().await;
        let gate = Gate::with(&format!("[proxy]\n{key} = 2")).await;
        let url = origin.url("/x");
        let (first, response) = connect_and_get(&gate, &url).await;
        allowed(&response, "no-robots");
        let (mut second, response) = connect_and_get(&gate, &url).await;
        allowed(&response, "no-robots");

        exceeds_limit(&gate.get(&url).await, status, key);
        assert_eq!(logged_total(&gate, key).await, 1);
        allowed(&second.get(&url).await, "no-robots");

        drop(first);
        let again = async || {
            let response = gate.get(&url).send().await.ok()?;
            (response.status == 200).then_some(())
        };
        crate::support::wait::until_async("a place to be free", again).await;
    }
}

#[tokio::test]
async fn a_request_over_the_limit_of_its_client_gets_an_error() {
    let (origin, latch) = slow_origin().await;
    let gate = Gate::with("[proxy]\nmax-client-requests = 2").await;
    let tunnel = gate.connect(&origin.authority()).await.opened();
    let mut inside = tunnel.tls(NAME, Alpn::Http2).await;
    let slow = tokio::spawn(gate.get(&origin.url("/slow")).send());
    until("the first to be under way", || {
        (origin.count("/slow") == 1).then_some(())
    })
    .await;
    let both = tokio::spawn(async move { inside.get_all(&["/slow".to_owned(), "/slow".to_owned()]).await });

    until("the refusal", || {
        (gate.logged_limit("max-client-requests") > 0).then_some(())
    })
    .await;
    exceeds_limit(&gate.get(&origin.url("/x")).await, 429, "max-client-requests");

    until("the second to be under way", || {
        (origin.count("/slow") == 2).then_some(())
    })
    .await;
    latch.open();
    allowed(&slow.await.unwrap().unwrap(), "no-robots");
    let mut both = both.await.unwrap();
    both.sort_by_key(|response| response.status);
    allowed(&both[0], "no-robots");
    exceeds_limit(&both[1], 429, "max-client-requests");
    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
    assert_eq!(origin.count("/x"), 1, "what was refused was not sent");
}

#[tokio::test]
async fn a_client_over_its_fetch_limit_can_use_known_sites_only() {
    let latch = Latch::new();
    let slow = Origin::start()
        .reply("/robots.txt", Reply::ok("text/plain", "").after(&latch))
        .anything("page")
        .spawn()
        .await;
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::with("[proxy]\nmax-client-fetches = 1\n[robots]\nwait = \"1m\"").await;
    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
    let first = tokio::spawn(gate.get(&slow.url("/x")).send());
    until("a fetch to run", || (slow.count("/robots.txt") == 1).then_some(())).await;

    exceeds_limit(
        &gate.get(&origin.url_at("new.example", "/x")).await,
        429,
        "max-client-fetches",
    );
    assert_eq!(logged_total(&gate, "max-client-fetches").await, 1);
    allowed(&gate.get(&origin.url("/y")).await, "no-robots");
    let joined = tokio::spawn(gate.get(&slow.url("/y")).send());

    latch.open();
    for response in [first, joined] {
        allowed(&response.await.unwrap().unwrap(), "no-rule");
    }
    allowed(&gate.get(&origin.url_at("new.example", "/x")).await, "no-robots");
    assert_eq!(origin.count("/robots.txt"), 2, "the refusal fetched nothing");
}

#[tokio::test]
async fn a_tunnel_counts_as_a_running_request() {
    let origin = Origin::start().page("/x", "page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-client-requests = 1\n[https]\nmode = \"tunnel\"").await;
    let connect = || gate.connect(&origin.authority()).user_agent("TestBot/1.0");
    let open = connect().await.opened();

    exceeds_limit(&connect().await.refused(), 429, "max-client-requests");

    drop(open);
    let again = async || match connect().await {
        crate::support::Connected::Tunnel(tunnel) => Some(tunnel),
        crate::support::Connected::Refused(_) => None,
    };
    crate::support::wait::until_async("the place to be free", again).await;
}

#[tokio::test]
async fn a_connection_closes_cleanly_after_its_last_request() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-connection-requests = 2").await;
    let mut plain = gate.dial().await;
    let mut inside = gate
        .connect(&origin.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http1)
        .await;
    for (connection, target) in [(&mut plain, origin.url("/x")), (&mut inside, "/x".to_owned())] {
        let first = connection.get(&target).await;
        allowed(&first, "no-robots");
        assert!(first.stays_open, "{first:#?}");
        let last = connection.get(&target).await;
        allowed(&last, "no-robots");
        assert_eq!(last.field("Connection"), Some("close"), "{last:#?}");
        assert_eq!(connection.read_to_end().await, b"");
    }
}

#[tokio::test]
async fn new_leaves_for_a_client_are_limited_per_minute() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-client-leaves = 2").await;
    let at = |name: &str| format!("{name}:{}", origin.port());
    for name in [NAME, "other.example", NAME, NAME] {
        let mut inside = gate.connect(&at(name)).await.opened().tls(name, Alpn::Http1).await;
        allowed(&inside.get("/x").await, "no-robots");
    }

    let refusal = gate.connect(&at("third.example")).await.refused();

    exceeds_limit(&refusal, 429, "max-client-leaves");
    assert_eq!(logged_total(&gate, "max-client-leaves").await, 1);
    // Hosts that already have a certificate still work.
    gate.connect(&at(NAME)).await.opened().tls(NAME, Alpn::Http1).await;
}
