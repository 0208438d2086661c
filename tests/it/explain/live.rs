//! What the command says about a fetch: its redirects, its result, and how long the result applies.

use super::{explain, text};
use crate::support::{CliOutput, Gate, Latch, Origin, ROBOTS, Reply};

/// Explains `/private`, without the advice at the end of the output.
async fn fetched(gate: &Gate, origin: &Origin, more: &[&str]) -> CliOutput {
    let (config, url) = (gate.file("robotgate.toml"), origin.url("/private"));
    let args = ["--config", text(&config), "--agent", "ExampleBot", &url];
    let mut output = explain(&[&args, more].concat()).await;
    let named = format!("{} --config {}", origin.url(""), text(&config));
    let note = match output.out.contains("could not be fetched") || output.out.contains("does not let bots go there") {
        true => format!(
            "\nThe running proxy may still use a copy of an earlier robots.txt. To see it:\n  robotgate cache show {named}\n"
        ),
        false => format!(
            "\nThe running proxy may still use an older copy or a remembered failure. To see it, or to have the \
             robots.txt fetched again:\n  robotgate cache show {named}\n  robotgate cache forget {named}\n"
        ),
    };
    let without_note = output.out.strip_suffix(&note).map(str::to_owned);
    assert_eq!(without_note.is_none(), more.contains(&"--json"), "{}", output.out);
    output.out = without_note.unwrap_or(output.out);
    output
}

#[tokio::test]
async fn redirects_are_shown_hop_by_hop() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::status(301).header("Location", "/a?b=c"))
        .otherwise(|_| Reply::redirect("/end"))
        .reply("/end", Reply::ok("text/plain", "User-agent: *\nDisallow: /private\n"))
        .spawn()
        .await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await;
    let expected = "\
REFUSED  http://shop.example:PORT/private
line 2: Disallow: /private
for ExampleBot
A rule of the site's robots.txt disallows this URL.

  1 | User-agent: *
> 2 | Disallow: /private

Considered 1 rule in the group of * (line 1), as no group names ExampleBot.

Fetched:
  301  http://shop.example:PORT/robots.txt
  302  http://shop.example:PORT/a?b=c
  200  http://shop.example:PORT/end
  33 bytes in TIME s
  valid for 24 h
";
    assert_eq!(output.masked(&origin), expected);
    assert_eq!(output.code, Some(1));

    let json = fetched(&gate, &origin, &["--json"]).await.json();
    let robots = &json["robots"];
    assert_eq!(robots["status"], 200);
    assert_eq!(robots["bytes"], 33);
    assert_eq!(robots["redirects"][0]["status"], 301);
    assert_eq!(robots["redirects"][1]["to"], origin.url("/end"));
    assert_eq!(robots["redirects"].as_array().map(Vec::len), Some(2));
    assert!(robots["fetched"].as_str() < robots["expires"].as_str());
    assert_eq!(json["group"]["specific"], false);
}

