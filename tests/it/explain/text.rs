//! The output for a person, and exit statuses.

use serde_json::{Value, json};

use super::{explain, explain_input, explain_robots, text};
use crate::support::CliOutput;

#[tokio::test]
async fn explain_shows_the_winning_and_the_losing_rules() {
    let output = explain_robots(SHOP, "ExampleBot/1.0", "https://shop.example/shop/sale/1").await;
    assert_eq!(output.code, Some(0), "{}", output.errors);
    let expected = "\
ALLOWED  https://shop.example/shop/sale/1
line 12: Allow: /shop/sale/
for ExampleBot, found in \"ExampleBot/1.0\"
A rule of the site's robots.txt allows this URL.

     …
   9 | User-agent: *
  10 | Crawl-delay: 1
  11 | Disallow: /shop
> 12 | Allow: /shop/sale/
  13 | Allow: /shop/*.css$
  14 | Disallow: private

Considered 4 rules in the group of * (line 9), as no group names ExampleBot.

Rules that lost:
  line 11   Disallow: /shop      matches, but is shorter: 5 against 11 bytes
  line 13   Allow: /shop/*.css$  does not match: fits only up to /shop/*
  line 14   Disallow: private    never matches: a pattern has to begin with / or *

Read from standard input, 247 bytes.

Other lines of the file, which do not decide this:
  line 1    Sitemap: https://shop.example/map.xml
  line 10   Crawl-delay: 1  (for this bot)
  line 5    Crawl-delay: 10  (only for GPTBot, CCBot)
  line 6    Content-Signal: search=yes, ai-train=no  (only for GPTBot, CCBot)

No --config was given, so the defaults apply; the running proxy may decide differently.
";
    assert_eq!(output.out, expected);
    assert_eq!(output.errors, "");
}

#[tokio::test]
async fn a_refused_url_has_refused_as_first_word_and_exit_status_1() {
    let output = explain_robots(SHOP, "gptbot", "https://shop.example/").await;
    assert_eq!(output.code, Some(1), "{}", output.errors);
    let expected = "\
REFUSED  https://shop.example/
line 7: Disallow: /
for gptbot
A rule of the site's robots.txt disallows this URL.

     …
   3 | User-agent: GPTBot
   4 | User-agent: CCBot
   5 | Crawl-delay: 10
   6 | Content-Signal: search=yes, ai-train=no
>  7 | Disallow: /
   8 |
   9 | User-agent: *
  10 | Crawl-delay: 1

Considered 1 rule in the group of GPTBot, CCBot (line 3).
";
    assert!(output.out.starts_with(expected), "{}", output.out);
}

#[tokio::test]
async fn explain_says_what_the_site_says_about_each_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("robotgate.toml");
    std::fs::write(&config, "[usage]\ncontent-usage = 'enforce'\n").unwrap();
    let robots = "User-agent: *\nAllow: /\nContent-Signal: search=yes, ai-train=no\nContent-Usage: train-ai=n\n";
    let args = [
        "--robots",
        "-",
        "-c",
        text(&config),
        "--agent",
        "ExampleBot",
        "https://a.example/p",
    ];
    let of = async |purposes: &[&str], more: &[&str]| {
        let purposes = purposes.iter().flat_map(|purpose| ["--purpose", purpose]);
        let args: Vec<_> = args.into_iter().chain(purposes).chain(more.iter().copied()).collect();
        explain_input(&args, robots).await
    };

    let output = of(&["search", "ai-train", "ai-input", "tdm"], &[]).await;
    assert_eq!(output.code, Some(1), "{}", output.errors);
    let expected = "\
REFUSED  https://a.example/p
line 4 of the robots.txt says Content-Usage: train-ai=n, which forbids the purpose ai-train
for ExampleBot
The site does not allow what this bot uses content for ([[bot]] purposes, [usage]).

  1 | User-agent: *
  2 | Allow: /
  3 | Content-Signal: search=yes, ai-train=no
> 4 | Content-Usage: train-ai=n

Considered 1 rule in the group of * (line 1), as no group names ExampleBot.

What the site says about the use:
  search    line 3: Content-Signal: search=yes   allowed
  ai-input  nothing                              so nothing forbids it
  ai-train  line 3: Content-Signal: ai-train=no  forbidden, only reported
  ai-train  line 4: Content-Usage: train-ai=n    forbidden, enforced
  tdm       nothing                              so nothing forbids it

Read from standard input, 89 bytes.

Other lines of the file:
";
    assert!(output.out.starts_with(expected), "{}", output.out);

    let output = of(&["search"], &[]).await;
    assert_eq!(output.code, Some(0));
    assert!(
        output.out.starts_with("ALLOWED") && !output.out.contains("tdmrep"),
        "{}",
        output.out
    );

    let output = of(&["tdm"], &[]).await;
    let note = "With --robots, this command does not ask the site for its /.well-known/tdmrep.json, which may forbid the \
                purpose tdm.\n";
    assert!(output.out.contains(note), "{}", output.out);
    assert_eq!(of(&["tdm"], &["--json"]).await.json()["tdmrep_asked"], false);

    let json = of(&["ai-train", "tdm"], &["--json"]).await.json();
    assert_eq!((&json["reason"], &json["rule"]), (&json!("usage"), &Value::Null));
    assert_eq!(json["usage"]["purposes"], json!(["ai-train", "tdm"]));
    assert_eq!(json["usage"]["refused"]["line"], 4);
    assert_eq!(json["tdmrep_asked"], Value::Null, "the robots.txt refuses it already");
    let json = of(&[], &["--json"]).await.json();
    assert_eq!((&json["usage"], &json["tdmrep_asked"]), (&Value::Null, &Value::Null));

    let output = of(&["training"], &[]).await;
    assert_eq!(output.code, Some(2));
    assert!(
        output
            .errors
            .contains("[possible values: search, ai-input, ai-train, tdm]"),
        "{}",
        output.errors
    );
}

#[tokio::test]
async fn a_closed_host_does_not_hide_the_line_of_a_file() {
    let shown = |output: CliOutput| output.out.split("\n\nConsidered").next().map(str::to_owned);
    let output = explain_robots(SHOP, "gptbot", "http://127.0.0.1:8000/").await;
    assert_eq!(output.code, Some(1));
    let expected = "\
REFUSED  http://127.0.0.1:8000/
for gptbot
This proxy does not let bots go there: 127.0.0.1 is a loopback address, which bots cannot reach \
unless egress.allow lists it.
Without [egress], this would decide: line 7: Disallow: /

     …
   3 | User-agent: GPTBot
   4 | User-agent: CCBot
   5 | Crawl-delay: 10
   6 | Content-Signal: search=yes, ai-train=no
>  7 | Disallow: /
   8 |
   9 | User-agent: *
  10 | Crawl-delay: 1";
    assert_eq!(shown(output).as_deref(), Some(expected));
    let output = explain_robots(SHOP, "a", "http://127.0.0.1:8000/robots.txt").await;
    let sentence = "Without [egress], this would decide: The robots.txt itself may always be fetched.\n";
    assert!(output.out.contains(sentence), "{}", output.out);
}

#[tokio::test]
async fn explain_notes_that_the_defaults_apply_if_no_config_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    std::fs::write(&file, "").unwrap();
    for (config, is_default) in [(&[][..], true), (&["--config", file.to_str().unwrap()], false)] {
        let args = ["--robots", "-", "--agent", "a", "http://a.example/"];
        let output = explain_input(&[&args[..], config].concat(), SHOP).await;
        let note = "\nNo --config was given, so the defaults apply; the running proxy may decide differently.\n";
        assert_eq!(output.out.ends_with(note), is_default, "{}", output.out);
    }
}

#[tokio::test]
async fn explain_shows_the_delay_that_applies_and_what_sets_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robotgate.toml");
    let robots = "User-agent: *\nCrawl-delay: 10\nDisallow: /private\n";
    for (pace, url, shown) in [
        ("# no pace", "/", None),
        ("[pace]", "/", None),
        (
            "[pace]\ndelay = '2s'",
            "/",
            Some("2 s after the previous request to this site ([pace]: pace.delay)"),
        ),
        (
            "[pace]\ndelay = '2s'\n[[bot]]\nname = 'ExampleBot'\nuser-agents = ['ExampleBot']\ndelay = '3s'",
            "/",
            Some("3 s after the previous request to this site ([pace]: the bot's delay)"),
        ),
        (
            "[pace]\ndelay = '2s'\ncrawl-delay = 'enforce'",
            "/",
            Some("10 s after the previous request to this site ([pace]: the site's Crawl-delay)"),
        ),
        (
            "[pace]\ncrawl-delay = 'enforce'\ncrawl-delay-max = '5s'",
            "/",
            Some(
                "5 s after the previous request to this site ([pace]: the site's Crawl-delay, up to pace.crawl-delay-max)",
            ),
        ),
        ("[pace]\ndelay = '2s'", "/private", None),
    ] {
        std::fs::write(&path, pace).unwrap();
        let (config, url) = (super::text(&path), format!("https://shop.example{url}"));
        let args = ["--config", config, "--robots", "-", "--agent", "ExampleBot/1", &url];
        let output = explain_input(&args, robots).await;
        let line = output
            .out
            .lines()
            .find(|line| line.starts_with("The proxy sends the request at least"));
        let wanted = shown.map(|shown| format!("The proxy sends the request at least {shown}."));
        assert_eq!(line, wanted.as_deref(), "{pace} {}{}", output.out, output.errors);
        let heading = match pace.contains("enforce") {
            true => "\nOther lines of the file:\n",
            false => "\nOther lines of the file, which do not decide this:\n",
        };
        assert!(output.out.contains(heading), "{pace} {}", output.out);
    }
}

#[tokio::test]
async fn a_normalized_reading_that_decides_is_shown() {
    let output = explain_robots(SHOP, "ExampleBot", "https://shop.example/ok/../%73hop?q").await;
    assert_eq!(output.code, Some(1), "{}", output.errors);
    let note = "The decision is based on the path, normalized: /shop?q\n";
    assert!(output.out.contains(note), "{}", output.out);
}

#[tokio::test]
async fn a_strict_reading_names_the_key_that_turns_it_off() {
    let output = explain_robots(SHOP, "ExampleBot", "https://shop.example//shop").await;
    assert_eq!(output.code, Some(1), "{}", output.errors);
    let note =
        "The decision is based on the path as servers read it: /shop (robots.strict-paths = false turns this off)\n";
    assert!(output.out.contains(note), "{}", output.out);
}

#[tokio::test]
async fn explain_says_that_no_group_or_no_rule_matches() {
    let output = explain_robots("User-agent: b\nDisallow: /", "a", "https://shop.example/").await;
    assert_eq!(output.code, Some(0));
    let sentence = "The file has no group for a and none for *, so it forbids nothing.";
    assert!(output.out.contains(sentence), "{}", output.out);

    let output = explain_robots("User-agent: *\nDisallow: /a/b", "a", "https://shop.example/a/c").await;
    assert_eq!(output.code, Some(0));
    let sentence = "The nearest rules:\n  line 2    Disallow: /a/b  does not match: fits only up to /a/\n";
    assert!(output.out.contains(sentence), "{}", output.out);
}

#[tokio::test]
async fn a_fragment_is_ignored_and_may_contain_anything() {
    let output = explain_robots(SHOP, "a", "https://shop.example/shop#a b<").await;
    assert_eq!((output.code, &*output.errors), (Some(1), ""));
}

#[tokio::test]
async fn rules_that_match_partly_only_by_a_wildcard_are_shown_if_only_the_end_is_wrong() {
    let robots = "User-agent: *\nDisallow: /*/*?*ls=\nDisallow: *.css$\nDisallow: /b\nDisallow: /private/x\n";
    let output = explain_robots(robots, "a", "https://shop.example/private/a/b?q").await;
    let sentence = "The nearest rules:\n  line 5    Disallow: /private/x  does not match: fits only up to /private/\n  \
                and 3 more rules\n";
    assert!(output.out.contains(sentence), "{}", output.out);

    let output = explain_robots(
        "User-agent: *\nDisallow: /b\nDisallow: /$\n",
        "a",
        "https://shop.example/private",
    )
    .await;
    assert!(!output.out.contains("nearest"), "{}", output.out);

    let output = explain_robots(
        "User-agent: *\nDisallow: /*.pdf$\n",
        "a",
        "https://shop.example/a.pdf?page=2",
    )
    .await;
    let sentence = "The nearest rules:\n  line 2    Disallow: /*.pdf$  does not match: fits only up to /*.pdf\n";
    assert!(output.out.contains(sentence), "{}", output.out);
}

