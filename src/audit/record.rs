//! The records of the log. Every record has all fields of its kind. A field that does not apply is `null`.

use std::{borrow::Cow, net::SocketAddr};

use serde::Serialize;

use super::{
    GenerationFields, Line,
    value::{Url, Value},
};
use crate::{
    copy::Sha256,
    decision::{Exemption, UsageReport},
    robots::{ChangedRule, ChangedStatement, GroupChangeKind},
    text::Timestamp,
    usage::UseStatement,
};

/// Defines the struct of a record, and how it is written as a JSON object: its `event`, then its fields in order.
macro_rules! record {
    (
        $(#[$about:meta])*
        pub struct $name:ident<$life:lifetime> as $event:literal {
            $($(#[$field_about:meta])* pub $field:ident: $kind:ty,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $name<$life> {
            $($(#[$field_about])* pub $field: $kind,)+
        }

        impl $name<'_> {
            /// Serialises the record as a line.
            pub fn line(&self) -> Line {
                Line::of(|line| {
                    line.extend_from_slice(concat!("{\"event\":\"", $event, "\"").as_bytes());
                    $(
                        line.extend_from_slice(concat!(",\"", stringify!($field), "\":").as_bytes());
                        self.$field.write(line);
                    )+
                    line.push(b'}');
                })
            }
        }
    };
}

record! {
    /// A decision and what it is based on. Written before the decision takes effect.
    pub struct DecisionRecord<'a> as "decision" {
        pub time: Timestamp,
        /// Links a decision to its completion and to the headers that the client saw: a UUIDv7.
        pub id: &'a str,
        pub verdict: &'static str,
        pub reason: &'static str,
        pub enforcement: &'static str,
        pub forwarded: bool,
        /// The name of the configured bot, or the product token of a bot that is not configured.
        pub bot: Option<&'a str>,
        /// The bot's token that has its own group in the robots.txt, or else the bot's first token.
        pub agent: Option<&'a str>,
        pub user_agent: Option<&'a str>,
        pub client: SocketAddr,
        /// How the client was identified: by a proof (`credential`, `certificate`, `network`), the `user-agent` of a
        /// configured bot, its `product-token`, or not at all (`none`). `failed` if its credential was invalid.
        pub identity: &'static str,
        /// The configured name of the credential (never its secret), certificate or network.
        pub credential: Option<&'a str>,
        /// The entry of the configuration that the client was identified by, or its product token.
        pub matched_by: Option<&'a str>,
        /// Why the configuration tunnels this host (`[[https.tunnel]]`).
        pub exception: Option<&'a str>,
        /// What exempts the request, with the reason `exempt`.
        pub exemption: Option<Exemption<'a>>,
        pub method: &'a str,
        pub url: Url<'a>,
        pub origin: &'a str,
        /// The rule as written.
        pub rule: Option<&'a str>,
        pub line: Option<u32>,
        /// The group that was used, as the robots.txt names it.
        pub group: Option<&'a str>,
        /// The reading of the path on which the rules decided: `sent`, `normalized` or `strict`. `null` if no rules
        /// were checked, or there was no path.
        pub reading: Option<&'static str>,
        /// The path and query in this reading, if they differ from those in `url`.
        pub read_as: Option<&'a str>,
        /// The URL of the origin's robots.txt.
        pub robots_url: &'a str,
        pub robots_status: Option<u16>,
        /// Digest of the copy that decided.
        pub robots_sha256: Option<Sha256>,
        /// When the copy that decided was received or last confirmed. If no copy decided, when the last fetch ended.
        pub robots_fetched: Option<Timestamp>,
        /// When the copy that decided expires. If no copy decided, when the robots.txt is fetched again.
        pub robots_expires: Option<Timestamp>,
        /// `hit`, `miss`, `stale`, `collapsed` or `queued`; `null` if no copy was looked up.
        pub robots_cache: Option<&'static str>,
        /// Why the robots.txt could not be fetched. With the reason `egress`, why bots must not reach the host.
        pub robots_error: Option<&'a str>,
        pub profile: &'static str,
        /// The configuration's generation (1 at the start, one more with each reload), and the fields `instance`,
        /// `version` and `config_sha256`.
        pub config: &'a GenerationFields,
        /// When the request can be retried; `null` unless it came too early (`defer`).
        pub not_before: Option<Timestamp>,
        /// Which limit of `[pace]` refused the request; `null` unless that is the reason.
        pub pace_cause: Option<&'static str>,
        /// What the site says about the purposes of the bot; `null` if the bot has none, or if they did not matter.
        pub usage: Option<Json<&'a UsageReport>>,
    }
}

record! {
    /// How an exchange ended.
    pub struct Completion<'a> as "completion" {
        pub time: Timestamp,
        pub id: &'a str,
        /// The status that the client received; `null` if the connection broke before.
        pub status: Option<u16>,
        /// The error type of RFC 9209 if the exchange failed.
        pub error: Option<&'static str>,
        pub error_detail: Option<&'a str>,
        /// The origin's address.
        pub upstream: Option<SocketAddr>,
        /// Bytes of content from and to the client.
        pub bytes_in: u64,
        pub bytes_out: u64,
        /// Time from the request's head to the end of its exchange.
        pub duration_us: u64,
        /// Part of `duration_us` spent waiting for a robots.txt.
        pub robots_wait_us: u64,
        /// Part of `duration_us` spent waiting for the turn of the request (`[pace]`).
        pub pace_wait_us: u64,
        /// Time to resolve and connect; `null` if no connection was made or a kept one was reused.
        pub connect_us: Option<u64>,
        /// Time from the request's head to the origin's response head.
        pub first_byte_us: Option<u64>,
        /// What the fields of the origin's response say about the purposes of the bot; `null` if they say nothing, or
        /// if the bot has no purposes.
        pub usage: Option<Json<&'a [UseStatement]>>,
    }
}

record! {
    /// The origin's response forbids what the bot uses content for, so the bot does not get it. Written after the
    /// decision that allowed the request, and before the refusal is sent.
    pub struct WithdrawnRecord<'a> as "withdrawn" {
        pub time: Timestamp,
        /// The id of the decision.
        pub id: &'a str,
        pub instance: &'a str,
        pub bot: Option<&'a str>,
        pub url: Url<'a>,
        /// The purpose of the bot that the response forbids.
        pub purpose: &'static str,
        /// What the response says: the vocabulary, its label, the value, and the field that it is in.
        pub vocabulary: &'static str,
        pub key: &'static str,
        pub value: &'static str,
        pub field: Option<&'static str>,
        /// The status of the origin's response.
        pub status: u16,
    }
}

record! {
    /// A fetch of a robots.txt, and what it changed. Written before a decision is based on it.
    pub struct RobotsRecord<'a> as "robots" {
        pub time: Timestamp,
        pub origin: &'a str,
        pub robots_url: &'a str,
        /// The redirects in order. If the last one could not be followed, `error` says why.
        pub redirects: Vec<Redirect<'a>>,
        /// The status of the last requested URL; `null` if there was none.
        pub status: Option<u16>,
        /// The address of the origin itself. `redirects` contains the addresses of the redirects.
        pub upstream: Option<String>,
        /// Number of decoded bytes that were read of the last response's content. robotgate does not read the content
        /// if the status is enough. `null` if there is no response, or the response has no content (304).
        pub bytes: Option<usize>,
        /// Time since the fetch's turn came.
        pub duration_us: u64,
        /// Why there is no usable response.
        pub error: Option<&'a str>,
        /// The state before the fetch: `rules`, `expired`, or why no rules applied; `null` if nothing was known.
        pub held: Option<&'static str>,
        /// The state after the fetch, in the same words.
        pub holds: &'static str,
        /// Digests of the copies that decided before and after the fetch.
        pub held_sha256: Option<Sha256>,
        pub robots_sha256: Option<Sha256>,
        /// Whether that copy's text differs from the one before, and this process had not seen it for the origin.
        pub new_text: bool,
        /// When the robots.txt is fetched again.
        pub robots_expires: Option<Timestamp>,
        /// When the current series of failures began.
        pub failing_since: Option<Timestamp>,
        pub profile: &'static str,
        /// The configuration's generation.
        pub config: u64,
        pub instance: &'a str,
    }
}

