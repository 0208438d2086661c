//! A slow or silent origin takes only limited time, and does not prevent fetches from other origins.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::RULES;
use crate::support::{
    Blackhole, Connection, DnsAnswer, Gate, Latch, NAME, Origin, Reply, Signal, Step, allowed, refused, wait,
};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";

async fn origin_that(robots: Reply) -> Origin {
    Origin::start()
        .reply("/robots.txt", robots)
        .anything("page")
        .spawn()
        .await
}

async fn fails(gate: &Gate, origin: &Origin, error: &str) {
    refused(&gate.get(&origin.url("/x")).await, "unreachable");
    let decision = gate.decision_for(&origin.url("/x")).await;
    assert_eq!(decision["robots_error"], error, "{decision:#}");
}

#[tokio::test]
async fn silence_at_any_point_is_a_failure_after_the_idle_timeout() {
    let gate = Gate::with("[robots]\nfetch-idle-timeout = \"200ms\"\nwait = \"1m\"").await;
    for (place, script) in [
        ("at once", vec![Step::Stall]),
        (
            "inside the head",
            vec![Step::send("HTTP/1.1 200 OK\r\nA: b"), Step::Stall],
        ),
        ("after the head", vec![Step::send(HEAD), Step::Stall]),
        (
            "inside the body",
            vec![Step::send(format!("{HEAD}{RULES}")), Step::Stall],
        ),
    ] {
        println!("{place}");
        let origin = origin_that(Reply::script(script)).await;
        fails(&gate, &origin, "the server was silent for too long").await;
    }
}

#[tokio::test]
async fn a_dripping_response_ends_at_the_fetch_timeout() {
    let settings = "[robots]\nfetch-idle-timeout = \"1500ms\"\nfetch-timeout = \"2s\"\nwait = \"1m\"";
    let gate = Gate::with(settings).await;
    let drip = |bytes: &str| Step::Drip {
        bytes: bytes.repeat(1000).into(),
        every: Duration::from_millis(20),
    };
    let in_body = origin_that(Reply::script([Step::send(HEAD), drip("x")])).await;
    let in_head = origin_that(Reply::script([Step::send("HTTP/1.1 200 OK\r\n"), drip("A: b\r\n")])).await;

    let error = "no complete answer came within 2 s (robots.fetch-timeout)";
    tokio::join!(fails(&gate, &in_body, error), fails(&gate, &in_head, error));
}

#[tokio::test]
async fn a_silent_address_leaves_time_for_the_next_one() {
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let hole = Blackhole::at([127, 0, 0, 2], origin.port()).await;
    let gate = Gate::with("[proxy]\nconnect-timeout = \"4s\"\n[robots]\nwait = \"1m\"").await;
    let addresses = vec![hole.address().ip(), origin.address().ip()];
    gate.dns().answer(NAME, DnsAnswer::Addresses(addresses));

    // If the first address had used the whole time, no time would be left for the second one.
    refused(&gate.get(&origin.url("/p")).await, "rule");
}

#[tokio::test]
async fn a_server_error_without_its_content_is_a_failure() {
    let gate = Gate::with("[robots]\nfetch-idle-timeout = \"2s\"\nwait = \"1m\"").await;
    let head = "HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\n";
    let origin = origin_that(Reply::script([Step::send(head), Step::Stall])).await;

    fails(&gate, &origin, "the server answered 503").await;
}

#[tokio::test]
async fn hanging_origins_do_not_delay_others_while_permits_are_free() {
    let hanging = origin_that(Reply::script([Step::Stall])).await;
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let settings = "[robots]\nmax-fetches = 16\nfetch-timeout = \"5m\"\nfetch-idle-timeout = \"5m\"\nwait = \"5m\"";
    let gate = Gate::with(settings).await;
    let mut waiting = JoinSet::new();
    for number in 0..8 {
        waiting.spawn(
            gate.get(&hanging.url_at(&format!("case-{number}.example"), "/x"))
                .into_future(),
        );
    }
    wait::until("all places to be taken that a fetch can begin in", || {
        (hanging.count("/robots.txt") == 8).then_some(())
    })
    .await;

    wait::within("an origin that answers", async {
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    })
    .await;

    assert!(waiting.try_join_next().is_none(), "they hang still");
}

