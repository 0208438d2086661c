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
    fn new(places: usize, slow: usize) -> Self {
        let (begun, running) = mpsc::unbounded_channel();
        Self {
            lanes: Arc::new(Lanes::of(places, slow)),
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
    assert_eq!(bench.begun(), [0, 1]);

    bench.end(1).await;
    assert_eq!(bench.begun(), [2]);
    bench.end(0).await;
    assert_eq!(bench.begun(), [3]);
    bench.end(2).await;
    bench.end(3).await;
    assert_eq!(bench.begun(), [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn slow_ones_leave_room_for_others() {
    let mut bench = Bench::new(4, 3);
    for number in 0..3 {
        drop(bench.ask(number).await);
    }
    pass(SLOW_AFTER * 2).await;
    for number in 3..8 {
        drop(bench.ask(number).await);
    }
    assert_eq!(
        bench.begun(),
        [0, 1, 2, 3],
        "one place is left, and there they go one by one"
    );
    for number in 3..7 {
        bench.end(number).await;
        assert_eq!(bench.begun(), [number + 1]);
    }
    pass(GIVE_WAY_AFTER * 2).await;
    assert_eq!(bench.begun(), [0; 0]);
    bench.end(0).await;
    bench.end(7).await;
    drop(bench.ask(8).await);
    drop(bench.ask(9).await);
    assert_eq!(bench.begun(), [8, 9]);
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
async fn where_slow_ones_take_more_than_their_room_they_give_way() {
    let mut bench = Bench::new(2, 1);
    let in_its_room = bench.ask(1).await;
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
    assert!(!in_its_room.is_finished());
}

#[test]
fn a_quarter_of_the_places_is_never_for_slow_ones() {
    for (max_fetches, places, slow) in [(0, 1, 0), (1, 1, 0), (2, 2, 1), (4, 4, 3), (5, 5, 3), (1024, 1024, 768)] {
        let lanes = Lanes::new(max_fetches);
        let found = (lanes.places.available_permits(), lanes.slow.available_permits());
        assert_eq!(found, (places, slow), "{max_fetches}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_gives_back_what_it_had() {
    let mut bench = Bench::new(2, 1);
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
    settle().await;
    assert_eq!(bench.lanes.slow.available_permits(), 1);
    drop(bench.ask(5).await);
    assert_eq!(bench.begun(), [5]);
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
