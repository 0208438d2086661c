//! The records of the audit log. A field that does not apply to a record is `null`, never left out.

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

/// Defines a struct for each kind of record. As JSON, a record has its `event` first, then its fields in order.
macro_rules! records {
    ($(
        $(#[$about:meta])*
        pub struct $name:ident<$life:lifetime> as $event:literal {
            $($(#[$field_about:meta])* pub $field:ident: $kind:ty,)+
        }
    )+) => {
        /// The `event` of each kind of record.
        pub const EVENTS: [&str; [$($event),+].len()] = [$($event),+];

        /// The names of each record's fields, in the order of [`EVENTS`].
        #[cfg(test)]
        const FIELDS: [&[&str]; EVENTS.len()] = [$(&[$(stringify!($field)),+]),+];

        $(
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
        )+
    };
}

/// Defines a struct of fields that several kinds of records share. If a record has such a struct as a field, this field
/// must have the name of the struct's first field: the record writes this name, and `write` then writes only the value
/// of the first field.
macro_rules! fields {
    (
        $(#[$about:meta])*
        pub struct $name:ident<$life:lifetime> {
            $(#[$first_about:meta])* pub $first:ident: $first_kind:ty,
            $($(#[$field_about:meta])* pub $field:ident: $kind:ty,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $name<$life> {
            $(#[$first_about])* pub $first: $first_kind,
            $($(#[$field_about])* pub $field: $kind,)+
        }

        #[cfg(test)]
        impl $name<'_> {
            const NAMES: &'static [&'static str] = &[stringify!($first), $(stringify!($field)),+];
        }

        impl Value for $name<'_> {
            fn write(&self, line: &mut Vec<u8>) {
                self.$first.write(line);
                $(
                    line.extend_from_slice(concat!(",\"", stringify!($field), "\":").as_bytes());
                    self.$field.write(line);
                )+
            }
        }
    };
}

fields! {
    /// How a fetch of a robots.txt or a `tdmrep.json` went.
    #[derive(Default)]
    pub struct FetchFields<'a> {
        /// The redirects that were followed. If one was not followed, `error` says why.
        pub redirects: Json<Vec<Redirect<'a>>>,
        /// The status of the response to the last request; `null` if there was none.
        pub status: Option<u16>,
        /// The address to which robotgate connected for the origin itself, or that it tried last. `redirects` has the
        /// addresses of redirect targets.
        pub upstream: Option<String>,
        /// Bytes of content that were read, after decoding. `null` if the fetch failed, brought a 304, or was
        /// redirected too often.
        pub bytes: Option<usize>,
        /// Duration of the fetch, without the time in the queue.
        pub duration_us: Option<u64>,
        /// Why the fetch got no usable response.
        pub error: Option<String>,
    }
}

fields! {
    /// What was known of a robots.txt before and after a fetch.
    pub struct StateFields<'a> {
        /// What was known before the fetch, as a word of [`AnswerKind`](crate::copy::AnswerKind); `null` if nothing was
        /// known.
        pub held: Option<&'static str>,
        /// What is known after the fetch, in the same words as `held`.
        pub holds: &'static str,
        /// Digests of the copy before the fetch, even if expired (`held_sha256`), and of the copy that decisions use
        /// after it (`robots_sha256`).
        pub held_sha256: Option<Sha256>,
        pub robots_sha256: Option<Sha256>,
        /// Whether the text differs from all earlier texts of this origin that this process remembers.
        pub new_text: bool,
        /// Until when `holds` is valid. After a failure, this is the time from which robotgate may fetch again.
        pub robots_expires: Option<Timestamp>,
        /// The end of the first failed fetch after the last success; `null` if the last fetch did not fail.
        pub failing_since: Option<Timestamp>,
        pub profile: &'static str,
        /// The number of the configuration: 1 at the start, one more after each reload that succeeds.
        pub config: u64,
        pub instance: &'a str,
    }
}

records! {
    /// A decision and what it is based on. Written before the decision takes effect.
    pub struct DecisionRecord<'a> as "decision" {
        pub time: Timestamp,
        /// A UUIDv7. The `completion` record and the header field `Robots-Decision` have the same id.
        pub id: &'a str,
        pub verdict: &'static str,
        pub reason: &'static str,
        pub enforcement: &'static str,
        pub forwarded: bool,
        /// The name of the configured bot, or the product token of a bot that is not configured.
        pub bot: Option<&'a str>,
        /// The bot's first product token that has a group in the robots.txt, or else the bot's first product token.
        pub agent: Option<&'a str>,
        pub user_agent: Option<&'a str>,
        pub client: SocketAddr,
        /// How the client was identified: `credential`, `certificate`, `network`, `user-agent`, `product-token` or
        /// `none`. `failed` if its credential was invalid.
        pub identity: &'static str,
        /// The configured name of the credential (never its secret), certificate or network.
        pub credential: Option<&'a str>,
        /// What identified the bot: the name in `credential`, an entry of `user-agents`, or the product token.
        pub matched_by: Option<&'a str>,
        /// The `reason` of the `[[https.tunnel]]` that tunnels this host.
        pub exception: Option<&'a str>,
        /// What exempts the request from robots.txt.
        pub exemption: Option<Exemption<'a>>,
        pub method: &'a str,
        pub url: Url<'a>,
        pub origin: &'a str,
        /// The rule that decided, as written in the robots.txt.
        pub rule: Option<&'a str>,
        pub line: Option<u32>,
        /// The name of the group that applies, as written in the robots.txt.
        pub group: Option<&'a str>,
        /// The reading of the path that decided: `sent`, `normalized` or `strict`. `null` if no rules decided.
        pub reading: Option<&'static str>,
        /// The path and query in this reading, if they differ from those in `url`.
        pub read_as: Option<&'a str>,
        pub robots_url: &'a str,
        pub robots_status: Option<u16>,
        pub robots_sha256: Option<Sha256>,
        /// When the copy that decided was received or last confirmed. If no copy decided, this is the end of the last
        /// fetch.
        pub robots_fetched: Option<Timestamp>,
        /// When the copy that decided expires. If it is expired or missing, this is the time from which robotgate may
        /// fetch again.
        pub robots_expires: Option<Timestamp>,
        /// How the copy was looked up: `hit`, `miss`, `stale`, `collapsed` or `queued`. `null` if none was needed.
        pub robots_cache: Option<&'static str>,
        /// Why the robots.txt could not be fetched, or details of the reasons `egress` and `pace`.
        pub robots_error: Option<&'a str>,
        pub profile: &'static str,
        /// The fields `config`, `instance`, `version` and `config_sha256`.
        pub config: &'a GenerationFields,
        /// When the client can send the request again, if the verdict is `defer`.
        pub not_before: Option<Timestamp>,
        /// Why `[pace]` refused the request, as a word of [`Cause`](crate::pace::Cause).
        pub pace_cause: Option<&'static str>,
        /// What the site says about the purposes of the bot. `null` if the bot has none, or something else decided
        /// first.
        pub usage: Option<Json<&'a UsageReport>>,
    }

    /// How an exchange ended.
    pub struct Completion<'a> as "completion" {
        pub time: Timestamp,
        pub id: &'a str,
        /// The status that the client received; `null` if the connection broke before that.
        pub status: Option<u16>,
        /// Why the exchange failed, as a word of [`ProxyError`](crate::upstream::ProxyError).
        pub error: Option<&'static str>,
        pub error_detail: Option<&'a str>,
        pub upstream: Option<SocketAddr>,
        /// Bytes of content that the client sent (`bytes_in`) and received (`bytes_out`).
        pub bytes_in: u64,
        pub bytes_out: u64,
        /// Time from the request's head to the end of the exchange.
        pub duration_us: u64,
        /// The part of `duration_us` that the request waited for a robots.txt or a `tdmrep.json`.
        pub robots_wait_us: u64,
        /// The part of `duration_us` that the request waited because of `[pace]`.
        pub pace_wait_us: u64,
        /// Time to resolve the host's name and connect; `null` without a new connection.
        pub connect_us: Option<u64>,
        /// Time from the request's head to the head of the origin's response.
        pub first_byte_us: Option<u64>,
        /// What the response headers say about the purposes of the bot.
        pub usage: Option<Json<&'a [UseStatement]>>,
    }

    /// The request was allowed, but the origin's response forbids the bot to use the content. Written before the bot
    /// gets a refusal instead of the response.
    pub struct WithdrawnRecord<'a> as "withdrawn" {
        pub time: Timestamp,
        /// The id of the decision that allowed the request.
        pub id: &'a str,
        pub instance: &'a str,
        pub bot: Option<&'a str>,
        pub url: Url<'a>,
        pub purpose: &'static str,
        /// What the response says (`vocabulary`, `key`, `value`), and in which header field (`field`).
        pub vocabulary: &'static str,
        pub key: &'static str,
        pub value: &'static str,
        pub field: Option<&'static str>,
        /// The status of the origin's response.
        pub status: u16,
    }

    /// A fetch of a robots.txt, and what it changed. Written before any decision uses the fetched text.
    pub struct RobotsRecord<'a> as "robots" {
        pub time: Timestamp,
        pub origin: &'a str,
        pub robots_url: &'a str,
        pub redirects: FetchFields<'a>,
        pub held: StateFields<'a>,
    }

    /// A fetch of a site's `tdmrep.json`, and what it changed. Written before any decision uses the fetched file.
    pub struct TdmrepRecord<'a> as "tdmrep" {
        pub time: Timestamp,
        pub origin: &'a str,
        pub tdmrep_url: &'a str,
        /// `site`, or `fleet` if another robotgate fetched the file and logged the fetch.
        pub source: &'static str,
        pub fetched: Option<Timestamp>,
        /// How the fetch went. For a file from the fleet, `redirects` is empty, and the other [`FetchFields`] are
        /// `null`.
        pub redirects: FetchFields<'a>,
        /// What was known before the fetch: `file`, `none` (no such file) or `unreachable` (no fetch has succeeded);
        /// `null` if nothing was known.
        pub held: Option<&'static str>,
        /// What is known after the fetch, in the same words as `held`.
        pub holds: Option<&'static str>,
        /// Digests of the file known before the fetch (`held_sha256`) and of the one known after it (`tdmrep_sha256`).
        pub held_sha256: Option<Sha256>,
        pub tdmrep_sha256: Option<Sha256>,
        /// Number of valid entries in the file.
        pub entries: Option<usize>,
        pub tdmrep_expires: Option<Timestamp>,
        pub failing_since: Option<Timestamp>,
        pub config: u64,
        pub instance: &'a str,
    }

    /// The result of a robots.txt fetch that another robotgate of the fleet made and logged. Written before any
    /// decision of this robotgate uses the result.
    pub struct SharedRecord<'a> as "shared" {
        pub time: Timestamp,
        pub origin: &'a str,
        /// When the other robotgate's fetch ended.
        pub fetched: Option<Timestamp>,
        pub held: StateFields<'a>,
    }

    /// A site's robots.txt has changed. Decisions with the new text can precede this record, because the texts are
    /// compared in the background.
    pub struct RobotsChangedRecord<'a> as "robots-changed" {
        pub time: Timestamp,
        pub instance: &'a str,
        pub origin: &'a str,
        pub fetched: Option<Timestamp>,
        /// `site`, or `fleet` if another robotgate fetched the new text.
        pub source: &'static str,
        /// Digests of the old and of the new text; `null` if the site had no robots.txt.
        pub robots_sha256_before: Option<Sha256>,
        pub robots_sha256: Option<Sha256>,
        pub robots_status_before: Option<u16>,
        pub robots_status: Option<u16>,
        /// `unchanged` if the rules and groups are the same, otherwise `changed`; `null` if nothing was compared.
        pub rules: Option<&'static str>,
        /// Number of rules that only the new text has (`rules_added`) or only the old text has (`rules_removed`).
        pub rules_added: usize,
        pub rules_removed: usize,
        pub groups: Json<Vec<ChangedGroup<'a>>>,
        /// Number of other lines, such as sitemaps, that only the new text has (`statements_added`) or only the old
        /// text has (`statements_removed`).
        pub statements_added: usize,
        pub statements_removed: usize,
        pub added: Json<Vec<ChangedStatement>>,
        pub removed: Json<Vec<ChangedStatement>>,
        /// Whether a list in this record is incomplete.
        pub cut: bool,
        /// How the new text changes the decisions about recent requests: `stricter`, `looser`, `both`, `none` or
        /// `unknown`.
        pub effect: &'static str,
        /// Number of recent requests that were decided with both texts (`requests`), and of recent requests that could
        /// not be decided (`undecided`).
        pub requests: usize,
        pub undecided: usize,
        /// Number of recent requests that only the old text allows (`newly_denied`), or only the new one
        /// (`newly_allowed`).
        pub newly_denied: usize,
        pub newly_allowed: usize,
        pub examples: Json<Vec<ChangeExample>>,
        pub profile: &'static str,
        pub config: u64,
    }

    /// robotgate has started. This is the first record of a run.
    pub struct StartRecord<'a> as "start" {
        pub time: Timestamp,
        pub instance: &'a str,
        pub version: &'a str,
        /// `null` for the built-in configuration.
        pub config_file: Option<&'a str>,
        pub config_sha256: Sha256,
        pub pid: u32,
        /// Includes the addresses of the operators' page and API.
        pub listen: &'a [SocketAddr],
    }

    /// robotgate has stopped: the last record of a run. It is missing if robotgate was killed or crashed.
    pub struct StopRecord<'a> as "stop" {
        pub time: Timestamp,
        pub instance: &'a str,
        /// The name of the signal, or `internal error`.
        pub cause: &'a str,
        /// Number of requests that robotgate cut off; `null` if it did not wait for running requests.
        pub cut_off: Option<u64>,
    }

    /// A reload of the configuration. Written before the first decision with the new configuration.
    pub struct ReloadRecord<'a> as "reload" {
        pub time: Timestamp,
        pub instance: &'a str,
        pub cause: &'a str,
        /// `applied` or `rejected`.
        pub result: &'a str,
        pub error: Option<&'a str>,
        /// The number of the configuration that is used after the reload.
        pub config: u64,
        /// Digests of the configuration before and after the reload. They are equal if the new one was rejected.
        pub config_sha256_before: Sha256,
        pub config_sha256: Sha256,
    }

    /// Somebody made robotgate forget what it knows of an origin.
    pub struct ForgetRecord<'a> as "forget" {
        pub time: Timestamp,
        pub origin: &'a str,
        /// `socket` (an operator on this machine) or `fleet` (another robotgate).
        pub by: &'a str,
        /// Whether robotgate knew anything; `null` if it would have had to read the disk to find out.
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

