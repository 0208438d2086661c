//! The record of a fetch: the request, the response, the changes, and its place before the decisions that are based on
//! the fetch.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::ROBOTS;
use crate::support::{Gate, NAME, Origin, Record, Reply, Step, allowed, refused, wait};

/// Returns the record of a first fetch of [`ROBOTS`], with `changes` applied.
fn record_of(origin: &Origin, changes: &Value) -> Value {
    let mut record = json!({
        "event": "robots",
        "time": "TIME",
        "origin": origin.url(""),
        "robots_url": origin.url("/robots.txt"),
        "redirects": [],
        "status": 200,
        "upstream": origin.address().to_string(),
        "bytes": ROBOTS.len(),
        "duration_us": "TIME",
        "error": null,
        "held": null,
        "holds": "rules",
        "held_sha256": null,
        "robots_sha256": sha256(ROBOTS),
        "new_text": true,
        "robots_expires": "in 1440 min",
        "failing_since": null,
        "profile": "google",
        "config": 1,
        "instance": "INSTANCE",
    });
    for (name, value) in changes.as_object().expect("an object") {
        record[name] = value.clone();
    }
    if record["robots_sha256"].is_null() || record["robots_sha256"] == record["held_sha256"] {
        record["new_text"] = false.into();
    }
    record
}

