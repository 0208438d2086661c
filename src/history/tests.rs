use std::time::Duration;

use super::{
    rings::{MAX_BYTES, MAX_CURRENT},
    *,
};
use crate::decision::{Reason, Verdict};

/// When the tests begin, in seconds since 1970: at 2027-01-15 08:00:00 UTC.
const START: u64 = 1_800_000_000;

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(START + second)
}

/// The counters of a proxy, and the history to which `sample` passes what they counted.
#[derive(Default)]
struct Proxy {
    history: History,
    totals: Totals,
    sites: Vec<(String, SiteCounts)>,
    refusals: Vec<Refusal<String>>,
}

impl Proxy {
    fn decides(&mut self, bot: &'static str, site: &str, reason: Reason, count: u32) {
        let verdict = match reason {
            Reason::NoRule => Verdict::Allow,
            Reason::Pace => Verdict::Defer,
            _ => Verdict::Deny,
        };
        let kind = DecisionKind {
            verdict,
            reason,
            forwarded: verdict == Verdict::Allow,
        };
        self.decides_as(bot, site, kind, count);
    }

    fn decides_as(&mut self, bot: &'static str, site: &str, kind: DecisionKind, count: u32) {
        let DecisionKind {
            verdict,
            reason,
            forwarded,
        } = kind;
        *self.totals.entry((bot.into(), kind)).or_default() += u64::from(count);
        let mut counts = SiteCounts::default();
        counts.verdicts.count(verdict, forwarded, count);
        self.sites.push((site.to_owned(), counts));
        if verdict == Verdict::Allow {
            return;
        }
        for _ in 0..count {
            self.refusals.push(Refusal {
                site: site.to_owned(),
                bot: bot.to_owned(),
                bot_label: bot.to_owned(),
                rule: if reason == Reason::Rule { "Disallow: /x" } else { "" }.to_owned(),
                kind,
            });
        }
    }

    fn refuses(&mut self, bot: &'static str, site: &str, rule: String) {
        self.decides(bot, site, Reason::Rule, 1);
        if let Some(refusal) = self.refusals.last_mut() {
            refusal.rule = rule;
        }
    }

    fn ends(&mut self, site: &str, failed: u32, answered: u32, micros: u64) {
        let counts = SiteCounts {
            failed,
            answered,
            micros,
            ..SiteCounts::default()
        };
        self.sites.push((site.to_owned(), counts));
    }

    fn sample(&mut self, second: u64) {
        let sample = Sample {
            totals: self.totals.clone(),
            sites: std::mem::take(&mut self.sites),
            refusals: (self.refusals.iter())
                .map(|refusal| Refusal {
                    site: &*refusal.site,
                    bot: &*refusal.bot,
                    bot_label: &*refusal.bot_label,
                    rule: &*refusal.rule,
                    kind: refusal.kind,
                })
                .collect(),
        };
        self.history.add(at(second), &sample);
        self.refusals.clear();
    }

    fn report(&self, from: u64, until: u64, now: u64, by: By) -> serde_json::Value {
        report(&self.history, now, &question(from, until, by))
    }
}

fn question(from: u64, until: u64, by: By) -> HistoryQuestion<'static> {
    HistoryQuestion {
        from: at(from),
        until: at(until),
        by,
        only_refusals: false,
        site: None,
        bot: None,
        limit: 10,
    }
}

fn report(history: &History, now: u64, question: &HistoryQuestion<'_>) -> serde_json::Value {
    serde_json::to_value(history.report(at(now), question)).expect("JSON")
}

fn totals(report: &serde_json::Value) -> Vec<(Option<&str>, u64)> {
    let series = report["series"].as_array().expect("series");
    let total = |series: &serde_json::Value| series["total"].as_u64().expect("a number");
    series
        .iter()
        .map(|series| (series["name"].as_str(), total(series)))
        .collect()
}

const A: &str = "https://a.example";
const B: &str = "https://b.example";

#[test]
fn decisions_are_counted_in_their_second_minute_and_hour() {
    let mut proxy = Proxy::default();
    for (second, count) in [(0, 2), (1, 1), (59, 4), (60, 8)] {
        proxy.decides("Acme", A, Reason::NoRule, count);
        proxy.sample(second);
    }
    let found = proxy.report(0, 4, 60, By::Verdict);
    assert_eq!(
        (&found["step"], &found["series"][0]["counts"]),
        (&1.into(), &serde_json::json!([2, 1, 0, 0]))
    );
    proxy.decides("Acme", A, Reason::NoRule, 16);
    proxy.sample(3700);
    // The sample of second 3700 is the last one, so the 16 decisions in it are in a minute and an hour that have not
    // ended. The report has to count them, too.
    for (from, until, now, step, counts) in [
        (0, 120, 3700, 60, &[7, 8][..]),
        (3600, 3720, 200_000 - 113_600, 60, &[0, 16]),
        (0, 7200, 200_000, 3600, &[15, 16]),
    ] {
        let found = proxy.report(from, until, now, By::Verdict);
        assert_eq!(found["step"], step, "{found:#}");
        assert_eq!(
            found["series"][0]["counts"],
            serde_json::json!(counts),
            "{from} {until} {now}"
        );
        assert_eq!(found["series"][0]["name"], "allow");
    }
}

