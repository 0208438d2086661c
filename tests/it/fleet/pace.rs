//! All gates of a fleet share one pace for each origin. The tests do not check that requests arrive soon, because the
//! machine can be busy.

use std::time::{Duration, Instant};

use redis::from_redis_value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::task::JoinSet;

use super::{connected, fleet, has_failed_calls, origin, paced};
use crate::{
    admin::escaped,
    pace::until_waiting,
    support::{Gate, Latch, Origin, Redis, Reply, Response, allowed, programs::needs, wait},
};

const DELAY: Duration = Duration::from_millis(40);
const PACE: &str = "delay = '40ms'\nmax-wait = '10m'";

/// Returns a time that the server stores about the pace of `origin`, in microseconds; `None` if it stores no such time.
async fn pace_of(server: &Redis, origin: &Origin, field: &str) -> Option<i64> {
    let key = format!("robotgate:{{{}}}:pace", origin.url("").trim_end_matches('/'));
    from_redis_value(server.ask(&["HGET", &key, field]).await).expect("a time or nothing")
}

/// Returns when a refused request may come again, in seconds since 1970.
fn not_before(response: &Response) -> i64 {
    assert_eq!(response.status, 429, "{response:#?}");
    assert_eq!(
        response.decision().param("reason").as_deref(),
        Some("pace"),
        "{response:#?}"
    );
    let not_before = response.decision().param("not-before").expect("a date");
    not_before.trim_start_matches('@').parse().expect("seconds")
}

/// Sends `each` requests to each of `sites`, all at the same time and spread over the gates. Then checks that no site
/// got more requests by any time than the delay allows.
async fn keeps_the_delay(gates: &[Gate], origin: &Origin, sites: &[String], each: usize) {
    let began = Instant::now();
    let mut requests = JoinSet::new();
    for number in 0..each {
        for (place, site) in sites.iter().enumerate() {
            let gate = &gates[(number + place) % gates.len()];
            let ask = gate.get(&origin.url_at(site, &format!("/{number}")));
            requests.spawn(async move { ask.await });
        }
    }
    for response in requests.join_all().await {
        allowed(&response, "no-rule");
    }
    for site in sites {
        let host = format!("{site}:{}", origin.port());
        let requests = origin.requests().into_iter();
        let pages = requests.filter(|request| request.field("Host") == Some(&*host) && request.path() != "/robots.txt");
        let mut arrivals: Vec<Duration> = pages.map(|page| page.received.duration_since(began)).collect();
        arrivals.sort();
        assert_eq!(arrivals.len(), each, "{site}");
        for (earlier, at) in arrivals.iter().enumerate() {
            // Compares each arrival with the start: the gap between two arrivals can be shorter than the delay, if the
            // first of them took long to arrive.
            let earliest = DELAY * u32::try_from(earlier).expect("few");
            assert!(*at >= earliest, "{site}: request {earlier} came after {at:?}");
        }
    }
}

#[tokio::test]
async fn three_gates_keep_one_pace_at_each_site() {
    needs!("redis-server");
    for count in [1, 10] {
        wait::until_async("an attempt without a late answer", async || {
            let (server, origin) = (Redis::start().await, origin().await);
            let url = server.url();
            let gates = [
                paced(&url, PACE).await,
                paced(&url, PACE).await,
                paced(&url, PACE).await,
            ];
            let sites: Vec<String> = (0..count).map(|number| format!("site{number}.example")).collect();
            keeps_the_delay(&gates, &origin, &sites, 30 / count.min(3)).await;
            (!has_failed_calls(&gates.each_ref()).await).then_some(())
        })
        .await;
    }
}

async fn fast(url: &str, pace: &str) -> Gate {
    let gate = Gate::builder()
        .env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketime.so.1")
        .env("FAKETIME", "+1h")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .config(&format!("[fleet]\nurl = \"{url}\"\nsize = 3\n[pace]\n{pace}"))
        .start()
        .await;
    connected(&gate).await;
    gate
}

