//! The strict readings of a path: how servers read it differently from RFC 3986. A strict reading can disallow a page,
//! but never allow one.
//!
//! Some servers resolve `/../` before they decode escapes, others after that or never. Servers also differ in
//! backslashes, repeated slashes, path parameters (`;…`), and escapes such as `%u0061`. Each difference changes how far
//! a `..` goes up, so every kind of server has its own reading.
//!
//! No strict reading is for servers that decode escapes twice.

use std::borrow::Cow;

use super::{escaped_octet, is_unreserved, push_escaped};

/// One strict reading: how a kind of server splits the path, and which escapes are decoded to compare it with rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strict {
    dots: Dots,
    /// Whether the server decodes escapes such as `%u0061`, as Jetty 9 does.
    unicode: bool,
    /// Whether the server takes `\` for a slash, as IIS and other servers on Windows do.
    backslash: bool,
    parameters: Parameters,
    escapes: Escapes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dots {
    AfterDecoding,
    BeforeDecoding(DotSegments),
    /// The server never resolves `/../`, like servers for Python's WSGI.
    Never,
}

/// How a server, or the URL parser in it, resolves `/./` and `/../` before it decodes escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DotSegments {
    /// Whether `//host/a` becomes `/a`, as in Node.js' `new URL` and PHP's `parse_url`.
    drops_authority: bool,
    /// Whether `\` is a slash, as in the URL standard. The escape `%5C` never is.
    backslash: bool,
    /// Whether consecutive slashes are merged, as in Apache.
    merges: bool,
}

/// What a server does with path parameters: a `;` and the text after it, up to the next slash (RFC 3986 §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameters {
    /// It keeps them in the path, as nginx, Apache, Python and most others do.
    Keep,
    /// It drops them before it resolves `/./` and `/../`, as Tomcat and Jetty do. An escaped `;` (`%3B`) is kept.
    Drop,
    /// It drops them after another server, such as nginx in front of Tomcat, has decoded and resolved the path.
    DropBehindProxy,
}

/// Which escapes are decoded for the comparison with rules, which can be written with or without escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// Only escapes of characters that need none are decoded, such as `%7E` for `~` (RFC 3986 §6.2.2.2).
    Unreserved,
    /// Escapes of reserved characters such as `:` are decoded too, for rules like `/wiki/User:`.
    All,
    /// No escapes are decoded, for rules like `/%7Euser`.
    None,
}

/// What a path contains that different servers read differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PathFeatures {
    /// The path contains `//` or `%2F`.
    slash: bool,
    /// The path contains `\` or `%5C`.
    backslash: bool,
    semicolon: bool,
    /// The path contains `%3B`, an escaped `;`.
    escaped_semicolon: bool,
    /// The path contains an escape of a reserved character other than `/`, such as `%3A` for `:`. Or the query contains
    /// an escape for which [`is_decoded_in_query`] returns true.
    reserved: bool,
    /// The target contains an escape of a character that needs none, such as `%7E` for `~`.
    unreserved: bool,
    /// The path contains two dots in a row, escaped or not.
    dots: bool,
    /// The path begins with two slashes or backslashes.
    authority: bool,
    unicode: bool,
}

#[derive(Clone, Copy)]
struct Octet {
    value: u8,
    escaped: bool,
}

// === impl PathFeatures ===

impl PathFeatures {
    /// Returns `None` if the strict readings of `target` add nothing to the other readings.
    pub(super) fn of(target: &[u8]) -> Option<Self> {
        let (path, _) = split(target);
        let is_suspect = memchr::memchr3(b'%', b'\\', b';', target).is_some();
        let mut features = Self {
            slash: memchr::memmem::find(path, b"//").is_some(),
            authority: matches!(path.get(1), Some(b'/' | b'\\')),
            ..Self::default()
        };
        if !is_suspect && !features.slash {
            return None;
        }
        let decoded = decode_unicode(target);
        features.unicode = decoded.is_some();
        let (path, query) = split(decoded.as_deref().unwrap_or(target));
        let mut after_dot = false;
        for Octet { value, escaped } in octets(path) {
            match value {
                b'/' => features.slash |= escaped,
                b'\\' => features.backslash = true,
                b';' if escaped => features.escaped_semicolon = true,
                b';' => features.semicolon = true,
                b'.' => features.dots |= after_dot,
                _ => {}
            }
            after_dot = value == b'.';
            features.reserved |= escaped && value != b'/' && is_decoded_by_all(value);
            features.unreserved |= escaped && is_unreserved(value);
        }
        for Octet { value, .. } in octets(query).filter(|octet| octet.escaped) {
            features.reserved |= is_decoded_in_query(value);
            features.unreserved |= is_unreserved(value);
        }
        let is_divided = features.slash || features.backslash || features.semicolon;
        let keeps_dots = features.dots && features.unreserved;
        (is_divided || features.reserved || keeps_dots || features.unicode).then_some(features)
    }

