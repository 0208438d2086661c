//! Decides a logged request again, as if the site had a different robots.txt.

use std::{sync::Arc, time::SystemTime};

use super::{LoggedDecision, Missing, ask, check_whole};
use crate::{
    config::Config,
    copy::{Freshness, Lookup, Meaning, OriginState, RobotsCopy},
    decision::{Basis, Decision, Tdmrep},
};

/// A site with a given robots.txt, or with none.
#[derive(Debug)]
pub struct AnsweredSite {
    state: Arc<OriginState>,
    at: SystemTime,
}

// === impl AnsweredSite ===

impl AnsweredSite {
    /// Creates a site that answered at the time `at`. `copy` is its robots.txt, or `None` if it has none.
    pub fn new(copy: Option<&Arc<RobotsCopy>>, at: SystemTime, config: &Config) -> Self {
        let policy = &config.robots.policy;
        let (meaning, status) = match copy {
            Some(copy) if copy.robots.profile() == policy.profile => (Meaning::Rules(copy.clone()), copy.status),
            Some(copy) => (Meaning::Rules(Arc::new(copy.under(policy.profile))), copy.status),
            None => (Meaning::NoRobots, 404),
        };
        let state = OriginState::unknown().after(meaning, status, Freshness::default(), at, 0.0, policy);
        Self {
            state: Arc::new(state),
            at,
        }
    }

    /// Decides the request of a log line as if the site had this robots.txt. Returns `None` if the request was refused
    /// because of `[egress]` or the client's proof.
    pub fn decide(&self, logged: &LoggedDecision<'_>, config: &Config) -> Result<Option<Decision>, Missing> {
        if logged.basis() == Some(Basis::Network) {
            return Ok(None);
        }
        // Only the configuration that the proxy used says which query parameters the line leaves out.
        let is_own = logged.config_sha256 == Some(config.canonical.sha256());
        check_whole(logged, Some(config).filter(|_| is_own))?;
        let question = ask(logged, config)?;
        // The log line has what the site's `tdmrep.json` said about this URL.
        let decided = question.decide(
            None,
            |_| Ok(self.lookup(config)),
            |_| match logged.asked_for_tdmrep() {
                true => Ok(logged.tdmrep_answer().map_or(Tdmrep::None, Tdmrep::Answer)),
                false => Err(Missing::NoTdmrep),
            },
        );
        decided.map(Some)
    }

    pub(super) fn lookup(&self, config: &Config) -> Lookup {
        Lookup::at_once(self.state.clone(), self.at, &config.robots.policy)
    }
}
