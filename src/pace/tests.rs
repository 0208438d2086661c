mod properties;

use std::time::{Duration, Instant};

use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn limits(gap: u64) -> PaceLimits {
    PaceLimits {
        gap: seconds(gap),
        max_wait: seconds(10),
        ..PaceLimits::default()
    }
}

fn later(at: Instant, cause: Cause) -> Option<Later> {
    Some(Later { at, cause })
}

/// A limiter and its clock. A request is named by the letter of its bot and a number, such as `a1`.
struct Site {
    limiter: Limiter<char, &'static str>,
    start: Instant,
    now: u64,
}

impl Site {
    fn new() -> Self {
        Self {
            limiter: Limiter::new(),
            start: Instant::now(),
            now: 0,
        }
    }

    fn at(&mut self, now: u64) -> Instant {
        self.now = now;
        self.start + seconds(now)
    }

    fn now(&self) -> Instant {
        self.start + seconds(self.now)
    }

    /// The error says after how many seconds the request can be retried.
    fn enter(&mut self, name: &'static str, limits: PaceLimits) -> Result<u64, u64> {
        let (now, bot) = (self.now(), name.chars().next().expect("a bot"));
        let entered = self.limiter.enter(now, bot, limits, name);
        entered.map_err(|later| (later.at - now).as_secs())
    }

    fn run(&mut self) -> Vec<String> {
        let mut happened = Vec::new();
        loop {
            let now = self.now();
            match self.limiter.next(now) {
                Step::Go(name) => {
                    self.limiter.sent(now, false);
                    happened.push(format!("{name} goes"));
                }
                Step::Refuse(name, later) => {
                    happened.push(format!(
                        "{name} again in {}: {}",
                        (later.at - now).as_secs(),
                        later.cause
                    ));
                }
                Step::Wait(at) => {
                    happened.push(format!("wait for {}", (at - self.start).as_secs()));
                    return happened;
                }
                Step::Idle => return happened,
            }
        }
    }
}

#[test]
fn a_request_goes_at_once_and_the_next_after_the_gap() {
    let mut site = Site::new();
    site.enter("a1", limits(3)).expect("it may wait");
    assert_eq!(site.run(), ["a1 goes"]);
    site.enter("a2", limits(3)).expect("it may wait");
    assert_eq!(site.run(), ["wait for 3"]);
    site.at(3);
    assert_eq!(site.run(), ["a2 goes"]);
    site.at(6);
    site.enter("a3", limits(3)).expect("it may wait");
    assert_eq!(site.run(), ["a3 goes"]);
}

#[test]
fn a_robots_txt_request_delays_the_next_request() {
    let mut site = Site::new();
    let now = site.at(5);
    site.limiter.note_request(now);
    site.enter("a1", limits(3)).expect("it may wait");
    assert_eq!(site.run(), ["wait for 8"]);
}

#[test]
fn the_gap_counts_from_when_a_request_was_sent() {
    let mut site = Site::new();
    site.enter("a1", limits(3)).expect("it may wait");
    site.enter("a2", limits(3)).expect("it may wait");
    let now = site.now();
    assert_eq!(site.limiter.next(now), Step::Go("a1"));
    let now = site.at(5);
    let deadline = site.start + seconds(10);
    assert_eq!(site.limiter.next(now), Step::Wait(deadline), "a1 has not been sent");
    site.limiter.sent(now, false);
    assert_eq!(site.run(), ["wait for 8"]);
}

#[test]
fn a_turn_that_is_returned_unused_does_not_delay_the_next_request() {
    let mut site = Site::new();
    for name in ["a1", "a2", "a3"] {
        site.enter(name, limits(3)).expect("it may wait");
    }
    let now = site.now();
    assert_eq!(site.limiter.next(now), Step::Go("a1"));
    site.limiter.ended(false);
    assert_eq!(site.run(), ["a2 goes", "wait for 3"]);
}

#[test]
fn bots_take_turns_and_the_requests_of_each_bot_keep_their_order() {
    let mut site = Site::new();
    for name in ["a1", "a2", "a3", "b1", "c1", "b2"] {
        site.enter(name, limits(1)).expect("it may wait");
    }
    let mut order = Vec::new();
    for now in 0..6 {
        site.at(now);
        order.extend(site.run().into_iter().filter(|what| what.ends_with("goes")));
    }
    assert_eq!(
        order,
        ["a1 goes", "b1 goes", "c1 goes", "a2 goes", "b2 goes", "a3 goes"]
    );
}

#[test]
fn each_request_keeps_its_own_gap_after_the_previous_request() {
    let mut site = Site::new();
    for (name, gap) in [("a1", 1), ("b1", 5), ("a2", 1)] {
        site.enter(name, limits(gap)).expect("it may wait");
    }
    assert_eq!(site.run(), ["a1 goes", "wait for 5"]);
    site.at(5);
    assert_eq!(site.run(), ["b1 goes", "wait for 6"]);
    site.at(6);
    assert_eq!(site.run(), ["a2 goes"]);
}

