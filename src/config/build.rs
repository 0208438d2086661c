//! Builds what needs more than one section of a [`Config`]: the terms of a decision, a question, the egress and the
//! fetcher. So the proxy and the commands decide and fetch by the same rules.
//!
//! It opens no connection and reads no file.

use std::{sync::Arc, time::SystemTime};

use super::Config;
use crate::{
    bot::Proof,
    decision::{Question, Subject, Terms},
    egress::{Egress, Listening, Prohibited, Resolver, screen},
    fetch::{FetchLimiter, Fetcher},
    origin::{Origin, Target},
    upstream::Origins,
};

// === impl Config ===

impl Config {
    /// What decides, as the `generation`-th configuration has it.
    pub fn terms(&self, generation: u64) -> Terms {
        Terms {
            https_mode: self.https.mode,
            unverifiable: self.https.unverifiable,
            unidentified: self.identity.unidentified,
            strict_paths: self.robots.strict_paths,
            policy: self.robots.policy,
            generation,
        }
    }

    /// The question whether a bot may fetch a URL the usual way, asked by somebody else: `terms` decide, and the bot has
    /// the proof that it needs, unless it is `unproven`.
    pub fn question(&self, agent: &str, unproven: bool, target: Target, terms: Terms, now: SystemTime) -> Question {
        let proof = match unproven {
            true => Proof::None,
            false => Proof::Assumed,
        };
        let identity = self
            .bots
            .identify_by([agent.as_bytes()], &proof, self.identity.required);
        let exception = self.https.tunnel_exception(&target.origin.host.to_string(), now);
        let exception = exception.map(|exception| exception.reason.clone());
        Question::of_url(Subject::of(identity), target, exception, terms)
    }

    /// Why bots may not go to `origin`, as far as that can be said before its name is resolved: `[egress]` closes it,
    /// or robotgate itself listens there.
    ///
    /// # Errors
    /// They may not.
    pub fn screen(&self, origin: &Origin) -> Result<(), Prohibited> {
        screen(&self.egress.guard, &self.listening(), &origin.host, origin.port)
    }

    /// Where the proxy would listen.
    pub fn listening(&self) -> Listening {
        let tls = self.proxy.tls.iter().flat_map(|tls| &tls.listen);
        let all = self.proxy.listen.iter().chain(tls).chain(&self.admin.listen);
        all.copied().collect()
    }

    /// The way out, with names looked up by `resolver`, and never to where robotgate is `listening`.
    pub fn way_out(&self, resolver: Resolver, listening: Listening) -> Egress {
        Egress {
            resolver,
            guard: self.egress.guard.clone(),
            listening,
        }
    }

    /// Bounds how many fetches run at once (`robots.max-fetches`).
    pub fn fetch_limiter(&self) -> Arc<FetchLimiter> {
        Arc::new(FetchLimiter::new(self.robots.max_fetches))
    }

    /// What fetches robots.txt files, by `egress`, on connections of `origins`, and in turn with all else that has `limiter`.
    pub fn fetcher(&self, egress: Egress, origins: Arc<Origins>, limiter: Arc<FetchLimiter>) -> Fetcher {
        Fetcher::new(
            egress,
            origins,
            self.robots.fetch.clone(),
            self.https.upstream_http2,
            self.proxy.connect_timeout,
            self.proxy.idle_timeout,
            limiter,
        )
    }
}
