//! A robots.txt that is too long, highly compressed, or endless: only 500 KiB are used.

use std::time::Duration;

use super::{Means, RULES};
use crate::support::{Gate, NAME, Origin, Reply, Step, allowed, refused};

const LIMIT: usize = 500 * 1024;

fn filled(start: &str, length: usize) -> String {
    let mut text = start.to_owned();
    while text.len() < length {
        let line = (length - text.len()).min(100);
        text += &"#".repeat(line - 1);
        text.push('\n');
    }
    text
}

#[tokio::test]
async fn a_rule_after_the_size_limit_is_ignored() {
    let robots = filled(&format!("{RULES}Allow: /p/open\n"), LIMIT) + "Disallow: /late\n";
    let origin = Origin::start()
        .robots(&filled(&robots, 600 * 1024))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    refused(&gate.get(&origin.url("/p")).await, "rule");
    allowed(&gate.get(&origin.url("/p/open")).await, "rule");
    allowed(&gate.get(&origin.url("/late")).await, "no-rule");
}

#[tokio::test]
async fn a_rule_right_before_the_limit_applies_and_a_cut_one_does_not() {
    let last = "Disallow: /last\n";
    let body = filled(RULES, LIMIT - last.len()) + last + &filled("", 1000);
    let cut = filled(RULES, LIMIT - "Disallow: /c".len()) + "Disallow: /cut/off\n";
    let origin = Origin::start().robots(&body).anything("page").spawn().await;
    let other = Origin::start().robots(&cut).anything("page").spawn().await;
    let gate = Gate::start().await;

    refused(&gate.get(&origin.url("/last")).await, "rule");
    allowed(&gate.get(&other.url("/cut/off")).await, "no-rule");
    allowed(&gate.get(&other.url("/c")).await, "no-rule");
    refused(&gate.get(&other.url("/p")).await, "rule");
}

#[tokio::test]
async fn the_size_limit_applies_to_the_unpacked_file() {
    let late = filled(RULES, LIMIT) + "Disallow: /late\n";
    let bomb = filled(RULES, 8 * 1024 * 1024);
    let origin = Origin::start()
        .reply("/robots.txt", Reply::gzip(late.as_bytes()))
        .anything("page")
        .spawn()
        .await;
    let bombing = Origin::start()
        .reply("/robots.txt", Reply::gzip(bomb.as_bytes()))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/late")).await, "no-rule");
    Means::Rules.holds(&gate, &origin, NAME).await;
    Means::Rules.holds(&gate, &bombing, NAME).await;
}

#[tokio::test]
async fn an_endless_file_is_read_up_to_the_limit() {
    let chunk = format!("64\r\n{}\n\r\n", "#".repeat(99));
    for (way, head, more) in [
        (
            "until close",
            format!("HTTP/1.1 200 OK\r\n\r\n{RULES}"),
            "#".repeat(99) + "\n",
        ),
        (
            "chunked",
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1b\r\n{RULES}\r\n"),
            chunk,
        ),
    ] {
        assert_eq!(RULES.len(), 0x1b);
        println!("{way}");
        let endless = Reply::script([Step::send(head), Step::Endless(more.into())]);
        let origin = Origin::start()
            .reply("/robots.txt", endless)
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::start().await;

        Means::Rules.holds(&gate, &origin, NAME).await;
    }
}

#[tokio::test]
async fn a_slow_file_that_arrives_in_time_applies() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", RULES.len());
    let drip = Step::Drip {
        bytes: RULES.into(),
        every: Duration::from_millis(10),
    };
    let origin = Origin::start()
        .reply("/robots.txt", Reply::script([Step::send(head), drip]))
        .anything("page");
    let origin = origin.spawn().await;
    let gate = Gate::start().await;

    Means::Rules.holds(&gate, &origin, NAME).await;
}
