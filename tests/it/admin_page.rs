//! The operators' page in a real browser: headless Chromium, which `admin_page/drive.py` drives step by step.
//!
//! The README's test command installs the browser. Without it these tests are skipped, or fail if `CI` is set.

use std::process::Stdio;

use robotgate::bot::SecretHash;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::support::{Gate, NAME, Origin, Reply, allowed, programs::needs, refused, wait};

const ROBOTS: &str = "# What bots may do here.\nUser-agent: *\nAllow: /private/press\nDisallow: /private\n";
const TOKEN: &str = "open-sesame-open-sesame";

/// An operator who uses the page.
struct Operator {
    steps: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    // Dropping it ends the browser.
    _driver: Child,
}

// === impl Operator ===

impl Operator {
    async fn open(gate: &Gate) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/admin_page/drive.py");
        let mut driver = Command::new("/usr/bin/python3")
            .arg("-B")
            .arg(script)
            .arg(format!("http://{}/", gate.admin_address()))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut operator = Self {
            steps: driver.stdin.take().expect("piped"),
            answers: BufReader::new(driver.stdout.take().expect("piped")).lines(),
            _driver: driver,
        };
        operator.perform(json!(["open", 1400])).await;
        operator
    }

    /// Performs a step and waits until it has succeeded.
    #[track_caller]
    fn perform(&mut self, step: serde_json::Value) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let line = format!("{step}\n");
            let reply = async {
                self.steps.write_all(line.as_bytes()).await.ok()?;
                self.answers.next_line().await.ok()?
            };
            let answer = reply.await.unwrap_or_else(|| "the driver has ended".to_owned());
            assert!(answer == "ok", "{place}: {step}: {}", answer.replace(" ⏎ ", "\n"));
        }
    }

    /// Closes the browser and checks that it reported no error.
    async fn close(mut self) {
        self.perform(json!(["clean"])).await;
        drop(self.steps);
        assert_eq!(self.answers.next_line().await.unwrap_or_default(), None);
    }
}

async fn origin() -> Origin {
    Origin::start().robots(ROBOTS).anything("page").spawn().await
}

