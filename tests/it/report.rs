//! `robotgate report` on logs with known contents.

use std::{fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};
use robotgate::report::{By, Document, Period, Report, to_csv, to_html, to_markdown, to_text};
use serde_json::{Value, json};

use crate::support::CliOutput;

const ALL: [By; 4] = [By::Bot, By::Site, By::Reason, By::Rule];
const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";

fn record(event: &str, time: &str, fields: Value) -> Value {
    let mut record = json!({ "event": event, "time": format!("2026-11-22T{time}.000000Z") });
    let fields = fields.as_object().expect("an object").clone();
    record.as_object_mut().expect("an object").extend(fields);
    record
}

/// Returns a decision. `why` is the verdict, the reason, and whether the request was forwarded.
fn decision(time: &str, id: &str, (bot, site): (&str, &str), why: (&str, &str, bool), rule: Option<&str>) -> Value {
    let (verdict, reason, forwarded) = why;
    let fields = json!({
        "id": id, "verdict": verdict, "reason": reason, "forwarded": forwarded, "bot": bot, "origin": site,
        "url": format!("{site}/page"), "rule": rule, "exception": null, "exemption": null,
        "enforcement": "enforce", "identity": "none", "client": "127.0.0.1:1", "method": "GET",
    });
    record("decision", time, fields)
}

fn completion(time: &str, id: &str, error: Option<&str>, waits: [u64; 2]) -> Value {
    let fields = json!({
        "id": id, "error": error, "bytes_in": 10, "bytes_out": 1000, "pace_wait_us": waits[0],
        "robots_wait_us": waits[1],
    });
    record("completion", time, fields)
}

fn fetch(time: &str, site: &str, holds: &str, failing_since: Option<&str>) -> Value {
    let since = failing_since.map(|since| format!("2026-11-22T{since}.000000Z"));
    let error = since.is_some().then_some("the server refused the connection");
    let fields = json!({ "origin": site, "holds": holds, "failing_since": since, "error": error, "new_text": false,
                         "instance": "1f2e3d4c" });
    record("robots", time, fields)
}