record! {
    /// A fetch of a site's `tdmrep.json`, and what it changed. Written before a decision is based on it.
    pub struct TdmrepRecord<'a> as "tdmrep" {
        pub time: Timestamp,
        pub origin: &'a str,
        pub tdmrep_url: &'a str,
        /// `site`, or `fleet` if another gate fetched it. The record of that fetch is in that gate's log.
        pub source: &'static str,
        /// When the fetch ended.
        pub fetched: Option<Timestamp>,
        /// As in a [`RobotsRecord`], up to `error`. For a file from the fleet, empty or `null`.
        pub redirects: Vec<Redirect<'a>>,
        pub status: Option<u16>,
        pub upstream: Option<String>,
        pub bytes: Option<usize>,
        pub duration_us: Option<u64>,
        pub error: Option<&'a str>,
        /// What was used before the fetch: `file`, `none` (the site has no such file), or `unreachable`; `null` if
        /// nothing was known.
        pub held: Option<&'static str>,
        /// What is used after the fetch, in the same words.
        pub holds: Option<&'static str>,
        /// Digests of the files that were used before and after the fetch.
        pub held_sha256: Option<Sha256>,
        pub tdmrep_sha256: Option<Sha256>,
        /// Number of valid entries in the file that is used after the fetch.
        pub entries: Option<usize>,
        /// When the file is fetched again.
        pub tdmrep_expires: Option<Timestamp>,
        /// When the current series of failures began.
        pub failing_since: Option<Timestamp>,
        /// The configuration's generation.
        pub config: u64,
        pub instance: &'a str,
    }
}

