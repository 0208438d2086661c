//! `robotgate env`: its output, the files that it writes, and whether real clients use the gate with these settings
//! alone.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use tokio::process::Command;

use crate::support::{CliOutput, Gate, Origin, ROBOTS, Reply, origin_root_pem, programs::needs};

/// Runs `robotgate env`. Returns a folder that contains the CA file, and the output of the command. In `more`, `@DIR@`
/// is the path of a subfolder.
async fn settings(gate: &Gate, client: &str, more: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("it's a ca.pem");
    // Without interception there is no authority, so use any other certificate.
    let ca_file = Some(gate.file("ca.pem")).filter(|path| path.exists());
    fs::copy(ca_file.unwrap_or_else(|| gate.file("origin-ca.pem")), &ca).unwrap();
    let (proxy, ca) = (format!("http://{}", gate.address()), ca.display().to_string());
    let files = folder.path().join("files").display().to_string();
    let more: Vec<_> = more.iter().map(|text| text.replace("@DIR@", &files)).collect();
    let arguments = ["env", client, "--proxy", &proxy, "--ca", &ca].into_iter();
    let arguments: Vec<_> = arguments.chain(more.iter().map(String::as_str)).collect();
    let output = CliOutput::of(&arguments, "").await;
    assert_eq!(output.code, Some(0), "{output:?}");
    (folder, output.out)
}

