//! Request targets reach the origin byte for byte, without scheme and host.

use crate::support::{Gate, NAME, Origin, ROBOTS, allowed};

#[tokio::test]
async fn path_and_query_are_never_rewritten() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;

    for target in [
        "/",
        "/x?",
        "/x?a=1&b=%20&&",
        "/a%2fb%2Fc",
        "/%7Euser/~user",
        "/%zz%",
        "/a//b///c",
        "/a/./b/../c",
        "/;p=1/x;q?;r",
        "/a|b{c}^\"?q=a|b{c}^`",
        "/x?next=http://other.example/%3Fy",
        "/caf\u{e9}?\u{2603}",
        "/*",
        "//double",
    ] {
        allowed(&gate.get(&origin.url(target)).await, "no-robots");
        let requests = origin.requests();
        assert_eq!(requests.last().expect("asked").target, target);
    }
}

#[tokio::test]
async fn an_empty_path_is_sent_as_the_root() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;

    for (url, target) in [("", "/"), ("?a=1", "/?a=1")] {
        allowed(&gate.get(&origin.url(url)).await, "no-robots");
        assert_eq!(origin.requests().last().expect("asked").target, target);
    }
}

#[tokio::test]
async fn scheme_and_host_are_case_insensitive() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    let shout = format!("HTTP://{}:{}", NAME.to_ascii_uppercase(), origin.port());

    allowed(&gate.get(&format!("{shout}/x")).await, "no-rule");
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");

    assert_eq!(origin.count("/robots.txt"), 1, "one origin, one copy");
}

#[tokio::test]
async fn every_method_is_decided_and_forwarded() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;

    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
        let response = gate.ask(method, &origin.url("/x")).body(b"").await;
        assert_eq!(response.status, 200, "{method}: {response:#?}");
        assert_eq!(origin.requests().last().expect("asked").method, method);
        assert_eq!(
            gate.ask(method, &origin.url("/private")).body(b"").await.status,
            403,
            "{method}"
        );
    }
}
