//! The configured bots, indexed so that the sender of a request is found quickly.
//!
//! Finding a bot allocates nothing. If several bots match, the first one in the configuration wins.

use std::fmt;
use std::sync::Arc;

use super::pattern::{may_begin, name_at};
use super::{AcceptedProofs, AgentPattern, Bot, Cause, Credentials, Identity, product};

/// The configured bots, in the order of the configuration.
#[derive(Clone, Default)]
pub struct Bots {
    bots: Box<[Arc<Bot>]>,
    /// The `user-agents` patterns without a `*`, indexed by their first byte in lower case, so that one pass over a
    /// User-Agent field finds them all. The table has 256 entries, or none if there are no bots.
    names: Box<[Vec<Name>]>,
    /// The `user-agents` patterns with a `*`, in the order of the configuration, each with the index of its bot.
    globs: Vec<(usize, AgentPattern)>,
    with_proofs: Box<[usize]>,
    by_certificate: Box<[usize]>,
    by_network: Box<[usize]>,
    /// The names and product tokens that only a client with a proof may use, and the part of each that Google's parser
    /// reads. Indexed like `names`.
    claims: Box<[Vec<Name>]>,
    credentials: Option<Credentials>,
}

#[derive(Clone)]
struct Name {
    text: Box<[u8]>,
    bot: usize,
}

// === impl Bots ===

impl Bots {
    /// Indexes the bots. If several match a request, the first one in `bots` wins.
    pub fn new(bots: Vec<Arc<Bot>>) -> Self {
        let mut names = vec![Vec::new(); if bots.is_empty() { 0 } else { 256 }];
        let mut globs = Vec::new();
        for (index, bot) in bots.iter().enumerate() {
            for pattern in &bot.user_agents {
                if pattern.is_glob() {
                    globs.push((index, pattern.clone()));
                } else if let Some(first) = pattern.as_str().bytes().next() {
                    let name = Name {
                        text: pattern.as_str().as_bytes().into(),
                        bot: index,
                    };
                    names[usize::from(first.to_ascii_lowercase())].push(name);
                }
            }
        }
        let indices = |has: fn(&AcceptedProofs) -> bool| -> Box<[usize]> {
            let those = bots.iter().enumerate().filter(|(_, bot)| has(&bot.accepted_proofs));
            those.map(|(index, _)| index).collect()
        };
        let with_proofs = indices(AcceptedProofs::are_required);
        Self {
            claims: claims(&bots, &with_proofs),
            with_proofs,
            by_certificate: indices(|accepted_proofs| !accepted_proofs.certificates.is_empty()),
            by_network: indices(|accepted_proofs| !accepted_proofs.networks.is_empty()),
            bots: bots.into(),
            names: names.into(),
            globs,
            credentials: None,
        }
    }

    #[must_use]
    pub fn with_credentials(mut self, mut credentials: Credentials) -> Self {
        let takes = |bot: &Bot, name: &str| {
            bot.accepted_proofs
                .credentials
                .iter()
                .any(|credential| **credential == *name)
        };
        credentials.assign(|name| {
            let with_proofs = self.with_proofs().filter(|(_, bot)| takes(bot, name));
            with_proofs.map(|(index, _)| index).collect()
        });
        self.credentials = Some(credentials);
        self
    }

    /// Returns the credentials from the credentials file. Without this file, Proxy-Authorization fields have no effect.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the names of the credentials that no bot refers to, sorted.
    pub fn idle_credentials(&self) -> Vec<&str> {
        self.credentials.as_ref().map(Credentials::idle).unwrap_or_default()
    }

    /// Returns the credentials that bots refer to but that the credentials file does not contain, each as the names of
    /// the bot and the credential.
    pub fn missing_credentials(&self) -> Vec<(&str, &str)> {
        let Some(credentials) = &self.credentials else {
            return Vec::new();
        };
        self.bots
            .iter()
            .flat_map(|bot| {
                bot.accepted_proofs
                    .credentials
                    .iter()
                    .map(move |name| (&*bot.name, &**name))
            })
            .filter(|(_, name)| !credentials.has(name))
            .collect()
    }

    pub(super) fn with_proofs(&self) -> impl Iterator<Item = (usize, &Arc<Bot>)> {
        self.at(&self.with_proofs)
    }

