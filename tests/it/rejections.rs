//! A client that does not trust the authority: the log names the client's address, and the command that shows how to
//! make the client trust the authority.

use std::process::Stdio;

use tokio::process::Command;

use crate::support::{Alpn, Gate, NAME, Origin, allowed, programs::needs};

/// Runs a client that uses the proxy but does not trust its authority. The client must fail.
async fn run(gate: &Gate, program: &str, arguments: &[&str]) {
    let proxy = format!("http://{}", gate.address());
    let run = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("https_proxy", &proxy)
        .stdin(Stdio::null())
        .output();
    let output = run.await.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(!output.status.success(), "{program} trusts it: {output:?}");
}

const REQUESTS: &str = "import requests, sys; requests.get(sys.argv[1])";
const AIOHTTP: &str = "
import aiohttp, asyncio, sys
async def ask():
    async with aiohttp.ClientSession(trust_env=True) as session:
        await session.get(sys.argv[1])
asyncio.run(ask())
";

#[tokio::test]
async fn a_rejection_is_logged_with_the_fix_for_its_client() {
    needs!("curl", "wget", "python3-requests", "python3-aiohttp");
    for (program, arguments, message, fix) in [
        ("curl", &["-sS"][..], "does not trust", "robotgate env curl"),
        (
            "curl",
            &["-sS", "--tls-max", "1.2"],
            "does not trust",
            "robotgate env curl",
        ),
        // wget with GnuTLS closes the connection only after the handshake is complete.
        (
            "wget",
            &["-nv", "-t1", "-O-"],
            "closed the connection",
            "robotgate env wget",
        ),
        ("python3", &["-c", REQUESTS], "does not trust", "robotgate env CLIENT"),
        (
            "python3",
            &["-c", AIOHTTP],
            "closed the connection",
            "robotgate env python",
        ),
    ] {
        let origin = Origin::start().tls().spawn().await;
        let gate = Gate::start().await;
        let url = origin.url("/x");
        run(&gate, program, &[arguments, &[&url]].concat()).await;

        let line = gate
            .wait_for_log("the client is told of", |line| line.field("fix").is_some())
            .await;
        let fix = format!("{fix} --config {}", gate.file("robotgate.toml").display());
        assert_eq!(
            (line.level(), line.field("fix")),
            ("WARN", Some(&*fix)),
            "{program}: {line:?}"
        );
        // Python's ssl sends an alert or closes the connection, depending on its version.
        assert!(line.says(message) || program == "python3", "{program}: {line:?}");
        assert!(
            line.field("client")
                .is_some_and(|client| client.starts_with("127.0.0.1:"))
        );
        assert_eq!(line.field("origin"), Some(origin.url("").as_str()), "{line:?}");
        assert!(origin.requests().is_empty());
    }
}

#[tokio::test]
async fn one_client_does_not_flood_the_log() {
    needs!("curl");
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/x");
    for _ in 0..5 {
        run(&gate, "curl", &["-sS", "-A", "a\u{202e}b", &url]).await;
    }
    let logged = || {
        gate.log()
            .into_iter()
            .filter(|line| line.field("fix").is_some())
            .count()
    };
    gate.wait_for_log("the client is told of", |line| {
        line.field("user_agent")
            .is_some_and(|agent| agent.contains("a\\u{202e}b"))
    })
    .await;
    // When this later request has its response, robotgate has noticed all five rejections.
    assert_eq!(gate.get("http://robotgate.internal/").await.status, 200);
    assert_eq!(logged(), 1);
}

#[tokio::test]
async fn a_client_that_sends_a_request_is_not_logged_as_a_rejection() {
    needs!("curl");
    let origin = Origin::start().page("/x", "Hello.").tls().spawn().await;
    let gate = Gate::start().await;
    let (proxy, ca) = (
        format!("http://{}", gate.address()),
        gate.file("ca.pem").display().to_string(),
    );
    for version in ["--http1.1", "--http2"] {
        let arguments = [
            "-sS",
            version,
            "-x",
            &proxy,
            "--cacert",
            &ca,
            "-A",
            "TestBot/1.0",
            &origin.url("/x"),
        ];
        let output = Command::new("curl").args(arguments).output().await.unwrap();
        assert_eq!(output.stdout, b"Hello.", "{output:?}");
    }
    gate.audited(2).await;
    assert!(gate.log().iter().all(|line| line.field("fix").is_none()));
}

#[tokio::test]
async fn an_unused_second_connection_is_not_logged_as_a_rejection() {
    let origin = Origin::start().page("/x", "Hello.").tls().spawn().await;
    let gate = Gate::start().await;
    let tunnel = async |agent: &str| {
        let connect = gate.connect(&origin.authority()).user_agent(agent);
        connect.await.opened()
    };
    // Like Chromium, open two connections. The one that is ready last is closed unused.
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut used = tunnel("TestBot/1.0").await.tls(NAME, alpn).await;
        tunnel("TestBot/1.0").await.closed_unused(NAME, alpn).await;
        allowed(&used.get("/x").await, "no-robots");
    }
    tunnel("OtherBot/1.0").await.closed_unused(NAME, Alpn::Http2).await;

    gate.wait_for_log("another client is told of", |line| {
        line.field("fix").is_some() && line.field("user_agent") == Some("OtherBot/1.0")
    })
    .await;
    // TestBot closed its unused connections earlier. If they counted as rejections, the log would already have a line
    // about them.
    let logged = gate.log().into_iter().filter(|line| line.field("fix").is_some());
    assert_eq!(logged.count(), 1);
}
