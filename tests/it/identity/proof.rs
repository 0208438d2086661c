//! Which bot a request belongs to, or why it is refused, given its credential, its network and its User-Agent.

use super::*;
use crate::support::{Alpn, Ask, NAME, Response, Roots, wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Absolute,
    Inside(Alpn),
    Tunnel,
}

const WAYS: [Way; 5] = [
    Way::Plain,
    Way::Absolute,
    Way::Inside(Alpn::Http1),
    Way::Inside(Alpn::Http2),
    Way::Tunnel,
];

#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// Forwarded, as a request of this bot. The second value is how the bot was identified.
    ForwardedAs(&'static str, &'static str),
    Refused(&'static str),
    NeedsCredential,
    /// Refused with 407 because the credential is invalid. Inside a CONNECT, the CONNECT itself is refused.
    InvalidCredential,
}

const CHROME: &str = super::CHROME;

/// Credential, User-Agent (`|` separates two fields), outcome, and the credential that the log names.
#[rustfmt::skip]
const ROWS: &[(&str, &str, Outcome, &str)] = &[
    (ACME,     "AcmeBot/1.0",     Outcome::ForwardedAs("acme", "credential"),     "acme"),
    (ACME,     "AcmeRobot/2",     Outcome::ForwardedAs("acme", "credential"),     "acme"),
    (ACME,     "ACME/2",          Outcome::ForwardedAs("acme", "credential"),     "acme"),
    (ACME,     "",                Outcome::ForwardedAs("acme", "credential"),     "acme"),
    (ACME,     CHROME,            Outcome::ForwardedAs("acme", "credential"),     "acme"),
    (ACME,     "FreeBot/1",       Outcome::Refused("identity"),                   "acme"),
    (ACME,     "DuoA",            Outcome::Refused("identity"),                   "acme"),
    (ACME,     "Scanner/1",       Outcome::Refused("identity"),                   "acme"),
    (ACME,     "Reporter/1",      Outcome::Refused("identity"),                   "acme"),
    (ACME,     "curl/8.5.0",      Outcome::Refused("identity"),                   "acme"),
    (ACME,     "AcmeBot|FreeBot", Outcome::Refused("unidentified"),               "acme"),
    (DUO,      "DuoB/1",          Outcome::ForwardedAs("duo-b", "credential"),    "duo"),
    (DUO,      "",                Outcome::Refused("unidentified"),               "duo"),
    (DUO,      CHROME,            Outcome::Refused("unidentified"),               "duo"),
    (REPORTER, "Reporter/1",      Outcome::ForwardedAs("reporter", "credential"), "reporter"),
    (REPORTER, "FreeBot/1",       Outcome::Refused("identity"),                   "reporter"),
    (SCANNER,  "Scanner/1",       Outcome::ForwardedAs("scanner", "credential"),  "scanner"),
    (SCANNER,  "curl/8.5.0",      Outcome::Refused("identity"),                   "scanner"),
    ("",       "FreeBot/1",       Outcome::ForwardedAs("free", "user-agent"),     ""),
    ("",       "curl/8.5.0",      Outcome::ForwardedAs("curl", "product-token"),  ""),
    ("",       "",                Outcome::Refused("unidentified"),               ""),
    ("",       "AcmeBot/1.0",     Outcome::NeedsCredential,                       ""),
    ("",       "AcmeRobot/1.0",   Outcome::NeedsCredential,                       ""),
    ("",       "Reporter/1",      Outcome::NeedsCredential,                       ""),
    ("",       "Scanner/1",       Outcome::NeedsCredential,                       ""),
    ("acme:a-Secret-of-scanner", "AcmeBot", Outcome::InvalidCredential, ""),
    ("nobody:a-Secret-of-acme",  "AcmeBot", Outcome::InvalidCredential, ""),
    ("a-Secret-of-acme:acme",    "FreeBot", Outcome::InvalidCredential, ""),
    ("acme:",  "",                Outcome::InvalidCredential,                     ""),
];

fn with_identity<'a>(ask: Ask<'a>, credential: &str, user_agent: Option<&str>) -> Ask<'a> {
    let mut ask = ask.without("User-Agent");
    for field in user_agent
        .unwrap_or_default()
        .split('|')
        .filter(|field| !field.is_empty())
    {
        ask = ask.header("User-Agent", field);
    }
    match credential {
        "" => ask,
        _ => ask.header("Proxy-Authorization", &basic(credential)),
    }
}

