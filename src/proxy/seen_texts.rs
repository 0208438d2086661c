//! Remembers which robots.txt texts of each site this process has seen, to recognise new ones.

use std::{fmt, hash::BuildHasher as _};

use quick_cache::{DefaultHashBuilder, UnitWeighter, sync::Cache};

use crate::{copy::Sha256, origin::Origin};

/// Memory is limited, so an old text can count as new again.
pub(super) struct SeenTexts {
    /// Each key is one hash over an origin and the digest of one of its texts.
    seen: Cache<u64, ()>,
    hasher: DefaultHashBuilder,
}

// === impl SeenTexts ===

impl SeenTexts {
    /// Records the digests of the robots.txt before and after a fetch. Returns whether the text has changed to one that
    /// was not recorded for this origin.
    pub(super) fn note(&self, origin: &Origin, before: Option<Sha256>, after: Option<Sha256>) -> bool {
        let key = |digest| self.hasher.hash_one((origin, digest));
        if let Some(before) = before {
            self.seen.insert(key(before), ());
        }
        let Some(after) = after.filter(|_| before != after) else {
            return false;
        };
        let is_new = self.seen.get(&key(after)).is_none();
        self.seen.insert(key(after), ());
        is_new
    }
}

impl Default for SeenTexts {
    fn default() -> Self {
        Self {
            seen: Cache::with_weighter(EXPECTED, MAX, UnitWeighter),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl fmt::Debug for SeenTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeenTexts").finish_non_exhaustive()
    }
}

const EXPECTED: usize = 1000;
/// Maximum number of texts. Each takes about 30 bytes.
const MAX: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_new_once_for_each_origin() {
        let seen = SeenTexts::default();
        let [a, b]: [Origin; 2] = ["http://a.example", "http://b.example"].map(|origin| origin.parse().unwrap());
        let [one, two, three] = ["1", "2", "3"].map(|text| Some(Sha256::of(text.as_bytes())));
        for (origin, before, after, is_new) in [
            (&a, None, one, true),
            (&a, one, one, false),
            (&a, one, None, false),
            (&a, None, one, false),
            (&a, one, two, true),
            (&a, two, one, false),
            (&b, None, one, true),
            // After a restart, the text before the first fetch is from disk, and was not recorded.
            (&b, three, two, true),
            (&b, two, three, false),
        ] {
            assert_eq!(seen.note(origin, before, after), is_new, "{before:?} {after:?}");
        }
    }
}
