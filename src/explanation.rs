//! Explains why a URL would be allowed or refused, for the `explain` command and the API. Makes no decision and does no
//! I/O.

mod json;

pub(crate) use self::json::{FetchRecord, write as to_json};
use crate::{
    bot::{Identity, IdentityMismatch, Proof},
    config::Config,
    decision::{Basis, Decision, Reason, Scope, TdmrepState, UsageReport},
    origin::Reading,
    robots::{Choice, Disguise, Explanation, Group, Statement, explain, groups_for, statements, which_apply},
    usage::{UseRefusal, UseStatement},
};

pub(crate) struct ExplainedDecision<'a> {
    pub(crate) decision: &'a Decision,
    pub(crate) user_agent: &'a str,
    pub(crate) url: &'a str,
    /// The groups of the robots.txt that apply to the bot. `None` if there is no robots.txt, or the decision did not
    /// depend on it.
    pub(crate) groups: Option<(Choice<'a>, Vec<Group<'a>>)>,
    /// How the rules apply to the path. `None` if robotgate could not or need not apply them.
    pub(crate) why: Option<Why<'a>>,
    pub(crate) statements: Vec<AudienceStatement<'a>>,
    /// What kind of file was fetched or read, if it is not a robots.txt.
    pub(crate) disguise: Option<Disguise>,
    /// The kinds of proof that the bot can show. `None` if the proxy serves the bot without a proof.
    pub(crate) proofs: Option<String>,
    /// Whether the site's `tdmrep.json` was looked up. `None` if the decision does not need this file.
    pub(crate) tdmrep_asked: Option<bool>,
}

pub(crate) struct Why<'a> {
    pub(crate) explanation: Explanation<'a>,
    pub(crate) body: &'a [u8],
    /// The reading of the path that robotgate decided by, and the path in this reading. `None` for the path as sent.
    pub(crate) read_as: Option<(Reading, Vec<u8>)>,
    pub(crate) line: Option<u32>,
}

/// A statement, and whether it applies to the bot. `applies` is `None` if no bot was identified.
pub(crate) struct AudienceStatement<'a> {
    pub(crate) statement: Statement<'a>,
    pub(crate) applies: Option<bool>,
}

// === impl ExplainedDecision ===

impl<'a> ExplainedDecision<'a> {
    /// `body` is the text of the robots.txt, or `None` if it was not read or the site has none.
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
        let depends_on_robots = matches!(decision.reason.basis(), Basis::Site | Basis::Clock);
        let groups = body.filter(|_| depends_on_robots);
        let groups = groups.map(|body| groups_for(profile, body, choice));
        let why = body.and_then(|body| {
            // There is nothing to explain if no rules were applied: the robots.txt is too complex, or was not needed.
            let (reading, path) = match &decision.question.scope {
                // The path in a tunnel is not visible, but a rule for the whole site also decides `/`.
                Scope::Tunnel { .. } => (Reading::Sent, decision.rule.map(|_| b"/".to_vec())?),
                // The use of the content decided, not a rule. The rules allow every reading of the path.
                Scope::Path { .. } if decision.reason == Reason::Usage => {
                    (Reading::Sent, decision.target().decided_path().to_vec())
                }
                Scope::Path { .. } => decision.read()?,
            };
            let mut explanation = explain(profile, body, choice, &path);
            if decision.reason == Reason::Usage {
                explanation.rule = None;
                explanation.competitors.clear();
            }
            debug_assert_eq!(explanation.rule.is_some(), decision.rule.is_some());
            Some(Why {
                explanation,
                body,
                read_as: (reading != Reading::Sent).then_some((reading, path)),
                line: deciding_line(decision),
            })
        });
        let identity = &decision.question.subject.identity;
        Self {
            decision,
            user_agent,
            url,
            statements: body.map_or_else(Vec::new, |body| {
                with_applies(statements(profile, body), identity, choice)
            }),
            groups,
            why,
            disguise: body.and_then(Disguise::of),
            proofs: needs_proof(config, user_agent).then(|| proofs_of(config, user_agent)),
            tdmrep_asked: decision.usage.as_deref().and_then(is_tdmrep_asked),
        }
    }
}

fn is_tdmrep_asked(usage: &UsageReport) -> Option<bool> {
    usage.tdmrep.map(|state| state != TdmrepState::NotAsked)
}

/// Returns the line of the robots.txt that decided: a rule, or a statement that forbids a use of the content.
pub(crate) fn deciding_line(decision: &Decision) -> Option<u32> {
    let refused = decision.usage.as_deref().and_then(|usage| usage.refused.as_ref());
    let statement = refused.and_then(UseRefusal::statement);
    let line = statement.and_then(UseStatement::line);
    line.or_else(|| decision.rule().map(|rule| rule.line))
}

pub(crate) fn needs_proof(config: &Config, user_agent: &str) -> bool {
    let unproven = config
        .bots
        .identify_by([user_agent.as_bytes()], &Proof::None, config.identity.required);
    matches!(unproven, Identity::Refused(IdentityMismatch::Unproven { .. }))
}

fn proofs_of(config: &Config, user_agent: &str) -> String {
    let fields = [user_agent.as_bytes()];
    match config
        .bots
        .identify_by(fields, &Proof::Assumed, config.identity.required)
    {
        Identity::Bot(bot) if bot.accepted_proofs.are_required() => bot.accepted_proofs.kinds().to_string(),
        // The bot's own configuration requires no proof, but with `identity.required`, every client needs one.
        _ => "a credential, a certificate or an address in one of its networks".to_owned(),
    }
}

fn with_applies<'a>(
    statements: Vec<Statement<'a>>,
    identity: &Identity<'_>,
    choice: Choice<'_>,
) -> Vec<AudienceStatement<'a>> {
    let is_bot = matches!(identity, Identity::Bot(_) | Identity::Token(_));
    let applying: Vec<bool> = which_apply(&statements, choice).collect();
    std::iter::zip(statements, applying)
        .map(|(statement, applies)| AudienceStatement {
            statement,
            applies: is_bot.then_some(applies),
        })
        .collect()
}
