//! How the gate identifies the bot of a request by its User-Agent and its proof, what happens if it identifies none,
//! and what each `enforcement` does.

mod changes;
mod connect;
mod proof;
mod secrecy;

use robotgate::bot::SecretHash;
use serde_json::json;

use crate::support::{Builder, Gate, Origin, ROBOTS, allowed, refused};

const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const GOOGLEBOT: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; \
                         +http://www.google.com/bot.html) Chrome/140.0.0.0 Safari/537.36";

#[tokio::test]
async fn the_product_token_of_the_user_agent_picks_the_group() {
    let origin = Origin::start().robots("User-agent: *\nDisallow: /\n").spawn().await;
    let gate = Gate::start().await;

    for (n, (user_agent, agent)) in [
        ("TestBot/1.0", "TestBot"),
        ("TestBot", "TestBot"),
        ("MyCrawler/2 (+https://me.example/bot)", "MyCrawler"),
        ("python-requests/2.32.3", "python-requests"),
        ("curl/8.5.0", "curl"),
        (
            "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
            "bingbot",
        ),
        (GPTBOT, "GPTBot"),
        (GOOGLEBOT, "Googlebot"),
        (
            "Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)",
            "MJ12bot",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let url = origin.url(&format!("/{n}"));
        refused(&gate.get(&url).user_agent(user_agent).await, "rule");
        let record = gate.decision_for(&url).await;
        assert_eq!(record["agent"], agent, "{user_agent}");
        assert_eq!(record["user_agent"], user_agent);
    }
}

#[tokio::test]
async fn an_unidentified_client_is_refused() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let get = || gate.get(&origin.url("/x"));

    for (way, ask) in [
        ("no field", get().without("User-Agent")),
        ("two fields", get().header("User-Agent", "OtherBot/1")),
        ("the same field twice", get().header("User-Agent", "TestBot/1.0")),
        ("an empty field", get().user_agent("")),
        ("Chrome", get().user_agent(CHROME)),
        ("Firefox", get().user_agent(FIREFOX)),
    ] {
        println!("{way}");
        let response = ask.await;
        let decision = refused(&response, "unidentified");
        assert_eq!(decision.value(), "deny");
        assert!(!response.reason.is_empty());
    }
    assert_eq!(origin.count("/x"), 0);
}

#[tokio::test]
async fn unidentified_clients_can_be_given_the_rules_for_all() {
    let robots = "User-agent: TestBot\nDisallow: /bots\n\nUser-agent: *\nDisallow: /private\n";
    let origin = Origin::start().robots(robots).anything("page").spawn().await;
    let gate = Gate::with("[identity]\nunidentified = \"wildcard\"").await;

    for user_agent in [None, Some(CHROME)] {
        let get = |path: &str| {
            let ask = gate.get(&origin.url(path)).without("User-Agent");
            if let Some(value) = user_agent {
                ask.user_agent(value)
            } else {
                ask
            }
        };
        allowed(&get("/bots").await, "no-rule");
        let decision = refused(&get("/private").await, "rule");
        assert_eq!(decision.param("group").as_deref(), Some("*"));
    }
}

#[tokio::test]
async fn a_configured_bot_tries_its_agents_in_order() {
    const BOT: &str = r#"
        [[bot]]
        name = "shopper"
        user-agents = ["ShopperFetch"]
        robots-agents = ["ShopBot", "GenericBot"]
    "#;
    let generic = "User-agent: GenericBot\nDisallow: /generic\n\nUser-agent: *\nDisallow: /\n";
    let both = "User-agent: GenericBot\nDisallow: /generic\n\nUser-agent: ShopBot\nDisallow: /shop\n";
    let second = Origin::start().robots(generic).anything("page").spawn().await;
    let first = Origin::start().robots(both).anything("page").spawn().await;
    let none = Origin::start()
        .robots("User-agent: *\nDisallow: /all\n")
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(BOT).await;

    for (origin, path, group) in [
        (&second, "/generic", "GenericBot"),
        (&first, "/shop", "ShopBot"),
        (&none, "/all", "*"),
    ] {
        let url = origin.url(path);
        let decision = refused(&gate.get(&url).user_agent("ShopperFetch/3.1").await, "rule");
        assert_eq!(decision.param("group").as_deref(), Some(group));
        assert_eq!(gate.decision_for(&url).await["bot"], "shopper");
        allowed(
            &gate.get(&origin.url("/else")).user_agent("ShopperFetch/3.1").await,
            "no-rule",
        );
    }
}

fn bot(enforcement: &str) -> String {
    format!("[[bot]]\nname = \"tester\"\nuser-agents = [\"TestBot\"]\nenforcement = \"{enforcement}\"\n")
}

#[tokio::test]
async fn report_forwards_and_marks_denied_requests() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with(&bot("report")).await;
    let url = origin.url("/private");

    let response = gate.get(&url).await;

    assert_eq!((response.status, response.text().as_str()), (200, "page"));
    let decision = response.decision();
    assert_eq!(
        (decision.value().as_str(), decision.param("reason").as_deref()),
        ("deny", Some("rule"))
    );
    let record = gate.decision_for(&url).await;
    assert_eq!(
        (&record["verdict"], &record["reason"]),
        (&"deny".into(), &"rule".into())
    );
    assert_eq!(
        (&record["enforcement"], &record["bot"]),
        (&"report".into(), &"tester".into())
    );
    assert_eq!(gate.completion_of(&record).await["status"], 200);
}

