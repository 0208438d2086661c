//! Parses a User-Agent field (RFC 9110 §10.1.5): finds its products and comments, and the product that names the
//! client.
//!
//! This module accepts any bytes, and skips everything that is neither a product nor a comment. It does not know the
//! configured bots.

use std::cmp::Ordering;

use super::Cause;

enum Piece<'h> {
    Product(&'h str),
    /// Without the outer parentheses.
    Comment(&'h [u8]),
}

struct Pieces<'h> {
    rest: &'h [u8],
}

/// Returns the product token that names the client: a product after `compatible;` in a comment, such as `AcmeBot` in
/// `Mozilla/5.0 (compatible; AcmeBot/2.1)`, or else the first that does not belong to a browser.
pub(super) fn token(field: &[u8]) -> Result<&str, Cause> {
    let mut first = None;
    let mut browser = false;
    for piece in (Pieces { rest: field }) {
        match piece {
            Piece::Comment(comment) => {
                if let Some(product) = after_compatible(comment) {
                    return Ok(product);
                }
            }
            Piece::Product(product) if is_browser(product) => browser = true,
            Piece::Product(product) => first = first.or(Some(product)),
        }
    }

    first.ok_or(if browser { Cause::BrowserOnly } else { Cause::NoToken })
}

/// Returns the products in a User-Agent field, without versions. Of a comment, returns only the product after
/// `compatible;`.
pub fn products(field: &[u8]) -> impl Iterator<Item = &str> {
    Pieces { rest: field }.filter_map(|piece| match piece {
        Piece::Product(product) => Some(product),
        Piece::Comment(comment) => after_compatible(comment),
    })
}

/// Returns whether the text is a token (RFC 9110 §5.6.2): not empty, and without spaces or delimiters.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Returns whether the byte is a `tchar` (RFC 9110 §5.6.2).
pub fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[usize::from(byte)]
}

fn after_compatible(comment: &[u8]) -> Option<&str> {
    let mut parts = comment.split_inclusive(|&byte| ends_part(byte));
    parts.find(|part| {
        let mark = part.strip_suffix(b";").unwrap_or_default();
        mark.trim_ascii().eq_ignore_ascii_case(b"compatible")
    })?;

    // A browser's name is followed by its platform and plug-ins, as in `MSIE 9.0; Windows NT 6.1; SLCC2`. There, only a
    // product with a version, alone between two `;`, counts as a bot.
    let mut browser = false;
    for part in parts {
        let part = match part.split_last() {
            Some((&last, part)) if ends_part(last) => part.trim_ascii(),
            _ => part.trim_ascii(),
        };
        let Some(product) = named(part) else { continue };
        if is_browser(product) {
            browser = true;
        } else if !browser || is_product_with_version(part) {
            return Some(product);
        }
    }
    None
}

fn ends_part(byte: u8) -> bool {
    matches!(byte, b';' | b'(' | b')')
}

/// Returns the product in a part of a comment: its first word, or the next one if the first has characters that no
/// robots.txt uses in names. In `Yahoo! Slurp`, it is `Slurp`, the token that Yahoo documents.
fn named(part: &[u8]) -> Option<&str> {
    let mut words = part.split(u8::is_ascii_whitespace).filter_map(product);
    let first = words.next()?;
    if is_plain(first) {
        return Some(first);
    }
    words.find(|word| is_plain(word)).or(Some(first))
}