#[tokio::test]
async fn for_text_and_data_mining_the_tdmrep_json_is_fetched_too() {
    let file = r#"[{"location": "/mine", "tdm-reservation": 1}]"#;
    let origin = Origin::start().robots(ROBOTS);
    let origin = origin
        .reply("/.well-known/tdmrep.json", Reply::ok("application/json", file))
        .spawn()
        .await;
    let gate = Gate::with("[usage]\ntdmrep = 'enforce'").await;
    let (config, url) = (gate.file("robotgate.toml"), origin.url("/mine"));
    let args = [
        "--config",
        text(&config),
        "--agent",
        "ExampleBot",
        "--purpose",
        "tdm",
        &url,
    ];
    let output = explain(&args).await;
    let expected = "\
REFUSED  http://shop.example:PORT/mine
entry 1 of /.well-known/tdmrep.json says tdm-reservation=1, which forbids the purpose tdm
for ExampleBot
The site does not allow what this bot uses content for ([[bot]] purposes, [usage]).

  1 | User-agent: *

Considered 1 rule in the group of * (line 1), as no group names ExampleBot.

What the site says about the use:
  tdm  entry 1 of tdmrep.json: tdm-reservation=1  forbidden, enforced

Fetched:
  200  http://shop.example:PORT/robots.txt
  33 bytes in TIME s
  valid for 24 h
  200  http://shop.example:PORT/.well-known/tdmrep.json
  45 bytes in TIME s
  valid for 24 h
";
    let shown = output.masked(&origin);
    assert!(shown.starts_with(expected), "{shown}");
    assert_eq!(output.code, Some(1));
    let json = explain(&[&args[..], &["--json"]].concat()).await.json();
    assert_eq!(json["usage"]["refused"]["entry"], 1, "{json:#}");
    assert_eq!(json["tdmrep_asked"], true);

    origin.change("/.well-known/tdmrep.json", Reply::status(500));
    let shown = explain(&args).await.masked(&origin);
    assert!(shown.starts_with("ALLOWED"), "{shown}");
    assert!(
        shown.contains("  500  http://shop.example:PORT/.well-known/tdmrep.json\n"),
        "{shown}"
    );
    let disallowed = origin.url("/private");
    let before = origin.count("/.well-known/tdmrep.json");
    explain(&[&args[..6], &[&*disallowed]].concat()).await;
    assert_eq!(
        origin.count("/.well-known/tdmrep.json"),
        before,
        "robots.txt decides without it"
    );
}

#[tokio::test]
async fn a_missing_robots_txt_is_shown_with_its_status() {
    let origin = Origin::start().spawn().await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await;
    let expected = "\
ALLOWED  http://shop.example:PORT/private
for ExampleBot
The site has no robots.txt, so everything is allowed.

Fetched:
  404  http://shop.example:PORT/robots.txt
  answered in TIME s
  valid for 1 h
";
    assert_eq!(output.masked(&origin), expected);
    assert_eq!(output.code, Some(0));
    let robots = &fetched(&gate, &origin, &["--json"]).await.json()["robots"];
    assert_eq!(robots["status"], 404);
    assert!(robots["bytes"].is_null() && robots["cut"].is_null(), "{robots:#}");
}

#[tokio::test]
async fn explain_says_that_a_file_exceeds_the_limit() {
    let robots = format!("User-agent: *\n{}Disallow: /\n", "# filling\n".repeat(52_000));
    let origin = Origin::start().robots(&robots).spawn().await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await;
    let sentence = "  the file is longer, but robotgate uses only its first 500 KiB\n";
    assert!(output.out.contains(sentence), "{}", output.out);
    let json = fetched(&gate, &origin, &["--json"]).await.json();
    assert_eq!(json["robots"]["cut"], true);
}

#[tokio::test]
async fn explain_says_that_the_file_is_a_web_page() {
    let page = Reply::ok("text/html", "<html>\n<body>Welcome\n");
    let origin = Origin::start().reply("/robots.txt", page).spawn().await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await;
    let sentence = "What the site sent is a web page, not a robots.txt: it has no rules for this bot.\n";
    assert!(output.out.contains(sentence), "{}", output.out);
    let json = fetched(&gate, &origin, &["--json"]).await.json();
    assert_eq!(json["robots"]["looks_like"], "web-page");
    assert_eq!(json["robots"]["cut"], false);
}

#[tokio::test]
async fn a_failure_is_shown_with_its_cause_and_the_next_try() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::status(503).header("Retry-After", "90"))
        .spawn()
        .await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await;
    let expected = "\
REFUSED  http://shop.example:PORT/private
for ExampleBot
The site's robots.txt could not be fetched, so everything there is disallowed until a later fetch succeeds.

Fetched:
  503  http://shop.example:PORT/robots.txt
  answered in TIME s
  would be tried again after 1 min 30 s
";
    assert_eq!(output.masked(&origin), expected);
    let json = fetched(&gate, &origin, &["--json"]).await.json();
    assert_eq!(json["robots"]["error"], "the server answered 503");
    assert_eq!(json["reason"], "unreachable");
}

