//! Parses the scripts in `tests/it/transcripts/*.txt`.
//!
//! A case begins with `=== its name`. Settings follow, each on its own line:
//!
//! - `way:` how the client reaches the origin, one word or several (see [`Way`]); the case is played once for each.
//! - `each: a | b` plays the case once for each text, which replaces `$` in the steps.
//! - `gate: quick` uses a gate with short time-outs, `gate: copies` a gate that serves its copies.
//! - `robots:` the origin's robots.txt; without it, the origin has none.
//! - `may-change:` says why a different result can be right: because of a known defect, or a spelling that does not
//!   matter.
//!
//! Then come the steps of both ends, which are performed one after the other:
//!
//! - `C> TEXT` the client sends TEXT; `C>> TEXT` does not wait until it is sent.
//! - `O> TEXT`, `O>> TEXT` the same for the origin. `C2`, `O2` are the second connections. `O1` is `O`.
//! - `C< response N` waits for N complete final responses (1 if left out); `C< head N` for N heads, also interim ones;
//!   `C< content N` for N bytes of the last message's content; `C< bytes N` for N bytes in all; `C< behind N` for N
//!   bytes after the last message; `C< end` until the gate closes the connection.
//! - `O< request N`, `O< head N`, `O< content N`, `O< bytes N`, `O< end` likewise.
//! - `C! finish` closes the sending direction, `C! close` closes the connection, `C! drop` closes it without TLS
//!   close_notify, `C! reset` resets it; `O!` likewise.
//! - `log N` waits until N exchanges with this origin have their completion in the audit log.
//!
//! In TEXT, `\r`, `\n`, `\t`, `\\` and `\xNN` are escapes, and lines that begin with two spaces continue the step.
//! Placeholders: `{t}` is what comes before the path in a target (nothing inside a CONNECT), `{o}` the origin's host
//! and port, `{GET /x}` the usual head of a request without its empty line (`{GET /x 1.0}` for that version), `{ok N}`
//! the head of a response of N bytes, `{a*N}` the text `a` N times, `{port}` the origin's port, and `{}` nothing.

/// A case, played in one way.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub name: String,
    pub way: Way,
    pub gate: Kind,
    pub robots: Option<String>,
    pub may_change: Option<String>,
    pub steps: Vec<Step>,
}

/// The configuration of the gate with which the case is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Usual,
    Quick,
    Copies,
}

/// How the client reaches the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// `plain`: absolute form, over a plain connection to the proxy port.
    #[default]
    Plain,
    /// `https`: the same with an `https` URL.
    Https,
    /// `tls`: inside the TLS of an intercepted CONNECT.
    Tls,
    /// `inside`: inside a CONNECT, without TLS.
    Inside,
    /// `h2`: HTTP/2 inside an intercepted CONNECT, to an origin that uses HTTP/1.1. Script and recording are written in
    /// HTTP/1.1.
    H2,
    /// `h2-h2`: the same, to an origin that uses HTTP/2.
    H2ToH2,
    /// `tls-h2`: the same as `tls`, to an origin that uses HTTP/2 if the gate offers it.
    TlsToH2,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub text: String,
    pub end: End,
    /// Number of the connection, from 1.
    pub number: usize,
    pub act: Act,
}

/// Which side of the exchange acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Client,
    Origin,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// Sends a template. The boolean is whether to wait until it is sent.
    Send(String, bool),
    Complete(usize),
    Head(usize),
    Content(usize),
    Bytes(usize),
    Behind(usize),
    Ended,
    Finish,
    Close,
    Drop,
    Reset,
    Log(usize),
}

/// Parses the cases of a file. Returns each case several times: with each of its texts (`each`) in each of its ways.
///
/// # Panics
/// If the file is invalid.
pub fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<(Case, Vec<Way>, Vec<String>)> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let bad = || -> ! { panic!("line {}: {line}", number + 1) };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("=== ") {
            let case = Case {
                name: name.to_owned(),
                ..Case::default()
            };
            cases.push((case, Vec::new(), Vec::new()));
            continue;
        }
        let Some((case, ways, each)) = cases.last_mut() else {
            bad()
        };
        let mut line = line.to_owned();
        while let Some((_, more)) = lines.next_if(|(_, next)| next.starts_with("  ")) {
            line += &more[2..];
        }
        match line.split_once(": ") {
            Some(("way", words)) => ways.extend(words.split(' ').map(|word| way(word).unwrap_or_else(|| bad()))),
            Some(("each", texts)) => each.extend(texts.split(" | ").map(str::to_owned)),
            Some(("gate", "quick")) => case.gate = Kind::Quick,
            Some(("gate", "copies")) => case.gate = Kind::Copies,
            Some(("robots", text)) => case.robots = Some(String::from_utf8(unescape(text)).expect("text")),
            Some(("may-change", why)) => case.may_change = Some(why.to_owned()),
            _ => case.steps.push(step(&line).unwrap_or_else(|| bad())),
        }
    }
    cases
        .into_iter()
        .flat_map(|(case, ways, each)| expand(&case, &ways, &each))
        .collect()
}

