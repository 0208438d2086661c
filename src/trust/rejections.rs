//! Remembers which clients rejected the authority's certificates last, up to a maximum number. Reads no clock.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash, RandomState},
    net::{IpAddr, Ipv6Addr},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use super::clients;
use crate::text::words;

/// The clients that rejected the authority's certificates last.
#[derive(Debug, Default)]
pub struct Rejections {
    /// The options that name the configuration in a suggested command, each with a space before it.
    config_options: String,
    /// The entry with the latest rejection comes last.
    table: Mutex<Vec<RejectionEntry>>,
    /// When a program last showed that it trusts the authority. The key is a hash of `program` in [`Self::note_trust`].
    trusting: Mutex<HashMap<u64, SystemTime>>,
    hasher: RandomState,
}

words! {
    /// How a client rejected a certificate that the authority issued.
    pub enum RejectionKind {
        /// The client sent a TLS alert: it does not trust the certificate.
        Distrust = "distrust",
        /// The client closed the connection without a TLS alert. Many clients do so if they do not trust the
        /// certificate.
        Closed = "closed",
    }
}

/// A client that rejected certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The client's address; for IPv6, only its first 64 bits.
    pub client: IpAddr,
    /// The last User-Agent that the client sent in a CONNECT in which it rejected a certificate.
    pub user_agent: Option<String>,
    /// The origin to which the client wanted to connect when it last rejected a certificate.
    pub origin: String,
    pub kind: RejectionKind,
    pub first: SystemTime,
    pub last: SystemTime,
    pub count: u64,
}

#[derive(Debug)]
struct RejectionEntry {
    rejection: Rejection,
    last_logged: SystemTime,
}

// === impl Rejections ===

impl Rejections {
    /// `config_options` are the options that name the configuration in a command, as in ` --config FILE`.
    pub fn new(config_options: String) -> Self {
        Self {
            config_options,
            ..Self::default()
        }
    }

    /// Returns the `robotgate env` command that prints settings with which the client of this User-Agent trusts the
    /// certificate. If the client cannot be guessed, `CLIENT` stands for its name.
    pub fn fix(&self, user_agent: Option<&str>) -> String {
        match user_agent.and_then(clients::guess) {
            Some(name) => format!("robotgate env {name}{}", self.config_options),
            None => format!("robotgate env CLIENT{}", self.config_options),
        }
    }

    /// Records a rejection. If the caller should log it (about once a minute for each client and kind), returns how
    /// many rejections of this kind the client has caused. `user_agent` must contain no control characters.
    pub fn note(
        &self,
        client: IpAddr,
        user_agent: Option<&str>,
        origin: &str,
        kind: RejectionKind,
        now: SystemTime,
    ) -> Option<u64> {
        let client = key_of(client);
        let mut table = self.table.lock();
        let known = table
            .iter()
            .position(|entry| entry.rejection.client == client && entry.rejection.kind == kind);
        let Some(at) = known else {
            if table.len() >= MAX_CLIENTS {
                table.remove(0);
            }
            table.push(RejectionEntry {
                rejection: Rejection {
                    client,
                    user_agent: user_agent.map(str::to_owned),
                    origin: origin.to_owned(),
                    kind,
                    first: now,
                    last: now,
                    count: 1,
                },
                last_logged: now,
            });
            return Some(1);
        };
        let mut entry = table.remove(at);
        let rejection = &mut entry.rejection;
        rejection.count += 1;
        rejection.last = now;
        rejection.origin.clear();
        rejection.origin.push_str(origin);
        if let Some(user_agent) = user_agent {
            rejection.user_agent = Some(user_agent.to_owned());
        }
        let count = rejection.count;
        // If the clock was set back, log early rather than much too late.
        let is_due = now
            .duration_since(entry.last_logged)
            .map_or(true, |since| since >= LOG_INTERVAL);
        if is_due {
            entry.last_logged = now;
        }
        table.push(entry);
        is_due.then_some(count)
    }

    /// Records that a client received a leaf certificate in a TLS handshake and then sent data. `program` is the
    /// client's address, its User-Agent and the origin.
    pub fn note_trust(&self, program: impl Hash, now: SystemTime) {
        let key = self.hasher.hash_one(program);
        let mut trusting = self.trusting.lock();
        if trusting.len() >= MAX_TRUSTING {
            trusting.retain(|_, since| is_recent(*since, now));
            // If most entries are recent, remove all, so that `retain` does not run for each new connection.
            if trusting.len() > MAX_TRUSTING / 2 {
                trusting.clear();
            }
        }
        trusting.insert(key, now);
    }