/// Sends the request, and returns the response to it, or to its CONNECT if that is refused.
async fn ask(gate: &Gate, origin: &Origin, way: Way, path: &str, credential: &str, user_agent: &str) -> Response {
    let agent = Some(user_agent);
    match way {
        Way::Plain | Way::Absolute => with_identity(gate.get(&origin.url(path)), credential, agent).await,
        Way::Inside(alpn) => {
            // Most clients send the User-Agent only inside the tunnel.
            let connect = gate.connect(&origin.authority());
            match connect.with_ask(|ask| with_identity(ask, credential, None)).await {
                crate::support::Connected::Refused(response) => response,
                crate::support::Connected::Tunnel(tunnel) => {
                    let mut inside = tunnel.tls(NAME, alpn).await;
                    with_identity(inside.get(path), "", agent).await
                }
            }
        }
        Way::Tunnel => {
            let connect = gate.connect(&origin.authority());
            match connect.with_ask(|ask| with_identity(ask, credential, agent)).await {
                crate::support::Connected::Refused(response) => response,
                crate::support::Connected::Tunnel(tunnel) => {
                    let mut inside = tunnel.trusting(Roots::of_origins()).tls(NAME, Alpn::Http1).await;
                    with_identity(inside.get(path), "", agent).await
                }
            }
        }
    }
}

#[tokio::test]
async fn a_credential_must_match_the_user_agent_over_every_way() {
    let plain = Origin::start().anything("page").spawn().await;
    let tls = Origin::start().anything("page").tls().spawn().await;
    let gate = bound("").await;
    let tunnels = bound("[https]\nmode = \"tunnel\"").await;
    for way in WAYS {
        let (gate, origin) = match way {
            Way::Plain => (&gate, &plain),
            Way::Absolute | Way::Inside(_) => (&gate, &tls),
            Way::Tunnel => (&tunnels, &tls),
        };
        for (n, (credential, user_agent, come, named)) in ROWS.iter().enumerate() {
            let row = format!("{way:?} {credential} {user_agent}");
            let path = format!("/{way:?}/{n}").replace(['(', ')'], "-");
            let seen = gate.audit().len();
            let response = ask(gate, origin, way, &path, credential, user_agent).await;

            let inside = matches!(way, Way::Inside(_));
            let forwarded = matches!(come, Outcome::ForwardedAs(..));
            assert_eq!(origin.count(&path), usize::from(forwarded), "{row}");
            match come {
                Outcome::ForwardedAs(..) => assert_eq!((response.status, &*response.text()), (200, "page"), "{row}"),
                Outcome::Refused(reason) => assert_eq!(outcome(&response), (403, (*reason).to_owned()), "{row}"),
                Outcome::NeedsCredential => {
                    let status = if inside { 403 } else { 407 };
                    assert_eq!(outcome(&response), (status, "unauthenticated".to_owned()), "{row}");
                    // In the tunnel, the client would send a credential to the origin and not to the proxy, so the
                    // response does not ask for one.
                    assert_eq!(response.text().contains("NAME:SECRET@"), !inside, "{row}");
                }
                Outcome::InvalidCredential => {
                    assert_eq!(outcome(&response), (407, "unauthenticated".to_owned()), "{row}")
                }
            }
            // The decision is in the log before the response arrives.
            let record = gate
                .audit()
                .into_iter()
                .skip(seen)
                .rfind(|record| record["event"] == "decision");
            let record = record.unwrap_or_else(|| panic!("{row}: no decision"));
            let (bot, identity) = match come {
                Outcome::ForwardedAs(bot, identity) => (Some(*bot), *identity),
                Outcome::InvalidCredential => (None, "failed"),
                _ if named.is_empty() => (None, "none"),
                _ => (None, "credential"),
            };
            assert_eq!(record["bot"], serde_json::json!(bot), "{row}");
            assert_eq!(record["identity"], identity, "{row}");
            let named = Some(*named).filter(|named| !named.is_empty());
            assert_eq!(record["credential"], serde_json::json!(named), "{row}");
            assert_eq!(record["verdict"] == "allow", forwarded, "{row}");
        }
    }
    for request in [plain.requests(), tls.requests()].concat() {
        assert_eq!(request.field("Proxy-Authorization"), None, "{request:?}");
    }
}

