//! The output that a person sees at a terminal: where to connect, what is happening, and what to do.

use std::{fs, process::Stdio};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{
    Blackhole, CliOutput, Latch, Origin, ROBOTS, Reply, Signal,
    terminal::AtTerminal,
    wait::{until, within},
};

/// Writes a configuration with free ports and with `more` into a folder, which is also for the state of the gate.
/// Returns the folder and the path of the configuration.
fn configured(more: &str) -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("gate.toml");
    fs::write(&file, text(more)).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn text(more: &str) -> String {
    format!(
        "[proxy]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[egress]\nallow = [\"127.0.0.1\"]\n{more}"
    )
}

fn running(folder: &TempDir, file: &str, variables: &[(&str, &str)]) -> AtTerminal {
    running_with(folder, file, variables, &[], None)
}

fn running_with(
    folder: &TempDir,
    file: &str,
    variables: &[(&str, &str)],
    args: &[&str],
    output: Option<Stdio>,
) -> AtTerminal {
    let state = folder.path().to_str().unwrap();
    let variables = [&[("STATE_DIRECTORY", state)], variables].concat();
    AtTerminal::run(&[&["run", "--config", file], args].concat(), &variables, output)
}

fn proxy(shown: &str) -> String {
    let line = shown.lines().find(|line| line.contains("Bots connect to")).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

async fn send_request(address: &str, url: &str) -> String {
    let mut client = TcpStream::connect(address.trim_start_matches("http://")).await.unwrap();
    let host = url.split('/').nth(2).unwrap();
    let request = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ExampleBot\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    within("the response", client.read_to_string(&mut response))
        .await
        .unwrap();
    response
}

async fn site() -> Origin {
    let broken = Reply::raw("220 mail.example ESMTP\r\n\r\n");
    let origin = Origin::start().robots(ROBOTS);
    origin.reply("/broken", broken).spawn().await
}

#[tokio::test]
async fn a_terminal_shows_decisions_and_failures_as_readable_lines() {
    let origin = site().await;
    let site = format!("http://{}", origin.address());
    let (folder, file) = configured("");
    let gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    let address = proxy(&gate.until("Each decision follows as a line. --log-format=json").await);
    for page in ["/page", "/private/x", "/broken"] {
        send_request(&address, &format!("{site}{page}")).await;
    }
    let long = format!("{site}/private/{}/end", "x".repeat(200));
    send_request(&address, &long).await;
    let shown = gate.until("/end  line 2: Disallow: /private\n").await;
    let lines: Vec<_> = shown.lines().skip_while(|line| !line.contains("Z robots")).collect();
    for (line, expected) in lines.iter().zip([
        format!("robots {site}/robots.txt  200, rules"),
        format!("allow  ExampleBot GET {site}/page  no-rule"),
        format!("deny   ExampleBot GET {site}/private/x  line 2: Disallow: /private"),
        format!("allow  ExampleBot GET {site}/broken  no-rule"),
        format!("error  ExampleBot GET {site}/broken  502 http_protocol_error: "),
    ]) {
        let (time, rest) = line.split_once("Z ").unwrap_or_else(|| panic!("no time: {line}"));
        assert_eq!(time.len(), "13:24:48".len(), "{line}");
        assert!(rest.starts_with(&expected), "{line}\nis not\n{expected}");
    }
    assert_eq!(lines.len(), 6, "nothing else, and no JSON: {lines:#?}");
    assert_eq!(lines[5].chars().count(), 100, "as wide as the terminal: {}", lines[5]);
    assert!(lines[5].contains("/pri…xx"), "{}", lines[5]);
}

#[tokio::test]
async fn the_log_format_option_applies_to_terminals_and_pipes() {
    let origin = site().await;
    let url = format!("http://{}/private/", origin.address());
    for (args, at_terminal, as_text) in [
        (&[][..], true, true),
        (&[], false, false),
        (&["--log-format=json"], true, false),
        (&["--log-format=text"], false, true),
    ] {
        let (folder, file) = configured("");
        let path = folder.path().join("out");
        let output = (!at_terminal).then(|| fs::File::create(&path).unwrap().into());
        let gate = running_with(&folder, &file, &[], args, output);
        let address = proxy(&plain(&gate.until("Set up a client").await));
        send_request(&address, &url).await;
        let text = format!("deny   ExampleBot GET {url}  line 2: Disallow: /private\n");
        let shown = until(&format!("a decision with {args:?}"), || {
            let shown = match at_terminal {
                true => gate.shown(),
                false => fs::read_to_string(&path).unwrap(),
            };
            let expected = if as_text { &*text } else { r#""event":"completion""# };
            plain(&shown).contains(expected).then_some(shown)
        })
        .await;
        assert_eq!(shown.contains(r#"{"event":"decision""#), !as_text, "{args:?}: {shown}");
        assert_eq!(plain(&shown).contains(&text), as_text, "{args:?}: {shown}");
        let coloured = shown.contains("\u{1b}[31mdeny\u{1b}[0m");
        assert_eq!(coloured, as_text && at_terminal, "{args:?}: {shown}");
    }
}

/// Removes colour codes from text that a terminal shows.
fn plain(shown: &str) -> String {
    let parts = shown.split("\u{1b}[").enumerate();
    parts
        .map(|(number, part)| {
            if number == 0 {
                part
            } else {
                part.split_once('m').unwrap().1
            }
        })
        .collect()
}

#[tokio::test]
async fn check_marks_mistakes_in_colour_and_wraps_lines() {
    let url = format!("https://a.example/{}/end", "x".repeat(150));
    let (_folder, file) =
        configured("[robots]\nprofil = \"google\"\n[[bot]]\nname = \"ExampleBot\"\nenforcement = \"on\"\n");
    for (variables, mark) in [
        (&[][..], "      | \u{1b}[1m\u{1b}[31m^^^^^^\u{1b}[0m\n"),
        (&[("NO_COLOR", "1")], "      | ^^^^^^\n"),
    ] {
        let mut check = AtTerminal::run(&["check", &file], variables, None);
        assert_eq!(check.ended().await.code(), Some(1));
        let shown = check.until(mark).await;
        for line in plain(&shown).lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let words = plain(&shown).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("robots.profil: there is no such key; did you mean \"profile\"?"),
            "{shown}"
        );
    }

    let (_folder, file) = configured(&format!(
        "[[expect]]\nagent = \"ExampleBot\"\nurl = \"{url}\"\nrobots = \"\"\nverdict = \"deny\"\n"
    ));
    let mut check = AtTerminal::run(&["check", &file], &[], None);
    assert_eq!(check.ended().await.code(), Some(1));
    let shown = check.until("is not met").await;
    assert!(
        shown.contains("\n    https://a.example/xxx") && shown.contains("…xxx") && shown.contains("xx/end\n    as"),
        "{shown}"
    );
    let output = CliOutput::of(&["check", &file], "").await;
    assert!(
        output
            .errors
            .contains(&format!(" for {url} as \"ExampleBot\", but the verdict is")),
        "{}",
        output.errors
    );
}

#[tokio::test]
async fn a_start_prints_the_addresses_and_a_stop_is_logged() {
    let (folder, file) = configured("");
    let mut gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    let shown = gate.until("Each decision follows as a line").await;
    let proxy = proxy(&shown);
    for message in [
        "is ready; Ctrl-C stops it.\n",
        "  See what they do    http://127.0.0.1:",
        &format!("  Try it              curl -i -x {proxy} -A ExampleBot/1.0 http://example.com/\n"),
        &format!("  Set up a client     robotgate env curl --config {file}\n"),
    ] {
        assert!(shown.contains(message), "{message:?} in\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
    gate.signal(Signal::INT);
    assert!(gate.ended().await.success());
    gate.until("INFO  stopped").await;
}

#[tokio::test]
async fn the_log_has_colour_on_terminals_that_support_it() {
    let (folder, file) = configured("");
    for (variables, coloured) in [
        (&[][..], true),
        (&[("NO_COLOR", "")], true),
        (&[("NO_COLOR", "0")], false),
        (&[("TERM", "dumb")], false),
    ] {
        let gate = running(&folder, &file, variables);
        let shown = gate.until("is ready").await;
        assert_eq!(
            shown.contains("\u{1b}[1m\u{1b}[32mINFO"),
            coloured,
            "{variables:?}:\n{shown}"
        );
        assert_eq!(shown.contains('\u{1b}'), coloured, "{variables:?}:\n{shown}");
    }
}

#[tokio::test]
async fn the_mistakes_of_a_reload_are_printed_as_lines() {
    let (folder, file) = configured("");
    let gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    gate.until("is ready").await;
    fs::write(&file, text("[robots]\nprofil = \"google\"\n")).unwrap();
    let shown = gate.until("^^^^^^").await;
    let message = "robots.profil: there is no such key; did you mean \"profile\"?\n        8 | profil = \"google\"\n";
    assert!(shown.contains(message), "{shown}");
    assert!(
        shown.contains("ERROR the new configuration was rejected; robotgate keeps the current one trigger=\"the file changed\" current_generation=1\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_stop_says_what_it_waits_for_and_how_to_skip_it() {
    let held = Latch::new();
    let origin = Origin::start()
        .robots("")
        .reply("/slow", Reply::ok("text/plain", "slow").after(&held))
        .spawn()
        .await;
    let (folder, file) = configured("");
    let mut gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    let address = proxy(&gate.until("Each decision").await);
    let mut client = TcpStream::connect(address.trim_start_matches("http://")).await.unwrap();
    let request = format!(
        "GET {0} HTTP/1.1\r\nHost: {1}\r\nUser-Agent: ExampleBot\r\n\r\n",
        origin.url("/slow"),
        origin.authority()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    gate.until("deny   ExampleBot GET").await;
    gate.signal(Signal::INT);
    gate.until(
        "still waiting for open exchanges to end; a second signal (Ctrl-C, SIGTERM) stops immediately connections=1",
    )
    .await;
    gate.signal(Signal::INT);
    assert!(gate.ended().await.success());
    gate.until("INFO  stopped").await;
    held.open();
}

#[tokio::test]
async fn closing_the_terminal_stops_the_gate() {
    let (folder, file) = configured("[audit]\npath = \"audit.jsonl\"\n");
    let mut gate = running(&folder, &file, &[]);
    gate.until("is ready").await;
    gate.signal(Signal::HUP);
    gate.until("configuration reloaded").await;
    gate.close().await;
    gate.signal(Signal::HUP);
    assert!(gate.ended().await.success());
}

#[tokio::test]
async fn a_slow_fetch_shows_a_message_only_on_a_terminal() {
    let latch = Latch::new();
    let robots = Reply::ok("text/plain", "").after(&latch);
    let origin = Origin::start().reply("/robots.txt", robots).spawn().await;
    let (_folder, file) = configured("");
    let url = format!("http://{}/page", origin.address());
    let args = ["explain", "--config", &file, "--agent", "ExampleBot", &url];
    let line = format!("robotgate: fetching http://{}/robots.txt …", origin.address());

    let mut seen = AtTerminal::run(&args, &[], Some(Stdio::null()));
    let mut plain = AtTerminal::run(&args, &[("TERM", "dumb")], Some(Stdio::null()));
    seen.until(&format!("\r{line}\u{1b}[K")).await;
    plain.until(&line).await;
    latch.open();
    seen.ended().await;
    seen.until("\r\u{1b}[K").await;
    plain.ended().await;
    assert_eq!(plain.shown(), format!("{line}\n"));

    let hole = Blackhole::start().await;
    let (_folder, file) = configured("[robots]\nfetch-timeout = \"1500ms\"\nfetch-idle-timeout = \"1500ms\"\n");
    let url = format!("http://{}/page", hole.address());
    let args = ["explain", "--config", &file, "--agent", "ExampleBot", &url];
    assert_eq!(CliOutput::of(&args, "").await.errors, "");
}

#[tokio::test]
async fn a_command_that_reads_from_the_terminal_says_so() {
    for (args, what) in [
        (&["eval"][..], "type one JSON object a line"),
        (&["lint", "-"], "type the robots.txt"),
        (
            &["explain", "--robots", "-", "--agent", "a", "http://a.example/"],
            "type the robots.txt",
        ),
    ] {
        let mut asks = AtTerminal::run(args, &[], None);
        asks.until(what).await;
        asks.types("\u{4}");
        asks.ended().await;
    }
    assert_eq!(CliOutput::of(&["eval"], "").await.errors, "");
}