    /// Returns whether `program` showed within the last ten seconds that it trusts the authority.
    pub fn trusts(&self, program: impl Hash, now: SystemTime) -> bool {
        let key = self.hasher.hash_one(program);
        let trusting = self.trusting.lock();
        trusting.get(&key).is_some_and(|since| is_recent(*since, now))
    }

    /// Returns the clients that rejected certificates, the latest first.
    pub fn list(&self) -> Vec<Rejection> {
        let table = self.table.lock();
        table.iter().rev().map(|entry| entry.rejection.clone()).collect()
    }
}

/// Treats an IPv6 /64 as one client: otherwise, one machine could fill the table.
fn key_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Returns false for a time in the future, which means that the clock was set back.
fn is_recent(since: SystemTime, now: SystemTime) -> bool {
    now.duration_since(since).is_ok_and(|age| age < RECENT)
}

const RECENT: Duration = Duration::from_secs(10);
const MAX_TRUSTING: usize = 4096;
/// Maximum length of the table, which has one entry for each client and [`RejectionKind`].
const MAX_CLIENTS: usize = 256;
const LOG_INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn rejections_of_a_client_are_logged_once_a_minute_with_a_count() {
        let rejections = Rejections::default();
        let note = |seconds| {
            rejections.note(
                ip("10.0.0.7"),
                None,
                "https://a.example",
                RejectionKind::Distrust,
                at(seconds),
            )
        };
        assert_eq!(note(0), Some(1));
        assert_eq!(note(1), None);
        assert_eq!(note(59), None);
        assert_eq!(note(60), Some(4));
        assert_eq!(note(61), None);
        // The clock was set back, from second 61 to second 5.
        assert_eq!(note(5), Some(6));
        let other = rejections.note(ip("10.0.0.7"), None, "https://a.example", RejectionKind::Closed, at(61));
        assert_eq!(other, Some(1), "another kind is logged too");
    }

    #[test]
    fn the_table_names_the_last_origin_and_what_to_do() {
        let rejections = Rejections::default();
        let client = ip("10.0.0.7");
        rejections.note(
            client,
            Some("curl/8.5.0"),
            "https://a.example",
            RejectionKind::Distrust,
            at(1),
        );
        rejections.note(client, None, "https://b.example", RejectionKind::Distrust, at(2));
        let list = rejections.list();
        let [rejection] = list.as_slice() else {
            panic!("one client: {list:?}");
        };
        assert_eq!(rejection.origin, "https://b.example");
        assert_eq!(rejection.user_agent.as_deref(), Some("curl/8.5.0"));
        assert_eq!((rejection.first, rejection.last, rejection.count), (at(1), at(2), 2));
        let rejections = Rejections::new(" --config gate.toml".to_owned());
        for (user_agent, command) in [
            (Some("curl/8.5.0"), "robotgate env curl --config gate.toml"),
            (None, "robotgate env CLIENT --config gate.toml"),
        ] {
            assert_eq!(rejections.fix(user_agent), command);
        }
    }

    #[test]
    fn trust_is_remembered_for_ten_seconds_and_for_one_program() {
        let rejections = Rejections::default();
        rejections.note_trust((ip("10.0.0.7"), "Bot/1"), at(100));
        for (program, seconds, trusts) in [
            ((ip("10.0.0.7"), "Bot/1"), 109, true),
            ((ip("10.0.0.7"), "Bot/1"), 110, false),
            ((ip("10.0.0.7"), "Bot/1"), 99, false),
            ((ip("10.0.0.7"), "Bot/2"), 101, false),
            ((ip("10.0.0.8"), "Bot/1"), 101, false),
        ] {
            assert_eq!(rejections.trusts(program, at(seconds)), trusts, "{program:?} {seconds}");
        }
        for number in 0..2 * MAX_TRUSTING {
            rejections.note_trust(number, at(101));
        }
        assert!(rejections.trusts(2 * MAX_TRUSTING - 1, at(101)), "old ones made room");
        assert!(!rejections.trusts(0_usize, at(101)));
    }

    #[test]
    fn the_table_is_bounded_and_an_ipv6_network_is_one_client() {
        let rejections = Rejections::default();
        for number in 0..1000_u32 {
            let client = IpAddr::from(number.to_be_bytes());
            rejections.note(client, None, "https://a.example", RejectionKind::Distrust, at(1));
            let client = IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | u128::from(number)));
            rejections.note(client, None, "https://a.example", RejectionKind::Distrust, at(1));
        }
        let list = rejections.list();
        assert_eq!(list.len(), MAX_CLIENTS);
        assert_eq!(list[0].client, ip("2001:db8::"));
        assert_eq!(list[0].count, 1000);
    }
}
