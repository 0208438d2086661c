//! Tests decisions on bots for which purposes are configured.

use super::*;
use crate::copy::{Reservation, TdmRep};
use crate::usage::{
    Purpose::{self, AiInput, AiTrain, Search, Tdm},
    Purposes, Unknown, UsagePolicy, UseRefusal, UseSource, Vocabulary, VocabularyPolicy,
};

const NO_TRAINING: &str =
    "User-agent: *\nDisallow: /private\nContent-Usage: train-ai=n\nContent-Usage: /free train-ai=y\n";
const NO_SIGNAL: &str = "User-agent: *\nDisallow:\nContent-Signal: search=yes, ai-train=no\n";

fn enforced() -> UsagePolicy {
    UsagePolicy {
        content_signal: VocabularyPolicy::Enforce,
        content_usage: VocabularyPolicy::Enforce,
        tdmrep: VocabularyPolicy::Enforce,
        x_robots_tag: VocabularyPolicy::Enforce,
        unknown: Unknown::Allow,
    }
}

fn strict() -> UsagePolicy {
    UsagePolicy {
        unknown: Unknown::Deny,
        ..enforced()
    }
}

fn of_bot(enforcement: Enforcement, purposes: &[Purpose], path: &str, scope: Scope, usage: UsagePolicy) -> Question {
    let bot = Bot {
        purposes: purposes.iter().copied().collect(),
        ..bot(enforcement, &["AcmeBot"])
    };
    let mut question = question(RobotsIdentity::Bot(&bot), path, scope);
    question.terms.usage = usage;
    question
}

fn decide_for(purposes: &[Purpose], known: &Known, path: &str, usage: UsagePolicy) -> Decision {
    decided(of_bot(Enforcement::Enforce, purposes, path, PATH, usage), known)
}

fn mining(question: Question, known: &Known) -> Option<NeedsTdmrep> {
    match undecided(question).decide(known.lookup()) {
        Ruled::NeedsTdmrep(undecided) => Some(undecided),
        Ruled::Decided(_) => None,
    }
}

fn mine(path: &str, scope: Scope, policy: UsagePolicy, tdmrep: Tdmrep<'_>) -> Decision {
    let asked = of_bot(Enforcement::Enforce, &[Tdm], path, scope, policy);
    let undecided = mining(asked, &Known::NoRobots).expect("the file is needed");
    undecided.complete(tdmrep)
}

pub(super) fn refused() -> Decision {
    decide_for(&[AiTrain], &Known::rules(NO_TRAINING), "/", enforced())
}

/// Returns `purpose: vocabulary label=value` or `purpose: pending`, or only `purpose` if no statement allows that
/// purpose.
fn refusal(decision: &Decision) -> Option<String> {
    let refused = decision.usage.as_deref()?.refused?;
    Some(match refused {
        UseRefusal::Forbidden(said) => format!("{}: {} {}={}", said.purpose, said.vocabulary, said.label, said.value()),
        UseRefusal::Unknown(purpose) => purpose.to_string(),
        UseRefusal::Pending(purpose) => format!("{purpose}: pending"),
    })
}

