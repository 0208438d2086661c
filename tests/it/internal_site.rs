//! `http://robotgate.internal/`: its pages, which requests reach them, and that none of these requests is forwarded.

use robotgate::bot::SecretHash;

use crate::support::{Gate, Origin, wait};

fn pem(gate: &Gate) -> String {
    std::fs::read_to_string(gate.file("ca.pem")).unwrap()
}

#[tokio::test]
async fn the_certificate_is_served_for_every_spelling_of_the_host() {
    let gate = Gate::start().await;

    for url in [
        "http://robotgate.internal/ca.pem",
        "http://robotgate.internal:80/ca.pem",
        "http://RobotGate.Internal./ca.pem?x",
    ] {
        let response = gate.get(url).without("User-Agent").await;
        assert_eq!(response.status, 200, "{url}: {response:#?}");
        assert_eq!(response.headers.field("Content-Type"), Some("application/x-pem-file"));
        assert_eq!(response.text(), pem(&gate));
    }
    let der = gate.get("http://robotgate.internal/ca.crt").await;
    assert_eq!(der.headers.field("Content-Type"), Some("application/x-x509-ca-cert"));
    assert_eq!(der.body.first(), Some(&0x30));

    assert!(gate.audit().is_empty(), "{:#?}", gate.audit());
    assert!(gate.dns().queries("robotgate.internal") == 0);
}

#[tokio::test]
async fn the_page_is_served_as_text_and_as_html() {
    let gate = Gate::start().await;
    let shown = format!("http://{}", gate.address());

    let text = gate.get("http://robotgate.internal/").header("Accept", "*/*").await;
    assert_eq!(text.headers.field("Content-Type"), Some("text/plain; charset=utf-8"));
    assert!(
        text.text().contains(&shown) && text.text().contains("Fingerprint"),
        "{text:#?}"
    );

    let accept = "text/html,application/xhtml+xml,*/*;q=0.8";
    let page = gate.get("http://robotgate.internal/").header("Accept", accept).await;
    assert_eq!(page.headers.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains(&shown), "{page:#?}");

    let head = gate.ask("HEAD", "http://robotgate.internal/").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn the_internal_site_needs_no_credential() {
    let hash = SecretHash::new([1; 16], b"open_sesame-open_sesame").line("TestBot");
    let gate = Gate::builder()
        .config(
            "[identity]\ncredentials = \"credentials\"\nrequired = true\n\
             [[bot]]\nname = \"TestBot\"\nuser-agents = [\"TestBot\"]",
        )
        .credentials(&hash)
        .start()
        .await;

    assert_eq!(gate.get("http://robotgate.internal/ca.pem").await.status, 200);
    assert_eq!(gate.get("http://shop.example/").await.status, 407);
}

#[tokio::test]
async fn other_urls_of_the_internal_site_are_errors() {
    let gate = Gate::start().await;
    let only = "Only at http://robotgate.internal/";

    for (method, url, status, reason) in [
        ("GET", "http://robotgate.internal/robots.txt", 404, "Not Found"),
        ("POST", "http://robotgate.internal/", 405, "Method Not Allowed"),
        ("GET", "http://robotgate.internal:8080/ca.pem", 404, only),
        ("GET", "https://robotgate.internal/ca.pem", 404, only),
        ("GET", "https://robotgate.internal:80/ca.pem", 404, only),
    ] {
        let response = gate.ask(method, url).await;
        assert_eq!(
            (response.status, &*response.reason),
            (status, reason),
            "{url}: {response:#?}"
        );
        assert!(response.headers.field("Proxy-Status").is_some(), "{url}");
    }
    for authority in [
        "robotgate.internal:443",
        "ROBOTGATE.internal.:80",
        "robotgate.internal:8443",
    ] {
        let response = gate.connect(authority).await.refused();
        assert_eq!((response.status, &*response.reason), (404, only), "{authority}");
    }
    assert!(gate.audit().is_empty());
    assert!(gate.dns().queries("robotgate.internal") == 0);
}

#[tokio::test]
async fn the_internal_name_does_not_lead_to_another_host() {
    let origin = Origin::start().page("/ca.pem", "secret").spawn().await;
    let gate = Gate::start().await;

    let ours = gate.get(&origin.url("/ca.pem")).set("Host", "robotgate.internal").await;
    assert_eq!(ours.status, 400, "{ours:#?}");
    let theirs = gate
        .get("http://robotgate.internal/ca.pem")
        .set("Host", &origin.authority())
        .await;
    assert_eq!(theirs.status, 400, "{theirs:#?}");
    let user = gate
        .get("http://robotgate.internal@shop.example/")
        .set("Host", "shop.example")
        .await;
    assert_ne!(user.status, 200, "{user:#?}");
    for host in ["x.robotgate.internal", "robotgate.internal.example", "robotgate"] {
        let response = gate.get(&format!("http://{host}/ca.pem")).await;
        assert_ne!(response.status, 200, "{host}: {response:#?}");
    }
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn without_an_authority_the_page_says_so() {
    let gate = Gate::with("[https]\nmode = \"tunnel\"").await;

    let page = gate.get("http://robotgate.internal/").await;
    assert!(page.text().contains("no certificate to trust"), "{page:#?}");
    let ca = gate.get("http://robotgate.internal/ca.pem").await;
    assert_eq!(ca.status, 404);
    assert!(ca.text().contains("does not intercept TLS"), "{ca:#?}");
}

#[tokio::test]
async fn the_type_url_of_a_refusal_explains_it() {
    let origin = Origin::start().robots("User-agent: *\nDisallow: /\n").spawn().await;
    let gate = Gate::start().await;
    let refusal = gate.get(&origin.url("/x")).await;
    let kind = refusal.json()["type"].as_str().expect("a URI").to_owned();
    let (page, fragment) = kind.split_once('#').expect("a place in a page");

    let shown = gate.get(page).header("Accept", "text/html").await;
    assert_eq!(shown.status, 200);
    assert!(
        shown.text().contains(&format!("<dt id=\"{fragment}\">")),
        "{}",
        shown.text()
    );
    let text = gate.get(page).header("Accept", "*/*").await.text();
    assert!(text.contains(&format!("\n{fragment}\n")), "{text}");
}

#[tokio::test]
async fn pages_of_the_internal_site_are_not_counted_as_errors() {
    let gate = Gate::start().await;
    for path in ["", "ca.pem", "nothing"] {
        gate.get(&format!("http://robotgate.internal/{path}")).await;
    }
    let of = |metrics: &str, outcome: &str| {
        let wanted = format!("method=\"GET\",outcome=\"{outcome}\"}} ");
        let line = metrics.lines().find_map(|line| line.split_once(&wanted));
        line.map_or(0, |(_, count)| count.parse::<u64>().expect("a count"))
    };
    // A request is counted after it has ended, which can be after its response arrived.
    let metrics = wait::until_async("the requests to be counted", async || {
        let metrics = gate.admin("/metrics").await.text();
        (of(&metrics, "own") == 3).then_some(metrics)
    })
    .await;
    assert_eq!(of(&metrics, "error"), 0, "{metrics}");
}
