//! The records about robotgate itself: it starts, reloads, forgets an origin and stops. Also tests which robotgate and
//! which configuration the records of decisions name.

use robotgate::config::Canonical;
use serde_json::{Value, json};

use super::ROBOTS;
use crate::support::{CliOutput, Gate, Origin, Record, Reply, Step, allowed, wait};

fn digest(gate: &Gate) -> String {
    let text = std::fs::read_to_string(gate.file("robotgate.toml")).expect("the file is there");
    Canonical::of(&text).sha256().to_string()
}

async fn reload(gate: &Gate, result: &str) -> Record {
    wait::until(&format!("a reload that is {result}"), || {
        gate.events("reload")
            .into_iter()
            .find(|record| record["result"] == result)
    })
    .await
}

#[tokio::test]
async fn a_decision_names_the_run_and_the_configuration_that_made_it() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::start().await;
    let first = digest(&gate);
    allowed(&gate.get(&origin.url("/1")).await, "no-rule");

    let start = gate.whole_audit().remove(0);
    let instance = start["instance"].as_str().expect("a text").to_owned();
    let mut expected = json!({
        "event": "start", "time": start["time"], "instance": instance, "version": robotgate::VERSION,
        "config_file": gate.file("robotgate.toml"), "config_sha256": first, "pid": gate.pid(),
        "listen": [gate.admin_address().to_string(), gate.address().to_string()],
    });
    assert_eq!(start, expected);
    let fields =
        |decision: &Record| ["config", "instance", "version", "config_sha256"].map(|name| decision[name].clone());
    let made_by =
        |config: u64, sha256: &str| [json!(config), json!(instance), json!(robotgate::VERSION), json!(sha256)];
    assert_eq!(fields(&gate.decision_for(&origin.url("/1")).await), made_by(1, &first));

    gate.reconfigure("[refusals]\nstatus = 451");
    let applied = reload(&gate, "applied").await;
    let second = digest(&gate);
    assert_ne!(first, second);
    expected = json!({
        "event": "reload", "time": applied["time"], "instance": instance, "cause": "the file changed",
        "result": "applied", "error": null, "config": 2, "config_sha256_before": first, "config_sha256": second,
    });
    assert_eq!(applied, expected);
    gate.reloaded(1).await;
    allowed(&gate.get(&origin.url("/2")).await, "no-rule");
    assert_eq!(fields(&gate.decision_for(&origin.url("/2")).await), made_by(2, &second));

    gate.reconfigure("[refusals]\nstatus = \"hunter2\"");
    let rejected = reload(&gate, "rejected").await;
    let error = rejected["error"].as_str().expect("a text");
    assert!(error.contains("refusals.status: ") && !error.contains('|'), "{error}");
    expected = json!({
        "event": "reload", "time": rejected["time"], "instance": instance, "cause": "the file changed",
        "result": "rejected", "error": error, "config": 2, "config_sha256_before": second, "config_sha256": second,
    });
    assert_eq!(rejected, expected);

    assert!(gate.stop().await.success());
    let stop = gate.whole_audit().pop().expect("records");
    expected = json!({
        "event": "stop", "time": stop["time"], "instance": instance, "cause": "SIGTERM", "cut_off": 0,
    });
    assert_eq!(stop, expected);
}

#[tokio::test]
async fn a_stop_counts_the_exchanges_that_it_cuts_off() {
    let origin = Origin::start()
        .robots(ROBOTS)
        .reply("/x", Reply::script([Step::Stall]))
        .spawn()
        .await;
    let mut gate = Gate::with("[proxy]\nshutdown-timeout = \"1ms\"").await;
    let open = tokio::spawn(gate.get(&origin.url("/x")).into_future());
    wait::until("the request", || (origin.count("/x") == 1).then_some(())).await;

    gate.stop().await;

    drop(open.await);
    let mut records = gate.whole_audit();
    let stop = records.pop().expect("records");
    assert_eq!(
        (&stop["event"], &stop["cut_off"]),
        (&"stop".into(), &1.into()),
        "{stop}"
    );
    assert_eq!(records.pop().expect("a completion")["error"], "aborted");
}

#[tokio::test]
async fn forgetting_an_origin_is_logged() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    for _ in 0..2 {
        CliOutput::of(&["cache", "forget", &origin.url(""), "--config", config], "").await;
    }
    let mut records = wait::until("two records", || {
        Some(gate.events("forget")).filter(|records| records.len() == 2)
    })
    .await;
    for record in &mut records {
        record["time"] = Value::Null;
    }
    let forgot = |known: bool| json!({"event": "forget", "time": null, "origin": origin.url(""), "by": "socket", "known": known});
    assert_eq!(records, [forgot(true), forgot(false)]);
}

#[tokio::test]
async fn a_decision_says_what_identified_the_bot_and_what_exempts_it() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let bots = "[[bot]]\nname = 'Acme'\nuser-agents = ['OtherName', '*acme*', 'Acme']\n\
                [[bot]]\nname = 'Desk'\nuser-agents = ['Desk']\nexempt-hosts = ['intranet.example', '.example']\n\
                [[bot]]\nname = 'Scanner'\nuser-agents = ['Scanner']\nenforcement = 'exempt'\n";
    let gate = Gate::with(bots).await;
    for (user_agent, identity, matched_by, exemption) in [
        ("TestBot/1.0", "product-token", Some("TestBot"), None),
        ("Mozilla/5.0 (compatible; Acme/2.1)", "user-agent", Some("*acme*"), None),
        ("Mozilla/5.0", "none", None, None),
        ("Desk/1", "user-agent", Some("Desk"), Some(".example")),
        ("Scanner", "user-agent", Some("Scanner"), Some("enforcement")),
    ] {
        let url = origin.url(&format!("/{user_agent}").replace([' ', '(', ')', ';'], "-"));
        gate.get(&url).user_agent(user_agent).await;
        let decision = gate.decision_for(&url).await;
        let found = [&decision["identity"], &decision["matched_by"], &decision["exemption"]];
        assert_eq!(
            found,
            [&json!(identity), &json!(matched_by), &json!(exemption)],
            "{user_agent}"
        );
    }
}