#[test]
fn an_enforced_statement_refuses_the_purpose_that_it_forbids() {
    type Case<'a> = (&'a [Purpose], &'a Known, &'a str, UsagePolicy, Option<&'a str>);

    let report = UsagePolicy::default();
    let (usage, signal) = (Known::rules(NO_TRAINING), Known::rules(NO_SIGNAL));
    let train = "ai-train: content-usage train-ai=n";
    let cases: &[Case<'_>] = &[
        (&[AiTrain], &usage, "/", enforced(), Some(train)),
        (&[Search, AiTrain], &usage, "/", enforced(), Some(train)),
        (&[AiTrain], &usage, "/free/1", enforced(), None),
        (&[AiTrain], &usage, "/", report, None),
        (&[Search, AiInput, Tdm], &usage, "/", enforced(), None),
        (
            &[AiTrain],
            &signal,
            "/",
            enforced(),
            Some("ai-train: content-signal ai-train=no"),
        ),
        (&[Search], &signal, "/", enforced(), None),
        (&[Search], &signal, "/", strict(), None),
        (&[AiInput], &signal, "/", strict(), Some("ai-input")),
        (&[AiInput], &Known::NoRobots, "/", strict(), Some("ai-input")),
        (&[AiInput], &Known::NoRobots, "/", enforced(), None),
    ];
    for (purposes, known, path, policy, expected) in cases {
        let decision = decide_for(purposes, known, path, *policy);
        let context = format!("{purposes:?} {known:?} {path}");
        assert_eq!(refusal(&decision).as_deref(), *expected, "{context}");
        assert_eq!(decision.reason == Reason::Usage, expected.is_some(), "{context}");
        assert_eq!(decision.forwarded, expected.is_none(), "{context}");
    }
}

#[test]
fn robots_txt_and_exemptions_decide_before_usage_preferences() {
    let known = Known::rules(NO_TRAINING);
    let disallowed = decide_for(&[AiTrain], &known, "/private", strict());
    assert_eq!(
        (disallowed.reason, disallowed.usage),
        (Reason::Rule, None),
        "a disallowed path has no preferences"
    );
    let robots = decide_for(&[AiTrain], &known, "/robots.txt", strict());
    assert_eq!((robots.reason, robots.usage), (Reason::RobotsFile, None));
    let exempt = decided(of_bot(Enforcement::Exempt, &[AiTrain], "/", PATH, strict()), &known);
    assert_eq!((exempt.reason, exempt.usage), (Reason::Exempt, None));
    let without = decide_for(&[], &known, "/", strict());
    assert_eq!(
        (without.reason, without.usage),
        (Reason::NoRule, None),
        "a bot without purposes is not asked"
    );
    let reported = decided(of_bot(Enforcement::Report, &[AiTrain], "/", PATH, enforced()), &known);
    assert_eq!((reported.verdict, reported.reason), (Verdict::Deny, Reason::Usage));
    assert!(reported.forwarded, "the bot is only reported");
}

#[test]
fn a_use_is_refused_if_any_reading_of_the_path_forbids_it() {
    let known = Known::rules("User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /art/ train-ai=n\n");
    for (path, refused) in [
        ("/art/1", true),
        ("//art/1", true),
        ("/x/../art/1", true),
        ("/artless", false),
    ] {
        let decision = decide_for(&[AiTrain], &known, path, enforced());
        assert_eq!(decision.reason == Reason::Usage, refused, "{path}");
    }
}

#[test]
fn hostile_patterns_of_usage_are_too_complex() {
    let piece = "*a".repeat(100);
    let lines: String = (0..2000)
        .map(|at| format!("Content-Usage: /{piece}{at}b train-ai=y\n"))
        .collect();
    let known = Known::rules(&format!("User-agent: *\nDisallow:\n{lines}"));
    let path = format!("/{}", "a".repeat(16_000));
    let decision = decide_for(&[AiTrain], &known, &path, enforced());
    assert_eq!((decision.reason, decision.forwarded), (Reason::TooComplex, false));
    assert_eq!(
        decide_for(&[], &known, &path, enforced()).reason,
        Reason::Rule,
        "nothing is searched for other bots"
    );
}

