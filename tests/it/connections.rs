//! Connections to an origin: the fetch of its robots.txt and the requests after it share a connection, if that is safe.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Gate, Latch, NAME, Origin, ROBOTS, Reply, Signal, Step, allowed, refused, wait};

const BRIEF: &str = "[robots]\nmin-ttl = \"1s\"\ndefault-ttl = \"1s\"\nmax-ttl = \"1s\"\nwait = \"1m\"";

fn connections_of(origin: &Origin, path: &str) -> Vec<usize> {
    let requests = origin.requests_for(path);
    requests.iter().map(|request| request.connection).collect()
}

#[tokio::test]
async fn a_page_uses_the_connection_of_its_robots_txt() {
    let long = "x".repeat(3000);
    for (name, robots, reason) in [
        ("rules", Reply::ok("text/plain", ROBOTS), "no-rule"),
        (
            "rules in chunks",
            Reply::chunked(["User-agent: *\n", "Disallow: /private\n"]),
            "no-rule",
        ),
        ("packed rules", Reply::gzip(ROBOTS.as_bytes()), "no-rule"),
        ("no rules", Reply::status(404), "no-robots"),
        // robotgate reads this content only so that it can reuse the connection.
        ("a page that says so", Reply::status(404).body(long), "no-robots"),
    ] {
        for tls in [false, true] {
            let origin = Origin::start().anything("page").reply("/robots.txt", robots.clone());
            let origin = if tls { origin.tls() } else { origin }.spawn().await;
            let gate = Gate::start().await;

            let response = gate.get(&origin.url("/x")).await;

            assert_eq!(allowed(&response, reason).value(), "allow", "{name}");
            assert_eq!(response.text(), "page", "{name}");
            assert_eq!(origin.connections(), 1, "{name}, tls: {tls}");
        }
    }
}

#[tokio::test]
async fn a_page_uses_the_connection_of_a_redirected_robots_txt() {
    let there = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let origin = Origin::start()
        .reply("/robots.txt", Reply::redirect(&there.url("/robots.txt")))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");

    assert_eq!((origin.connections(), there.connections()), (1, 1));
}

#[tokio::test]
async fn after_an_odd_robots_txt_a_page_uses_a_new_connection() {
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nhalf";
    for (name, robots) in [
        (
            "it asks for a login",
            Reply::status(401).header("WWW-Authenticate", "Negotiate"),
        ),
        (
            "it asks for another",
            Reply::status(403).header("WWW-Authenticate", "Basic realm=\"x\", NTLM"),
        ),
        ("it closes", Reply::ok("text/plain", "").header("Connection", "close")),
        ("it ends with its connection", Reply::raw("HTTP/1.1 200 OK\r\n\r\n")),
        ("there is more behind it", Reply::script([Step::send(head(0) + forged)])),
        (
            "its end is not there",
            Reply::script([Step::send(missing), Step::Stall]),
        ),
    ] {
        let origin = Origin::start().reply("/robots.txt", robots).page("/x", "page");
        let origin = origin.spawn().await;
        let gate = Gate::start().await;

        let response = gate.get(&origin.url("/x")).await;

        assert_eq!((response.status, &*response.text()), (200, "page"), "{name}");
        assert_eq!(connections_of(&origin, "/robots.txt"), [0], "{name}");
        assert_eq!(connections_of(&origin, "/x"), [1], "{name}");
    }
}

#[tokio::test]
async fn over_http_1_1_a_robots_txt_uses_a_new_connection() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with(BRIEF).await;

    wait::until_async("three fetches", async || {
        gate.get(&origin.url("/x")).await;
        (origin.count("/robots.txt") == 3).then_some(())
    })
    .await;

    let mut seen = std::collections::HashSet::new();
    for request in origin.requests() {
        let is_first = seen.insert(request.connection);
        assert!(is_first || request.path() != "/robots.txt", "{:#?}", origin.requests());
    }
}

async fn crowd(gate: &Gate, origin: &Origin) {
    let responses: Vec<_> = (0..20)
        .map(|n| tokio::spawn(gate.get(&origin.url(&format!("/{n}"))).into_future()))
        .collect();
    for response in responses {
        allowed(&response.await.expect("no panic"), "no-rule");
    }
}

#[tokio::test]
async fn simultaneous_requests_over_http_2_share_one_connection() {
    let origin = Origin::start().alpn(&["h2"]).robots(ROBOTS).anything("page");
    let origin = origin.spawn().await;
    let mut gate = Gate::start().await;

    crowd(&gate, &origin).await;
    assert_eq!(origin.connections(), 1, "nothing was known of it");

    assert_eq!(gate.stop().await.code(), Some(0));
    gate.start_again().await;
    crowd(&gate, &origin).await;
    assert_eq!(origin.count("/robots.txt"), 1, "its rules are known");
    assert_eq!(
        origin.connections(),
        2,
        "who comes while a connection is made waits for it"
    );
}

