//! The sites that the questions are about: one for each kind of robots.txt, over HTTP and over HTTPS, and an FTP
//! server.

use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex},
};

use crate::{
    ftp::FtpServer,
    limits::{slow_path, slow_rules},
    support::{NAME, Origin, Reply},
};

/// The running sites: all of [`SITES`] with HTTP and with HTTPS, and an FTP server.
pub struct Sites {
    http: Vec<Origin>,
    https: Vec<Origin>,
    pub ftp: FtpServer,
}

/// A site of the table.
pub struct Site {
    pub name: &'static str,
    pub robots: Robots,
    /// What robotgate's copy of the robots.txt means after a fetch, as a word of `AnswerKind`.
    pub holds: &'static str,
    /// The same as `holds`, for a robotgate that uses an old robots.txt from the first failure on.
    pub holds_late: &'static str,
}

/// What a site replies to a request for its robots.txt.
#[derive(Clone, Copy)]
pub enum Robots {
    Text(&'static str),
    /// So many rules with wildcards that the path [`SLOW_PATH`] cannot be decided.
    Slow,
    NotFound,
    NotFoundWithTdmrep,
    /// A server error whose page says that the robots.txt was not found.
    SoftNotFound,
    Loop,
    Failure,
    /// For the first request with each host name, a text that expires after a second. Then server errors.
    Lost(&'static str),
}

pub const MIXED: &str = "User-agent: *\nDisallow: /private\n";

#[rustfmt::skip]
pub const SITES: &[Site] = &[
    site("open",  Robots::Text("User-agent: *\nAllow: /\n")),
    site("shut",  Robots::Text("User-agent: *\nDisallow: /\n")),
    site("mixed", Robots::Text(MIXED)),
    site("train", Robots::Text("User-agent: *\nContent-Signal: ai-train=no\n")),
    site("part",  Robots::Text("User-agent: *\nContent-Usage: /art train-ai=n\n")),
    site("lazy",  Robots::Text("User-agent: *\nCrawl-delay: 86400\nDisallow: /private\n")),
    site("complex", Robots::Slow),
    holding("none", Robots::NotFound,           "no-robots",   "no-robots"),
    holding("mine", Robots::NotFoundWithTdmrep, "no-robots",   "no-robots"),
    holding("loop", Robots::Loop,               "no-robots",   "no-robots"),
    holding("soft", Robots::SoftNotFound,       "soft-404",    "soft-404"),
    holding("down", Robots::Failure,             "unreachable", "unreachable-too-long"),
    holding("lost", Robots::Lost(MIXED),        "unreachable", "last-copy"),
];

const fn site(name: &'static str, robots: Robots) -> Site {
    holding(name, robots, "rules", "rules")
}

const fn holding(name: &'static str, robots: Robots, holds: &'static str, holds_late: &'static str) -> Site {
    Site {
        name,
        robots,
        holds,
        holds_late,
    }
}

/// Returns the position and the description of a site.
pub fn find(name: &str) -> (usize, &'static Site) {
    let at = SITES.iter().position(|site| site.name == name);
    let at = at.unwrap_or_else(|| panic!("there is no site {name}"));
    (at, &SITES[at])
}

// === impl Sites ===

impl Sites {
    pub async fn spawn() -> Self {
        let (mut http, mut https) = (Vec::new(), Vec::new());
        for site in SITES {
            http.push(site.robots.spawn(false).await);
            https.push(site.robots.spawn(true).await);
        }
        let ftp = FtpServer::builder()
            .file("/robots.txt", MIXED)
            .file("/pub/a.txt", "a")
            .file("/private/b.txt", "b");
        let ftp = ftp.start().await;
        Self { http, https, ftp }
    }

    /// Returns the port of a site over plain HTTP.
    pub fn port(&self, name: &str) -> u16 {
        self.http[find(name).0].port()
    }

    /// Returns the URL of a path of a site. `way` is one of the ways that [`TableRow`](super::table::TableRow) lists.
    pub fn url(&self, way: &str, name: &str, path: &str) -> String {
        let (at, _) = find(name);
        match way {
            "http" => self.http[at].url_at(NAME, path),
            "https" => self.https[at].url_at(NAME, path),
            "pinned" => self.https[at].url_at("other.example", path),
            _ => panic!("there is no way {way}"),
        }
    }
}

// === impl Robots ===

impl Robots {
    /// Returns the text of the robots.txt. `None` if the site serves none, or no longer serves it.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Slow => Some(&SLOW_RULES),
            _ => None,
        }
    }

    async fn spawn(self, is_tls: bool) -> Origin {
        let origin = Origin::start().anything("page");
        let origin = match self {
            Self::Text(text) => origin.robots(text),
            Self::Slow => origin.robots(&SLOW_RULES),
            Self::NotFound => origin,
            Self::NotFoundWithTdmrep => origin.reply(TDMREP, Reply::ok("application/json", RESERVES)),
            Self::SoftNotFound => origin.reply(ROBOTS_TXT, Reply::status(500).body("<h1>Page not found</h1>")),
            Self::Loop => origin.reply(ROBOTS_TXT, Reply::redirect(ROBOTS_TXT)),
            Self::Failure => origin.reply(ROBOTS_TXT, Reply::status(500)),
            Self::Lost(text) => {
                let asked_at = Mutex::new(HashSet::new());
                origin.on(ROBOTS_TXT, move |request| {
                    let host = request.field("Host").map(str::to_owned);
                    match asked_at.lock().unwrap().insert(host) {
                        true => Reply::ok("text/plain", text).header("Cache-Control", "max-age=1"),
                        false => Reply::status(500),
                    }
                })
            }
        };
        match is_tls {
            true => origin.tls().spawn().await,
            false => origin.spawn().await,
        }
    }
}

/// A path that takes too long to decide by [`SLOW_RULES`].
pub static SLOW_PATH: LazyLock<String> = LazyLock::new(slow_path);
static SLOW_RULES: LazyLock<String> = LazyLock::new(slow_rules);

const ROBOTS_TXT: &str = "/robots.txt";
const TDMREP: &str = "/.well-known/tdmrep.json";
const RESERVES: &str = r#"[{"location": "/mine", "tdm-reservation": 1}]"#;