fn is_plain(product: &str) -> bool {
    product
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_product_with_version(part: &[u8]) -> bool {
    part.contains(&b'/') && !part.iter().any(u8::is_ascii_whitespace)
}

/// Returns the product at the start of a word, up to a `/`. Ignores a token without a letter: a version (`5.0`), a dash
/// for "nothing", or `*`, which would mean every bot.
fn product(word: &[u8]) -> Option<&str> {
    let end = word.iter().position(|&byte| !is_token_byte(byte)).unwrap_or(word.len());
    let ends_well = matches!(word.get(end), None | Some(b'/'));
    let (token, _) = word.split_at(end);
    if !ends_well || !token.iter().any(u8::is_ascii_alphabetic) {
        return None;
    }
    str::from_utf8(token).ok()
}

fn is_browser(product: &str) -> bool {
    BROWSERS
        .binary_search_by(|name| compare(name.as_bytes(), product.as_bytes()))
        .is_ok()
}

fn compare(name: &[u8], product: &[u8]) -> Ordering {
    name.iter().copied().cmp(product.iter().map(u8::to_ascii_lowercase))
}

// === impl Pieces ===

impl<'h> Iterator for Pieces<'h> {
    type Item = Piece<'h>;

    fn next(&mut self) -> Option<Piece<'h>> {
        loop {
            let start = self.rest.iter().position(|&byte| !is_separator(byte))?;
            self.rest = &self.rest[start..];
            if let Some(inside) = self.rest.strip_prefix(b"(") {
                let (comment, rest) = split_comment(inside);
                self.rest = rest;
                return Some(Piece::Comment(comment));
            }
            let end = self
                .rest
                .iter()
                .position(|&byte| byte == b'(' || is_separator(byte))
                .unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at(end);
            self.rest = rest;
            if let Some(product) = product(word) {
                return Some(Piece::Product(product));
            }
        }
    }
}

/// By the grammar, only white space separates words outside of comments. But clients also send `;`, `,` and a stray
/// `)`, as in `DuckDuckBot/1.0; (+http://duckduckgo.com/duckduckbot.html)`.
fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b';' | b',' | b')')
}

/// Splits after the parenthesis that closes the comment. An unclosed comment extends to the end of the field.
fn split_comment(inside: &[u8]) -> (&[u8], &[u8]) {
    let mut depth = 1_usize;
    let mut quoted = false;
    for (at, &byte) in inside.iter().enumerate() {
        match byte {
            _ if quoted => quoted = false,
            b'\\' => quoted = true,
            b'(' => depth += 1,
            b')' if depth == 1 => return (&inside[..at], &inside[at + 1..]),
            b')' => depth -= 1,
            _ => {}
        }
    }
    (inside, &[])
}

/// The bytes that a token may contain. This is a table for speed, because each byte of each User-Agent is looked up.
const TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
            );
        byte += 1;
    }
    table
};

/// Names of browsers, engines and platforms, which do not identify a bot; in lower case and sorted, for binary search.
/// Text browsers and HTTP libraries are missing, because a bot that uses one may send no other name.
#[rustfmt::skip]
const BROWSERS: &[&str] = &[
    "android", "applewebkit", "avastsecurebrowser", "brave", "ccleaner", "centos", "chrome", "chromeframe",
    "chromium", "compatible", "cordova", "cos", "crios", "cros", "cyberfox", "ddg", "debian", "duckduckgo", "edg",
    "edga", "edge", "edgios", "edgw", "electron", "epiphany", "fedora", "firefox", "floorp", "focus", "fxios",
    "galeon", "gecko", "gnuzilla", "gsa", "headlesschrome", "huaweibrowser", "i", "icecat", "iceweasel", "iemobile",
    "ipad", "iphone", "ipod", "khtml", "konqueror", "librewolf", "like", "linux", "macintosh", "maxthon", "midori",
    "mint", "miuibrowser", "mobile", "mozilla", "msie", "n", "netscape", "openbsd", "opera", "opios", "opr", "oprgx",
    "opt", "opx", "palemoon", "presto", "puffin", "qqbrowser", "qtwebengine", "raspbian", "safari", "samsungbrowser",
    "seamonkey", "silk", "sogoumobilebrowser", "suse", "tizen", "trident", "u", "ubuntu", "ucbrowser", "version",
    "vivaldi", "waterfox", "wayland", "webkit", "whale", "windows", "wow64", "x11", "yabrowser", "yowser",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_browsers_is_sorted_and_in_lower_case() {
        for pair in BROWSERS.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
        }
        for name in BROWSERS {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(is_browser(&name.to_ascii_uppercase()));
        }
    }
}