#[test]
fn the_concurrency_limits_the_running_requests() {
    let mut site = Site::new();
    let two = PaceLimits {
        concurrency: Some(2),
        ..limits(0)
    };
    for name in ["a1", "a2", "a3", "a4"] {
        site.enter(name, two).expect("it may wait");
    }
    assert_eq!(site.run(), ["a1 goes", "a2 goes", "wait for 10"]);
    site.at(4);
    site.limiter.ended(true);
    assert_eq!(site.run(), ["a3 goes", "wait for 10"]);
    let now = site.now();
    assert_eq!(
        site.limiter.not_before(now, &'a', &two),
        later(now + seconds(1), Cause::Concurrency),
        "who knows when"
    );
    site.at(10);
    assert_eq!(site.run(), ["a4 again in 1: concurrency"]);
}

#[test]
fn a_request_that_would_wait_too_long_is_refused_immediately() {
    let mut site = Site::new();
    for (name, entered) in [
        ("a1", Ok(1)),
        ("a2", Ok(2)),
        ("a3", Ok(3)),
        ("a4", Err(12)),
        ("b1", Ok(4)),
        ("a5", Err(16)),
    ] {
        assert_eq!(site.enter(name, limits(4)), entered, "{name}");
        if name == "a1" {
            site.run();
        }
    }
    let now = site.now();
    for (bot, expected) in [('a', 16), ('b', 16), ('c', 12)] {
        let expected = later(now + seconds(expected), Cause::Delay);
        assert_eq!(site.limiter.not_before(now, &bot, &limits(4)), expected, "{bot}");
    }
}

#[test]
fn without_a_max_wait_an_early_request_is_refused_immediately() {
    let mut site = Site::new();
    let at_once = PaceLimits {
        max_wait: Duration::ZERO,
        ..limits(4)
    };
    assert_eq!(site.enter("a1", at_once), Ok(1));
    assert_eq!(site.run(), ["a1 goes"]);
    assert_eq!(site.enter("a2", at_once), Err(4));
}

#[test]
fn a_pause_delays_requests_and_refuses_those_that_cannot_wait_so_long() {
    let mut site = Site::new();
    site.enter("a1", limits(2)).expect("it may wait");
    site.run();
    site.enter("a2", limits(2)).expect("it may wait");
    let now = site.at(1);
    site.limiter.note_busy(now, site.start, Some(seconds(9)), 0.0);
    assert_eq!(site.run(), ["wait for 10"]);
    site.limiter.note_busy(now, site.start, Some(seconds(120)), 0.0);
    assert_eq!(site.run(), ["a2 again in 120: pause"]);
    assert_eq!(site.enter("b1", limits(2)), Err(120));
    site.at(115);
    site.enter("b2", limits(2)).expect("it may wait");
    assert_eq!(site.run(), ["wait for 121"]);
    site.at(121);
    assert_eq!(site.run(), ["b2 goes"]);
}

#[test]
fn a_request_that_leaves_the_queue_does_not_delay_the_next() {
    let mut site = Site::new();
    site.enter("a1", limits(3)).expect("it may wait");
    site.run();
    let gone = site.enter("a2", limits(3)).expect("it may wait");
    site.enter("b1", limits(3)).expect("it may wait");
    assert_eq!(site.limiter.leave(gone), Some("a2"));
    assert_eq!(site.limiter.leave(gone), None);
    site.at(3);
    assert_eq!(site.run(), ["b1 goes"]);
}

#[test]
fn at_most_256_requests_wait_for_one_origin() {
    let mut site = Site::new();
    let one = PaceLimits {
        concurrency: Some(1),
        ..limits(0)
    };
    site.enter("a0", one).expect("it may wait");
    site.run();
    for _ in 0..256 {
        site.enter("a1", one).expect("there is room");
    }
    assert_eq!(site.enter("b1", one), Err(1));
}

#[test]
fn a_limiter_is_idle_if_it_would_not_delay_any_request() {
    let mut site = Site::new();
    let now = site.now();
    assert!(site.limiter.is_idle(now, seconds(60)));
    site.enter("a1", limits(3)).expect("it may wait");
    assert!(!site.limiter.is_idle(now, seconds(60)), "one waits");
    site.run();
    let now = site.at(100);
    assert!(!site.limiter.is_idle(now, seconds(60)), "one runs");
    site.limiter.ended(true);
    assert!(site.limiter.is_idle(now, seconds(60)));
    assert!(!site.limiter.is_idle(now, seconds(101)), "the gap may count");
    site.limiter.note_busy(now, now, Some(seconds(5)), 0.0);
    assert!(
        !site.limiter.is_idle(now, seconds(60)) && !site.limiter.is_unused(now),
        "it is paused"
    );
    let now = site.at(105);
    assert!(site.limiter.is_idle(now, seconds(60)) && site.limiter.is_unused(now));
}