#[test]
fn a_tunnel_is_refused_if_the_site_forbids_the_use_of_any_path() {
    const EVERYWHERE: (Verdict, Reason) = (Verdict::Deny, Reason::Usage);
    const SOMEWHERE: (Verdict, Reason) = (Verdict::Unverifiable, Reason::Unverifiable);
    let excepted = || Some(Arc::from("pinned"));
    for (lines, expected) in [
        ("Content-Signal: ai-train=no", EVERYWHERE),
        ("Content-Usage: train-ai=n", EVERYWHERE),
        ("Content-Usage: / train-ai=n", EVERYWHERE),
        ("Content-Usage: train-ai=y\nContent-Usage: /* train-ai=n", EVERYWHERE),
        ("Content-Usage: train-ai=n\nContent-Usage: /art train-ai=n", EVERYWHERE),
        // The `Disallow` line alone would make the tunnel unverifiable.
        ("Disallow: /private\nContent-Signal: ai-train=no", EVERYWHERE),
        ("Disallow: /private\nContent-Usage: /art train-ai=n", SOMEWHERE),
        ("Content-Usage: train-ai=y\nContent-Usage: /art train-ai=n", SOMEWHERE),
        ("Content-Usage: train-ai=n\nContent-Usage: /free train-ai=y", SOMEWHERE),
        (
            "Content-Usage: train-ai=n\nContent-Usage: / train-ai=y\nContent-Usage: /art train-ai=n",
            SOMEWHERE,
        ),
    ] {
        let known = Known::rules(&format!("User-agent: *\n{lines}\n"));
        for exception in [None, excepted()] {
            let passes = exception.is_some() && expected == SOMEWHERE;
            let scope = Scope::Tunnel { exception };
            let decision = decided(of_bot(Enforcement::Enforce, &[AiTrain], "", scope, enforced()), &known);
            assert_eq!((decision.verdict, decision.reason), expected, "{lines}");
            assert_eq!(decision.forwarded, passes, "{lines}");
        }
    }
    let known = Known::rules(NO_SIGNAL);
    let other = of_bot(
        Enforcement::Enforce,
        &[Search],
        "",
        Scope::Tunnel { exception: None },
        enforced(),
    );
    assert_eq!(decided(other, &known).verdict, Verdict::Allow, "a search is allowed");
    let mixed = Known::rules("User-agent: *\nDisallow: /private\n");
    let tunnel = |purpose| {
        let scope = Scope::Tunnel { exception: excepted() };
        of_bot(Enforcement::Enforce, &[purpose], "", scope, strict())
    };
    let unknown = decided(tunnel(Search), &mixed);
    assert_eq!(
        (unknown.reason, unknown.forwarded),
        (Reason::Usage, false),
        "nothing allows the search"
    );
    assert!(mining(tunnel(Tdm), &mixed).is_some(), "the tunnel would be forwarded");
    let known = Known::rules("User-agent: *\nContent-Signal: search=yes\nContent-Usage: /art train-ai=n\n");
    let scope = Scope::Tunnel { exception: excepted() };
    let partial = decided(
        of_bot(Enforcement::Enforce, &[Search, AiTrain], "", scope, strict()),
        &known,
    );
    assert_eq!(
        refusal(&partial).as_deref(),
        Some("ai-train"),
        "the search is allowed everywhere"
    );
}

#[test]
fn a_use_is_allowed_only_if_every_reading_of_the_path_allows_it() {
    let known = Known::rules("User-agent: *\nContent-Usage: /free/ train-ai=y\n");
    let file = r#"[{"location": "/free/", "tdm-reservation": 0}]"#;
    let file = TdmRep::parse(file.as_bytes());
    for (path, allowed) in [
        ("/free/page", true),
        ("/page", false),
        ("/free/../page", false),
        ("/free/%2e%2e/page", false),
        ("/free/..%2fpage", false),
        ("/free/..;/page", false),
        ("/free/x/../../page", false),
    ] {
        let train = decide_for(&[AiTrain], &known, path, strict());
        assert_eq!(train.forwarded, allowed, "{path}");
        let file = Tdmrep::Found(&file, crate::copy::Sha256::of(b""));
        assert_eq!(mine(path, PATH, strict(), file).forwarded, allowed, "{path}");
    }
    let scope = Scope::Tunnel { exception: None };
    let tunnel = decided(of_bot(Enforcement::Enforce, &[AiTrain], "", scope, strict()), &known);
    assert_eq!(
        (tunnel.reason, tunnel.forwarded),
        (Reason::Usage, false),
        "other paths are not allowed"
    );
}

