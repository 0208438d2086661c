//! No spelling of a path avoids a rule: a request is refused if any reading of its target is disallowed. An allowed
//! target is forwarded as sent.

mod servers;
mod way;

use self::way::{Site, Way};
use crate::support::{Gate, Origin, ROBOTS, Response, allowed, failed, refused};

/// Rules, and different spellings of targets. The first of the rules disallows all of them.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "Disallow: /private",
        &[
            "/private",
            // Unnecessary escapes.
            "/%70rivate",
            "/%70%72%69%76%61%74%65",
            "/priv%61te/x",
            "/priv%61te?",
            // Dot segments, escaped or not, in different places.
            "/./private",
            "/././private",
            "/x/../private",
            "/x/y/../../private",
            "/x/./../private",
            "/x/../y/../private",
            "/../private",
            "/../../../private",
            "/private/.",
            "/private/..",
            "/private/../x",
            "/x/../private/.",
            "/.//../private",
            "/x//../../private",
            "/%2E/private",
            "/%2e/private",
            "/%2e%2e/private",
            "/x/%2e%2e/private",
            "/x/.%2E/private",
            "/x/%2E./private",
            "/x/%2E%2e/%70rivate",
            // Parameters are part of their segment, which `..` removes.
            "/x;a=b/../private",
            "/x;../../private",
            "/;/../private",
            "/private;v=1",
            "/private;",
            // Queries and fragments.
            "/private?",
            "/private?/../x",
            "/private?#",
            "/private??",
            "/x/../private?/../../x",
            "/private#part",
            "/%70rivate#part",
            "/private#?",
            "/private#/../x",
            "/y/../private#/../z",
            "/%70rivate#/../z",
            // Escapes and other unusual characters after the disallowed part.
            "/private%2Fx",
            "/private%2fx",
            "/private%00",
            "/private%23",
            "/private%3F",
            "/private%",
            "/private%zz",
            "/%70rivate%zz",
            "/private\\x",
            "/private\u{e9}",
        ],
    ),
    ("Disallow: /a%2Fb", &["/a%2Fb", "/a%2fb", "/%61%2fb", "/x/../a%2fb"]),
    ("Disallow: /a%2fb", &["/a%2Fb", "/a%2fb"]),
    ("Disallow: /a%2eb", &["/a%2eb", "/a%2Eb"]),
    (
        "Disallow: /%7Euser",
        &["/%7Euser", "/%7euser", "/x/../%7Euser", "/%2e/%7euser/x"],
    ),
    ("Disallow: /~user", &["/~user", "/%7Euser", "/%7euser"]),
    (
        "Disallow: /caf\u{e9}",
        &[
            "/caf\u{e9}",
            "/caf%C3%A9",
            "/caf%c3%a9",
            "/caf%c3%A9",
            "/c%61f\u{e9}",
            "/./caf\u{e9}",
        ],
    ),
    (
        "Disallow: /caf%C3%A9",
        &["/caf\u{e9}", "/caf%C3%A9", "/caf%c3%a9", "/%63af%C3%a9"],
    ),
    ("Disallow: /caf%c3%A9", &["/caf\u{e9}", "/caf%C3%A9", "/caf%C3%a9"]),
    ("Disallow: /*?", &["/x?", "/x?a=1", "/?", "/??", "/./?"]),
    (
        "Disallow: /x;secret",
        &["/x;secret", "/x;secret=1", "/x;s%65cret", "/y/../x;secret"],
    ),
    (
        "Disallow: /*.pdf$",
        &[
            "/x.pdf",
            "/x.%70df",
            "/x%2Epdf",
            "/x.pdf#page=2",
            "/x.%70df#",
            "/./x.pdf#/../y",
            "/x.pdf#?",
        ],
    ),
    (
        "Disallow: /x?token=",
        &["/x?token=1", "/x?t%6Fken=1", "/%78?token=", "/y/../x?token=1"],
    ),
    ("Disallow: /x?a=%2Fb", &["/x?a=%2Fb", "/x?a=%2fb"]),
    ("Disallow: //", &["//x", "//", "/.//x", "/x/..//y"]),
    ("Disallow: /x//y", &["/x//y", "/x//z/../y", "/x/%2e//y"]),
    ("Disallow: /%5C", &["/%5C", "/%5cx"]),
    ("Disallow: /\\", &["/\\", "/\\x"]),
    ("Disallow: /a/../b", &["/a/../b"]),
    ("Disallow: /a/b", &["/a%2Fb", "/a%2fb", "/a//b", "/a\\b", "/a;x/b"]),
    ("Disallow: /a(b)", &["/a%28b%29", "/x/..%2fa%28b%29"]),
    ("Disallow: /x;y", &["//x;y", "/%2fx;y", "/x%3By"]),
    ("Disallow: /*;", &["/a;b", "//a;"]),
    (
        "Disallow: /.git",
        &["/.git", "/%2Egit/config", "/x/../.git", "/./%2egit"],
    ),
    ("Disallow: /$", &["/", "/.", "/..", "/x/..", "/./", "/#x", "/%2e"]),
    (
        "Disallow: /\nAllow: /public",
        &[
            "/public/../private",
            "/public/%2e%2e/private",
            "/public/..",
            "/public/.%2e/%70rivate?x",
            "/publi%",
            "/public%2F..%2Fx",
            "/public//../x",
        ],
    ),
];

