//! The `tdmrep.json` files of sites, which say whether content may be used for text and data mining: how much memory
//! they get, and the log lines about fetching them. They have a [`Store`](crate::store::Store) of their own, but are on
//! disk in the same file as the robots.txt copies.

use std::time::SystemTime;

use super::fetching::{LoggedFetcher, error_of};
use crate::{
    audit::{FetchFields, Line, TdmrepRecord},
    config::Config,
    copy::{OriginState, Policy},
    fetch::{FinishedFetch, SharedCopy},
    ratelimited::ratelimited,
    text::Timestamp,
    usage::{Purpose, VocabularyPolicy},
};

/// How `cache.max-bytes` is divided between the robots.txt files and the `tdmrep.json` files.
pub(super) struct MemoryShares {
    pub(super) robots: u64,
    pub(super) tdmrep: u64,
}

// === impl MemoryShares ===

impl MemoryShares {
    pub(super) fn of(config: &Config) -> Self {
        let all = config.cache.max_bytes;
        let is_read = config.usage.tdmrep != VocabularyPolicy::Off
            && config.bots.iter().any(|bot| bot.purposes.contains(Purpose::Tdm));
        match is_read {
            true => {
                let tdmrep = (all / 8).max(MIN_BYTES.min(all / 2));
                let robots = all - tdmrep;
                Self { robots, tdmrep }
            }
            false => Self {
                robots: all,
                tdmrep: FOR_QUESTIONS,
            },
        }
    }

    /// Returns whether bots need `tdmrep.json` files. If not, only the API needs them, for questions that name the
    /// purpose `tdm`.
    pub(super) fn is_for_bots(&self) -> bool {
        self.tdmrep != FOR_QUESTIONS
    }
}

// === impl LoggedFetcher ===

impl LoggedFetcher {
    pub(super) fn tdmrep_line(&self, finished: &FinishedFetch<'_>) -> Line {
        let FinishedFetch {
            document,
            origin,
            traced,
            before,
            after,
            at,
            policy,
        } = *finished;
        let is_too_long = traced.bytes().is_some_and(|bytes| bytes > document.max_bytes);
        let error = error_of(traced, after).or_else(|| is_too_long.then(|| "it is longer than 1 MiB".to_owned()));
        if let Some(error) = &error {
            ratelimited!(info, %origin, %error, "the tdmrep.json could not be fetched");
        }
        TdmrepRecord {
            redirects: self.fetch_fields(traced, error),
            ..self.tdmrep_record(&origin.to_string(), &document.name(origin), [before, after], at, policy)
        }
        .line()
    }

    pub(super) fn tdmrep_shared_line(&self, shared: &SharedCopy<'_>) -> Line {
        let SharedCopy {
            document,
            origin,
            before,
            after,
            at,
            policy,
        } = *shared;
        TdmrepRecord {
            source: "fleet",
            fetched: after.last_fetch().map(Timestamp),
            ..self.tdmrep_record(&origin.to_string(), &document.name(origin), [before, after], at, policy)
        }
        .line()
    }

    /// Returns a record without the fields about the response.
    fn tdmrep_record<'a>(
        &'a self,
        origin: &'a str,
        url: &'a str,
        states: [&OriginState; 2],
        at: SystemTime,
        policy: &Policy,
    ) -> TdmrepRecord<'a> {
        let [before, after] = states;
        TdmrepRecord {
            time: Timestamp(at),
            origin,
            tdmrep_url: url,
            source: "site",
            fetched: Some(Timestamp(at)),
            redirects: FetchFields::default(),
            held: holds(before),
            holds: holds(after),
            held_sha256: before.current().map(|copy| copy.sha256),
            tdmrep_sha256: after.current().map(|copy| copy.sha256),
            entries: after.current().and_then(|copy| Some(copy.tdmrep.as_ref()?.len())),
            tdmrep_expires: after.source_fetch(at, policy).expires.map(Timestamp),
            failing_since: after.failing_since().map(Timestamp),
            config: self.config,
            instance: self.instance.as_str(),
        }
    }
}

/// Returns what the log calls the state of a `tdmrep.json`. It is `unreachable` if every fetch has failed (a 503 counts
/// as a failure), and `None` if no fetch has ended yet.
fn holds(state: &OriginState) -> Option<&'static str> {
    match (state.current(), state.answered()) {
        (Some(_), _) => Some("file"),
        (None, Some(_)) => Some("none"),
        (None, None) => state.is_known().then_some("unreachable"),
    }
}

/// Minimum memory for the `tdmrep.json` files in bytes, unless half of `cache.max-bytes` is less. Several files of the
/// maximum size have to fit, because a file that does not fit is fetched for each request.
const MIN_BYTES: u64 = 8 * 1024 * 1024;
/// Memory for the files in bytes, in addition to `cache.max-bytes`, if only the API needs them. `is_for_bots` relies on
/// this being less than what the files get if bots need them.
const FOR_QUESTIONS: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tdmrep_json_files_get_much_memory_only_if_a_bot_mines() {
        let mines = "[[bot]]\nname = 'm'\nuser-agents = ['M']\npurposes = ['tdm']\n";
        let off = format!("usage.tdmrep = 'off'\n{mines}");
        let little = format!("cache.max-bytes = '1MiB'\n{mines}");
        let some = format!("cache.max-bytes = '32MiB'\n{mines}");
        for (text, robots, tdmrep) in [
            ("", 256 << 20, FOR_QUESTIONS),
            (&off, 256 << 20, FOR_QUESTIONS),
            (&*mines.replace("tdm", "search"), 256 << 20, FOR_QUESTIONS),
            (mines, 224 << 20, 32 << 20),
            (&some, 24 << 20, 8 << 20),
            (&little, 512 << 10, 512 << 10),
        ] {
            let config = Config::parse("robotgate.toml", text, std::path::Path::new("/")).expect("valid");
            let shares = MemoryShares::of(&config);
            assert_eq!((shares.robots, shares.tdmrep), (robots, tdmrep), "{text}");
        }
    }
}
