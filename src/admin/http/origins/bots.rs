//! What applies to each configured bot at a site: its pace, and what the site says about its purposes. Fetches nothing.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::{
    admin::http::decide::UsageFields,
    bot::Identity,
    origin::{Origin, Target},
    pace::Cause,
    proxy::{self, Generation},
    text::Timestamp,
};

#[derive(Serialize)]
pub(super) struct BotAtSite {
    bot: String,
    /// Milliseconds between two requests; `None` without `[pace]`, and if the `Crawl-delay` is too long.
    gap_ms: Option<u64>,
    /// What sets the gap: a setting, or the site's `Crawl-delay`.
    gap_cause: Option<&'static str>,
    /// Why the pace forbids every request, if it does.
    pace_error: Option<String>,
    /// When the bot's next request would be forwarded; `None` if `[pace]` does not delay it.
    not_before: Option<Timestamp>,
    pace_cause: Option<&'static str>,
    /// What the site says about the use of its path `/`; `None` if the bot has no purposes, or if something else
    /// decides first, such as a rule.
    usage: Option<UsageFields>,
}

/// Returns the first [`MAX_BOTS`] bots; without `[pace]`, only bots with purposes. Empty if the site is not in memory.
pub(super) async fn at(generation: &Generation, origin: &Origin) -> Vec<BotAtSite> {
    let mut found = Vec::new();
    let config = &generation.config;
    let has_pace = config.pace.is_some();
    let bots = config.bots.iter();
    for bot in bots.filter(|bot| has_pace || !bot.purposes.is_empty()).take(MAX_BOTS) {
        let Ok(target) = Target::parse(&format!("{origin}/")) else {
            break;
        };
        // Ask about the bot itself. Its name as a User-Agent might not identify it, because `user-agents` need not
        // contain the name.
        let identity = Identity::Bot(bot.clone());
        let question = config.question_of(identity, target, generation.terms, SystemTime::now());
        let Some(decision) = proxy::decide_from_memory(generation, question) else {
            break;
        };
        let (limits, pace_error) = match decision.limits() {
            Ok(limits) => (limits, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let later = generation.not_before(&decision).await;
        found.push(BotAtSite {
            bot: bot.name.to_string(),
            gap_ms: limits.map(|limits| millis(limits.gap)),
            gap_cause: limits.map(|limits| limits.gap_cause.as_str()),
            pace_error,
            not_before: later.map(|(at, _)| Timestamp(at)),
            pace_cause: later.map(|(_, cause)| cause).map(Cause::as_str),
            usage: decision.usage.as_deref().map(UsageFields::of),
        });
    }
    found
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const MAX_BOTS: usize = 50;