#[tokio::test]
async fn the_page_shows_decisions_and_their_reasons() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["ready"])).await;
    operator.perform(json!(["counted", "deny", "0"])).await;

    for _ in 0..3 {
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    }
    operator.perform(json!(["counted", "allow", "3"])).await;
    let url = origin.url("/private/%3Cscript%3Ealert(1)%3C/script%3E?'&quot;");
    refused(&gate.get(&url).await, "rule");
    operator.perform(json!(["counted", "deny", "1"])).await;
    operator
        .perform(json!(["refusal", url, "deny, rule", "line 4: Disallow: /private"]))
        .await;
    operator.perform(json!(["filtered", "nobody-says-this", 0])).await;
    // The search includes the row and the line, but not the rest of the record.
    for (text, count) in [
        ("\"disallow: /private\"", 1),
        ("line 4", 1),
        ("enforce", 0),
        ("robots.txt", 0),
    ] {
        operator.perform(json!(["filtered", text, count])).await;
    }
    let records = gate.audit();
    let refusal = records.iter().find(|record| record["verdict"] == "deny");
    let id = &refusal.expect("a refusal")["id"];
    operator.perform(json!(["filtered", id, 1])).await;
    operator
        .perform(json!(["opened", id, "Why: the rule in its robots.txt"]))
        .await;
    operator.perform(json!(["why", "Disallow: /private"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_what_a_site_changed() {
    needs!("python3", "chromium");
    let brief = |text: &str| Reply::ok("text/plain", text).header("Cache-Control", "max-age=1");
    let origin = Origin::start()
        .reply("/robots.txt", brief(ROBOTS))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nmin-ttl = \"1s\"").await;
    allowed(&gate.get(&origin.url("/news")).await, "no-rule");
    origin.change("/robots.txt", brief("User-agent: *\nDisallow: /news\nSitemap: <b>\n"));
    wait::until_async("a change", async || {
        gate.get(&origin.url("/x")).await;
        (!gate.events("robots-changed").is_empty()).then_some(())
    })
    .await;
    let mut operator = Operator::open(&gate).await;
    operator
        .perform(json!([
            "changed",
            origin.url(""),
            "1 rule added, 2 removed",
            "1 newly denied and 0 newly allowed",
            "+ line 2: Disallow: /news",
            "− line 4: Disallow: /private",
            "Sitemap: <b>",
            format!("{} (line 2: Disallow: /news)", origin.url("/news")),
        ]))
        .await;
    let name = origin.url("");
    operator.perform(json!(["search", name, [name]])).await;
    operator.perform(json!(["origin", name, "robots.txt, 3 lines"])).await;
    operator
        .perform(json!([
            "versions",
            2,
            "1 rule added, 2 removed",
            "+Disallow: /news",
            "-Disallow: /private"
        ]))
        .await;
    operator.perform(json!(["within", 400, "a site"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_finds_origins_and_answers_whether_a_bot_may_fetch() {
    needs!("python3", "chromium");
    let (origin, other, gate) = (origin().await, origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    for each in [&origin, &other] {
        allowed(&gate.get(&each.url("/x")).await, "no-rule");
    }
    let name = origin.url("");
    let port = name.rsplit(':').next().expect("a port");
    operator.perform(json!(["search", port, [name]])).await;
    operator
        .perform(json!([
            "origin",
            name,
            "the rules of its robots.txt decide",
            "1 allow, 0 deny",
            "robots.txt, 4 lines",
            "Allow: /private/press"
        ]))
        .await;

    let ask = |path: &str, answer: &str| json!(["ask", "TestBot/1.0", origin.url(path), answer]);
    operator
        .perform(ask("/private/x", "No: TestBot may not fetch this URL."))
        .await;
    operator.perform(json!(["marked", "Disallow: /private"])).await;
    operator
        .perform(ask("/private/press", "Yes: TestBot may fetch this URL."))
        .await;
    operator.perform(json!(["marked", "Allow: /private/press"])).await;
    assert_eq!(origin.count("/private/x"), 0);
    operator.close().await;
}

#[tokio::test]
async fn the_page_sorts_and_pages_ten_thousand_sites_with_long_names() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let long = ["x".repeat(60), "y".repeat(60), "z".repeat(60), "w".repeat(50)].join(".");
    let site = |number: usize| origin.url_at(&format!("h{number:05}.{long}.{NAME}"), "");
    for some in (0..10_000).collect::<Vec<_>>().chunks(1000) {
        let requests = some
            .iter()
            .map(|number| json!({"agent": "Acme", "url": format!("{}/", site(*number))}));
        let questions = json!({"requests": requests.collect::<Vec<_>>()});
        let decided = gate
            .ask_admin("POST", "/api/v1/decide")
            .header("Content-Type", "application/json")
            .body(questions.to_string().as_bytes())
            .await
            .json();
        assert_eq!(decided["decisions"][999]["reason"], "no-rule", "{decided:#}");
    }
    for _ in 0..3 {
        refused(&gate.get(&format!("{}/private", site(7777))).await, "rule");
    }
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["state", "", "10,000 sites known."])).await;
    operator.perform(json!(["sites", "origin", [site(0), site(1)]])).await;
    operator.perform(json!(["next_page", "101–200 of 10,000"])).await;
    operator.perform(json!(["sites", "origin", [site(100)]])).await;
    operator.perform(json!(["sorted_by", "deny", ["3", "0"]])).await;
    operator.perform(json!(["sites", "origin", [site(7777)]])).await;
    operator
        .perform(json!(["state", "failing", "No known site fits."]))
        .await;
    operator.perform(json!(["state", "", "10,000 sites known."])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["fits", 1400])).await;
    operator.perform(json!(["search", "h07777", [site(7777)]])).await;
    operator
        .perform(json!(["origin", site(7777), "the rules of its robots.txt decide"]))
        .await;
    operator
        .perform(json!(["within", 400, "a site with a long name"]))
        .await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_says_which_requests_would_be_decided_otherwise() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    let site = origin.url("");
    let what_if = |robots: &str, config: &str, texts: &[&str]| {
        let step = [
            json!("what_if"),
            json!(if robots.is_empty() { "" } else { &*site }),
            json!(robots),
            json!(config),
        ];
        serde_json::Value::Array(step.into_iter().chain(texts.iter().map(|text| json!(text))).collect())
    };
    let new = "User-agent: *\nDisallow: /x\n";
    operator
        .perform(what_if(new, "", &["No request is in memory yet."]))
        .await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    refused(&gate.get(&origin.url("/private/%3Cb%3E")).await, "rule");
    operator
        .perform(what_if(
            new,
            "",
            &[
                "2 of the latest 2 requests would be decided differently.",
                "were forwarded and would be refused",
                "Disallow: /private",
                &origin.url("/private/%3Cb%3E"),
            ],
        ))
        .await;
    let config = "egress.allow = [\"127.0.0.1\"]";
    operator
        .perform(what_if(
            "",
            config,
            &["None of the latest 2 requests would be decided differently."],
        ))
        .await;
    operator.perform(what_if("", "a = 1", &["the configuration:1"])).await;
    operator.perform(json!(["forgive", "status of 400"])).await;
    operator.perform(json!(["search", "shop", [site]])).await;
    operator
        .perform(json!(["origin", site, "the rules of its robots.txt decide"]))
        .await;
    operator.perform(json!(["edited", site, ROBOTS])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_reasons_without_a_rule_and_filters_by_them() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    let url = origin.url("/x");
    refused(&gate.get(&origin.url("/y")).without("User-Agent").await, "unidentified");
    refused(&gate.get(&url).user_agent("Mozilla/5.0").await, "unidentified");
    let why = "The request does not say which bot is asking";
    operator
        .perform(json!(["refusal", url, "deny, unidentified", why]))
        .await;
    // The search includes the values that the rows show, but not the names and other values in the record.
    for (text, count) in [
        ("robots_sha256", 0),
        ("rule", 0),
        ("unidentified", 2),
        (&url, 1),
        ("mozilla", 1),
    ] {
        operator.perform(json!(["filtered", text, count])).await;
    }
    operator.perform(json!(["filtered", "does not say", 2])).await;
    operator.perform(json!(["filtered", "\"(no bot)\"", 1])).await;
    operator.close().await;
}

#[tokio::test]
async fn refusals_are_filtered_by_field_and_saved() {
    needs!("python3", "chromium");
    let (origin, other, gate) = (origin().await, origin().await, Gate::start().await);
    for (site, agent) in [(&origin, "AcmeBot/1.0"), (&origin, "=Sum/1.0"), (&other, "AcmeBot/1.0")] {
        gate.get(&site.url("/private")).user_agent(agent).await;
    }
    refused(&gate.get(&origin.url("/y")).without("User-Agent").await, "unidentified");
    let mut operator = Operator::open(&gate).await;
    let site = origin.url("");
    for (filter, count) in [
        ("bot:AcmeBot".to_owned(), 2),
        ("bot:none".to_owned(), 2),
        (format!("bot:AcmeBot reason:rule site:{site} since:1h"), 1),
        (format!("-site:{site}"), 1),
        ("until:1h".to_owned(), 0),
        ("reason:unidentified reason:rule".to_owned(), 4),
    ] {
        operator.perform(json!(["filtered", filter, count])).await;
    }
    operator
        .perform(json!(["filter_fails", "host:a", "there is no field \"host\""]))
        .await;
    operator.perform(json!(["filtered", "agent:sum", 1])).await;
    let head = "time,id,verdict,reason,enforcement,forwarded,bot,user_agent";
    operator.perform(json!(["saved", "csv", head, ",'=Sum/1.0,"])).await;
    operator
        .perform(json!(["saved", "jsonl", "\"user_agent\":\"=Sum/1.0\""]))
        .await;
    operator.close().await;
}

#[tokio::test]
async fn the_history_says_what_was_refused_and_opens_it() {
    needs!("python3", "chromium");
    let site = Origin::start()
        .robots(ROBOTS)
        .anything("page")
        .reply("/broken", Reply::status(500))
        .spawn()
        .await;
    let gate = Gate::with("[[bot]]\nname = 'AcmeBot'\nuser-agents = ['AcmeBot']").await;
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["empty", "curl -x http://127.0.0.1:"])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["within", 1400, "configuration"])).await;
    for _ in 0..3 {
        refused(&gate.get(&site.url("/private")).user_agent("AcmeBot").await, "rule");
    }
    allowed(&gate.get(&site.url("/x")).await, "no-rule");
    gate.get(&site.url("/broken")).await;
    let name = site.url("");
    let why = ["Disallow: /private", "AcmeBot", &name];
    operator
        .perform(json!(["history", "1h", "bot", why[0], why[1], why[2]]))
        .await;
    for (by, texts) in [
        ("verdict", ["deny 3", "allow 2"]),
        ("reason", ["rule 3", "no-rule 2"]),
        ("answer", ["answered 1", "failed 1"]),
    ] {
        operator.perform(json!(["history", "1h", by, texts[0], texts[1]])).await;
    }
    operator
        .perform(json!(["history", "1h", "site", format!("{name} 5")]))
        .await;
    operator
        .perform(json!([
            "history",
            "yesterday",
            "verdict",
            "Nothing happened in this time",
            "curl -x"
        ]))
        .await;
    operator.perform(json!(["history", "1h", "verdict", "deny 3"])).await;
    // The chart is read with the keyboard, and its last minute opens the refusals of that time.
    operator.perform(json!(["read_chart", ["End"], "UTC: "])).await;
    operator
        .perform(json!(["read_chart", ["End", "Enter"], "filter=since"]))
        .await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["height", "now", 1000])).await;
    operator.perform(json!(["fits", 1400])).await;
    operator.close().await;
}