#[tokio::test]
async fn the_general_enforcement_is_for_all_bots_without_their_own() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with(
        r#"
        [identity]
        enforcement = "report"

        [[bot]]
        name = "plain"
        user-agents = ["PlainBot"]

        [[bot]]
        name = "strict"
        user-agents = ["StrictBot"]
        enforcement = "enforce"
        "#,
    )
    .await;
    let browser = "Mozilla/5.0 (X11) Gecko/20100101 Firefox/120.0";
    for (path, user_agent, bot, reason) in [
        ("/private/a", "OtherBot/1.0", json!("OtherBot"), "rule"),
        ("/private/b", "PlainBot/1.0", json!("plain"), "rule"),
        ("/c", browser, json!(null), "unidentified"),
    ] {
        let url = origin.url(path);
        let response = gate.get(&url).user_agent(user_agent).await;
        assert_eq!(response.status, 200, "{user_agent}");
        let decision = response.decision();
        assert_eq!(decision.param("reason").as_deref(), Some(reason), "{user_agent}");
        assert_eq!(decision.param("enforcement").as_deref(), Some("report"), "{user_agent}");
        let record = gate.decision_for(&url).await;
        assert_eq!(
            (&record["bot"], &record["verdict"], &record["forwarded"]),
            (&bot, &json!("deny"), &json!(true)),
            "{user_agent}"
        );
    }
    let response = gate.get(&origin.url("/private")).user_agent("StrictBot/1.0").await;
    refused(&response, "rule");
}

#[tokio::test]
async fn requests_of_an_exempt_bot_are_forwarded_and_marked() {
    let origin = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(&bot("exempt")).await;
    let url = origin.url("/private");

    allowed(&gate.get(&url).await, "exempt");

    let record = gate.decision_for(&url).await;
    assert_eq!(
        (&record["verdict"], &record["reason"]),
        (&"allow".into(), &"exempt".into())
    );
    assert_eq!(record["enforcement"], "exempt");
    refused(&gate.get(&origin.url("/x")).user_agent("OtherBot/1").await, "rule");
}

#[tokio::test]
async fn a_bot_is_exempt_only_at_its_exempt_hosts() {
    let rules = "User-agent: *\nDisallow: /\n";
    let origin = Origin::start().robots(rules).anything("page").spawn().await;
    let gate = Gate::with(
        "[[bot]]\nname = \"partner\"\nuser-agents = [\"TestBot\"]\nrobots-agents = [\"TestBot\"]\n\
         exempt-hosts = [\".partner.example\"]\n",
    )
    .await;
    let permitted = origin.url_at("www.partner.example", "/private");
    allowed(&gate.get(&permitted).await, "exempt");
    assert_eq!(gate.decision_for(&permitted).await["enforcement"], "exempt");
    let other = origin.url_at("partner.example.org", "/private");
    refused(&gate.get(&other).await, "rule");
    assert_eq!(gate.decision_for(&other).await["enforcement"], "enforce");
    refused(&gate.get(&permitted).user_agent("OtherBot/1").await, "rule");
}

const BOUND: &str = r#"
    [identity]
    credentials = "credentials"

    [[bot]]
    name = "free"
    user-agents = ["FreeBot"]
    credentials = []

    [[bot]]
    name = "acme"
    user-agents = ["AcmeBot"]
    robots-agents = ["AcmeRobot"]

    [[bot]]
    name = "duo-a"
    user-agents = ["DuoA"]
    credentials = ["duo"]

    [[bot]]
    name = "duo-b"
    user-agents = ["DuoB"]
    credentials = ["duo"]

    [[bot]]
    name = "reporter"
    user-agents = ["Reporter"]
    enforcement = "report"

    [[bot]]
    name = "scanner"
    user-agents = ["Scanner"]
    enforcement = "exempt"
"#;

/// The credentials for [`BOUND`], as `NAME:SECRET`. No log, no response and no origin may get a secret.
const ACME: &str = "acme:a-Secret-of-acme";
const DUO: &str = "duo:a-Secret-of-two:with-a-colon";
const REPORTER: &str = "reporter:a-Secret-of-reporter";
const SCANNER: &str = "scanner:a-Secret-of-scanner";

fn credentials(all: &[&str]) -> String {
    let line = |credential: &&str| {
        let (name, secret) = credential.split_once(':').expect("a name and a secret");
        SecretHash::new([5; 16], secret.as_bytes()).line(name) + "\n"
    };
    all.iter().map(line).collect()
}

async fn bound(more: &str) -> Gate {
    bound_by(&format!("{BOUND}\n{more}")).await
}

async fn bound_by(config: &str) -> Gate {
    builder(config).start().await
}

fn builder(config: &str) -> Builder {
    let all = credentials(&[ACME, DUO, REPORTER, SCANNER]);
    Gate::builder().config(config).credentials(&all)
}

fn basic(credential: &str) -> String {
    format!("Basic {}", data_encoding::BASE64.encode(credential.as_bytes()))
}

/// Returns status and reason of a response. Asserts that a 407 asks for a credential, and that no other status does.
fn outcome(response: &crate::support::Response) -> (u16, String) {
    let reason = response.decision().param("reason").unwrap_or_default();
    let challenged_by = response.field("Proxy-Authenticate");
    let challenge = "Basic realm=\"robotgate\", charset=\"UTF-8\"";
    assert_eq!(
        challenged_by,
        (response.status == 407).then_some(challenge),
        "{response:#?}"
    );
    (response.status, reason)
}
