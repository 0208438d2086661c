//! Logs and counts each change of a site's robots.txt: which rules changed, and how many recent requests would now be
//! decided differently.
//!
//! A separate thread compares the old and the new robots.txt, so that no request waits. If too many changes wait, or if
//! robotgate stops, a change is recorded without a comparison.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use memchr::{memchr, memmem, memrchr};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    audit::{AuditLog, ChangeExample, ChangedGroup, Instance, Json, MAX_DECISIONS, Recent, RobotsChangedRecord},
    config::Config,
    copy::RobotsCopy,
    decision::{MAX_TEXT, Verdict},
    metrics::{ChangeEffect, Metrics},
    origin::Origin,
    replay::{AnsweredSite, LoggedDecision},
    robots::{ChangedRule, ChangedStatement, LineChanges, changes},
    text::{Timestamp, plain, plain_message},
};

#[derive(Debug, Default)]
pub(super) struct ChangeNotes {
    queue: Mutex<Queue>,
    idle: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<RobotsChange>,
    /// Memory of the robots.txt copies in `waiting`, in bytes.
    weight: usize,
    is_running: bool,
    is_closing: bool,
}

#[derive(Debug)]
pub(super) struct RobotsChange {
    pub(super) origin: Origin,
    pub(super) before: Answered,
    pub(super) after: Answered,
    pub(super) is_shared: bool,
    pub(super) audit: Arc<AuditLog>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) recent: Arc<Recent>,
    pub(super) config: Arc<Config>,
    pub(super) generation: u64,
    pub(super) instance: Instance,
}

#[derive(Debug)]
pub(super) struct Answered {
    pub(super) copy: Option<Arc<RobotsCopy>>,
    /// HTTP status of the site's response, or 0 if unknown.
    pub(super) status: u16,
    pub(super) fetched: SystemTime,
}

#[derive(Debug, Default)]
struct Effect {
    requests: usize,
    undecided: usize,
    newly_denied: usize,
    newly_allowed: usize,
    examples: Vec<ChangeExample>,
}

// === impl ChangeNotes ===

impl ChangeNotes {
    /// Queues a change to be compared and recorded. If the queue is full, records it at once without a comparison.
    ///
    /// Must be called in a Tokio runtime.
    pub(super) fn note(self: &Arc<Self>, change: RobotsChange) {
        let weight = change.weight();
        let mut queue = self.queue.lock();
        let is_full = queue.waiting.len() >= MAX_WAITING || queue.weight + weight > MAX_WEIGHT;
        if is_full && !queue.waiting.is_empty() {
            drop(queue);
            return change.log(None);
        }
        queue.weight += weight;
        queue.waiting.push_back(change);
        if !std::mem::replace(&mut queue.is_running, true) {
            let notes = self.clone();
            tokio::task::spawn_blocking(move || notes.work());
        }
    }

    pub(super) async fn finish(&self) {
        loop {
            // Register for the notification before reading `is_running`. Otherwise the thread could end in between,
            // and `finish` would wait forever.
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            {
                let mut queue = self.queue.lock();
                queue.is_closing = true;
                if !queue.is_running {
                    return;
                }
            }
            idle.await;
        }
    }

    fn work(&self) {
        // When this is dropped, it wakes `finish`. If a comparison has panicked, it also clears `is_running`, so that
        // the next change starts a thread.
        let _ended = Ended(self);
        while let Some((change, is_closing)) = self.next() {
            let compared = (!is_closing).then(|| change.compare());
            change.log(compared);
        }
    }

    fn next(&self) -> Option<(RobotsChange, bool)> {
        let mut queue = self.queue.lock();
        let Some(change) = queue.waiting.pop_front() else {
            queue.is_running = false;
            return None;
        };
        queue.weight -= change.weight();
        Some((change, queue.is_closing))
    }
}

struct Ended<'n>(&'n ChangeNotes);

// === impl Ended ===

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.lock().is_running = false;
        }
        self.0.idle.notify_waiters();
    }
}

// === impl RobotsChange ===

impl RobotsChange {
    fn weight(&self) -> usize {
        let copies = [&self.before, &self.after];
        copies.iter().map(|answered| answered.weight()).sum()
    }

    /// Compares the old and the new robots.txt. If rules changed, decides recent requests by both files. Blocks for up
    /// to a few seconds.
    fn compare(&self) -> (LineChanges, Effect) {
        let profile = self.config.robots.policy.profile;
        let found = changes(profile, self.before.text(), self.after.text());
        let effect = match found.has_rules() {
            true => self.effect(),
            false => Effect::default(),
        };
        (found, effect)
    }