fn day() -> Vec<Value> {
    let [a, b, c] = ["https://a.example", "https://b.example", "https://c.example"];
    let disallow = Some("Disallow: /private");
    let mut exempt = decision("10:00:06", "6", ("Own", a), ("allow", "exempt", true), None);
    exempt["exemption"] = json!(".a.example");
    let mut tunnel = decision("10:00:07", "7", ("A", b), ("unverifiable", "unverifiable", true), None);
    tunnel["exception"] = json!("pins its certificate; ticket 4711");
    // This request was refused, so the report must not list its exception.
    let mut refused_tunnel = decision("11:31:00", "8", ("A", c), ("deny", "unreachable", false), None);
    refused_tunnel["exception"] = json!("pins its certificate; ticket 4711");
    let mut first = fetch("10:00:00", a, "rules", None);
    first["new_text"] = json!(true);
    first["robots_sha256"] = json!(ONE);
    // This fetch is by another robotgate. The log does not say when that one stopped.
    let mut other = fetch("11:30:00", c, "unreachable", Some("11:30:00"));
    other["instance"] = json!("5a6b7c8d");
    let mut changed = fetch("13:00:00", a, "rules", None);
    changed["new_text"] = json!(true);
    changed["held_sha256"] = json!(ONE);
    changed["robots_sha256"] = json!(TWO);
    vec![
        record(
            "start",
            "09:59:59",
            json!({ "instance": "1f2e3d4c", "version": "0.1.0", "config_file": "/etc/r.toml" }),
        ),
        first,
        decision("10:00:01", "1", ("A", a), ("allow", "no-rule", true), None),
        decision("10:00:02", "2", ("A", a), ("allow", "rule", true), Some("Allow: /")),
        decision("10:00:03", "3", ("A", a), ("deny", "rule", false), disallow),
        decision("10:00:04", "4", ("B", a), ("deny", "rule", false), disallow),
        decision("10:00:05", "5", ("Reporter", a), ("deny", "rule", true), disallow),
        exempt,
        tunnel,
        completion("10:00:08", "1", None, [3_500_000, 250_000]),
        record(
            "withdrawn",
            "10:00:08",
            json!({ "id": "2", "instance": "1f2e3d4c", "bot": "A", "url": format!("{a}/page"), "purpose": "ai-train",
                    "vocabulary": "content-usage", "key": "train-ai", "value": "n", "field": "content-usage",
                    "status": 200 }),
        ),
        completion("10:00:09", "2", Some("connection_refused"), [0, 0]),
        completion("10:00:10", "0", None, [90_000_000, 0]),
        fetch("11:00:00", b, "unreachable", Some("11:00:00")),
        fetch("11:05:00", b, "unreachable", Some("11:00:00")),
        other,
        refused_tunnel,
        fetch("11:40:00", "https://10.0.0.1", "egress", Some("11:40:00")),
        fetch("12:00:00", b, "rules", None),
        changed,
        record(
            "robots-changed",
            "13:00:01",
            json!({ "origin": a, "robots_sha256_before": ONE, "robots_sha256": TWO, "rules_added": 2, "rules_removed": 1,
                    "added": [{ "any": "thing" }], "groups": [] }),
        ),
        record(
            "robots-changed",
            "13:30:00",
            json!({ "origin": b, "robots_sha256_before": null, "robots_sha256": ONE }),
        ),
        record(
            "reload",
            "14:00:00",
            json!({ "instance": "1f2e3d4c", "cause": "SIGHUP", "result": "applied", "error": null }),
        ),
        record(
            "reload",
            "14:01:00",
            json!({ "instance": "1f2e3d4c", "cause": "SIGHUP", "result": "rejected", "error": "robots.wait: 1" }),
        ),
        record(
            "forget",
            "14:02:00",
            json!({ "origin": c, "by": "socket", "known": true }),
        ),
        record(
            "stop",
            "15:00:00",
            json!({ "instance": "1f2e3d4c", "cause": "SIGTERM", "cut_off": 2 }),
        ),
        json!({ "event": "of-a-later-version", "time": "2026-11-22T15:00:00Z", "error": { "an": "object" } }),
    ]
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn report(lines: &[&[u8]]) -> Document {
    let mut report = Report::new(Period::default());
    report.add(lines);
    Document::of(&report, &ALL, 20)
}

fn report_of(text: &str) -> Document {
    report(&text.lines().map(str::as_bytes).collect::<Vec<_>>())
}

#[test]
fn a_report_of_a_day_has_the_expected_text_markdown_and_csv() {
    let document = report_of(&lines(&day()));
    insta::assert_snapshot!("text", to_text(&document, Some(110)));
    insta::assert_snapshot!("markdown", to_markdown(&document));
    insta::assert_snapshot!("csv", to_csv(&document).replace("\r\n", "\n"));
}

#[test]
fn a_terminal_cuts_long_urls_and_rules_and_nothing_else() {
    let rule = format!("Disallow: /{}end", "long/".repeat(40));
    let mut day = day();
    let why = ("deny", "rule", false);
    day.push(decision("10:00:08", "1", ("A", "https://a.example"), why, Some(&rule)));
    let document = report_of(&lines(&day));
    for columns in [60, 80, 110] {
        let text = to_text(&document, Some(columns));
        let words: Vec<_> = text.split_whitespace().collect();
        let words = words.join(" ");
        for whole in [
            "2026-11-22 11:00 UTC 2026-11-22 12:00 UTC 1 h 2 the server refused the connection",
            "2 rules added, 1 removed 111111111111 222222222222",
            "SIGTERM, exchanges cut off: 2",
        ] {
            assert!(words.contains(whole), "{columns}: {whole}: {text}");
        }
        assert!(text.contains('…') && !text.contains(&rule), "{columns}: {text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= columns),
            "{columns}: {text}"
        );
    }
    let whole = to_text(&document, None);
    assert!(whole.contains(&rule) && !whole.contains('…'), "{whole}");
    assert!(to_csv(&document).contains(ONE), "whole checksums");
}

#[test]
fn the_html_report_has_numbers_and_charts_and_no_script() {
    let page = to_html(&report_of(&lines(&day())));
    for part in [
        "<td>Requests</td><td>8</td>",
        "<td>https:/<wbr>/<wbr>b.example</td><td>2026-11-22 11:00 UTC</td><td>2026-11-22 12:00 UTC</td>",
        "10:00 UTC: 7 requests, 2 refused, 2 not enforced",
        "<svg class=\"bar\"",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for part in ["<script", "http://", "src=", "url(", "@import"] {
        assert!(!page.contains(part), "{part}: {page}");
    }
}

fn rows_of(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = csv.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(character),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty(), "it ends with a whole row");
    rows
}

#[test]
fn texts_of_a_log_cannot_add_markup_formulas_or_control_characters() {
    let hostile = [
        "=HYPERLINK(\"https://x.example\")",
        "+1",
        "-1+1",
        "@SUM(A1)",
        " =1+1",
        "a,b\"c'd",
        "</td><script>alert(1)</script>",
        "\" onload=\"x",
        "a|b`c`[d](e)*f*\\|",
        "\u{1b}[31m\u{9b}2J\r\n\t\0\u{202e}x",
        "https://a.example/?a=1&amp;<b>",
    ];
    let records = hostile.map(|text| {
        let mut record = decision("10:00:00", text, (text, text), ("deny", text, true), Some(text));
        record["exemption"] = json!(text);
        record
    });
    let others = hostile.map(|text| record("start", "10:00:00", json!({ "instance": text, "config_file": text })));
    let failed = hostile.map(|text| completion("10:00:00", text, Some(text), [1, 0]));
    let mut broken = fetch("10:00:00", hostile[6], "unreachable", Some("09:00:00"));
    broken["error"] = json!(hostile[9]);
    let all = [&records[..], &others, &failed, &[broken]].concat();
    let document = report_of(&lines(&all));

    for columns in [60, 80, 200] {
        let text = to_text(&document, Some(columns));
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }
    let csv = to_csv(&document);
    for row in rows_of(&csv) {
        assert_eq!(row.len(), 15, "{row:?}");
        for cell in row {
            assert!(!cell.trim_start().starts_with(['=', '+', '@']), "{cell}");
            assert!(cell == "-" || !cell.starts_with('-'), "{cell}");
            assert!(!cell.contains(char::is_control), "{cell:?}");
        }
    }
    assert!(csv.contains("\"'=HYPERLINK(\"\"https://x.example\"\")\""), "{csv}");
    let page = to_html(&document);
    for part in ["<script", "<b>", "\" onload", "</td></td>"] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/<wbr>script&gt;"));
    let markdown = to_markdown(&document);
    let rows = markdown.lines().filter(|line| line.starts_with('|'));
    for row in rows {
        let plain = row
            .replace("\\\\", "")
            .replace("\\|", "")
            .replace("\\`", "")
            .replace("\\[", "");
        assert!((3..=9).contains(&plain.matches('|').count()), "{row}");
        assert!(!plain.contains(['`', '[', '<', '>']), "{row}");
    }
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_counted_and_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("audit.jsonl");
    let good = lines(&day());
    let mut text = Vec::new();
    for bad in [
        &b"{\"event\":\"decision\",\"time\":\"2026"[..],
        b"null",
        b"\xff\xfe{}",
        b"{\"event\":\"decision\"}",
        b"{\"event\":\"decision\",\"time\":\"yesterday\",\"forwarded\":true}",
        b"{\"event\":\"completion\",\"time\":\"2026-11-22T10:00:00Z\",\"bytes_in\":-1}",
        b"{\"event\":\"start\",\"time\":\"1969-12-31T23:59:59Z\"}",
        b"{\"event\":\"start\",\"time\":\"9999-12-31T23:59:59-01:00\"}",
        b"{\"event\":\"robots\",\"time\":\"2026-11-22T10:00:00Z\",\"failing_since\":\"0001-01-01T00:00:00Z\"}",
    ] {
        text.extend_from_slice(bad);
        text.push(b'\n');
    }
    text.extend_from_slice(b"\n");
    // This line is longer than what the report reads at a time.
    text.extend(std::iter::repeat_n(b'{', 20 * 1024 * 1024));
    text.push(b'\n');
    text.extend_from_slice(good.as_bytes());
    text.extend_from_slice(b"{\"event\":");
    // Decisions that each lack one of the fields that every decision has.
    let required = [
        "id",
        "verdict",
        "reason",
        "enforcement",
        "forwarded",
        "identity",
        "client",
        "method",
        "url",
        "origin",
    ];
    for name in required {
        let mut partial = decision(
            "10:00:01",
            "1",
            ("A", "https://a.example"),
            ("allow", "rule", true),
            None,
        );
        partial[name] = Value::Null;
        text.extend_from_slice(format!("\n{partial}").as_bytes());
    }
    fs::write(&log, text).expect("written");
    let found = totals(&[&log.display().to_string()], "").await;
    assert_eq!(
        (&*found["Requests"], &*found["Lines that cannot be read"]),
        ("8", "21"),
        "{found:#?}"
    );
}

async fn totals(args: &[&str], input: &str) -> std::collections::BTreeMap<String, String> {
    let args = [&["report", "--format", "csv"], args].concat();
    let output = CliOutput::of(&args, input).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    let rows = rows_of(&output.out).into_iter().filter(|row| row[0] == "total");
    rows.map(|row| (row[1].clone(), format!("{}{}", row[9], row[12])))
        .collect()
}

fn packed(path: &Path, text: &str) {
    let mut gz = GzEncoder::new(fs::File::create(path).expect("made"), Compression::fast());
    gz.write_all(text.as_bytes())
        .and_then(|()| gz.finish())
        .expect("written");
}

#[tokio::test]
async fn rotated_logs_can_be_in_any_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let day = day();
    // The outage of b.example begins in the first file and ends in the second.
    let (older, newer) = day.split_at(16);
    fs::write(path("audit.jsonl"), lines(newer)).expect("written");
    packed(Path::new(&path("audit.jsonl.1.gz")), &lines(older));
    let expected = to_text(&report_of(&lines(&day)), None);
    let whole = CliOutput::of(&["report", "-"], &lines(&day)).await;
    assert_eq!((&*whole.out, whole.code), (&*expected, Some(0)));
    for names in [["audit.jsonl", "audit.jsonl.1.gz"], ["audit.jsonl.1.gz", "audit.jsonl"]] {
        let output = CliOutput::of(&["report", &path(names[0]), &path(names[1])], "").await;
        assert_eq!(output.out, expected, "{names:?}");
    }
    let page = path("day.html");
    let output = CliOutput::of(&["report", "-", "-o", &page], &lines(&day)).await;
    assert_eq!((&*output.out, output.code), ("", Some(0)));
    assert_eq!(
        fs::read_to_string(&page).expect("the page"),
        to_html(&report_of(&lines(&day)))
    );
}

