//! Decides a logged request again as if the configuration, a site's robots.txt or the User-Agent had been different.
//!
//! If the decision needs a value that is neither in the change nor in the log nor in the store of evidence, the result
//! is [`Unknown`], unless a comment in this module or in the module `request` says what is assumed. If the logged
//! decision used no robots.txt, [`Replayer`](super::Replayer) reads from the store of evidence which robots.txt the
//! site had before the request, or that it had none.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    AnsweredSite, LoggedDecision, Missing, Texts, check_whole, is_as_logged, lookup,
    request::{self, exception, question, scope, subject, target},
    tdmrep,
};
use crate::{
    bot::{Identity, IdentityMismatch, LoggedProof, Presented, Proof, ProofKind},
    config::Config,
    copy::{Lookup, Policy, RobotsCopy},
    decision::{Decision, HttpsMode, Scope, Subject},
    origin::{Origin, Scheme, Target},
    robots::{LIMIT, Profile, counted},
    text::words,
};

/// What is assumed to be different: the configuration, the robots.txt of sites, or the User-Agent of all requests.
#[derive(Debug, Default)]
pub struct Scenario {
    config: Option<Arc<Config>>,
    /// For each changed origin, its new robots.txt, parsed once with each profile.
    robots: HashMap<String, [Arc<RobotsCopy>; 2]>,
    agent: Option<String>,
}

/// What a change would do to a logged decision.
#[derive(Debug)]
pub enum Finding {
    Decided(Effect, Box<Decision>),
    /// The change has nothing to do with this request.
    Unaffected,
    /// The decision depended on the address or port of the site, on the client's proof or on the pace. The log does not
    /// have what is needed to decide that again.
    AsLogged,
    Unknown(Unknown),
}

words! {
    /// How the decision with the change differs from the logged one.
    pub enum Effect {
        Same = "same",
        /// The request was forwarded and would be refused.
        Refused = "refused",
        /// The request was refused and would be forwarded.
        Forwarded = "forwarded",
        /// The verdict would be different, but the request would be forwarded or refused as before.
        Verdict = "verdict",
        /// The verdict would be the same, but with a different rule or reason.
        Basis = "basis",
    }
}

/// Why it is not known how a request would be decided with a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error(transparent)]
    Missing(Missing),
    #[error("found no copy of the robots.txt that the decision was based on")]
    Text,
    #[error("found no copy of the tdmrep.json that the decision was based on")]
    Tdmrep,
    #[error("the decision depends on the site's tdmrep.json, and the log does not say whether the site has one")]
    NoTdmrep,
    #[error("the logged decision used no robots.txt, and it is unknown which one the site had then")]
    NoLookup,
    #[error(
        "the fetch of the robots.txt had failed or not ended, and no usable copy of the old configuration was found"
    )]
    NoOldConfig,
    #[error(
        "the fetch of the robots.txt had failed or not ended, and the new configuration may treat that differently"
    )]
    Failing,
    #[error("robotgate had stopped waiting for the robots.txt, and the new configuration has another robots.wait")]
    Waiting,
    #[error("the new configuration intercepts the CONNECT, but the log does not have the requests in the tunnel")]
    Intercepted,
    #[error("the log does not say which {0} identified the client")]
    NoMatchedBy(ProofKind),
    #[error("no [[bot]] of the new configuration accepts the {kind} \"{name}\", by which the client was identified")]
    Proof { kind: ProofKind, name: String },
    #[error(
        "the configuration would refuse the client, unless the client had a proof of its identity that the log does \
         not show"
    )]
    Unproven,
    #[error("the log has only a part of the client's address, which might be in a bot's networks")]
    Address,
    #[error("the log does not have the User-Agent field as the client sent it")]
    UserAgent,
}

// === impl Unknown ===

impl Unknown {
    /// Returns whether a robots.txt of the site, given by the user, would decide the request.
    pub(super) fn lacks_robots(&self) -> bool {
        matches!(
            self,
            Self::Text | Self::NoLookup | Self::NoOldConfig | Self::Failing | Self::Waiting
        )
    }

