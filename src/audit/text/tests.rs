//! Tests which line of text a terminal shows for each record of the audit log.

use super::*;

fn lines() -> TextLines {
    TextLines {
        paint: Paint::none(),
        is_terminal: false,
        open: Mutex::default(),
    }
}

fn shown(lines: &TextLines, record: &str, columns: Option<usize>) -> String {
    String::from_utf8(lines.fitted(record.as_bytes(), columns).into_owned()).expect("text")
}

/// Returns the record of a decision about `/page` of a site. The fields in `more` replace the usual ones.
fn decision(more: &str) -> String {
    let mut record: serde_json::Value = serde_json::from_str(
        r#"{"event":"decision","time":"2026-11-22T13:24:48.914226Z","id":"1","verdict":"deny","reason":"rule",
            "forwarded":false,"bot":"ExampleBot","method":"GET","url":"http://a.example/page","rule":null,"line":null,
            "robots_error":null,"profile":"google"}"#,
    )
    .expect("JSON");
    let more: serde_json::Value = serde_json::from_str(more).expect("JSON");
    for (name, value) in more.as_object().expect("an object") {
        record[name] = value.clone();
    }
    record.to_string()
}

#[test]
fn a_decision_is_shown_as_one_line() {
    for (more, line) in [
        (
            r#"{"rule":"Disallow: /page","line":2}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  line 2: Disallow: /page",
        ),
        (
            r#"{"verdict":"allow","reason":"no-rule","forwarded":true}"#,
            "13:24:48Z allow  ExampleBot GET http://a.example/page  no-rule",
        ),
        (
            r#"{"rule":"Disallow: /page","line":2,"forwarded":true}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  line 2: Disallow: /page (forwarded)",
        ),
        (
            r#"{"reason":"last-copy","rule":"Disallow: /page","line":2}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  last-copy, line 2: Disallow: /page",
        ),
        (
            r#"{"reason":"unreachable","robots_error":"the name could not be looked up"}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  unreachable: the name could not be looked up",
        ),
        (
            r#"{"reason":"usage","usage":{"refused":{"why":"forbidden","purpose":"ai-train","vocabulary":"content-usage",
                "key":"train-ai","value":"n","line":7,"policy":"enforce"}}}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  usage: ai-train, line 7: content-usage train-ai=n",
        ),
        (
            r#"{"reason":"usage","usage":{"refused":{"why":"forbidden","purpose":"tdm","vocabulary":"tdmrep",
                "key":"tdm-reservation","value":"1","entry":2,"policy":"enforce"}}}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  usage: tdm, tdmrep tdm-reservation=1",
        ),
        (
            r#"{"reason":"usage","usage":{"refused":{"why":"unknown","purpose":"search"}}}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  usage: no statement of the site allows the purpose \
             search, and the configuration refuses such requests (usage.unknown)",
        ),
        (
            r#"{"reason":"usage","usage":{"refused":{"why":"pending","purpose":"tdm"}}}"#,
            "13:24:48Z deny   ExampleBot GET http://a.example/page  usage: the site's /.well-known/tdmrep.json is still \
             being fetched, and it can forbid the purpose tdm",
        ),
        (
            r#"{"verdict":"allow","reason":"no-rule","forwarded":true,"usage":{"refused":null}}"#,
            "13:24:48Z allow  ExampleBot GET http://a.example/page  no-rule",
        ),
        (
            r#"{"reason":"unidentified","bot":null}"#,
            "13:24:48Z deny   - GET http://a.example/page  unidentified",
        ),
        (
            r#"{"verdict":"unverifiable","reason":"unverifiable","method":"CONNECT","url":"https://a.example"}"#,
            "13:24:48Z unverifiable ExampleBot CONNECT https://a.example  unverifiable",
        ),
    ] {
        assert_eq!(shown(&lines(), &decision(more), None), format!("{line}\n"));
    }
}

#[test]
fn only_a_failed_completion_is_shown_as_a_line() {
    let done = r#"{"event":"completion","time":"2026-11-22T13:24:49.1Z","id":"1","status":200,"error":null,"error_detail":null}"#;
    let failed = r#"{"event":"completion","time":"2026-11-22T13:24:49.1Z","id":"1","status":502,
        "error":"connection_refused","error_detail":"the server refused the connection"}"#;
    let lines = lines();
    for (completion, line) in [
        (done, ""),
        (
            failed,
            "13:24:49Z error  ExampleBot GET http://a.example/page  502 connection_refused: the server refused the connection\n",
        ),
    ] {
        shown(&lines, &decision("{}"), None);
        assert_eq!(shown(&lines, completion, None), line);
        assert!(lines.open.lock().is_empty(), "a request that ended is forgotten");
    }
    assert_eq!(
        shown(&lines, failed, None),
        "13:24:49Z error  request 1  502 connection_refused: the server refused the connection\n",
        "a completion without a known decision"
    );
}

