//! Why a URL would be allowed or refused, for a person or a program: the same for the command and for those who ask a
//! proxy that runs.
//!
//! A view of a [`Decision`], and around it of the rules that won and lost, by [`crate::robots::explain`]. Nothing is
//! decided, fetched or read here.

mod json;

pub(crate) use self::json::{FetchRecord, write as to_json};
use crate::{
    bot::{Identity, Misfit, Proof},
    config::Config,
    decision::{Decision, Scope},
    origin::Reading,
    robots::{Choice, Disguise, Explanation, Statement, audience, explain, statements},
};

/// Everything about one decision.
pub(crate) struct Report<'a> {
    pub(crate) decision: &'a Decision,
    /// As it was asked.
    pub(crate) user_agent: &'a str,
    pub(crate) url: &'a str,
    /// Where the rules of a robots.txt decide.
    pub(crate) why: Option<Why<'a>>,
    pub(crate) statements: Vec<Heard<'a>>,
    /// Set where what was read is no robots.txt at all.
    pub(crate) disguise: Option<Disguise>,
    /// Whether the proxy takes this User-Agent only from those who prove something.
    pub(crate) needs_proof: bool,
}

/// The rules behind a decision.
pub(crate) struct Why<'a> {
    pub(crate) explanation: Explanation<'a>,
    pub(crate) body: &'a [u8],
    /// The reading on which it was decided, where that is not the one as sent.
    pub(crate) read_as: Option<(Reading, Vec<u8>)>,
}

/// A statement, and whether it is for the bot; `None` where there is no bot.
pub(crate) struct Heard<'a> {
    pub(crate) statement: Statement<'a>,
    pub(crate) applies: Option<bool>,
}

// === impl Report ===

impl<'a> Report<'a> {
    /// Reports `decision`; `user_agent` and `url` are shown as they were asked. `body` is the text of the robots.txt, where there is
    /// one.
    pub(crate) fn new(
        config: &Config,
        decision: &'a Decision,
        user_agent: &'a str,
        url: &'a str,
        body: Option<&'a [u8]>,
    ) -> Self {
        let profile = decision.question.terms.policy.profile;
        let choice = match decision.is_specific() {
            true => Choice::Product(decision.token()),
            false => Choice::Everyone,
        };
        let why = body.and_then(|body| {
            // No rules decided where that is too complex and where no copy is needed.
            let (reading, path) = match &decision.question.scope {
                // The root stands for the whole site, where its rule does.
                Scope::Tunnel { .. } => (Reading::Sent, decision.rule.map(|_| b"/".to_vec())?),
                Scope::Path { .. } => decision.read()?,
            };
            let explanation = explain(profile, body, choice, &path);
            debug_assert_eq!(explanation.rule.is_some(), decision.rule.is_some());
            Some(Why {
                explanation,
                body,
                read_as: (reading != Reading::Sent).then_some((reading, path)),
            })
        });
        let identity = &decision.question.subject.identity;
        Self {
            decision,
            user_agent,
            url,
            statements: body.map_or_else(Vec::new, |body| heard(statements(profile, body), identity, choice)),
            why,
            disguise: body.and_then(Disguise::of),
            needs_proof: needs_proof(config, user_agent),
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
        .map(|(statement, applies)| Heard {
            statement,
            applies: is_bot.then_some(applies),
        })
        .collect()
}
