//! The records of the log. Every field stands in every record, `null` where it says nothing, so
//! that a reader need not guess.

use std::{borrow::Cow, net::SocketAddr};

use serde::Serialize;

use super::{
    Line,
    value::{Url, Value},
};
use crate::{copy::Sha256, text::Timestamp};

/// Makes the struct of a record, and writes it as one JSON object: its `event`, and its fields in order.
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
            /// The record as a line.
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
    /// What was decided and on what grounds. Written before anything is done about it.
    pub struct DecisionRecord<'a> as "decision" {
        pub time: Timestamp,
        /// Joins a decision to its completion and to the headers that the client saw: a UUIDv7.
        pub id: &'a str,
        pub verdict: &'static str,
        pub reason: &'static str,
        pub enforcement: &'static str,
        /// Whether the request went on to the origin.
        pub forwarded: bool,
        /// The configured bot's name, or the product token of one that is not configured.
        pub bot: Option<&'a str>,
        /// The bot's token that has a group of its own in the robots.txt, else its first.
        pub agent: Option<&'a str>,
        pub user_agent: Option<&'a str>,
        /// The client's address.
        pub client: SocketAddr,
        /// What is known of who asks comes from this: a proof (`credential`, `certificate`, `network`), else the
        /// `user-agent` (a configured bot), its `product-token`, or `none`. `failed` where a credential was shown that does
        /// not hold.
        pub identity: &'static str,
        /// Which credential (never its secret), certificate or network that was, as the configuration names it.
        pub credential: Option<&'a str>,
        /// Why the configuration lets tunnels to this host through (`[[https.tunnel]]`).
        pub exception: Option<&'a str>,
        pub method: &'a str,
        pub url: Url<'a>,
        pub origin: &'a str,
        /// The rule as written.
        pub rule: Option<&'a str>,
        pub line: Option<u32>,
        /// The group that was used, as the robots.txt names it.
        pub group: Option<&'a str>,
        /// The reading of the path that the rules decided on: `sent`, `normalized` or `strict`; `null` where no rules were
        /// looked at, or for no path.
        pub reading: Option<&'static str>,
        /// The path and query as that reading has them, where they differ from those in `url`.
        pub read_as: Option<&'a str>,
        /// The origin whose file that is.
        pub robots_url: &'a str,
        pub robots_status: Option<u16>,
        /// Of the copy that decided.
        pub robots_sha256: Option<Sha256>,
        /// When that copy was received or its origin last confirmed it; where there is none, when the
        /// last fetch ended.
        pub robots_fetched: Option<Timestamp>,
        /// Until when that copy holds; where none decided, when the origin is asked again.
        pub robots_expires: Option<Timestamp>,
        /// `hit`, `miss`, `stale`, `collapsed` or `queued`; `null` where no copy was asked for.
        pub robots_cache: Option<&'static str>,
        /// Why the robots.txt could not be had; with the reason `egress`, why bots may not go there.
        pub robots_error: Option<&'a str>,
        pub profile: &'static str,
        /// The configuration's generation: 1 at the start, one more with each reload.
        pub config: u64,
    }
}

record! {
    /// How an exchange ended.
    pub struct Completion<'a> as "completion" {
        pub time: Timestamp,
        pub id: &'a str,
        /// The status that the client got; `null` where the connection broke before one was sent.
        pub status: Option<u16>,
        /// The error type of RFC 9209 where the exchange failed.
        pub error: Option<&'static str>,
        pub error_detail: Option<&'a str>,
        /// The origin's address.
        pub upstream: Option<SocketAddr>,
        /// Bytes of content from the client, and to it.
        pub bytes_in: u64,
        pub bytes_out: u64,
        /// From the request's head to the end of its exchange.
        pub duration_us: u64,
        /// Of that, the wait for a robots.txt.
        pub robots_wait_us: u64,
        /// To resolve and connect; `null` where no connection was made or a kept one was used.
        pub connect_us: Option<u64>,
        /// From the request's head to the origin's first.
        pub first_byte_us: Option<u64>,
    }
}

record! {
    /// A fetch of a robots.txt, and what it changed. Written before a decision rests on it.
    pub struct RobotsRecord<'a> as "robots" {
        pub time: Timestamp,
        pub origin: &'a str,
        pub robots_url: &'a str,
        /// Those that were followed, in order; where the last could not be, `error` says why.
        pub redirects: Vec<Redirect<'a>>,
        /// Of the URL that was asked last; `null` where it gave none.
        pub status: Option<u16>,
        /// The address of the origin that was asked. Those of redirects stand with them.
        pub upstream: Option<String>,
        /// Of the last answer's content, decoded, as far as it was read, which is not at all where the
        /// status says enough; `null` where there is no answer or it has no content of its own (304).
        pub bytes: Option<usize>,
        /// From when the fetch's turn had come.
        pub duration_us: u64,
        /// Why there is no answer, or none that says what holds.
        pub error: Option<&'a str>,
        /// What held before: `rules`, `expired`, or the reason why no file decided; `null` where nothing
        /// was known.
        pub held: Option<&'static str>,
        /// What holds now, in the same words.
        pub holds: &'static str,
        /// Of the copy that decided before, and of the one that does now.
        pub held_sha256: Option<Sha256>,
        pub robots_sha256: Option<Sha256>,
        /// When the origin is asked again.
        pub robots_expires: Option<Timestamp>,
        /// When it first failed of the times that it failed without an answer between them.
        pub failing_since: Option<Timestamp>,
        pub profile: &'static str,
        /// The configuration's generation.
        pub config: u64,
    }
}

/// A redirect that was followed.
#[derive(Debug, Serialize)]
pub struct Redirect<'a> {
    pub status: Option<u16>,
    pub to: Cow<'a, str>,
    /// The address that was asked there; `null` where there was none.
    pub upstream: Option<String>,
}