#[test]
fn counts_can_be_grouped_by_verdict_reason_bot_site_and_answer() {
    let mut proxy = Proxy::default();
    proxy.decides("Acme", A, Reason::NoRule, 5);
    proxy.decides("Acme", A, Reason::Rule, 3);
    proxy.decides("Other", B, Reason::Pace, 2);
    proxy.ends(A, 1, 4, 4_000_000);
    proxy.sample(0);
    proxy.sample(90);
    for (by, only_refusals, expected) in [
        (
            By::Verdict,
            false,
            vec![(Some("allow"), 5), (Some("deny"), 3), (Some("defer"), 2)],
        ),
        (By::Verdict, true, vec![(Some("deny"), 3), (Some("defer"), 2)]),
        (
            By::Reason,
            false,
            vec![(Some("no-rule"), 5), (Some("rule"), 3), (Some("pace"), 2)],
        ),
        (By::Bot, false, vec![(Some("Acme"), 8), (Some("Other"), 2)]),
        (By::Bot, true, vec![(Some("Acme"), 3), (Some("Other"), 2)]),
        (By::Site, false, vec![(Some(A), 8), (Some(B), 2)]),
        (By::Site, true, vec![(Some(A), 3), (Some(B), 2)]),
        (By::Answer, false, vec![(Some("answered"), 4), (Some("failed"), 1)]),
    ] {
        let question = HistoryQuestion {
            only_refusals,
            ..question(0, 90, by)
        };
        let found = report(&proxy.history, 90, &question);
        assert_eq!(totals(&found), expected, "{by} {only_refusals}");
    }
    for (site, bot, by, expected) in [
        (Some(A), None, By::Verdict, vec![(Some("allow"), 5), (Some("deny"), 3)]),
        (Some(A), None, By::Reason, vec![(Some("rule"), 3)]),
        (Some(B), None, By::Bot, vec![(Some("Other"), 2)]),
        (
            None,
            Some("Acme"),
            By::Verdict,
            vec![(Some("allow"), 5), (Some("deny"), 3)],
        ),
        (None, Some("Acme"), By::Site, vec![(Some(A), 3)]),
        (None, Some("nobody"), By::Reason, vec![]),
    ] {
        let question = HistoryQuestion {
            site,
            bot,
            ..question(0, 90, by)
        };
        let found = report(&proxy.history, 90, &question);
        assert_eq!(totals(&found), expected, "{site:?} {bot:?} {by}");
    }
}

#[test]
fn a_bot_is_selected_by_its_label_and_shown_by_its_name() {
    let mut proxy = Proxy::default();
    proxy.decides("other", A, Reason::Rule, 2);
    proxy.refusals[0].bot = "curl".to_owned();
    proxy.refusals[1].bot = "wget".to_owned();
    proxy.decides("none", A, Reason::Unidentified, 1);
    proxy.refusals[2].bot = String::new();
    proxy.sample(0);
    for (bot, expected, series) in [
        ("other", vec![Some("curl"), Some("wget")], vec![(Some("deny"), 2)]),
        ("none", vec![None], vec![(Some("deny"), 1)]),
        ("curl", vec![], vec![]),
    ] {
        let question = HistoryQuestion {
            bot: Some(bot),
            ..question(0, 60, By::Verdict)
        };
        let found = report(&proxy.history, 59, &question);
        assert_eq!(totals(&found), series, "{bot}");
        for table in ["refusals", "refused_bots"] {
            let rows = found[table].as_array().expect("rows");
            assert_eq!(
                rows.iter().map(|row| row["bot"].as_str()).collect::<Vec<_>>(),
                expected,
                "{bot}"
            );
            assert!(rows.iter().all(|row| row["bot_label"] == bot), "{found:#}");
        }
    }
    for (selected, expected) in [
        (
            HistoryQuestion {
                site: Some(A),
                ..question(0, 60, By::Bot)
            },
            vec![(Some("other"), 2), (Some("none"), 1)],
        ),
        (
            HistoryQuestion {
                bot: Some("other"),
                ..question(0, 60, By::Reason)
            },
            vec![(Some("rule"), 2)],
        ),
    ] {
        assert_eq!(totals(&report(&proxy.history, 59, &selected)), expected);
    }
}

