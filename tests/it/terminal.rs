//! What a person sees at a terminal: where to connect, what goes on, and what to do.

use std::{fs, process::Stdio};

use tempfile::TempDir;

use crate::support::{Blackhole, Latch, Origin, Reply, Signal, Told, terminal::AtTerminal};

/// A configuration of ports of its own, with `more` in it, and the folder that has its state, too.
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
    let state = folder.path().to_str().unwrap();
    let variables = [&[("STATE_DIRECTORY", state)], variables].concat();
    AtTerminal::run(&["run", "--config", file], &variables, None)
}

/// The proxy's address, as the greeting has it.
fn proxy(shown: &str) -> String {
    let line = shown.lines().find(|line| line.contains("Bots connect to")).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

#[tokio::test]
async fn a_start_says_where_to_connect_and_a_stop_that_it_has_ended() {
    let (folder, file) = configured("");
    let mut gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    let shown = gate.until("Each decision follows as a line of JSON").await;
    let proxy = proxy(&shown);
    for said in [
        "is ready; Ctrl-C stops it.\n",
        "  See what they do    http://127.0.0.1:",
        &format!("  Try it              curl -i -x {proxy} -A ExampleBot/1.0 http://example.com/\n"),
        &format!("  Set up a client     robotgate env curl --config {file}\n"),
    ] {
        assert!(shown.contains(said), "{said:?} in\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
    gate.signal(Signal::INT);
    assert!(gate.ended().await.success());
    gate.until("INFO  stopped").await;
}

#[tokio::test]
async fn colour_is_in_the_log_of_terminals_that_show_it() {
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
async fn the_mistakes_of_a_reload_stand_in_lines() {
    let (folder, file) = configured("");
    let gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    gate.until("is ready").await;
    fs::write(&file, text("[robots]\nprofil = \"google\"\n")).unwrap();
    let shown = gate.until("^^^^^^").await;
    let said = "robots.profil: there is no such key; did you mean \"profile\"?\n        8 | profil = \"google\"\n";
    assert!(shown.contains(said), "{shown}");
    assert!(
        shown.contains("ERROR configuration rejected cause=\"the file changed\" in_force=1\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_stop_says_what_it_waits_for_and_how_to_end_that() {
    let held = Latch::new();
    let origin = Origin::start()
        .robots("")
        .reply("/slow", Reply::ok("text/plain", "slow").after(&held))
        .spawn()
        .await;
    let (folder, file) = configured("");
    let mut gate = running(&folder, &file, &[("NO_COLOR", "1")]);
    let address = proxy(&gate.until("Each decision").await);
    let mut client = tokio::net::TcpStream::connect(address.trim_start_matches("http://"))
        .await
        .unwrap();
    let request = format!(
        "GET {0} HTTP/1.1\r\nHost: {1}\r\nUser-Agent: ExampleBot\r\n\r\n",
        origin.url("/slow"),
        origin.authority()
    );
    tokio::io::AsyncWriteExt::write_all(&mut client, request.as_bytes())
        .await
        .unwrap();
    gate.until("\"event\":\"decision\"").await;
    gate.signal(Signal::INT);
    gate.until("still waiting for what runs to end; a second signal (Ctrl-C, SIGTERM) ends it at once connections=1")
        .await;
    gate.signal(Signal::INT);
    assert!(gate.ended().await.success());
    gate.until("INFO  stopped").await;
    held.open();
}

#[tokio::test]
async fn closing_the_terminal_stops_it() {
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
async fn a_fetch_that_takes_long_is_told_at_a_terminal_alone() {
    let latch = Latch::new();
    let robots = Reply::ok("text/plain", "").after(&latch);
    let origin = Origin::start().reply("/robots.txt", robots).spawn().await;
    let (_folder, file) = configured("");
    let url = format!("http://{}/page", origin.address());
    let args = ["explain", "--config", &file, "--agent", "ExampleBot", &url];
    let told = format!("robotgate: fetching http://{}/robots.txt …", origin.address());

    let mut seen = AtTerminal::run(&args, &[], Some(Stdio::null()));
    let mut plain = AtTerminal::run(&args, &[("TERM", "dumb")], Some(Stdio::null()));
    seen.until(&format!("\r{told}\u{1b}[K")).await;
    plain.until(&told).await;
    latch.open();
    seen.ended().await;
    seen.until("\r\u{1b}[K").await;
    plain.ended().await;
    assert_eq!(plain.shown(), format!("{told}\n"));

    let hole = Blackhole::start().await;
    let (_folder, file) = configured("[robots]\nfetch-timeout = \"1500ms\"\nfetch-idle-timeout = \"1500ms\"\n");
    let url = format!("http://{}/page", hole.address());
    let args = ["explain", "--config", &file, "--agent", "ExampleBot", &url];
    assert_eq!(Told::by(&args, "").await.errors, "");
}

#[tokio::test]
async fn who_has_to_type_is_told_so() {
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
    assert_eq!(Told::by(&["eval"], "").await.errors, "");
}