    /// Returns the strict readings that can differ from the other readings and from each other.
    pub(super) fn readings(self) -> impl Iterator<Item = Strict> {
        let parameters = [Parameters::Keep, Parameters::Drop, Parameters::DropBehindProxy];
        let escapes = [Escapes::Unreserved, Escapes::All, Escapes::None];
        let before = DotSegments::all().map(|before| (Dots::BeforeDecoding(before), false));
        let other = [Dots::AfterDecoding, Dots::Never].map(|dots| [(dots, false), (dots, true)]);
        let servers = other.into_iter().flatten().chain(before);
        let servers = servers.filter(move |(dots, unicode)| self.needs(*dots) && (self.unicode || !unicode));
        servers.flat_map(move |(dots, unicode)| {
            [false, true].into_iter().flat_map(move |backslash| {
                parameters.into_iter().flat_map(move |parameters| {
                    escapes
                        .map(|escapes| Strict {
                            dots,
                            unicode,
                            backslash,
                            parameters,
                            escapes,
                        })
                        .into_iter()
                        .filter(move |strict| self.makes_a_difference(*strict))
                })
            })
        })
    }

    /// Returns whether a reading with `dots` can differ from that with [`Dots::AfterDecoding`]. Also true for
    /// `AfterDecoding` itself.
    fn needs(self, dots: Dots) -> bool {
        let Dots::BeforeDecoding(before) = dots else {
            return dots == Dots::AfterDecoding || self.dots;
        };
        let divides_otherwise = self.dots || before.drops_authority;
        divides_otherwise && (self.authority || !before.drops_authority) && (self.backslash || !before.backslash)
    }

    fn makes_a_difference(self, strict: Strict) -> bool {
        let divides_otherwise = match strict.parameters {
            Parameters::Keep => self.slash || strict.backslash || strict.unicode || strict.dots != Dots::AfterDecoding,
            // Servers that drop parameters resolve `/../`, so no server reads like this.
            _ if strict.dots == Dots::Never => false,
            Parameters::Drop => self.semicolon,
            Parameters::DropBehindProxy => self.escaped_semicolon || self.semicolon && (self.dots || self.slash),
        };
        let by_escapes = match strict.escapes {
            Escapes::Unreserved => divides_otherwise,
            Escapes::All => self.reserved && (divides_otherwise || strict.parameters == Parameters::Keep),
            Escapes::None => self.unreserved && divides_otherwise,
        };
        by_escapes && (self.backslash || !strict.backslash)
    }
}

// === impl Strict ===

impl Strict {
    /// Returns `target`, a path and query, as this kind of server reads it.
    pub(super) fn read(self, target: &[u8]) -> Vec<u8> {
        let decoded = self.unicode.then(|| decode_unicode(target)).flatten();
        let (path, query) = split(decoded.as_deref().unwrap_or(target));
        let is_parameter = |octet: Octet| octet.value == b';' && !octet.escaped;
        let path = &*match self.dots {
            Dots::BeforeDecoding(before) => Cow::Owned(before.read(path)),
            Dots::AfterDecoding | Dots::Never => Cow::Borrowed(path),
        };
        let mut read = match self.parameters {
            Parameters::Keep => self.resolve(path, |_| false),
            Parameters::Drop => self.resolve(path, is_parameter),
            Parameters::DropBehindProxy => {
                let passed_on = self.resolve(path, |_| false);
                self.resolve(&passed_on, |octet| octet.value == b';')
            }
        };
        for octet in octets(query) {
            self.push(&mut read, octet, is_decoded_in_query);
        }
        read
    }

    /// Splits `path` into segments, and resolves `.` and `..` if the server does. Drops the rest of a segment once
    /// `ends_segment` returns true.
    fn resolve(self, path: &[u8], ends_segment: impl Fn(Octet) -> bool) -> Vec<u8> {
        let is_slash = |octet: Octet| octet.value == b'/' || self.backslash && octet.value == b'\\';
        let resolves = self.dots != Dots::Never;
        divide(path, true, resolves, is_slash, ends_segment, |out, octet| {
            self.push(out, octet, is_decoded_by_all);
        })
    }

    /// Adds an octet to a reading. `is_decoded` returns whether the escape of a reserved character can be decoded.
    fn push(self, out: &mut Vec<u8>, Octet { value, escaped }: Octet, is_decoded: fn(u8) -> bool) {
        let is_plain = match self.escapes {
            _ if !escaped => value.is_ascii_graphic(),
            Escapes::Unreserved => is_unreserved(value),
            Escapes::All => is_unreserved(value) || is_decoded(value),
            Escapes::None => false,
        };
        match is_plain {
            true => out.push(value),
            false => push_escaped(out, value),
        }
    }
}

// === impl DotSegments ===

impl DotSegments {
    fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self {
            drops_authority: bits & 4 != 0,
            backslash: bits & 2 != 0,
            merges: bits & 1 != 0,
        })
    }

    /// Resolves `/./` and `/../`. Keeps the escapes, which are decoded later.
    fn read(self, path: &[u8]) -> Vec<u8> {
        let is_slash = |octet: &u8| *octet == b'/' || self.backslash && *octet == b'\\';
        let mut path = path;
        if self.drops_authority {
            let authority = path.iter().position(|octet| !is_slash(octet)).unwrap_or(path.len());
            if authority > 1 {
                let end = path[authority..].iter().position(is_slash);
                path = end.map_or(b"/", |end| &path[authority + end..]);
            }
        }
        let push = |out: &mut Vec<u8>, octet: Octet| match octet.escaped {
            true => push_escaped(out, octet.value),
            false => out.push(octet.value),
        };
        let is_slash = |octet: Octet| !octet.escaped && is_slash(&octet.value);
        divide(path, self.merges, true, is_slash, |_| false, push)
    }
}

