//! The strict readings of a path: what servers make of spellings that RFC 3986 keeps apart. They find disallowed pages
//! and allow none.
//!
//! Common servers decode every escape once, take an escaped slash for a slash, merge slashes, and only then resolve dot
//! segments. Others have a URL parser or a front that resolves dot segments first, while an escaped slash is still a
//! character like any other. They differ in backslashes, in merged slashes and in path parameters, too, and each
//! difference changes how far a `..` goes up. So every kind of server has a reading of its own. Each reading takes time
//! in proportion to the path's length.
//!
//! Escapes that servers decode twice or not at all are left alone, and so is everything from the `?` on: a `%3F` in a
//! path begins no query.

use std::borrow::Cow;

use super::{Unreserved, decode, escaped_octet, is_unreserved, push_escaped};

/// One strict reading: how a server divides the path, and how the text of its segments is compared with rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strict {
    /// What comes before the rest of it; `None` where the server decodes first.
    first: Option<First>,
    /// Whether `\` is a slash, as it is to IIS and to others on Windows.
    backslash: bool,
    parameters: Parameters,
    escapes: Escapes,
}

/// How a URL parser, or the server's own front, resolves the dot segments of a path that is not decoded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct First {
    /// Whether `//host/a` is `/a`, as it is to Node.js' `new URL` and PHP's `parse_url`.
    drops_authority: bool,
    /// Whether `\` is a slash, as it is in the URL standard; a `%5C` is none.
    backslash: bool,
    /// Whether several slashes are one, as they are to Apache.
    merges: bool,
}

/// What becomes of `;` and what follows it in a segment (RFC 3986 §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameters {
    /// They are a part of the segment: nginx, Apache, Python, most others.
    Keep,
    /// They are dropped before dot segments are resolved: Tomcat, Jetty. A `%3B` is no `;` to them.
    Drop,
    /// The same behind a proxy that keeps them, and that decodes and resolves the path on its way: nginx before Tomcat.
    DropBehindProxy,
}

/// Which escapes of a segment's text are decoded. All servers decode all of them, but a rule can be written with or
/// without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// Those of unreserved octets, as in RFC 3986 §6.2.2.2.
    Unreserved,
    /// Those of reserved octets too, for rules like `/wiki/User:`.
    All,
    /// None, for rules like `/%7Euser`.
    None,
}

/// What a path has that only a strict reading understands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Odd {
    /// `//` or `%2F`.
    slash: bool,
    /// `\` or `%5C`.
    backslash: bool,
    semicolon: bool,
    /// `%3B`.
    escaped_semicolon: bool,
    /// An escape of a reserved octet other than `/`.
    reserved: bool,
    /// An escape of an unreserved octet, in the query too.
    unreserved: bool,
    /// Two dots in a row, escaped or not.
    dots: bool,
    /// Two slashes or backslashes in front.
    authority: bool,
}

/// An octet of a path, and whether it is escaped there.
#[derive(Clone, Copy)]
struct Octet {
    value: u8,
    escaped: bool,
}

// === impl Odd ===

impl Odd {
    /// What is odd in `target`, a path and query; `None` where every strict reading is one of the usual ones.
    pub(super) fn of(target: &[u8]) -> Option<Self> {
        let (path, query) = split(target);
        let is_suspect = memchr::memchr3(b'%', b'\\', b';', path).is_some();
        let mut odd = Self {
            slash: memchr::memmem::find(path, b"//").is_some(),
            authority: matches!(path.get(1), Some(b'/' | b'\\')),
            ..Self::default()
        };
        if !is_suspect && !odd.slash {
            return None;
        }
        let mut after_dot = false;
        for Octet { value, escaped } in octets(path) {
            match value {
                b'/' => odd.slash |= escaped,
                b'\\' => odd.backslash = true,
                b';' if escaped => odd.escaped_semicolon = true,
                b';' => odd.semicolon = true,
                b'.' => odd.dots |= after_dot,
                _ => {}
            }
            after_dot = value == b'.';
            odd.reserved |= escaped && value != b'/' && is_decoded_by_all(value);
            odd.unreserved |= escaped && is_unreserved(value);
        }
        odd.unreserved |= octets(query).any(|octet| octet.escaped && is_unreserved(octet.value));
        let is_odd = odd.slash || odd.backslash || odd.semicolon || odd.reserved;
        is_odd.then_some(odd)
    }

