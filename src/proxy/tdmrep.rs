//! The `tdmrep.json` files of sites, which say whether the content may be used for text and data mining. This module
//! says how much memory the files get, and makes the log lines about fetches of them. The files have a
//! [`Store`](crate::store::Store) of their own, which shares the file on disk with the store of the robots.txt files.
//! robotgate needs them for bots with the purpose of text and data mining, and for operators who ask about that
//! purpose.
//!
//! [`crate::decision`] says which decisions need a site's `tdmrep.json`.

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
    /// Bytes for the robots.txt files.
    pub(super) robots: u64,
    /// Bytes for the `tdmrep.json` files.
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

    /// Returns whether bots need `tdmrep.json` files. If not, robotgate needs them only to answer questions of
    /// operators.
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

    /// Returns an audit log record about a fetched `tdmrep.json`, without the fields about the response. `states` are
    /// what robotgate knew about the file before and after the fetch.
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

/// Returns, for the log, what robotgate knows of an origin's `tdmrep.json`: `file` or `none`, as the site last
/// answered, or `unreachable` if the site has never answered. Returns `None` if no fetch has ended yet.
fn holds(state: &OriginState) -> Option<&'static str> {
    match (state.current(), state.answered()) {
        (Some(_), _) => Some("file"),
        (None, Some(_)) => Some("none"),
        (None, None) => state.is_known().then_some("unreachable"),
    }
}

/// Minimum memory for the `tdmrep.json` files, in bytes, but never more than half of `cache.max-bytes`. Several files
/// of the maximum size have to fit. Otherwise, robotgate would not keep a file of this size, and would fetch it for
/// each request.
const MIN_BYTES: u64 = 8 * 1024 * 1024;
/// Memory for the `tdmrep.json` files if only questions of operators need them, in bytes. It is so little that it comes
/// on top of `cache.max-bytes`. If bots need the files, the memory for them is always more than this, so
/// [`MemoryShares::is_for_bots`] can tell the two cases apart.
const FOR_QUESTIONS: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bot_that_mines_needs_much_memory_for_the_files() {
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