fn expand(case: &Case, ways: &[Way], each: &[String]) -> Vec<Case> {
    let ways = if ways.is_empty() { &[Way::Plain] } else { ways };
    let texts = if each.is_empty() { &[String::new()] } else { each };
    let mut expanded = Vec::new();
    for text in texts {
        for &way in ways {
            let mut case = case.clone();
            case.way = way;
            let name = if each.is_empty() {
                String::new()
            } else {
                format!(": {text}")
            };
            case.name = format!("{}{name} [{}]", case.name, way.name());
            for step in &mut case.steps {
                step.text = step.text.replace('$', text);
                if let Act::Send(template, _) = &mut step.act {
                    *template = template.replace('$', text);
                }
            }
            expanded.push(case);
        }
    }
    expanded
}

fn step(line: &str) -> Option<Step> {
    let new = |end, number, act| Step {
        text: line.to_owned(),
        end,
        number,
        act,
    };
    let (who, what) = line.split_once(' ')?;
    if who == "log" {
        return Some(new(End::Client, 1, Act::Log(what.parse().ok()?)));
    }
    let end = match who.as_bytes()[0] {
        b'C' => End::Client,
        b'O' => End::Origin,
        _ => return None,
    };
    let sign = who.find(['<', '>', '!'])?;
    let number = match &who[1..sign] {
        "" => 1,
        digits => digits.parse().ok()?,
    };
    let (noun, count) = what.split_once(' ').unwrap_or((what, "1"));
    let count = || count.parse::<usize>().ok();
    let act = match (&who[sign..], noun) {
        (">", _) => Act::Send(what.to_owned(), true),
        (">>", _) => Act::Send(what.to_owned(), false),
        ("<", "response" | "request") => Act::Complete(count()?),
        ("<", "head") => Act::Head(count()?),
        ("<", "content") => Act::Content(count()?),
        ("<", "behind") => Act::Behind(count()?),
        ("<", "bytes") => Act::Bytes(count()?),
        ("<", "end") => Act::Ended,
        ("!", "finish") => Act::Finish,
        ("!", "close") => Act::Close,
        ("!", "drop") => Act::Drop,
        ("!", "reset") => Act::Reset,
        _ => return None,
    };
    Some(new(end, number, act))
}

/// Returns the bytes of a template.
///
/// # Panics
/// If the template is invalid.
pub fn fill(template: &str, way: Way, authority: &str) -> Vec<u8> {
    let prefix = match way {
        Way::Plain => format!("http://{authority}"),
        Way::Https => format!("https://{authority}"),
        _ => String::new(),
    };
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let (hole, behind) = after.split_once('}').unwrap_or_else(|| panic!("no }} in {template}"));
        let words: Vec<&str> = hole.split(' ').collect();
        filled += &match words[..] {
            [""] => String::new(),
            ["t"] => prefix.clone(),
            ["port"] => authority.rsplit(':').next().unwrap_or_default().to_owned(),
            ["o"] => authority.to_owned(),
            ["ok", length] => format!("HTTP/1.1 200 OK\\r\\nContent-Length: {length}\\r\\n\\r\\n"),
            [method, path] => request(method, &format!("{prefix}{path}"), "1.1", authority),
            [method, path, version] => request(method, &format!("{prefix}{path}"), version, authority),
            _ => match hole.split_once('*') {
                Some((letter, times)) => letter.repeat(times.parse().expect("a number")),
                None => panic!("what is {{{hole}}}?"),
            },
        };
        rest = behind;
    }
    unescape(&(filled + rest))
}

fn request(method: &str, target: &str, version: &str, authority: &str) -> String {
    format!("{method} {target} HTTP/{version}\\r\\nHost: {authority}\\r\\nUser-Agent: TestBot/1.0\\r\\n")
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.as_bytes());
        let (byte, length) = match after.as_bytes().first() {
            Some(b'r') => (b'\r', 1),
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b'\\') => (b'\\', 1),
            Some(b'x') => (u8::from_str_radix(&after[1..3], 16).expect("two digits"), 3),
            _ => panic!("a bad escape in {text}"),
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    bytes.extend(rest.as_bytes());
    bytes
}

fn way(word: &str) -> Option<Way> {
    WAYS.into_iter().find(|way| way.name() == word)
}

// === impl Way ===

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Https => "https",
            Self::Tls => "tls",
            Self::Inside => "inside",
            Self::H2 => "h2",
            Self::H2ToH2 => "h2-h2",
            Self::TlsToH2 => "tls-h2",
        }
    }

    /// Returns whether the origin uses TLS.
    pub fn is_https(self) -> bool {
        !matches!(self, Self::Plain | Self::Inside)
    }
}

const WAYS: [Way; 7] = [
    Way::Plain,
    Way::Https,
    Way::Tls,
    Way::Inside,
    Way::H2,
    Way::H2ToH2,
    Way::TlsToH2,
];
