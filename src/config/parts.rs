//! A [`Config`] in the words of those who work by it: the cache's policy, the fetcher, the egress
//! guard. So all who fetch a robots.txt do so by the same rules.
//!
//! It opens no connection and reads no file.

use std::sync::Arc;

use super::Config;
use crate::{
    copy::Policy,
    egress::{Egress, Guard, Listening, Resolver, Roots},
    fetch::{Fetcher, FetcherOptions, Lanes},
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