    fn effect(&self) -> Effect {
        let (deadline, config) = (Instant::now() + MAX_TIME, &*self.config);
        let [before, after] = [&self.before, &self.after]
            .map(|answered| AnsweredSite::new(answered.copy.as_ref(), answered.fetched, config));
        let mut effect = Effect::default();
        let mut shown = HashSet::new();
        let decisions = self.recent.decisions().read();
        for line in lines_on(&self.origin, &decisions).take(MAX_DECISIONS) {
            let parsed = serde_json::from_slice::<LoggedDecision<'_>>(line);
            let Some(logged) = parsed.ok().filter(|_| Instant::now() < deadline) else {
                effect.undecided += 1;
                continue;
            };
            let (was, is) = match (before.decide(&logged, config), after.decide(&logged, config)) {
                (Ok(Some(was)), Ok(Some(is))) => (was, is),
                (Ok(None), _) | (_, Ok(None)) => continue,
                (Err(_), _) | (_, Err(_)) => {
                    effect.undecided += 1;
                    continue;
                }
            };
            effect.requests += 1;
            let count = match (was.verdict == Verdict::Allow, is.verdict == Verdict::Allow) {
                (true, false) => &mut effect.newly_denied,
                (false, true) => &mut effect.newly_allowed,
                _ => continue,
            };
            *count += 1;
            let is_new = shown.len() < MAX_EXAMPLES && shown.insert((logged.bot.clone(), logged.url.to_string()));
            if is_new {
                effect.examples.push(ChangeExample {
                    id: logged.id.to_string(),
                    url: plain_message(&logged.url, MAX_TEXT).into_owned(),
                    verdict: is.verdict.as_str(),
                    rule: is.shown_rule(),
                    line: is.rule().map(|rule| rule.line),
                    bot: logged.bot,
                });
            }
        }
        effect
    }

    /// `compared` is `None` if the two robots.txt files were not compared.
    fn log(&self, compared: Option<(LineChanges, Effect)>) {
        let is_compared = compared.is_some();
        let (found, effect) = compared.unwrap_or_default();
        let meaning = match (is_compared, found.has_rules()) {
            (false, _) => ChangeEffect::Unknown,
            (true, false) => ChangeEffect::None,
            (true, true) => effect.meaning(),
        };
        let mut cut = found.is_cut;
        let rules = is_compared.then(|| if found.has_rules() { "changed" } else { "unchanged" });
        let (rules_added, rules_removed) = (found.rules_added(), found.rules_removed());
        let line = RobotsChangedRecord {
            time: Timestamp(SystemTime::now()),
            instance: self.instance.as_str(),
            origin: &self.origin.to_string(),
            fetched: Some(Timestamp(self.after.fetched)),
            source: if self.is_shared { "fleet" } else { "site" },
            robots_sha256_before: self.before.copy.as_ref().map(|copy| copy.sha256),
            robots_sha256: self.after.copy.as_ref().map(|copy| copy.sha256),
            robots_status_before: self.before.known_status(),
            robots_status: self.after.known_status(),
            rules,
            rules_added,
            rules_removed,
            groups: Json(groups(&found, &mut cut)),
            statements_added: found.statements_added.len(),
            statements_removed: found.statements_removed.len(),
            added: Json(statements(&found.statements_added, &mut cut)),
            removed: Json(statements(&found.statements_removed, &mut cut)),
            cut,
            effect: meaning.as_str(),
            requests: effect.requests,
            undecided: effect.undecided,
            newly_denied: effect.newly_denied,
            newly_allowed: effect.newly_allowed,
            examples: Json(effect.examples),
            profile: self.config.robots.policy.profile.as_str(),
            config: self.generation,
        }
        .line();
        self.audit.append_now(&line);
        self.recent.changed(&line);
        self.metrics.robots_changed(meaning);
    }
}

// === impl Answered ===

impl Answered {
    fn text(&self) -> &[u8] {
        self.copy.as_ref().map_or(b"", |copy| copy.robots.body())
    }

    fn weight(&self) -> usize {
        self.copy.as_ref().map_or(0, |copy| copy.weight())
    }

    fn known_status(&self) -> Option<u16> {
        Some(self.status).filter(|status| *status != 0)
    }
}

// === impl Effect ===

impl Effect {
    fn meaning(&self) -> ChangeEffect {
        match (self.newly_denied, self.newly_allowed) {
            _ if self.requests == 0 => ChangeEffect::Unknown,
            (0, 0) if self.undecided > 0 => ChangeEffect::Unknown,
            (0, 0) => ChangeEffect::None,
            (_, 0) => ChangeEffect::Stricter,
            (0, _) => ChangeEffect::Looser,
            _ => ChangeEffect::Both,
        }
    }
}

/// Iterates over the lines in `decisions` that are about `origin`, the newest first.
fn lines_on<'d>(origin: &Origin, decisions: &'d [u8]) -> impl Iterator<Item = &'d [u8]> {
    // Only the field `origin` matches: in the value of another field, JSON escapes the quotation marks.
    let finder = memmem::FinderRev::new(format!("\"origin\":\"{origin}\"").as_bytes()).into_owned();
    let mut end = decisions.len();
    std::iter::from_fn(move || {
        let at = finder.rfind(&decisions[..end])?;
        let line_end = memchr(b'\n', &decisions[at..]).map_or(decisions.len(), |end| at + end);
        end = memrchr(b'\n', &decisions[..at]).map_or(0, |end| end + 1);
        Some(&decisions[end..line_end])
    })
}