    pub(super) fn by_certificate(&self) -> impl Iterator<Item = (usize, &Arc<Bot>)> {
        self.at(&self.by_certificate)
    }

    pub(super) fn by_network(&self) -> impl Iterator<Item = (usize, &Arc<Bot>)> {
        self.at(&self.by_network)
    }

    fn at<'a>(&'a self, indices: &'a [usize]) -> impl Iterator<Item = (usize, &'a Arc<Bot>)> {
        indices.iter().filter_map(|&index| Some((index, self.bots.get(index)?)))
    }

    /// Returns the first bot for which `claims` contains `token`, ignoring case.
    pub(super) fn claimed_by(&self, token: &str) -> Option<&Arc<Bot>> {
        let first = token.bytes().next()?.to_ascii_lowercase();
        let names = self.claims.get(usize::from(first))?;
        let name = names
            .iter()
            .find(|name| name.text.eq_ignore_ascii_case(token.as_bytes()))?;
        self.bots.get(name.bot)
    }

    /// Identifies the sender of a request by its User-Agent fields alone, without a proof.
    pub fn identify<'h>(&self, user_agents: impl IntoIterator<Item = &'h [u8]>) -> Identity<'h> {
        let mut user_agents = user_agents.into_iter();
        let Some(field) = user_agents.next() else {
            return Identity::Unidentified(Cause::Missing);
        };
        if user_agents.next().is_some() {
            return Identity::Unidentified(Cause::Several);
        }
        let field = field.trim_ascii();
        if field.is_empty() {
            return Identity::Unidentified(Cause::Missing);
        }
        if let Some(bot) = self.by_user_agent(field) {
            return Identity::Bot(Arc::clone(bot));
        }
        match product::token(field) {
            Ok(token) => Identity::Token(token.into()),
            Err(cause) => Identity::Unidentified(cause),
        }
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Bot>> {
        self.bots.iter().find(|bot| &*bot.name == name)
    }

    /// Iterates over the bots in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Bot>> {
        self.bots.iter()
    }

    pub fn len(&self) -> usize {
        self.bots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bots.is_empty()
    }

    fn by_user_agent(&self, field: &[u8]) -> Option<&Arc<Bot>> {
        let by_name = self.first_name(field);
        let by_glob = self
            .globs
            .iter()
            .take_while(|(bot, _)| by_name.is_none_or(|best| *bot < best))
            .find(|(_, pattern)| pattern.matches(field))
            .map(|(bot, _)| *bot);
        self.bots.get(by_glob.or(by_name)?)
    }

    /// Returns the index of the first bot that has a matching pattern for `field`. Looks only at patterns without a
    /// `*`.
    fn first_name(&self, field: &[u8]) -> Option<usize> {
        if self.names.is_empty() {
            return None;
        }
        (0..field.len())
            .filter(|&at| may_begin(field, at))
            .filter_map(|at| {
                let names = self.names.get(usize::from(field[at].to_ascii_lowercase()))?;
                let name = names.iter().find(|name| name_at(&name.text, field, at))?;
                Some(name.bot)
            })
            .min()
    }
}

fn claims(bots: &[Arc<Bot>], indices: &[usize]) -> Box<[Vec<Name>]> {
    let mut claims = vec![Vec::new(); if indices.is_empty() { 0 } else { 256 }];
    for &index in indices {
        for token in bots.get(index).into_iter().flat_map(|bot| bot.goes_by()) {
            // Of `MJ12bot` in a robots.txt, Google's parser reads only `MJ`. A client that calls itself `MJ` would get
            // the rules for `MJ12bot`, so it must prove that it is this bot.
            for text in [token, letters(token)] {
                if let Some(first) = text.bytes().next() {
                    let text = text.as_bytes().into();
                    claims[usize::from(first.to_ascii_lowercase())].push(Name { text, bot: index });
                }
            }
        }
    }
    claims.into()
}

/// Returns the part of a token that Google's parser reads in a robots.txt: the letters, `-` and `_` at its start.
fn letters(token: &str) -> &str {
    let end = token.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '-' | '_')));
    &token[..end.unwrap_or(token.len())]
}

impl PartialEq for Bots {
    fn eq(&self, other: &Self) -> bool {
        self.bots == other.bots && self.credentials == other.credentials
    }
}

impl Eq for Bots {}

impl fmt::Debug for Bots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.bots).finish()
    }
}
