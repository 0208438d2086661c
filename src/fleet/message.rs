//! The messages that robotgates send each other through the fleet's server: a fetch has ended, an operator made the
//! fleet forget an origin, or an origin has asked for a pause.
//!
//! Anybody who can publish on the server's channel can repeat a message. So the last two kinds carry the server's time
//! and, if the robotgates share a key, an HMAC as a tag. A robotgate ignores such a message if it is too old, from
//! before the robotgate's subscription, or not newer than the last one of the same kind and origin.

use std::{collections::HashMap, sync::Weak, time::Duration};

use ring::hmac;
use tokio::sync::mpsc;

use super::client::FleetClient;
use crate::origin::Origin;

/// What a robotgate tells the other robotgates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An operator made the fleet forget this origin.
    Forgotten(Origin),
    Paused(Paused),
}

/// An origin asked for a pause, of which `left` remains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    pub origin: Origin,
    pub left: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The name of the sending robotgate.
    pub(super) by: String,
    /// When the event in the notice happened, by the fleet server's clock, in microseconds since 1970.
    pub(super) at: u64,
    pub(super) notice: Notice,
}

/// The channel of the fleet's messages, and the key for their tags.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) secret: Option<hmac::Key>,
}

/// [`Message::at`] of the last accepted message for each origin and kind.
#[derive(Debug, Default)]
pub(super) struct Accepted(HashMap<(Origin, Kind), u64>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Forgotten,
    Paused,
}

/// Calls `on_notice` for each message that is neither too old nor repeated. Ends when the robotgate leaves the fleet.
pub(super) async fn deliver(client: Weak<FleetClient>, mut inbox: mpsc::Receiver<Message>, on_notice: impl Fn(Notice)) {
    let mut accepted = Accepted::default();
    while let Some(message) = inbox.recv().await {
        let Some(client) = client.upgrade() else { return };
        // Without the fleet server's time, the age of the message is unknown, so drop the message.
        let Some(now) = client.time().await else { continue };
        match accepted.accept(message, now, client.listens_since()) {
            Some(notice) => on_notice(notice),
            None => tracing::debug!("ignored an old or repeated message of the fleet"),
        }
    }
}

// === impl Message ===

impl Message {
    fn kind(&self) -> (&Origin, Kind) {
        match &self.notice {
            Notice::Forgotten(origin) => (origin, Kind::Forgotten),
            Notice::Paused(Paused { origin, .. }) => (origin, Kind::Paused),
        }
    }