#[tokio::test]
async fn the_profile_option_decides_what_a_server_error_means() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::status(500).body("<h1>Page not found</h1>"))
        .spawn()
        .await;
    for (config, profile, reason) in [
        ("profile = 'google'", "rfc9309", "unreachable"),
        ("profile = 'rfc9309'", "google", "soft-404"),
        ("profile = 'rfc9309'\nsoft-404 = true", "rfc9309", "soft-404"),
        ("profile = 'google'\nsoft-404 = false", "google", "unreachable"),
        ("profile = 'rfc9309'\nsoft-404 = false", "google", "unreachable"),
    ] {
        let gate = Gate::with(&format!("[robots]\n{config}")).await;
        let json = fetched(&gate, &origin, &["--json", "--profile", profile]).await.json();
        assert_eq!(json["reason"], reason, "{config}, --profile {profile}");
    }
}

#[tokio::test]
async fn a_redirect_loop_is_shown() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::redirect("/again"))
        .reply("/again", Reply::redirect("/robots.txt"))
        .spawn()
        .await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await.masked(&origin);
    let sentence = "  redirects in a circle, which is treated like a 404; that took TIME s\n";
    assert!(output.contains(sentence), "{output}");
    let sentence =
        "The site's robots.txt redirects in a circle, which is treated as no robots.txt: everything is allowed.\n";
    assert!(output.contains(sentence), "{output}");
    assert_eq!(output.matches("\n  302  ").count(), 6, "{output}");
    assert!(output.starts_with("ALLOWED"), "{output}");
    let json = fetched(&gate, &origin, &["--json"]).await.json();
    assert_eq!(json["robots"]["error"], "redirects in a circle");
}

#[tokio::test]
async fn too_many_redirects_are_shown() {
    let mut origin = Origin::start().reply("/robots.txt", Reply::redirect("/0"));
    for step in 0..7 {
        origin = origin.reply(&format!("/{step}"), Reply::redirect(&format!("/{}", step + 1)));
    }
    let origin = origin.spawn().await;
    let gate = Gate::start().await;
    let output = fetched(&gate, &origin, &[]).await;
    let sentence =
        "The site's robots.txt redirects too often, which is treated as no robots.txt: everything is allowed.\n";
    assert!(output.out.contains(sentence), "{}", output.out);
}

#[tokio::test]
async fn a_silent_server_is_shown_after_the_timeout() {
    let latch = Latch::new();
    let origin = Origin::start()
        .reply("/robots.txt", Reply::ok("text/plain", "").after(&latch))
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nfetch-timeout = '1s'").await;
    let output = fetched(&gate, &origin, &[]).await.masked(&origin);
    let expected = "  ---  http://shop.example:PORT/robots.txt\n  \
                    after TIME s: no complete answer came within 1 s (robots.fetch-timeout)\n";
    assert!(output.contains(expected), "{output}");
    assert!(output.starts_with("REFUSED"), "{output}");
}