#[test]
fn changed_limits_apply_to_waiting_requests() {
    let mut site = Site::new();
    for name in ["a1", "a2", "b1"] {
        site.enter(name, limits(5)).expect("it may wait");
    }
    assert_eq!(site.run(), ["a1 goes", "wait for 5"]);
    let policy = |delay: u64, max_wait: u64| Policy {
        delay: seconds(delay),
        max_wait: seconds(max_wait),
        ..Policy::default()
    };
    site.at(1);
    site.limiter.reconfigure(&policy(2, 10));
    assert_eq!(site.run(), ["wait for 2"]);
    site.at(2);
    assert_eq!(site.run(), ["b1 goes", "wait for 4"]);
    site.limiter.reconfigure(&policy(60, 10));
    assert_eq!(site.run(), ["a2 again in 60: delay"]);
    site.enter("a3", limits(5)).expect("it may wait");
    site.limiter.reconfigure(&policy(5, 1));
    assert_eq!(site.run(), ["a3 again in 5: delay"]);
}

#[test]
fn a_refusal_says_which_limit_is_the_cause() {
    let entered = |site: &mut Site, limits: PaceLimits| {
        let entered = site.limiter.enter(site.now(), 'z', limits, "z1");
        entered.map_err(|later| later.cause)
    };
    let policy = Policy {
        delay: seconds(30),
        crawl_delay: CrawlDelay::Enforce,
        ..Policy::default()
    };
    for (bot, crawl, cause) in [
        (0, 0, Cause::Delay),
        (60, 50, Cause::BotDelay),
        (60, 70, Cause::CrawlDelay),
    ] {
        let mut site = Site::new();
        site.limiter.note_request(site.start);
        let limits = policy
            .limits(Some(seconds(bot)), Some(seconds(crawl)))
            .expect("not too long");
        assert_eq!(entered(&mut site, limits), Err(cause));
        site.limiter.note_busy(site.start, site.start, Some(seconds(20)), 0.0);
        assert_eq!(entered(&mut site, limits), Err(Cause::Pause));
    }
    let mut site = Site::new();
    site.limiter.note_request(site.start);
    for _ in 0..256 {
        site.enter("a1", limits(0)).expect("there is room");
    }
    assert_eq!(entered(&mut site, limits(0)), Err(Cause::Waiting));
}

#[test]
fn lifting_the_pace_releases_all_waiting_requests() {
    let mut site = Site::new();
    for name in ["a1", "a2", "b1"] {
        site.enter(name, limits(3)).expect("it may wait");
    }
    site.run();
    assert_eq!(site.limiter.release().collect::<Vec<_>>(), ["b1", "a2"]);
    assert_eq!(site.run(), [] as [&str; 0]);
}

#[test]
fn the_largest_delay_sets_the_gap_unless_it_exceeds_the_maximum() {
    let policy = Policy {
        delay: seconds(2),
        ..Policy::default()
    };
    let refusing = Policy {
        beyond_max: BeyondMax::Refuse,
        ..policy
    };
    for (bot, site, gap) in [
        (None, None, 2),
        (Some(1), None, 2),
        (Some(7), Some(5), 7),
        (Some(3), Some(5), 5),
        (None, Some(300), 300),
    ] {
        let [bot_delay, crawl_delay] = [bot, site].map(|delay| delay.map(seconds));
        for policy in [policy, refusing] {
            let gap_of = policy.limits(bot_delay, crawl_delay).map(|limits| limits.gap);
            assert_eq!(gap_of, Ok(seconds(gap)), "{bot:?} {site:?}");
        }
    }
    let clipped = policy.limits(None, Some(seconds(301))).map(|limits| limits.gap);
    assert_eq!(clipped, Ok(seconds(300)));
    let refused = refusing.limits(None, Some(seconds(301))).expect_err("it is too long");
    assert_eq!(
        refused.to_string(),
        "the site's Crawl-delay, 301 s, is longer than pace.crawl-delay-max, 300 s"
    );
}

#[test]
fn a_request_that_is_taken_out_would_join_again_behind_the_other_bots() {
    let mut queue = super::queue::Queue::new();
    let now = Instant::now();
    for (bot, gap) in [('a', 1), ('b', 2), ('c', 4), ('c', 8)] {
        queue.push(bot, limits(gap), now, gap);
    }
    // If this request of `c` joined again, one request of each other bot and the other request of `c` would come before
    // it.
    let (ahead, taken) = queue.take(|waiter| waiter.owner == 4).expect("it waits");
    let gaps = |ahead: Option<queue::Ahead>| ahead.map(|ahead| (ahead.first, ahead.others));
    assert_eq!((taken.owner, gaps(ahead)), (4, Some((seconds(1), seconds(2 + 8)))));
    // `a` has no other request. So if this request of `a` joined again, only one request of each other bot would come
    // before it.
    let (ahead, taken) = queue.take(|waiter| waiter.owner == 1).expect("it waits");
    assert_eq!((taken.owner, gaps(ahead)), (1, Some((seconds(2), seconds(8)))));
    assert_eq!(
        gaps(queue.ahead(&'a')),
        Some((seconds(2), seconds(8))),
        "as for a new request"
    );
}
