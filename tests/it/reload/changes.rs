//! The effect of a reload, and what it logs about its changes.

use std::fs;

use crate::support::{Alpn, Gate, NAME, Origin, ROBOTS, Signal, allowed, refused, wait};

/// Returns the changed settings in the log: the key, with its values before and after, or with what changed.
fn logged_changes(gate: &Gate) -> Vec<String> {
    let lines = gate
        .log()
        .into_iter()
        .filter(|line| line.message() == "a setting changed");
    lines
        .map(|line| {
            let [key, before, after] = ["key", "before", "after"].map(|name| line.field(name).unwrap_or("-"));
            match line.field("how") {
                Some(how) => format!("{key}: {how}"),
                None => format!("{key}: {before} -> {after}"),
            }
        })
        .collect()
}

#[tokio::test]
async fn new_limits_of_the_head_apply_to_idle_connections() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let mut idle = gate.dial().await;
    allowed(&idle.get(&origin.url("/a")).await, "no-robots");

    gate.reconfigure("[proxy]\nmax-header-fields = 1");
    gate.reloaded(1).await;

    let response = idle.get(&origin.url("/b")).await;
    assert_eq!(response.status, 431, "{response:#?}");
    assert_eq!(origin.count("/b"), 0);
}

#[tokio::test]
async fn each_changed_key_is_logged_without_secrets() {
    let secret = "sha256$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let gate = Gate::builder()
        .config("[identity]\ncredentials = \"credentials\"\n[[bot]]\nname = \"acme\"\nuser-agents = [\"acme\"]")
        .credentials(&format!("acme:{secret}\n"))
        .start()
        .await;

    gate.reconfigure("[identity]\ncredentials = \"credentials\"\n[[bot]]\nname = \"acme\"\nuser-agents = [\"acme\"]\nenforcement = \"report\"\n[proxy]\nread-timeout = \"5s\"\nthreads = 3");
    gate.reloaded(1).await;
    assert_eq!(
        logged_changes(&gate),
        [
            "bot.acme.enforcement: default -> \"report\"",
            "proxy.read-timeout: default -> \"5s\"",
            "proxy.threads: default -> 3",
        ]
    );
    let restart = gate
        .log()
        .into_iter()
        .find(|line| line.message() == "this setting takes effect at the next start");
    assert_eq!(restart.unwrap().field("key"), Some("proxy.threads"));

    gate.replace_credentials(&format!("other:{secret}\nacme:{}\n", secret.replace('A', "Q")));
    gate.reloaded(2).await;
    assert_eq!(
        logged_changes(&gate)[3..],
        [
            "identity.credentials.acme: changed",
            "identity.credentials.other: added"
        ]
    );
    assert!(gate.log().iter().all(|line| !line.json.to_string().contains("sha256$")));
}

#[tokio::test]
async fn a_reload_can_change_the_cache_file() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    refused(&gate.get(&origin.url("/private")).await, "rule");

    // The robots.txt is fetched again, because the new cache file has no copy of it.
    gate.reconfigure("[cache]\npath = \"other.redb\"");
    gate.reloaded(1).await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 2);
    let socket = |name: &str| gate.file(name).exists();
    assert!(
        socket("other.redb.sock") && !socket("robots.redb.sock"),
        "operators are answered beside the other file"
    );

    // The first cache file still contains its copies.
    gate.reconfigure("");
    gate.reloaded(2).await;
    refused(&gate.get(&origin.url("/private/1")).await, "rule");
    assert_eq!(
        gate.decision_for(&origin.url("/private/1")).await["robots_cache"],
        "hit"
    );
    assert_eq!(origin.count("/robots.txt"), 2);

    gate.reconfigure("[cache]\npath = \"robotgate.toml/other.redb\"");
    wait::until("a rejection", || {
        (gate.logged("the new configuration was rejected; robotgate keeps the current one") == 1).then_some(())
    })
    .await;
    refused(&gate.get(&origin.url("/private/2")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 2);
}

#[tokio::test]
async fn a_reload_can_change_the_authority() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "page").tls().spawn().await;
    let gate = Gate::start().await;
    let first = fs::read(gate.file("ca.pem")).unwrap();
    let inside = async || {
        let tunnel = gate.connect(&origin.authority()).await.opened();
        tunnel.tls(NAME, Alpn::Http1).await.get("/x").await
    };
    allowed(&inside().await, "no-rule");

    gate.reconfigure("[https]\nca-certificate = \"other.pem\"\nca-key = \"other-key.pem\"");
    gate.reloaded(1).await;
    assert!(
        logged_changes(&gate).contains(&"https.ca-certificate: another certificate".to_owned()),
        "{:?}",
        logged_changes(&gate)
    );

    // Rename the second authority's files, so that the test's client, which reads `ca.pem`, trusts only the second.
    for (from, to) in [("other.pem", "ca.pem"), ("other-key.pem", "ca-key.pem")] {
        fs::rename(gate.file(from), gate.file(to)).unwrap();
    }
    assert_ne!(fs::read(gate.file("ca.pem")).unwrap(), first);
    allowed(&inside().await, "no-rule");

    // The original file names now belong to the other authority's files.
    gate.reconfigure("");
    gate.reloaded(2).await;
    allowed(&inside().await, "no-rule");
    gate.signal(Signal::HUP);
    gate.reloaded(3).await;
    allowed(&inside().await, "no-rule");
}