#[tokio::test]
async fn several_urls_are_decided_also_with_another_robots_txt() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    let urls = [origin.url("/private"), origin.url("/x"), "no URL".to_owned()];
    let why = "line 4: Disallow: /private";
    operator
        .perform(json!([
            "pasted",
            "TestBot",
            urls,
            "",
            "1 of 3 URLs allowed.",
            why,
            "this is not a whole URL"
        ]))
        .await;
    let robots = "User-agent: TestBot\nDisallow: /x\n";
    let fetched = origin.count("/robots.txt");
    operator
        .perform(json!([
            "pasted",
            "TestBot",
            urls[..2],
            robots,
            "1 of 2 URLs allowed.",
            "line 2: Disallow: /x"
        ]))
        .await;
    let unknown = "http://never.example/x";
    operator
        .perform(json!([
            "pasted",
            "TestBot",
            [unknown],
            robots,
            "0 of 1 URL allowed.",
            "line 2: Disallow: /x"
        ]))
        .await;
    operator.perform(json!(["marked", "Disallow: /x"])).await;
    assert_eq!(origin.count("/robots.txt"), fetched);
    operator.perform(json!(["within", 400, "explain"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_what_a_site_says_about_use() {
    needs!("python3", "chromium");
    let robots = "User-agent: *\nContent-Usage: /x train-ai=n\nLicense: https://a.example/rsl.xml\n";
    let origin = Origin::start().robots(robots).spawn().await;
    let bot = "[[bot]]\nname = 'Trainer'\nuser-agents = ['Trainer']\npurposes = ['ai-train']\n";
    let gate = Gate::with(&format!("[usage]\ncontent-usage = 'enforce'\n{bot}")).await;
    let mut operator = Operator::open(&gate).await;
    let (url, site) = (origin.url("/x"), origin.url(""));
    refused(&gate.get(&url).user_agent("Trainer").await, "usage");
    let why = "ai-train, line 2: content-usage train-ai=n";
    operator.perform(json!(["refusal", url, "deny, usage", why])).await;
    let sentence =
        "line 2 of the robots.txt says Content-Usage: train-ai=n, which forbids the purpose ai-train (enforce)";
    operator
        .perform(json!(["ask", "Trainer", url, "No: Trainer may not fetch this URL."]))
        .await;
    operator.perform(json!(["answered", "deny, usage", sentence])).await;
    let port = site.rsplit(':').next().expect("a port");
    operator.perform(json!(["search", port, [site]])).await;
    let lines = [
        "line 2: Content-Usage: /x train-ai=n for *",
        "line 3: License: https://a.example/rsl.xml",
    ];
    operator.perform(json!(["origin", site, lines[0], lines[1]])).await;
    operator.close().await;
}

/// Returns the id of the last decision, and checks its verdict and reason.
fn last_id(gate: &Gate, verdict: &str, reason: &str) -> String {
    let records = gate.audit();
    let last = records.iter().rfind(|record| record["event"] == "decision");
    let last = last.expect("a decision");
    assert_eq!((&last["verdict"], &last["reason"]), (&json!(verdict), &json!(reason)));
    last["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn denied_requests_that_were_forwarded_have_a_badge() {
    needs!("python3", "chromium");
    let (plain, tls) = (origin().await, Origin::start().robots(ROBOTS).tls().spawn().await);
    let bots = "[egress]\ndeny = ['closed.example']\n\
                [[bot]]\nname = 'Watched'\nuser-agents = ['Watched']\nenforcement = 'report'\n\
                [[bot]]\nname = 'Scanner'\nuser-agents = ['Scanner']\nenforcement = 'exempt'\n\
                [[https.tunnel]]\nhost = 'other.example'\nreason = 'pins its certificate'\nuntil = 2999-01-01\n";
    let gate = Gate::with(&format!("[https]\nmode = 'tunnel'\nunverifiable = 'allow'\n{bots}")).await;
    let mut operator = Operator::open(&gate).await;
    let (private, closed) = (plain.url("/private"), "http://closed.example/".to_owned());
    for (agent, url, reason, badge) in [
        ("TestBot", &private, "rule", ""),
        ("Watched", &private, "rule", "report: forwarded"),
        ("Watched", &closed, "egress", ""),
        ("Scanner", &closed, "egress", ""),
    ] {
        gate.get(url).user_agent(agent).await;
        operator
            .perform(json!(["badge", last_id(&gate, "deny", reason), badge]))
            .await;
    }
    let other = format!("other.example:{}", tls.port());
    for (agent, authority, badge) in [
        ("TestBot", &tls.authority(), "https.unverifiable: forwarded"),
        ("TestBot", &other, "https.tunnel: forwarded"),
        ("Watched", &tls.authority(), "report: forwarded"),
    ] {
        drop(gate.connect(authority).user_agent(agent).await.opened());
        let id = last_id(&gate, "unverifiable", "unverifiable");
        operator.perform(json!(["badge", id, badge])).await;
    }
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["fits", 1400])).await;

    gate.reconfigure(&format!("[https]\nmode = 'refuse'\n{bots}"));
    gate.reloaded(1).await;
    for agent in ["Watched", "Scanner"] {
        refused(
            &gate.connect(&tls.authority()).user_agent(agent).await.refused(),
            "connect-refused",
        );
        operator
            .perform(json!(["badge", last_id(&gate, "deny", "connect-refused"), ""]))
            .await;
    }
    operator.close().await;
}

#[tokio::test]
async fn the_page_explains_a_missing_proof_for_a_client_without_one() {
    needs!("python3", "chromium");
    let origin = origin().await;
    let hash = |name: &str| SecretHash::new([5; 16], name.as_bytes()).line(name) + "\n";
    let config = "[identity]\ncredentials = 'credentials'\n\
                  [[bot]]\nname = 'Acme'\nuser-agents = ['Acme']\nenforcement = 'report'\n\
                  [[bot]]\nname = 'Other'\nuser-agents = ['Other']\nenforcement = 'exempt'\n";
    let gate = Gate::builder()
        .config(config)
        .credentials(&(hash("Acme") + &hash("Other")));
    let gate = gate.start().await;
    let mut operator = Operator::open(&gate).await;
    let url = origin.url("/x");
    for agent in ["Acme/1.0", "Other/1.0"] {
        gate.get(&url).user_agent(agent).await;
        let id = last_id(&gate, "deny", "unauthenticated");
        operator.perform(json!(["badge", id, ""])).await;
        operator.perform(json!(["opened", id, "Why"])).await;
        operator
            .perform(json!([
                "asked_why",
                "No: This bot may not fetch this URL.",
                "deny, unauthenticated",
                "The client does not prove which bot it is"
            ]))
            .await;
    }
    // The API cannot answer questions about a proof of another bot or an invalid proof, so send requests.
    for (secret, agent, reason, sentence) in [
        ("Acme:Acme", "Other/1.0", "identity", "is for a different bot than"),
        (
            "Acme:wrong",
            "Free/1.0",
            "unauthenticated",
            "does not prove which bot it is",
        ),
    ] {
        let credential = format!("Basic {}", data_encoding::BASE64.encode(secret.as_bytes()));
        let ask = gate.get(&url).user_agent(agent);
        ask.header("Proxy-Authorization", &credential).await;
        let id = last_id(&gate, "deny", reason);
        operator.perform(json!(["badge", id, ""])).await;
        operator.perform(json!(["opened", id, sentence])).await;
    }
    operator.close().await;
}

#[tokio::test]
async fn the_page_says_that_a_list_is_cut_and_why_there_is_no_file() {
    needs!("python3", "chromium");
    let rules: String = (0..120).map(|at| format!("Disallow: /{at}\n")).collect();
    let many = Origin::start().robots(&format!("User-agent: *\n{rules}")).spawn().await;
    let few = origin().await;
    let busy = Origin::start().reply("/robots.txt", Reply::status(503)).spawn().await;
    let none = Origin::start().spawn().await;
    let gate = Gate::start().await;
    let mut operator = Operator::open(&gate).await;
    let (yes, no) = (
        "Yes: TestBot may fetch this URL.",
        "No: TestBot may not fetch this URL.",
    );
    for (origin, answer, texts) in [
        (&many, yes, "Rules that did not decide (the first 50 of 120)"),
        (&few, yes, "Rules that did not decide (2)"),
        (&busy, no, "There is no robots.txt to show: the server answered 503."),
        (&none, yes, "The site has no robots.txt."),
    ] {
        operator
            .perform(json!(["ask", "TestBot/1.0", origin.url("/x"), answer]))
            .await;
        operator.perform(json!(["answered", texts])).await;
    }
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_the_configuration_and_a_rejected_reload() {
    needs!("python3", "chromium");
    let gate = Gate::with("[robots]\nuser-agent = \"PageBot\"").await;
    let mut operator = Operator::open(&gate).await;
    operator
        .perform(json!([
            "configuration",
            "robotgate.toml",
            "robots.user-agent",
            "PageBot",
            "None since the start."
        ]))
        .await;

    gate.rewrite_config("[https]\nmode = \"sometimes\"\n");
    operator.perform(json!(["rejected", "robotgate.toml", "mode"])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["fits", 1400])).await;

    gate.reconfigure("[robots]\nuser-agent = \"OtherBot\"");
    gate.reloaded(1).await;
    operator.perform(json!(["not_rejected"])).await;
    operator
        .perform(json!([
            "configuration",
            "Took effect",
            "OtherBot",
            "robots.user-agent: "
        ]))
        .await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_asks_for_the_token_and_keeps_it_until_the_log_out() {
    needs!("python3", "chromium");
    let gate = Gate::builder()
        .config("[admin]\ntoken-file = \"admin-token\"")
        .put("admin-token", TOKEN)
        .start()
        .await;
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["log_in", "a-wrong-one-a-wrong-one"])).await;
    operator.perform(json!(["not_logged_in"])).await;
    operator.perform(json!(["log_in", TOKEN])).await;
    operator.perform(json!(["ready"])).await;
    operator.perform(json!(["configuration", "admin.token-file"])).await;
    // The browser's tab still has the token.
    operator.perform(json!(["open", 400])).await;
    operator.perform(json!(["ready"])).await;
    operator.perform(json!(["log_out"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_reports_a_lost_connection_and_reconnects() {
    needs!("python3", "chromium");
    let mut gate = Gate::start().await;
    let admin = gate.admin_address();
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["ready"])).await;
    gate.stop().await;
    operator.perform(json!(["gone"])).await;

    // Use the same port, which the system chose the first time.
    gate.reconfigure(&format!("[admin]\nlisten = \"{admin}\""));
    wait::within("the gate to start again", gate.start_again()).await;
    operator.perform(json!(["ready"])).await;
    // Ignores the browser's reports about requests that have failed in the meantime.
    operator.perform(json!(["forgive", "net::ERR_"])).await;
    operator.close().await;
}
