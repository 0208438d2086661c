//! Limits how fast the robotgates of a fleet together send requests to a site. The fleet's server hands out slots, the
//! times at which requests may be sent, and keeps the pauses that origins have asked for.
//!
//! Robotgates and the server exchange durations, so their clocks may differ. The stored values have no HMAC, so anybody
//! who can write to the server can change them. But the scripts ignore values that are too large.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use redis::{Script, Value};

use super::{Fleet, Notice, Paused};
use crate::{
    origin::Origin,
    pace::{FIRST_PAUSE, JITTER, LONGEST_PAUSE, MAX_GAP, MAX_WAIT, QUIET},
};

/// The fleet server's answer to a request for a slot. The durations are counted from the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotReservation {
    /// The request may be sent after this time.
    Reserved(Duration),
    /// This much of a pause is left. No slot was reserved.
    Paused(Duration),
    /// The next slot is this far away, longer than the request may wait. No slot was reserved.
    TooLate(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextSlot {
    pub(crate) wait: Duration,
    pub(crate) is_paused: bool,
}

// === impl Fleet ===

impl Fleet {
    /// Reserves the next slot at an origin. A slot cannot be given back. Returns `None` if the fleet's server gives no
    /// valid answer within `time_left`, or has just failed to answer another request.
    pub(crate) async fn reserve(
        &self,
        origin: &Origin,
        gap: Duration,
        longest_wait: Duration,
        time_left: Duration,
    ) -> Option<SlotReservation> {
        if self.client.has_just_failed() {
            return None;
        }
        let longest_wait = micros(longest_wait);
        let slot = parse_reservation(&self.ask_for_slot(origin, gap, longest_wait, time_left).await?)?;
        // The script never returns a wait above these limits.
        let is_sound = match slot {
            SlotReservation::Reserved(wait) => micros(wait) <= longest_wait,
            SlotReservation::Paused(wait) | SlotReservation::TooLate(wait) => {
                wait <= LONGEST_PAUSE + MAX_WAIT + MAX_GAP
            }
        };
        is_sound.then_some(slot)
    }

    /// Returns when the next slot is, without reserving it. `None` if the fleet's server gives no valid answer.
    pub(crate) async fn next_slot(&self, origin: &Origin, gap: Duration) -> Option<NextSlot> {
        let answer = self.ask_for_slot(origin, gap, -1, self.client.call_timeout).await?;
        let [_, wait, pause] = numbers(&answer)?;
        Some(NextSlot {
            wait: Duration::from_micros(wait),
            is_paused: pause > 0,
        })
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.client.call_timeout
    }

    async fn ask_for_slot(
        &self,
        origin: &Origin,
        gap: Duration,
        longest_wait: i64,
        time_left: Duration,
    ) -> Option<Value> {
        let mut reserve = RESERVE.key(self.pace_key(origin));
        reserve.arg(micros(gap)).arg(longest_wait);
        self.client.call(&reserve, time_left).await.ok()
    }

    /// Tells the fleet's server of a request that was sent without a slot, so that a gap follows it too. Does not wait.
    pub(crate) fn note_request(self: &Arc<Self>, origin: &Origin) {
        if !self.is_used() {
            return;
        }
        let (fleet, key) = (self.clone(), self.pace_key(origin));
        tokio::spawn(async move {
            let _ = fleet.client.call(&NOTE.key(key), fleet.write_timeout()).await;
        });
    }

    /// Tells the fleet's server that an origin responded with 429 or 503 to a request that began `age` ago. If this
    /// makes the pause longer, also tells the other robotgates. `asked` and `spread` are as in
    /// [`Limiter::note_busy`](crate::pace::Limiter::note_busy).
    pub(crate) fn note_busy(self: &Arc<Self>, origin: &Origin, age: Duration, asked: Option<Duration>, spread: f64) {
        if !self.is_used() {
            return;
        }
        let (fleet, origin) = (self.clone(), origin.clone());
        tokio::spawn(async move {
            let key = fleet.pace_key(&origin);
            let mut busy = BUSY.key(&key);
            let asked = asked.unwrap_or_default().min(LONGEST_PAUSE);
            // This robotgate may have sent the request before it knew that the site is busy. So report the request as
            // older by `NEWS`; otherwise, the response could begin a new incident (see `pace::backoff`).
            busy.arg(micros(asked)).arg(micros(age + NEWS)).arg(spread);
            let answer = fleet.client.call(&busy, fleet.write_timeout()).await;
            if let Ok(answer) = answer
                && let Some([1, left, now]) = numbers(&answer)
                && let Ok(now) = i64::try_from(now)
            {
                let left = Duration::from_micros(left);
                fleet.tell(&key, now, Notice::Paused(Paused { origin, left })).await;
            }
        });
    }

    fn pace_key(&self, origin: &Origin) -> String {
        format!("{}:{{{origin}}}:pace", self.prefix)
    }
}

fn parse_reservation(answer: &Value) -> Option<SlotReservation> {
    match numbers(answer)? {
        [1, wait, 0] => Some(SlotReservation::Reserved(Duration::from_micros(wait))),
        [0, wait, 0] => Some(SlotReservation::TooLate(Duration::from_micros(wait))),
        [0, _, pause] => Some(SlotReservation::Paused(Duration::from_micros(pause))),
        _ => None,
    }
}

fn numbers<const N: usize>(answer: &Value) -> Option<[u64; N]> {
    let Value::Array(items) = answer else { return None };
    let numbers = items.iter().map(|item| match item {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    });
    numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// How long it can take until all robotgates know of a pause.
const NEWS: Duration = Duration::from_millis(100);

/// Sets `now` to the fleet server's time. All times in the scripts are in microseconds.
const CLOCK: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]";

/// Reads what the fleet's server stores of an origin: the time of the last slot (`last`), the end of the pause
/// (`until`), when the last incident `began` (see `pace::backoff`), and the number `n` of incidents that began without
/// a `Retry-After` and are not forgotten yet. Ignores values that no script writes, such as a pause of more than a day,
/// because one of them could stop the robotgates forever.
const STATE: &str = "
local function number(text, largest)
  local value = type(text) == 'string' and #text < 17 and string.match(text, '^%d+$') and tonumber(text)
  return value and value <= largest and value or 0
end
local function text(value) return string.format('%.0f', value) end
local kept = redis.pcall('HMGET', KEYS[1], 'last', 'until', 'began', 'n')
local last, ends = number(kept[1], now + MAX_WAIT), number(kept[2], now + LONGEST_PAUSE)
local began, n = number(kept[3], now), number(kept[4], MAX_N)
local function keep(...)
  if kept.err then redis.call('DEL', KEYS[1]) end
  redis.call('HSET', KEYS[1], ...)
  redis.call('PEXPIRE', KEYS[1], text((math.max(last, ends, now) - now + MAX_GAP) / 1000))
end
";

/// Reserves a slot, unless there is a pause or the slot is too far away. Returns whether it reserved a slot, how far
/// away the slot is, and how much of a pause is left.
static RESERVE: LazyLock<Script> = LazyLock::new(|| {
    script(
        CLOCK,
        "
local gap, longest_wait = tonumber(ARGV[1]), tonumber(ARGV[2])
local slot = math.max(now, ends)
if gap > 0 then slot = math.max(slot, last + gap) end
if ends > now or slot - now > longest_wait then return {0, slot - now, math.max(ends - now, 0)} end
last = math.max(last, slot)
keep('last', text(last))
return {1, slot - now, 0}",
    )
});

static NOTE: LazyLock<Script> = LazyLock::new(|| {
    script(
        CLOCK,
        "
last = math.max(last, now)
keep('last', text(last))
return 1",
    )
});

static BUSY: LazyLock<Script> = LazyLock::new(|| script(CLOCK, NOTE_BUSY));

/// Does the same as `pace::backoff`. Returns whether the pause became longer, how much of it is left if it did, and the
/// fleet server's time.
const NOTE_BUSY: &str = "
local asked, request_began, spread = tonumber(ARGV[1]), now - tonumber(ARGV[2]), tonumber(ARGV[3])
local is_new = request_began > began
if is_new then
  if now >= ends + (n > 0 and QUIET or 0) then n = 0 end
  began = now
end
local pause = math.min(asked, LONGEST_PAUSE)
if asked == 0 then
  if not is_new then return {0, 0, now} end
  pause = math.min(FIRST_PAUSE * 2 ^ n, LONGEST_PAUSE) * (1 + JITTER * spread)
  pause = math.floor(math.min(pause, LONGEST_PAUSE))
  n = math.min(n + 1, MAX_N)
end
local is_longer = now + pause > ends
ends = math.max(ends, now + pause)
keep('until', text(ends), 'began', text(began), 'n', text(n))
return {is_longer and 1 or 0, ends - now, now}";

fn script(clock: &str, body: &str) -> Script {
    let mut text = format!("local JITTER, MAX_N = {JITTER}, 64\n");
    for (name, time) in [
        ("FIRST_PAUSE", FIRST_PAUSE),
        ("LONGEST_PAUSE", LONGEST_PAUSE),
        ("QUIET", QUIET),
        ("MAX_WAIT", MAX_WAIT),
        ("MAX_GAP", MAX_GAP),
    ] {
        text += &format!("local {name} = {}\n", micros(time));
    }
    Script::new(&[&text, clock, STATE, body].concat())
}

#[cfg(test)]
mod tests;
