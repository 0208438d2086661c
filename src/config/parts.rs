//! A [`Config`] in the words of those who work by it: the cache's policy, the fetcher, the egress
//! guard. So all who fetch a robots.txt do so by the same rules.
//!
//! It opens no connection and reads no file.

use std::{sync::Arc, time::SystemTime};

use super::Config;
use crate::{
    bot::Proof,
    copy::Policy,
    decision::{Question, Subject, Terms},
    egress::{Egress, Guard, Listening, Prohibited, Resolver, Roots, screen},
    fetch::{Fetcher, FetcherOptions, Lanes},
    origin::{Origin, Target},
};

// === impl Config ===

impl Config {
    /// How long copies of robots.txt hold, and what answers mean.
    pub fn policy(&self) -> Policy {
        Policy {
            profile: self.robots.profile,
            default_ttl: self.robots.default_ttl,
            no_robots_ttl: self.robots.no_robots_ttl,
            min_ttl: self.robots.min_ttl,
            max_ttl: self.robots.max_ttl,
            soft_404: self.robots.soft_404,
            unreachable: self.robots.unreachable,
        }
    }

    /// What decides, as the `generation`-th configuration has it.
    pub fn terms(&self, generation: u64) -> Terms {
        Terms {
            https_mode: self.https.mode,
            unverifiable: self.https.unverifiable,
            unidentified: self.identity.unidentified,
            strict_paths: self.robots.strict_paths,
            policy: self.policy(),
            generation,
        }
    }

    /// The question whether a bot may fetch a URL the usual way, asked by somebody else: `terms` decide, and the bot has
    /// the proof that it needs, unless it is `unproven`.
    pub fn question(&self, agent: &str, unproven: bool, target: Target, terms: Terms, now: SystemTime) -> Question {
        let fields = [agent.as_bytes()];
        let identity = match unproven {
            true => self.bots.identify_by(fields, &Proof::None, self.identity.required),
            false => self.bots.identify(fields),
        };
        let exception = self.https.tunnel_exception(&target.origin.host.to_string(), now);
        let exception = exception.map(|exception| exception.reason.clone());
        Question::of_url(Subject::of(identity), target, exception, terms)
    }

    /// Why bots may not go to `origin`, as far as that can be said before its name is resolved: the proxy would not, or
    /// would listen there itself.
    ///
    /// # Errors
    /// They may not.
    pub fn screen(&self, origin: &Origin) -> Result<(), Prohibited> {
        screen(&self.guard(), &self.listening(), &origin.host, origin.port)
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
            guard: self.guard(),
            listening,
        }
    }

    /// Where bots may go.
    pub fn guard(&self) -> Guard {
        Guard {
            allow: self.egress.allow.clone(),
            deny: self.egress.deny.clone(),
            ports: self.egress.ports.clone(),
        }
    }

    /// Room for as many fetches at once as there may be.
    pub fn lanes(&self) -> Arc<Lanes> {
        Arc::new(Lanes::new(self.robots.max_fetches))
    }

    /// What fetches robots.txt files, by `egress`, with certificates checked against `roots`, and in
    /// turn with all else that has `lanes`.
    pub fn fetcher(&self, egress: Egress, roots: &Roots, lanes: Arc<Lanes>) -> Fetcher {
        let options = FetcherOptions {
            user_agent: self.robots.user_agent.clone(),
            connect_timeout: self.proxy.connect_timeout,
            total_timeout: self.robots.fetch_timeout,
            idle_timeout: self.robots.fetch_idle_timeout,
        };
        Fetcher::new(egress, roots, options, lanes)
    }
}