#[test]
fn a_withdrawn_response_is_shown_as_one_line() {
    for (fields, line) in [
        (
            r#""purpose":"ai-train","key":"train-ai","value":"n","field":"content-usage""#,
            "content-usage: train-ai=n, which forbids ai-train",
        ),
        (
            r#""purpose":"tdm","key":"tdm-reservation","value":"1","field":"tdm-reservation""#,
            "tdm-reservation: 1, which forbids tdm",
        ),
        (
            r#""purpose":"ai-input","key":"noai","value":"noai","field":"x-robots-tag""#,
            "x-robots-tag: noai, which forbids ai-input",
        ),
    ] {
        let record = format!(
            r#"{{"event":"withdrawn","time":"2026-11-22T13:24:48.9Z","id":"1","bot":"ExampleBot",
                "url":"http://a.example/page","status":200,{fields}}}"#
        );
        let line = format!("13:24:48Z withdrawn ExampleBot http://a.example/page  the response says {line}\n");
        assert_eq!(shown(&lines(), &record, None), line);
    }
}

#[test]
fn a_fetch_is_shown_as_one_line() {
    for (more, line) in [
        (r#""status":200,"error":null,"holds":"rules""#, "200, rules"),
        (r#""status":404,"error":null,"holds":"no-robots""#, "404, no-robots"),
        (
            r#""status":null,"error":"no answer in time","holds":"unreachable""#,
            "unreachable: no answer in time",
        ),
    ] {
        let record = format!(
            r#"{{"event":"robots","time":"2026-11-22T13:24:48.9Z","robots_url":"http://a.example/robots.txt",{more}}}"#
        );
        let line = format!("13:24:48Z robots http://a.example/robots.txt  {line}\n");
        assert_eq!(shown(&lines(), &record, None), line);
    }
    let tdmrep = r#"{"event":"tdmrep","time":"2026-11-22T13:24:48.9Z",
        "tdmrep_url":"http://a.example/.well-known/tdmrep.json","status":200,"error":null,"holds":"file"}"#;
    let line = "13:24:48Z tdmrep http://a.example/.well-known/tdmrep.json  200, file\n";
    assert_eq!(shown(&lines(), tdmrep, None), line);
    let shared = r#"{"event":"shared","time":"2026-11-22T13:24:48.9Z","origin":"http://a.example","holds":"rules"}"#;
    let line = "13:24:48Z robots http://a.example/robots.txt  rules, fetched by another robotgate\n";
    assert_eq!(shown(&lines(), shared, None), line);
}

#[test]
fn a_changed_robots_txt_is_shown_as_one_line() {
    for (fields, line) in [
        (
            r#""robots_sha256_before":"1f","robots_sha256":"2e","rules":"changed","rules_added":2,"rules_removed":1,
               "requests":40,"newly_denied":3,"newly_allowed":0"#,
            "rules: 2 added, 1 removed; of 40 recent requests, 3 newly denied, 0 newly allowed",
        ),
        (
            r#""robots_sha256_before":"1f","robots_sha256":"2e","rules":"unchanged","rules_added":0,"rules_removed":0,
               "requests":0,"newly_denied":0,"newly_allowed":0"#,
            "the rules are the same",
        ),
        (
            r#""robots_sha256_before":"1f","robots_sha256":null,"rules":"changed","rules_added":0,"rules_removed":1,
               "requests":0,"newly_denied":0,"newly_allowed":0"#,
            "the site no longer has a robots.txt; rules: 0 added, 1 removed",
        ),
        (
            r#""robots_sha256_before":null,"robots_sha256":"2e","rules":null,"rules_added":0,"rules_removed":0,
               "requests":0,"newly_denied":0,"newly_allowed":0"#,
            "the site has a robots.txt now; the rules were not compared",
        ),
    ] {
        let record = format!(
            r#"{{"event":"robots-changed","time":"2026-11-22T13:24:48.9Z","origin":"http://a.example",{fields}}}"#
        );
        let line = format!("13:24:48Z change http://a.example/robots.txt  {line}\n");
        assert_eq!(shown(&lines(), &record, None), line);
    }
}

#[test]
fn each_start_stop_reload_and_forget_is_shown_as_one_line() {
    for (fields, line) in [
        (
            r#""event":"start","instance":"1f2e3d4c","version":"0.1.0","config_file":"/etc/robotgate/robotgate.toml""#,
            "start  robotgate 0.1.0, instance 1f2e3d4c, /etc/robotgate/robotgate.toml",
        ),
        (
            r#""event":"start","instance":"1f2e3d4c","version":"0.1.0","config_file":null"#,
            "start  robotgate 0.1.0, instance 1f2e3d4c, no configuration file",
        ),
        (
            r#""event":"stop","instance":"1f2e3d4c","cause":"SIGTERM","cut_off":0"#,
            "stop   robotgate, instance 1f2e3d4c  SIGTERM",
        ),
        (
            r#""event":"stop","instance":"1f2e3d4c","cause":"SIGTERM","cut_off":2"#,
            "stop   robotgate, instance 1f2e3d4c  SIGTERM, exchanges cut off: 2",
        ),
        (
            r#""event":"reload","cause":"SIGHUP","error":null,"config":2"#,
            "reload configuration 2 is in force  SIGHUP",
        ),
        (
            r#""event":"reload","cause":"SIGHUP","error":"gate.toml:1:1: no","config":2"#,
            "reload rejected, configuration 2 stays in force  gate.toml:1:1: no",
        ),
        (
            r#""event":"forget","origin":"http://a.example","by":"socket","known":true"#,
            "forget http://a.example  at the request of an operator",
        ),
        (
            r#""event":"forget","origin":"http://a.example","by":"fleet","known":false"#,
            "forget http://a.example  at the request of another robotgate, but nothing was known",
        ),
    ] {
        let record = format!(r#"{{"time":"2026-11-22T13:24:48.9Z",{fields}}}"#);
        assert_eq!(shown(&lines(), &record, None), format!("13:24:48Z {line}\n"));
    }
}

#[test]
fn a_terminal_shows_a_long_url_shortened_and_the_full_reason() {
    let url = format!("http://a.example/{}/end.html", "x".repeat(200));
    let denied = decision(&format!(r#"{{"url":"{url}","rule":"Disallow: /x","line":2}}"#));
    let line = shown(&lines(), &denied, Some(80));
    assert_eq!(
        line,
        "13:24:48Z deny   ExampleBot GET http://a.example/…end.html  line 2: Disallow: /x\n"
    );
    let long = "Disallow: /".to_owned() + &"y".repeat(300);
    let denied = decision(&format!(r#"{{"url":"{url}","rule":"{long}","line":2}}"#));
    let line = shown(&lines(), &denied, Some(80));
    assert!(
        line.contains("http://a.example/xxxxxxxxxxxxxxx…xxxxxx/end.html  line 2: Disallow: /y"),
        "{line}"
    );
    assert!(line.ends_with("y…\n") && line.len() < 200, "{line}");
    let piped = shown(&lines(), &denied, None);
    assert!(piped.contains(&url), "without a terminal, no URL is shortened: {piped}");
}

#[test]
fn control_characters_in_a_decision_are_escaped() {
    let denied = decision(r#"{"bot":"a\u001b[2J","url":"http://a.example/\u001b[31m\n","reason":"unidentified\r"}"#);
    assert_eq!(
        shown(&lines(), &denied, Some(120)),
        "13:24:48Z deny   a\\u{1b}[2J GET http://a.example/\\u{1b}[31m\\u{a}  unidentified\\u{d}\n"
    );
}

#[test]
fn verdicts_are_in_colour() {
    let lines = TextLines {
        paint: Paint::always(),
        ..lines()
    };
    for (more, label) in [
        (r#"{"verdict":"allow"}"#, "\u{1b}[1m\u{1b}[32mallow\u{1b}[0m  "),
        ("{}", "\u{1b}[1m\u{1b}[31mdeny\u{1b}[0m   "),
        (r#"{"forwarded":true}"#, "\u{1b}[1m\u{1b}[33mdeny\u{1b}[0m   "),
    ] {
        let line = shown(&lines, &decision(more), None);
        assert!(line.contains(label), "{line:?}");
    }
}

#[test]
fn every_kind_of_record_is_shown_as_text() {
    for event in crate::audit::EVENTS {
        let record = format!(r#"{{"event":"{event}","time":"2026-11-22T13:24:48.9Z"}}"#);
        assert_ne!(shown(&lines(), &record, None), record);
    }
}