#[test]
fn an_absurdly_long_wait_is_shortened_except_in_csv() {
    let log = completion("10:00:00", "1", None, [u64::MAX, 2 * 86_400 * 1_000_000]).to_string();
    let text = to_text(&report_of(&log), None);
    assert!(
        text.contains("over 9999 d  its turn") && text.contains("  2 d  the robots.txt"),
        "{text}"
    );
    assert!(to_csv(&report_of(&log)).contains("18446744073709.5"));
}

#[tokio::test]
async fn a_file_without_any_record_is_an_error() {
    for (log, code) in [
        ("root:x:0:0\n\nbin:x:1:1\n", 1),
        ("", 0),
        ("\n", 0),
        ("x\n{\"event\":\"later\",\"time\":\"2026-11-22T10:00:00Z\"}\n", 0),
    ] {
        let output = CliOutput::of(&["report", "-"], log).await;
        assert_eq!(output.code, Some(code), "{log}: {output:?}");
        let says = output
            .errors
            .contains("found no record of the audit log in standard input;");
        assert_eq!((says, output.out.is_empty()), (code == 1, code == 1), "{output:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_bot_does_not_count_as_a_bot() {
    let mut unnamed = decision(
        "10:00:00",
        "1",
        ("A", "https://a.example"),
        ("deny", "rule", false),
        None,
    );
    let named = unnamed.clone();
    unnamed["bot"] = Value::Null;
    let found = totals(&["-"], &lines(&[unnamed, named])).await;
    assert_eq!((&*found["Requests"], &*found["Bots"]), ("2", "1"));
}

#[tokio::test]
async fn outages_of_two_robotgates_are_counted_apart() {
    let site = "https://a.example";
    let of = |instance: Value, mut record: Value| {
        record["instance"] = instance;
        record
    };
    let failed = |time, since| fetch(time, site, "unreachable", Some(since));
    // The robotgate `one` cannot reach the site from 10:00 to 12:00. In between, its configuration forbids the site,
    // which does not end the outage. The robotgate `other` cannot reach the site from 10:30 on, and stops at 13:00,
    // which does not end the outage either.
    let log = |one: Value, other: Value| {
        [
            vec![
                of(one.clone(), failed("10:00:00", "10:00:00")),
                of(one.clone(), fetch("10:05:00", site, "egress", None)),
            ],
            vec![
                of(other.clone(), fetch("10:10:00", site, "rules", None)),
                of(other.clone(), failed("10:30:00", "10:30:00")),
            ],
            vec![
                of(one.clone(), failed("11:00:00", "10:00:00")),
                of(one, fetch("12:00:00", site, "rules", None)),
            ],
            vec![of(other, record("stop", "13:00:00", json!({ "cause": "SIGTERM" })))],
        ]
    };
    let outages = |csv: &str| -> Vec<_> {
        let rows = rows_of(csv).into_iter().filter(|row| row[0] == "unreachable");
        rows.map(|row| [row[9].clone(), row[10].clone(), row[12].clone()].map(|cell| cell.replace("2026-11-22T", "")))
            .collect()
    };
    let expected = [["10:30:00Z", "still", "1"], ["10:00:00Z", "12:00:00Z", "2"]];
    let one_file = lines(&log(json!("1f2e3d4c"), json!("5a6b7c8d")).concat());
    let output = CliOutput::of(&["report", "-", "--format", "csv"], &one_file).await;
    assert_eq!(outages(&output.out), expected, "{output:?}");

    // If the records name no instance, the report takes each file for the log of another instance.
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [first, other, second, stop] = log(Value::Null, Value::Null);
    fs::write(path("one"), lines(&[first, second].concat())).expect("written");
    fs::write(path("other"), lines(&[other, stop].concat())).expect("written");
    let output = CliOutput::of(&["report", &path("one"), &path("other"), "--format", "csv"], "").await;
    assert_eq!(outages(&output.out), expected, "{output:?}");
}

#[tokio::test]
async fn an_outage_goes_on_after_a_restart() {
    let site = "https://a.example";
    let of = |instance: &str, mut record: Value| {
        record["instance"] = json!(instance);
        record
    };
    let failed = |time, since| fetch(time, site, "unreachable", Some(since));
    let log = [
        of("1f2e3d4c", failed("10:00:00", "10:00:00")),
        of("1f2e3d4c", record("stop", "10:30:00", json!({ "cause": "SIGTERM" }))),
        of("5a6b7c8d", failed("11:00:00", "10:00:00")),
        of("5a6b7c8d", fetch("12:00:00", site, "rules", None)),
        of("5a6b7c8d", failed("13:00:00", "13:00:00")),
        of("5a6b7c8d", record("stop", "13:30:00", json!({ "cause": "SIGTERM" }))),
        // Without a cache file, the next run does not know of the earlier failure.
        of("9e8d7c6b", failed("14:00:00", "14:00:00")),
        of("9e8d7c6b", record("stop", "14:30:00", json!({ "cause": "SIGTERM" }))),
        of("0a1b2c3d", fetch("15:00:00", site, "rules", None)),
        of("0a1b2c3d", failed("16:00:00", "16:00:00")),
    ];
    let output = CliOutput::of(&["report", "-", "--format", "csv"], &lines(&log)).await;
    let rows = rows_of(&output.out).into_iter().filter(|row| row[0] == "unreachable");
    let rows =
        rows.map(|row| [row[9].clone(), row[10].clone(), row[12].clone()].map(|cell| cell.replace("2026-11-22T", "")));
    let expected = [
        ["10:00:00Z", "12:00:00Z", "2"],
        ["13:00:00Z", "15:00:00Z", "2"],
        ["16:00:00Z", "still", "1"],
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected, "{output:?}");
    let total = "total,\"Times that a robots.txt was unreachable\",,,,,,,,,,,3,,";
    assert!(output.out.contains(total), "{output:?}");
}

#[tokio::test]
async fn a_period_and_the_tables_can_be_chosen() {
    let text = lines(&day());
    for (args, requests) in [
        (&["-"][..], "8"),
        (&["-", "--since", "2026-11-22"], "8"),
        (&["-", "--since", "2026-11-22T11:00:00Z"], "1"),
        (
            &[
                "-",
                "--since",
                "2026-11-22T11:31:00+00:00",
                "--until",
                "2026-11-22T11:31:00.000001Z",
            ],
            "1",
        ),
        (&["-", "--until", "2026-11-22T11:31:00Z"], "7"),
        (&["-", "--since", "2026-11-23"], "0"),
    ] {
        assert_eq!(totals(args, &text).await["Requests"], requests, "{args:?}");
    }
    let output = CliOutput::of(
        &["report", "-", "--by", "reason", "--top", "1", "--format", "csv"],
        &text,
    )
    .await;
    let rows = rows_of(&output.out);
    let of = |table: &str| {
        rows.iter()
            .filter(|row| row[0] == table)
            .map(|row| row[1].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("reason"), of("bot"), of("error")),
        (vec!["rule".to_owned()], vec![], vec!["connection_refused".to_owned()])
    );
    for (args, code, says) in [
        (&["report", "-", "--since", "soon"][..], 2, "a duration like 24h"),
        (&["report", "-", "--top", "0"], 2, "0 is not in 1.."),
        (&["report", "-", "--by", "colour"], 2, "bot, site, reason, rule"),
        (
            &["report", "/nowhere/audit.jsonl"],
            1,
            "cannot read /nowhere/audit.jsonl: there is no such file",
        ),
        (
            &["report", "-", "-o", "/nowhere/x.html"],
            1,
            "cannot be written: /nowhere/x.html",
        ),
    ] {
        let output = CliOutput::of(args, "").await;
        assert_eq!(output.code, Some(code), "{args:?}");
        assert!(output.errors.contains(says), "{args:?}: {}", output.errors);
    }
}

#[test]
fn a_withdrawn_response_counts_as_a_refusal_by_usage() {
    let (site, rule) = ("https://a.example", Some("Allow: /page"));
    let usage = json!({"purposes": ["ai-train"], "said": [], "refused": null, "tdmrep": null, "tdmrep_sha256": null});
    let mut allowed = decision("10:00:01", "1", ("A", site), ("allow", "rule", true), rule);
    allowed["usage"] = usage.clone();
    let mut other = decision("10:00:02", "2", ("A", site), ("allow", "rule", true), rule);
    other["usage"] = usage;
    let mut only_rule = decision("10:00:03", "3", ("A", site), ("allow", "rule", true), Some("Allow: /p"));
    only_rule["usage"] = allowed["usage"].clone();
    let withdrawn = |id| {
        let fields = json!({"id": id, "bot": "A", "url": format!("{site}/page"), "status": 200});
        record("withdrawn", "10:00:04", fields)
    };
    let ended = |id| completion("10:00:05", id, None, [0, 0]);
    let refused = |time, id| decision(time, id, ("A", site), ("deny", "usage", false), None);
    let with_events = [
        allowed,
        other.clone(),
        only_rule,
        withdrawn("1"),
        ended("1"),
        ended("2"),
        withdrawn("3"),
        ended("3"),
        // `withdrawn` records about an unknown request, and about a request that has already ended.
        withdrawn("4"),
        withdrawn("2"),
    ];
    let as_refused = [
        refused("10:00:01", "1"),
        other,
        refused("10:00:03", "3"),
        ended("1"),
        ended("2"),
        ended("3"),
    ];
    let counts = |records: &[Value]| {
        let csv = to_csv(&report_of(&lines(records)));
        let rows = csv.lines().filter(|row| !row.contains("Lines read"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let found = counts(&with_events);
    assert_eq!(found, counts(&as_refused));
    assert!(
        found.iter().any(|row| row.starts_with("reason,usage,,,2,0,2,")),
        "{found:#?}"
    );
}

#[test]
fn a_report_without_changes_still_notes_those_missing_after_a_forget() {
    let forget = record(
        "forget",
        "10:00:00",
        json!({ "origin": "https://a.example", "by": "cache" }),
    );
    let document = report_of(&lines(&[forget]));
    let note = "Changes that robotgate found after";
    for text in [to_text(&document, None), to_markdown(&document), to_html(&document)] {
        let (_, changes) = text.rsplit_once("hanges of robots.txt files").unwrap_or_else(|| {
            let (before, after) = text.split_once("CHANGES OF ROBOTS.TXT FILES").expect("the table");
            (before, after)
        });
        assert!(changes.contains(note), "{text}");
    }
}

#[tokio::test]
async fn a_csv_has_all_rows_and_text_says_how_many_it_leaves_out() {
    let sites: Vec<String> = (10..35).map(|number| format!("https://s{number}.example")).collect();
    let lines = sites
        .iter()
        .map(|site| decision("10:00:00", site, ("A", site), ("allow", "no-rule", true), None).to_string() + "\n");
    let log: String = lines.collect();
    let csv = CliOutput::of(&["report", "-", "--format", "csv"], &log).await;
    let rows = rows_of(&csv.out);
    let named: Vec<_> = rows.iter().filter(|row| row[0] == "site").map(|row| &*row[1]).collect();
    assert_eq!(named, sites, "{}", csv.out);
    let text = CliOutput::of(&["report", "-"], &log).await.out;
    let shown = sites.iter().filter(|site| text.contains(&***site)).count();
    assert_eq!(
        (shown, text.contains("Rows that are left out: 5.")),
        (20, true),
        "{text}"
    );
}
