//! `[[bot]]`: which bots there are, how they are known, and what proves that a client is one of them.
//!
//! It sees each entry and all of them together, and never a request.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use super::check::Checker;
use super::identity::Named;
use super::written::{self, Table};
use crate::bot::{AgentPattern, Bot, Bots, is_token};

mod bindings;

/// What the entries so far have taken, in lower case.
#[derive(Default)]
struct Taken {
    names: HashMap<String, usize>,
    user_agents: HashMap<String, String>,
}

pub(super) fn check(written: Vec<Spanned<Table<written::Bot>>>, named: Named, checker: &mut Checker<'_>) -> Bots {
    let mut taken = Taken::default();
    let bots = written
        .into_iter()
        .filter_map(|entry| taken.bot(entry, &named, checker))
        .map(Arc::new);
    let bots = Bots::new(bots.collect());
    match named {
        Named::File(Some(credentials)) => bots.with_credentials(credentials),
        Named::File(None) | Named::None | Named::Unread => bots,
    }
}

// === impl Taken ===

impl Taken {
    fn bot(&mut self, entry: Spanned<Table<written::Bot>>, named: &Named, checker: &mut Checker<'_>) -> Option<Bot> {
        let table = entry.span();
        let Table(written) = entry.into_inner();
        // All are checked before the first that fails ends the matter, so that all mistakes are reported.
        let name = checker
            .required(written.name, &table, ("name", r#""AcmeBot""#))
            .and_then(|name| self.name(&name, checker));
        let user_agents = checker
            .required(written.user_agents, &table, ("user-agents", r#"["AcmeBot"]"#))
            .map(|list| self.user_agents(list, name.as_deref().unwrap_or_default(), checker));
        let robots_agents = match written.robots_agents {
            Some(list) => Some(robots_agents(list, checker)),
            None => name.as_deref().and_then(|name| name_as_agent(name, &table, checker)),
        };
        let own = name.as_deref().unwrap_or_default();
        let bindings = bindings::Written {
            credentials: written.credentials,
            certificates: written.certificates,
            networks: written.networks,
        };
        let bindings = bindings.check(own, named, checker);
        Some(Bot {
            name: name?,
            user_agents: user_agents?,
            robots_agents: robots_agents?,
            enforcement: written.enforcement,
            bindings,
        })
    }

    fn name(&mut self, written: &Spanned<String>, checker: &mut Checker<'_>) -> Option<Arc<str>> {
        let name = checker.parsed(written, |text| {
            if text.trim().is_empty() {
                Err("a bot needs a name, which the log calls it by".to_owned())
            } else if text.trim() != text || text.chars().any(char::is_control) {
                Err(format!(
                    "{text:?} holds characters that do not print, or white space around it; take them out"
                ))
            } else {
                Ok(text.to_owned())
            }
        })?;
        let line = checker.line(&written.span());
        if let Some(first) = self.names.insert(name.to_lowercase(), line) {
            checker.complain(
                written.span(),
                format!("line {first} has a bot of this name already; write another name"),
            );
        }
        Some(name.into())
    }

    fn user_agents(
        &mut self,
        list: Spanned<Vec<Spanned<String>>>,
        name: &str,
        checker: &mut Checker<'_>,
    ) -> Vec<AgentPattern> {
        if list.get_ref().is_empty() {
            checker.complain(
                list.span(),
                "nothing in this list; write how the bot's User-Agent names it, like \"AcmeBot\"",
            );
        }
        let mut patterns = Vec::new();
        for item in list.into_inner() {
            let Some(pattern) = checker.parsed(&item, pattern) else {
                continue;
            };
            // Only the first of two equal entries could ever be found.
            if let Some(first) = self
                .user_agents
                .insert(pattern.as_str().to_lowercase(), name.to_owned())
            {
                let message = format!("\"{pattern}\" already stands for the bot \"{first}\"; one of them must go");
                checker.complain(item.span(), message);
            }
            patterns.push(pattern);
        }
        patterns
    }
}

fn pattern(text: &str) -> Result<AgentPattern, String> {
    let pattern = AgentPattern::new(text)
        .map_err(|_| "an empty entry would be found in every User-Agent; write a name, like \"AcmeBot\"".to_owned())?;
    if pattern.as_str().bytes().all(|byte| byte == b'*') {
        return Err(format!(
            "\"{pattern}\" would be found in every User-Agent; write a name beside the *, like \"Acme*\""
        ));
    }
    if pattern.as_str().chars().any(char::is_control) {
        return Err(format!(
            "{text:?} holds characters that no User-Agent can; take them out"
        ));
    }
    Ok(pattern)
}

fn robots_agents(list: Spanned<Vec<Spanned<String>>>, checker: &mut Checker<'_>) -> Vec<Box<str>> {
    if list.get_ref().is_empty() {
        checker.complain(
            list.span(),
            "nothing in this list; write the names that robots.txt files know, or leave the key out",
        );
    }
    checker.each(Some(list), |text| {
        let product = text.split(['/', ' ']).next().filter(|product| is_token(product));
        match product {
            _ if text == "*" => Err("\"*\" comes last of its own accord; take it out".to_owned()),
            _ if is_token(text) => Ok(text.into()),
            Some(product) => Err(format!("\"{text}\" is more than a product token; write \"{product}\"")),
            None => Err(format!(
                "\"{text}\" is not a product token; write one word without spaces, like \"AcmeBot\""
            )),
        }
    })
}

/// Without `robots-agents` the name is what robots.txt files are searched for, if it can stand in one.
fn name_as_agent(name: &str, table: &Range<usize>, checker: &mut Checker<'_>) -> Option<Vec<Box<str>>> {
    if is_token(name) && name != "*" {
        return Some(vec![name.into()]);
    }
    let message =
        format!("\"{name}\" is not a product token, so robots-agents must say which ones robots.txt files may use");
    checker.missing(table.clone(), "robots-agents", message);
    None
}
