//! Records that stand behind another in the same line, and are taken for a part of its value: line
//! ends get lost where files are pasted.
//!
//! Never knows what the value is for.

use memchr::memchr_iter;

use super::{super::record::is_space, Findings, Lint, quote::quoted};

/// Says so of the value of line `number`.
pub(super) fn check(number: u32, value: &[u8], findings: &mut Findings) {
    if let Some(lost) = find(value) {
        let message = format!(
            "A line holds one record, so {} is lost, a part of the value before it: give it a line of its own.",
            quoted(lost)
        );
        findings.add(number, Lint::SwallowedRecord, message);
    }
}

/// The first record within `value`, to the end of the value.
pub(super) fn find(value: &[u8]) -> Option<&[u8]> {
    memchr_iter(b':', value).find_map(|colon| {
        // White space is looked at once, as it ends at the colon before.
        let key_end = value[..colon].iter().rposition(|b| !is_space(*b))? + 1;
        let begins_at = |key: &&[u8]| {
            let start = key_end.checked_sub(key.len())?;
            let is_word = start.checked_sub(1).is_none_or(|before| is_space(value[before]));
            (is_word && value[start..key_end].eq_ignore_ascii_case(key)).then_some(start)
        };
        let start = KEYS.iter().find_map(begins_at)?;
        Some(&value[start..])
    })
}

const KEYS: &[&[u8]] = &[b"user-agent", b"allow", b"disallow", b"sitemap"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_word_with_a_colon() {
        for (value, expected) in [
            ("Googlebot Disallow: /", Some("Disallow: /")),
            ("*\tALLOW : /a Disallow: /", Some("ALLOW : /a Disallow: /")),
            ("Disallow: /", Some("Disallow: /")),
            ("/a user-agent: *", Some("user-agent: *")),
            ("/disallow:", None),
            ("a, allow", None),
            ("Disallow /", None),
            (":", None),
            ("  :", None),
            ("https://a.example/", None),
        ] {
            assert_eq!(find(value.as_bytes()), expected.map(str::as_bytes), "{value}");
        }
    }
}