    /// Returns whether the store of evidence lacks a text that would decide the request.
    pub(super) fn lacks_copy(&self) -> bool {
        match self {
            Self::Missing(missing) => missing.sha256().is_some(),
            Self::Text | Self::Tdmrep | Self::NoLookup | Self::NoOldConfig => true,
            _ => false,
        }
    }
}

/// Decides the request of a log line again, as if `change` had been in force. `old` is the configuration that made the
/// logged decision, or why it is missing.
pub fn what_if(
    logged: &LoggedDecision<'_>,
    change: &Scenario,
    old: Result<&Config, Missing>,
    texts: Texts<'_>,
) -> Finding {
    if is_as_logged(logged) {
        return Finding::AsLogged;
    }
    if !change.concerns(logged) {
        return Finding::Unaffected;
    }
    match change.decide(logged, old, texts) {
        Ok(decision) => Finding::Decided(Effect::of(logged, &decision), Box::new(decision)),
        Err(unknown) => Finding::Unknown(unknown),
    }
}

// === impl Scenario ===

impl Scenario {
    /// Creates a change from a new configuration, new robots.txt files of sites, and a new User-Agent for all requests.
    pub fn new(config: Option<Config>, robots: Vec<(Origin, Vec<u8>)>, agent: Option<String>) -> Self {
        let read = |text: &[u8]| {
            let text = counted(text, LIMIT);
            PROFILES.map(|profile| Arc::new(RobotsCopy::new(profile, text, SystemTime::UNIX_EPOCH)))
        };
        Self {
            config: config.map(Arc::new),
            robots: robots
                .into_iter()
                .map(|(origin, text)| (origin.to_string(), read(&text)))
                .collect(),
            agent,
        }
    }

    /// Returns the new configuration.
    pub fn config(&self) -> Option<&Arc<Config>> {
        self.config.as_ref()
    }

    /// Returns the new User-Agent.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Returns whether the new configuration has other `[pace]` limits or delays of bots than `old`. Without `old`,
    /// returns whether the new configuration has a `[pace]` section.
    pub(super) fn changes_pace(&self, old: Option<&Config>) -> bool {
        let Some(new) = &self.config else { return false };
        match old {
            Some(old) => new.pace != old.pace || (new.pace.is_some() && delays(new).ne(delays(old))),
            None => new.pace.is_some(),
        }
    }

    pub(super) fn concerns(&self, logged: &LoggedDecision<'_>) -> bool {
        self.config.is_some() || self.agent.is_some() || self.replaces(logged)
    }

    pub(super) fn replaces(&self, logged: &LoggedDecision<'_>) -> bool {
        self.robots.contains_key(&*logged.origin)
    }

    fn decide(
        &self,
        logged: &LoggedDecision<'_>,
        old: Result<&Config, Missing>,
        texts: Texts<'_>,
    ) -> Result<Decision, Unknown> {
        let config = match (&self.config, &old) {
            (Some(config), _) => &**config,
            (None, Ok(config)) => config,
            (None, Err(missing)) => return Err(Unknown::Missing(missing.clone())),
        };
        let old = old.ok();
        check_whole(logged, old)?;
        let target = target(logged)?;
        let subject = match self.config.is_some() || self.agent.is_some() {
            true => self.subject(logged, config, old)?,
            false => subject(logged, config)?,
        };
        let prohibited = self
            .config
            .as_ref()
            .and_then(|config| config.screen(&target.origin).err())
            .map(|prohibited| prohibited.to_string());
        let scope = self.scope(logged, &target, config, old)?;
        let is_intercepted = self.config.is_some()
            && config.https.mode == HttpsMode::Intercept
            && scope == (Scope::Tunnel { exception: None });
        let question = question(subject, target, scope, config);
        if is_intercepted {
            return question.before_interception(prohibited).ok_or(Unknown::Intercepted);
        }
        question.decide(
            prohibited,
            |_| self.lookup(logged, config, old, texts.robots),
            |_| match logged.asked_for_tdmrep() {
                true => Ok(tdmrep(logged, texts.tdmrep)?),
                false => Err(Unknown::NoTdmrep),
            },
        )
    }