#[tokio::test]
async fn a_gate_with_a_wrong_clock_keeps_the_same_pace_and_the_same_pauses() {
    needs!("redis-server", "faketime");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let gates = [paced(&server.url(), PACE).await, fast(&server.url(), PACE).await];
        keeps_the_delay(&gates, &origin, &["site.example".to_owned()], 12).await;
        origin.change("/busy", Reply::status(429).header("Retry-After", "600"));
        let busy = gates[1].get(&origin.url("/busy")).await;
        assert_eq!(busy.status, 429);
        let busy_at = OffsetDateTime::now_utc().unix_timestamp();
        wait::until_async("the server to know of the pause", async || {
            pace_of(&server, &origin, "until").await
        })
        .await;
        let short = "delay = '40ms'\nmax-wait = '1s'";
        let other = paced(&server.url(), short).await;
        let told = not_before(&other.get(&origin.url("/page")).await);
        let fast = fast(&server.url(), short).await;
        let told_by_fast = not_before(&fast.get(&origin.url("/page")).await);
        if has_failed_calls(&[&gates[0], &gates[1], &other, &fast]).await {
            return None;
        }
        assert!(told <= busy_at + 601, "{told} {busy_at}");
        // `fast` gives the time by its own clock, which is an hour fast.
        let difference = told_by_fast - told;
        assert!((3595..=3605).contains(&difference), "{difference}");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn simultaneous_429_responses_pause_all_gates_for_the_retry_after() {
    needs!("redis-server");
    let pause = Duration::from_secs(2);
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin, latch) = (Redis::start().await, origin().await, Latch::new());
        origin.change("/busy", Reply::status(429).header("Retry-After", "2").after(&latch));
        let waiting = "max-wait = '10m'";
        let gates = [paced(&server.url(), waiting).await, paced(&server.url(), waiting).await];
        let mut storm = JoinSet::new();
        for number in 0..20 {
            let ask = gates[number % 2].get(&origin.url("/busy"));
            storm.spawn(async move { ask.await });
        }
        wait::until("all to be under way", || (origin.count("/busy") == 20).then_some(())).await;
        latch.open();
        for response in storm.join_all().await {
            assert_eq!(response.status, 429);
        }
        wait::until_async("the server to know of the pause", async || {
            pace_of(&server, &origin, "until").await
        })
        .await;
        let mut pages = JoinSet::new();
        for number in 0..6 {
            let ask = gates[number % 2].get(&origin.url("/page"));
            pages.spawn(async move { ask.await });
        }
        for response in pages.join_all().await {
            allowed(&response, "no-rule");
        }
        if has_failed_calls(&gates.each_ref()).await {
            return None;
        }
        let last = origin.requests_for("/busy").iter().map(|busy| busy.received).max();
        for page in origin.requests_for("/page") {
            let since = page.received.duration_since(last.expect("there are some"));
            assert!(since >= pause, "a request came during the pause, after {since:?}");
        }
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_long_crawl_delay_is_refused_with_the_same_time_by_all_gates() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, Origin::start());
        let origin = origin
            .robots("User-agent: *\nCrawl-delay: 300\n")
            .anything("page")
            .spawn()
            .await;
        let pace = "crawl-delay = 'enforce'";
        let gates = [paced(&server.url(), pace).await, paced(&server.url(), pace).await];
        let before = OffsetDateTime::now_utc().unix_timestamp();
        let mut told = Vec::new();
        for gate in &gates {
            // The fetch of the robots.txt by the first gate counts as a request, so both gates defer the page.
            let response = gate.get(&origin.url("/page")).await;
            assert_eq!(response.decision().param("cause").as_deref(), Some("crawl-delay"));
            told.push(not_before(&response));
        }
        if has_failed_calls(&gates.each_ref()).await {
            return None;
        }
        assert!(told.iter().all(|told| *told >= before + 300), "{told:?} {before}");
        assert!((told[0] - told[1]).abs() <= 1, "{told:?}");
        assert_eq!(origin.requests().len(), 1);
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_scheduler_that_waits_until_any_gates_not_before_is_never_refused() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let pace = "delay = '300ms'\nmax-wait = '300ms'";
        let gates = [paced(&server.url(), pace).await, paced(&server.url(), pace).await];
        let mut planned = 0;
        for number in 0..8 {
            let url = origin.url(&format!("/{number}"));
            let path = format!("/api/v1/decide?agent=TestBot&url={}", escaped(&url));
            let decided = crate::admin::get(&gates[number % 2], &path).await;
            if let Some(told) = decided["not_before"].as_str() {
                assert_eq!(decided["pace_cause"], "delay", "{decided}");
                let told = OffsetDateTime::parse(told, &Rfc3339).expect("a time");
                let is_time = || (OffsetDateTime::now_utc() > told).then_some(());
                wait::until("the time that was told", is_time).await;
                planned += 1;
            }
            let response = gates[number / 2 % 2].get(&url).await;
            if has_failed_calls(&gates.each_ref()).await {
                return None;
            }
            allowed(&response, "no-rule");
        }
        assert!(planned > 0, "it never had to wait");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_retry_after_to_one_gate_pauses_all_gates() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let busy = Reply::status(429).header("Retry-After", "600");
        origin.change("/busy", busy);
        let url = server.url();
        let [first, visited, new] = [paced(&url, "").await, paced(&url, "").await, paced(&url, "").await];
        for gate in [&first, &visited] {
            allowed(&gate.get(&origin.url("/page")).await, "no-rule");
        }
        assert_eq!(first.get(&origin.url("/busy")).await.status, 429);
        wait::until_async("the server to know of the pause", async || {
            pace_of(&server, &origin, "until").await
        })
        .await;
        let mut times = Vec::new();
        for gate in [&first, &visited, &new] {
            times.push(not_before(&gate.get(&origin.url("/page")).await));
        }
        if has_failed_calls(&[&first, &visited, &new]).await {
            return None;
        }
        assert_eq!(origin.count("/page"), 2);
        let differences = times.iter().map(|time| time - times[0]);
        assert!(differences.into_iter().all(|seconds| seconds.abs() <= 1), "{times:?}");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_gate_follows_a_pause_that_a_message_announces() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let gate = paced(&server.url(), "").await;
    allowed(&gate.get(&origin.url("/page")).await, "no-rule");
    // The server does not know of this pause, so the gate can only know it from the message.
    let site = origin.url("");
    let now: (u64, u64) = from_redis_value(server.ask(&["TIME"]).await).expect("a time");
    let now = now.0 * 1_000_000 + now.1;
    let publish = async |at: u64| {
        let message = format!("paused {at} other {} 600000000", site.trim_end_matches('/'));
        server.ask(&["PUBLISH", "robotgate:messages", &message]).await;
    };
    let calls = fleet(&gate).await["calls"].as_u64();
    publish(now - 3_600_000_000).await;
    wait::until_async("the old message to be read", async || {
        (fleet(&gate).await["calls"].as_u64() > calls).then_some(())
    })
    .await;
    allowed(&gate.get(&origin.url("/page")).await, "no-rule");
    publish(now).await;
    let response = wait::until_async("the gate to be told", async || {
        let response = gate.get(&origin.url("/page")).await;
        (response.status == 429).then_some(response)
    })
    .await;
    assert!(not_before(&response) > 0);
    assert_eq!(pace_of(&server, &origin, "until").await, None);
}

