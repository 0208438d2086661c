//! Nothing slips past by spelling: a request is refused when either reading of its target is disallowed, and what goes
//! upstream is the target as sent.

use crate::support::{Alpn, Gate, NAME, Origin, allowed, refused};

/// Rules, and the targets that they disallow however these are written.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "Disallow: /private",
        &[
            "/private",
            "/%70rivate",
            "/%70%72%69%76%61%74%65",
            "/priv%61te/x",
            "/./private",
            "/x/../private",
            "/x/y/../../private",
            "/%2E/private",
            "/x/%2e%2e/private",
            "/x/.%2E/private",
            "/../private",
            "/private/../x",
            "/private?",
            "/private;v=1",
            "/private#part",
            "/%70rivate#part",
            "/private%2Fx",
            "/private%00",
        ],
    ),
    ("Disallow: /a%2Fb", &["/a%2Fb", "/a%2fb"]),
    (
        "Disallow: /%7Euser",
        &["/%7Euser", "/%7euser", "/x/../%7Euser", "/%2e/%7euser/x"],
    ),
    ("Disallow: /a%2fb", &["/a%2Fb", "/a%2fb"]),
    (
        "Disallow: /caf\u{e9}",
        &["/caf\u{e9}", "/caf%C3%A9", "/caf%c3%a9", "/c%61f\u{e9}"],
    ),
    ("Disallow: /caf%C3%A9", &["/caf\u{e9}", "/caf%C3%A9", "/caf%c3%a9"]),
    ("Disallow: /*?", &["/x?", "/x?a=1"]),
    ("Disallow: /x;secret", &["/x;secret", "/x;secret=1", "/x;s%65cret"]),
    ("Disallow: /*.pdf$", &["/x.pdf", "/x.%70df", "/x%2Epdf"]),
    ("Disallow: /x?token=", &["/x?token=1", "/x?t%6Fken=1"]),
    ("Disallow: //", &["//x"]),
    (
        "Disallow: /\nAllow: /public",
        &["/public/../private", "/public/%2e%2e/private"],
    ),
];

/// Rules, and targets near to what they disallow that pass all the same.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "Disallow: /private",
        &[
            "/PRIVATE",
            "/x/private",
            "//private",
            "/pri%76",
            "/x?/private",
            "/%2Fprivate",
            "/privat",
        ],
    ),
    ("Disallow: /a/b", &["/a%2Fb", "/a%2fb", "/a//b", "/a"]),
    ("Disallow: /a%2Fb", &["/a/b"]),
    ("Disallow: /*.pdf$", &["/x.pdf?", "/x.pdf/y", "/x.PDF"]),
    (
        "Disallow: /\nAllow: /public",
        &["/public", "/public/x", "/public/./x", "/public/x/../y"],
    ),
];

async fn origin_with(rules: &str) -> Origin {
    Origin::start()
        .robots(&format!("User-agent: *\n{rules}\n"))
        .anything("page")
        .spawn()
        .await
}

#[tokio::test]
async fn what_is_disallowed_is_refused_however_it_is_written() {
    let gate = Gate::start().await;

    for (rules, targets) in REFUSED {
        let origin = origin_with(rules).await;
        for target in *targets {
            println!("{rules} | {target}");
            refused(&gate.get(&origin.url(target)).await, "rule");
        }
        assert_eq!(origin.requests().len(), 1, "only robots.txt: {:#?}", origin.requests());
    }
}

#[tokio::test]
async fn what_is_allowed_passes_with_its_bytes_untouched() {
    let gate = Gate::start().await;

    for (rules, targets) in ALLOWED {
        let origin = origin_with(rules).await;
        for target in *targets {
            println!("{rules} | {target}");
            let response = gate.get(&origin.url(target)).await;
            assert_eq!(
                (response.status, response.decision().value().as_str()),
                (200, "allow"),
                "{response:#?}"
            );
            assert_eq!(origin.requests().last().expect("asked").target, *target);
        }
    }
}

#[tokio::test]
async fn every_choice_of_escapes_for_a_disallowed_word_is_refused() {
    let origin = origin_with("Disallow: /private").await;
    let gate = Gate::start().await;
    let mut connection = gate.dial().await;

    for choice in 0..1_u32 << "private".len() {
        let letter = |(n, byte): (usize, u8)| match choice >> n & 1 {
            0 => char::from(byte).to_string(),
            _ => format!("%{byte:02x}"),
        };
        let word: String = "private".bytes().enumerate().map(letter).collect();
        refused(&connection.get(&origin.url(&format!("/{word}"))).await, "rule");
    }
}

#[tokio::test]
async fn inside_an_interception_it_is_the_same() {
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let origin = Origin::start()
            .robots("User-agent: *\nDisallow: /private\n")
            .anything("page")
            .tls()
            .spawn()
            .await;
        let gate = Gate::start().await;
        let mut inside = gate.connect(&origin.authority()).await.opened().tls(NAME, alpn).await;

        for target in ["/%70rivate", "/x/../private", "/x/%2e%2e/private", "/private?a"] {
            println!("{alpn:?} | {target}");
            refused(&inside.get(target).await, "rule");
        }
        for target in ["/a%2fb?%7e", "/x/../y", "//z"] {
            println!("{alpn:?} | {target}");
            allowed(&inside.get(target).await, "no-rule");
            assert_eq!(origin.requests().last().expect("asked").target, target);
        }
    }
}