record! {
    /// A copy that another gate of the fleet fetched. Written before a decision relies on it. The record of the fetch
    /// is in that gate's log.
    pub struct SharedRecord<'a> as "shared" {
        pub time: Timestamp,
        pub origin: &'a str,
        /// When the other gate's fetch ended.
        pub fetched: Option<Timestamp>,
        /// As in a [`RobotsRecord`].
        pub held: Option<&'static str>,
        pub holds: &'static str,
        pub held_sha256: Option<Sha256>,
        pub robots_sha256: Option<Sha256>,
        /// Whether that copy's text differs from the one before, and this process had not seen it for the origin.
        pub new_text: bool,
        pub robots_expires: Option<Timestamp>,
        pub failing_since: Option<Timestamp>,
        pub profile: &'static str,
        /// The configuration's generation.
        pub config: u64,
        pub instance: &'a str,
    }
}

record! {
    /// A site answered with another robots.txt than before. Written soon after the first decision on it, because the
    /// comparison delays no request.
    pub struct RobotsChangedRecord<'a> as "robots-changed" {
        pub time: Timestamp,
        pub instance: &'a str,
        pub origin: &'a str,
        /// When the fetch that brought the new text ended.
        pub fetched: Option<Timestamp>,
        /// `site`, or `fleet` if another gate fetched it.
        pub source: &'static str,
        /// The digests and statuses before and after. There is no digest if the site had no robots.txt.
        pub robots_sha256_before: Option<Sha256>,
        pub robots_sha256: Option<Sha256>,
        pub robots_status_before: Option<u16>,
        pub robots_status: Option<u16>,
        /// `changed` or `unchanged`; `null` if the texts were not compared.
        pub rules: Option<&'static str>,
        /// Number of rules that came and went, over all groups.
        pub rules_added: usize,
        pub rules_removed: usize,
        pub groups: Json<Vec<ChangedGroup<'a>>>,
        /// Number of other statements that came and went, such as sitemaps.
        pub statements_added: usize,
        pub statements_removed: usize,
        pub added: Json<Vec<ChangedStatement>>,
        pub removed: Json<Vec<ChangedStatement>>,
        /// Whether a list leaves something out.
        pub cut: bool,
        /// What the change means for the requests that are held in memory.
        pub effect: &'static str,
        /// Number of these requests to the site that were decided with both texts, and that could not be.
        pub requests: usize,
        pub undecided: usize,
        /// Number of these requests that only the old text or only the new text allows.
        pub newly_denied: usize,
        pub newly_allowed: usize,
        pub examples: Json<Vec<ChangeExample>>,
        pub profile: &'static str,
        /// The configuration's generation.
        pub config: u64,
    }
}