#[tokio::test]
async fn report_exempt_and_requests_for_robots_txt_still_need_a_proof() {
    let origin = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .anything("page")
        .spawn()
        .await;
    let gate = bound("").await;
    for (credential, user_agent, status, reason) in [
        ("", "Reporter/1", 407, "unauthenticated"),
        ("", "Scanner/1", 407, "unauthenticated"),
        (REPORTER, "Scanner/1", 403, "identity"),
        (SCANNER, "Reporter/1", 403, "identity"),
    ] {
        for path in ["/x", "/robots.txt"] {
            let response = with_identity(gate.get(&origin.url(path)), credential, Some(user_agent)).await;
            assert_eq!(outcome(&response), (status, reason.to_owned()), "{user_agent} {path}");
        }
    }
    assert!(origin.requests().is_empty());
    allowed(
        &with_identity(gate.get(&origin.url("/x")), SCANNER, Some("Scanner/1")).await,
        "exempt",
    );
}

#[tokio::test]
async fn an_invalid_credential_field_is_refused() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let good = basic(ACME);
    for fields in [
        &["Bearer a-Secret-of-acme"][..],
        &["Basic a-Secret-of-acme"],
        &["Basic"],
        &[""],
        &[&good, &good],
        &[&good, ""],
        &["Digest username=\"acme\"", &good],
        &[&*format!("{good}, {good}")],
        &[&*good.replace("Basic ", "Basic\t")],
    ] {
        let ask = gate.get(&origin.url("/x")).user_agent("AcmeBot/1");
        let ask = fields
            .iter()
            .fold(ask, |ask, field| ask.header("Proxy-Authorization", field));
        let response = ask.await;
        assert_eq!(outcome(&response), (407, "unauthenticated".to_owned()), "{fields:?}");
        assert_eq!(response.reason, "Proxy Authentication Required");
    }
    let spelled = good.replace("Basic ", "bAsIc   ");
    for value in [spelled.trim_end_matches('='), &good] {
        let ask = gate.get(&origin.url("/y")).user_agent("AcmeBot/1");
        allowed(&ask.header("proxy-authorization", value).await, "no-robots");
    }
}

#[tokio::test]
async fn each_request_of_a_connection_needs_its_own_credential() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let mut connection = gate.dial().await;
    let url = origin.url("/x");
    for (credential, status) in [(ACME, 200), ("", 407), (ACME, 200), ("acme:wrong", 407), (ACME, 200)] {
        let response = with_identity(connection.get(&url), credential, Some("AcmeBot/1")).await;
        assert_eq!(response.status, status, "{credential}");
    }
}

#[tokio::test]
async fn without_configured_credentials_the_field_is_ignored() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    for value in [&basic(ACME), "nonsense"] {
        let ask = gate.get(&origin.url("/x")).header("Proxy-Authorization", value);
        allowed(&ask.await, "no-robots");
    }
    for request in origin.requests_for("/x") {
        assert_eq!(request.field("Proxy-Authorization"), None);
    }
}

#[tokio::test]
async fn a_network_proves_the_bot_of_its_clients() {
    let origin = Origin::start().anything("page").spawn().await;
    let lan = "[[bot]]\nname = \"lan\"\nuser-agents = [\"LanBot\"]\nnetworks = [\"NET\"]";
    let inside = Gate::with(&lan.replace("NET", "127.0.0.0/8")).await;
    let outside = Gate::with(&lan.replace("NET", "10.0.0.0/8")).await;
    for (gate, user_agent, expected) in [
        (&inside, "LanBot/1", "lan"),
        (&inside, "", "lan"),
        (&inside, "curl/8", "403 identity"),
        (&outside, "LanBot/1", "403 unauthenticated"),
        (&outside, "lan/1", "403 unauthenticated"),
        (&outside, "", "403 unidentified"),
        (&outside, "curl/8", "curl"),
    ] {
        let seen = gate.audit().len();
        let response = with_identity(gate.get(&origin.url("/x")), "", Some(user_agent)).await;
        let record = wait::until("a decision", || {
            gate.audit()
                .into_iter()
                .skip(seen)
                .find(|record| record["event"] == "decision")
        });
        let record = record.await;
        let network = (std::ptr::eq(gate, &inside)).then_some("127.0.0.0/8");
        assert_eq!(record["credential"], serde_json::json!(network), "{user_agent}");
        let matched_by = network.or(Some(expected).filter(|expected| *expected == "curl"));
        assert_eq!(record["matched_by"], serde_json::json!(matched_by), "{user_agent}");
        match response.status {
            200 => assert_eq!(record["bot"], expected, "{user_agent}"),
            _ => {
                let (status, reason) = outcome(&response);
                assert_eq!(format!("{status} {reason}"), expected, "{user_agent}");
            }
        }
    }
}
