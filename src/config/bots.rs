//! `[identity]` and `[[bot]]`: the bots, how they prove who they are, and what happens to requests that name no bot.
//!
//! This module does not identify clients. It reads only the credentials file, and never quotes it in an error.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;

use super::checker::{List, Reads, Text};
use super::egress::network;
use super::pace::DELAYS;
use super::table::Table;
use crate::bot::{
    AcceptedProofs, AgentPattern, BadLine, Bot, Bots, CertificateName, Credentials, Enforcement, Unidentified, is_name,
    is_token,
};
use crate::files::{self, SecretError};
use crate::usage::Purpose;

/// The `[identity]` section. The credentials themselves are in [`Bots::credentials`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRules {
    pub unidentified: Unidentified,
    /// The enforcement of each `[[bot]]` that does not set its own, and of most requests that belong to no `[[bot]]`.
    pub enforcement: Enforcement,
    /// The credentials file. If it is `None`, robotgate neither asks for credentials nor checks them.
    pub credentials: Option<PathBuf>,
    /// Whether clients without proof are refused.
    pub required: bool,
}

/// The values of `identity.enforcement`. `exempt` is allowed only for single bots: if all bots were exempt, robotgate
/// would enforce nothing.
#[derive(Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GeneralEnforcement {
    Enforce,
    Report,
}

/// The credentials file that `[identity]` names.
enum Named {
    None,
    /// `None` if the file could not be read, which is already reported as a mistake.
    File(Option<Credentials>),
    /// The file was not read, because the configuration is not loaded with `Reads::All`.
    Unread,
}

/// What a `[[bot]]` entry is checked against. The keys of both maps are in lower case.
struct TakenNames {
    named: Named,
    enforcement: Enforcement,
    has_client_roots: bool,
    is_paced: bool,
    /// Maps the name of each bot to its line in the file.
    names: HashMap<String, usize>,
    /// Maps each entry of `user-agents` to the name of its bot.
    user_agents: HashMap<String, String>,
}

pub(super) fn read(file: &Table<'_>) -> (IdentityRules, Bots) {
    let (identity, named) = file.table("identity", IdentityRules::read);
    let mut taken = TakenNames {
        named,
        enforcement: identity.enforcement,
        has_client_roots: file.span_of("proxy.tls.client-roots").is_some(),
        is_paced: file.span_of("pace").is_some(),
        names: HashMap::new(),
        user_agents: HashMap::new(),
    };
    let bots = file.tables("bot", |table| taken.bot(table).map(Arc::new));
    let bots = Bots::new(bots);
    let bots = match taken.named {
        Named::File(Some(credentials)) => bots.with_credentials(credentials),
        Named::File(None) | Named::None | Named::Unread => bots,
    };
    if identity.required
        && file.span_of("identity.credentials").is_none()
        && !bots.iter().any(|bot| bot.accepted_proofs.are_required())
        && let Some(span) = file.span_of("identity.required")
    {
        file.checker.complain(
            span,
            "no client has a way to prove which bot it is, so robotgate would refuse them all; name a file \
             with credentials in [identity] (credentials = \"FILE\"), or write certificates or networks in a [[bot]]",
        );
    }
    (identity, bots)
}

// === impl IdentityRules ===

impl IdentityRules {
    fn read(table: &Table<'_>) -> (Self, Named) {
        let unidentified = table.choice_or("unidentified", Unidentified::default());
        let enforcement = match table.choice_or("enforcement", GeneralEnforcement::Enforce) {
            GeneralEnforcement::Enforce => Enforcement::Enforce,
            GeneralEnforcement::Report => Enforcement::Report,
        };
        let checker = table.checker;
        let raw = table.text("credentials");
        let path = raw.as_ref().and_then(|raw| checker.path(raw));
        let named = match (raw, &path) {
            (Some(_), _) if checker.reads != Reads::All => Named::Unread,
            (Some(raw), Some(path)) => {
                let read = read_credentials(path).map_err(|complaints| {
                    for complaint in complaints {
                        checker.complain(raw.span(), complaint);
                    }
                });
                Named::File(read.ok())
            }
            (Some(_), None) => Named::File(None),
            (None, _) => Named::None,
        };
        let rules = Self {
            unidentified,
            enforcement,
            credentials: path,
            required: table.flag_or("required", false),
        };
        (rules, named)
    }
}

// === impl TakenNames ===

