//! The HTTP clients with which bots are written. Each gets an allowed page byte for byte, and sees why another page is
//! refused.
//!
//! The README's test command installs the clients. Without a client its tests are skipped, or fail if `CI` is set.

use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use robotgate::bot::SecretHash;

use crate::support::{Gate, Origin, ROBOTS, programs::needs, wait};

const CONNECT_REFUSED: &str = "Disallowed: CONNECT is refused here";
const PYTHON: [&str; 4] = ["urllib", "requests", "httpx", "aiohttp"];

async fn output(program: &str, arguments: &[&str]) -> String {
    let run = Command::new(program)
        .args(arguments)
        // The user's environment must not bypass the gate.
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output();
    let output = wait::within(&format!("{program} {arguments:?}"), run)
        .await
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    // Some clients write responses to stderr.
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

async fn python(client: &str, gate: &Gate, url: &str) -> Value {
    python_by(client, &proxy(gate), gate, url).await
}

async fn python_by(client: &str, proxy: &str, gate: &Gate, url: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/real_clients/ask.py");
    let printed = output("/usr/bin/python3", &[script, client, proxy, &ca(gate), url]).await;
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{client}: {error}: {printed}"))
}

fn proxy(gate: &Gate) -> String {
    format!("http://{}", gate.address())
}

fn ca(gate: &Gate) -> String {
    gate.file("ca.pem").display().to_string()
}

/// Starts a gate that requires a credential for TestBot. Returns the gate, the proxy settings for a client with the
/// credential, and those for one with a wrong credential.
async fn bound() -> (Gate, String, String) {
    let hash = SecretHash::new([1; 16], b"open_sesame-open_sesame").line("TestBot");
    let gate = Gate::builder()
        .config(
            "[identity]\ncredentials = \"credentials\"\nrequired = true\n\
             [[bot]]\nname = \"TestBot\"\nuser-agents = [\"TestBot\"]",
        )
        .credentials(&hash)
        .start()
        .await;
    let address = gate.address();
    let settings = format!("http://TestBot:open_sesame-open_sesame@{address}");
    (gate, settings, format!("http://TestBot:wrong@{address}"))
}

async fn origin(tls: bool) -> Origin {
    let origin = Origin::start().robots(ROBOTS).page("/x", "Hello, bot.\n");
    if tls {
        origin.tls().spawn().await
    } else {
        origin.spawn().await
    }
}

#[tokio::test]
async fn python_clients_get_the_page_or_the_reason() {
    needs!("python3-requests", "python3-httpx", "python3-aiohttp");
    for tls in [false, true] {
        let origin = origin(tls).await;
        let gate = Gate::start().await;
        let clients = PYTHON.iter().chain(tls.then_some(&"httpx-h2"));
        for client in clients {
            let allowed = python(client, &gate, &origin.url("/x")).await;
            assert_eq!(allowed["body"], "Hello, bot.\n", "{client}: {allowed}");
            assert_eq!(allowed["status"], 200, "{client}: {allowed}");

            let refused = python(client, &gate, &origin.url("/private/x")).await;
            assert_eq!(refused["status"], 403, "{client}: {refused}");
            let decision = refused["decision"].as_str().unwrap_or_default();
            assert!(
                decision.starts_with("deny; reason=rule; line=2; "),
                "{client}: {refused}"
            );
            if *client != "httpx-h2" {
                // HTTP/2 has no reason phrases.
                assert_eq!(refused["reason"], "Disallowed by robots.txt", "{client}: {refused}");
            }
        }
    }
}

#[tokio::test]
async fn python_clients_show_why_a_connect_is_refused() {
    needs!("python3-requests", "python3-httpx", "python3-aiohttp");
    let origin = origin(true).await;
    let gate = Gate::with("[https]\nmode = \"refuse\"").await;

    for client in PYTHON {
        // In this mode there is no authority, so use any certificate.
        let ca = gate.file("origin-ca.pem").display().to_string();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/real_clients/ask.py");
        let shown = output(
            "/usr/bin/python3",
            &[script, client, &proxy(&gate), &ca, &origin.url("/x")],
        )
        .await;
        assert!(shown.contains(CONNECT_REFUSED), "{client}: {shown}");
    }
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn curl_gets_the_page_or_the_reason_in_every_version_of_http() {
    needs!("curl");
    for (tls, version) in [
        (false, "--http1.0"),
        (false, "--http1.1"),
        (true, "--http1.1"),
        (true, "--http2"),
    ] {
        let origin = origin(tls).await;
        let gate = Gate::start().await;
        let (proxy, ca) = (proxy(&gate), ca(&gate));
        let curl = async |path: &str| {
            let url = origin.url(path);
            let arguments = [
                "-sS",
                "-i",
                version,
                "-x",
                &proxy,
                "--cacert",
                &ca,
                "-A",
                "TestBot/1.0",
                &url,
            ];
            output("curl", &arguments).await
        };

        let allowed = curl("/x").await;
        assert!(allowed.ends_with("\r\n\r\nHello, bot.\n"), "{version}: {allowed}");

        let refused = curl("/private/x").await.to_ascii_lowercase();
        assert!(
            refused.contains("robots-decision: deny; reason=rule; line=2;"),
            "{version}: {refused}"
        );
        assert!(
            refused.contains("content-type: application/problem+json"),
            "{version}: {refused}"
        );
        assert!(refused.contains(" 403 "), "{version}: {refused}");
    }
}

#[tokio::test]
async fn wget_gets_the_page_or_the_reason() {
    needs!("wget");
    for tls in [false, true] {
        let origin = origin(tls).await;
        let gate = Gate::start().await;
        let (settings, ca) = (proxy(&gate), format!("--ca-certificate={}", ca(&gate)));
        let (http, https) = (format!("http_proxy={settings}"), format!("https_proxy={settings}"));
        let wget = async |path: &str| {
            let url = origin.url(path);
            let arguments = [
                "-nv",
                "-O-",
                "-t1",
                "-T20",
                &ca,
                "-e",
                &http,
                "-e",
                &https,
                "-U",
                "TestBot/1.0",
                &url,
            ];
            output("wget", &arguments).await
        };

        let allowed = wget("/x").await;
        assert!(allowed.starts_with("Hello, bot.\n"), "{allowed}");
        let refused = wget("/private/x").await;
        assert!(refused.contains("403: Disallowed by robots.txt"), "{refused}");
    }
}

#[tokio::test]
async fn python_clients_send_credentials_and_show_if_they_are_wrong() {
    needs!("python3-requests", "python3-httpx", "python3-aiohttp");
    for tls in [false, true] {
        let origin = origin(tls).await;
        let (gate, good, wrong) = bound().await;
        for client in PYTHON {
            let page = python_by(client, &good, &gate, &origin.url("/x")).await;
            assert_eq!(
                (&page["status"], &page["body"]),
                (&200.into(), &"Hello, bot.\n".into()),
                "{client}: {page}"
            );
            let none = proxy(&gate);
            for settings in [&wrong, &none] {
                let printed = python_by(client, settings, &gate, &origin.url("/x")).await.to_string();
                assert!(
                    printed.contains("407") && printed.contains("Authentication Required"),
                    "{client}: {printed}"
                );
            }
        }
    }
}

#[tokio::test]
async fn curl_sends_credentials_immediately_or_after_a_407() {
    needs!("curl");
    for tls in [false, true] {
        let origin = origin(tls).await;
        let (gate, good, wrong) = bound().await;
        let none = proxy(&gate);
        let curl = async |settings: &str, more: &[&str]| {
            let (ca, url) = (ca(&gate), origin.url("/x"));
            let arguments = ["-sS", "-x", settings, "--cacert", &ca, "-A", "TestBot/1.0", &url];
            output("curl", &[&arguments, more].concat()).await
        };
        for more in [&[][..], &["--proxy-anyauth"], &["--proxy-basic"]] {
            assert_eq!(curl(&good, more).await, "Hello, bot.\n", "{more:?}");
        }
        let user = ["--proxy-user", "TestBot:open_sesame-open_sesame", "--proxy-anyauth"];
        assert_eq!(curl(&none, &user).await, "Hello, bot.\n");

        for settings in [&wrong, &none] {
            for more in [&["-i"][..], &["-i", "--proxy-anyauth"]] {
                let printed = curl(settings, more).await;
                assert!(
                    printed.contains("407") && !printed.contains("Hello"),
                    "{more:?}: {printed}"
                );
            }
        }
    }
}

#[tokio::test]
async fn wget_sends_credentials() {
    needs!("wget");
    for tls in [false, true] {
        let origin = origin(tls).await;
        let (gate, good, wrong) = bound().await;
        for (settings, shown) in [(&good, "Hello, bot.\n"), (&wrong, "Proxy Authentication Required")] {
            let (http, https) = (format!("http_proxy={settings}"), format!("https_proxy={settings}"));
            let trust = format!("--ca-certificate={}", ca(&gate));
            let url = origin.url("/x");
            let arguments = [
                "-nv",
                "-O-",
                "-t1",
                "-T20",
                &trust,
                "-e",
                &http,
                "-e",
                &https,
                "-U",
                "TestBot/1.0",
                &url,
            ];
            let printed = output("wget", &arguments).await;
            assert!(printed.contains(shown), "{printed}");
        }
    }
}
