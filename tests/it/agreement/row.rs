//! A row of the table for one gate: a client, a URL and the answer.

use serde_json::{Value, json};

use super::{
    sites::{MIXED, SLOW_PATH, Sites, find},
    table::{CLIENTS, Client, Proof, TableRow},
};
use crate::{
    admin::escaped,
    support::{Ask, Gate},
};

#[derive(Clone)]
pub struct Row {
    pub client: &'static Client,
    pub url: String,
    pub expected: &'static str,
    /// The text of the robots.txt, if the question can be asked with a given text.
    pub robots: Option<&'static str>,
    /// What robotgate's copy of the robots.txt means. Compared only if the decision is based on a copy.
    pub holds: &'static str,
}

// === impl Row ===

impl Row {
    /// Converts a row of `LATE_ROWS` (if `is_late`) or of `ROWS` for `gate`. Expects the answer in `column`, or the
    /// only answer.
    pub fn new(row: &TableRow, column: usize, is_late: bool, sites: &Sites, gate: &Gate) -> Self {
        let (name, what, answers) = *row;
        let words: Vec<&str> = what.split(' ').collect();
        let (url, robots, holds) = match words[..] {
            [way, name, path] => {
                let (_, site) = find(name);
                let holds = if is_late { site.holds_late } else { site.holds };
                let path = path.replace("{slow}", &SLOW_PATH);
                (sites.url(way, name, &path), site.robots.text(), holds)
            }
            _ => {
                let url = what
                    .replace("{http}", &sites.port("mixed").to_string())
                    .replace("{ftp}", &sites.ftp.address().to_string())
                    .replace("{proxy}", &gate.address().to_string())
                    .replace("{admin}", &gate.admin_address().to_string());
                // The address of `inside.example` is refused. That is known only after the name has been resolved, so
                // the question cannot be asked with a given robots.txt.
                match what.contains("inside.example") {
                    true => (url, None, "egress"),
                    false => (url, Some(MIXED), "rules"),
                }
            }
        };
        Self {
            client: find_client(name),
            url,
            expected: answers.get(column).unwrap_or(&answers[0]),
            robots,
            holds,
        }
    }

    /// Sets this client's User-Agent. Adds its credential too if `to_proxy`; a request inside a tunnel has none.
    pub fn dress<'a>(&self, ask: Ask<'a>, to_proxy: bool) -> Ask<'a> {
        let ask = ask.without("User-Agent");
        let ask = match self.client.agent {
            "" => ask,
            agent => ask.user_agent(agent),
        };
        match self.client.proof {
            Proof::Credential(credential) if to_proxy => {
                let encoded = data_encoding::BASE64.encode(credential.as_bytes());
                ask.header("Proxy-Authorization", &format!("Basic {encoded}"))
            }
            _ => ask,
        }
    }

    /// Returns whether a bot can send this request. Only a question to the API or a command can name purposes.
    pub fn can_be_sent(&self) -> bool {
        self.client.purposes.is_empty()
    }

    /// Returns whether the API and the command can be asked. They can assume no proof or the proof that the bot needs,
    /// but not a wrong proof.
    pub fn can_be_asked(&self) -> bool {
        self.client.fits
    }

    /// Returns whether a command can know the answer. A command has no copy of a robots.txt that the site has stopped
    /// serving.
    pub fn can_be_fetched(&self) -> bool {
        self.holds != "last-copy"
    }

    pub fn proof(&self) -> &'static str {
        match self.client.proof {
            Proof::None => "none",
            _ => "assumed",
        }
    }

    pub fn query(&self) -> String {
        let (agent, url) = (escaped(self.client.agent), escaped(&self.url));
        let purposes = match self.client.purposes {
            [] => String::new(),
            purposes => format!("&purpose={}", purposes.join(",")),
        };
        format!("agent={agent}&url={url}&proof={}{purposes}", self.proof())
    }

    pub fn question(&self) -> Value {
        let mut question = json!({"agent": self.client.agent, "url": self.url, "proof": self.proof()});
        if !self.client.purposes.is_empty() {
            question["purpose"] = json!(self.client.purposes);
        }
        question
    }

    /// Returns whether the proxy itself responds, and decides nothing.
    pub fn is_own(&self) -> bool {
        self.expected == "own"
    }

    /// Returns whether the request comes too early. Only the proxy then defers it; the API and the commands say what
    /// the site allows.
    pub fn is_deferred(&self) -> bool {
        self.expected.starts_with('=')
    }

    pub fn verdict(&self) -> &'static str {
        match self.expected {
            "-unverifiable" | "~unverifiable" => "unverifiable",
            expected if expected.starts_with('+') => "allow",
            expected if expected.starts_with('=') => "defer",
            _ => "deny",
        }
    }

    pub fn reason(&self) -> &'static str {
        &self.expected[1..]
    }

    /// Returns verdict, reason, and whether the request is forwarded.
    pub fn outcome(&self) -> Value {
        json!([self.verdict(), self.reason(), self.expected.starts_with(['+', '~'])])
    }

    /// Returns a part of the message that `robotgate check` should print. `None` if an `[[expect]]` cannot express this
    /// question, or does not give the answer in the table.
    pub fn expectation_error(&self) -> Option<String> {
        let is_unproven = self.reason() == "unauthenticated";
        let can_be_expressed = self.robots.is_some() && self.can_be_asked() && self.client.purposes.len() < 2;
        if !can_be_expressed || self.is_own() || is_unproven || self.is_deferred() {
            return None;
        }
        let purpose = self.client.purposes.first();
        let purpose = purpose.map_or_else(String::new, |purpose| format!(" with the purpose \"{purpose}\""));
        Some(format!(
            "for {} as \"{}\"{purpose}, but the verdict is \"{}\" (reason: {}",
            self.url,
            self.client.agent,
            self.verdict(),
            self.reason()
        ))
    }
}

fn find_client(name: &str) -> &'static Client {
    let found = CLIENTS.iter().find(|client| client.name == name);
    found.unwrap_or_else(|| panic!("there is no client {name}"))
}
