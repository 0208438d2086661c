//! A robots.txt that redirects to a forbidden destination is unreachable.

use crate::support::{DnsAnswer, Gate, Origin, Reply, refused};

async fn leading_to(location: String, hops: usize) -> Origin {
    Origin::start()
        .otherwise(move |request| {
            let done = request.path().strip_prefix("/hop/").map_or(0, |n| n.parse().unwrap());
            if done + 1 == hops {
                Reply::redirect(&location)
            } else {
                Reply::redirect(&format!("/hop/{}", done + 1))
            }
        })
        .spawn()
        .await
}

#[tokio::test]
async fn every_redirect_target_is_checked_in_any_spelling() {
    let hidden = Origin::start().robots("").spawn().await;
    let port = hidden.port();
    let gate = Gate::with("[egress]\nallow = ['127.0.0.1']\ndeny = ['closed.example']").await;
    gate.dns().point("private.example", [10, 0, 0, 1]);
    gate.dns().answer(
        "metadata.example",
        DnsAnswer::Addresses(vec!["fe80::a9fe:a9fe".parse().unwrap()]),
    );
    for (hop, location, cause) in [
        (1, "http://127.0.0.2:PORT/", "127.0.0.2 is a loopback address"),
        (2, "http://10.0.0.1/", "10.0.0.1 is a private address"),
        (3, "http://[::ffff:10.0.0.1]/", "10.0.0.1 is a private address"),
        (
            4,
            "http://0xa9fea9fe/latest/",
            "169.254.169.254 is a link-local address",
        ),
        (5, "https://private.example/", "10.0.0.1 is a private address"),
        (
            1,
            "http:\\\\2852039166/latest/",
            "169.254.169.254 is a link-local address",
        ),
        (
            1,
            "//169.254.169.254/latest/",
            "169.254.169.254 is a link-local address",
        ),
        (
            1,
            "http://１６９。254.169.254/",
            "169.254.169.254 is a link-local address",
        ),
        (
            1,
            "http://%31%36%39.254.169.254/",
            "169.254.169.254 is a link-local address",
        ),
        (1, "http://metadata.example/", "fe80::a9fe:a9fe is a link-local address"),
        (
            1,
            "http://closed.example:PORT/",
            "closed.example is closed to bots by egress.deny",
        ),
        (1, "http://other.example:25/", "port 25 is closed to bots"),
        (1, "http://127.0.0.1:GATE/", "is an address of this proxy itself"),
        (
            1,
            "http://user@127.0.0.1:PORT/",
            "redirect leads to no URL that robotgate can fetch",
        ),
        (
            1,
            "http://[fe80::1%25eth0]/",
            "redirect leads to no URL that robotgate can fetch",
        ),
    ] {
        let location = location
            .replace("PORT", &port.to_string())
            .replace("GATE", &gate.address().port().to_string());
        println!("{hop}: {location}");
        let origin = leading_to(location, hop).await;
        let response = gate.get(&origin.url("/x")).await;
        refused(&response, "unreachable");
        let details = response.proxy_status().param("details").unwrap();
        assert!(details.contains(cause), "{details}");
        assert_eq!(origin.requests().len(), hop);
    }
    assert_eq!(hidden.connections(), 0);
}