#[test]
fn a_tdmrep_json_that_is_still_being_fetched_refuses_for_now() {
    let decide = |policy| mine("/", PATH, policy, Tdmrep::Pending);
    let pending = decide(enforced());
    assert_eq!(refusal(&pending).as_deref(), Some("tdm: pending"));
    assert_eq!((pending.forwarded, pending.retry_after()), (false, Some(5)));
    assert!(decide(UsagePolicy::default()).forwarded, "it is only reported");
}

#[test]
fn a_vocabulary_that_is_only_reported_never_refuses_a_request() {
    let piece = "*a".repeat(100);
    let lines: String = (0..2000)
        .map(|at| format!("Content-Usage: /{piece}{at}b train-ai=n\n"))
        .collect();
    let known = Known::rules(&format!("User-agent: *\nDisallow:\n{lines}"));
    let path = format!("/{}", "a".repeat(16_000));
    let off = UsagePolicy {
        content_signal: VocabularyPolicy::Off,
        content_usage: VocabularyPolicy::Off,
        ..UsagePolicy::default()
    };
    for policy in [UsagePolicy::default(), off] {
        let decision = decide_for(&[AiTrain], &known, &path, policy);
        assert_eq!((decision.reason, decision.forwarded), (Reason::Rule, true));
        let reported = undecided(of_bot(Enforcement::Enforce, &[AiTrain], &path, PATH, policy));
        let at_once = reported.decide_at_once(known.lookup());
        assert_eq!(
            at_once.is_ok(),
            policy == off,
            "with a small budget, nothing is left out"
        );
    }
    let unread = decide_for(&[AiTrain], &Known::rules(NO_TRAINING), "/", off);
    assert_eq!(unread.usage.expect("a report").said, []);
    let (file, path) = slow_tdmrep();
    let file = Tdmrep::Found(&file, crate::copy::Sha256::of(b""));
    assert_eq!(mine(&path, PATH, UsagePolicy::default(), file).reason, Reason::NoRobots);
}

#[test]
fn a_request_that_comes_too_early_is_not_refused_for_its_use() {
    let question = of_bot(Enforcement::Report, &[AiTrain], "/", PATH, enforced());
    let decision = decided(question, &Known::rules(NO_TRAINING));
    assert!(decision.forwarded && refusal(&decision).is_some());
    let early = decision.deferred(Deferral {
        at: at(0),
        not_before: at(1),
        cause: crate::pace::Cause::Delay,
    });
    assert_eq!((early.reason, refusal(&early)), (Reason::Pace, None));
}

#[test]
fn a_reported_statement_is_not_shown_as_the_cause_of_a_refusal() {
    let policy = UsagePolicy {
        unknown: Unknown::Deny,
        ..UsagePolicy::default()
    };
    let decision = decide_for(&[Search, AiTrain], &Known::rules(NO_TRAINING), "/", policy);
    assert_eq!(
        (decision.rule, decision.reading),
        (None, None),
        "no rule decides, in no reading"
    );
    let report = decision.usage.expect("a report");
    assert_eq!(report.refused, Some(UseRefusal::Unknown(Search)));
    assert_eq!(
        report.deciding_statement(),
        None,
        "not the reported \"no\" about training"
    );
}

