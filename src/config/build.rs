//! Builds from a [`Config`] what decisions and fetches need. The proxy and the commands share this code, so they decide
//! and fetch by the same rules.
//!
//! This module opens no connection and reads no file.

use std::{sync::Arc, time::SystemTime};

use super::Config;
use crate::{
    bot::{Identity, Proof},
    decision::{Question, Subject, Terms},
    egress::{Egress, Listening, Prohibited, Resolver, screen},
    fetch::{FetchLimiter, Fetcher},
    fleet::FetchedAs,
    origin::{Origin, Target},
    upstream::Origins,
};

// === impl Config ===

impl Config {
    /// Returns the settings that decisions depend on. `generation` is the number of this loaded configuration.
    pub fn terms(&self, generation: u64) -> Terms {
        Terms {
            https_mode: self.https.mode,
            unverifiable: self.https.unverifiable,
            unidentified: self.identity.unidentified,
            enforcement: self.identity.enforcement,
            strict_paths: self.robots.strict_paths,
            policy: self.robots.policy,
            pace: self.pace,
            usage: self.usage,
            generation,
        }
    }

    /// Builds the question whether a bot may fetch a URL. Unless `unproven` is set, the client is assumed to prove that
    /// it is the bot.
    pub fn question(&self, agent: &str, unproven: bool, target: Target, terms: Terms, now: SystemTime) -> Question {
        let proof = match unproven {
            true => Proof::None,
            false => Proof::Assumed,
        };
        let identity = self
            .bots
            .identify_by([agent.as_bytes()], &proof, self.identity.required);
        self.question_of(identity, target, terms, now)
    }

    /// Builds the question whether `identity` may fetch a URL.
    pub fn question_of(&self, identity: Identity<'_>, target: Target, terms: Terms, now: SystemTime) -> Question {
        let exception = self.https.tunnel_exception(&target.origin.host.to_string(), now);
        let exception = exception.map(|exception| exception.reason.clone());
        Question::of_url(Subject::of(identity), target, exception, terms)
    }

    /// Checks whether bots may connect to `origin`, without resolving its name.
    ///
    /// # Errors
    /// Fails if `[egress]` forbids the connection, or if robotgate itself listens there.
    pub fn screen(&self, origin: &Origin) -> Result<(), Prohibited> {
        screen(&self.egress.guard, &self.listening(), origin)
    }

    /// Returns the addresses that the configuration makes the proxy listen on.
    pub fn listening(&self) -> Listening {
        let tls = self.proxy.tls.iter().flat_map(|tls| &tls.listen);
        let all = self.proxy.listen.iter().chain(tls).chain(&self.admin.listen);
        all.copied().collect()
    }

    /// Returns the `Egress`, which resolves origins to addresses that bots may reach, but never to one in `listening`.
    pub fn way_out(&self, resolver: Resolver, listening: Listening) -> Egress {
        Egress {
            resolver,
            guard: self.egress.guard.clone(),
            listening,
        }
    }

    /// Returns how this robotgate fetches a robots.txt. Robotgates of a fleet share copies only if their profiles and
    /// User-Agents are the same.
    pub fn fetched_as(&self) -> FetchedAs<'_> {
        FetchedAs {
            profile: self.robots.policy.profile,
            user_agent: &self.robots.fetch.user_agent,
            timeout: self.robots.fetch.total_timeout,
        }
    }

    /// Creates the limiter that lets at most `robots.max-fetches` fetches run at the same time.
    pub fn fetch_limiter(&self) -> Arc<FetchLimiter> {
        Arc::new(FetchLimiter::new(self.robots.max_fetches))
    }

    /// Returns a fetcher for robots.txt and `tdmrep.json` files. Fetchers with the same `limiter` share its limit.
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
