//! A cache of parsed robots.txt files, which is cleared when it is full. Its key is the JSON string that contains the
//! robots.txt, so a robots.txt in the cache is neither decoded nor parsed again.

use std::{collections::HashMap, rc::Rc};

use crate::robots::{Profile, RobotsTxt};

pub(super) struct Cache {
    profile: Profile,
    files: HashMap<Rc<str>, Rc<RobotsTxt>>,
    /// The entry that was used last. If the next key is the same, no hash is computed.
    last: Option<(Rc<str>, Rc<RobotsTxt>)>,
    bytes: usize,
}

// === impl Cache ===

impl Cache {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            files: HashMap::new(),
            last: None,
            bytes: 0,
        }
    }

    /// If the key `json` is not in the cache, parses the text that `body` returns.
    pub(super) fn file<B: AsRef<[u8]>, E>(
        &mut self,
        json: &str,
        body: impl FnOnce() -> Result<B, E>,
    ) -> Result<Rc<RobotsTxt>, E> {
        if let Some((key, file)) = &self.last
            && **key == *json
        {
            return Ok(Rc::clone(file));
        }
        if let Some((key, file)) = self.files.get_key_value(json) {
            self.last = Some((Rc::clone(key), Rc::clone(file)));
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(RobotsTxt::parse_as(self.profile, body()?.as_ref()));
        self.keep(json, &file);
        Ok(file)
    }

    fn keep(&mut self, json: &str, file: &Rc<RobotsTxt>) {
        let bytes = OVERHEAD + json.len() + file.weight();
        if bytes > BUDGET {
            return;
        }
        if self.bytes + bytes > BUDGET {
            *self = Self::new(self.profile);
        }
        let key: Rc<str> = json.into();
        self.bytes += bytes;
        self.last = Some((Rc::clone(&key), Rc::clone(file)));
        self.files.insert(key, Rc::clone(file));
    }
}

/// Maximum size of all files and their keys together, in bytes.
const BUDGET: usize = 32 << 20;

/// Approximate size of a cache entry without its key and its file, in bytes.
const OVERHEAD: usize = 128;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_file_is_parsed_once_and_the_cache_stays_within_its_budget() {
        let mut cache = Cache::new(Profile::Google);
        let mut parsed = 0;
        let rules = "Disallow: /x\n".repeat(40_000);
        for round in 0..60 {
            let json = format!("{}{rules}", round / 2);
            let file = cache.file(&json, || {
                parsed += 1;
                Ok::<_, Infallible>(format!("User-agent: *\n{rules}"))
            });
            assert!(file.is_ok());
            assert!(cache.bytes <= BUDGET);
        }
        assert_eq!(parsed, 30);
    }
}