/// Splits `path` into segments, and joins them again. With `merges`, several slashes in a row count as one; with
/// `resolves`, `.` and `..` are resolved.
fn divide(
    path: &[u8],
    merges: bool,
    resolves: bool,
    is_slash: impl Fn(Octet) -> bool,
    ends_segment: impl Fn(Octet) -> bool,
    push: impl Fn(&mut Vec<u8>, Octet),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + 1);
    out.push(b'/');
    let mut segment = Segment::after(0);
    for octet in octets(path).skip(1) {
        // Parameters are dropped before escapes are decoded, so an escaped slash does not end them.
        if is_slash(octet) && !(segment.is_cut && octet.escaped) {
            segment = segment.end(&mut out, true, merges, resolves);
        } else if !segment.is_cut {
            if ends_segment(octet) {
                segment.is_cut = true;
            } else {
                segment.dots = segment.dots.filter(|_| octet.value == b'.').map(|dots| dots + 1);
                push(&mut out, octet);
            }
        }
    }
    segment.end(&mut out, false, merges, resolves);
    out
}

/// The segment that [`divide`] is reading. Its characters so far are at the end of the output.
struct Segment {
    /// Index of the slash before the segment, in the output.
    slash: usize,
    /// How many dots the segment has. `None` if it has other characters too.
    dots: Option<usize>,
    /// Whether the segment's parameters, which are dropped, have begun.
    is_cut: bool,
}

// === impl Segment ===

impl Segment {
    fn after(slash: usize) -> Self {
        Self {
            slash,
            dots: Some(0),
            is_cut: false,
        }
    }

    fn end(self, out: &mut Vec<u8>, before_slash: bool, merges: bool, resolves: bool) -> Self {
        let mut slash = self.slash;
        match self.dots {
            Some(0) if merges => {}
            Some(1) if resolves => out.truncate(slash + 1),
            Some(2) if resolves => {
                slash = memchr::memrchr(b'/', &out[..slash]).unwrap_or(0);
                out.truncate(slash + 1);
            }
            _ if before_slash => {
                slash = out.len();
                out.push(b'/');
            }
            _ => {}
        }
        Self::after(slash)
    }
}

/// Splits `target` into its path and its query, which begins with `?`.
fn split(target: &[u8]) -> (&[u8], &[u8]) {
    target.split_at(memchr::memchr(b'?', target).unwrap_or(target.len()))
}

fn octets(text: &[u8]) -> impl Iterator<Item = Octet> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (first, tail) = rest.split_first()?;
        rest = tail;
        let escaped = escaped_octet(rest).filter(|_| *first == b'%');
        if escaped.is_some() {
            rest = &rest[2..];
        }
        Some(Octet {
            value: escaped.unwrap_or(*first),
            escaped: escaped.is_some(),
        })
    })
}

/// Returns whether a reserved character means the same with and without its escape. Unescaped, `?`, `#` and `%` would
/// begin the query, the fragment or another escape.
fn is_decoded_by_all(octet: u8) -> bool {
    octet.is_ascii_graphic() && !is_unreserved(octet) && !matches!(octet, b'%' | b'?' | b'#')
}

/// Like [`is_decoded_by_all`], for the query. Returns false for separators of form fields, and for `/`, so that rules
/// about paths do not apply to a URL in a query.
fn is_decoded_in_query(octet: u8) -> bool {
    is_decoded_by_all(octet) && !matches!(octet, b'&' | b'=' | b'+' | b';' | b'/')
}

/// Replaces escapes such as `%u0061` by those of UTF-8, here `%61`. Returns `None` if `target` has no such escapes.
fn decode_unicode(target: &[u8]) -> Option<Vec<u8>> {
    if !memchr::memchr_iter(b'%', target).any(|at| unicode_escape(&target[at..]).is_some()) {
        return None;
    }
    let mut decoded = Vec::with_capacity(target.len());
    let mut rest = target;
    while let Some((first, tail)) = rest.split_first() {
        match unicode_escape(rest) {
            Some(character) => {
                for octet in character.encode_utf8(&mut [0; 4]).bytes() {
                    push_escaped(&mut decoded, octet);
                }
                rest = &rest["%u0061".len()..];
            }
            None => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    Some(decoded)
}

fn unicode_escape(text: &[u8]) -> Option<char> {
    let [b'%', b'u' | b'U', digits @ ..] = text else {
        return None;
    };
    let octet = |digits: &[u8]| escaped_octet(digits).map(u32::from);
    char::from_u32(octet(digits)? << 8 | octet(digits.get(2..)?)?)
}

#[cfg(test)]
mod tests;
