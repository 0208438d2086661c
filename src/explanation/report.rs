//! All that is told, before it is written: the decision, and what stands behind it.
//!
//! The decision comes first and from [`Decision`]; the explanation is of the reading that decided.

use std::borrow::Cow;

use crate::{
    bot::{Identity, Misfit, Proof},
    config::{Config, HttpsMode},
    copy::Answer,
    decision::{Asker, Decision},
    origin::{Reading, Readings, Scheme, Target},
    robots::{Choice, Disguise, Explanation, Profile, Statement, audience, explain, statements},
};

/// What is asked, and by whom.
pub(crate) struct Question<'a> {
    pub(crate) user_agent: &'a str,
    pub(crate) url: &'a str,
    pub(crate) target: &'a Target,
    pub(crate) identity: &'a Identity<'a>,
    pub(crate) asker: Asker<'a>,
    pub(crate) readings: &'a Readings<'a>,
}

/// What holds of the robots.txt, and its text where there is one. The default is of none that was asked for.
#[derive(Default)]
pub(crate) struct Evidence<'a> {
    pub(crate) answer: Option<Answer<'a>>,
    pub(crate) body: Option<&'a [u8]>,
}

/// Everything about one question.
pub(crate) struct Report<'a> {
    pub(crate) user_agent: &'a str,
    pub(crate) url: &'a str,
    pub(crate) target: &'a Target,
    pub(crate) identity: &'a Identity<'a>,
    pub(crate) profile: Profile,
    pub(crate) decision: Decision,
    /// The token that the bot went by.
    pub(crate) agent: &'a str,
    /// Where the rules of a robots.txt decide.
    pub(crate) why: Option<Why<'a>>,
    pub(crate) statements: Vec<Heard<'a>>,
    /// Set where what was read is no robots.txt at all.
    pub(crate) disguise: Option<Disguise>,
    /// Whether the proxy would want a proof of who asks before any of this.
    pub(crate) needs_proof: bool,
    /// Set where requests for the URL would come through a CONNECT that is not intercepted.
    pub(crate) unseen: Option<HttpsMode>,
}

/// The rules behind a decision.
pub(crate) struct Why<'a> {
    pub(crate) explanation: Explanation<'a>,
    pub(crate) body: &'a [u8],
    /// The reading on which it was decided, where that is not the one as sent.
    pub(crate) read_as: Option<(Reading, Cow<'a, [u8]>)>,
}

/// A statement, and whether it is for the bot; `None` where there is no bot.
pub(crate) struct Heard<'a> {
    pub(crate) said: Statement<'a>,
    pub(crate) applies: Option<bool>,
}

// === impl Report ===

impl<'a> Report<'a> {
    /// Of a decision that needs no robots.txt, or else the one that `evidence` comes to.
    pub(crate) fn new(
        config: &Config,
        question: &Question<'a>,
        without_copy: Option<Decision>,
        evidence: &Evidence<'a>,
    ) -> Self {
        let Question {
            user_agent,
            url,
            target,
            identity,
            asker,
            readings,
        } = *question;
        let body = evidence.body;
        let profile = config.robots.profile;
        let answer = evidence.answer.unwrap_or(Answer::Unreachable(None));
        let decision = without_copy.unwrap_or_else(|| Decision::on_path(asker, answer, readings));
        let (agent, choice) = choose(asker, answer);
        let why = body.filter(|_| without_copy.is_none()).and_then(|body| {
            // No rules decided where that is too complex.
            let reading = decision.reading?;
            let path = readings.text(reading);
            let explanation = explain(profile, body, choice, &path);
            debug_assert_eq!(explanation.rule.is_some(), decision.rule.is_some());
            Some(Why {
                explanation,
                body,
                read_as: (reading != Reading::Sent).then_some((reading, path)),
            })
        });
        Self {
            user_agent,
            url,
            target,
            identity,
            profile,
            decision,
            agent,
            statements: body.map_or_else(Vec::new, |body| heard(statements(profile, body), identity, choice)),
            why,
            disguise: body.and_then(Disguise::of),
            needs_proof: needs_proof(config, user_agent),
            unseen: Some(config.https.mode)
                .filter(|mode| target.origin.scheme == Scheme::Https && *mode != HttpsMode::Intercept),
        }
    }
}

/// Whether the proxy takes this User-Agent only from those who prove something.
pub(crate) fn needs_proof(config: &Config, user_agent: &str) -> bool {
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