fn sha256(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

/// Masks the values of a record that differ in each run.
fn masked(record: &Record) -> Value {
    let time = |name: &str| Some(OffsetDateTime::parse(record[name].as_str()?, &Rfc3339).expect("a time"));
    let logged_at = time("time").expect("every record has one");
    let mut masked = record.clone();
    assert_eq!(record["instance"].as_str().map(str::len), Some(8), "{record}");
    masked["instance"] = "INSTANCE".into();
    masked["time"] = "TIME".into();
    masked["duration_us"] = record["duration_us"].as_u64().map(|_| "TIME").into();
    for name in ["robots_expires", "failing_since"] {
        // Whole minutes hide that robotgate makes the delay before a retry up to a tenth longer, at random.
        masked[name] = time(name)
            .map(|time| format!("in {} min", (time - logged_at).whole_minutes()))
            .into();
    }
    masked
}

async fn fetch(gate: &Gate, origin: &Origin) -> Record {
    let mut found = wait::until("the record of a fetch", || {
        let found = gate.fetches_of(&origin.url(""));
        (!found.is_empty()).then_some(found)
    })
    .await;
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

async fn origin_that(robots: Reply) -> Origin {
    Origin::start()
        .reply("/robots.txt", robots)
        .anything("page")
        .spawn()
        .await
}

#[tokio::test]
async fn a_fetch_is_logged_before_the_decisions_that_use_it() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    allowed(&gate.get(&origin.url("/y")).await, "no-rule");

    let record = fetch(&gate, &origin).await;
    assert_eq!(masked(&record), record_of(&origin, &json!({})));
    let decision = gate.decision_for(&origin.url("/x")).await;
    for (name, of_fetch) in [
        ("robots_url", "robots_url"),
        ("robots_status", "status"),
        ("robots_sha256", "robots_sha256"),
        ("robots_fetched", "time"),
        ("robots_expires", "robots_expires"),
    ] {
        assert_eq!(decision[name], record[of_fetch], "{name}");
    }
    assert_eq!(gate.audit()[0], record, "it is the first of all");
}

#[tokio::test]
async fn the_log_says_what_an_answer_without_rules_means() {
    let no_robots = json!({
        "status": 404, "bytes": 0, "holds": "no-robots", "robots_sha256": null, "robots_expires": "in 60 min",
    });
    let says_so = "<h1>Page not found</h1>";
    let soft = json!({
        "status": 500, "bytes": says_so.len(), "holds": "soft-404", "robots_sha256": null,
        "robots_expires": "in 60 min",
    });
    let gate = Gate::start().await;
    for (answer, changes) in [
        (Reply::status(404).body("none"), no_robots),
        (Reply::status(500).body(says_so), soft),
    ] {
        let origin = origin_that(answer).await;
        gate.get(&origin.url("/x")).await;
        assert_eq!(masked(&fetch(&gate, &origin).await), record_of(&origin, &changes));
    }
}

#[tokio::test]
async fn the_logged_size_is_that_of_the_unpacked_body() {
    let origin = origin_that(Reply::gzip(ROBOTS.as_bytes())).await;
    let long = origin_that(Reply::gzip(format!("{ROBOTS}{}", "#\n".repeat(400 * 1024)).as_bytes())).await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    allowed(&gate.get(&long.url("/x")).await, "no-rule");

    assert_eq!(masked(&fetch(&gate, &origin).await), record_of(&origin, &json!({})));
    let read = fetch(&gate, &long).await["bytes"].as_u64().expect("it was read");
    assert!((500 * 1024..501 * 1024).contains(&read), "{read} bytes");
}

#[tokio::test]
async fn redirects_are_logged_with_their_targets() {
    let elsewhere = Origin::start()
        .reply("/a", Reply::status(308).header("Location", "/b"))
        .page("/b", ROBOTS)
        .tls()
        .spawn()
        .await;
    let to = elsewhere.url_at("other.example", "/a");
    let origin = origin_that(Reply::redirect(&format!("{to}?token=hunter2"))).await;
    for (settings, query) in [("", "token=hunter2"), ("[audit]\nredact-query = true", "redacted")] {
        let gate = Gate::with(settings).await;
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
        let redirects = json!([
            { "status": 302, "to": format!("{to}?{query}"), "upstream": elsewhere.address().to_string() },
            {
                "status": 308, "to": elsewhere.url_at("other.example", "/b"),
                "upstream": elsewhere.address().to_string(),
            },
        ]);
        let expected = record_of(&origin, &json!({ "redirects": redirects }));
        assert_eq!(masked(&fetch(&gate, &origin).await), expected);
    }
}

#[tokio::test]
async fn endless_redirects_mean_no_robots_txt_and_are_logged() {
    let origin = origin_that(Reply::redirect("/robots.txt")).await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");

    let changes = json!({
        "redirects": vec![json!({
            "status": 302, "to": origin.url("/robots.txt"), "upstream": origin.address().to_string(),
        }); 5],
        "status": 302, "bytes": null, "error": "it redirects too often", "holds": "no-robots",
        "robots_sha256": null, "robots_expires": "in 60 min",
    });
    assert_eq!(masked(&fetch(&gate, &origin).await), record_of(&origin, &changes));
}

#[tokio::test]
async fn a_failure_is_logged_with_its_cause_and_start() {
    let mut gone = Origin::start().spawn().await;
    gone.shut_down().await;
    let metadata = origin_that(Reply::redirect("http://169.254.169.254/latest?token=hunter2")).await;
    let ftp = origin_that(Reply::redirect("ftp://other.example/robots.txt?token=hunter2")).await;
    let busy = origin_that(Reply::status(503).body("later")).await;
    let gate = Gate::with("[audit]\nredact-query = true").await;

    let nowhere = "the server's redirect leads to no URL that robotgate can fetch: \
                   ftp://other.example/robots.txt?… (neither http nor https)";
    let link_local = "after a redirect to http://169.254.169.254: 169.254.169.254 is a link-local address, which bots \
                      cannot reach unless egress.allow lists its network";
    for (origin, changes) in [
        (
            &gone,
            json!({ "status": null, "bytes": null, "error": "the server refused the connection" }),
        ),
        (
            &metadata,
            json!({
                "redirects": [{ "status": 302, "to": "http://169.254.169.254/latest?redacted", "upstream": null }],
                "status": null, "bytes": null, "error": link_local,
            }),
        ),
        (&ftp, json!({ "status": 302, "bytes": null, "error": nowhere })),
        (
            &busy,
            json!({
                "status": 503, "bytes": 5, "error": "the server answered 503", "robots_expires": "in 5 min",
            }),
        ),
    ] {
        refused(&gate.get(&origin.url("/x")).await, "unreachable");
        let mut failure = json!({
            "holds": "unreachable", "robots_sha256": null, "robots_expires": "in 1 min", "failing_since": "in 0 min",
        });
        for (name, value) in changes.as_object().expect("an object") {
            failure[name] = value.clone();
        }
        let record = fetch(&gate, origin).await;
        assert_eq!(masked(&record), record_of(origin, &failure));
        assert_eq!(record["failing_since"], record["time"]);
        assert_eq!(
            gate.decision_for(&origin.url("/x")).await["robots_error"],
            record["error"]
        );
    }
    let everything = format!("{:?} {:?}", gate.audit(), gate.log());
    assert!(!everything.contains("hunter2"), "{everything}");
}

#[tokio::test]
async fn a_failure_does_not_change_a_valid_copy() {
    let origin = origin_that(Reply::ok("text/plain", ROBOTS).header("Cache-Control", "max-age=5")).await;
    let gate = Gate::with("[robots]\nmin-ttl = \"1s\"").await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    origin.change("/robots.txt", Reply::status(503));

    let records = wait::until_async("a second fetch", async || {
        refused(&gate.get(&origin.url_at(NAME, "/private")).await, "rule");
        let records = gate.fetches_of(&origin.url(""));
        (records.len() == 2).then_some(records)
    })
    .await;

    let changes = json!({
        "status": 503, "bytes": 0, "error": "the server answered 503", "held": "rules", "holds": "rules",
        "held_sha256": sha256(ROBOTS), "robots_expires": "in 0 min", "failing_since": "in 0 min",
    });
    assert_eq!(masked(&records[1]), record_of(&origin, &changes));
    assert_eq!(records[1]["robots_expires"], records[0]["robots_expires"]);
}

#[tokio::test]
async fn a_fetch_says_if_its_text_is_new() {
    let reply = |text: &str| Reply::ok("text/plain", text).header("Cache-Control", "max-age=1");
    let origin = origin_that(reply(ROBOTS)).await;
    let gate = Gate::with("[robots]\nmin-ttl = \"1s\"").await;
    for (text, is_new) in [(ROBOTS, true), ("User-agent: *\nDisallow: /y\n", true), (ROBOTS, false)] {
        let seen = gate.fetches_of(&origin.url("")).len();
        origin.change("/robots.txt", reply(text));
        let fetches = wait::until_async("two fetches of the text", async || {
            gate.get(&origin.url("/x")).await;
            let mut fetches = gate.fetches_of(&origin.url("")).split_off(seen);
            fetches.retain(|record| record["robots_sha256"] == sha256(text));
            (fetches.len() >= 2).then_some(fetches)
        })
        .await;
        assert_eq!(fetches[0]["new_text"], is_new, "{text}");
        assert_eq!(fetches[1]["new_text"], false, "unchanged: {text}");
    }
}

#[tokio::test]
async fn a_fetch_is_logged_with_its_profile_and_generation() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    gate.reconfigure("[robots]\nprofile = \"rfc9309\"");
    gate.reloaded(1).await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");

    let changes = json!({ "profile": "rfc9309", "config": 2 });
    assert_eq!(masked(&fetch(&gate, &origin).await), record_of(&origin, &changes));
}

#[tokio::test]
async fn a_fetch_cut_off_by_a_stop_is_logged() {
    let origin = origin_that(Reply::script([Step::Stall])).await;
    let mut gate =
        Gate::with("[robots]\nwait = \"100ms\"\nfetch-timeout = \"10m\"\nfetch-idle-timeout = \"10m\"").await;
    refused(&gate.get(&origin.url("/x")).await, "unreachable");
    wait::until("the origin to be asked", || {
        (origin.count("/robots.txt") == 1).then_some(())
    })
    .await;

    assert!(gate.stop().await.success());

    let changes = json!({
        "status": null, "upstream": null, "bytes": null,
        "error": "robotgate dropped the fetch, usually because it was stopping; otherwise, the operational log may \
                  say why",
        "holds": "unreachable", "robots_sha256": null, "robots_expires": null,
    });
    assert_eq!(masked(&fetch(&gate, &origin).await), record_of(&origin, &changes));
}
