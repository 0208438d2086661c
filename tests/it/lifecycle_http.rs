//! What an origin's response to the request for `/robots.txt` means for its pages. The submodules have tables of
//! responses, and test each one through the proxy.

mod bounds;
mod conditional;
mod failures;
mod http2;
mod limits;
mod redirects;
mod statuses;

use crate::support::{Gate, Origin, Reply, allowed, refused};

const RULES: &str = "User-agent: *\nDisallow: /p\n";

#[derive(Clone, Copy, Debug)]
enum Means {
    /// The rules in [`RULES`] apply.
    Rules,
    /// Everything is allowed, for this reason.
    Open(&'static str),
    /// Everything is disallowed because the origin has failed.
    Closed,
}

/// Starts an origin with one name for each reply, `case-0.example` and so on. The reply is the robots.txt of that name.
async fn origin_with(answers: Vec<Reply>) -> Origin {
    Origin::start()
        .on("/robots.txt", move |request| {
            let host = request.field("Host").unwrap_or_default();
            let number = host
                .trim_start_matches("case-")
                .split('.')
                .next()
                .and_then(|n| n.parse::<usize>().ok());
            answers[number.expect("case-N.example")].clone()
        })
        .anything("page")
        .spawn()
        .await
}

async fn check(cases: Vec<(&str, Reply, Means)>) {
    let origin = origin_with(cases.iter().map(|(_, answer, _)| answer.clone()).collect()).await;
    let gate = Gate::start().await;
    for (number, (name, _, means)) in cases.iter().enumerate() {
        println!("{name}");
        means.holds(&gate, &origin, &format!("case-{number}.example")).await;
    }
}

impl Means {
    async fn holds(self, gate: &Gate, origin: &Origin, host: &str) {
        let p = gate.get(&origin.url_at(host, "/p")).await;
        let other = gate.get(&origin.url_at(host, "/other")).await;
        match self {
            Self::Rules => (refused(&p, "rule"), allowed(&other, "no-rule")),
            Self::Open(reason) => (allowed(&p, reason), allowed(&other, reason)),
            Self::Closed => (refused(&p, "unreachable"), refused(&other, "unreachable")),
        };
    }
}