    /// Identifies the client by the new User-Agent (if there is none, by the logged one), and by the logged proof (if
    /// there is none, by the address).
    fn subject(&self, logged: &LoggedDecision<'_>, config: &Config, old: Option<&Config>) -> Result<Subject, Unknown> {
        let kind = ProofKind::from_word(&logged.identity);
        let name = logged.matched_by.as_deref().or(logged.credential.as_deref());
        let logged_proof = kind
            .map(|kind| match name {
                Some(name) => Ok(LoggedProof { kind, name }),
                None => Err(Unknown::NoMatchedBy(kind)),
            })
            .transpose()?;
        let field = match &self.agent {
            Some(agent) => Some(&**agent),
            None => user_agent(logged, logged_proof, old)?,
        };
        let proof = match logged_proof {
            Some(logged) if config.bots.accept(&Proof::Logged(logged)) => Proof::Logged(logged),
            Some(LoggedProof { kind, name }) => {
                let name = name.to_owned();
                return Err(Unknown::Proof { kind, name });
            }
            None => proof_by_address(logged, config)?,
        };
        let fields = field.map(str::as_bytes);
        match config.bots.identify_by(fields, &proof, config.identity.required) {
            Identity::Refused(IdentityMismatch::Unproven { .. }) => Err(Unknown::Unproven),
            // The certificate or address may also fit another entry of the configuration, but the log does not say.
            Identity::Refused(_) if kind.is_some_and(|kind| kind != ProofKind::Credential) => Err(Unknown::Unproven),
            identity => Ok(Subject {
                proof: proof.kind(),
                ..Subject::of(identity)
            }),
        }
    }

    /// Returns which part of the request robotgate would see with `config`. Assumes that an https request came in an
    /// intercepted CONNECT or, if the old configuration does not intercept CONNECTs to the host, without a CONNECT.
    fn scope(
        &self,
        logged: &LoggedDecision<'_>,
        target: &Target,
        config: &Config,
        old: Option<&Config>,
    ) -> Result<Scope, Unknown> {
        let as_it_came = scope(logged, target, config)?;
        if logged.method == "CONNECT" || self.config.is_none() || target.origin.scheme != Scheme::Https {
            return Ok(as_it_came);
        }
        let exception_now = exception(logged, target, config)?;
        let is_seen = exception_now.is_none() && config.https.mode == HttpsMode::Intercept;
        let came_without_connect = match old {
            Some(old) => old.https.mode != HttpsMode::Intercept || exception(logged, target, old)?.is_some(),
            None => false,
        };
        Ok(match is_seen || came_without_connect {
            true => as_it_came,
            false => Scope::Tunnel {
                exception: exception_now,
            },
        })
    }

    fn lookup(
        &self,
        logged: &LoggedDecision<'_>,
        config: &Config,
        old: Option<&Config>,
        text: Option<&Arc<RobotsCopy>>,
    ) -> Result<Lookup, Unknown> {
        let policy = &config.robots.policy;
        if let Some(copies) = self.robots.get(&*logged.origin) {
            let [google, rfc9309] = copies;
            let copy = match policy.profile {
                Profile::Google => google,
                Profile::Rfc9309 => rfc9309,
            };
            let at = SystemTime::UNIX_EPOCH + request::START;
            return Ok(AnsweredSite::new(Some(copy), at, config).lookup(config));
        }
        if !logged.has_lookup() {
            return Err(Unknown::NoLookup);
        }
        let has_text = logged.robots_sha256.is_some();
        let is_failure = logged.robots_error.is_some()
            || (!has_text
                && logged
                    .robots_status
                    .is_some_and(|status| status >= 500 || status == 429));
        if is_failure && self.config.is_some() {
            let old = old.ok_or(Unknown::NoOldConfig)?;
            if request::pending_fetch(logged).is_some() && old.robots.wait != config.robots.wait {
                return Err(Unknown::Waiting);
            }
            if !fails_alike(logged, &old.robots.policy, policy) {
                return Err(Unknown::Failing);
            }
        }
        Ok(lookup(logged, policy, text)?)
    }
}

// === impl Effect ===

impl Effect {
    fn of(logged: &LoggedDecision<'_>, decision: &Decision) -> Self {
        match (logged.forwarded, decision.forwarded) {
            (true, false) => Self::Refused,
            (false, true) => Self::Forwarded,
            _ if logged.verdict != decision.verdict.as_str() => Self::Verdict,
            _ if logged.reason != decision.reason.as_str() || logged.rule != decision.shown_rule() => Self::Basis,
            _ => Self::Same,
        }
    }
}