    fn text(&self) -> String {
        let Self { by, at, notice } = self;
        match notice {
            Notice::Forgotten(origin) => format!("{FORGOTTEN} {at} {by} {origin}"),
            Notice::Paused(Paused { origin, left }) => format!("{PAUSED} {at} {by} {origin} {}", left.as_micros()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let (at, by, notice) = match words[..] {
            [FORGOTTEN, at, by, origin] => (at, by, Notice::Forgotten(origin.parse().ok()?)),
            [PAUSED, at, by, origin, left] => {
                let (origin, left) = (origin.parse().ok()?, Duration::from_micros(left.parse().ok()?));
                (at, by, Notice::Paused(Paused { origin, left }))
            }
            _ => return None,
        };
        Some(Self {
            by: by.to_owned(),
            at: at.parse().ok()?,
            notice,
        })
    }
}

// === impl Channel ===

impl Channel {
    /// Returns what to publish: the text of the message and, if the robotgates share a key, its tag.
    pub(super) fn write(&self, message: &Message) -> String {
        let text = message.text();
        match &self.secret {
            Some(secret) => {
                let tag = hmac::sign(secret, &self.tagged(&text));
                format!("{text} {}", data_encoding::HEXLOWER.encode(tag.as_ref()))
            }
            None => text,
        }
    }

    pub(super) fn read(&self, published: &str) -> Option<Message> {
        let Some(secret) = &self.secret else {
            return Message::parse(published);
        };
        let (text, tag) = published.rsplit_once(' ')?;
        let tag = data_encoding::HEXLOWER.decode(tag.as_bytes()).ok()?;
        hmac::verify(secret, &self.tagged(text), &tag).ok()?;
        Message::parse(text)
    }

    /// The name of the channel keeps fleets with the same key from accepting each other's messages.
    fn tagged(&self, text: &str) -> Vec<u8> {
        [self.name.as_bytes(), b"\0", text.as_bytes()].concat()
    }
}

// === impl Accepted ===

impl Accepted {
    /// Returns `None` if the message is too old, from the future, or not newer than the last one of its kind and
    /// origin. Refuses messages from before `since`, because this robotgate may have accepted them before a restart.
    fn accept(&mut self, message: Message, now: u64, since: u64) -> Option<Notice> {
        let is_timely = |at: u64| now.checked_sub(at).is_some_and(|age| age <= MAX_AGE);
        // Keep the map small.
        self.0.retain(|_, at| is_timely(*at));
        // If `since` is in the future, the fleet server's clock was set back after the subscription, so ignore `since`.
        if !is_timely(message.at) || is_timely(since) && message.at <= since {
            return None;
        }
        let (origin, kind) = message.kind();
        let last = self.0.entry((origin.clone(), kind)).or_default();
        if message.at <= *last {
            return None;
        }
        *last = message.at;
        let age = Duration::from_micros(now - message.at);
        Some(match message.notice {
            Notice::Paused(Paused { origin, left }) => Notice::Paused(Paused {
                origin,
                left: left.saturating_sub(age),
            }),
            forgotten @ Notice::Forgotten(_) => forgotten,
        })
    }
}

/// The message that a fetch has ended: this word, then the server's key for the copy. It needs no tag, because it only
/// makes robotgates ask the server for the copy.
pub(super) const FETCHED: &str = "fetched ";
const FORGOTTEN: &str = "forgotten";
const PAUSED: &str = "paused";
/// Maximum number of received messages that wait for [`deliver`].
pub(super) const INBOX: usize = 256;
/// Maximum age of an accepted message, in microseconds.
const MAX_AGE: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000_000;
    const SECOND: u64 = 1_000_000;

    fn channel(name: &str, secret: Option<&[u8]>) -> Channel {
        Channel {
            name: name.to_owned(),
            secret: secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret)),
        }
    }

    fn site() -> Origin {
        "https://a.example".parse().expect("an origin")
    }

    fn forgotten(at: u64) -> Message {
        let (by, notice) = ("g".to_owned(), Notice::Forgotten(site()));
        Message { by, at, notice }
    }

    fn paused(at: u64, left: u64) -> Message {
        let (origin, left) = (site(), Duration::from_secs(left));
        Message {
            notice: Notice::Paused(Paused { origin, left }),
            ..forgotten(at)
        }
    }

    #[test]
    fn a_message_needs_the_tag_of_the_key_and_the_channel() {
        let (open, closed) = (channel("c", None), channel("c", Some(b"a key")));
        let others = [channel("c", Some(b"another")), channel("d", Some(b"a key"))];
        for message in [forgotten(NOW), paused(NOW, 60)] {
            let tagged = closed.write(&message);
            assert_eq!(closed.read(&tagged), Some(message.clone()));
            assert_eq!(open.read(&open.write(&message)), Some(message.clone()));
            assert_eq!(closed.read(&open.write(&message)), None, "it has no tag");
            for other in &others {
                assert_eq!(closed.read(&other.write(&message)), None, "{other:?}");
            }
            for (part, changed) in [
                ("a.example", "b.example"),
                ("60000000", "90000000"),
                ("1800", "1900"),
                ("d ", "d  "),
            ] {
                let forged = tagged.replace(part, changed);
                assert!(forged == tagged || closed.read(&forged).is_none(), "{forged}");
            }
        }
        for wrong in [
            "",
            "forgotten",
            "forgotten 1 g",
            "forgotten x g https://a.example",
            "paused 1 g https://a.example -1",
        ] {
            assert_eq!(open.read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_old_or_repeated_message_changes_nothing() {
        let left = |left: u64| {
            let (origin, left) = (site(), Duration::from_secs(left));
            Some(Notice::Paused(Paused { origin, left }))
        };
        let gone = Some(Notice::Forgotten(site()));
        let mut accepted = Accepted::default();
        for (what, message, now, notice) in [
            ("one from before it listened", forgotten(NOW - 2 * SECOND), NOW, None),
            ("a new one", forgotten(NOW), NOW, gone.clone()),
            ("the same one again", forgotten(NOW), NOW + SECOND, None),
            ("an earlier one", forgotten(NOW - SECOND), NOW + SECOND, None),
            ("one of another kind", paused(NOW, 60), NOW + 2 * SECOND, left(58)),
            ("a later one", forgotten(NOW + SECOND), NOW + 2 * SECOND, gone.clone()),
            (
                "one of the future",
                paused(NOW + 9 * SECOND, 60),
                NOW + 2 * SECOND,
                None,
            ),
            (
                "one of yesterday",
                paused(NOW - 86_400 * SECOND, 99_999),
                NOW + 2 * SECOND,
                None,
            ),
            ("after an hour", forgotten(NOW + SECOND), NOW + 3600 * SECOND, None),
            (
                "the server's clock was set back",
                forgotten(NOW - 3600 * SECOND),
                NOW - 3600 * SECOND,
                gone,
            ),
        ] {
            assert_eq!(accepted.accept(message, now, NOW - SECOND), notice, "{what}");
        }
        assert_eq!(accepted.0.len(), 1, "what can no longer be repeated is forgotten");
    }
}