record! {
    /// robotgate has started. It is in the log before any other record of this run.
    pub struct StartRecord<'a> as "start" {
        pub time: Timestamp,
        pub instance: &'a str,
        pub version: &'a str,
        /// The configuration file; `null` for the built-in configuration.
        pub config_file: Option<&'a str>,
        pub config_sha256: Sha256,
        pub pid: u32,
        /// The addresses that robotgate listens on, those for operators included.
        pub listen: &'a [SocketAddr],
    }
}

record! {
    /// robotgate has stopped: the last record of an orderly end.
    pub struct StopRecord<'a> as "stop" {
        pub time: Timestamp,
        pub instance: &'a str,
        /// The name of the signal, or `internal error`.
        pub cause: &'a str,
        /// Number of exchanges that the stop ended; `null` if it did not wait for them.
        pub cut_off: Option<u64>,
    }
}

record! {
    /// A new configuration was read. Written before the first decision under it.
    pub struct ReloadRecord<'a> as "reload" {
        pub time: Timestamp,
        pub instance: &'a str,
        pub cause: &'a str,
        /// `applied` or `rejected`.
        pub result: &'a str,
        /// Why it was rejected.
        pub error: Option<&'a str>,
        /// The generation that is current since then.
        pub config: u64,
        /// Digests of the configurations before and after the reload. They are the same if the new one was rejected.
        pub config_sha256_before: Sha256,
        pub config_sha256: Sha256,
    }
}

record! {
    /// An origin was forgotten.
    pub struct ForgetRecord<'a> as "forget" {
        pub time: Timestamp,
        pub origin: &'a str,
        /// `socket` for an operator of this machine, `fleet` for another gate.
        pub by: &'a str,
        /// Whether anything was known of the origin; `null` if only the disk could tell.
        pub known: Option<bool>,
    }
}

/// Agents whose rules changed in the same way.
#[derive(Debug, Serialize)]
pub struct ChangedGroup<'a> {
    pub agents: Vec<Cow<'a, str>>,
    pub change: GroupChangeKind,
    pub added: Vec<ChangedRule>,
    pub removed: Vec<ChangedRule>,
}

/// A request that would now be decided differently.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ChangeExample {
    /// The id of its decision.
    pub id: String,
    pub bot: Option<String>,
    pub url: String,
    /// The verdict with the new text, and the rule that leads to it.
    pub verdict: &'static str,
    pub rule: Option<String>,
    pub line: Option<u32>,
}

/// A value that serde writes. For rare records only.
#[derive(Debug)]
pub struct Json<T>(pub T);

// === impl Json ===

impl<T: Serialize> Value for Json<T> {
    fn write(&self, line: &mut Vec<u8>) {
        // Serialising strings and numbers into memory cannot fail.
        let _ = serde_json::to_writer(line, &self.0);
    }
}

/// A redirect that was followed.
#[derive(Debug, Serialize)]
pub struct Redirect<'a> {
    pub status: Option<u16>,
    pub to: Cow<'a, str>,
    /// The address of the redirect's target; `null` if there was none.
    pub upstream: Option<String>,
}