#[tokio::test]
async fn hanging_origins_of_one_client_do_not_delay_other_clients() {
    let hanging = origin_that(Reply::script([Step::Stall])).await;
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let gate = Gate::with("[robots]\nmax-fetches = 4\nfetch-idle-timeout = \"1m\"\nwait = \"1m\"").await;
    let mut waiting = JoinSet::new();
    for number in 0..20 {
        waiting.spawn(
            gate.get(&hanging.url_at(&format!("case-{number}.example"), "/x"))
                .into_future(),
        );
    }
    wait::until("all places to be taken that one client may have", || {
        (hanging.count("/robots.txt") == 3).then_some(())
    })
    .await;

    let mut other = Connection::from([127, 0, 0, 2], gate.address())
        .await
        .expect("the gate listens");
    for number in 0..3 {
        let url = origin.url_at(&format!("new-{number}.example"), "/x");
        wait::within("an origin of another client", async {
            allowed(&other.get(&url).await, "no-rule");
        })
        .await;
    }

    assert!(waiting.try_join_next().is_none(), "they hang still");
}

#[tokio::test]
async fn if_all_permits_hang_other_fetches_wait_only_until_they_end() {
    let latch = Latch::new();
    let hanging = origin_that(Reply::script([Step::Wait(latch.clone()), Step::Close])).await;
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let gate = Gate::with("[robots]\nmax-fetches = 1\nwait = \"1m\"").await;
    let mut waiting = JoinSet::new();
    for number in 0..4 {
        waiting.spawn(
            gate.get(&hanging.url_at(&format!("case-{number}.example"), "/x"))
                .into_future(),
        );
    }
    wait::until("the first", || (hanging.count("/robots.txt") >= 1).then_some(())).await;
    let other = tokio::spawn(gate.get(&origin.url("/x")).into_future());

    latch.open();

    allowed(&other.await.expect("no panic"), "no-rule");

    while let Some(response) = waiting.join_next().await {
        refused(&response.expect("no panic"), "unreachable");
    }
}

#[tokio::test]
async fn running_fetches_count_after_a_reload_unless_the_limit_changed() {
    let hanging = origin_that(Reply::script([Step::Stall])).await;
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let settings = |fetches: usize, wait: &str| {
        format!(
            "[robots]\nmax-fetches = {fetches}\nfetch-idle-timeout = \"1m\"\nfetch-timeout = \"1m\"\nwait = {wait:?}"
        )
    };
    let gate = Gate::with(&settings(1, "1m")).await;
    let waiting = tokio::spawn(gate.get(&hanging.url("/x")).into_future());
    wait::until("the only place to be taken", || {
        (hanging.count("/robots.txt") == 1).then_some(())
    })
    .await;

    gate.reconfigure(&settings(1, "300ms"));
    gate.reloaded(1).await;
    gate.signal(Signal::HUP);
    gate.reloaded(2).await;
    let error = "the fetch could not start in time, because too many other fetches were running (robots.max-fetches)";
    fails(&gate, &origin, error).await;
    let decision = gate.decision_for(&origin.url("/x")).await;
    assert_eq!(decision["robots_cache"], "queued", "{decision:#}");
    assert_eq!(origin.count("/robots.txt"), 0);

    gate.reconfigure(&settings(2, "1m"));
    gate.reloaded(3).await;
    allowed(&gate.get(&origin.url_at("other.example", "/x")).await, "no-rule");
    waiting.abort();
}

#[tokio::test]
async fn many_new_origins_are_fetched_a_few_at_a_time() {
    const CROWD: usize = 100;
    const FETCHES: usize = 3;
    let latches: Arc<Mutex<Vec<Latch>>> = Arc::default();
    let held = latches.clone();
    let origin = Origin::start()
        .on("/robots.txt", move |_| {
            let latch = Latch::new();
            held.lock().push(latch.clone());
            Reply::ok("text/plain", RULES).after(&latch)
        })
        .anything("page")
        .spawn()
        .await;
    let settings = "[robots]\nmax-fetches = 3\nfetch-timeout = \"5m\"\nfetch-idle-timeout = \"5m\"\nwait = \"5m\"";
    let gate = Gate::with(settings).await;
    let mut crowd = JoinSet::new();
    for number in 0..CROWD {
        crowd.spawn(
            gate.get(&origin.url_at(&format!("case-{number}.example"), "/x"))
                .into_future(),
        );
    }

    for ended in 0..CROWD {
        let last = wait::until("as many fetches as there may be", || {
            let latches = latches.lock();
            let running = latches.len() - ended;
            assert!(running <= FETCHES, "{running} fetches at once");
            (running == FETCHES.min(CROWD - ended)).then(|| latches.last().cloned())
        })
        .await;
        // As long as a site waits for its fetch to begin, end only the latest fetch. After that, end all fetches.
        let at = CROWD - ended;
        match at <= FETCHES {
            true => latches.lock().iter().for_each(Latch::open),
            false => last.expect("one runs").open(),
        }
    }
    while let Some(response) = crowd.join_next().await {
        allowed(&response.expect("no panic"), "no-rule");
    }
    assert_eq!(origin.count("/robots.txt"), CROWD, "one each");
}
