//! lint with a URL: the fetch and its result, and sites without a robots.txt.

use serde_json::Value;

use crate::support::{CliOutput, Gate, Origin, Reply};

async fn lint(gate: &Gate, url: &str, more: &[&str]) -> CliOutput {
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    CliOutput::of(&[&["lint", url, "--config", config], more].concat(), "").await
}

#[tokio::test]
async fn any_url_of_a_site_names_its_robots_txt_and_redirects_are_shown() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::status(301).header("Location", "/a?b=c"))
        .reply("/a", Reply::redirect("/end"))
        .reply("/end", Reply::gzip(b"User-agent: *\nDisallow: private\n"))
        .spawn()
        .await;
    let gate = Gate::start().await;
    let expected = "\
Fetched:
  301  http://shop.example:PORT/robots.txt
  302  http://shop.example:PORT/a?b=c
  200  http://shop.example:PORT/end
  32 bytes in TIME s
  valid for 24 h

http://shop.example:PORT/robots.txt:2: error: Paths begin with `/`, so `private` never matches: begin it with `/`, \
or with `*` if it may stand anywhere in the path. [no-leading-slash]
     2 | Disallow: private

http://shop.example:PORT/robots.txt: 1 error
";
    for path in ["", "/", "/any/page?q=1", "/robots.txt"] {
        let output = lint(&gate, &origin.url(path), &[]).await;
        assert_eq!(
            (&*output.masked(&origin), output.code),
            (expected, Some(1)),
            "{path}: {output:?}"
        );
    }
    assert_eq!((origin.count("/robots.txt"), origin.count("/any/page")), (4, 0));

    let output = lint(&gate, &origin.url("/any/page"), &["--json"]).await;
    let report: Value = serde_json::from_str(&output.out).expect("one object");
    assert_eq!(report["source"], origin.url("/robots.txt"));
    assert_eq!(report["findings"][0]["code"], "no-leading-slash");
    let fetch = &report["fetch"];
    assert_eq!((&fetch["status"], &fetch["bytes"]), (&200.into(), &32.into()));
    assert_eq!(fetch["redirects"][0]["status"], 301);
    assert_eq!(fetch["redirects"][1]["to"], origin.url("/end"));
    assert_eq!(report["absent"], Value::Null);
}

#[tokio::test]
async fn a_site_without_a_robots_txt_has_no_findings() {
    let origin = Origin::start().spawn().await;
    let gate = Gate::start().await;
    let output = lint(&gate, &origin.url("/page"), &[]).await;
    let expected = "\
Fetched:
  404  http://shop.example:PORT/robots.txt
  answered in TIME s
  valid for 1 h

http://shop.example:PORT/robots.txt: the site has no robots.txt: everything is allowed
";
    assert_eq!(
        (&*output.masked(&origin), output.code),
        (expected, Some(0)),
        "{output:?}"
    );

    let output = lint(&gate, &origin.url("/page"), &["--json"]).await;
    let report: Value = serde_json::from_str(&output.out).expect("one object");
    assert_eq!(report["absent"], "the site has no robots.txt: everything is allowed");
    assert_eq!((&report["findings"], output.code), (&Value::Array(vec![]), Some(0)));
}

#[tokio::test]
async fn a_robots_txt_that_cannot_be_fetched_is_a_failure_with_its_reason() {
    for (reply, reason) in [
        (
            Reply::status(503),
            "the robots.txt cannot be fetched, so everything is disallowed: the server answered 503",
        ),
        (
            Reply::raw("nonsense\r\n\r\n"),
            "the robots.txt cannot be fetched, so everything is disallowed: ",
        ),
        (
            Reply::status(500).body("<h1>Page not found</h1>"),
            "the server answers 500 with a page that says there is no robots.txt: ",
        ),
        (
            Reply::redirect("/robots.txt"),
            "the robots.txt redirects in a circle, which is treated as no robots.txt: everything is allowed",
        ),
    ] {
        let origin = Origin::start().reply("/robots.txt", reply).spawn().await;
        let gate = Gate::start().await;
        let output = lint(&gate, &origin.url("/"), &[]).await;
        let last = output.out.lines().last().unwrap_or_default();
        let reason = format!("{}: {reason}", origin.url("/robots.txt"));
        assert!(last.starts_with(&reason), "{reason}\n{output:?}");
        assert!(
            last.len() > reason.len() || !last.ends_with(": "),
            "a reason: {output:?}"
        );
        assert_eq!((output.code, &*output.errors), (Some(1), ""));
    }
}

#[tokio::test]
async fn lint_says_that_the_fetch_cut_the_file() {
    let rule = b"Disallow: /abc/\n";
    let full = [&b"User-agent: *\n####\n"[..], &rule.repeat(500 * 1024 / rule.len())].concat();
    for (sent, line) in [(&full[..], Some(32_001)), (&full[..500 * 1024], None)] {
        for reply in [Reply::ok("text/plain", sent), Reply::gzip(sent)] {
            let origin = Origin::start().reply("/robots.txt", reply).spawn().await;
            let gate = Gate::start().await;
            let output = lint(&gate, &origin.url("/"), &["--json"]).await;
            let report: Value = serde_json::from_str(&output.out).expect("one object");
            let findings = report["findings"].as_array().expect("a list");
            let cut = findings.iter().find(|finding| finding["code"] == "too-large");
            assert_eq!(cut.and_then(|finding| finding["line"].as_i64()), line, "{cut:?}");
            // The finding shows the line that crosses the limit, as far as lint read it.
            assert_eq!(
                cut.map(|finding| finding["text"] == "Disallow: /abc/"),
                line.map(|_| true),
                "{cut:?}"
            );

            let output = lint(&gate, &origin.url("/"), &[]).await;
            let reason = output
                .out
                .contains("  the file is longer, but robotgate uses only its first 500 KiB\n");
            assert_eq!(reason, line.is_some(), "{}", &output.out[..500]);
        }
    }
}

#[tokio::test]
async fn lint_rejects_an_invalid_url() {
    let gate = Gate::start().await;
    for (url, reason) in [
        ("http://", "robotgate: http://: "),
        ("https://a b/", "robotgate: https://a b/: the URL is not valid: "),
    ] {
        let output = lint(&gate, url, &[]).await;
        assert!(output.errors.starts_with(reason), "{output:?}");
        assert_eq!((output.code, &*output.out), (Some(1), ""));
    }
    let output = lint(&gate, "https://shop.example/", &["--config", "nothing.toml"]).await;
    assert_eq!(output.code, Some(2), "two configurations: {output:?}");
}