/// Rules, the line that decides (if any), and allowed targets that are similar to disallowed ones.
const ALLOWED: &[(&str, Option<u32>, &[&str])] = &[
    (
        "Disallow: /private",
        None,
        &[
            "/PRIVATE",
            "/%50rivate",
            "/x/private",
            "/pri%76",
            "/privat",
            "/x?/private",
            "/x?/../private",
            "/x;/../../y",
            "/a/./b/../c",
            "/a%2fb%2Fc",
            "/a;/../b\\c",
            "/x?%61=%2e%2e/",
            "/caf\u{e9}?\u{2603}",
            "/x?",
            "/;private",
            "/...",
            "/.../private",
            "/..private",
            "/x/.private",
        ],
    ),
    ("Disallow: /a/b", None, &["/a%252Fb", "/a"]),
    ("Disallow: /a%2Fb", None, &["/a/b", "/a%252Fb"]),
    (
        "Disallow: /*.pdf$",
        None,
        &["/x.pdf?", "/x.pdf/y", "/x.PDF", "/x.pdf/..;"],
    ),
    ("Disallow: /x?", None, &["/x", "/x%3F"]),
    // According to RFC 3986 §2.2, the rule and the target are for different URLs. A strict reading decodes the escapes
    // of the target, but not those of the rule.
    ("Disallow: /a%28b%29", None, &["/a(b)"]),
    (
        "Disallow: /\nAllow: /public",
        Some(3),
        &[
            "/public",
            "/public/x",
            "/public/./x",
            "/public/x/../y",
            "/public%2F..%2Fpublic",
        ],
    ),
];

/// Targets that only a strict reading maps to a path under `/private`, and that path.
const AS_SERVERS_READ_THEM: &[(&str, &str)] = &[
    ("//private", "/private"),
    ("///private//x", "/private/x"),
    ("/.//private", "/private"),
    ("/x/..//private", "/private"),
    ("/x//../private", "/private"),
    ("/%2Fprivate", "/private"),
    ("/%2fprivate?q=%2f", "/private?q=%2F"),
    ("/%2e%2e%2fprivate", "/private"),
    ("/x/..%2fprivate", "/private"),
    ("/x%2F..%2Fprivate", "/private"),
    ("/\\private", "/private"),
    ("/x\\..\\private", "/private"),
    ("/x/..\\private", "/private"),
    ("/%5Cprivate", "/private"),
    ("/x/..%5cprivate", "/private"),
    ("/.;/private", "/private"),
    ("/x/..;/private", "/private"),
    ("/x/..;a=b/private;c", "/private"),
    ("/x/..%3b/private", "/private"),
];

/// Targets that no common server interprets as `/private` by default. They are decided and forwarded as sent.
const OTHER_PAGES: &[&str] = &[
    "/x//private",
    // Escapes of escapes.
    "/%2570rivate",
    "/%252fprivate",
    "/%252e/private",
    "/x/%252e%252e/private",
    // Overlong UTF-8, which is invalid (RFC 3629 §3).
    "/%c0%afprivate",
    "/x/%c0%ae%c0%ae/private",
    "/%e0%80%afprivate",
    // Letters that look like other letters.
    "/\u{ff50}rivate",
    "/priv\u{ad}ate",
];