// === impl Unknown ===

impl From<Missing> for Unknown {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Text(_) => Self::Text,
            Missing::Tdmrep(_) => Self::Tdmrep,
            missing => Self::Missing(missing),
        }
    }
}

/// Returns the User-Agent of the request. Fails if the log may have changed it, or lacks it although it identified the
/// bot.
fn user_agent<'l>(
    logged: &'l LoggedDecision<'_>,
    proof: Option<LoggedProof<'_>>,
    old: Option<&Config>,
) -> Result<Option<&'l str>, Unknown> {
    let Some(field) = logged.user_agent.as_deref() else {
        return match logged.identity == "user-agent" || logged.identity == "product-token" {
            true => Err(Unknown::UserAgent),
            false => Ok(None),
        };
    };
    if !is_as_sent(logged, field) {
        return Err(Unknown::UserAgent);
    }
    let fields = [field.as_bytes()];
    let found = old.and_then(|old| match proof.map(Proof::Logged) {
        Some(proof) if old.bots.accept(&proof) => Some(old.bots.identify_by(fields, &proof, false)),
        Some(_) => None,
        None => Some(old.bots.identify(fields)),
    });
    let is_configured = logged.bot.is_some() && logged.identity != "product-token";
    let is_same = |found: Identity<'_>| {
        found.name() == logged.bot.as_deref() && matches!(found, Identity::Bot(_)) == is_configured
    };
    match found.is_none_or(is_same) {
        true => Ok(Some(field)),
        false => Err(Unknown::UserAgent),
    }
}

/// Returns whether `field` is exactly the User-Agent that the client sent: one field, not shortened, not escaped.
pub(super) fn is_as_sent(logged: &LoggedDecision<'_>, field: &str) -> bool {
    // If a request has several User-Agent fields, the log joins them with ` | `, and no bot is identified.
    let is_joined = logged.bot.is_none() && field.contains(" | ");
    !is_joined && !field.ends_with('…') && !field.contains("\\u{")
}

/// Returns the client's address as a proof, if it is in a network of a bot. Fails if bots have networks and the log has
/// only a part of the address.
fn proof_by_address(logged: &LoggedDecision<'_>, config: &Config) -> Result<Proof<'static>, Unknown> {
    if config.bots.iter().all(|bot| bot.accepted_proofs.networks.is_empty()) {
        return Ok(Proof::None);
    }
    let address: SocketAddr = logged.client.parse().map_err(|_| Unknown::Address)?;
    // With `audit.mask-client`, the log has the port 0, which no client has.
    if address.port() == 0 {
        return Err(Unknown::Address);
    }
    let presented = Presented {
        address: Some(address.ip()),
        ..Presented::default()
    };
    Ok(match config.bots.prove(&presented) {
        Proof::Network(address) => Proof::Network(address),
        _ => Proof::None,
    })
}

fn delays(config: &Config) -> impl Iterator<Item = (&str, Duration)> {
    let bots = config.bots.iter();
    bots.filter_map(|bot| Some((&*bot.name, bot.delay?)))
}

/// Returns whether the failed fetch of the robots.txt has the same consequences under both policies.
fn fails_alike(logged: &LoggedDecision<'_>, old: &Policy, new: &Policy) -> bool {
    let after = |policy: &Policy| {
        let unreachable = policy.unreachable;
        (unreachable.deny_for, unreachable.then, unreachable.without_copy)
    };
    let is_same_failure = match request::failed_status(logged) {
        // Without an error in the log, the response was no failure under the old policy, but perhaps under the new one.
        _ if logged.robots_error.is_none() => (old.profile, old.soft_404) == (new.profile, new.soft_404),
        Some(429) => old.profile == new.profile,
        // If the old policy looked for a "not found" page in the response, there was none.
        Some(500..=599) => old.soft_404 || !new.soft_404,
        _ => true,
    };
    is_same_failure && after(old) == after(new)
}

const PROFILES: [Profile; 2] = [Profile::Google, Profile::Rfc9309];