#[tokio::test]
async fn explain_says_that_a_file_is_not_a_robots_txt() {
    let page = "<!doctype html>\n<title>Shop</title>\n";
    for (file, agent, sentence, code) in [
        (
            page.to_owned(),
            "a",
            "What was read is a web page, not a robots.txt: it has no rules for this bot.\n",
            "web-page",
        ),
        (
            format!("{page}User-agent: *\nDisallow: /\n"),
            "a",
            "What was read is a web page, not a robots.txt: robotgate applies only the lines that it can read as rules.\n",
            "web-page",
        ),
        (
            page.to_owned(),
            "Mozilla/5.0",
            "What was read is a web page, not a robots.txt.\n",
            "web-page",
        ),
        (
            "U\0s\0e\0r\0".to_owned(),
            "a",
            "What was read is text in UTF-16, not a robots.txt: it has no rules for this bot.\n",
            "utf-16",
        ),
        (
            "\u{1}\u{2}\u{3}\u{4}".to_owned(),
            "a",
            "What was read is no text, not a robots.txt: it has no rules for this bot.\n",
            "binary",
        ),
    ] {
        let output = explain_robots(&file, agent, "https://shop.example/").await;
        assert!(output.out.contains(sentence), "{}", output.out);
        let args = ["--json", "--robots", "-", "--agent", agent, "https://shop.example/"];
        assert_eq!(explain_input(&args, &file).await.json()["robots"]["looks_like"], code);
    }
    let output = explain_robots(SHOP, "a", "https://shop.example/").await;
    assert!(!output.out.contains("not a robots.txt"), "{}", output.out);
}

