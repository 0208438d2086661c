//! The files for measuring decisions, parsing and memory, and the paths for each.

use super::generate;

/// A file, the agent and the paths to decide on.
pub struct Subject {
    pub name: &'static str,
    pub size: Size,
    pub file: Vec<u8>,
    pub agent: &'static str,
    /// 64 paths: allowed, disallowed and without a rule; shallow, deep and with queries.
    pub paths: Vec<String>,
}

/// The size of a file, which determines the goals.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Size {
    /// 30 rules in about 1 KB, like most sites.
    Typical,
    /// 2,000 rules, or 200 with wildcards.
    Large,
    /// The size at which robotgate cuts off a file.
    Largest,
}

pub fn all() -> Vec<Subject> {
    let typical = |name, file: &str, paths: &str| Subject {
        name,
        size: Size::Typical,
        file: file.into(),
        agent: "ExampleBot",
        paths: paths.lines().map(String::from).collect(),
    };
    let generated = |name, size, file: Vec<u8>| Subject {
        name,
        size,
        agent: "ExampleBot",
        paths: generate::paths(&file),
        file,
    };
    vec![
        typical("shop", include_str!("files/shop.txt"), include_str!("files/shop.urls")),
        typical("blog", include_str!("files/blog.txt"), include_str!("files/blog.urls")),
        typical("news", include_str!("files/news.txt"), include_str!("files/news.urls")),
        generated("2,000 rules", Size::Large, generate::mixed(2_000)),
        generated("500 KiB", Size::Largest, generate::mixed(usize::MAX)),
        generated("200 wildcards", Size::Large, generate::wildcards(200)),
        generated("500 KiB wildcards", Size::Largest, generate::wildcards(usize::MAX)),
    ]
}

// === impl Size ===

impl Size {
    /// Returns the time within which a decision must be made, in words and in nanoseconds.
    pub fn goal(self) -> Option<(&'static str, f64)> {
        match self {
            Self::Typical => Some(("<200 ns", 200.0)),
            Self::Large => None,
            Self::Largest => Some(("<5 µs", 5e3)),
        }
    }
}
