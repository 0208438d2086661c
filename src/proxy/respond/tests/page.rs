//! Tests the HTML page of a refusal.

use super::*;
use crate::proxy::limits::Limit;

fn page(grounds: &DecisionTexts<'_>) -> OwnResponse {
    let browser = accepting(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]);
    OwnResponse::refusal(grounds, &browser, &Refusals::default(), "robotgate")
}

fn title(answer: &OwnResponse) -> &str {
    let (_, rest) = html(answer).split_once("<title>").expect("a title");
    rest.split_once("</title>").expect("its end").0
}

#[test]
fn the_title_of_the_page_says_why() {
    let rule = decided(Verdict::Deny, Reason::Rule);
    let unreachable = decided(Verdict::Deny, Reason::Unreachable);
    let egress = decided(Verdict::Deny, Reason::Egress);
    let with_error = |texts: &DecisionTexts<'static>, error: &str| DecisionTexts {
        robots_error: Some(error.to_owned()),
        ..texts.clone()
    };
    for (grounds, expected) in [
        (
            by_rule(&rule, "Disallow: /private"),
            "Disallowed by robots.txt: Disallow: /private (line 3)",
        ),
        (
            with_error(&unreachable, "the server answered 503"),
            "Disallowed: robots.txt is unreachable: the server answered 503",
        ),
        (
            with_error(&egress, "port 22 is closed"),
            "Disallowed: bots must not go there: port 22 is closed",
        ),
    ] {
        assert_eq!(title(&page(&grounds)), expected);
    }
    let browser = accepting(&["text/html"]);
    let refused = Problem::Fault(&Fault::ConnectionRefused);
    let answer = OwnResponse::problem(&refused, &browser, "robotgate");
    assert_eq!(title(&answer), "Bad Gateway: the server refused the connection");
    assert!(html(&answer).contains("<p>The server refused the connection.</p>"));
}

#[test]
fn the_page_shows_what_the_json_shows_and_what_to_do() {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let answer = page(&by_rule(&decision, "Disallow: /private"));
    let body = html(&answer);
    for part in [
        "<code>https://a.example</code>",
        "<code>Disallow: /private</code>",
        "<code>3</code>",
        "<code>*</code>",
        "<a href=\"https://a.example/robots.txt\">",
        ID,
        "href=\"http://robotgate.internal/problems#rule\"",
        "<h2>What to do</h2>",
        "<code>robotgate explain --config FILE --agent BOT URL</code>",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    for name in ["robots-decision", "proxy-status", "cache-control"] {
        assert!(has(&answer, name), "{name}");
    }
}

#[test]
fn the_page_says_when_to_try_again() {
    let decision = decided(Verdict::Deny, Reason::Unreachable);
    let grounds = DecisionTexts {
        retry_after: Some(60),
        ..decision.clone()
    };
    let answer = page(&grounds);
    assert!(html(&answer).contains("<dt>Try again in</dt><dd><code>60 s</code>"));
}

#[test]
fn the_page_about_a_limit_names_no_robots_txt() {
    let limit = Problem::Limit(Limit::ClientFetches);
    let answer = OwnResponse::problem(&limit, &accepting(&["text/html"]), "robotgate");
    let body = html(&answer);
    assert!(
        body.contains("<dt>Try again in</dt>") && !body.contains("<dt>robots.txt</dt>"),
        "{body}"
    );
}

#[test]
fn the_page_runs_no_script_and_loads_nothing() {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let answer = page(&by_rule(&decision, "Disallow: /"));
    assert!(header(&answer, "content-security-policy").starts_with("default-src 'none'; "));
    assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
    for part in ["<script", "<img", "<link", "src=", "url(", "@import"] {
        assert!(!html(&answer).contains(part), "{part}");
    }
}

#[test]
fn texts_of_a_site_are_escaped_in_the_page() {
    let decision = decided(Verdict::Deny, Reason::Rule);
    let hostile = "Disallow: /</title></code><script>alert(1)</script>\"\u{202e}&amp;";
    let grounds = DecisionTexts {
        group: Some("<b>".into()),
        ..by_rule(&decision, hostile)
    };
    let answer = page(&grounds);
    let body = html(&answer);
    assert!(
        !body.contains("<script") && !body.contains("<b>\"") && !body.contains('\u{202e}'),
        "{body}"
    );
    assert_eq!(body.matches("</title>").count(), 1);
    assert!(body.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"), "{body}");

    let fault = Fault::TlsCertificate("<i>\0".to_owned());
    let answer = OwnResponse::problem(&Problem::Fault(&fault), &accepting(&["text/html"]), "robotgate");
    assert!(!html(&answer).contains("<i>") && !html(&answer).contains('\0'));
}

#[test]
fn a_long_rule_is_shortened_in_the_title_and_its_line_is_kept() {
    let rule = format!("Disallow: /{}", "x".repeat(1000));
    let decision = decided(Verdict::Deny, Reason::Rule);
    let answer = page(&by_rule(&decision, &rule));
    assert!(title(&answer).ends_with("… (line 3)") && title(&answer).len() < 200);
    assert!(html(&answer).contains(&rule), "the page has it whole");
}

#[test]
fn the_page_asks_for_a_proof_that_the_bot_accepts() {
    let grounds = |credential| DecisionTexts {
        proofs: Some(ProofKinds {
            credential,
            network: true,
            ..ProofKinds::default()
        }),
        ..decided(Verdict::Deny, Reason::Unauthenticated)
    };
    let answer = page(&grounds(false));
    assert!(
        html(&answer).contains("What proves it: its network. Ask the operator"),
        "{}",
        html(&answer)
    );
    assert!(html(&answer).contains("<code>networks</code>") && !html(&answer).contains("SECRET@"));
    let answer = page(&grounds(true));
    assert!(html(&answer).contains("<code>networks</code>") && html(&answer).contains("SECRET@"));
}