#[tokio::test]
async fn control_characters_in_files_and_urls_are_escaped() {
    let robots = "User-agent: *\nDisallow: /[2J\u{1b}[2J\u{202e}\nCrawl-delay: \u{9b}31m\nAllow: /a\u{7}\n";
    let output = explain_robots(robots, "a (\u{1b}b)", "https://shop.example/[2J\u{202e}\u{9b}").await;
    let controls = output
        .out
        .chars()
        .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
    assert_eq!(controls, None, "{}", output.out);
    assert!(
        output.out.contains("Disallow: /[2J\\u{1b}[2J\\u{202e}"),
        "{}",
        output.out
    );
}

#[tokio::test]
async fn the_profile_can_be_chosen() {
    let robots = "User-agent: *\nDisalow: /tpyo\n";
    let args = ["--robots", "-", "--agent", "a", "https://shop.example/tpyo"];
    assert_eq!(explain_input(&args, robots).await.code, Some(1));
    let to_the_letter = [&args[..], &["--profile", "rfc9309"]].concat();
    assert_eq!(explain_input(&to_the_letter, robots).await.code, Some(0));
}

#[tokio::test]
async fn bad_input_and_bad_usage_have_different_exit_codes() {
    let long = format!("http://shop.example/{}", "a".repeat(16 * 1024));
    for (url, error) in [
        ("shop.example/p", "robotgate: this is not a whole URL"),
        (
            "gopher://shop.example/p",
            "robotgate: only http, https and ftp URLs have a robots.txt",
        ),
        (
            "wss://shop.example/p",
            "robotgate: for a WebSocket, write the URL with https instead of wss",
        ),
        ("http://a..example/p", "robotgate: the URL is not valid: the host"),
        (
            "http://user@shop.example/",
            "robotgate: the URL is not valid: remove the user name before the host",
        ),
        ("https://", "robotgate: the URL has no host; write one like"),
        ("https:///x", "robotgate: the URL has no host; write one like"),
        (
            "http://a\\b/",
            "robotgate: the URL is ambiguous, perhaps because of a character before it: write it like https://example.com/page",
        ),
        (
            "https://shop.example/a b",
            "robotgate: the URL has a space: remove it, or write %20 instead",
        ),
        (
            "https://shop.example/?\u{1b}[2J",
            "robotgate: the URL has the control character U+001B: remove it, or write %1B instead",
        ),
        (
            "https://shop.example/<a",
            "robotgate: the URL has the character '<': remove it, or write %3C instead",
        ),
        (&long, "robotgate: the URL is longer than 16 KiB"),
    ] {
        let output = explain_robots("", "a", url).await;
        assert_eq!(output.code, Some(1), "{url}");
        assert!(output.errors.starts_with(error), "{url}: {}", output.errors);
        assert_eq!(output.out, "", "{url}");
    }
    let missing = explain(&["--agent", "a", "http://a.example/", "--robots", "/nowhere/robots.txt"]).await;
    assert_eq!(missing.code, Some(1));
    let error = "robotgate: cannot read /nowhere/robots.txt: there is no such file; check the path";
    assert!(missing.errors.starts_with(error), "{}", missing.errors);
    let hostile = explain(&["--agent", "a", "http://a.example/", "--robots", "no\u{1b}[31m\u{202e}"]).await;
    let error = "robotgate: cannot read no\\u{1b}[31m\\u{202e}: there is no such file; check the path";
    assert!(hostile.errors.starts_with(error), "{}", hostile.errors);
    let hostile = explain(&["--agent", "a", "http://a.example/", "--config", "no\u{9b}31m"]).await;
    assert!(hostile.errors.contains("no\\u{9b}31m"), "{}", hostile.errors);
    assert_eq!(explain(&["http://a.example/"]).await.code, Some(2), "no agent");
    assert_eq!(explain(&["--agent", "a"]).await.code, Some(2), "no URL");
}