#[test]
fn a_tdmrep_json_can_refuse_an_allowed_request_of_a_bot_that_mines() {
    let off = UsagePolicy {
        tdmrep: VocabularyPolicy::Off,
        ..enforced()
    };
    let known = Known::rules("User-agent: *\nDisallow: /private\n");
    for (purposes, path, policy, wants) in [
        (&[Tdm][..], "/", enforced(), true),
        (&[Search], "/", enforced(), false),
        (&[Tdm], "/private", enforced(), false),
        (&[Tdm], "/", off, false),
    ] {
        let asked = of_bot(Enforcement::Enforce, purposes, path, PATH, policy);
        assert_eq!(mining(asked, &known).is_some(), wants, "{purposes:?} {path}");
    }
    let forbidden = of_bot(Enforcement::Enforce, &[AiTrain, Tdm], "/", PATH, enforced());
    assert!(
        mining(forbidden, &Known::rules(NO_TRAINING)).is_none(),
        "the robots.txt refuses it already"
    );
    let answer = |reserved: Option<bool>| {
        let reservation = reserved.map(|reserved| Reservation { reserved, entry: 3 });
        let sha256 = crate::copy::Sha256::of(b"");
        Some(TdmrepAnswer { reservation, sha256 })
    };
    for (policy, answer, expected) in [
        (enforced(), None, None),
        (enforced(), answer(None), None),
        (enforced(), answer(Some(false)), None),
        (enforced(), answer(Some(true)), Some("tdm: tdmrep tdm-reservation=1")),
        (UsagePolicy::default(), answer(Some(true)), None),
        (strict(), None, Some("tdm")),
        (strict(), answer(None), Some("tdm")),
        (strict(), answer(Some(false)), None),
    ] {
        let tdmrep = answer.map_or(Tdmrep::None, Tdmrep::Answer);
        let decision = mine("/", PATH, policy, tdmrep);
        assert_eq!(refusal(&decision).as_deref(), expected, "{answer:?}");
        assert_eq!(decision.forwarded, expected.is_none(), "{answer:?}");
    }
}

#[test]
fn a_response_can_forbid_but_never_allow_a_use() {
    let said = |vocabulary, allowed, policy| crate::usage::UseStatement {
        vocabulary,
        label: "noai",
        purpose: AiTrain,
        allowed,
        source: crate::usage::UseSource::Field("x-robots-tag"),
        policy,
    };
    let (tag, usage) = (Vocabulary::XRobotsTag, Vocabulary::ContentUsage);
    let allowed = decide_for(&[AiTrain], &Known::rules(""), "/", enforced());
    assert_eq!(allowed.purposes(), Purposes::from_iter([AiTrain]));
    let no = said(tag, false, VocabularyPolicy::Enforce);
    let withdrawn = allowed.withdrawn(&[said(usage, true, VocabularyPolicy::Enforce), no]);
    let (withdrawn, statement) = withdrawn.expect("the response forbids it");
    assert_eq!(statement, no);
    assert_eq!((withdrawn.verdict, withdrawn.reason), (Verdict::Deny, Reason::Usage));
    assert!(!withdrawn.forwarded);
    assert_eq!(refusal(&withdrawn).as_deref(), Some("ai-train: x-robots-tag noai=noai"));
    assert!(
        allowed
            .withdrawn(&[said(tag, false, VocabularyPolicy::Report)])
            .is_none()
    );
    assert!(
        allowed
            .withdrawn(&[said(usage, true, VocabularyPolicy::Enforce)])
            .is_none()
    );
    let reported = of_bot(Enforcement::Report, &[AiTrain], "/", PATH, enforced());
    assert!(
        decided(reported, &Known::rules("")).withdrawn(&[no]).is_none(),
        "the bot is only reported"
    );
    let exempt = decided(
        of_bot(Enforcement::Exempt, &[AiTrain], "/", PATH, enforced()),
        &Known::NoRobots,
    );
    assert!(exempt.withdrawn(&[no]).is_none());
    assert!(exempt.purposes().is_empty());
}

fn mined(file: &str, path: &str, scope: Scope) -> Decision {
    let (file, sha256) = (TdmRep::parse(file.as_bytes()), crate::copy::Sha256::of(b""));
    mine(path, scope, enforced(), Tdmrep::Found(&file, sha256))
}

fn slow_tdmrep() -> (TdmRep, String) {
    let entry = r#"{"location": "/*b", "tdm-reservation": 0}"#;
    let file = format!("[{}]", vec![entry; 1000].join(","));
    (TdmRep::parse(file.as_bytes()), format!("/{}", "a".repeat(8000)))
}

