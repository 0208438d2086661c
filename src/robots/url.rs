//! Extracts from a URL the part that is compared with the patterns of rules: the path and the query. It neither
//! validates nor normalizes the URL.

use std::borrow::Cow;

use memchr::{memchr, memchr3, memmem};

/// Returns the path and the query of `url`, as Google's parser does, even if `url` is not a valid URL.
///
/// The result always begins with `/`. Text after two slashes at the start is a host, and a NUL ends the path.
///
/// ```
/// use robotgate::robots::path_of_url;
///
/// assert_eq!(&*path_of_url(b"https://example.com/a;b?c=d#e"), b"/a;b?c=d");
/// assert_eq!(&*path_of_url(b"example.com?q"), b"/?q");
/// assert_eq!(&*path_of_url(b"https://example.com"), b"/");
/// ```
#[must_use]
pub fn path_of_url(url: &[u8]) -> Cow<'_, [u8]> {
    let rest = url.strip_prefix(b"//").unwrap_or(url);
    let after_scheme = after_scheme(rest);
    let Some(start) = find_path(&rest[after_scheme..]).map(|at| at + after_scheme) else {
        return Cow::Borrowed(b"/");
    };
    let end = memchr(b'#', rest).unwrap_or(rest.len());
    if end < start {
        return Cow::Borrowed(b"/");
    }
    let path = &rest[start..end];
    let path = memchr(0, path).map_or(path, |nul| &path[..nul]);
    if path.starts_with(b"/") {
        return Cow::Borrowed(path);
    }
    let mut slashed = Vec::with_capacity(path.len() + 1);
    slashed.push(b'/');
    slashed.extend_from_slice(path);
    Cow::Owned(slashed)
}

/// Returns the offset at which the host starts: after a `://` that comes before the path, otherwise 0.
fn after_scheme(url: &[u8]) -> usize {
    match memmem::find(url, b"://") {
        Some(at) if find_path(&url[..at]).is_none() => at + 3,
        _ => 0,
    }
}

fn find_path(url: &[u8]) -> Option<usize> {
    memchr3(b'/', b'?', b';', url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> String {
        String::from_utf8(path_of_url(url.as_bytes()).into_owned()).expect("the tests are text")
    }

    #[test]
    fn the_path_of_a_url_is_read_as_google_reads_it() {
        for (url, expected) in [
            ("", "/"),
            ("http://www.example.com", "/"),
            ("http://www.example.com/", "/"),
            ("http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
            ("http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
            ("example.com", "/"),
            ("example.com/a/b", "/a/b"),
            ("example.com?a", "/?a"),
            ("example.com/a;b#c", "/a;b"),
            ("//a/b/c", "/b/c"),
            ("/a//b", "/a//b"),
            ("http:/x://y/z", "/x://y/z"),
            ("x#y://z/a", "/"),
            ("http://e#/foo", "/"),
            ("http://e;x", "/;x"),
            ("http://e/a\0b", "/a"),
        ] {
            assert_eq!(path(url), expected, "{url:?}");
        }
    }
}
