//! The pauses after a 429 or 503 of a site: with a valid `Retry-After`, an invalid one, or none.

use std::time::{Duration, SystemTime};

use super::{deferred, site, until_waiting};
use crate::support::{Gate, Latch, Origin, Reply, allowed, refused};

const PACE: &str = "[pace]\n";

/// Returns after how many seconds a request may come again if the previous one got this response.
async fn after(answer: Reply) -> u64 {
    let site = site("User-agent: *\nDisallow: /private\n").await;
    site.change("/busy", answer);
    let gate = Gate::with(PACE).await;
    let response = gate.get(&site.url("/busy")).await;
    assert!(matches!(response.status, 429 | 503), "the site's answer: {response:#?}");
    assert_eq!(response.decision().value(), "allow");
    let seconds = deferred(&gate.get(&site.url("/page")).await);
    assert_eq!(site.count("/page"), 0);
    seconds
}

#[tokio::test]
async fn a_429_or_503_pauses_the_site_for_its_retry_after_or_a_minute() {
    let date = |later: u64| httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(later));
    for (status, retry_after, within) in [
        (429, Some("600".to_owned()), 500..=600),
        (503, Some(date(600)), 500..=601),
        (429, None, 50..=66),
        (503, Some("soon".to_owned()), 50..=66),
        // A pause lasts at most a day.
        (429, Some("9999999999".to_owned()), 86_300..=86_400),
        (503, Some(date(10 * 86_400)), 86_300..=86_400),
        // A `Retry-After` that does not ask for a pause has no effect; the usual pause applies.
        (429, Some("0".to_owned()), 50..=66),
        (429, Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()), 50..=66),
    ] {
        let reply = Reply::status(status);
        let reply = match &retry_after {
            Some(value) => reply.header("Retry-After", value),
            None => reply,
        };
        let seconds = after(reply).await;
        assert!(within.contains(&seconds), "{status} {retry_after:?}: {seconds}");
    }
}

#[tokio::test]
async fn the_longer_of_two_retry_after_fields_sets_the_pause() {
    for fields in [["5", "600"], ["600", "5"]] {
        let reply = fields
            .iter()
            .fold(Reply::status(503), |reply, value| reply.header("Retry-After", value));
        let seconds = after(reply).await;
        assert!((500..=600).contains(&seconds), "{fields:?}: {seconds}");
    }
}

#[tokio::test]
async fn simultaneous_429_responses_count_as_one_incident() {
    let latch = Latch::new();
    let site = site("User-agent: *\nDisallow: /private\n").await;
    site.change("/busy", Reply::status(429).after(&latch));
    let gate = Gate::with(PACE).await;
    let storm: Vec<_> = (0..10).map(|_| super::begin(gate.get(&site.url("/busy")))).collect();
    crate::support::wait::until("all to be under way", || (site.count("/busy") == 10).then_some(())).await;
    latch.open();
    for answer in storm {
        assert_eq!(answer.await.expect("it ends").status, 429);
    }
    let seconds = deferred(&gate.get(&site.url("/page")).await);
    assert!((1..=66).contains(&seconds), "the first pause, not the tenth: {seconds}");
}

#[tokio::test]
async fn other_statuses_and_other_sites_cause_no_pause() {
    let (site, other) = (
        site("User-agent: *\nDisallow: /private\n").await,
        site("User-agent: *\nDisallow: /private\n").await,
    );
    let gate = Gate::with(PACE).await;
    for status in [200, 404, 500, 502, 504] {
        site.change("/x", Reply::status(status).header("Retry-After", "600"));
        assert_eq!(gate.get(&site.url("/x")).await.status, status);
    }
    site.change("/x", Reply::status(503));
    assert_eq!(gate.get(&site.url("/x")).await.status, 503);
    deferred(&gate.get(&site.url("/page")).await);
    allowed(&gate.get(&other.url("/page")).await, "no-rule");
}

#[tokio::test]
async fn a_503_to_a_robots_txt_fetch_pauses_the_site() {
    let busy = Reply::status(503).header("Retry-After", "600");
    let site = Origin::start()
        .reply("/robots.txt", busy.clone())
        .anything("page")
        .spawn()
        .await;
    let exempt = "[[bot]]\nname = 'exempt'\nuser-agents = ['ExemptBot']\nenforcement = 'exempt'\n";
    let gate = Gate::with(&format!("{PACE}{exempt}")).await;
    refused(&gate.get(&site.url("/page")).await, "unreachable");
    let seconds = deferred(&gate.get(&site.url("/page")).user_agent("ExemptBot").await);
    assert!((500..=600).contains(&seconds), "{seconds}");

    // If the robots.txt redirects, the other site is the one that asks for a pause.
    let other = Origin::start()
        .reply("/robots.txt", busy)
        .anything("page")
        .spawn()
        .await;
    let site = Origin::start().reply("/robots.txt", Reply::redirect(&other.url("/robots.txt")));
    let site = site.anything("page").spawn().await;
    refused(&gate.get(&site.url("/page")).await, "unreachable");
    allowed(&gate.get(&site.url("/page")).user_agent("ExemptBot").await, "exempt");
    deferred(&gate.get(&other.url("/page")).user_agent("ExemptBot").await);
}

#[tokio::test]
async fn a_robots_txt_redirect_to_a_busy_page_does_not_pause_the_other_site() {
    let other = Origin::start()
        .robots("")
        .reply("/limited", Reply::status(429).header("Retry-After", "86400"))
        .anything("page")
        .spawn()
        .await;
    let site = Origin::start().reply("/robots.txt", Reply::redirect(&other.url("/limited")));
    let (site, gate) = (site.anything("page").spawn().await, Gate::with("[pace]").await);
    refused(&gate.get(&site.url("/")).await, "unreachable");
    assert_eq!(other.count("/limited"), 1, "the redirect was followed");
    allowed(&gate.get(&other.url("/x")).await, "no-rule");
}

#[tokio::test]
async fn a_long_pause_refuses_waiting_requests_immediately() {
    let latch = Latch::new();
    let site = site("User-agent: *\nDisallow: /private\n").await;
    site.change("/busy", Reply::status(429).header("Retry-After", "600").after(&latch));
    let gate = Gate::with("[pace]\nconcurrency = 1\nmax-wait = '5m'\n").await;
    let busy = super::begin(gate.get(&site.url("/busy")));
    crate::support::wait::until("it to be under way", || (site.count("/busy") == 1).then_some(())).await;
    let waits = super::begin(gate.get(&site.url("/page")));
    until_waiting(&gate, 1).await;
    latch.open();
    assert_eq!(busy.await.expect("it ends").status, 429);
    let response = waits.await.expect("it ends");
    let seconds = deferred(&response);
    assert!((500..=600).contains(&seconds), "{seconds}");
    let decision = gate.decision_for(&site.url("/page")).await;
    let completion = gate.completion_of(&decision).await;
    assert!(completion["pace_wait_us"].as_u64() > Some(0), "{completion}");
}

#[tokio::test]
async fn a_reload_keeps_a_pause() {
    let site = site("User-agent: *\nDisallow: /private\n").await;
    site.change("/busy", Reply::status(429).header("Retry-After", "600"));
    let gate = Gate::with(PACE).await;
    assert_eq!(gate.get(&site.url("/busy")).await.status, 429);
    gate.reconfigure("[pace]\nconcurrency = 5");
    gate.reloaded(1).await;
    deferred(&gate.get(&site.url("/page")).await);
}