#[test]
fn a_use_is_refused_if_any_reading_of_the_path_is_reserved() {
    let file = r#"[{"location": "/b", "tdm-reservation": 1}, {"location": "/a", "tdm-reservation": 0}]"#;
    for (path, entry) in [
        ("/a", None),
        ("/c", None),
        ("/b", Some(1)),
        ("/%62", Some(1)),
        ("/a/../b", Some(1)),
    ] {
        let decision = mined(file, path, PATH);
        let statement = decision.usage.as_deref().and_then(|usage| usage.refused);
        let source = statement.and_then(|refused| refused.statement().map(|said| said.source));
        assert_eq!(source, entry.map(UseSource::Entry), "{path}");
    }
    let decision = mined(file, "", Scope::Tunnel { exception: None });
    assert_eq!(refusal(&decision).as_deref(), Some("tdm: tdmrep tdm-reservation=1"));
}

#[test]
fn a_tdmrep_search_that_exceeds_its_budget_denies_as_too_complex() {
    let (file, path) = slow_tdmrep();
    let file = Tdmrep::Found(&file, crate::copy::Sha256::of(b""));
    let short = mine("/a", PATH, enforced(), file);
    assert_eq!((short.verdict, short.reason), (Verdict::Allow, Reason::NoRobots));
    let long = mine(&path, PATH, enforced(), file);
    assert_eq!(
        (long.verdict, long.reason, long.forwarded),
        (Verdict::Deny, Reason::TooComplex, false)
    );
}

#[test]
fn an_x_robots_tag_can_address_the_bot_by_its_name_or_robots_agents() {
    let said_by = |decision: &Decision, tag: &str| {
        let tag = http::HeaderValue::from_str(tag).expect("a field value");
        let fields = http::HeaderMap::from_iter([(http::HeaderName::from_static("x-robots-tag"), tag)]);
        decision.said_by(&fields).len()
    };
    let known = Known::rules("");
    let trainer = decide_for(&[AiTrain], &known, "/", enforced());
    for (tag, count) in [
        ("noai", 1),
        ("ACME: noai", 1),
        ("acmebot: noai", 1),
        ("*: noai", 1),
        ("acmebot2: noai", 0),
        ("acme bot: noai", 0),
    ] {
        assert_eq!(said_by(&trainer, tag), count, "{tag}");
    }
    let without_purposes = decide_for(&[], &known, "/", enforced());
    let exempt = of_bot(Enforcement::Exempt, &[AiTrain], "/", PATH, enforced());
    assert_eq!(said_by(&without_purposes, "noai"), 0);
    assert_eq!(said_by(&decided(exempt, &known), "noai"), 0);
}

#[test]
fn a_response_is_reported_only_if_nothing_forbade_the_use_before() {
    let said = |allowed, policy| crate::usage::UseStatement {
        vocabulary: Vocabulary::ContentUsage,
        label: "train-ai",
        purpose: AiTrain,
        allowed,
        source: crate::usage::UseSource::Field("content-usage"),
        policy,
    };
    let (yes, no) = (
        said(true, VocabularyPolicy::Report),
        said(false, VocabularyPolicy::Report),
    );
    let reported = UsagePolicy::default();
    let mut silent = decide_for(&[AiTrain], &Known::rules(""), "/", reported);
    assert!(!silent.add_said(&[yes]));
    assert!(silent.add_said(&[no]), "nothing before forbade it");
    assert!(!silent.add_said(&[no]));
    let mut forbidden = decide_for(&[AiTrain], &Known::rules(NO_TRAINING), "/", reported);
    assert!(!forbidden.add_said(&[no]), "the robots.txt forbids it already");
    let mut without_purposes = decide_for(&[], &Known::rules(""), "/", reported);
    assert!(!without_purposes.add_said(&[no]));
}