#[test]
fn a_decision_that_is_not_enforced_does_not_count_as_a_refusal() {
    let mut proxy = Proxy::default();
    let not_enforced = DecisionKind {
        verdict: Verdict::Deny,
        reason: Reason::Rule,
        forwarded: true,
    };
    proxy.decides_as("Trial", A, not_enforced, 5);
    proxy.decides("Trial", A, Reason::Rule, 2);
    proxy.sample(0);
    for (by, only_refusals, expected) in [
        (By::Verdict, false, vec![(Some("not-enforced"), 5), (Some("deny"), 2)]),
        (By::Verdict, true, vec![(Some("deny"), 2)]),
        (By::Reason, false, vec![(Some("rule"), 7)]),
        (By::Reason, true, vec![(Some("rule"), 2)]),
        (By::Bot, true, vec![(Some("Trial"), 2)]),
        (By::Site, true, vec![(Some(A), 2)]),
    ] {
        for (site, bot) in [
            (None, None),
            (Some(A), None),
            (None, Some("Trial")),
            (Some(A), Some("Trial")),
        ] {
            let question = HistoryQuestion {
                only_refusals,
                site,
                bot,
                ..question(0, 60, by)
            };
            let found = report(&proxy.history, 600, &question);
            assert_eq!(totals(&found), expected, "{by} {only_refusals} {site:?} {bot:?}");
            let counts = ["refusals", "refused_bots", "not_enforced"].map(|table| &found[table][0]["count"]);
            assert_eq!(counts, [2, 2, 5], "{found:#}");
            let bot = ["deny", "not_enforced"].map(|field| &found["bots"][0][field]);
            assert_eq!(bot, [2, 5]);
            let site = ["requests", "refused", "not_enforced"].map(|field| &found["refused_sites"][0][field]);
            assert_eq!(site, [7, 2, 5]);
        }
    }
}

#[test]
fn tables_show_the_counts_of_the_period_and_of_the_one_before() {
    let mut proxy = Proxy::default();
    proxy.decides("Acme", A, Reason::Rule, 1);
    proxy.ends(A, 0, 1, 100_000);
    proxy.sample(0);
    proxy.decides("Acme", A, Reason::Rule, 4);
    proxy.decides("Other", B, Reason::Unreachable, 2);
    proxy.ends(A, 0, 2, 3_000_000);
    proxy.ends(B, 3, 0, 0);
    proxy.sample(130);
    let found = proxy.report(120, 240, 239, By::Verdict);
    let first = &found["refusals"][0];
    for (field, value) in [
        ("site", serde_json::json!(A)),
        ("bot", "Acme".into()),
        ("rule", "Disallow: /x".into()),
        ("reason", "rule".into()),
        ("count", 4.into()),
        ("before", 1.into()),
    ] {
        assert_eq!(first[field], value, "{field}: {found:#}");
    }
    assert_eq!(found["refusals"][1]["rule"], serde_json::Value::Null);
    assert_eq!(found["refused_bots"][1]["bot"], "Other");
    assert_eq!(found["bots"][0]["refused_before"], 1);
    assert_eq!(found["slow_sites"][0]["mean_us"], 1_500_000);
    assert_eq!(found["refused_sites"][0]["site"], A);
    assert_eq!(found["failing_sites"][0]["site"], B);
    assert_eq!(
        found["failing_sites"][0]["failing_since"],
        "2027-01-15T08:02:00.000000Z"
    );
    let found = proxy.report(0, 240, 239, By::Verdict);
    assert_eq!(found["refusals"][0]["before"], serde_json::Value::Null);
}

#[test]
fn failing_since_is_the_first_failure_after_the_last_answer() {
    let mut proxy = Proxy::default();
    for (minute, failed, answered) in [(0, 1, 0), (1, 0, 1), (2, 2, 0), (5, 1, 0)] {
        proxy.ends(A, failed, answered, 0);
        proxy.sample(minute * 60);
    }
    let found = proxy.report(0, 600, 599, By::Verdict);
    assert_eq!(
        found["failing_sites"][0]["failing_since"],
        "2027-01-15T08:02:00.000000Z"
    );
    proxy.ends(A, 1, 1, 0);
    proxy.sample(600);
    let found = proxy.report(0, 660, 659, By::Verdict);
    assert_eq!(found["failing_sites"][0]["failing_since"], serde_json::Value::Null);
}

