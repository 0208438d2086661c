//! `robotgate env`: what it prints is given to a shell, and a real client then goes through the gate with no setting
//! beside it.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use tokio::process::Command;

use crate::support::{Gate, Origin, Told};

/// What is printed for a client of this gate, whose folder has a space in its name for the client.
async fn settings(gate: &Gate, client: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("it's a ca.pem");
    fs::copy(gate.file("ca.pem"), &ca).unwrap();
    let (proxy, ca) = (format!("http://{}", gate.address()), ca.display().to_string());
    let told = Told::by(&["env", client, "--proxy", &proxy, "--ca", &ca], "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    (folder, told.out)
}

/// What a shell prints that was given the settings and then a line of its own.
async fn shell(gate: &Gate, client: &str, line: &str) -> String {
    let (home, settings) = settings(gate, client).await;
    let run = Command::new("sh")
        .args(["-c", &format!("{settings}\n{line}")])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output();
    let output = run.await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// That this line, behind the settings for the client, gets a page of an `https://` site.
async fn gets_the_page(client: &str, line: &str) {
    let origin = Origin::start().page("/x.txt", "Hello, bot.\n").tls().spawn().await;
    let gate = Gate::with("[identity]\nunidentified = \"wildcard\"").await;
    let shown = shell(&gate, client, &line.replace("@URL@", &origin.url("/x.txt"))).await;
    assert!(shown.contains("Hello, bot."), "{client}: {shown}");
    assert!(gate.log().iter().all(|line| line.field("fix").is_none()));
}

#[tokio::test]
async fn curl_and_wget_go_through() {
    gets_the_page("curl", "curl -sS @URL@").await;
    gets_the_page("wget", "wget -nv -t1 -O- @URL@").await;
}

#[tokio::test]
async fn python_goes_through() {
    for script in [
        "import requests, sys; print(requests.get(sys.argv[1]).text)",
        "import httpx, sys; print(httpx.get(sys.argv[1]).text)",
        "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1]).read())",
        "import aiohttp, asyncio, sys
async def ask():
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.get(sys.argv[1]) as response:
            print(await response.text())
asyncio.run(ask())",
    ] {
        gets_the_page("python", &format!("python3 -c '{script}' @URL@")).await;
    }
}

#[tokio::test]
#[ignore = "needs a Java development kit"]
async fn java_goes_through() {
    let program = r#"import java.net.*; import java.net.http.*;
public class A { public static void main(String[] a) throws Exception {
  if (a[1].equals("old")) System.out.write(new URL(a[0]).openStream().readAllBytes());
  else System.out.print(HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build()
    .send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body());
  System.out.flush(); } }"#;
    for api in ["old", "new"] {
        gets_the_page(
            "java",
            &format!("cat > A.java <<'END'\n{program}\nEND\njava A.java @URL@ {api}"),
        )
        .await;
    }
}

#[tokio::test]
#[ignore = "needs Chromium and certutil"]
async fn chromium_goes_through() {
    let line = "chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$HOME/profile\" --dump-dom @URL@";
    gets_the_page("chromium", line).await;
}

#[tokio::test]
async fn every_name_prints_something_and_a_wrong_one_is_told_the_nearest() {
    let list = Told::by(&["env"], "").await;
    assert_eq!(list.code, Some(0));
    for client in robotgate::trust::clients::all() {
        assert!(list.out.contains(&format!("  {} ", client.name)), "{}", list.out);
        for name in client.aliases.iter().chain([&client.name]) {
            let told = Told::by(&["env", name, "--proxy", "gate.example:3128"], "").await;
            assert_eq!(told.code, Some(0), "{name}: {told:?}");
            assert!(told.out.contains("gate.example"), "{name}: {}", told.out);
        }
    }
    let wrong = Told::by(&["env", "pyton"], "").await;
    assert_eq!(
        (wrong.code, wrong.errors.contains("'python'")),
        (Some(2), true),
        "{wrong:?}"
    );
    for bad in ["socks5://gate:1", "http://"] {
        let told = Told::by(&["env", "curl", "--proxy", bad], "").await;
        assert_eq!((told.code, told.errors.contains("proxy")), (Some(1), true), "{told:?}");
    }
}

#[tokio::test]
async fn the_configuration_says_where_the_proxy_is_and_whether_there_is_something_to_trust() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    let told = async |config: &str| {
        fs::write(&file, config).unwrap();
        Told::by(&["env", "curl", "--config", file.to_str().unwrap()], "").await
    };
    let own = told("[proxy]\nlisten = \"127.0.0.1:4000\"\n[https]\nca-certificate = \"ca.pem\"\nca-key = \"k\"").await;
    assert!(own.out.contains("https_proxy=http://127.0.0.1:4000"), "{}", own.out);
    assert!(own.out.contains("CURL_CA_BUNDLE="), "{}", own.out);
    assert!(own.errors.contains("is not there yet"), "{}", own.errors);

    fs::write(folder.path().join("ca.pem"), "").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let all = told("[proxy]\nlisten = \"0.0.0.0:4000\"\n[https]\nca-certificate = \"ca.pem\"\nca-key = \"k\"").await;
    assert!(!all.out.contains("http_proxy=http://0.0.0.0"), "{}", all.out);
    assert!(all.errors.contains("listens on all addresses"), "{}", all.errors);
    assert!(
        all.out.contains("other users of this machine cannot read"),
        "{}",
        all.out
    );

    let tunnel = told("[https]\nmode = \"tunnel\"").await;
    assert!(
        !tunnel.out.contains("CA_BUNDLE") && tunnel.out.contains("nothing to trust"),
        "{}",
        tunnel.out
    );

    let bound = "[identity]\ncredentials = \"c\"\nrequired = true\n[[bot]]\nname = \"A\"\nuser-agents = [\"A\"]";
    let bound = told(bound).await;
    assert!(bound.out.contains("NAME:SECRET@127.0.0.1:3128"), "{}", bound.out);
}
