//! Compares the limiter with a simple model, which lists the requests that wait and those that have their turn.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Event {
    /// A request of a bot arrives. The numbers are the bot, and the request's gap and `max_wait` in ms.
    Come(u8, u64, u64),
    /// This many milliseconds pass.
    Pass(u64),
    Send(usize),
    End(usize),
    /// A request that has its turn ends without being sent.
    GiveBack(usize),
    Leave(usize),
    /// The site responds with 429 and a `Retry-After` of this many milliseconds.
    Busy(u64),
    Fetch,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let gaps = prop::sample::select(vec![0, 10, 100, 1000, 5000]);
    let event = prop_oneof![
        6 => (0..4_u8, gaps, 0..4000_u64).prop_map(|(bot, gap, patience)| Event::Come(bot, gap, patience)),
        4 => (0..1500_u64).prop_map(Event::Pass),
        4 => any::<usize>().prop_map(Event::Send),
        3 => any::<usize>().prop_map(Event::End),
        2 => any::<usize>().prop_map(Event::GiveBack),
        1 => any::<usize>().prop_map(Event::Leave),
        1 => (1..3000_u64).prop_map(Event::Busy),
        1 => Just(Event::Fetch),
    ];
    prop::collection::vec(event, 0..200)
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    bot: u8,
    gap: Duration,
    deadline: Instant,
}

struct Model {
    limiter: Limiter<u8, u64>,
    now: Instant,
    concurrency: u32,
    next_name: u64,
    waiting: BTreeMap<u64, (u64, Waiting)>,
    /// The bots with waiting requests. The first one gets the next turn.
    round: VecDeque<u8>,
    unsent: Vec<u64>,
    running: Vec<u64>,
    last_sent: Option<Instant>,
    paused_until: Instant,
}

impl Model {
    fn new(concurrency: u32) -> Self {
        let now = Instant::now();
        Self {
            limiter: Limiter::new(),
            now,
            concurrency,
            next_name: 0,
            waiting: BTreeMap::new(),
            round: VecDeque::new(),
            unsent: Vec::new(),
            running: Vec::new(),
            last_sent: None,
            paused_until: now,
        }
    }

    fn come(&mut self, bot: u8, gap: u64, patience: u64) {
        let limits = PaceLimits {
            gap: Duration::from_millis(gap),
            concurrency: Some(self.concurrency),
            max_wait: Duration::from_millis(patience),
            ..PaceLimits::default()
        };
        self.next_name += 1;
        let name = self.next_name;
        let deadline = self.now + limits.max_wait;
        match self.limiter.enter(self.now, bot, limits, name) {
            Ok(number) => {
                let waiting = Waiting {
                    bot,
                    gap: limits.gap,
                    deadline,
                };
                self.waiting.insert(name, (number, waiting));
                if !self.round.contains(&bot) {
                    self.round.push_back(bot);
                }
            }
            Err(later) => {
                assert!(later.at > self.now);
                let lone = self.waiting.is_empty();
                assert!(!lone || self.earliest(limits.gap) > deadline, "it could have waited");
            }
        }
    }

    /// Returns the earliest time that the gap and the pauses allow.
    fn earliest(&self, gap: Duration) -> Instant {
        let last = if self.unsent.is_empty() {
            self.last_sent
        } else {
            Some(self.now)
        };
        let free = last.map_or(self.now, |last| last + gap);
        free.max(self.paused_until).max(self.now)
    }

    fn next_in_turn(&self) -> Option<(u64, Waiting)> {
        let bot = self.round.front()?;
        let first = self.waiting.iter().find(|(_, (_, waiting))| waiting.bot == *bot);
        first.map(|(name, (_, waiting))| (*name, *waiting))
    }

    fn may_go(&self, waiting: &Waiting) -> bool {
        let has_room = self.unsent.len() + self.running.len() < self.concurrency as usize;
        let may_follow = self.unsent.is_empty() || waiting.gap.is_zero();
        has_room && may_follow && self.earliest(waiting.gap) <= self.now
    }

