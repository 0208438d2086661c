use std::{cell::Cell, sync::Arc};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, advance, sleep},
};

use super::*;

/// Fetches that are begun and ended by hand.
struct Bench {
    lanes: Arc<Lanes>,
    begun: mpsc::UnboundedSender<(usize, oneshot::Sender<()>)>,
    /// The numbers of those that have begun, and what ends them.
    running: mpsc::UnboundedReceiver<(usize, oneshot::Sender<()>)>,
    ends: Vec<(usize, oneshot::Sender<()>)>,
}

impl Bench {
    fn new(quick: usize, slow: usize) -> Self {
        let (begun, running) = mpsc::unbounded_channel();
        Self {
            lanes: Arc::new(Lanes::of(quick, slow)),
            begun,
            running,
            ends: Vec::new(),
        }
    }

    /// Asks for a turn, behind those who have asked before.
    async fn ask(&self, number: usize) -> JoinHandle<Result<(), FetchError>> {
        let (lanes, begun) = (self.lanes.clone(), self.begun.clone());
        let asked = tokio::spawn(async move {
            let fetch = async || {
                let (end, ended) = oneshot::channel();
                begun.send((number, end)).expect("the bench is there");
                ended.await.expect("the test ends it");
            };
            lanes.run(fetch).await
        });
        settle().await;
        asked
    }

    /// The numbers of those that have begun since this was asked last, in order.
    fn begun(&mut self) -> Vec<usize> {
        let from = self.ends.len();
        while let Ok(begun) = self.running.try_recv() {
            self.ends.push(begun);
        }
        self.ends[from..].iter().map(|(number, _)| *number).collect()
    }

    async fn end(&mut self, number: usize) {
        let at = self.ends.iter().position(|(begun, _)| *begun == number);
        let (_, end) = self.ends.swap_remove(at.expect("it has begun"));
        end.send(()).expect("it runs");
        settle().await;
    }
}

