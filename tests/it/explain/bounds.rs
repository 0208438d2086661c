//! Every robots.txt of 500 KiB is explained quickly, with output of limited length. None may take much longer than an
//! ordinary one; quadratic time would take thousands of times as long.

use std::{path::Path, time::Duration};

use crate::support::CliOutput;

/// Explains `robots` as text and JSON, checks that each output is limited in length, and returns the longer processor
/// time.
async fn time(name: &str, robots: &str, path: &str) -> Duration {
    let mut longest = Duration::ZERO;
    assert!(robots.len() <= 500 * 1024, "{name}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("robots.txt");
    std::fs::write(&file, robots).expect("room on the disk");
    let url = format!("https://shop.example{path}");
    for format in [&["--json"][..], &[]] {
        let args = ["explain", "--robots", text(&file), "--agent", "ExampleBot", &url];
        let (output, took) = CliOutput::timed(&[&args, format].concat()).await;
        let length = output.out.len();
        println!("{name} {format:?}: {took:?}, {length} bytes");
        assert_eq!(output.errors, "", "{name}");
        assert!(length < 1_000_000, "{name} {format:?}: {length} bytes");
        longest = longest.max(took);
        if !format.is_empty() {
            output.json();
        }
    }
    longest
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a folder of ours")
}

#[tokio::test]
async fn no_file_makes_explain_slow_or_its_output_long() {
    let rules: String = (0..20_000).map(|n| format!("Disallow: /{n}/page\n")).collect();
    let ordinary = time("ordinary", &format!("User-agent: *\n{rules}"), "/").await;
    let bounded = async |name: &str, robots: &str, path: &str| {
        let took = time(name, robots, path).await;
        assert!(took < 50 * ordinary, "{name}: {took:?}, an ordinary file: {ordinary:?}");
    };
    let controls = |count| "\u{1}".repeat(count);
    let agents = format!("User-agent: {}\n", controls(4000)).repeat(100);
    bounded("long names", &(agents + &"crawl-delay:1\n".repeat(6000)), "/").await;

    let agents = "user-agent:a\n".repeat(18_000);
    bounded("many names", &(agents + &"crawl-delay:\n".repeat(18_000)), "/").await;

    let delays = "user-agent:a\ncrawl-delay:1\nsitemap:\n".repeat(14_000);
    bounded("many runs", &delays, "/").await;

    let values = format!("Sitemap: {}\n", controls(500)).repeat(1000);
    bounded("long values", &values, "/").await;

    let rules = format!("Disallow: /{}\n", controls(15_000)).repeat(34);
    bounded("long rules", &format!("User-agent: *\n{rules}"), "/").await;

    let rules = format!("Disallow: {}\n", "*".repeat(16_000)).repeat(30);
    bounded("stars", &format!("User-agent: *\n{rules}"), "/").await;

    let agents = format!("User-agent: {}\n", controls(200)).repeat(2000);
    bounded("named for all", &format!("{agents}User-agent: *\nDisallow: /\n"), "/").await;

    let rules = "Disallow:*a*b\n".repeat(36_000);
    let path = format!("/{}", "a".repeat(16_000));
    bounded("wild rules", &format!("User-agent: *\n{rules}"), &path).await;
}

#[tokio::test]
async fn entries_left_out_of_a_list_are_counted() {
    let agents: String = (0..30)
        .map(|n| format!("User-agent: {}\n", "a".repeat(190 + n)))
        .collect();
    let robots = format!(
        "{agents}User-agent: *\nDisallow: /\n{}",
        "Crawl-delay: 1\n".repeat(1100)
    );
    let args = ["--json", "--robots", "-", "--agent", "a", "https://shop.example/"];
    let json = super::explain_input(&args, &robots).await.json();
    assert_eq!(json["statements_total"], 1100);
    assert!(json["statements"].as_array().is_some_and(|listed| listed.len() < 1000));
    let first = &json["statements"][0];
    assert_eq!((&first["agents_total"], &first["applies"]), (&31.into(), &true.into()));
    assert_eq!(first["agents"].as_array().map(Vec::len), Some(20));
    assert_eq!(first["agents"][19]["agent"], "a".repeat(200) + "…");
    assert_eq!(first["agents"][10]["agent"], "a".repeat(200));
    assert_eq!(json["group"]["agents_total"], 31);
}