#[tokio::test]
async fn the_certificate_is_checked_against_the_configured_roots() {
    let rules = "User-agent: *\nDisallow: /private\n";
    let origin = Origin::start().robots(rules).tls().spawn().await;
    let gate = Gate::start().await;
    let known = fetched(&gate, &origin, &["--json"]).await.json();
    assert_eq!(
        (&known["reason"], &known["robots"]["status"]),
        (&"rule".into(), &200.into())
    );

    origin.present(&crate::support::Certificate::of_unknown_root(&[crate::support::NAME]));
    let unknown = fetched(&gate, &origin, &["--json"]).await.json();
    assert_eq!(unknown["reason"], "unreachable");
    let error = unknown["robots"]["error"].as_str().unwrap_or_default();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_prohibited_address_is_shown_with_the_key_that_allows_it() {
    let origin = Origin::start().spawn().await;
    let bots = "[[bot]]\nname = 'scan'\nuser-agents = ['ScanBot']\nenforcement = 'exempt'\n";
    let gate = Gate::with(&format!("[egress]\nallow = []\n{bots}")).await;
    let output = fetched(&gate, &origin, &[]).await;
    let expected = "\
REFUSED  http://shop.example:PORT/private
for ExampleBot
This proxy does not let bots go there: 127.0.0.1 is a loopback address, which bots cannot reach unless egress.allow lists it.

Fetched:
  ---  http://shop.example:PORT/robots.txt
  after TIME s: 127.0.0.1 is a loopback address, which bots cannot reach unless egress.allow lists it
";
    assert_eq!(output.masked(&origin), expected);
    assert_eq!(output.code, Some(1));

    // If the URL alone decides, the answer is the same for every agent.
    let (config, url) = (gate.file("robotgate.toml"), origin.url_at("127.0.0.1", "/private"));
    for agent in ["ExampleBot", "ScanBot", "Mozilla/5.0"] {
        let output = explain(&["--config", text(&config), "--json", "--agent", agent, &url]).await;
        let json = output.json();
        assert_eq!(json["reason"], "egress", "{agent}");
        let error = json["robots"]["error"].as_str().unwrap_or_default();
        assert!(error.contains("a loopback address"), "{error}");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn explain_fetches_no_robots_txt_if_none_is_needed() {
    let origin = Origin::start().spawn().await;
    let gate = Gate::start().await;
    let config = gate.file("robotgate.toml");
    for (agent, path, reason) in [
        ("Mozilla/5.0", "/", "unidentified"),
        ("ExampleBot", "/robots.txt", "robots-file"),
    ] {
        let url = origin.url(path);
        let output = explain(&["--config", text(&config), "--json", "--agent", agent, &url]).await;
        let json = output.json();
        assert_eq!(json["reason"], reason);
        assert_eq!(json["robots"]["fetched"], serde_json::Value::Null);
        assert_eq!(json["unidentified"].is_string(), reason == "unidentified");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn explain_says_that_a_bot_needs_proof() {
    let origin = Origin::start().anything("page").spawn().await;
    let bots = "[[bot]]\nname = \"lan\"\nuser-agents = [\"LanBot\"]\nnetworks = [\"10.0.0.0/8\"]\n\
                [[bot]]\nname = \"free\"\nuser-agents = [\"FreeBot\"]\n";
    let some = Gate::with(bots).await;
    let all = Gate::with(&format!("[identity]\nrequired = true\n{bots}")).await;
    for (gate, agent, needs_proof, beginning) in [
        (&some, "LanBot/1.0", true, "ALLOWED"),
        // This agent is the bot's name in the configuration.
        (&some, "lan", true, "ALLOWED"),
        (&some, "FreeBot/1.0", false, "ALLOWED"),
        (&some, "curl/8.5.0", false, "ALLOWED"),
        (&all, "LanBot/1.0", true, "ALLOWED"),
        // The configuration accepts no proof for these agents.
        (&all, "FreeBot/1.0", true, "REFUSED"),
        (&all, "curl/8.5.0", true, "REFUSED"),
    ] {
        let (config, url) = (gate.file("robotgate.toml"), origin.url("/x"));
        let args = ["--config", text(&config), "--agent", agent, &url];
        let output = explain(&args).await;
        assert!(output.out.starts_with(beginning), "{agent}: {}", output.out);
        let note = output.out.contains("Note: the client has to prove");
        let by_network = "has to prove that it is this bot, by its network.";
        assert_eq!(
            output.out.contains(by_network),
            agent.to_lowercase().starts_with("lan"),
            "{agent}"
        );
        let json = explain(&[&args[..], &["--json"]].concat()).await.json();
        assert_eq!(
            (note, json["needs_proof"].as_bool()),
            (needs_proof, Some(needs_proof)),
            "{agent}: {}",
            output.out
        );
        assert_eq!(
            gate.get(&url).user_agent(agent).await.status == 403,
            needs_proof,
            "{agent}"
        );
    }
}
