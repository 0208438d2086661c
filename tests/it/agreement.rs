//! All ways to ask the same question give the same answer: the proxy's decision, `/api/v1/decide`, `/api/v1/explain`
//! (both of its objects), `robotgate explain` and `[[expect]]`.
//!
//! Two differences are intended. The API and the commands assume the proof that the bot needs, unless the question says
//! otherwise. And a command fetches the robots.txt itself, because it has no copies.

use robotgate::bot::SecretHash;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toml::Table;

use crate::{
    admin::{escaped, get, post, problem},
    support::{Alpn, Ask, CliOutput, Connected, Gate, NAME, Origin, Reply},
};

/// The client, the URL, and the answer of each of the [`GATES`] except the last. If there is only one answer, all gates
/// give it.
///
/// The URL is a whole URL, or a way, a site and a path. The ways `http` and `https` go to [`NAME`]; `pinned` is https
/// to a host of `[[https.tunnel]]`. In an answer, `+` means allowed, `-` refused, and `~` forwarded although not
/// allowed.
#[rustfmt::skip]
const ROWS: &[(&str, &str, &[&str])] = &[
    // Each state of a copy, with a path that is visible or not.
    ("bot", "http mixed /open",        &["+no-rule"]),
    ("bot", "http mixed /private",     &["-rule"]),
    ("bot", "http mixed /robots.txt",  &["+robots-file"]),
    ("bot", "http open /x",            &["+rule"]),
    ("bot", "http shut /x",            &["-rule"]),
    ("bot", "http none /x",            &["+no-robots"]),
    ("bot", "http down /x",            &["-unreachable"]),
    ("bot", "http down /robots.txt",   &["+robots-file"]),
    ("bot", "https mixed /open",       &["+no-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https mixed /private",    &["-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https mixed /robots.txt", &["+robots-file", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https open /x",           &["+rule", "+rule", "+rule", "-connect-refused"]),
    ("bot", "https shut /x",           &["-rule", "-rule", "-rule", "-connect-refused"]),
    ("bot", "https none /x",           &["+no-robots", "+no-robots", "+no-robots", "-connect-refused"]),
    ("bot", "https down /x",           &["-unreachable", "-unreachable", "-unreachable", "-connect-refused"]),
    // An entry in `[[https.tunnel]]` makes a tunnel of an https URL in every mode, and has no effect on http.
    ("bot", "pinned mixed /open",      &["~unverifiable"]),
    ("bot", "pinned mixed /private",   &["~unverifiable"]),
    ("bot", "pinned open /x",          &["+rule"]),
    ("bot", "pinned shut /x",          &["-rule"]),
    ("bot", "pinned none /x",          &["+no-robots"]),
    ("bot", "pinned down /x",          &["-unreachable"]),
    ("bot", "http://other.example:{http}/private", &["-rule"]),
    // Other identities.
    ("token", "http mixed /private",     &["-rule"]),
    ("token", "https mixed /private",    &["-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("token", "pinned mixed /private",   &["~unverifiable"]),
    ("browser", "http mixed /open",      &["-unidentified", "-unidentified", "+no-rule", "+no-rule"]),
    ("browser", "http mixed /private",   &["-unidentified", "-unidentified", "-rule", "-rule"]),
    ("browser", "http mixed /robots.txt", &["+robots-file"]),
    ("browser", "https mixed /open",     &["-unidentified", "-unidentified", "~unverifiable", "-connect-refused"]),
    ("browser", "https open /x",         &["-unidentified", "-unidentified", "+rule", "-connect-refused"]),
    ("browser", "pinned mixed /open",    &["~unverifiable"]),
    ("browser", "pinned shut /x",        &["-rule"]),
    ("nobody", "http open /x",           &["-unidentified", "-unidentified", "+rule", "+rule"]),
    ("nobody", "pinned open /x",         &["+rule"]),
    ("proven", "http mixed /private",    &["-rule"]),
    ("proven", "https mixed /open",      &["+no-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("proven", "pinned mixed /open",     &["~unverifiable"]),
    ("proven report", "http mixed /private",   &["~rule"]),
    ("unproven", "http open /x",         &["-unauthenticated"]),
    ("unproven", "http open /robots.txt", &["-unauthenticated"]),
    ("unproven", "https open /x",        &["-unauthenticated"]),
    ("unproven", "pinned open /x",       &["-unauthenticated"]),
    ("unproven", "http://closed.example/", &["-unauthenticated"]),
    // `report` forwards only what the site disallows; an exempt bot is refused only by egress rules.
    ("report", "http mixed /open",       &["+no-rule"]),
    ("report", "http mixed /private",    &["~rule"]),
    ("report", "http down /x",           &["~unreachable"]),
    ("report", "https mixed /private",   &["~rule", "~unverifiable", "~unverifiable", "-connect-refused"]),
    ("report", "https shut /x",          &["~rule", "~rule", "~rule", "-connect-refused"]),
    ("report", "pinned shut /x",         &["~rule"]),
    ("report", "http://closed.example/", &["-egress"]),
    ("report", "http://inside.example/", &["-egress"]),
    ("report", "http://{admin}/",        &["-egress"]),
    ("unproven report", "http shut /x",  &["-unauthenticated"]),
    ("unproven report", "https shut /x", &["-unauthenticated"]),
    ("exempt", "http mixed /private",    &["+exempt"]),
    ("exempt", "http down /x",           &["+exempt"]),
    ("exempt", "https mixed /private",   &["+exempt", "+exempt", "+exempt", "-connect-refused"]),
    ("exempt", "pinned shut /x",         &["+exempt"]),
    ("exempt", "https://closed.example/", &["-egress"]),
    ("exempt", "http://{proxy}/",        &["-egress"]),
    // A bot with `exempt-hosts` is exempt only at those hosts.
    ("permitted", "http://other.example:{http}/private", &["+exempt"]),
    ("permitted", "http mixed /private", &["-rule"]),
    ("permitted", "pinned shut /x",      &["+exempt"]),
    ("permitted", "https mixed /private", &["-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    // Sites that forbid training, everywhere or for some paths.
    ("bot", "http train /x",             &["+no-rule"]),
    ("trainer", "http train /x",         &["-usage"]),
    ("trainer", "http part /art",        &["-usage"]),
    ("trainer", "http part /x",          &["+no-rule"]),
    ("trainer", "http none /x",          &["+no-robots"]),
    ("trainer", "http shut /x",          &["-rule"]),
    ("trainer", "https train /x",        &["-usage", "-usage", "-usage", "-connect-refused"]),
    ("trainer", "https part /art",       &["-usage", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("trainer", "https part /x",         &["+no-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("trainer", "pinned train /x",       &["-usage"]),
    ("trainer", "pinned part /art",      &["~unverifiable"]),
    ("report trainer", "http train /x",  &["~usage"]),
    ("report trainer", "https train /x", &["~usage", "~usage", "~usage", "-connect-refused"]),
    // Destinations that bots may not reach.
    ("bot", "http://closed.example/x",   &["-egress"]),
    ("bot", "https://closed.example/x",  &["-egress"]),
    ("bot", "https://shop.example:25/x", &["-egress"]),
    ("bot", "http://10.0.0.1/x",         &["-egress"]),
    ("bot", "http://inside.example/x",   &["-egress"]),
    ("bot", "https://inside.example/x",  &["-egress", "-egress", "-egress", "-connect-refused"]),
    ("bot", "http://{proxy}/",           &["-egress"]),
    ("bot", "https://{proxy}/",          &["-egress"]),
    ("bot", "http://{admin}/robots.txt", &["-egress"]),
    ("bot", "https://{admin}/",          &["-egress"]),
    // The name of the internal site, for which nothing is decided.
    ("bot", "http://robotgate.internal/", &["own"]),
    ("bot", "https://robotgate.internal/", &["own"]),
    ("unproven", "http://robotgate.internal/", &["own"]),
];

/// A configuration, and whether the proxy or the API is asked first, while there is no copy yet.
struct GateOf {
    mode: &'static str,
    identity: &'static str,
    https: &'static str,
    first: First,
}

#[derive(Clone, Copy, PartialEq)]
enum First {
    Proxy,
    Api,
}

const GATES: [GateOf; 5] = [
    GateOf {
        mode: "intercept",
        identity: "",
        https: "",
        first: First::Api,
    },
    GateOf {
        mode: "tunnel",
        identity: "",
        https: "",
        first: First::Proxy,
    },
    GateOf {
        mode: "tunnel",
        identity: "unidentified = 'wildcard'",
        https: "unverifiable = 'allow'",
        first: First::Api,
    },
    GateOf {
        mode: "refuse",
        identity: "unidentified = 'wildcard'",
        https: "",
        first: First::Proxy,
    },
    // The first gate's configuration, but with proof required.
    GateOf {
        mode: "intercept",
        identity: "required = true",
        https: "",
        first: First::Proxy,
    },
];

/// The name, User-Agent and credential (if any) of each client.
const WHO: &[(&str, &str, Option<&str>)] = &[
    ("bot", "Shopper/1.0", None),
    ("token", "curl/8.5.0", None),
    (
        "browser",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        None,
    ),
    ("nobody", "", None),
    ("report", "Reporter/1.0", None),
    ("exempt", "Scanner/1.0", None),
    ("permitted", "Partner/1.0", None),
    ("trainer", "Trainer/1.0", None),
    ("report trainer", "Learner/1.0", None),
    ("proven", "AcmeBot/1.0", Some("acme:a-Secret-of-acme")),
    ("unproven", "AcmeBot/1.0", None),
    ("proven report", "Auditor/1.0", Some("auditor:a-Secret-of-auditor")),
    ("unproven report", "Auditor/1.0", None),
];

const BOTS: &str = r#"
[[bot]]
name = "shopper"
user-agents = ["Shopper"]
credentials = []

[[bot]]
name = "reporter"
user-agents = ["Reporter"]
credentials = []
enforcement = "report"

[[bot]]
name = "scanner"
user-agents = ["Scanner"]
credentials = []
enforcement = "exempt"

[[bot]]
name = "partner"
user-agents = ["Partner"]
credentials = []
exempt-hosts = ["other.example"]

[[bot]]
name = "trainer"
user-agents = ["Trainer"]
credentials = []
purposes = ["ai-train"]

[[bot]]
name = "learner"
user-agents = ["Learner"]
credentials = []
purposes = ["ai-train"]
enforcement = "report"

[[bot]]
name = "acme"
user-agents = ["AcmeBot"]

[[bot]]
name = "auditor"
user-agents = ["Auditor"]
enforcement = "report"

[[https.tunnel]]
host = "other.example"
reason = "pins its certificate"
until = 2999-01-01

[egress]
deny = ["closed.example"]

[usage]
content-signal = "enforce"
content-usage = "enforce"
"#;

#[tokio::test]
async fn all_interfaces_agree_on_intercepted_requests() {
    ask_all(0).await;
}

#[tokio::test]
async fn all_interfaces_agree_on_tunnels() {
    ask_all(1).await;
}

#[tokio::test]
async fn all_interfaces_agree_on_unverifiable_tunnels() {
    ask_all(2).await;
}

#[tokio::test]
async fn all_interfaces_agree_if_every_connect_is_refused() {
    ask_all(3).await;
}

#[tokio::test]
async fn all_interfaces_agree_if_a_proof_is_required() {
    ask_all(4).await;
}

#[tokio::test]
async fn all_interfaces_agree_on_a_purpose_that_no_bot_has() {
    const PATH: &str = "/.well-known/tdmrep.json";
    let file = r#"[{"location": "/mine", "tdm-reservation": 1}]"#;
    let site = Origin::start().reply(PATH, Reply::ok("application/json", file));
    let site = site.spawn().await;
    let gate = Gate::with("[usage]\ntdmrep = 'enforce'").await;
    let config = gate.file("robotgate.toml");
    for (path, expected) in [
        ("/mine", json!(["deny", "usage", false])),
        ("/x", json!(["allow", "no-robots", true])),
    ] {
        let url = site.url(path);
        let query = format!("agent=TestBot&url={}&purpose=tdm", escaped(&url));
        let decided = get(&gate, &format!("/api/v1/decide?{query}")).await;
        let explained = get(&gate, &format!("/api/v1/explain?{query}")).await;
        let requests = json!({"requests": [{"agent": "TestBot", "url": url, "purpose": "tdm"}]});
        let many = post(&gate, "/api/v1/decide", &requests).await;
        let args = ["explain", "--json", "--agent", "TestBot", "--purpose", "tdm", &url];
        let args = [&args[..], &["--config", config.to_str().unwrap()]].concat();
        let command = CliOutput::of(&args, "").await.json();
        for (whom, answer) in [
            ("decide", &decided),
            ("explain's decision", &explained["decision"]),
            ("explain's report", &explained["report"]),
            ("decide on several", &many["decisions"][0]),
            ("the command", &command),
        ] {
            assert_eq!(outcome(answer), expected, "{whom} on {path}: {answer:#}");
        }
    }
    assert_eq!(site.count(PATH), 3, "the API asks once, and the command each time");
}

/// For each scheme, an origin for each state of a copy.
struct Sites {
    http: Vec<Origin>,
    https: Vec<Origin>,
}

/// A row of the table, for one gate.
#[derive(Clone)]
struct Row {
    agent: &'static str,
    credential: Option<&'static str>,
    url: String,
    /// The text of the robots.txt, if the question can be asked with a given text.
    robots: Option<&'static str>,
    expected: &'static str,
}

/// Name and robots.txt of each site. `none` and `down` have no robots.txt.
const SITES: [(&str, Option<&str>); 7] = [
    ("open", Some("User-agent: *\nAllow: /\n")),
    ("shut", Some("User-agent: *\nDisallow: /\n")),
    ("mixed", Some("User-agent: *\nDisallow: /private\n")),
    ("train", Some("User-agent: *\nContent-Signal: ai-train=no\n")),
    ("part", Some("User-agent: *\nContent-Usage: /art train-ai=n\n")),
    ("none", None),
    ("down", None),
];

async fn ask_all(number: usize) {
    let gate_of = &GATES[number];
    let sites = Sites::spawn().await;
    let gate = start(gate_of).await;
    gate.dns().point("inside.example", [10, 0, 0, 1]);
    let rows: Vec<Row> = ROWS.iter().map(|row| Row::new(row, number, &sites, &gate)).collect();
    let mut wrong = Vec::new();
    let mut compare = |whom: &str, row: &Row, answer: &Value, expected: &Value| {
        if answer != expected {
            wrong.push(format!(
                "{} {}: {whom} says {answer}, and not {expected}",
                row.agent, row.url
            ));
        }
    };

    let decided_first = match gate_of.first {
        First::Api => Some(decide(&gate, &rows).await),
        First::Proxy => None,
    };
    let mut by_proxy = Vec::new();
    for row in &rows {
        by_proxy.push(ask_proxy(&gate, gate_of.mode, row).await);
    }
    let decided = match decided_first {
        Some(decided) => decided,
        None => decide(&gate, &rows).await,
    };
    let config = command_config(&gate, &rows);
    let commands = explain_all(&config, &rows).await;
    let check = CliOutput::of(&["check", &config], "").await;

    for (at, row) in rows.iter().enumerate() {
        let expected = row.outcome();
        let Some(proxy) = &by_proxy[at] else {
            // The proxy responded to the request itself.
            compare("the proxy", row, &Value::Null, &expected);
            continue;
        };
        compare("the proxy", row, &outcome(proxy), &expected);
        let explain = format!("/api/v1/explain?{}", row.query());
        let explained = get(&gate, &explain).await;
        for (whom, answer) in [("decide", &decided[at]), ("explain's decision", &explained["decision"])] {
            compare(whom, row, &decision_of(answer), &decision_of(proxy));
            compare(whom, row, &by_rule(answer), &by_rule(proxy));
        }
        // Reports contain rules only if a rule decided on a path.
        for (whom, answer) in [
            ("explain's report", &explained["report"]),
            ("the command", &commands[at].json()),
        ] {
            compare(whom, row, &decision_of(answer), &decision_of(proxy));
        }
        if let Some(expectation_error) = row.expectation_error() {
            let warns = check.errors.contains(&expectation_error);
            compare("check", row, &json!(warns), &json!(true));
        }
    }
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.expected == "own") {
        let expected = "robotgate.internal is the proxy itself";
        let explained = problem(&gate, &format!("/api/v1/explain?{}", row.query()), 400).await;
        let decided = decided[at]["error"].as_str().unwrap_or_default();
        let checked = check.errors.lines().find(|line| line.contains(&row.url));
        for (whom, answer) in [
            ("decide", decided),
            ("explain", &explained),
            ("the command", &commands[at].errors),
            ("check", checked.unwrap_or_default()),
        ] {
            compare(whom, row, &json!(answer.contains(expected)), &json!(true));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), check.errors);
}

/// Returns verdict, reason and whether the request is forwarded.
fn outcome(answer: &Value) -> Value {
    json!([answer["verdict"], answer["reason"], answer["forwarded"]])
}

/// Returns the outcome, the enforcement and the bot.
fn decision_of(answer: &Value) -> Value {
    json!([outcome(answer), answer["enforcement"], answer["bot"]])
}

fn by_rule(answer: &Value) -> Value {
    json!([answer["rule"], answer["line"], answer["group"]])
}

async fn start(of: &GateOf) -> Gate {
    let GateOf {
        mode, identity, https, ..
    } = of;
    let config =
        format!("[identity]\ncredentials = 'credentials'\n{identity}\n[https]\nmode = '{mode}'\n{https}\n{BOTS}");
    let lines = WHO.iter().filter_map(|(_, _, credential)| credential.as_ref());
    let lines: String = lines
        .map(|credential| {
            let (name, secret) = credential.split_once(':').expect("a name and a secret");
            SecretHash::new([7; 16], secret.as_bytes()).line(name) + "\n"
        })
        .collect();
    Gate::builder().config(&config).credentials(&lines).start().await
}

/// Returns a configuration for the commands: the gate's own with its real ports, and an `[[expect]]` with a wrong
/// verdict for each row, so that `robotgate check` reports the right one.
fn command_config(gate: &Gate, rows: &[Row]) -> String {
    let text = std::fs::read_to_string(gate.file("robotgate.toml")).unwrap();
    let mut config: Table = text.parse().unwrap();
    for (section, address) in [("proxy", gate.address()), ("admin", gate.admin_address())] {
        config[section]
            .as_table_mut()
            .unwrap()
            .insert("listen".into(), address.to_string().into());
    }
    let mut expectations = toml::value::Array::new();
    for row in rows
        .iter()
        .filter(|row| row.expected == "own" || row.expectation_error().is_some())
    {
        let verdict = if row.expected.starts_with('+') { "deny" } else { "allow" };
        let robots = row.robots.unwrap_or_default();
        let mut case = Table::new();
        for (key, value) in [
            ("agent", row.agent),
            ("url", &row.url),
            ("robots", robots),
            ("verdict", verdict),
        ] {
            case.insert(key.into(), value.into());
        }
        expectations.push(case.into());
    }
    config.insert("expect".into(), expectations.into());
    let file = gate.file("commands.toml");
    std::fs::write(&file, config.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Sends a request through the proxy and returns the decision from the log. Returns `None` if the proxy itself responds
/// to it.
async fn ask_proxy(gate: &Gate, mode: &str, row: &Row) -> Option<Value> {
    let seen = gate.audit().len();
    let (scheme, rest) = row.url.split_once("://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    if scheme == "http" {
        row.dress(gate.get(&row.url), true).await;
    } else {
        let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
        let connect = gate.connect(&format!("{host}:{port}"));
        let connected = connect.with_ask(|ask| row.dress(ask, true)).await;
        if let Connected::Tunnel(tunnel) = connected
            && mode == "intercept"
            && host != "other.example"
        {
            let mut inside = tunnel.tls(host, Alpn::Http1).await;
            row.dress(inside.get(path), false).await;
        }
    }
    // The decision is in the log before the response arrives. For a CONNECT and the requests in it, use the last
    // decision.
    let mut records = gate.audit().into_iter().skip(seen);
    records.rfind(|record| record["event"] == "decision")
}

/// Returns the decisions of the API, which is asked about all rows in one request.
async fn decide(gate: &Gate, rows: &[Row]) -> Vec<Value> {
    let requests: Vec<Value> = rows
        .iter()
        .map(|row| json!({"agent": row.agent, "url": row.url, "proof": row.proof()}))
        .collect();
    let answer = post(gate, "/api/v1/decide", &json!({ "requests": requests })).await;
    answer["decisions"].as_array().unwrap().clone()
}

/// Runs `robotgate explain` for each row, a few at a time.
async fn explain_all(config: &str, rows: &[Row]) -> Vec<CliOutput> {
    let mut outputs = Vec::new();
    for rows in rows.chunks(4) {
        let mut running = JoinSet::new();
        for (at, row) in rows.iter().cloned().enumerate() {
            let config = config.to_owned();
            running.spawn(async move {
                let mut args = vec!["explain", "--config", &config, "--json", "--agent", row.agent, &row.url];
                args.extend(row.credential.is_none().then_some("--unproven"));
                (at, CliOutput::of(&args, "").await)
            });
        }
        let mut done = running.join_all().await;
        done.sort_by_key(|(at, _)| *at);
        outputs.extend(done.into_iter().map(|(_, output)| output));
    }
    outputs
}

// === impl Sites ===

impl Sites {
    async fn spawn() -> Self {
        let mut sites = Self {
            http: Vec::new(),
            https: Vec::new(),
        };
        for (name, robots) in SITES {
            for is_tls in [false, true] {
                let origin = match (robots, name) {
                    (Some(robots), _) => Origin::start().anything("page").robots(robots),
                    (None, "down") => Origin::start().reply("/robots.txt", Reply::status(503)),
                    (None, _) => Origin::start().anything("page"),
                };
                match is_tls {
                    true => sites.https.push(origin.tls().spawn().await),
                    false => sites.http.push(origin.spawn().await),
                }
            }
        }
        sites
    }
}

// === impl Row ===

impl Row {
    fn new(row: &(&str, &str, &[&'static str]), gate_number: usize, sites: &Sites, gate: &Gate) -> Self {
        let (name, what, expected) = *row;
        let (_, agent, credential) = *WHO.iter().find(|(who, ..)| *who == name).unwrap();
        let site = |name: &str| SITES.iter().position(|(site, _)| *site == name).unwrap();
        let words: Vec<&str> = what.split(' ').collect();
        let (url, robots) = match words[..] {
            [way, name, path] => {
                let at = site(name);
                let url = match way {
                    "http" => sites.http[at].url_at(NAME, path),
                    "https" => sites.https[at].url_at(NAME, path),
                    _ => sites.https[at].url_at("other.example", path),
                };
                (url, SITES[at].1)
            }
            _ => {
                let mixed = site("mixed");
                let url = what
                    .replace("{http}", &sites.http[mixed].port().to_string())
                    .replace("{proxy}", &gate.address().to_string())
                    .replace("{admin}", &gate.admin_address().to_string());
                // The decision for the address is unknown until the name is resolved.
                (url, SITES[mixed].1.filter(|_| !what.contains("inside.example")))
            }
        };
        let in_first = |expected: &[&'static str]| *expected.get(gate_number % 4).unwrap_or(&expected[0]);
        let expected = match in_first(expected) {
            "own" => "own",
            _ if gate_number == 4 && credential.is_none() => "-unauthenticated",
            expected => expected,
        };
        Self {
            agent,
            credential,
            url,
            robots,
            expected,
        }
    }

    /// Adds this client's User-Agent. Adds its credential too if the request is for the proxy.
    fn dress<'a>(&self, ask: Ask<'a>, to_proxy: bool) -> Ask<'a> {
        let ask = ask.without("User-Agent");
        let ask = match self.agent {
            "" => ask,
            agent => ask.user_agent(agent),
        };
        match self.credential.filter(|_| to_proxy) {
            Some(credential) => {
                let encoded = data_encoding::BASE64.encode(credential.as_bytes());
                ask.header("Proxy-Authorization", &format!("Basic {encoded}"))
            }
            None => ask,
        }
    }

    fn proof(&self) -> &'static str {
        match self.credential {
            Some(_) => "assumed",
            None => "none",
        }
    }

    fn query(&self) -> String {
        let (agent, url) = (escaped(self.agent), escaped(&self.url));
        format!("agent={agent}&url={url}&proof={}", self.proof())
    }

    fn verdict(&self) -> &'static str {
        match self.expected {
            "-unverifiable" | "~unverifiable" => "unverifiable",
            expected if expected.starts_with('+') => "allow",
            _ => "deny",
        }
    }

    /// Returns the expected outcome in the proxy's record; null if there is none.
    fn outcome(&self) -> Value {
        match self.expected {
            "own" => Value::Null,
            expected => json!([self.verdict(), expected[1..], !expected.starts_with('-')]),
        }
    }

    /// Returns the expected message of `robotgate check`, if an `[[expect]]` can express this client and robots.txt.
    fn expectation_error(&self) -> Option<String> {
        let (verdict, reason) = (self.verdict(), self.expected.get(1..)?);
        let can_be_said = self.robots.is_some() && !matches!(self.expected, "own" | "-unauthenticated");
        let expectation_error = format!(
            "for {} as \"{}\", but the verdict is \"{verdict}\" (reason: {reason}",
            self.url, self.agent
        );
        can_be_said.then_some(expectation_error)
    }
}