/// Returns the changed rules of each group for the log. Sets `cut` if it leaves something out.
fn groups<'f>(found: &'f LineChanges, cut: &mut bool) -> Vec<ChangedGroup<'f>> {
    let mut left = MAX_RULES;
    let mut rules = |rules: &[ChangedRule]| -> (Vec<ChangedRule>, bool) {
        let taken = rules.len().min(MAX_LISTED).min(left);
        left -= taken;
        let listed = rules[..taken].iter().map(|rule| ChangedRule {
            line: rule.line,
            rule: plain(&rule.rule, MAX_RULE).into_owned(),
        });
        (listed.collect(), taken < rules.len())
    };
    *cut |= found.groups.len() > MAX_LISTED;
    let listed = found.groups.iter().take(MAX_LISTED).map(|group| {
        let (added, is_cut_added) = rules(&group.added);
        let (removed, is_cut_removed) = rules(&group.removed);
        *cut |= is_cut_added || is_cut_removed || group.agents.len() > MAX_LISTED;
        let agents = group.agents.iter().take(MAX_LISTED);
        ChangedGroup {
            agents: agents.map(|agent| plain(agent, MAX_NAME)).collect(),
            change: group.kind,
            added,
            removed,
        }
    });
    listed.collect()
}

/// Returns the changed lines that are not rules, such as `Sitemap`. Sets `cut` if something is left out.
fn statements(all: &[ChangedStatement], cut: &mut bool) -> Vec<ChangedStatement> {
    *cut |= all.len() > MAX_LISTED || all.iter().any(|statement| statement.agents.len() > MAX_LISTED);
    let listed = all.iter().take(MAX_LISTED).map(|statement| ChangedStatement {
        line: statement.line,
        kind: statement.kind,
        value: plain(&statement.value, MAX_RULE).into_owned(),
        agents: (statement.agents.iter().take(MAX_LISTED))
            .map(|agent| plain(agent, MAX_NAME).into_owned())
            .collect(),
    });
    listed.collect()
}

const MAX_WAITING: usize = 1000;
/// Maximum memory of the robots.txt copies in all waiting changes, in bytes.
const MAX_WEIGHT: usize = 64 * 1024 * 1024;
/// Maximum time for deciding recent requests again.
const MAX_TIME: Duration = Duration::from_secs(2);
const MAX_EXAMPLES: usize = 5;
/// Maximum length of each list in the log line of one change, such as the agents of a group.
const MAX_LISTED: usize = 20;
/// Maximum number of rules in the log line of one change.
const MAX_RULES: usize = 100;
/// Maximum length of a rule in the log, and of the value of any other line, in bytes.
const MAX_RULE: usize = 200;
/// Maximum length of an agent's name in the log, in bytes.
const MAX_NAME: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robots::Profile;

    #[test]
    fn the_decisions_on_an_origin_are_found_the_newest_first() {
        let mut decisions = String::new();
        for number in 0..30 {
            let origin = ["http://a", "http://b", "http://a:8080"][number % 3];
            decisions.push_str(&format!(
                "{{\"agent\":\"\\\"origin\\\":\\\"http://b\\\"\",\"origin\":\"{origin}\",\"n\":{number}}}\n"
            ));
        }
        let on = |origin: &str| -> Vec<u64> {
            let origin = origin.parse().unwrap();
            let lines = lines_on(&origin, decisions.as_bytes());
            let number = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).unwrap()["n"].as_u64();
            lines.filter_map(number).collect()
        };
        assert_eq!(on("http://b"), [28, 25, 22, 19, 16, 13, 10, 7, 4, 1]);
        assert_eq!(on("http://a").len(), 10);
        assert!(on("http://c").is_empty());
    }

    #[test]
    fn a_statement_whose_agents_are_cut_is_reported_as_cut() {
        for (agents, expected) in [(20, false), (21, true), (30, true)] {
            let agents: String = (0..agents).map(|n| format!("User-agent: bot{n}\n")).collect();
            let rule = "Disallow: /a\n";
            let found = changes(
                Profile::Google,
                format!("{agents}{rule}").as_bytes(),
                format!("{agents}{rule}Crawl-delay: 3\n").as_bytes(),
            );
            let mut cut = false;
            let listed = statements(&found.statements_added, &mut cut);
            assert_eq!((listed[0].agents.len(), cut), (20, expected), "{agents}");
        }
    }

    #[test]
    fn the_effect_is_none_only_if_requests_show_it() {
        for (requests, undecided, newly_denied, newly_allowed, expected) in [
            (0, 0, 0, 0, ChangeEffect::Unknown),
            (0, 3, 0, 0, ChangeEffect::Unknown),
            (3, 1, 0, 0, ChangeEffect::Unknown),
            (3, 0, 0, 0, ChangeEffect::None),
            (3, 1, 1, 0, ChangeEffect::Stricter),
            (3, 0, 0, 1, ChangeEffect::Looser),
            (3, 0, 1, 1, ChangeEffect::Both),
        ] {
            let effect = Effect {
                requests,
                undecided,
                newly_denied,
                newly_allowed,
                examples: Vec::new(),
            };
            assert_eq!(effect.meaning(), expected, "{effect:?}");
        }
    }
}