#[test]
fn counts_older_than_eight_days_are_dropped() {
    let mut proxy = Proxy::default();
    for day in 0..12 {
        proxy.decides("Acme", A, Reason::NoRule, 1);
        proxy.sample(day * 86_400);
    }
    let now = 11 * 86_400;
    let found = proxy.report(0, now + 3600, now, By::Verdict);
    assert_eq!(totals(&found), [(Some("allow"), 9)], "eight days, and the current hour");
    let found = proxy.report(now - 86_400, now + 60, now, By::Verdict);
    assert_eq!(
        (totals(&found), &found["step"]),
        (vec![(Some("allow"), 2)], &600.into())
    );
}

#[test]
fn a_clock_that_is_set_back_loses_only_counts_after_the_new_time() {
    let mut proxy = Proxy::default();
    for second in [0, 60, 200, 30, 120] {
        proxy.decides("Acme", A, Reason::NoRule, 1);
        proxy.sample(second);
    }
    let found = proxy.report(0, 180, 179, By::Verdict);
    assert_eq!(totals(&found), [(Some("allow"), 3)]);
}

#[test]
fn a_saved_history_continues_after_a_restart() {
    let mut proxy = Proxy::default();
    proxy.decides("Acme", A, Reason::Rule, 3);
    proxy.ends(B, 1, 2, 5000);
    proxy.sample(0);
    let saved = proxy.history.saved();
    let mut next = Proxy::default();
    next.history.restore(saved.as_bytes()).expect("it was saved");
    for by in [By::Verdict, By::Reason, By::Bot, By::Site, By::Answer] {
        assert_eq!(next.report(0, 60, 59, by), proxy.report(0, 60, 59, by), "{by}");
    }
    // After the restart, the same minute and hour continue, but the counters begin at 0.
    next.decides("Acme", A, Reason::Rule, 1);
    next.sample(10);
    next.sample(70);
    for (from, until, now) in [(0, 120, 119), (0, 3600, 200_000)] {
        let found = next.report(from, until, now, By::Verdict);
        assert_eq!(totals(&found), [(Some("deny"), 4)], "{now}");
        assert_eq!(found["refusals"][0]["count"], 4);
    }
    for text in [
        "",
        "{}",
        "[1]",
        "{\"version\":9,\"names\":[],\"slots\":[[],[],[]]}",
        &saved[..saved.len() / 2],
    ] {
        let error = next.history.restore(text.as_bytes());
        assert!(error.is_err(), "{text}");
    }
    let earlier = br#"{"version":1,"names":["allow"],"slots":[[{"at":0,"results":[[0,0,1]]}],[],[]]}"#;
    assert!(matches!(next.history.restore(earlier), Err(Unreadable::Version)));
    let damaged = saved.replace("\"names\":[\"", "\"names\":[],\"other\":[\"");
    assert!(matches!(
        next.history.restore(damaged.as_bytes()),
        Err(Unreadable::Name)
    ));
    assert_eq!(
        totals(&next.report(0, 120, 119, By::Verdict)),
        [(Some("deny"), 4)],
        "nothing is lost"
    );
}

#[test]
fn the_memory_is_bounded_with_many_sites_of_long_names() {
    let mut proxy = Proxy::default();
    let long = "x".repeat(240);
    for minute in 0..60 {
        for site in 0..500 {
            proxy.decides(
                "Acme",
                &format!("https://{long}{minute}-{site}.example"),
                Reason::Rule,
                1,
            );
        }
        proxy.sample(minute * 60);
    }
    let state = proxy.history.0.lock();
    assert!(state.names.bytes() <= MAX_BYTES);
    for resolution in rings::Resolution::ALL {
        let limits = resolution.limits();
        for slot in state.rings.slots(resolution) {
            assert!(slot.bots.len() <= limits.bots && slot.sites.len() <= limits.sites);
            assert!(slot.refusals.len() <= limits.refusals);
        }
    }
    // The maximum size of all slots, if decisions have at most 1.5 times as many kinds as there are reasons.
    type Bot = (Arc<str>, counts::ByVerdict);
    type Site = (Arc<str>, SiteCounts);
    type Refused = (Refusal<Arc<str>>, u32);
    let size = |resolution: rings::Resolution| {
        let limits = resolution.limits();
        let slot = size_of::<counts::Slot>()
            + limits.bots * size_of::<Bot>()
            + limits.sites * size_of::<Site>()
            + limits.refusals * size_of::<Refused>()
            + Reason::ALL.len() * 3 / 2 * size_of::<(DecisionKind, u32)>();
        slot * resolution.spans() as usize
    };
    let slots: usize = rings::Resolution::ALL.into_iter().map(size).sum();
    // The hash maps of the current minute and hour. Each place in a map takes one byte more than its entry. The bots
    // are at most 1000 names, `other` and `none`.
    let places = |entries: usize| (entries * 8 / 7).next_power_of_two();
    let current =
        places(MAX_CURRENT) * (size_of::<Site>() + size_of::<Refused>() + 2) + places(1002) * (size_of::<Bot>() + 1);
    let all = slots + 2 * current + MAX_BYTES;
    assert!(all <= 10 * 1024 * 1024, "{all}");
    for resolution in [rings::Resolution::Minute, rings::Resolution::Hour] {
        let counted = state.rings.counting(resolution);
        assert!(counted.into_iter().all(|entries| entries <= MAX_CURRENT), "{counted:?}");
    }
    // The slots leave out most sites, but the totals contain the decisions of all sites.
    drop(state);
    let found = proxy.report(0, 3600, 3599, By::Site);
    let total: u64 = totals(&found).iter().map(|(_, total)| total).sum();
    assert_eq!(total, 30_000);
}