#[tokio::test]
async fn a_scheduler_can_ask_any_gate_of_the_fleet() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let pace = "delay = '1h'";
        let (first, second) = (paced(&server.url(), pace).await, paced(&server.url(), pace).await);
        // The fetch of the robots.txt counts as a request, so the page is deferred.
        let refused = not_before(&first.get(&origin.url("/page")).await);
        let path = format!("/api/v1/decide?agent=TestBot&url={}", escaped(&origin.url("/page")));
        let decided = crate::admin::get(&second, &path).await;
        if has_failed_calls(&[&first, &second]).await {
            return None;
        }
        let told = decided["not_before"].as_str().expect("it has to wait");
        let told = OffsetDateTime::parse(told, &Rfc3339).expect("a time").unix_timestamp();
        assert!((told - refused).abs() <= 1, "{told} {refused}");
        // The second gate used the shared copy, so the site received only one request.
        assert_eq!(origin.requests().len(), 1);
        Some(())
    })
    .await;
}

#[tokio::test]
async fn while_the_server_is_lost_on_loss_sets_the_pace_of_a_gate() {
    needs!("redis-server");
    for (on_loss, seconds, cause) in [
        ("share", 1201..=1800, "delay"),
        ("local", 301..=600, "delay"),
        ("refuse", 1..=1, "fleet"),
    ] {
        let (mut server, origin) = (Redis::start().await, origin().await);
        let config = format!(
            "[fleet]\nurl = '{}'\nsize = 3\non-loss = '{on_loss}'\n[pace]\ndelay = '10m'",
            server.url()
        );
        let gate = Gate::with(&config).await;
        connected(&gate).await;
        server.kill();
        // The fetch of the robots.txt counts as a request, so the page is deferred.
        let response = gate.get(&origin.url("/page")).await;
        let told = not_before(&response);
        assert_eq!(response.decision().param("cause").as_deref(), Some(cause), "{on_loss}");
        let retry_after: u64 = response
            .field("Retry-After")
            .expect("it says when")
            .parse()
            .expect("seconds");
        assert!(seconds.contains(&retry_after), "{on_loss}: {retry_after} {told}");
        server.start_again().await;
        connected(&gate).await;
        let response = gate.get(&origin.url("/page")).await;
        not_before(&response);
        let retry_after: u64 = response
            .field("Retry-After")
            .expect("it says when")
            .parse()
            .expect("seconds");
        assert!((1..=600).contains(&retry_after), "{on_loss}: {retry_after}");
    }
}

#[tokio::test]
async fn a_reload_without_pace_releases_requests_that_wait_for_a_slot() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let gate = Gate::start().await;
    let fleet = format!("[fleet]\nurl = \"{}\"\nsize = 3\n", server.url());
    gate.reconfigure(&format!("{fleet}[pace]\ndelay = '5m'\nmax-wait = '10m'"));
    gate.reloaded(1).await;
    connected(&gate).await;
    // The fetch of the robots.txt counts as a request, so the page waits.
    let waits = tokio::spawn(gate.get(&origin.url("/page")).into_future());
    until_waiting(&gate, 1).await;
    gate.reconfigure(&fleet);
    gate.reloaded(2).await;
    allowed(&waits.await.expect("it ends"), "no-rule");
}
