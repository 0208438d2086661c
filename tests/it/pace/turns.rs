//! The order of turns, clients that leave, and the effect of a reload on requests that wait.

use serde_json::Value;

use super::{ONE_AT_A_TIME, begin, deferred, site, until_waiting, waiting};
use crate::support::{Alpn, CliOutput, Gate, Latch, NAME, Origin, ROBOTS, Reply, allowed, refused, wait};

const OPEN: &str = "User-agent: *\nDisallow: /private\n";

/// Starts a site whose `/held` responds when the latch opens, and a request for `/held` that has its turn.
async fn held(gate: &Gate) -> (Origin, Latch, tokio::task::JoinHandle<crate::support::Response>) {
    let (latch, site) = (Latch::new(), site(OPEN).await);
    site.change("/held", Reply::ok("text/plain", "held").after(&latch));
    let holds = begin(gate.get(&site.url("/held")));
    wait::until("it to be under way", || (site.count("/held") == 1).then_some(())).await;
    (site, latch, holds)
}

fn order(site: &Origin) -> Vec<String> {
    let requests = site.requests().into_iter();
    let pages = requests.map(|request| request.path().to_owned());
    pages.filter(|path| path != "/robots.txt").collect()
}

#[tokio::test]
async fn bots_take_turns_and_the_requests_of_each_bot_keep_their_order() {
    let gate = Gate::with(ONE_AT_A_TIME).await;
    let (site, latch, holds) = held(&gate).await;
    let mut waits = Vec::new();
    for (count, (bot, path)) in [
        ("A", "/a1"),
        ("A", "/a2"),
        ("A", "/a3"),
        ("B", "/b1"),
        ("C", "/c1"),
        ("B", "/b2"),
    ]
    .into_iter()
    .enumerate()
    {
        waits.push(begin(gate.get(&site.url(path)).user_agent(bot)));
        until_waiting(&gate, count + 1).await;
    }
    assert_eq!(order(&site), ["/held"]);
    latch.open();
    allowed(&holds.await.expect("it ends"), "no-rule");
    for waits in waits {
        allowed(&waits.await.expect("it ends"), "no-rule");
    }
    assert_eq!(order(&site), ["/held", "/a1", "/b1", "/c1", "/a2", "/b2", "/a3"]);
    for path in ["/a1", "/b2"] {
        let decision = gate.decision_for(&site.url(path)).await;
        let completion = gate.completion_of(&decision).await;
        assert!(completion["pace_wait_us"].as_u64() > Some(0), "{completion}");
    }
    let metrics = gate.admin("/metrics").await.text();
    assert!(metrics.contains("robotgate_pace_wait_seconds_count 7"), "{metrics}");
    let sum = |name: &str| -> f64 {
        let sum = metrics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix("_sum "));
        sum.expect("it is exposed").parse().expect("a number")
    };
    // The time of a decision does not include the wait for a turn.
    assert!(
        sum("robotgate_decision_seconds") < sum("robotgate_pace_wait_seconds"),
        "{metrics}"
    );
}

#[tokio::test]
async fn requests_beyond_the_concurrency_wait_without_a_connection() {
    let latch = Latch::new();
    let site = Origin::start().robots(OPEN).spawn().await;
    site.change("/held", Reply::ok("text/plain", "held").after(&latch));
    let gate = Gate::with("[pace]\nconcurrency = 2\nmax-wait = '10m'\n").await;
    let asked: Vec<_> = (0..6).map(|_| begin(gate.get(&site.url("/held")))).collect();
    until_waiting(&gate, 4).await;
    wait::until("two to be under way", || (site.count("/held") == 2).then_some(())).await;
    // One of the connections was for the robots.txt.
    assert!(site.connections() <= 3, "{}", site.connections());
    latch.open();
    for asked in asked {
        allowed(&asked.await.expect("it ends"), "no-rule");
    }
    assert_eq!(site.count("/held"), 6);
}

#[tokio::test]
async fn requests_wait_for_a_short_delay() {
    let site = site(OPEN).await;
    let gate = Gate::with("[pace]\ndelay = '20ms'\nmax-wait = '10m'\n").await;
    let asked: Vec<_> = (0..8)
        .map(|number| begin(gate.get(&site.url(&format!("/{number}")))))
        .collect();
    for asked in asked {
        allowed(&asked.await.expect("it ends"), "no-rule");
    }
    assert_eq!((order(&site).len(), waiting(&gate).await), (8, 0));
}

#[tokio::test]
async fn a_request_that_waits_too_long_is_refused() {
    let gate = Gate::with("[pace]\nconcurrency = 1\nmax-wait = '50ms'\n").await;
    let (site, latch, holds) = held(&gate).await;
    let response = gate.get(&site.url("/page")).await;
    assert_eq!(deferred(&response), 1, "nobody knows when the other one ends");
    latch.open();
    allowed(&holds.await.expect("it ends"), "no-rule");
    assert_eq!(order(&site), ["/held"]);
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_turn_to_the_next() {
    let gate = Gate::with(ONE_AT_A_TIME).await;
    let (site, latch, holds) = held(&gate).await;
    let mut leaves = gate.dial().await;
    let host = site.authority();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: A\r\n\r\n",
        site.url("/gone")
    );
    leaves.send(request).await;
    until_waiting(&gate, 1).await;
    let stays = begin(gate.get(&site.url("/stays")));
    until_waiting(&gate, 2).await;
    drop(leaves);
    until_waiting(&gate, 1).await;
    latch.open();
    allowed(&holds.await.expect("it ends"), "no-rule");
    allowed(&stays.await.expect("it ends"), "no-rule");
    assert_eq!(order(&site), ["/held", "/stays"]);
    let decision = gate.decision_for(&site.url("/gone")).await;
    assert_eq!(
        (&decision["reason"], &decision["forwarded"]),
        (&"no-rule".into(), &true.into())
    );
    let completion = gate.completion_of(&decision).await;
    assert_eq!(
        (&completion["error"], &completion["upstream"]),
        (&"client_gone".into(), &Value::Null)
    );
    assert!(completion["pace_wait_us"].as_u64() > Some(0), "{completion}");
}