#[tokio::test]
async fn rules_after_the_size_limit_are_ignored() {
    let robots = format!("User-agent: *\n{}Disallow: /\n", "# filling\n".repeat(52_000));
    let output = explain_robots(&robots, "a", "https://shop.example/").await;
    assert_eq!(output.code, Some(0), "{}", output.errors);
    assert!(
        output.out.contains("robotgate uses only its first 500 KiB"),
        "{}",
        output.out
    );
    let args = ["--json", "--robots", "-", "--agent", "a", "https://shop.example/"];
    assert_eq!(explain_input(&args, &robots).await.json()["robots"]["cut"], true);
    assert_eq!(explain_input(&args, SHOP).await.json()["robots"]["cut"], false);
}

#[tokio::test]
async fn an_endless_file_is_read_up_to_the_limit() {
    for output in [
        explain(&["--robots", "/dev/zero", "--agent", "a", "https://shop.example/"]).await,
        explain(&[
            "--robots",
            "/dev/zero",
            "--agent",
            "a",
            "--json",
            "https://shop.example/",
        ])
        .await,
    ] {
        assert_eq!((output.code, &*output.errors), (Some(0), ""));
    }
}

#[tokio::test]
async fn losing_rules_that_are_not_shown_are_counted() {
    let rules: String = (0..2000).map(|n| format!("Disallow: /a/{n}\n")).collect();
    let robots = format!("User-agent: *\nAllow: /a\n{rules}");
    let output = explain_robots(&robots, "a", "https://shop.example/a/x").await;
    assert!(output.out.contains("  and 1995 more rules\n"), "{}", output.out);

    let args = ["--json", "--robots", "-", "--agent", "a", "https://shop.example/a/x"];
    let json = explain_input(&args, &robots).await.json();
    assert_eq!(json["competitors_total"], 2000);
    assert_eq!(json["competitors"].as_array().map(Vec::len), Some(1000));
    assert_eq!(json["considered"], 2001);
}

