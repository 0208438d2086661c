//! Redirects of a robots.txt: robotgate follows up to five, also to other origins. The rules that it finds apply to the
//! first origin.

use super::{Means, RULES};
use crate::support::{DnsAnswer, Gate, NAME, Origin, Reply, allowed, refused};

/// Starts an origin whose robots.txt is `hops` redirects away.
async fn chain(hops: usize) -> Origin {
    Origin::start()
        .otherwise(move |request| {
            let done = match request.path() {
                "/robots.txt" => 0,
                path => match path.strip_prefix("/hop/").and_then(|n| n.parse::<usize>().ok()) {
                    Some(done) => done,
                    None => return Reply::ok("text/plain", "page"),
                },
            };
            if done == hops {
                Reply::ok("text/plain", RULES)
            } else {
                Reply::redirect(&format!("/hop/{}", done + 1))
            }
        })
        .spawn()
        .await
}

#[tokio::test]
async fn five_redirects_are_followed_and_six_mean_no_robots_txt() {
    for (hops, means) in [(1, Means::Rules), (5, Means::Rules), (6, Means::Open("no-robots"))] {
        println!("{hops} hops");
        let origin = chain(hops).await;
        let gate = Gate::start().await;
        means.holds(&gate, &origin, NAME).await;
        assert!(origin.count("/hop/6") == 0, "a sixth hop was made");
    }
}

#[tokio::test]
async fn a_redirect_loop_means_no_robots_txt() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::redirect("/again"))
        .reply("/again", Reply::redirect("/robots.txt"))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/p")).await, "no-robots");
}

#[tokio::test]
async fn every_redirecting_status_is_followed() {
    for status in [301, 302, 303, 307, 308] {
        let origin = Origin::start()
            .reply("/robots.txt", Reply::status(status).header("Location", "/real.txt"))
            .page("/real.txt", RULES)
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::start().await;
        println!("{status}");
        Means::Rules.holds(&gate, &origin, NAME).await;
    }
}

#[tokio::test]
async fn rules_behind_a_redirect_apply_to_the_first_origin() {
    let elsewhere = Origin::start()
        .page("/rules", RULES)
        .robots("User-agent: *\nDisallow: /\n")
        .tls()
        .spawn()
        .await;
    let origin = Origin::start()
        .reply(
            "/robots.txt",
            Reply::redirect(&elsewhere.url_at("other.example", "/rules")),
        )
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    let decision = refused(&gate.get(&origin.url("/p")).await, "rule");
    assert_eq!(decision.param("robots"), Some(origin.url("/robots.txt")));
    allowed(&gate.get(&origin.url("/other")).await, "no-rule");
    assert_eq!(elsewhere.count("/robots.txt"), 0, "a fetch needs no leave");
    refused(&gate.get(&elsewhere.url_at("other.example", "/rules")).await, "rule");
}

#[tokio::test]
async fn the_response_after_the_redirects_decides() {
    for (answer, means) in [
        (Reply::status(404), Means::Open("no-robots")),
        (Reply::status(503), Means::Closed),
        (Reply::status(302), Means::Closed),
        (Reply::redirect("http://gone.example/robots.txt"), Means::Closed),
    ] {
        let origin = Origin::start()
            .reply("/robots.txt", Reply::redirect("/end"))
            .reply("/end", answer)
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::start().await;
        gate.dns().answer("gone.example", DnsAnswer::NoSuchName);
        println!("{means:?}");
        means.holds(&gate, &origin, NAME).await;
    }
}

#[tokio::test]
async fn a_redirect_to_a_prohibited_address_is_a_failure() {
    for address in ["169.254.169.254", "metadata.example", "[fe80::1]", "10.0.0.1"] {
        let origin = Origin::start()
            .reply("/robots.txt", Reply::redirect(&format!("http://{address}/latest")))
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::start().await;
        gate.dns().point("metadata.example", [169, 254, 169, 254]);
        println!("{address}");
        Means::Closed.holds(&gate, &origin, NAME).await;
    }
}

#[tokio::test]
async fn a_redirect_inside_a_page_is_not_followed() {
    let page = Reply::ok("text/html", "<meta http-equiv=refresh content=\"0;url=/real.txt\">");
    let origin = Origin::start()
        .reply("/robots.txt", page)
        .page("/real.txt", RULES)
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/p")).await, "no-rule");
    assert_eq!(origin.count("/real.txt"), 0);
}