impl TakenNames {
    fn bot(&mut self, table: &Table<'_>) -> Option<Bot> {
        // Check all keys before returning early, so that all mistakes are reported.
        let raw_name = table.required("name", r#""AcmeBot""#, Table::text);
        let name = raw_name.as_ref().and_then(|name| self.name(name, table));
        let bot_name = name.as_deref().unwrap_or_default();
        let user_agents = table.required("user-agents", r#"["AcmeBot"]"#, Table::list);
        let user_agents = user_agents.map(|list| self.user_agents(list, bot_name, table));
        let robots_agents = match table.list("robots-agents") {
            Some(list) => Some(robots_agents(list, table)),
            None => name.as_deref().and_then(|name| name_as_agent(name, table)),
        };
        let enforcement = table.choice_or("enforcement", self.enforcement);
        let exempt_hosts = table.checker.each(table.list("exempt-hosts"), str::parse);
        let delay = table.time("delay", DELAYS);
        if let Some(delay) = delay.as_ref().filter(|_| !self.is_paced) {
            table.checker.complain(
                delay.span(),
                "this has no effect without a [pace] section; write [pace], which may be empty",
            );
        }
        let purposes = table.list("purposes");
        table.has_words("purposes", Purpose::ALL.map(Purpose::as_str));
        if let Some(list) = purposes.as_ref().filter(|list| list.get_ref().is_empty()) {
            table.checker.complain(
                list.span(),
                r#"this list is empty; write a purpose like "search", or remove the key"#,
            );
        }
        let purposes = table.checker.each(purposes, str::parse::<Purpose>);
        let accepted_proofs = self.accepted_proofs(raw_name.as_ref().filter(|_| name.is_some()), table);
        Some(Bot {
            name: name?,
            user_agents: user_agents?,
            robots_agents: robots_agents?,
            enforcement,
            exempt_hosts,
            delay: delay.map(Spanned::into_inner),
            purposes: purposes.into_iter().collect(),
            accepted_proofs,
        })
    }

    fn name(&mut self, raw: &Text<'_>, table: &Table<'_>) -> Option<Arc<str>> {
        let name = table.checker.parsed(raw, |text| {
            if text.trim().is_empty() {
                Err("the name is empty; write the name that this bot has in the log".to_owned())
            } else if text.trim() != text || text.chars().any(char::is_control) {
                Err(format!(
                    "{text:?} contains control characters, or white space at its beginning or end; remove them"
                ))
            } else {
                Ok(text.to_owned())
            }
        })?;
        let line = table.checker.line(&raw.span());
        match self.names.entry(name.to_lowercase()) {
            Entry::Occupied(first) => table.checker.complain(
                raw.span(),
                format!(
                    "the bot in line {} has this name too (letter case does not matter); write another name",
                    first.get()
                ),
            ),
            Entry::Vacant(free) => {
                free.insert(line);
            }
        }
        Some(name.into())
    }

    fn user_agents(&mut self, list: List<'_>, name: &str, table: &Table<'_>) -> Vec<AgentPattern> {
        if list.get_ref().is_empty() {
            table.checker.complain(
                list.span(),
                "this list is empty; write how the bot's User-Agent names it, like \"AcmeBot\"",
            );
        }
        let mut patterns = Vec::new();
        for item in list.into_inner() {
            let Some(pattern) = table.checker.parsed(&item, pattern) else {
                continue;
            };
            // For a client without a proof, only the first of two equal entries would match.
            match self.user_agents.entry(pattern.as_str().to_lowercase()) {
                Entry::Occupied(first) => {
                    let message = format!(
                        "the bot \"{}\" has \"{pattern}\" too; remove one of the two",
                        first.get()
                    );
                    table.checker.complain(item.span(), message);
                }
                Entry::Vacant(free) => {
                    free.insert(name.to_owned());
                }
            }
            patterns.push(pattern);
        }
        patterns
    }

    fn accepted_proofs(&self, bot_name: Option<&Text<'_>>, table: &Table<'_>) -> AcceptedProofs {
        let listed = table.list("credentials");
        let by_name = bot_name.filter(|_| listed.is_none());
        let credentials = match listed {
            Some(list) => table.checker.each(Some(list), |text| credential(text, &self.named)),
            None => Vec::from_iter(by_name.and_then(|name| default_credential(name.get_ref(), &self.named))),
        };
        let [certificates, networks] = ["certificates", "networks"].map(|key| table.list(key));
        for list in [&certificates, &networks].into_iter().flatten() {
            if list.get_ref().is_empty() {
                table
                    .checker
                    .complain(list.span(), "this list is empty; add an entry or remove the key");
            }
        }
        if let Some(list) = certificates.as_ref().filter(|list| !list.get_ref().is_empty())
            && !self.has_client_roots
        {
            table.checker.complain(
                list.span(),
                "no client can present a certificate; set client-roots in [proxy.tls] to the roots of these \
                 certificates",
            );
        }
        let accepted = AcceptedProofs {
            credentials,
            certificates: table.checker.each(certificates, |text| {
                CertificateName::new(text).map_err(|error| format!("\"{text}\" {error}"))
            }),
            networks: table.checker.each(networks, network),
        };
        // If there is a credentials file, a bot without the key `credentials` needs the credential with its own name.
        // If no credential can have this name, and the bot accepts no other proof, report a mistake: every client could
        // send requests as this bot.
        if let (Some(name), Named::File(_)) = (by_name, &self.named)
            && !accepted.are_required()
        {
            table.checker.complain(
                name.span(),
                format!(
                    "a bot without the key `credentials` needs a credential with the bot's name, but {:?} cannot be \
                     the name of a credential; write credentials = [\"NAME\"] in this [[bot]], or credentials = [] if \
                     the bot needs no credential",
                    name.get_ref()
                ),
            );
        }
        accepted
    }
}

fn pattern(text: &str) -> Result<AgentPattern, String> {
    let pattern = AgentPattern::new(text)
        .map_err(|_| "an empty entry would match every User-Agent; write a name, like \"AcmeBot\"".to_owned())?;
    if pattern.as_str().bytes().all(|byte| byte == b'*') {
        return Err(format!(
            "\"{pattern}\" would match every User-Agent; write a name with the *, like \"Acme*\""
        ));
    }
    if pattern.as_str().chars().any(char::is_control) {
        return Err(format!(
            "{text:?} contains control characters, which no User-Agent can contain; remove them"
        ));
    }
    Ok(pattern)
}

fn robots_agents(list: List<'_>, table: &Table<'_>) -> Vec<Box<str>> {
    if list.get_ref().is_empty() {
        table.checker.complain(
            list.span(),
            "this list is empty; write the names to look for in a robots.txt, or remove the key",
        );
    }
    table.checker.each(Some(list), |text| {
        let product = text.split(['/', ' ']).next().filter(|product| is_token(product));
        match product {
            _ if text == "*" => Err("remove \"*\": robotgate always looks for it last".to_owned()),
            _ if is_token(text) => Ok(text.into()),
            Some(product) => Err(format!(
                "\"{text}\" is more than a product token, which is one word without a \
                version; write \"{product}\""
            )),
            None => Err(format!(
                "\"{text}\" is not a product token; write one word of ASCII letters, digits, - and _, like \"AcmeBot\""
            )),
        }
    })
}

/// Without `robots-agents`, robotgate looks for the bot's name in a robots.txt, so the name must be a product token.
fn name_as_agent(name: &str, table: &Table<'_>) -> Option<Vec<Box<str>>> {
    if is_token(name) && name != "*" {
        return Some(vec![name.into()]);
    }
    let message = format!(
        "\"{name}\" is not one word of ASCII letters, digits, - and _, so no robots.txt can name it; write the name to \
            look for, like robots-agents = [\"AcmeBot\"], or change the bot's name"
    );
    table.missing("robots-agents", message);
    None
}

fn credential(text: &str, named: &Named) -> Result<Box<str>, String> {
    if !is_name(text) {
        return Err(format!(
            "{text:?} cannot be the name of a credential; write one word without a colon, like \"acme-prod\""
        ));
    }
    match named {
        Named::None => Err(format!(
            "\"{text}\" has to be in a credentials file, but none is configured; write credentials = \
             \"credentials\" in [identity]"
        )),
        // Also accept a name that the file lacks. If such a name were ignored, the bot might need no proof once its
        // credential is removed from the file.
        Named::File(_) | Named::Unread => Ok(text.into()),
    }
}

/// If there is a credentials file, a bot without the key `credentials` accepts the credential that has the bot's name,
/// even if the file lacks it.
fn default_credential(bot_name: &str, named: &Named) -> Option<Box<str>> {
    match named {
        Named::File(_) | Named::Unread => is_name(bot_name).then(|| bot_name.into()),
        Named::None => None,
    }
}

fn read_credentials(path: &Path) -> Result<Credentials, Vec<String>> {
    let bytes = files::read_secret(path).map_err(|error| match &error {
        SecretError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            vec![format!(
                "{error}, or create the file with \"robotgate credential add NAME --config FILE\""
            )]
        }
        _ => vec![error.to_string()],
    })?;
    let text =
        str::from_utf8(&bytes).map_err(|_| vec![format!("{} is not UTF-8; save the file as UTF-8", path.display())])?;
    let in_file = |bad: &BadLine| format!("{}:{bad}", path.display());
    Credentials::parse(text).map_err(|bad| bad.iter().map(in_file).collect())
}