#[tokio::test]
async fn statements_are_not_marked_for_an_unidentified_bot() {
    for agent in ["Mozilla/5.0", "", "*"] {
        let output = explain_robots(SHOP, agent, "https://shop.example/").await;
        assert!(output.out.contains("for no bot: "), "{}", output.out);
        assert!(!output.out.contains("this bot)"), "{}", output.out);
        let sentence = "  line 10   Crawl-delay: 1  (for *)\n";
        assert!(output.out.contains(sentence), "{}", output.out);

        let args = ["--json", "--robots", "-", "--agent", agent, "https://shop.example/"];
        let json = explain_input(&args, SHOP).await.json();
        let statements = json["statements"].as_array().expect("a list");
        assert_eq!(statements.len(), 4);
        assert!(
            statements.iter().all(|sentence| sentence["applies"].is_null()),
            "{json:#}"
        );
    }
}

const SHOP: &str = "\
Sitemap: https://shop.example/map.xml

User-agent: GPTBot
User-agent: CCBot
Crawl-delay: 10
Content-Signal: search=yes, ai-train=no
Disallow: /

User-agent: *
Crawl-delay: 1
Disallow: /shop
Allow: /shop/sale/
Allow: /shop/*.css$
Disallow: private
";

#[tokio::test]
async fn a_given_file_shows_its_statements_even_if_it_does_not_decide() {
    let robots = "User-agent: FooBot\nCrawl-delay: 5\n\nUser-agent: *\nCrawl-delay: 1\n";
    let output = explain_robots(robots, "FooBot", "https://shop.example/robots.txt").await;
    assert_eq!(output.code, Some(0));
    assert!(output.out.contains("5  (for this bot)"), "{}", output.out);
    assert!(output.out.contains("1  (only for *)"), "{}", output.out);
}

#[tokio::test]
async fn for_a_tunnel_the_rule_for_the_entire_site_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("robotgate.toml");
    std::fs::write(&config, "https.mode = \"tunnel\"\n").unwrap();
    let config = config.to_str().unwrap();
    let url = "https://shop.example/page";
    let args = ["--config", config, "--robots", "-", "--agent", "FooBot", "--json", url];
    let output = explain_input(&args, "User-agent: *\nDisallow: /\n").await.json();
    assert_eq!(
        (&output["reason"], &output["rule"]["line"]),
        (&"rule".into(), &2.into())
    );
}