#[test]
fn long_rules_are_shortened_and_leave_room_for_other_names() {
    let mut proxy = Proxy::default();
    for number in 0..2000 {
        let long = if number % 2 == 0 { "x" } else { "ツ" }.repeat(500);
        proxy.refuses("Acme", A, format!("Disallow: /{number}-{long}"));
    }
    proxy.sample(0);
    proxy.decides("Other", B, Reason::Rule, 3);
    proxy.sample(1);
    let found = proxy.report(0, 60, 59, By::Verdict);
    let names = |table: &str, field: &str| {
        let rows = found[table].as_array().expect("rows").iter();
        let mut names: Vec<_> = rows
            .map(|row| row[field].as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("bots", "bot"), ["Acme", "Other"]);
    assert_eq!(names("busy_sites", "site"), [A, B]);
    let rules = names("refusals", "rule");
    assert_eq!(rules.len(), 10);
    let is_short = |rule: &String| rule == "Disallow: /x" || rule.len() < 140 && rule.ends_with('…');
    assert!(rules.iter().all(is_short), "{rules:#?}");
}

#[test]
fn refusals_over_the_counting_limit_store_no_names() {
    let mut proxy = Proxy::default();
    for number in 0..6000 {
        proxy.refuses("Acme", A, format!("Disallow: /{number}"));
    }
    proxy.sample(0);
    let bytes = proxy.history.0.lock().names.bytes();
    assert!(bytes < 5000 * 64, "{bytes}");
    // For a rule that already has a count, further refusals are still counted.
    proxy.refuses("Acme", A, "Disallow: /7".to_owned());
    proxy.sample(1);
    let found = proxy.report(0, 60, 59, By::Verdict);
    let first = &found["refusals"][0];
    assert_eq!((&first["rule"], &first["count"]), (&"Disallow: /7".into(), &2.into()));
}

#[test]
fn slow_failing_and_refused_sites_are_kept_among_many_busy_ones() {
    let mut proxy = Proxy::default();
    for site in 0..200 {
        proxy.decides("Acme", &format!("https://busy{site}.example"), Reason::NoRule, 100);
    }
    proxy.ends("https://slow.example", 0, 1, 9_000_000);
    proxy.ends("https://failing.example", 1, 0, 0);
    proxy.decides("Acme", "https://refusing.example", Reason::Rule, 1);
    proxy.sample(0);
    let found = proxy.report(0, 60, 59, By::Site);
    for (table, site) in [
        ("slow_sites", "https://slow.example"),
        ("failing_sites", "https://failing.example"),
        ("refused_sites", "https://refusing.example"),
    ] {
        assert_eq!(found[table][0]["site"], site, "{table}");
    }
    assert_eq!(totals(&found)[8].0, None, "the others together");
    assert_eq!(totals(&found).iter().map(|(_, total)| total).sum::<u64>(), 20_001);
}

#[test]
fn the_step_of_a_series_grows_with_its_period() {
    for (seconds, step) in [
        (60, 1),
        (300, 2),
        (3600, 60),
        (6 * 3600, 120),
        (24 * 3600, 600),
        (8 * 86_400, 3 * 3600),
    ] {
        let now = 100 * 86_400;
        let span = Span::of(&question(now - seconds, now, By::Verdict), START + now);
        let found = serde_json::to_value(span.report(&question(now - seconds, now, By::Verdict), &[], &[]));
        assert_eq!(found.expect("JSON")["step"], step, "{seconds}");
    }
}