/// Ways that send the target in a line of text, so that it could contain a line end.
const ONE_LINE_WAYS: [Way; 4] = [Way::Absolute, Way::AbsoluteHttps, Way::PlainInside, Way::Http1Inside];

#[tokio::test]
async fn disallowed_paths_are_refused_in_every_spelling() {
    let gate = Gate::start().await;
    // A new site on the port of an old one would get the old one's rules.
    let mut sites = Vec::new();
    for way in Way::ALL {
        for (rules, targets) in REFUSED {
            let mut site = Site::reached_by(way, &gate, rules).await;
            println!("{rules}");
            for target in *targets {
                refused_by(&site.get(target).await, rules);
            }
            let requests = site.origin.requests();
            assert_eq!(requests.len(), 1, "only robots.txt: {requests:#?}");
            sites.push(site);
        }
    }
}

#[tokio::test]
async fn allowed_paths_are_forwarded_byte_for_byte() {
    let gate = Gate::start().await;
    // A new site on the port of an old one would get the old one's rules.
    let mut sites = Vec::new();
    for way in Way::ALL {
        for (rules, line, targets) in ALLOWED {
            let mut site = Site::reached_by(way, &gate, rules).await;
            println!("{rules}");
            for target in *targets {
                let response = site.get(target).await;
                let decision = allowed(&response, if line.is_some() { "rule" } else { "no-rule" });
                assert_eq!(decision.param("line"), line.map(|line| line.to_string()));
                assert_eq!(site.last_target(), *target);
            }
            sites.push(site);
        }
    }
}

#[tokio::test]
async fn a_refusal_names_the_reading_that_is_disallowed() {
    let gate = Gate::start().await;
    for way in Way::ALL {
        let mut site = Site::reached_by(way, &gate, "Disallow: /private").await;
        for (target, read_as) in AS_SERVERS_READ_THEM {
            let response = site.get(target).await;
            refused_by(&response, "Disallow: /private");
            let note = format!("(the path as servers read it: {read_as})");
            assert!(response.text().contains(&note), "{target}: {response:#?}");
            let field = response.decision();
            assert_eq!(field.param("read-as").as_deref(), Some(*read_as), "{target}");
        }
    }
    for (target, reading, read_as) in [
        ("/private", "sent", None),
        ("/x", "sent", None),
        ("/%70rivate", "normalized", Some("/private")),
        ("//private?q", "strict", Some("/private?q")),
    ] {
        let site = Origin::start().robots(ROBOTS).anything("page");
        let site = site.spawn().await;
        let url = site.url(target);
        gate.get(&url).await;
        let decision = gate.decision_for(&url).await;
        assert_eq!(decision["reading"], reading, "{decision:#}");
        assert_eq!(decision["read_as"].as_str(), read_as, "{decision:#}");
    }
}

#[tokio::test]
async fn strict_readings_can_be_switched_off() {
    let gate = Gate::with("[robots]\nstrict-paths = false").await;
    let mut site = Site::reached_by(Way::Absolute, &gate, "Disallow: /private").await;
    for (target, _) in AS_SERVERS_READ_THEM {
        allowed(&site.get(target).await, "no-rule");
        assert_eq!(site.last_target(), *target);
    }
    refused_by(&site.get("/x/../private").await, "Disallow: /private");
}

#[tokio::test]
async fn paths_that_no_server_treats_as_equal_are_decided_as_sent() {
    let gate = Gate::start().await;
    for way in Way::ALL {
        let mut site = Site::reached_by(way, &gate, "Disallow: /private").await;
        for target in OTHER_PAGES {
            allowed(&site.get(target).await, "no-rule");
            assert_eq!(site.last_target(), *target);
        }
    }
}

