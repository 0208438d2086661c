//! All that is told, before it is written: the decision, and what stands behind it.
//!
//! The decision comes first and from [`Decision`]; the explanation is of the reading that decided.

use super::{ExplainArgs, Source, Target};
use crate::{
    bot::{Identity, Misfit, Proof},
    cache::Answer,
    config::{Config, HttpsMode},
    decision::{Asker, Decision, strictest},
    origin::{Readings, Scheme},
    robots::{Choice, Disguise, Explanation, Profile, Statement, audience, explain, statements},
};

/// Everything about one question.
pub(super) struct Report<'a> {
    pub(super) user_agent: &'a str,
    pub(super) url: &'a str,
    pub(super) target: &'a Target,
    pub(super) identity: &'a Identity<'a>,
    pub(super) profile: Profile,
    pub(super) decision: Decision,
    /// The token that the bot went by.
    pub(super) agent: &'a str,
    /// Where the rules of a robots.txt decide.
    pub(super) why: Option<Why<'a>>,
    pub(super) statements: Vec<Heard<'a>>,
    pub(super) source: &'a Source,
    /// Set where what was read is no robots.txt at all.
    pub(super) disguise: Option<Disguise>,
    /// Whether the proxy would want a proof of who asks before any of this.
    pub(super) needs_proof: bool,
    /// Set where requests for the URL would come through a CONNECT that is not intercepted.
    pub(super) unseen: Option<HttpsMode>,
}

/// The rules behind a decision.
pub(super) struct Why<'a> {
    pub(super) explanation: Explanation<'a>,
    pub(super) body: &'a [u8],
    /// The path on which it was decided, where that is not the one as sent.
    pub(super) read_as: Option<&'a [u8]>,
}

/// A statement, and whether it is for the bot; `None` where there is no bot.
pub(super) struct Heard<'a> {
    pub(super) said: Statement<'a>,
    pub(super) applies: Option<bool>,
}

// === impl Report ===

impl<'a> Report<'a> {
    pub(super) fn new(
        args: &'a ExplainArgs,
        config: &Config,
        target: &'a Target,
        (identity, asker): (&'a Identity<'a>, Asker<'a>),
        readings: &'a Readings<'a>,
        without_copy: Option<Decision>,
        source: &'a Source,
    ) -> Self {
        let profile = config.robots.profile;
        let answer = source.answer().unwrap_or(Answer::Unreachable(None));
        let decision = without_copy.unwrap_or_else(|| Decision::on_path(asker, answer, readings));
        let (agent, choice) = choose(asker, answer);
        let why = source.body().filter(|_| without_copy.is_none()).and_then(|body| {
            let picked = asker.pick(&answer.copy()?.robots).1;
            let (path, _) = strictest(picked, readings);
            let explanation = explain(profile, body, choice, path);
            debug_assert_eq!(explanation.rule.is_some(), decision.rule.is_some());
            Some(Why {
                explanation,
                body,
                read_as: (*path != *readings.sent).then_some(path),
            })
        });
        Self {
            user_agent: &args.agent,
            url: &args.url,
            target,
            identity,
            profile,
            decision,
            agent,
            statements: source
                .body()
                .map_or_else(Vec::new, |body| heard(statements(profile, body), identity, choice)),
            why,
            source,
            disguise: source.body().and_then(Disguise::of),
            needs_proof: needs_proof(config, &args.agent),
            unseen: Some(config.https.mode)
                .filter(|mode| target.origin.scheme == Scheme::Https && *mode != HttpsMode::Intercept),
        }
    }
}

/// Whether the proxy takes this User-Agent only from those who prove something.
fn needs_proof(config: &Config, user_agent: &str) -> bool {
    let unproven = config
        .bots
        .identify_by([user_agent.as_bytes()], &Proof::None, config.identity.required);
    matches!(unproven, Identity::Refused(Misfit::Unproven { .. }))
}

/// For whom each statement is. Who names no bot is not spoken to.
fn heard<'a>(statements: Vec<Statement<'a>>, identity: &Identity<'_>, choice: Choice<'_>) -> Vec<Heard<'a>> {
    let is_bot = matches!(identity, Identity::Bot(_) | Identity::Token(_));
    let audience: Vec<bool> = audience(&statements, choice).collect();
    std::iter::zip(statements, audience)
        .map(|(said, applies)| Heard {
            said,
            applies: is_bot.then_some(applies),
        })
        .collect()
}

/// The token that the bot goes by, and whether its rules are picked by it.
fn choose<'a>(asker: Asker<'a>, answer: Answer<'_>) -> (&'a str, Choice<'a>) {
    match answer.copy().map(|copy| asker.pick(&copy.robots)) {
        Some((token, agent)) if agent.is_specific() => (token, Choice::Product(token)),
        Some((token, _)) => (token, Choice::Everyone),
        None => (asker.token(), Choice::Everyone),
    }
}