    /// The strict readings that may differ from the usual ones and from each other.
    pub(super) fn readings(self) -> impl Iterator<Item = Strict> {
        let parameters = [Parameters::Keep, Parameters::Drop, Parameters::DropBehindProxy];
        let escapes = [Escapes::Unreserved, Escapes::All, Escapes::None];
        let firsts = std::iter::once(None).chain(First::all().filter(move |first| self.needs(*first)).map(Some));
        firsts.flat_map(move |first| {
            [false, true].into_iter().flat_map(move |backslash| {
                parameters.into_iter().flat_map(move |parameters| {
                    escapes
                        .map(|escapes| Strict {
                            first,
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

    /// Whether `first` may read the path otherwise than a server that decodes it first.
    fn needs(self, first: First) -> bool {
        let divides_otherwise = self.dots || first.drops_authority;
        divides_otherwise && (self.authority || !first.drops_authority) && (self.backslash || !first.backslash)
    }

    fn makes_a_difference(self, strict: Strict) -> bool {
        let divides_otherwise = match strict.parameters {
            Parameters::Keep => self.slash || strict.backslash || strict.first.is_some(),
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
    /// Reads `target`, a path and query.
    pub(super) fn read(self, target: &[u8]) -> Vec<u8> {
        let (path, query) = split(target);
        let is_parameter = |octet: Octet| octet.value == b';' && !octet.escaped;
        let path = &*self
            .first
            .map_or(Cow::Borrowed(path), |first| Cow::Owned(first.read(path)));
        let mut read = match self.parameters {
            Parameters::Keep => self.resolve(path, |_| false),
            Parameters::Drop => self.resolve(path, is_parameter),
            Parameters::DropBehindProxy => {
                let passed_on = self.resolve(path, |_| false);
                self.resolve(&passed_on, |octet| octet.value == b';')
            }
        };
        let unreserved = match self.escapes {
            Escapes::None => Unreserved::Keep,
            Escapes::Unreserved | Escapes::All => Unreserved::Decode,
        };
        read.extend_from_slice(&decode(query, unreserved));
        read
    }

    /// Divides `path` into segments and puts together those that are left. A segment ends for good where
    /// `ends_segment`.
    fn resolve(self, path: &[u8], ends_segment: impl Fn(Octet) -> bool) -> Vec<u8> {
        let is_slash = |octet: Octet| octet.value == b'/' || self.backslash && octet.value == b'\\';
        divide(path, true, is_slash, ends_segment, |out, octet| self.push(out, octet))
    }

    fn push(self, out: &mut Vec<u8>, Octet { value, escaped }: Octet) {
        let is_plain = match self.escapes {
            _ if !escaped => value.is_ascii_graphic(),
            Escapes::Unreserved => is_unreserved(value),
            Escapes::All => is_unreserved(value) || is_decoded_by_all(value),
            Escapes::None => false,
        };
        match is_plain {
            true => out.push(value),
            false => push_escaped(out, value),
        }
    }
}

// === impl First ===

impl First {
    fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self {
            drops_authority: bits & 4 != 0,
            backslash: bits & 2 != 0,
            merges: bits & 1 != 0,
        })
    }

    /// The path as what comes next gets it, its escapes as they are.
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
        divide(path, self.merges, is_slash, |_| false, push)
    }
}

/// Divides `path`, which begins with a slash, into segments and puts together those that are left. Where `merges`,
/// several slashes are one.
fn divide(
    path: &[u8],
    merges: bool,
    is_slash: impl Fn(Octet) -> bool,
    ends_segment: impl Fn(Octet) -> bool,
    push: impl Fn(&mut Vec<u8>, Octet),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + 1);
    out.push(b'/');
    let mut segment = Segment::after(0);
    for octet in octets(path).skip(1) {
        // Parameters are dropped before escapes are decoded, so an escaped slash is a part of them.
        if is_slash(octet) && !(segment.is_cut && octet.escaped) {
            segment = segment.end(&mut out, true, merges);
        } else if !segment.is_cut {
            if ends_segment(octet) {
                segment.is_cut = true;
            } else {
                segment.dots = segment.dots.filter(|_| octet.value == b'.').map(|dots| dots + 1);
                push(&mut out, octet);
            }
        }
    }
    segment.end(&mut out, false, merges);
    out
}

/// The segment that is being read, which stands at the end of what is put out.
struct Segment {
    /// Where the slash before it stands.
    slash: usize,
    /// How many dots it consists of; `None` where there is anything else in it.
    dots: Option<usize>,
    /// Whether the rest of it is dropped.
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

    /// Ends the segment, before a slash or at the end of the path, and begins the next one.
    fn end(self, out: &mut Vec<u8>, before_slash: bool, merges: bool) -> Self {
        let mut slash = self.slash;
        match self.dots {
            Some(0) if merges => {}
            Some(1) => out.truncate(slash + 1),
            Some(2) => {
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

/// The path and the query, which begins with its `?`.
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

/// Whether an escape of a reserved octet can be decoded and still mean the same: a raw `?` would begin the query, a raw
/// `#` the fragment, and a raw `%` another escape. Spaces and controls never stand raw in a path.
fn is_decoded_by_all(octet: u8) -> bool {
    octet.is_ascii_graphic() && !is_unreserved(octet) && !matches!(octet, b'%' | b'?' | b'#')
}

#[cfg(test)]
mod tests;
