//! A slow or silent origin costs bounded time, and leaves fetches for other origins.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::task::JoinSet;

use super::RULES;
use crate::support::{
    Blackhole, Connection, DnsAnswer, Gate, Latch, NAME, Origin, Reply, Signal, Step, allowed, refused, wait,
};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";

/// Starts an origin with this reply for its robots.txt, and with pages.
async fn origin_that(robots: Reply) -> Origin {
    Origin::start()
        .reply("/robots.txt", robots)
        .anything("page")
        .spawn()
        .await
}

/// Asserts that a page is refused because the robots.txt is unreachable for this cause.
async fn fails(gate: &Gate, origin: &Origin, error: &str) {
    refused(&gate.get(&origin.url("/x")).await, "unreachable");
    let decision = gate.decision_for(&origin.url("/x")).await;
    assert_eq!(decision["robots_error"], error, "{decision:#}");
}

#[tokio::test]
async fn silence_is_a_failure_after_the_idle_time_wherever_it_falls() {
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
async fn a_drip_is_no_silence_and_ends_at_the_time_for_the_whole() {
    let settings = "[robots]\nfetch-idle-timeout = \"1500ms\"\nfetch-timeout = \"2s\"\nwait = \"1m\"";
    let gate = Gate::with(settings).await;
    let drip = |bytes: &str| Step::Drip {
        bytes: bytes.repeat(1000).into(),
        every: Duration::from_millis(20),
    };
    let in_body = origin_that(Reply::script([Step::send(HEAD), drip("x")])).await;
    let in_head = origin_that(Reply::script([Step::send("HTTP/1.1 200 OK\r\n"), drip("A: b\r\n")])).await;

    let error = "the answer was not complete within 2 s";
    tokio::join!(fails(&gate, &in_body, error), fails(&gate, &in_head, error));
}

#[tokio::test]
async fn an_address_that_never_answers_leaves_time_for_the_next() {
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let hole = Blackhole::at([127, 0, 0, 2], origin.port()).await;
    let gate = Gate::with("[proxy]\nconnect-timeout = \"4s\"\n[robots]\nwait = \"1m\"").await;
    let addresses = vec![hole.address().ip(), origin.address().ip()];
    gate.dns().answer(NAME, DnsAnswer::Addresses(addresses));

    // If the first address had used all of the time, none would be left for the second.
    refused(&gate.get(&origin.url("/p")).await, "rule");
}

#[tokio::test]
async fn the_page_of_a_server_error_need_not_come() {
    let gate = Gate::with("[robots]\nfetch-idle-timeout = \"2s\"\nwait = \"1m\"").await;
    let head = "HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\n";
    let origin = origin_that(Reply::script([Step::send(head), Step::Stall])).await;

    fails(&gate, &origin, "the server answered 503").await;
}

#[tokio::test]
async fn origins_that_hang_keep_no_others_waiting_while_there_is_room_for_them() {
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
async fn origins_that_hang_for_one_client_keep_no_other_client_waiting() {
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
async fn where_more_hang_than_there_is_room_for_the_others_wait_no_longer_than_those_take() {
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
async fn a_reload_counts_those_that_run_and_another_bound_counts_anew() {
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
    let error = "the fetch could not start in time, because too many others ran (robots.max-fetches)";
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
async fn a_crowd_of_cold_origins_is_fetched_a_few_at_a_time() {
    const CROWD: usize = 100;
    const FETCHES: usize = 3;
    let latches: Arc<Mutex<Vec<Latch>>> = Arc::default();
    let held = latches.clone();
    let origin = Origin::start()
        .on("/robots.txt", move |_| {
            let latch = Latch::new();
            held.lock().expect("nobody panics with it").push(latch.clone());
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
            let latches = latches.lock().expect("nobody panics with it");
            let running = latches.len() - ended;
            assert!(running <= FETCHES, "{running} fetches at once");
            (running == FETCHES.min(CROWD - ended)).then(|| latches.last().cloned())
        })
        .await;
        // The others keep running as long as the crowd needs, and are then released.
        let at = CROWD - ended;
        match at <= FETCHES {
            true => latches
                .lock()
                .expect("nobody panics with it")
                .iter()
                .for_each(Latch::open),
            false => last.expect("one runs").open(),
        }
    }
    while let Some(response) = crowd.join_next().await {
        allowed(&response.expect("no panic"), "no-rule");
    }
    assert_eq!(origin.count("/robots.txt"), CROWD, "one each");
}
