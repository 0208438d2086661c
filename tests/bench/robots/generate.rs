//! Generates large files like those of real sites, and paths for a file. Each run generates the same bytes.
//!
//! It never reads the clock or the system's random numbers.

use std::fmt::Write as _;

/// Maximum size of a file, which is the fetcher's limit.
pub const LIMIT: usize = 500 * 1024;

const WORDS: [&str; 40] = [
    "account", "admin", "ajax", "api", "archive", "assets", "blog", "books", "cart", "catalog", "category", "checkout",
    "comments", "de", "docs", "download", "en", "events", "export", "feed", "files", "forum", "help", "images",
    "internal", "item", "jobs", "live", "media", "news", "old", "page", "print", "private", "products", "profile",
    "search", "shop", "static", "user",
];
const ENDS: [&str; 8] = [".html", ".php", ".pdf", ".json", ".jpg", ".aspx", "", "/"];
const PARAMETERS: [&str; 8] = ["sort", "page", "q", "session", "utm_source", "filter", "lang", "print"];

/// A small pseudo-random number generator (SplitMix64).
pub struct Random(u64);

/// Writes lines until a size or a number of rules is reached.
pub struct Lines {
    text: String,
    rules: usize,
    most: usize,
}

/// Returns a file in which 85 % of the patterns are path prefixes and the others have wildcards, as in files of real
/// sites.
pub fn mixed(rules: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    Lines::fill(rules, |lines| {
        let path = if random.below(100) < 85 {
            prefix(&mut random)
        } else {
            wildcard(&mut random)
        };
        lines.rule(random.below(5) == 0, &path)
    })
}

/// Returns a file in which every pattern has a wildcard.
pub fn wildcards(rules: usize) -> Vec<u8> {
    let mut random = Random::new(2);
    Lines::fill(rules, |lines| {
        let path = wildcard(&mut random);
        lines.rule(random.below(5) == 0, &path)
    })
}

/// Returns 64 paths for a generated file. Half of them begin like a rule, half are other pages of the site.
/// Every third has a query, every fourth is deep.
pub fn paths(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(file);
    let records = text.lines().skip(1).filter_map(|line| line.split_once(": "));
    let rules: Vec<&str> = records.map(|(_, path)| path).collect();
    let mut random = Random::new(3);
    (0..64)
        .map(|at| {
            let mut path = if at % 2 == 0 {
                let rule = rules[random.below(rules.len())];
                let filled = rule.replace('*', &format!("{}-{at}", random.one(&WORDS)));
                filled.trim_end_matches('$').to_owned()
            } else {
                let top = random.below(1000);
                format!("/site-{top}/{}", random.one(&WORDS))
            };
            if at % 4 == 3 {
                for _ in 0..6 {
                    let _ = write!(path, "/{}-{}", random.one(&WORDS), random.below(1000));
                }
            }
            if at % 3 == 0 && !path.contains('?') {
                let _ = write!(path, "?{}={}", random.one(&PARAMETERS), random.below(1000));
            }
            if path.starts_with('/') {
                path
            } else {
                format!("/{path}")
            }
        })
        .collect()
}

fn prefix(random: &mut Random) -> String {
    let mut path = String::new();
    for _ in 0..=random.below(3) {
        let _ = write!(path, "/{}", random.one(&WORDS));
        if random.below(2) == 0 {
            let _ = write!(path, "-{}", random.below(5000));
        }
    }
    path + random.one(&ENDS)
}

fn wildcard(random: &mut Random) -> String {
    let (word, other, number) = (random.one(&WORDS), random.one(&WORDS), random.below(5000));
    let (end, parameter) = (random.one(&ENDS), random.one(&PARAMETERS));
    match random.below(6) {
        0 => format!("/*?{parameter}={number}"),
        1 => format!("/{word}/*/{other}-{number}/"),
        2 => format!("/{word}-{number}/*{end}$"),
        3 => format!("*/{word}-{number}{end}"),
        4 => format!("/*/{word}/{other}-{number}/*{end}"),
        _ => format!("/{word}/*-{number}*{parameter}="),
    }
}

// === impl Random ===

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    /// Returns a word of `length` letters from `letters`.
    pub fn word(&mut self, letters: &[u8], length: usize) -> String {
        (0..length)
            .map(|_| char::from(letters[self.below(letters.len())]))
            .collect()
    }
}

// === impl Lines ===

impl Lines {
    /// Returns a file that begins with `User-agent: *`. Calls `next`, which adds lines, until the file has `rules`
    /// rules or [`LIMIT`] bytes.
    pub fn fill(rules: usize, mut next: impl FnMut(&mut Self) -> bool) -> Vec<u8> {
        let mut lines = Self {
            text: String::from("User-agent: *\n"),
            rules: 0,
            most: rules,
        };
        while next(&mut lines) {}
        lines.text.into_bytes()
    }

    /// Adds a rule; returns whether there was room.
    pub fn rule(&mut self, allow: bool, path: &str) -> bool {
        self.rules += 1;
        let kind = if allow { "Allow" } else { "Disallow" };
        self.rules <= self.most && self.line(&format!("{kind}: {path}\n"))
    }

    /// Adds complete lines; returns whether there was room.
    pub fn line(&mut self, lines: &str) -> bool {
        let fits = self.text.len() + lines.len() <= LIMIT;
        if fits {
            self.text.push_str(lines);
        }
        fits
    }
}
