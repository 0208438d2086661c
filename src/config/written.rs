//! The file as written: which keys there are, and nothing of what they mean.
//!
//! Every key is optional and none beside these is known. No value is judged here beyond its TOML type; the sections'
//! own modules do that, and so can report all mistakes of a file at once.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::value::Datetime;

use super::{HttpsMode, Unverifiable};
use crate::bot::{Enforcement, Unidentified};
use crate::copy::{Then, WithoutCopy};
use crate::decision::Verdict;
use crate::robots::Profile;

type Text = Option<Spanned<String>>;
type List = Option<Spanned<Vec<Spanned<String>>>>;
type Number = Option<Spanned<i64>>;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub proxy: Table<Proxy>,
    pub https: Table<Https>,
    pub robots: Table<Robots>,
    pub refusals: Table<Refusals>,
    pub cache: Table<Cache>,
    pub egress: Table<Egress>,
    pub audit: Table<Audit>,
    pub admin: Table<Admin>,
    pub identity: Table<Identity>,
    pub bot: Vec<Spanned<Table<Bot>>>,
    pub expect: Vec<Spanned<Table<Expect>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Proxy {
    pub listen: Option<Spanned<OneOrMany>>,
    pub threads: Option<Spanned<i64>>,
    pub name: Text,
    pub via: Option<bool>,
    pub annotate_allowed: Option<bool>,
    pub strip: List,
    pub max_header_bytes: Option<Spanned<Amount>>,
    pub max_header_fields: Option<Spanned<i64>>,
    pub header_timeout: Option<Spanned<Amount>>,
    pub handshake_timeout: Option<Spanned<Amount>>,
    pub connect_timeout: Option<Spanned<Amount>>,
    pub read_timeout: Option<Spanned<Amount>>,
    pub write_timeout: Option<Spanned<Amount>>,
    pub idle_timeout: Option<Spanned<Amount>>,
    pub tunnel_idle_timeout: Option<Spanned<Amount>>,
    pub tunnel_timeout: Option<Spanned<Amount>>,
    pub body_timeout: Option<Spanned<Amount>>,
    pub shutdown_timeout: Option<Spanned<Amount>>,
    pub max_connections: Number,
    pub max_client_connections: Number,
    pub max_client_requests: Number,
    pub max_client_fetches: Number,
    pub max_client_leaves: Number,
    pub max_connection_requests: Number,
    pub max_http2_streams: Number,
    pub max_http2_resets: Number,
    pub tls: Option<Spanned<Table<Tls>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Tls {
    pub listen: Option<Spanned<OneOrMany>>,
    pub certificate: Text,
    pub key: Text,
    pub client_roots: List,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Https {
    pub mode: HttpsMode,
    pub unverifiable: Unverifiable,
    pub ca_certificate: Text,
    pub ca_key: Text,
    pub extra_roots: List,
    pub tunnel: Vec<Spanned<Table<Tunnel>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Tunnel {
    pub host: Text,
    pub reason: Text,
    pub until: Option<Spanned<Datetime>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Robots {
    pub profile: Profile,
    pub strict_paths: Option<bool>,
    pub user_agent: Text,
    pub default_ttl: Option<Spanned<Amount>>,
    pub min_ttl: Option<Spanned<Amount>>,
    pub max_ttl: Option<Spanned<Amount>>,
    pub no_robots_ttl: Option<Spanned<Amount>>,
    pub soft_404: Option<bool>,
    pub wait: Option<Spanned<Amount>>,
    pub fetch_timeout: Option<Spanned<Amount>>,
    pub fetch_idle_timeout: Option<Spanned<Amount>>,
    pub max_fetches: Option<Spanned<i64>>,
    pub serve_copies: Option<bool>,
    pub unreachable: Table<Unreachable>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Unreachable {
    pub deny_for: Option<Spanned<Amount>>,
    pub then: Then,
    pub without_copy: Option<Spanned<WithoutCopy>>,
    pub retry_first: Option<Spanned<Amount>>,
    pub retry_busy: Option<Spanned<Amount>>,
    pub retry_longest: Option<Spanned<Amount>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Refusals {
    pub status: Number,
    pub unreachable_status: Number,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Cache {
    pub max_disk_bytes: Option<Spanned<Amount>>,
    pub path: Text,
    pub persist: Option<bool>,
    pub keep: Option<Spanned<Amount>>,
    pub max_bytes: Option<Spanned<Amount>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Egress {
    pub allow: List,
    pub deny: List,
    pub ports: Option<Spanned<Vec<Spanned<Ports>>>>,
    pub dns: List,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Audit {
    pub path: Text,
    pub stdout: Option<Spanned<bool>>,
    pub redact_query: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Admin {
    pub listen: Option<Spanned<OneOrMany>>,
    pub token_file: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Identity {
    pub unidentified: Unidentified,
    pub credentials: Text,
    pub required: Option<Spanned<bool>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bot {
    pub name: Text,
    pub user_agents: List,
    pub robots_agents: List,
    pub enforcement: Enforcement,
    pub credentials: List,
    pub certificates: List,
    pub networks: List,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Expect {
    pub agent: Text,
    pub url: Text,
    pub robots: Text,
    pub verdict: Option<Verdict>,
}

/// A table and only a table. serde's derived structs would also take a list, by position, and so pass `proxy = []`.
#[derive(Default)]
pub(super) struct Table<T>(pub T);

/// A duration or a size: text, or a bare number, which only the key's meaning can judge.
pub(super) enum Amount {
    Text(String),
    Number(i64),
}

/// A port or a range of them, as text: a number stands for itself.
pub(super) struct Ports(pub String);

/// A text, or a list of them.
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<Spanned<String>>),
}

// === impl Table ===

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = Table<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Table)
            }
        }

        deserializer.deserialize_map(Only(PhantomData))
    }
}

// === impl Amount ===

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a number and a unit in quotes, like "24h" or "256MiB""#)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount::Text(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount::Number(number))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

// === impl Ports ===

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Ports;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a port like 8080 or a range in quotes like "8000-8999""#)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Ports, E> {
                Ok(Ports(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Ports, E> {
                Ok(Ports(number.to_string()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

// === impl OneOrMany ===

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(OneOrMany::Many)
            }
        }

        deserializer.deserialize_any(Either)
    }
}