/// Evaluates the settings and then `line` in a shell, and returns the output.
async fn shell(gate: &Gate, client: &str, more: &[&str], line: &str) -> String {
    let (home, settings) = settings(gate, client, more).await;
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

/// Asserts that this line, after the settings for the client, gets a page of an `https://` site through the gate.
async fn gets_the_page(client: &str, line: &str) {
    gets_the_page_with(client, &[], line).await;
}

/// Does the same as [`gets_the_page`], with the settings of `--write`. The command `timeout` runs the line, so shell
/// functions do not work in it.
async fn gets_the_page_by_files(client: &str, line: &str) {
    gets_the_page_with(client, &["--write", "@DIR@"], &format!("timeout 60 {line}")).await;
}

async fn gets_the_page_with(client: &str, more: &[&str], line: &str) {
    let origin = Origin::start().page("/x.txt", "Hello, bot.\n").tls().spawn().await;
    let gate = Gate::with("[identity]\nunidentified = \"wildcard\"").await;
    let shown = shell(&gate, client, more, &line.replace("@URL@", &origin.url("/x.txt"))).await;
    assert!(shown.contains("Hello, bot."), "{client}: {shown}");
    assert!(gate.log().iter().all(|line| line.field("fix").is_none()));
    let records = gate.audit();
    let decided = records
        .iter()
        .any(|record| record["event"] == "decision" && record["url"] == origin.url("/x.txt"));
    assert!(decided, "{client} went around the gate: {records:#?}");
}

#[tokio::test]
async fn curl_and_wget_get_the_page_with_their_settings() {
    needs!("curl", "wget");
    gets_the_page("curl", "curl -sS @URL@").await;
    gets_the_page("wget", "wget -nv -t1 -O- @URL@").await;
}

#[tokio::test]
async fn python_gets_the_page_with_its_settings() {
    needs!("python3-requests", "python3-httpx", "python3-aiohttp");
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
async fn clients_get_the_page_with_settings_from_files() {
    needs!("curl", "wget", "python3-requests");
    gets_the_page_by_files("curl", "curl -sS @URL@").await;
    gets_the_page_by_files("wget", "wget -nv -t1 -O- @URL@").await;
    let script = "import requests, sys; print(requests.get(sys.argv[1]).text)";
    gets_the_page_by_files("python", &format!("python3 -c '{script}' @URL@")).await;
}

#[tokio::test]
async fn an_older_node_refuses_to_run_without_the_preloaded_script() {
    needs!("node");
    let origin = Origin::start().page("/x.txt", "Hello, bot.\n").spawn().await;
    let gate = Gate::with("[identity]\nunidentified = \"wildcard\"").await;
    let script = "fetch(process.argv[1]).then(async (page) => console.log(await page.text()))";
    // `timeout` starts Node itself, without the shell function from the settings.
    let line = format!("timeout 60 node -e '{script}' {}", origin.url("/x.txt"));
    let shown = shell(&gate, "node", &[], &line).await;
    if shown.contains("Hello, bot.") {
        // This version of Node supports `--use-env-proxy`.
        assert_eq!(decisions(&gate, &origin.url("/x.txt")), 1, "{shown}");
        return;
    }
    assert!(
        shown.contains("--use-env-proxy is not allowed in NODE_OPTIONS"),
        "{shown}"
    );
    assert!(
        shown.contains("To correct that: eval \"$(robotgate env --proxy "),
        "{shown}"
    );
    assert_eq!(origin.connections(), 0, "it went around the gate");

    // If the same shell then evaluates the settings with files, they undo the earlier ones.
    let (_folder, files) = settings(&gate, "node", &["--write", "@DIR@"]).await;
    let shown = shell(&gate, "node", &[], &format!("{files}\n{line}")).await;
    assert!(shown.contains("Hello, bot."), "{shown}");
    assert_eq!(decisions(&gate, &origin.url("/x.txt")), 1, "{shown}");
}

#[tokio::test]
async fn an_older_node_gets_the_page_with_the_preloaded_script() {
    needs!("node");
    for script in [
        "fetch(process.argv[1]).then(async (page) => console.log(await page.text()))",
        "require(\"https\").get(process.argv[1], (page) => page.pipe(process.stdout))",
    ] {
        gets_the_page_by_files("node", &format!("node -e '{script}' @URL@")).await;
    }
}

#[tokio::test]
async fn php_streams_get_the_page_with_their_settings() {
    needs!("php");
    gets_the_page_by_files(
        "php",
        "sh -c 'echo \"<?php readfile(\\$argv[1]);\" > a.php; php a.php @URL@'",
    )
    .await;
}

#[tokio::test]
async fn only_files_that_env_wrote_are_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let gate = Gate::start().await;
    let certificate = fs::read_to_string(gate.file("ca.pem")).unwrap();
    let block = &certificate[certificate.find("-----BEGIN").unwrap()..];
    let block = block.trim_end().replace("\r", "");
    let key = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    fs::write(at("authority.pem"), format!("{key}{certificate}")).unwrap();
    let (ca, files) = (
        at("authority.pem").display().to_string(),
        at("files").display().to_string(),
    );
    let arguments = ["env", "wget", "--ca", &ca, "--write", &files];
    for _ in 0..2 {
        let output = CliOutput::of(&arguments, "").await;
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(
            output.out.contains(&format!("export WGETRC={files}/wgetrc")),
            "{}",
            output.out
        );
        let roots = fs::read_to_string(at("files/roots.pem")).unwrap();
        assert!(roots.contains(&block) && roots.matches("BEGIN").count() > 1, "{roots}");
        assert!(!roots.contains("PRIVATE KEY"), "every user may read it");
        assert_eq!(
            fs::metadata(at("files/wgetrc")).unwrap().permissions().mode() & 0o777,
            0o644
        );
    }
    fs::write(at("files/wgetrc"), "mine").unwrap();
    let output = CliOutput::of(&arguments, "").await;
    assert_eq!((output.code, output.out.as_str()), (Some(1), ""), "{output:?}");
    assert!(
        output
            .errors
            .contains("wgetrc exists, and robotgate env did not write it"),
        "{output:?}"
    );
    assert_eq!(fs::read_to_string(at("files/wgetrc")).unwrap(), "mine");

    // The files for these clients contain the authority in different forms.
    let none = at("none.pem").display().to_string();
    for (contents, why) in [
        ("garbage", "contains no certificate"),
        (
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "cannot be read: line 2 is not base64",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
            "cannot be used: the certificate at line 1 is damaged",
        ),
    ] {
        fs::write(&none, contents).unwrap();
        for client in ["wget", "curl", "java", "node", "docker"] {
            let files = at("none").display().to_string();
            let output = CliOutput::of(&["env", client, "--ca", &none, "--write", &files], "").await;
            assert_eq!(
                (output.code, output.out.as_str()),
                (Some(1), ""),
                "{client}: {output:?}"
            );
            assert!(
                output.errors.contains(&format!("{none} ")) && output.errors.contains(why),
                "{client}: {output:?}"
            );
            assert!(!at("none").exists(), "{client}: nothing is written");
        }
    }

    let output = CliOutput::of(&["env", "wget", "--ca", "/nowhere.pem", "--write", &files], "").await;
    assert!(
        output.code == Some(1) && output.errors.contains("/nowhere.pem does not exist"),
        "{output:?}"
    );
}

#[tokio::test]
async fn only_settings_that_a_shell_can_evaluate_come_with_the_eval_command() {
    let gate = Gate::start().await;
    let ca = gate.file("ca.pem").display().to_string();
    for (client, has_settings) in [("curl", true), ("docker", false)] {
        let output = CliOutput::of(&["env", client, "--ca", &ca], "").await;
        let first = output.out.lines().next().unwrap_or_default();
        assert_eq!(first.contains("eval"), has_settings, "{first}");
        let settings = output
            .out
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(settings.count() > 0, has_settings, "{}", output.out);
    }
}

#[tokio::test]
async fn scrapy_logs_why_it_was_refused_and_does_not_retry() {
    needs!("python3-scrapy");
    let origin = Origin::start()
        .robots(ROBOTS)
        .page("/x.txt", "Hello, bot.\n")
        .tls()
        .spawn()
        .await;
    let gate = Gate::start().await;
    let (allowed, refused) = (origin.url("/x.txt"), origin.url("/private/x"));
    let shown = crawl(&gate, &format!("{allowed} {refused}")).await;
    assert!(shown.contains("Hello, bot."), "{shown}");
    let refusal = format!("robotgate refused {refused}: deny; reason=rule; line=2");
    assert!(
        shown.contains(&refusal) && shown.contains("'robotgate/refused/rule': 1"),
        "{shown}"
    );
    assert_eq!(decisions(&gate, &refused), 1, "{:#?}", gate.audit());
}

#[tokio::test]
async fn scrapy_retries_temporary_refusals_but_no_refused_connect() {
    needs!("python3-scrapy");
    let refusing = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .tls()
        .spawn()
        .await;
    let broken = Origin::start()
        .reply("/robots.txt", Reply::status(503))
        .tls()
        .spawn()
        .await;
    let statuses = "[refusals]\nstatus = 451\nunreachable-status = 503\n";

    let gate = Gate::with(statuses).await;
    let shown = crawl(&gate, &broken.url("/x")).await;
    assert!(shown.contains("'retry/count': 2"), "{shown}");
    assert!(!shown.contains("robotgate refused"), "{shown}");
    assert_eq!(decisions(&gate, &broken.url("/x")), 3, "{:#?}", gate.audit());

    // Scrapy sends no User-Agent in a CONNECT.
    let tunnel = "[https]\nmode = \"tunnel\"\n[identity]\nunidentified = \"wildcard\"";
    let gate = Gate::with(&format!("{statuses}{tunnel}")).await;
    for (origin, status) in [(&refusing, 451), (&broken, 503)] {
        let shown = crawl(&gate, &origin.url("/x")).await;
        let refusal = format!("[{{'status': {status}, 'reason': b'Disallowed");
        assert!(
            shown.contains(&refusal) && shown.contains("'robotgate/refused/connect': 1"),
            "{shown}"
        );
        assert!(!shown.contains("retry/count"), "{shown}");
    }
}

#[tokio::test]
async fn scrapy_waits_for_its_turn_and_gives_up_no_page() {
    needs!("python3-scrapy");
    let pages = ["/1", "/2", "/3", "/4", "/5"];
    let origin = Origin::start().robots("").anything("Hello, bot.\n").spawn().await;
    let gate = Gate::with("[pace]\ndelay = \"1s\"\nmax-wait = \"0s\"\n").await;
    let shown = crawl(&gate, &pages.map(|page| origin.url(page)).join(" ")).await;
    assert_eq!(shown.matches("Hello, bot.").count(), pages.len(), "{shown}");
    assert!(
        shown.contains("'robotgate/deferred'") && !shown.contains("retry/count"),
        "{shown}"
    );
    // If Scrapy waits as long as the response says, it asks for each deferred page at most once a second.
    let asked: usize = pages.iter().map(|page| decisions(&gate, &origin.url(page))).sum();
    assert!(asked <= 40, "{asked}");
}

fn decisions(gate: &Gate, url: &str) -> usize {
    let records = gate.audit();
    let is_it = |record: &&serde_json::Value| record["event"] == "decision" && record["url"] == url;
    records.iter().filter(is_it).count()
}

/// Returns Scrapy's log after it has requested these URLs, separated by spaces, with the middleware.
async fn crawl(gate: &Gate, urls: &str) -> String {
    let spider = r#"import scrapy
class Spider(scrapy.Spider):
    name = "test"
    custom_settings = {
        "USER_AGENT": "TestBot/1.0", "ROBOTSTXT_OBEY": False, "RETRY_HTTP_CODES": [403, 503], "TELNETCONSOLE_ENABLED": False,
        "DOWNLOADER_MIDDLEWARES": {"scrapy_robotgate.RobotgateMiddleware": 560},
    }
    def start_requests(self):
        for url in self.urls.split():
            yield scrapy.Request(url, errback=lambda failure: print("failed:", failure.value))
    def parse(self, response):
        print(response.text)
"#;
    let line = format!("cat > a.py <<'END'\n{spider}\nEND\nscrapy runspider a.py -a urls='{urls}'");
    shell(gate, "scrapy", &["--write", "@DIR@"], &line).await
}

/// Calls the hooks in the same way as Crawlee does, but without Crawlee (`npm install @crawlee/cheerio`).
#[tokio::test]
async fn crawlees_hooks_stop_only_at_a_refusal_and_name_the_bot() {
    needs!("node");
    let script = r#"
const { refusal, stopAtRefusal, nameBot } = await import(process.argv[1]);
const seen = [];
const log = { warning: (text) => seen.push(text) };
for (const decision of [undefined, "allow; reason=no-rule", "deny; reason=rule; enforcement=report"]) {
  stopAtRefusal({ request: {}, response: { headers: { "robots-decision": decision } }, log });
}
const request = { url: "https://a.test/x" };
for (const headers of [{ "robots-decision": "deny; reason=rule; line=2" }, () => ({ "robots-decision": "deny; reason=egress" })]) {
  try { stopAtRefusal({ request, response: { headers }, log }); } catch (error) { seen.push(error.message, request.noRetry); }
}
const passing = {};
try {
  stopAtRefusal({ request: passing, response: { headers: { "robots-decision": "deny; reason=unreachable" } }, log: { warning() {} } });
} catch (error) { seen.push(passing.noRetry ?? "again"); }
const options = { headers: { accept: "a/b" } };
nameBot("TestBot/1.0")({}, options);
console.log(JSON.stringify([seen, options, refusal("unverifiable; reason=unverifiable")]));
"#;
    let hooks = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/clients/crawlee_robotgate.mjs");
    let run = Command::new("node")
        .args(["--input-type=module", "-e", script, hooks])
        .output();
    let output = run.await.unwrap();
    let first = "robotgate refused https://a.test/x: deny; reason=rule; line=2";
    let second = "robotgate refused https://a.test/x: deny; reason=egress";
    let expected = serde_json::json!([
        [first, first, true, second, second, true, "again"],
        { "headers": { "accept": "a/b", "user-agent": "TestBot/1.0" }, "useHeaderGenerator": false },
        "unverifiable",
    ]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn clients_that_ignore_a_secret_in_the_url_get_it_separately() {
    let proxy = "http://acme:open-sesame@gate.example:3128";
    for (client, expected) in [
        (
            "java",
            r#"new PasswordAuthentication("acme", "open-sesame".toCharArray())"#,
        ),
        ("java", "-Djdk.http.auth.tunneling.disabledSchemes="),
        ("playwright", r#"username: "acme", password: "open-sesame""#),
        (
            "puppeteer",
            r#"page.authenticate({ username: "acme", password: "open-sesame" })"#,
        ),
        ("selenium", "Browsers ignore a secret in the proxy's address"),
    ] {
        let output = CliOutput::of(&["env", client, "--proxy", proxy], "").await;
        assert!(output.out.contains(expected), "{client}: {}", output.out);
    }
}

#[tokio::test]
#[ignore = "needs a Java development kit"]
async fn java_gets_the_page_with_its_settings() {
    let program = r#"import java.net.*; import java.net.http.*;
public class A { public static void main(String[] a) throws Exception {
  if (a[1].equals("old")) System.out.write(new URL(a[0]).openStream().readAllBytes());
  else System.out.print(HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build()
    .send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body());
  System.out.flush(); } }"#;
    for api in ["old", "new"] {
        let line = format!("cat > A.java <<'END'\n{program}\nEND\njava -Dhttp.nonProxyHosts= A.java @URL@ {api}");
        gets_the_page("java", &line).await;
        gets_the_page_with("java", &["--write", "@DIR@"], &line).await;
    }
}

#[tokio::test]
#[ignore = "needs Chromium and certutil"]
async fn chromium_gets_the_page_with_its_settings() {
    needs!("chromium");
    let options =
        "--headless --no-sandbox --disable-gpu --proxy-bypass-list='<-loopback>' --user-data-dir=\"$HOME/profile\"";
    gets_the_page("chromium", &format!("chromium {options} --dump-dom @URL@")).await;
    gets_the_page_by_files(
        "chromium",
        &format!("files/robotgate-chromium {options} --dump-dom @URL@"),
    )
    .await;
}

#[tokio::test]
async fn advice_repeats_the_given_options() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (config, ca) = (at("it's a gate.toml"), at("ca.pem"));
    fs::write(&config, "# All defaults.\n").unwrap();
    let shown = format!("--config '{}'", config.replace('\'', r"'\''"));
    let output = CliOutput::of(
        &["env", "curl", "--config", &config, "--ca", &ca, "--proxy", "gate:1"],
        "",
    )
    .await;
    let eval = format!("eval \"$(robotgate env {shown} --proxy gate:1 --ca {ca} curl)\"\n");
    assert!(
        output.out.starts_with('#') && output.out.contains(&eval),
        "{}",
        output.out
    );
    assert!(
        output
            .errors
            .contains(&format!("robotgate ca export {shown} > robotgate-ca.pem")),
        "{}",
        output.errors
    );

    let files = at("files");
    let output = CliOutput::of(
        &["env", "macos", "--config", &config, "--ca", &ca, "--write", &files],
        "",
    )
    .await;
    let export = format!("robotgate ca export {shown} > robotgate-ca.pem");
    assert!(output.code == Some(1) && output.errors.contains(&export), "{output:?}");

    // The script can print advice, which must not contain the secret because it could be logged.
    let secret = "http://acme:open-sesame@gate:1";
    let output = CliOutput::of(&["env", "node", "--config", &config, "--proxy", secret], "").await;
    let script = output.out.clone() + "\n:";
    let run = Command::new("sh")
        .args(["-euc", &script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output();
    let output = run.await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let masked = format!("eval \"$(robotgate env {shown} --proxy http://NAME:SECRET@HOST:PORT --write DIR node)\"");
    assert!(errors.contains(&masked) && !errors.contains("open-sesame"), "{errors}");

    // A line break in an option must not end the comment.
    let output = CliOutput::of(&["env", "curl", "--proxy", "http://a\nexit:1"], "").await;
    assert!(output.code == Some(0) && !output.out.contains("\nexit"), "{output:?}");
}

#[tokio::test]
async fn existing_environment_variables_are_extended() {
    let gate = Gate::start().await;
    for (client, name, before, after) in [
        ("scrapy", "PYTHONPATH", "/a b", "@DIR@:/a b"),
        (
            "node",
            "NODE_OPTIONS",
            "--no-warnings",
            "--no-warnings --require=@DIR@/robotgate-node.cjs",
        ),
        ("php", "PHP_INI_SCAN_DIR", "/a b", "/a b:@DIR@/php"),
    ] {
        let (home, text) = settings(&gate, client, &["--write", "@DIR@"]).await;
        let file = home.path().join("client.env");
        fs::write(&file, text).unwrap();
        let run = async |before: Option<&str>| {
            let line = format!(". {}; printf %s \"${name}\"", file.display());
            let mut command = Command::new("sh");
            command.args(["-euc", &line]).env_clear().env("PATH", "/usr/bin:/bin");
            before.map(|before| command.env(name, before));
            let output = command.output().await.unwrap();
            assert!(output.status.success(), "{client}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let files = home.path().join("files").display().to_string();
        assert_eq!(run(Some(before)).await, after.replace("@DIR@", &files), "{client}");
        assert!(run(None).await.contains(&files), "{client}");
    }
}

#[tokio::test]
async fn every_client_has_settings_and_a_wrong_name_gets_a_suggestion() {
    let list = CliOutput::of(&["env"], "").await;
    assert_eq!(list.code, Some(0));
    for client in robotgate::trust::clients::all() {
        assert!(list.out.contains(&format!("  {} ", client.name)), "{}", list.out);
        for name in client.aliases.iter().chain([&client.name]) {
            let output = CliOutput::of(&["env", name, "--proxy", "gate.example:3128"], "").await;
            assert_eq!(output.code, Some(0), "{name}: {output:?}");
            assert!(output.out.contains("gate.example"), "{name}: {}", output.out);
        }
    }
    let wrong = CliOutput::of(&["env", "pyton"], "").await;
    assert_eq!(
        (wrong.code, wrong.errors.contains("'python'")),
        (Some(2), true),
        "{wrong:?}"
    );
    let unknown = CliOutput::of(&["env", "nosuch"], "").await;
    assert!(unknown.errors.contains("lists all clients"), "{unknown:?}");
    assert!(!unknown.errors.contains("firefox"), "{unknown:?}");
    for bad in ["socks5://gate:1", "http://"] {
        let output = CliOutput::of(&["env", "curl", "--proxy", bad], "").await;
        assert_eq!(
            (output.code, output.errors.contains("proxy")),
            (Some(1), true),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn env_reads_the_proxy_and_the_authority_from_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    let with_config = async |config: &str| {
        fs::write(&file, config).unwrap();
        CliOutput::of(&["env", "curl", "--config", file.to_str().unwrap()], "").await
    };
    let generated =
        with_config("[proxy]\nlisten = \"127.0.0.1:4000\"\n[https]\nca-certificate = \"ca.pem\"\nca-key = \"k\"").await;
    assert!(
        generated.out.contains("https_proxy=http://127.0.0.1:4000"),
        "{}",
        generated.out
    );
    assert!(generated.out.contains("CURL_CA_BUNDLE="), "{}", generated.out);
    assert!(
        generated
            .errors
            .contains("does not exist. If you have not started robotgate yet"),
        "{}",
        generated.errors
    );

    fs::write(folder.path().join("ca.pem"), "").unwrap();
    let empty = with_config("[https]\nca-certificate = \"ca.pem\"\nca-key = \"k\"").await;
    assert!(empty.errors.contains("ca.pem contains no certificate"), "{empty:?}");
    assert_eq!((empty.code, &*empty.out), (Some(1), ""));

    fs::write(folder.path().join("ca.pem"), origin_root_pem()).unwrap();
    fs::set_permissions(folder.path().join("ca.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let all =
        with_config("[proxy]\nlisten = \"0.0.0.0:4000\"\n[https]\nca-certificate = \"ca.pem\"\nca-key = \"k\"").await;
    assert!(!all.out.contains("http_proxy=http://0.0.0.0"), "{}", all.out);
    assert!(all.errors.contains("listens on all addresses"), "{}", all.errors);
    let ca = folder.path().join("ca.pem");
    let note = format!(
        "# NOTE: You can use these settings as they are. For bots of other users, who cannot read {}, make a copy (robotgate ca export --config {} > robotgate-ca.pem), and run robotgate env with --ca robotgate-ca.pem",
        ca.display(),
        file.display()
    );
    assert!(all.out.contains(&note), "{}", all.out);
    assert!(!all.errors.contains("cannot read"), "it is no error: {}", all.errors);
    fs::set_permissions(&ca, fs::Permissions::from_mode(0o600)).unwrap();
    let mine = CliOutput::of(&["env", "curl", "--ca", ca.to_str().unwrap()], "").await;
    let note = format!(
        "# NOTE: You can use these settings as they are. For bots of other users, who cannot read {0}, make a copy (cp {0} robotgate-ca.pem), and run robotgate env with --ca robotgate-ca.pem\n",
        ca.display()
    );
    assert!(mine.out.contains(&note), "{}", mine.out);

    let tunnel = with_config("[https]\nmode = \"tunnel\"").await;
    assert!(
        !tunnel.out.contains("CA_BUNDLE") && tunnel.out.contains("no authority to trust"),
        "{}",
        tunnel.out
    );

    let bound = "[identity]\ncredentials = \"c\"\nrequired = true\n[[bot]]\nname = \"A\"\nuser-agents = [\"A\"]";
    let bound = with_config(bound).await;
    assert!(bound.out.contains("NAME:SECRET@127.0.0.1:3128"), "{}", bound.out);
    // Without a credentials file, the proof is a certificate or an address.
    let by_address =
        "[identity]\nrequired = true\n[[bot]]\nname = \"A\"\nuser-agents = [\"A\"]\nnetworks = [\"10.0.0.0/8\"]";
    let by_address = with_config(by_address).await;
    assert!(!by_address.out.contains("credential"), "{}", by_address.out);
}

#[tokio::test]
async fn env_warns_that_a_set_no_proxy_bypasses_the_proxy() {
    let gate = Gate::start().await;
    let (proxy, ca) = (format!("http://{}", gate.address()), gate.file("ca.pem"));
    let command = |hosts: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_robotgate"));
        command.args(["env", "curl", "--proxy", &proxy, "--ca", &ca.display().to_string()]);
        command.env_remove("no_proxy").env("NO_PROXY", hosts);
        command
    };
    for (hosts, is_noted) in [("", false), ("127.0.0.1,.corp", true)] {
        let output = command(hosts).output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let note = "no_proxy is set here, so most clients bypass the proxy for 127.0.0.1,.corp.";
        assert_eq!(errors.contains(note), is_noted, "{errors}");
    }
}
