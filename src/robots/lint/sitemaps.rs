//! The sitemaps that a file names.
//!
//! Never fetches one, and no sitemap binds anybody.

use std::collections::{HashMap, hash_map::Entry};

use url::Url;

use super::{Findings, Lint, quote::quoted};

/// Each sitemap and its first line.
#[derive(Default)]
pub(super) struct Sitemaps<'a>(HashMap<&'a [u8], u32>);

// === impl Sitemaps ===

impl<'a> Sitemaps<'a> {
    pub(super) fn add(&mut self, line: u32, value: &'a [u8], findings: &mut Findings) {
        if !is_absolute(value) {
            let message = format!(
                "A sitemap has to be an absolute URL, with `https://` and the host, and {} is none.",
                quoted(value)
            );
            findings.add(line, Lint::RelativeSitemap, message);
        }
        match self.0.entry(value) {
            Entry::Vacant(entry) => {
                entry.insert(line);
            }
            Entry::Occupied(first) if !value.is_empty() => {
                let first = *first.get();
                let message = format!("Line {first} names the same sitemap: remove one.");
                findings.relate(line, first, Lint::DuplicateSitemap, message);
            }
            Entry::Occupied(_) => {}
        }
    }
}

fn is_absolute(value: &[u8]) -> bool {
    let url = std::str::from_utf8(value).ok().and_then(|text| Url::parse(text).ok());
    // The URL standard forgives a missing slash or a host on the path's side; others do not.
    url.is_some_and(|url| url.has_host()) && memchr::memmem::find(value, b"://").is_some()
}
