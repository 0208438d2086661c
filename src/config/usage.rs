//! `[usage]`: what happens if a site forbids the purposes of a bot.

use super::table::Table;
use crate::usage::{Unknown, UsagePolicy, VocabularyPolicy};

pub(super) fn read(table: &Table<'_>) -> UsagePolicy {
    let policy = |key| table.choice_or(key, VocabularyPolicy::default());
    UsagePolicy {
        content_signal: policy("content-signal"),
        content_usage: policy("content-usage"),
        tdmrep: policy("tdmrep"),
        x_robots_tag: policy("x-robots-tag"),
        unknown: table.choice_or("unknown", Unknown::default()),
    }
}
