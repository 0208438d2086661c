//! Content with unusual methods, and `Expect: 100-continue`.

use super::{Scene, WAYS, Way, responses};
use crate::support::{End, Gate, Origin, ROBOTS};

#[tokio::test]
async fn content_of_any_method_stays_part_of_its_request() {
    let scene = Scene::start().await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for way in WAYS {
        for (method, target, fields, content) in [
            (
                "GET",
                "{x}",
                format!("Content-Length: {}\r\n", smuggled.len()),
                smuggled.to_owned(),
            ),
            (
                "GET",
                "{x}",
                "Transfer-Encoding: chunked\r\n".to_owned(),
                "4\r\nbody\r\n0\r\n\r\n".to_owned(),
            ),
            (
                "HEAD",
                "{x}",
                format!("Content-Length: {}\r\n", smuggled.len()),
                smuggled.to_owned(),
            ),
            (
                "DELETE",
                "{x}",
                format!("Content-Length: {}\r\n", smuggled.len()),
                smuggled.to_owned(),
            ),
            (
                "OPTIONS",
                "{x}",
                format!("Content-Length: {}\r\n", smuggled.len()),
                smuggled.to_owned(),
            ),
            (
                "OPTIONS",
                "{prefix}*",
                "Content-Length: 4\r\n".to_owned(),
                "body".to_owned(),
            ),
            ("TRACE", "{x}", String::new(), String::new()),
            ("M-SEARCH", "{x}", String::new(), String::new()),
        ] {
            // In absolute form, the target for `*` is a URL without a path.
            let target = if way == Way::Plain {
                target.replace("{prefix}*", "{prefix}")
            } else {
                target.replace("{prefix}", "")
            };
            let name = format!("{method} {target} {fields:?} ({way:?})");
            let before = scene.origin(way).requests().len();
            let head = format!(
                "{method} {target} HTTP/1.1\r\nHost: {{host}}\r\nUser-Agent: TestBot/1.0\r\n\
                 Connection: close\r\n{fields}\r\n{content}"
            );
            let received = scene.send(way, &scene.payload(way, &head)).await;
            assert!(
                received.starts_with(b"HTTP/1.1 200 "),
                "{name}: {}",
                String::from_utf8_lossy(&received)
            );
            let seen = scene.origin(way).requests().split_off(before);
            let [forwarded] = &seen[..] else {
                panic!("{name}: {seen:#?}")
            };
            assert_eq!(forwarded.method, method, "{name}");
            assert_ne!(forwarded.end, End::Cut, "{name}");
            if target.contains('*') || !target.contains("{x}") {
                assert_eq!(forwarded.target, "*", "{name}");
            }
        }
        assert_eq!(scene.origin(way).count("/smuggled"), 0);
    }
}

#[tokio::test]
async fn expect_100_continue_is_forwarded_or_refused_immediately() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    let head = |path: &str, expect: &str| {
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\nContent-Length: 4\r\n{expect}\r\n",
            origin.url(path),
            origin.authority()
        )
    };

    // If the gate refuses the request, it does not send a 100 response, because it does not forward the content.
    let mut waiting = gate.dial().await;
    waiting.send(head("/private", "Expect: 100-continue\r\n")).await;
    let refusal = waiting
        .read_to_end_after(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let received = responses(refusal).await;
    assert_eq!(received[0].status, 403, "{received:#?}");
    assert!(received.len() == 1 && !received[0].stays_open, "{received:#?}");

    let mut hasty = gate.dial().await;
    hasty
        .send(format!("{}body", head("/hasty", "Expect: 100-continue\r\n")))
        .await;
    assert_eq!(hasty.response_to("POST").await.status, 200);
    assert_eq!(origin.only_request_for("/hasty").body, b"body");

    let mut odd = gate.dial().await;
    odd.send(format!("{}body", head("/odd", "Expect: something-else\r\n")))
        .await;
    assert_eq!(odd.response_to("POST").await.status, 200);
    assert_eq!(origin.only_request_for("/odd").field("Expect"), Some("something-else"));
    assert_eq!((origin.count("/private"), origin.count("/smuggled")), (0, 0));
}
