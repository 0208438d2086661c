//! How a robots.txt copy is stored on the fleet's server: a version, a tag, the origin's state as JSON, and the
//! compressed text.
//!
//! Without a shared secret, the tag is a SHA-256, which detects only accidental damage. With a secret, it is an
//! HMAC-SHA256. The HMAC covers the Redis key too, so that nobody can store the copy of one origin as that of another.

use std::{
    io::{Read as _, Write as _},
    time::{Duration, SystemTime},
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::{
    copy::{OriginState, Saved, Sha256},
    text::words,
};

words! {
    /// Why a robotgate ignores a robots.txt copy that the fleet's server stores.
    pub enum CopyRejection {
        /// The value is damaged, or is no robots.txt copy.
        Corrupt = "corrupt",
        /// The value has a version that only a later robotgate can know.
        Later = "later-version",
        /// The value's tag was not made with `fleet.key-file`.
        Forged = "wrong-key",
        /// The value was written under another key, such as that of another origin.
        Misplaced = "other-origin",
        /// The robots.txt copy claims to be fetched in the future, or to expire later than any copy can.
        Future = "future",
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    key: String,
    state: Saved,
}

/// Returns `None` if the value would exceed [`MAX_BYTES`].
pub(super) fn encode(key: &str, state: &OriginState, secret: Option<&hmac::Key>) -> Option<Vec<u8>> {
    let head = Head {
        key: key.to_owned(),
        state: state.save(),
    };
    let head = serde_json::to_vec(&head).ok()?;
    let mut payload = u32::try_from(head.len()).ok()?.to_be_bytes().to_vec();
    payload.extend(head);
    let mut text = DeflateEncoder::new(payload, Compression::fast());
    text.write_all(state.text().unwrap_or_default()).ok()?;
    let payload = text.finish().ok()?;
    let mut value = Vec::with_capacity(STAMP + payload.len());
    value.push(VERSION);
    match secret {
        Some(secret) => value.extend(hmac::sign(secret, &payload).as_ref()),
        None => value.extend(Sha256::of(&payload).0),
    }
    value.extend(payload);
    (value.len() <= MAX_BYTES).then_some(value)
}

/// Never panics. Parsing a large text can take half a millisecond.
pub(super) fn decode(
    key: &str,
    value: &[u8],
    secret: Option<&hmac::Key>,
    now: SystemTime,
) -> Result<OriginState, CopyRejection> {
    let (version, sealed) = value.split_first().ok_or(CopyRejection::Corrupt)?;
    match *version {
        VERSION if value.len() <= MAX_BYTES => {}
        later if later > VERSION => return Err(CopyRejection::Later),
        _ => return Err(CopyRejection::Corrupt),
    }
    let (tag, payload) = sealed.split_first_chunk::<TAG>().ok_or(CopyRejection::Corrupt)?;
    match secret {
        Some(secret) => hmac::verify(secret, payload, tag).map_err(|_| CopyRejection::Forged)?,
        None if *tag == Sha256::of(payload).0 => {}
        None => return Err(CopyRejection::Corrupt),
    }
    let (length, rest) = payload.split_first_chunk().ok_or(CopyRejection::Corrupt)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| CopyRejection::Corrupt)?;
    let (head, text) = rest.split_at_checked(length).ok_or(CopyRejection::Corrupt)?;
    let head: Head = serde_json::from_slice(head).map_err(|_| CopyRejection::Corrupt)?;
    if head.key != key {
        return Err(CopyRejection::Misplaced);
    }
    let text = match head.state.copy {
        Some(ref copy) => Some(inflate(text, copy.max_bytes()).ok_or(CopyRejection::Corrupt)?),
        None => None,
    };
    let state = head.state.restore(text.as_deref()).ok_or(CopyRejection::Corrupt)?;
    // The other robotgate's configuration prohibits the origin, but this one's may allow it.
    let state = if state.is_prohibited() {
        state.retrying_now()
    } else {
        state
    };
    let asked = state.last_fetch().ok_or(CopyRejection::Corrupt)?;
    let is_early = asked > now + CLOCK_SLACK;
    let is_long = state.useful_until().is_some_and(|until| until > now + LONGEST_LIFE);
    match is_early || is_long {
        true => Err(CopyRejection::Future),
        false => Ok(state),
    }
}

/// Returns how long the fleet's server keeps the copy: longer than the copy is valid, because the ETag of an expired
/// copy is still useful.
pub(super) fn life(state: &OriginState, now: SystemTime) -> Duration {
    let left = state.useful_until().and_then(|until| until.duration_since(now).ok());
    left.unwrap_or_default().min(LONGEST_LIFE) + DAY
}

/// Returns the version and the tag of a value, which are enough to tell values apart.
pub(super) fn stamp(value: &[u8]) -> &[u8] {
    value.get(..STAMP).unwrap_or(value)
}

/// Returns `None` if the text is damaged or longer than `max_bytes`.
fn inflate(text: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
    let mut inflated = Vec::new();
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    DeflateDecoder::new(text)
        .take(limit + 1)
        .read_to_end(&mut inflated)
        .ok()?;
    (inflated.len() <= max_bytes).then_some(inflated)
}

const VERSION: u8 = 1;
const TAG: usize = 32;
/// Length of the version and the tag, in bytes.
pub(super) const STAMP: usize = 1 + TAG;
/// Maximum length of a value, in bytes: enough for an incompressible robots.txt of the largest size, and for a
/// `tdmrep.json` of 1 MiB that compresses as well as JSON usually does.
pub(super) const MAX_BYTES: usize = 640 * 1024;
/// How much the clocks of two robotgates may differ.
const CLOCK_SLACK: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum time until a copy expires: 30 days, which is the largest `robots.max-ttl`, and a day to spare.
const LONGEST_LIFE: Duration = Duration::from_secs(31 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        copy::{Fetched, Freshness, OriginResponse, Policy},
        robots::LIMIT,
    };

    const KEY: &str = "robotgate:{https://a.example}:copy:0";

    fn secret(bytes: &[u8]) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, bytes)
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    fn state(status: u16, body: &[u8], fetched: SystemTime) -> OriginState {
        let policy = Policy::default();
        let fetched_as = Fetched::Response(OriginResponse {
            etag: Some("\"v1\"".into()),
            ..OriginResponse::new(status, body)
        });
        let meaning = fetched_as.meaning(&policy, fetched);
        OriginState::unknown().after(meaning, status, Freshness::default(), fetched, 0.0, &policy)
    }

    fn rules() -> OriginState {
        state(200, b"User-agent: *\nDisallow: /private\n", now())
    }

    #[test]
    fn an_encoded_state_decodes_to_the_same_state() {
        let large = vec![b'#'; LIMIT];
        for (status, body) in [
            (200, &b"User-agent: *\nDisallow: /a\n"[..]),
            (200, b""),
            (404, b""),
            (503, b""),
            (200, &large),
        ] {
            for secret in [None, Some(&secret(b"shared"))] {
                let state = state(status, body, now());
                let value = encode(KEY, &state, secret).expect("it is small enough");
                assert_eq!(decode(KEY, &value, secret, now()), Ok(state), "{status}");
                assert!(
                    body.len() < 100 || value.len() < 10_000,
                    "it is compressed: {}",
                    value.len()
                );
            }
        }
    }

    #[test]
    fn an_unusable_value_is_rejected_with_its_reason() {
        let plain = encode(KEY, &rules(), None).expect("small");
        let keyed = encode(KEY, &rules(), Some(&secret(b"shared"))).expect("small");
        let other = encode("robotgate:{https://b.example}:copy:0", &rules(), None).expect("small");
        let ahead = encode(KEY, &state(200, b"", now() + 2 * CLOCK_SLACK), None).expect("small");
        let later = [&[VERSION + 1], &plain[1..]].concat();
        let shared = secret(b"shared");
        for (what, value, secret, rejection) in [
            ("nothing", &b""[..], None, CopyRejection::Corrupt),
            ("a word", b"garbage", None, CopyRejection::Later),
            ("version 0", &[0; 100], None, CopyRejection::Corrupt),
            ("a later version", &later, None, CopyRejection::Later),
            (
                "no tag where one is needed",
                &plain,
                Some(&shared),
                CopyRejection::Forged,
            ),
            (
                "another key",
                &keyed,
                Some(&super::tests::secret(b"other")),
                CopyRejection::Forged,
            ),
            ("a tag that cannot be checked", &keyed, None, CopyRejection::Corrupt),
            ("another origin's copy", &other, None, CopyRejection::Misplaced),
            ("a fetch in the future", &ahead, None, CopyRejection::Future),
        ] {
            assert_eq!(decode(KEY, value, secret, now()), Err(rejection), "{what}");
        }
    }

    #[test]
    fn an_expiry_in_the_far_future_is_rejected() {
        let mut saved = serde_json::to_value(rules().save()).expect("JSON");
        saved["answered"]["life"] = (40 * DAY).as_micros().try_into().map(u64::into).expect("it fits");
        let saved: Saved = serde_json::from_value(saved).expect("it is one");
        let state = saved.restore(rules().text()).expect("it fits");
        let value = encode(KEY, &state, None).expect("small");
        assert_eq!(decode(KEY, &value, None, now()), Err(CopyRejection::Future));
    }

    #[test]
    fn a_value_with_a_changed_byte_or_a_missing_end_is_rejected() {
        for secret in [None, Some(&secret(b"shared"))] {
            let value = encode(KEY, &rules(), secret).expect("small");
            for at in 0..value.len() {
                let mut changed = value.clone();
                changed[at] ^= 0x10;
                assert!(decode(KEY, &changed, secret, now()).is_err(), "byte {at}");
                assert!(decode(KEY, &value[..at], secret, now()).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn a_compression_bomb_is_rejected() {
        let mut payload = encode(KEY, &rules(), None).expect("small").split_off(STAMP);
        let head = 4 + u32::from_be_bytes(*payload.first_chunk().expect("a length")) as usize;
        payload.truncate(head);
        let mut bomb = DeflateEncoder::new(payload, Compression::best());
        bomb.write_all(&vec![b'#'; 64 << 20]).expect("memory");
        let payload = bomb.finish().expect("memory");
        let value = [&[VERSION][..], &Sha256::of(&payload).0, &payload].concat();
        assert!(value.len() <= MAX_BYTES);
        assert_eq!(decode(KEY, &value, None, now()), Err(CopyRejection::Corrupt));
    }

    #[test]
    fn a_value_is_stored_for_a_bounded_time() {
        assert_eq!(life(&rules(), now()), 2 * DAY);
        assert_eq!(life(&rules(), now() + 9 * DAY), DAY);
        let failing = state(503, b"", now());
        assert_eq!(life(&failing, now()), DAY);
    }
}
