//! Tests files that were written to take as much time as possible. A check in quadratic time would take hundreds of
//! times as long as for an ordinary file of the same size.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::super::{super::LIMIT, lint};

/// Checks a file of as many pieces as fit into [`LIMIT`] bytes. Returns the processor time, which does not depend on
/// what else the machine does.
fn time(name: &str, piece: impl Fn(usize) -> String) -> Duration {
    let mut file = String::new();
    for n in 0.. {
        let piece = piece(n);
        if file.len() + piece.len() > LIMIT {
            break;
        }
        file.push_str(&piece);
    }
    let start = clock_gettime(ClockId::ThreadCPUTime);
    let findings = lint(file.as_bytes());
    let taken = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - start).expect("time goes on");
    println!("{name}: {} findings in {taken:?}", findings.len());
    let length: usize = findings
        .iter()
        .map(|finding| finding.message.len() + finding.text.len())
        .sum();
    assert!(length < 200 * LIMIT, "{name}: {length}");
    taken
}

#[test]
fn linting_no_file_takes_quadratic_time() {
    let agent = |n: usize, rest: String| if n == 0 { format!("User-agent: *\n{rest}") } else { rest };
    let ordinary = time("ordinary", |n| {
        format!("User-agent: a{n}\nDisallow: /{n}/\nAllow: /{n}/x\n\n")
    });
    let check = |name: &str, piece: &dyn Fn(usize) -> String| {
        let taken = time(name, piece);
        assert!(
            taken < 10 * ordinary,
            "{name}: {taken:?}, an ordinary file: {ordinary:?}"
        );
    };
    check("rules", &|n| agent(n, format!("Disallow:/{n}\n")));
    check("one rule", &|n| agent(n, "Allow:/\n".to_owned()));
    check("deep", &|n| agent(n, format!("Disallow: /{}\n", "a".repeat(n % 1000))));
    check("deep and wide", &|n| {
        agent(
            n,
            if n < 500 {
                format!("Allow:/{}\n", "a".repeat(n))
            } else {
                format!("Disallow:/{}{n}\n", "a".repeat(100))
            },
        )
    });
    check("wild", &|n| {
        agent(n, format!("{}:/*{n}\n", ["Allow", "Disallow"][n % 2]))
    });
    check("wild and deep", &|n| {
        agent(
            n,
            format!("{}:/{}*{n}\n", ["Allow", "Disallow"][n % 2], "a".repeat(n % 300)),
        )
    });
    check("stars", &|n| agent(n, format!("Allow:/{}\n", "*".repeat(8_000 + n))));
    check("agents", &|n| format!("User-agent: a{n}\nDisallow: /\n"));
    check("one agent", &|_| "User-agent: a\nDisallow: /\n".to_owned());
    check("a run of agents", &|n| {
        format!("User-agent: {}\n\n", "a".repeat(n % 700))
    });
    check("groups of many", &|n| {
        format!("User-agent: {}\nUser-agent: b\nDisallow:\n", "a".repeat(n % 90))
    });
    check("near keys", &|_| "disxxlow:\n".to_owned());
    check("short keys", &|_| "a:\n".to_owned());
    check("nothing", &|_| "\0\n".to_owned());
    check("sitemaps", &|n| format!("sitemap:{n}\n"));
    check("colons", &|n| agent(n, format!("Disallow: {}\n", " :".repeat(8_000))));
    check("brackets", &|n| {
        agent(n, format!("Disallow: /{}\n", "[a-z".repeat(4_000)))
    });
    check("long stars", &|n| {
        agent(n, format!("Allow: /{n}{}\n", "*a**".repeat(n % 90)))
    });
    check("lone rules", &|n| {
        format!("User-agent: *\n{}: /\n", ["Allow", "Disallow"][n % 2])
    });
    check("long lines", &|n| {
        agent(n, format!("Disallow: /{}\n", "%61".repeat(6_000)))
    });
}