/// A recent request that only one of the two texts, the old or the new robots.txt, allows.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ChangeExample {
    /// The id of the decision.
    pub id: String,
    pub bot: Option<String>,
    pub url: String,
    /// The verdict with the new text, and the rule that decides (`rule`, `line`).
    pub verdict: &'static str,
    pub rule: Option<String>,
    pub line: Option<u32>,
}

/// A value that serde writes as JSON. This is slower than the other implementations of `Value`, so most fields do not
/// use it.
#[derive(Debug, Default)]
pub struct Json<T>(pub T);

// === impl Json ===

impl<T: Serialize> Value for Json<T> {
    fn write(&self, line: &mut Vec<u8>) {
        // Serialising strings and numbers into memory cannot fail.
        let _ = serde_json::to_writer(line, &self.0);
    }
}

/// A redirect that was followed during a fetch.
#[derive(Debug, Serialize)]
pub struct Redirect<'a> {
    pub status: Option<u16>,
    pub to: Cow<'a, str>,
    /// The address of `to`; `null` if no connection was made.
    pub upstream: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_describes_each_field_of_each_record() {
        let all = EVENTS.into_iter().zip(FIELDS);
        let shared = [
            ("robots", FetchFields::NAMES),
            ("robots", StateFields::NAMES),
            ("tdmrep", FetchFields::NAMES),
            ("shared", StateFields::NAMES),
        ];
        let page = include_str!("../../docs/audit-log.md");
        for (event, fields) in all.chain(shared) {
            let (_, section) = page.split_once(&format!("\n### {event}\n")).expect(event);
            let rows = section.split("\n###").next().into_iter().flat_map(str::lines);
            let names = rows.filter_map(|row| row.strip_prefix("| `")?.split("` | ").next());
            let names: Vec<&str> = names.flat_map(|names| names.split("`, `")).collect();
            for field in fields {
                assert!(
                    names.contains(field),
                    "docs/audit-log.md does not describe the field {field} of {event}"
                );
            }
        }
    }
}