/// A fragment is not part of the request (RFC 9110 §7.1), so it is neither decided on nor sent.
#[tokio::test]
async fn a_fragment_is_not_forwarded() {
    let gate = Gate::start().await;
    for way in Way::ALL {
        let mut site = Site::reached_by(way, &gate, "Disallow: /private").await;
        for (target, sent) in [
            ("/x#part", "/x"),
            ("/x#", "/x"),
            ("/x#/private", "/x"),
            ("/x#/../private", "/x"),
            ("/x#?/../private", "/x"),
            ("/x?a#b?c", "/x?a"),
            ("/x?/../private#/..", "/x?/../private"),
            ("/#private", "/"),
            ("/x/%2e/y#%2e%2e/../private", "/x/%2e/y"),
        ] {
            allowed(&site.get(target).await, "no-rule");
            assert_eq!(site.last_target(), sent, "{target}");
        }
    }
}

#[tokio::test]
async fn an_empty_path_is_the_root_and_keeps_its_query() {
    let gate = Gate::start().await;
    for way in [Way::Absolute, Way::AbsoluteHttps] {
        let mut site = Site::reached_by(way, &gate, "Disallow: /*?*secret\nDisallow: /private").await;
        for (target, sent) in [
            ("", "/"),
            ("?", "/?"),
            ("?/private", "/?/private"),
            ("?/../private", "/?/../private"),
            ("#/private", "/"),
            ("#?secret", "/"),
        ] {
            allowed(&site.get(target).await, "no-rule");
            assert_eq!(site.last_target(), sent, "{target}");
        }
        for target in ["?secret", "?s%65cret", "??secret#x", "/?secret", "/.?secret"] {
            refused_by(&site.get(target).await, "Disallow: /*?*secret");
        }
    }
}

/// In a request line, it is ambiguous where such a target ends. HTTP/2 has no request line.
#[tokio::test]
async fn white_space_and_control_characters_are_a_bad_request() {
    let gate = Gate::start().await;
    for way in ONE_LINE_WAYS {
        let mut site = Site::reached_by(way, &gate, "Disallow: /private").await;
        for target in [
            "/x /private",
            "/x private HTTP/1.1",
            "/private ",
            "/x\t/private",
            "/pri\tvate",
            "/private\t",
            "/x\u{b}",
            "/x\u{c}",
            "/x\u{1}",
            "/x\u{7f}",
            "/x\0",
            "/x\r",
            "/x\n",
        ] {
            let response = site.get(target).await;
            failed(&response, 400, &["http_request_error"]);
            assert_eq!(response.field("Robots-Decision"), None, "no verdict: {response:#?}");
            assert!(site.origin.requests().is_empty(), "{:#?}", site.origin.requests());
            site.again().await;
        }
    }
}

/// A server that decodes overlong UTF-8, although it is invalid, would find a slash or a dot in some of these targets.
#[tokio::test]
async fn octets_that_are_not_utf8_are_a_bad_request() {
    let gate = Gate::start().await;
    for way in ONE_LINE_WAYS {
        let mut site = Site::reached_by(way, &gate, "Disallow: /private").await;
        for target in [
            &b"/\xC0\xAFprivate"[..],
            b"/x/\xC0\xAE\xC0\xAE/private",
            b"/x\xE0\x80\xAF..",
            b"/private\xFF",
            b"/x?\xE9",
        ] {
            let response = site.get_octets(target).await;
            failed(&response, 400, &["http_request_error"]);
            assert!(site.origin.requests().is_empty(), "{:#?}", site.origin.requests());
            site.again().await;
        }
    }
}

#[tokio::test]
async fn every_choice_of_escapes_for_a_disallowed_word_is_refused() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let mut connection = gate.dial().await;

    for choice in 0..1_u32 << "private".len() {
        let letter = |(n, byte): (usize, u8)| match choice >> n & 1 {
            0 => char::from(byte).to_string(),
            _ => format!("%{byte:02x}"),
        };
        let word: String = "private".bytes().enumerate().map(letter).collect();
        let response = connection.get(&origin.url(&format!("/{word}"))).await;
        refused_by(&response, "Disallow: /private");
    }
}

/// Asserts a refusal because of the first rule in `rules`, which is in line 2 of the robots.txt.
#[track_caller]
fn refused_by(response: &Response, rules: &str) {
    let decision = refused(response, "rule");
    let rule = rules.lines().next().unwrap_or_default();
    let as_shown = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    let shown: String = rule.chars().map(as_shown).collect();
    assert_eq!(
        (decision.param("line"), decision.param("rule")),
        (Some("2".into()), Some(shown)),
        "{response:#?}"
    );
}
