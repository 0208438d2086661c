//! Files and paths that cost an engine as much time as possible. With such files, a hostile site could slow down the
//! requests of bots to all other sites.
//!
//! No file is larger than the fetcher's limit. Most paths match no rule, so that an engine has to try every rule.

use super::generate::{Lines, Random};

/// A hostile file and the paths to decide on, the shortest first.
pub struct Attack {
    pub name: &'static str,
    pub file: Vec<u8>,
    pub agent: &'static str,
    pub paths: Vec<String>,
}

const LENGTHS: [usize; 2] = [8 * 1024, 60 * 1024];

pub fn all() -> Vec<Attack> {
    let (pieces, random) = pieces();
    let mut attacks = vec![
        both(
            "one /*a*a*a*a*a*b",
            "User-agent: *\nDisallow: /*a*a*a*a*a*b".into(),
            plain,
        ),
        both("500 KiB of /*a*a*a*a*a*b1234", tails(), plain),
        both("500 KiB of /*a*a*a*a*a*b1234, decoys", tails(), early),
        both("500 KiB of *wxyz, a random path", pieces, |length| {
            random[..length].into()
        }),
        both("500 KiB of *abbabaab…c, a random path", binary(), |length| {
            format!("/acbc{}", Random::new(7).word(b"ab", length - 5))
        }),
        both("500 KiB of /*b*l*c…, falling letters", orders(), falling),
        both("500 KiB of /*b*l*c…, halves", orders(), halves),
        both("500 KiB of *ab, *aab, *aaab, …", runs(), early),
        both("500 KiB of lines of 16 KB", long("a"), plain),
        both("500 KiB of lines of 16 KB, *a*a*a…", long("*a"), early),
        both("nested /, /a, /aa, …", nested(""), plain),
        both("nested /*b1, /a*b2, /aa*b3, …", nested("*b"), plain),
        both("20,000 times one prefix", same("/private/area"), plain),
        both("20,000 times /*a*a*b", same("/*a*a*b"), early),
        both("groups for *, a prefix each", groups("", "/a"), plain),
        both("groups for *, /*a*1234 each", groups("", "/*a*"), early),
        both("groups for * and another agent", groups("and", "/*a*"), early),
        both("groups for * and another, as that one", groups("and", "/*a*"), early),
        both("100 agents, each in its own groups", shifting(), early),
    ];
    attacks[0].paths.splice(0..0, [256, 2048].map(plain));
    for attack in attacks.iter_mut().rev().take(2) {
        attack.agent = "Bot-aaab";
    }
    attacks.push(Attack {
        // The last agent in alphabetical order. The engine reaches its memory limit before it can merge the groups of
        // this agent into one table.
        agent: "Bot-aaaf",
        ..both("6 agents, each in most groups", unmerged(), plain)
    });
    attacks
}

fn both(name: &'static str, file: Vec<u8>, path: impl Fn(usize) -> String) -> Attack {
    Attack {
        name,
        file,
        agent: "ExampleBot",
        paths: LENGTHS.map(path).into(),
    }
}

fn plain(length: usize) -> String {
    format!("/{}", "a".repeat(length - 1))
}

/// Returns a path of decoys (`b00` to `b99`) and then `a`s. In the patterns, text such as `b00` comes only after an
/// `a`, so the decoys cannot match. But an engine that looks for such text finds it.
fn early(length: usize) -> String {
    let pairs: String = (0..100).map(|pair| format!("b{pair:02}")).collect();
    format!("/{pairs}{}", "a".repeat(length - 1 - pairs.len()))
}

fn tails() -> Vec<u8> {
    let mut number = 0;
    Lines::fill(usize::MAX, |lines| {
        number += 1;
        lines.rule(false, &format!("/*a*a*a*a*a*b{number}"))
    })
}

/// Returns a file and a path. The patterns in the file are words of four letters that are not in the path, although all
/// their pairs of adjacent letters are.
fn pieces() -> (Vec<u8>, String) {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
    let mut random = Random::new(4);
    let path = format!("/{}", random.word(LETTERS, LENGTHS[1]));
    let mut seen: std::collections::HashSet<Vec<u8>> = path.as_bytes().windows(4).map(Vec::from).collect();
    let file = Lines::fill(usize::MAX, |lines| {
        let mut word = random.word(LETTERS, 4);
        while !seen.insert(word.clone().into_bytes()) {
            word = random.word(LETTERS, 4);
        }
        lines.rule(false, &format!("*{word}"))
    });
    (file, path)
}