    fn forget(&mut self, name: u64) -> Waiting {
        let (_, gone) = self.waiting.remove(&name).expect("it waits");
        if !self.waiting.values().any(|(_, other)| other.bot == gone.bot) {
            self.round.retain(|bot| *bot != gone.bot);
        }
        gone
    }

    fn run(&mut self) -> Option<Instant> {
        loop {
            match self.limiter.next(self.now) {
                Step::Go(name) => {
                    let (next, waiting) = self.next_in_turn().expect("somebody waits");
                    assert_eq!(name, next, "it is another one's turn");
                    assert!(self.may_go(&waiting), "{waiting:?} goes too early");
                    self.forget(name);
                    if self.round.contains(&waiting.bot) {
                        self.round.rotate_left(1);
                    }
                    self.unsent.push(name);
                }
                Step::Refuse(name, later) => {
                    let waiting = self.forget(name);
                    let is_late = waiting.deadline <= self.now || self.earliest(waiting.gap) > waiting.deadline;
                    assert!(is_late, "{waiting:?} could have waited");
                    assert!(later.at > self.now);
                }
                Step::Wait(at) => {
                    let (_, waiting) = self.next_in_turn().expect("somebody waits");
                    assert!(!self.may_go(&waiting), "{waiting:?} could go");
                    assert!(at > self.now, "nothing would change");
                    return Some(at);
                }
                Step::Idle => {
                    assert!(self.waiting.is_empty(), "{:?} are forgotten", self.waiting);
                    return None;
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.run().filter(|at| *at <= until) {
            self.now = at;
        }
        self.now = until;
        self.run();
    }

    fn handle(&mut self, event: Event) {
        let pick = |list: &mut Vec<u64>, index: usize| match list.len() {
            0 => None,
            length => Some(list.remove(index % length)),
        };
        match event {
            Event::Come(bot, gap, patience) => self.come(bot, gap, patience),
            Event::Pass(time) => self.pass(Duration::from_millis(time)),
            Event::Send(index) => {
                if let Some(name) = pick(&mut self.unsent, index) {
                    self.limiter.sent(self.now, false);
                    self.running.push(name);
                    self.last_sent = Some(self.now);
                }
            }
            Event::End(index) => {
                if pick(&mut self.running, index).is_some() {
                    self.limiter.ended(true);
                }
            }
            Event::GiveBack(index) => {
                if pick(&mut self.unsent, index).is_some() {
                    self.limiter.ended(false);
                }
            }
            Event::Leave(index) => {
                let name = match self.waiting.len() {
                    0 => return,
                    length => *self.waiting.keys().nth(index % length).expect("it is one of them"),
                };
                let number = self.waiting[&name].0;
                assert_eq!(self.limiter.leave(number), Some(name));
                self.forget(name);
            }
            Event::Busy(time) => {
                let asked = Duration::from_millis(time);
                self.limiter.note_busy(self.now, self.now, Some(asked), 0.5);
                self.paused_until = self.paused_until.max(self.now + asked);
            }
            Event::Fetch => {
                self.limiter.note_request(self.now);
                self.last_sent = Some(self.now);
            }
        }
        self.run();
    }
}

proptest! {
    #[test]
    fn the_limiter_agrees_with_the_model_and_leaves_no_request_waiting(events in events(), concurrency in 1..4_u32) {
        let mut model = Model::new(concurrency);
        for event in events {
            model.handle(event);
        }
        // No `max_wait` is longer than 5 seconds, so no request waits after that.
        model.pass(Duration::from_secs(5));
        prop_assert!(model.waiting.is_empty());
        let under_way = model.unsent.len() + model.running.len();
        for _ in 0..under_way {
            model.handle(Event::Send(0));
            model.handle(Event::End(0));
        }
        prop_assert!(model.limiter.is_idle(model.now + Duration::from_secs(10), Duration::from_secs(5)));
    }
}
