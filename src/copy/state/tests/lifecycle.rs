//! Replays every case of `tests/cases/lifecycle.jsonl` with a simulated clock.

use serde::Deserialize;

use super::*;
use crate::{
    egress::{EgressError, Guard, ResolveError},
    origin::Target,
    upstream::Fault,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    events: Vec<Event>,
    query_at_s: u64,
    google: String,
    rfc9309: String,
    #[serde(rename = "note")]
    _note: Option<String>,
}

/// How the origin answered a fetch at second `t` of the test.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    t: u64,
    status: Option<u16>,
    #[serde(default)]
    body: String,
    cache_control: Option<String>,
    error: Option<String>,
    redirects: Option<Hops>,
    to: Option<String>,
    /// The response from the address in `to`.
    r#final: Option<Box<Event>>,
    #[serde(rename = "content_type")]
    _content_type: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Hops {
    Number(u64),
    Forever(String),
}

impl Event {
    fn fetched(&self) -> Fetched {
        match (&self.error, &self.redirects, self.status) {
            (Some(error), None, None) => Fetched::Failed(failure(error)),
            (None, Some(hops), None) => self.redirected(hops),
            (None, None, Some(300..=399)) => {
                Fetched::Failed(FetchError::Redirect("the redirect has no Location".to_owned()).into())
            }
            (None, None, Some(status)) => Fetched::Response(OriginResponse {
                freshness: self.freshness(),
                ..OriginResponse::new(status, self.body.clone())
            }),
            _ => panic!("an event is an error, redirects or a status"),
        }
    }

    fn redirected(&self, hops: &Hops) -> Fetched {
        match hops {
            Hops::Forever(word) => {
                assert_eq!(word, "loop");
                Fetched::TooManyRedirects { status: 302 }
            }
            Hops::Number(6..) => Fetched::TooManyRedirects { status: 302 },
            Hops::Number(_) => match (&self.r#final, &self.to) {
                (Some(end), _) => end.fetched(),
                (None, Some(to)) => Fetched::Failed(refused_hop(to)),
                (None, None) => panic!("a redirect leads somewhere"),
            },
        }
    }

    fn freshness(&self) -> Freshness {
        let mut headers = http::HeaderMap::new();
        if let Some(value) = &self.cache_control {
            headers.insert(http::header::CACHE_CONTROL, value.parse().expect("a field value"));
        }
        Freshness::from_headers(&headers, at(self.t))
    }
}

fn failure(error: &str) -> Failure {
    let fault = match error {
        "dns_nxdomain" => EgressError::from(ResolveError::NotFound).into(),
        "dns_timeout" => EgressError::from(ResolveError::Timeout).into(),
        "connect_refused" => Fault::ConnectionRefused,
        "connect_timeout" => Fault::ConnectionTimeout,
        "tls_error" => Fault::TlsCertificate("Expired".to_owned()),
        "reset_mid_body" | "chunking_error" | "truncated_content_length" => Fault::ResponseIncomplete,
        "invalid_http" => Fault::HttpProtocol,
        other => panic!("an error that nobody knows: {other}"),
    };
    FetchError::from(fault).into()
}

fn refused_hop(to: &str) -> Failure {
    let origin = Target::origin_of(to).expect("a URL");
    let prohibited = Guard::default().screen(&origin).expect_err("a private address");
    FetchError::from(Fault::from(EgressError::from(prohibited))).into()
}

fn effect_of(answer: Answer<'_>) -> &'static str {
    match answer {
        Answer::Rules(copy) => {
            let found = copy.robots.agent("*").decide(b"/p");
            match (found.allowed, found.rule) {
                (true, None) => "allow_all",
                (false, Some(_)) => "rules",
                other => panic!("no case has such a rule: {other:?}"),
            }
        }
        Answer::LastCopy(copy, failure) => {
            assert!(!copy.robots.agent("*").decide(b"/p").allowed, "because of {failure:?}");
            "stale_rules"
        }
        Answer::NoRobots | Answer::Soft404 | Answer::UnreachableTooLong(_) => "allow_all",
        Answer::Unreachable(failure) => {
            assert!(failure.is_some(), "a failure is named");
            "disallow_all"
        }
    }
}

fn cases() -> Vec<Case> {
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/lifecycle.jsonl"))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn the_listed_cases_give_the_expected_answers() {
    let cases = cases();
    assert!(cases.len() >= 49, "the list is shorter than it was: {}", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .flat_map(|case| {
            let rfc9309 = Policy {
                profile: Profile::Rfc9309,
                soft_404: false,
                ..Policy::default()
            };
            let google = History::new();
            [
                (case, google, &case.google),
                (case, History::under(rfc9309), &case.rfc9309),
            ]
        })
        .filter_map(|(case, history, wanted)| {
            let history = (case.events.iter()).fold(history, |history, event| history.then(event.t, event.fetched()));
            let answer = history.answer(case.query_at_s);
            let found = effect_of(answer);
            let profile = history.policy.profile;
            (found != *wanted).then(|| format!("{} {profile:?}: {wanted}, not {found} ({answer:?})", case.id))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_cause_of_allowing_everything_has_its_own_reason() {
    let reason = |id: &str| {
        let cases = cases();
        let case = cases.iter().find(|case| case.id == id).expect("a case of the list");
        let history =
            (case.events.iter()).fold(History::new(), |history, event| history.then(event.t, event.fetched()));
        rules_of(history.answer(case.query_at_s))
            .err()
            .map(|(_, reason)| reason)
    };
    for (id, expected) in [
        ("404", Some(Reason::NoRobots)),
        ("redirect-6", Some(Reason::NoRobots)),
        ("redirect-loop", Some(Reason::NoRobots)),
        ("5xx-body-not-found", Some(Reason::Soft404)),
        ("never-seen-5xx-31d", Some(Reason::UnreachableTooLong)),
        ("redirect-to-private-ip", Some(Reason::Unreachable)),
        ("204", None),
        ("stale-then-5xx-31d-site-down", None),
    ] {
        assert_eq!(reason(id), expected, "{id}");
    }
}