#[tokio::test]
async fn over_http_2_a_robots_txt_uses_the_existing_connection() {
    let origin = Origin::start().alpn(&["h2"]).robots(ROBOTS).anything("page");
    let origin = origin.spawn().await;
    let gate = Gate::with(BRIEF).await;

    wait::until_async("three fetches", async || {
        gate.get(&origin.url("/x")).await;
        (origin.count("/robots.txt") == 3).then_some(())
    })
    .await;

    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_fetch_on_a_silent_connection_has_time_to_try_a_new_one() {
    let never = Latch::new();
    let origin = Origin::start().alpn(&["h2"]).anything("page");
    let fetches = AtomicUsize::new(0);
    let origin = origin.on("/robots.txt", move |request| {
        let is_first = fetches.fetch_add(1, Ordering::SeqCst) == 0;
        match request.connection {
            0 if is_first => Reply::ok("text/plain", ROBOTS),
            // HTTP/2 still answers PING frames on this connection.
            0 => Reply::status(200).after(&never),
            _ => Reply::ok("text/plain", "User-agent: *\nDisallow: /\n"),
        }
    });
    let origin = origin.spawn().await;
    // The server may send nothing for the whole duration of a fetch.
    let times = "\nfetch-idle-timeout = \"15s\"\nfetch-timeout = \"15s\"";
    let gate = Gate::with(&format!("{BRIEF}{times}")).await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");

    let fetches = wait::until_async("the second fetch", async || {
        drop(gate.get(&origin.url("/x")).await);
        Some(gate.fetches_of(&origin.url(""))).filter(|fetches| fetches.len() > 1)
    })
    .await;

    assert_eq!(fetches[1]["status"], 200, "{fetches:#?}");
    assert_eq!(connections_of(&origin, "/robots.txt")[..3], [0, 0, 1]);
    refused(&gate.get(&origin.url("/x")).await, "rule");
}

#[tokio::test]
async fn a_broken_connection_does_not_break_the_retry_of_a_fetch() {
    let latch = Latch::new();
    let origin = Origin::start()
        .alpn(&["h2"])
        .robots(ROBOTS)
        .page("/x", "page")
        .reply("/rules.txt", Reply::ok("text/plain", ROBOTS).after(&latch))
        .reply("/break", Reply::script([Step::Break]));
    let origin = origin.spawn().await;
    // This robots.txt redirects to `origin`. During this fetch, robotgate already has the robots.txt of `origin`, so it
    // also forwards requests to `origin`, which can share connections with the fetch.
    let other = Origin::start()
        .reply("/robots.txt", Reply::redirect(&origin.url("/rules.txt")))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nwait = \"1m\"\nfetch-idle-timeout = \"1m\"\nfetch-timeout = \"1m\"").await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");

    let pending = tokio::spawn(gate.get(&other.url("/x")).into_future());
    // Send more requests than a fetch has attempts.
    for _ in 0..10 {
        wait::until("the fetch to be on a connection", || {
            let broken = connections_of(&origin, "/break");
            let fetching = connections_of(&origin, "/rules.txt");
            let is_open = fetching.iter().any(|connection| !broken.contains(connection));
            (is_open || pending.is_finished()).then_some(())
        })
        .await;
        // It does not matter what the response is.
        drop(gate.get(&origin.url("/break")).send().await);
    }
    latch.open();

    allowed(&pending.await.expect("no panic"), "no-rule");
    let fetching = connections_of(&origin, "/rules.txt");
    let broken = connections_of(&origin, "/break");
    assert_eq!(fetching.len(), 2, "{fetching:?}, broken: {broken:?}");
    assert_eq!(fetching[0], 0, "it was there, so it was shared");
    assert!(!broken.contains(&fetching[1]), "{fetching:?}, broken: {broken:?}");
}

#[tokio::test]
async fn simultaneous_requests_over_http_1_1_do_not_wait() {
    let latch = Latch::new();
    let page = Reply::ok("text/plain", "page").after(&latch);
    let origin = Origin::start().tls().robots(ROBOTS).otherwise(move |_| page.clone());
    let origin = origin.spawn().await;
    let gate = Gate::start().await;

    let responses: Vec<_> = (0..5)
        .map(|n| tokio::spawn(gate.get(&origin.url(&format!("/{n}"))).into_future()))
        .collect();

    // The origin responds to none of the requests before all have arrived.
    wait::until("all to be asked", || (origin.requests().len() == 6).then_some(())).await;
    assert_eq!(origin.connections(), 5, "one of them on that of the robots.txt");
    latch.open();
    for response in responses {
        allowed(&response.await.expect("no panic"), "no-rule");
    }
}

#[tokio::test]
async fn after_a_reload_of_the_roots_no_old_connection_is_used() {
    for alpn in ["h2", "http/1.1"] {
        let origin = Origin::start()
            .alpn(&[alpn])
            .robots(ROBOTS)
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::start().await;
        refused(&gate.get(&origin.url("/private")).await, "rule");

        gate.reconfigure("[robots]\nwait = \"2m\"");
        gate.reloaded(1).await;
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
        assert_eq!(connections_of(&origin, "/x"), [0], "{alpn}: the roots are the same");

        gate.signal(Signal::HUP);
        gate.reloaded(2).await;
        allowed(&gate.get(&origin.url_at(NAME, "/y")).await, "no-rule");
        assert_eq!(
            connections_of(&origin, "/y"),
            [1],
            "{alpn}: the connection was made by other roots"
        );
        assert_eq!(origin.count("/robots.txt"), 1, "{alpn}");
    }
}
