//! `robotgate lint`, with output for people and for programs.

mod live;

use std::{
    fs,
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// Runs lint in a folder that contains only `file`, named `robots.txt`. `file` is also the standard input.
fn lint(file: &[u8], arguments: &[&str]) -> (String, Output) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("robots.txt"), file).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_robotgate"))
        .arg("lint")
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // This fails if lint does not read its input.
    let _ = child.stdin.take().unwrap().write_all(file);
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout.clone()).unwrap(), output)
}

#[test]
fn findings_are_printed_with_their_lines() {
    let (text, output) = lint(
        b"User-agent: *\nDisallow: tmp/\n\nAllow: /shop\nDisallow: /shop\n",
        &["robots.txt"],
    );
    insta::assert_snapshot!(text, @r"
    robots.txt:2: error: Paths begin with `/`, so `tmp/` never matches: begin it with `/`, or with `*` if it may stand anywhere in the path. [no-leading-slash]
         2 | Disallow: tmp/

    robots.txt:5: warning: This rule never decides: `Allow: /shop` in line 4 matches every path that this rule matches, and wins ties, because it is an Allow. [shadowed-rule]
         5 | Disallow: /shop

    robots.txt: 1 error, 1 warning
    ");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_without_findings_has_exit_status_0() {
    let (text, output) = lint(b"User-agent: *\nDisallow: /a\n", &["robots.txt"]);
    assert_eq!(text, "robots.txt: nothing to remark\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_file_with_only_notes_has_exit_status_0() {
    let (text, output) = lint(b"User-agent: *\nDisallow: /a\nCrawl-delay: 1\n", &["-"]);
    assert!(text.starts_with("standard input:3: note: "), "{text}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn json_output_is_one_object() {
    let file = [&b"User-agent: *\n"[..], &b"Disallow: /a\x1b\n".repeat(50)].concat();
    let (text, output) = lint(&file, &["--json", "robots.txt"]);
    assert_eq!(text.matches('\n').count(), 1);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["source"], "robots.txt");
    assert_eq!(
        (&report["warnings"], &report["notes"]),
        (&Value::from(50), &Value::from(49))
    );
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 99);
    let last = &findings[98];
    assert_eq!(last["line"], 51);
    assert_eq!(last["severity"], "note");
    assert_eq!(last["code"], "duplicate-rule");
    assert_eq!(last["related"], 2);
    assert_eq!(last["text"], "Disallow: /a\\u{1b}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_finding_that_occurs_often_is_shown_ten_times() {
    let file = [&b"User-agent: *\nDisallow: /a\n"[..], &b"Disallow: b\n".repeat(330)].concat();
    let (text, _) = lint(&file, &["robots.txt"]);
    assert_eq!(text.matches("Paths begin with `/`").count(), 10);
    assert!(
        text.contains("robots.txt: error: 320 more in lines 13 to 332 (see --all) [no-leading-slash]\n"),
        "{text}"
    );
    assert!(text.ends_with("robots.txt: 330 errors\n"), "{text}");
    let (text, _) = lint(&file, &["--all", "robots.txt"]);
    assert_eq!(text.matches("Paths begin with `/`").count(), 330);
}

#[test]
fn notes_of_the_same_code_are_grouped_and_counted() {
    let file = b"User-agent: *\nDisallow: /a*\nDisallow: /b*\nHost: a\nCrawl-delay: 1\nDisallow: /c*\n";
    let (text, _) = lint(file, &["robots.txt"]);
    insta::assert_snapshot!(text, @r"
    robots.txt:2: note: A pattern matches every path that begins with it, with or without a `*` at the end. Needless characters only make the pattern longer, and of two patterns the longer wins. [useless-wildcard]
         2 | Disallow: /a*
           | … and 2 more in lines 3 to 6 (--all shows each)

    robots.txt:4: note: Google ignores `Host`, and so does robotgate; other crawlers may heed it. [ignored-key]
         4 | Host: a
           | … and 1 more in line 5 (--all shows each)

    robots.txt: 5 notes
    ");
    let (text, _) = lint(file, &["--all", "robots.txt"]);
    assert_eq!(text.matches("[useless-wildcard]").count(), 3, "{text}");
    assert!(!text.contains("more"), "{text}");
}

#[test]
fn json_output_has_every_finding_with_or_without_all() {
    let file = [&b"User-agent: *\n"[..], &b"Disallow: /a\n".repeat(50)].concat();
    let (every, output) = lint(&file, &["--all", "--json", "robots.txt"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(every, lint(&file, &["--json", "robots.txt"]).0);
    assert_eq!(every.matches("duplicate-rule").count(), 49);
}

#[test]
fn control_characters_of_the_file_are_escaped() {
    let file: Vec<u8> = b"User-agent: \x1b[2J\nDisallow: \x07\xE2\x80\xAE\nx: "
        .iter()
        .copied()
        .chain(0..=255)
        .collect();
    let (text, _) = lint(&file, &["--all", "robots.txt"]);
    assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
    assert!(!text.contains('\u{202e}'), "{text:?}");
}

#[test]
fn a_file_over_the_size_limit_is_reported() {
    let file = [
        &b"User-agent: *\nDisallow: /a\n"[..],
        &vec![b'\n'; 500 * 1024],
        &b"Disallow: /b\n".repeat(50_000),
    ]
    .concat();
    for name in ["robots.txt", "-"] {
        let (text, output) = lint(&file, &["--json", name]);
        let report: Value = serde_json::from_str(&text).unwrap();
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{text}");
        assert_eq!(
            (&findings[0]["code"], &findings[0]["line"]),
            (&"too-large".into(), &511_977.into())
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn an_unreadable_file_is_an_error() {
    for (name, text) in [
        (
            "nothing.txt",
            "robotgate: cannot read nothing.txt: there is no such file; check the path",
        ),
        (".", "robotgate: cannot read .: "),
    ] {
        let (out, output) = lint(b"", &[name]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with(text), "{error}");
        assert_eq!((&*out, output.status.code()), ("", Some(1)));
    }
    assert_eq!(lint(b"", &[]).1.status.code(), Some(2));
    assert_eq!(lint(b"", &["--nothing", "robots.txt"]).1.status.code(), Some(2));
}