/// Lets everything happen that happens by itself.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn pass(time: Duration) {
    advance(time).await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_bound_run_and_the_next_is_the_one_that_waits_longest() {
    let mut bench = Bench::new(2, 1);
    for number in 0..6 {
        drop(bench.ask(number).await);
    }
    assert_eq!(bench.begun(), [0, 1], "the third place is for slow ones");

    bench.end(1).await;
    assert_eq!(bench.begun(), [2]);
    bench.end(0).await;
    assert_eq!(bench.begun(), [3]);
    bench.end(2).await;
    bench.end(3).await;
    assert_eq!(bench.begun(), [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_one_makes_room_while_there_is_a_place_for_it() {
    let mut bench = Bench::new(2, 2);
    for number in 0..8 {
        drop(bench.ask(number).await);
    }
    assert_eq!(bench.begun(), [0, 1]);

    pass(SLOW_AFTER - Duration::from_millis(1)).await;
    assert_eq!(bench.begun(), [0; 0]);
    pass(Duration::from_millis(2)).await;
    assert_eq!(bench.begun(), [2, 3]);

    pass(SLOW_AFTER * 2).await;
    assert_eq!(bench.begun(), [0; 0], "the slow lane is full, and four run");
    bench.end(0).await;
    assert_eq!(bench.begun(), [4], "one of those that are slow by now took its place");
    bench.end(2).await;
    assert_eq!(bench.begun(), [5]);
    bench.end(3).await;
    assert_eq!(
        bench.begun(),
        [0; 0],
        "a place among the slow ones is free, and nobody is slow"
    );
    pass(SLOW_AFTER * 2).await;
    assert_eq!(bench.begun(), [6]);
}

#[tokio::test(start_paused = true)]
async fn where_one_may_run_a_slow_one_keeps_its_place() {
    let mut bench = Bench::new(1, 0);
    let first = bench.ask(1).await;
    drop(bench.ask(2).await);

    pass(SLOW_AFTER * 3).await;
    assert_eq!(bench.begun(), [1]);
    bench.end(1).await;
    assert_eq!(first.await.expect("no panic"), Ok(()));
    assert_eq!(bench.begun(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_one_that_nobody_is_in_need_of_a_place_of_goes_on() {
    let mut bench = Bench::new(1, 0);
    let first = bench.ask(1).await;
    pass(GIVE_WAY_AFTER * 10).await;
    assert_eq!(bench.begun(), [1]);
    bench.end(1).await;
    assert_eq!(first.await.expect("no panic"), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn where_all_places_are_taken_by_slow_ones_they_give_way() {
    let mut bench = Bench::new(1, 1);
    let in_the_slow_lane = bench.ask(1).await;
    pass(SLOW_AFTER * 2).await;
    let in_the_way = bench.ask(2).await;
    drop(bench.ask(3).await);
    assert_eq!(bench.begun(), [1, 2]);
    for _ in 0..4 {
        pass(SLOW_AFTER).await;
        assert_eq!(bench.begun(), [0; 0]);
    }
    pass(SLOW_AFTER * 2).await;
    assert_eq!(bench.begun(), [3]);
    assert_eq!(in_the_way.await.expect("no panic"), Err(FetchError::GaveWay));
    assert!(!in_the_slow_lane.is_finished());
}

#[test]
fn a_quarter_of_the_places_is_for_those_that_begin() {
    for (max_fetches, quick, slow) in [(1, 1, 0), (2, 1, 1), (4, 1, 3), (5, 2, 3), (1024, 256, 768)] {
        let lanes = Lanes::new(max_fetches);
        let found = (lanes.quick.available_permits(), lanes.slow.available_permits());
        assert_eq!(found, (quick, slow), "{max_fetches}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_gives_back_what_it_had() {
    let mut bench = Bench::new(1, 1);
    let slow = bench.ask(1).await;
    pass(SLOW_AFTER * 2).await;
    let quick = bench.ask(2).await;
    let waiting = bench.ask(3).await;
    drop(bench.ask(4).await);
    assert_eq!(bench.begun(), [1, 2]);

    waiting.abort();
    settle().await;
    quick.abort();
    settle().await;
    assert_eq!(bench.begun(), [4], "the third has gone");
    slow.abort();
    pass(SLOW_AFTER * 2).await;
    drop(bench.ask(5).await);
    assert_eq!(bench.begun(), [5], "the fourth is in the slow lane");
    assert_eq!(bench.lanes.waiting.available_permits(), MAX_WAITING);
}

#[tokio::test(start_paused = true)]
async fn of_too_many_that_wait_the_next_is_turned_away_and_does_nothing() {
    let mut bench = Bench::new(1, 0);
    drop(bench.ask(1).await);
    let places = u32::try_from(MAX_WAITING).expect("it is small");
    let taken = bench.lanes.waiting.acquire_many(places - 1).await.expect("open");
    drop(bench.ask(2).await);

    let error = bench
        .ask(3)
        .await
        .await
        .expect("no panic")
        .expect_err("nobody may wait");
    assert_eq!(
        error.to_string(),
        "robotgate failed inside: too many robots.txt fetches wait already"
    );
    drop(taken);
    assert_eq!(bench.begun(), [1]);
    bench.end(1).await;
    assert_eq!(bench.begun(), [2]);
    bench.end(2).await;
    drop(bench.ask(4).await);
    assert_eq!(bench.begun(), [4], "those who do not wait need no place");
}

#[tokio::test(start_paused = true)]
async fn a_fetch_begins_in_its_turn_and_not_before() {
    let lanes = Lanes::new(1);
    let begun = Cell::new(None);
    let start = Instant::now();
    let first = lanes.run(|| sleep(Duration::from_secs(3)));
    let second = lanes.run(|| {
        begun.set(Some(start.elapsed()));
        // As large as one that talks to a server.
        let buffer = [0_u8; 16 * 1024];
        async move { buffer.len() }
    });
    let size = size_of_val(&second);
    assert!(size < 2048, "one who waits holds {size} bytes");

    let (_, length) = tokio::join!(first, second);

    assert_eq!(length, Ok(16 * 1024));
    assert_eq!(begun.get(), Some(Duration::from_secs(3)));
}