#[tokio::test]
async fn a_leaving_http_2_client_or_tunnel_gives_its_turn_to_the_next() {
    let latch = Latch::new();
    let site = Origin::start().robots(ROBOTS).anything("page").tls().spawn().await;
    site.change("/held", Reply::ok("text/plain", "held").after(&latch));
    let tunnels =
        format!("[[https.tunnel]]\nhost = 'other.example'\nreason = 'a test'\nuntil = 9000-01-01\n{ONE_AT_A_TIME}");
    let gate = Gate::with(&tunnels).await;
    let mut inside = gate
        .connect(&site.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http1)
        .await;
    let holds = tokio::spawn(async move { inside.get("/held").await });
    wait::until("it to be under way", || (site.count("/held") == 1).then_some(())).await;

    let mut leaves = gate
        .connect(&site.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http2)
        .await;
    let leaves = tokio::spawn(async move { leaves.get("/gone").await });
    until_waiting(&gate, 1).await;
    leaves.abort();
    until_waiting(&gate, 0).await;

    // A tunnel to another name is for another site. There, too, only one request or tunnel may run at a time.
    let other = format!("other.example:{}", site.port());
    let open = gate.connect(&other).await.opened();
    let mut leaves = gate.dial().await;
    leaves
        .send(format!("CONNECT {other} HTTP/1.1\r\nHost: {other}\r\n\r\n"))
        .await;
    until_waiting(&gate, 1).await;
    drop(leaves);
    until_waiting(&gate, 0).await;
    drop(open);
    latch.open();
    allowed(&holds.await.expect("it ends"), "no-rule");
    assert_eq!(site.count("/gone"), 0);
    for url in [site.url("/gone"), format!("https://{other}")] {
        let ends = async || {
            let records = gate.audit();
            let decided = records.iter().filter(|record| record["url"] == *url);
            let completed = decided.filter_map(|decision| {
                let ends = |record: &&Value| record["event"] == "completion" && record["id"] == decision["id"];
                records.iter().find(ends)
            });
            let ends: Vec<_> = completed.map(|completion| completion["error"].clone()).collect();
            ends.contains(&"client_gone".into()).then_some(())
        };
        wait::until_async(&format!("the record of {url}"), ends).await;
    }
}

#[tokio::test]
async fn a_request_that_waited_is_decided_again() {
    let gate = Gate::with(ONE_AT_A_TIME).await;
    let (site, latch, holds) = held(&gate).await;
    let refused_later = begin(gate.get(&site.url("/closed")));
    until_waiting(&gate, 1).await;
    let next = begin(gate.get(&site.url("/open")));
    until_waiting(&gate, 2).await;
    site.change(
        "/robots.txt",
        Reply::ok("text/plain", "User-agent: *\nDisallow: /closed\n"),
    );
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    let told = CliOutput::of(&["cache", "forget", &site.url(""), "--config", config], "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    latch.open();
    allowed(&holds.await.expect("it ends"), "no-rule");
    refused(&refused_later.await.expect("it ends"), "rule");
    allowed(&next.await.expect("it ends"), "no-rule");
    assert_eq!(order(&site), ["/held", "/open"]);
    let decision = gate.decision_for(&site.url("/closed")).await;
    assert_eq!((&decision["reason"], &decision["line"]), (&"rule".into(), &2.into()));
}

#[tokio::test]
async fn a_reload_with_a_shorter_delay_wakes_waiting_requests() {
    let (site, gate) = (
        site(OPEN).await,
        Gate::with("[pace]\ndelay = '5m'\nmax-wait = '10m'\n").await,
    );
    // The fetch of the robots.txt counts as a request, so the page waits.
    let waits = begin(gate.get(&site.url("/page")));
    until_waiting(&gate, 1).await;
    gate.reconfigure("[pace]\ndelay = '1ms'\nmax-wait = '10m'\n");
    gate.reloaded(1).await;
    allowed(&waits.await.expect("it ends"), "no-rule");
}

#[tokio::test]
async fn a_reload_without_the_pace_section_releases_waiting_requests() {
    let gate = Gate::start().await;
    gate.reconfigure(ONE_AT_A_TIME);
    gate.reloaded(1).await;
    let (site, latch, holds) = held(&gate).await;
    let waits: Vec<_> = ["/1", "/2", "/3"].map(|path| begin(gate.get(&site.url(path)))).into();
    until_waiting(&gate, 3).await;
    gate.reconfigure("");
    gate.reloaded(2).await;
    for waits in waits {
        allowed(&waits.await.expect("it ends"), "no-rule");
    }
    allowed(&gate.get(&site.url("/4")).await, "no-rule");
    assert!(!holds.is_finished());
    latch.open();
    allowed(&holds.await.expect("it ends"), "no-rule");
}
