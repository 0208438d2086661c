//! Matches the part of a pattern from its first `*` on (RFC 9309 §2.2.3), in linear time and without allocating. It
//! never backtracks: the leftmost match of the text between two `*` is always right.

use memchr::{memchr, memmem};

/// Returns whether `tail`, which begins with a `*`, matches the start of `path`, or all of `path` if `to_end` is set.
pub(super) fn matches(path: &[u8], tail: &[u8], to_end: bool) -> bool {
    let (mut path, mut tail) = (path, &tail[1..]);
    loop {
        // Match single bytes between `*` quickly, because hostile patterns often have many of them.
        while let ([byte, b'*', further @ ..], [first, rest @ ..]) = (tail, path)
            && byte == first
            && *byte != b'*'
        {
            (path, tail) = (rest, further);
        }
        let Some(star) = memchr(b'*', tail) else {
            break;
        };
        let Some(end) = find_end(path, &tail[..star]) else {
            return false;
        };
        path = &path[end..];
        tail = &tail[star + 1..];
    }
    if to_end {
        path.ends_with(tail)
    } else {
        find_end(path, tail).is_some()
    }
}

/// Returns where the leftmost `piece` in `path` ends.
fn find_end(path: &[u8], piece: &[u8]) -> Option<usize> {
    match piece {
        [] => Some(0),
        [byte] => memchr(*byte, path).map(|at| at + 1),
        _ if path.len() <= SHORT => {
            let mut from = 0;
            loop {
                let at = from + memchr(piece[0], &path[from..])?;
                if path[at..].starts_with(piece) {
                    return Some(at + piece.len());
                }
                from = at + 1;
            }
        }
        _ => memmem::find(path, piece).map(|at| at + piece.len()),
    }
}

/// In a path of up to this many bytes, trying each position takes less time than preparing `memmem`.
const SHORT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_match_in_order_and_never_overlap() {
        for (tail, to_end, path, expected) in [
            ("*b", false, "ab", true),
            ("*b", false, "a", false),
            ("**b", false, "b", true),
            ("*ab*ba", false, "aba", false),
            ("*ab*ba", false, "abba", true),
            ("*a*b", false, "ba", false),
            ("*.php", true, "x.php", true),
            ("*.php", true, "x.php5", false),
            ("*.php*.php", true, "x.php", false),
            ("*a", true, "aa", true),
            ("*a*b*c", false, "abc", true),
            ("*a*b*c", false, "axbc", true),
            ("*a*b*c", false, "ab", false),
            ("*a*a*", false, "a", false),
            ("***a", false, "*", false),
        ] {
            assert_eq!(
                matches(path.as_bytes(), tail.as_bytes(), to_end),
                expected,
                "{tail} {path}"
            );
        }
    }

    #[test]
    fn a_long_path_is_matched_like_a_short_one() {
        let path = [vec![b'a'; 500], b"needle".to_vec()].concat();
        assert!(matches(&path, b"*aaa*needle", true));
        assert!(!matches(&path, b"*needle*a", false));
    }
}