/// Returns patterns of random `a`s and `b`s that end in a `c`. The path contains all short parts of them.
fn binary() -> Vec<u8> {
    let mut random = Random::new(6);
    Lines::fill(usize::MAX, |lines| {
        let length = 14 + random.below(2);
        lines.rule(false, &format!("*{}c", random.word(b"ab", length)))
    })
}

fn orders() -> Vec<u8> {
    let mut random = Random::new(5);
    let mut letters: Vec<char> = ('a'..='l').collect();
    Lines::fill(usize::MAX, |lines| {
        random.shuffle(&mut letters);
        lines.rule(
            false,
            &letters
                .iter()
                .fold(String::from("/"), |path, letter| format!("{path}*{letter}")),
        )
    })
}

fn falling(length: usize) -> String {
    let runs = ('a'..='l').rev().map(|letter| String::from(letter).repeat(length / 12));
    format!("/{}", runs.collect::<String>())
}

/// Returns a path that repeats a to f, then g to l, so that half of a pattern matches before the rest fails.
fn halves(length: usize) -> String {
    format!("/{}{}", "abcdef".repeat(length / 12), "ghijkl".repeat(length / 12))
}

fn nested(end: &str) -> Vec<u8> {
    let mut letters = String::from("/");
    let mut number = 0;
    Lines::fill(usize::MAX, |lines| {
        number += 1;
        let number = if end.is_empty() {
            String::new()
        } else {
            number.to_string()
        };
        let fits = lines.rule(false, &format!("{letters}{end}{number}"));
        letters.push('a');
        fits
    })
}

/// Returns patterns of increasing length that every path contains except for their last letter.
fn runs() -> Vec<u8> {
    let mut letters = String::from("*");
    Lines::fill(usize::MAX, |lines| {
        letters.push('a');
        lines.rule(false, &format!("{letters}b"))
    })
}

/// Returns rules with lines of nearly the maximum length. Each pattern consists of `piece`s, except at its ends.
fn long(piece: &str) -> Vec<u8> {
    let mut number = 0;
    Lines::fill(usize::MAX, |lines| {
        number += 1;
        lines.rule(false, &format!("/{}b{number}", piece.repeat(16_600 / piece.len())))
    })
}

fn same(path: &str) -> Vec<u8> {
    Lines::fill(20_000, |lines| lines.rule(false, path))
}

/// Returns groups for `*`, each with a numbered path. If `other` is not empty, each group is also for one more agent,
/// which no other group names.
fn groups(other: &str, path: &str) -> Vec<u8> {
    let mut number = 0;
    Lines::fill(usize::MAX, |lines| {
        let name = if other.is_empty() {
            String::new()
        } else {
            format!("User-agent: {}\n", bot(number))
        };
        number += 1;
        lines.line(&format!("User-agent: *\n{name}Disallow: {path}{number}\n"))
    })
}

/// Returns thousands of groups for six agents. Each group names all of them, or all but one. That is too much to index
/// for each agent.
fn unmerged() -> Vec<u8> {
    let mut number = 0;
    Lines::fill(usize::MAX, |lines| {
        let agents = (0..6).filter(|agent| (number + agent) % 37 != 0);
        let names: String = agents.map(|agent| format!("User-agent: {}\n", bot(agent))).collect();
        number += 1;
        lines.line(&format!("{names}Disallow: *bx\n"))
    })
}

fn shifting() -> Vec<u8> {
    let mut number = 0;
    Lines::fill(usize::MAX, |lines| {
        let agents = (0..100).filter(|agent| *agent != number % 100);
        let names: String = agents.map(|agent| format!("User-agent: {}\n", bot(agent))).collect();
        number += 1;
        lines.line(&format!("{names}Disallow: /*a*{number}\n"))
    })
}

/// Returns a name without digits, because a digit ends a name in a robots.txt.
fn bot(number: usize) -> String {
    let letter = |place: usize| char::from(b'a' + (number / place % 26) as u8);
    format!(
        "Bot-{}{}{}{}",
        letter(26 * 26 * 26),
        letter(26 * 26),
        letter(26),
        letter(1)
    )
}
