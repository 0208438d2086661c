//! `/api/v1/what-if` decides the latest requests again, as if the configuration, a robots.txt or the agent were
//! different.

use serde_json::{Value, json};

use super::post;
use crate::support::{Gate, Origin, ROBOTS, allowed, refused};

const PATH: &str = "/api/v1/what-if";

async fn problem(gate: &Gate, content: &Value) -> String {
    let request = gate
        .ask_admin("POST", PATH)
        .header("Content-Type", "application/json")
        .body(content.to_string().as_bytes());
    let problem = super::answer(request.await, "post", PATH, 400);
    problem["detail"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn the_latest_requests_are_decided_again_under_a_change() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    // robotgate still has the robots.txt in memory, so it needs no store of evidence.
    let gate = Gate::with("evidence.enabled = false").await;
    let site = origin.url("");
    let nothing = post(&gate, PATH, &json!({"agent": "B"})).await;
    assert_eq!((&nothing["decisions"], &nothing["groups"]), (&json!(0), &json!([])));
    allowed(&gate.get(&origin.url("/open")).user_agent("A/1").await, "no-rule");
    refused(&gate.get(&origin.url("/private/1")).user_agent("A/1").await, "rule");
    refused(&gate.get(&origin.url("/private/2")).user_agent("A/1").await, "rule");

    let robots = json!({"robots": [{"origin": site, "text": "User-agent: *\nDisallow: /open\n"}]});
    let found = post(&gate, PATH, &robots).await;
    assert_eq!(
        (&found["decisions"], &found["refused"], &found["forwarded"]),
        (&json!(3), &json!(1), &json!(2)),
        "{found:#}"
    );
    let largest = &found["groups"][0];
    assert_eq!((&largest["decisions"], &largest["origin"]), (&json!(2), &json!(site)));
    assert_eq!(largest["was"]["rule"], "Disallow: /private");
    assert_eq!(largest["now"]["reason"], "no-rule");
    // The newest request is the example.
    assert_eq!(largest["example"]["url"], json!(origin.url("/private/2")));

    // The files that this configuration names do not exist: robotgate must not read them.
    let config = "egress.allow = [\"127.0.0.1\"]\nhttps.extra-roots = [\"/gone.pem\"]\n\
                  identity.credentials = \"/gone\"\nadmin.token-file = \"/gone\"\n\
                  [[bot]]\nname = \"A\"\nuser-agents = [\"A\"]\nenforcement = \"report\"\ncredentials = [\"a\"]\n";
    let found = post(&gate, PATH, &json!({"config": config})).await;
    let unproven = "the configuration would refuse the client, unless the client had a proof of its identity that the \
                    log does not show";
    assert_eq!(found["unknown"], json!({unproven: 3}), "{found:#}");
    let config = config
        .replace("credentials = [\"a\"]\n", "")
        .replace("identity.credentials = \"/gone\"\n", "");
    let found = post(&gate, PATH, &json!({"config": format!("{config}[pace]\n")})).await;
    assert_eq!(
        (&found["forwarded"], &found["same"], &found["pace_changes"]),
        (&json!(2), &json!(1), &json!(true)),
        "{found:#}"
    );
    assert_eq!(origin.count("/private/1"), 0);
    assert_eq!(gate.audited(3).await.0.len(), 3, "nothing is logged");
}

#[tokio::test]
async fn an_invalid_change_to_assume_gets_an_error() {
    let gate = Gate::start().await;
    for (content, error) in [
        (json!({}), "the request names no change; send {\"robots\""),
        (json!({"config": "[robots]\nprofle = 1\n"}), "the configuration:2"),
        // Even if the syntax is wrong, robotgate must not read a file to find more mistakes.
        (
            json!({"config": "https.extra-roots = [\"/gone.pem\"]\nhttps.mode = tunnel\n"}),
            "the configuration:2",
        ),
        (
            json!({"robots": [{"origin": "a.example", "text": ""}]}),
            "is not an origin",
        ),
        (
            json!({"robots": [{"origin": "http://a.example", "text": ""}, {"origin": "http://a.example/", "text": ""}]}),
            "robots has http://a.example twice",
        ),
        (json!({"agent": "A\nB"}), "the agent has a control character"),
        (json!({"robot": []}), "there is no parameter robot"),
    ] {
        let problem = problem(&gate, &content).await;
        assert!(problem.contains(error), "{content}: {problem}");
        assert!(!problem.contains("gone.pem"), "{problem}");
    }
    let long = gate
        .ask_admin("POST", PATH)
        .header("Content-Type", "application/json")
        .body(json!({"config": "#".repeat(1 << 20)}).to_string().as_bytes());
    assert_eq!(long.await.status, 413);
}
