use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::advance,
};

use super::*;

struct Bench {
    limiter: Arc<FetchLimiter>,
    begun: mpsc::UnboundedSender<(usize, oneshot::Sender<()>)>,
    /// Receives each fetch when it begins, with a sender that ends it.
    running: mpsc::UnboundedReceiver<(usize, oneshot::Sender<()>)>,
    ends: Vec<(usize, oneshot::Sender<()>)>,
}

const ANYBODY: Requester = Requester {
    name: Name::Operators,
    max_fetches: 100,
};

impl Bench {
    fn new(permits: usize) -> Self {
        let (begun, running) = mpsc::unbounded_channel();
        Self {
            limiter: Arc::new(FetchLimiter::new(permits)),
            begun,
            running,
            ends: Vec::new(),
        }
    }

    async fn ask(&self, number: usize) -> JoinHandle<Result<(), FetchError>> {
        let (limiter, begun) = (self.limiter.clone(), self.begun.clone());
        let lookup = tokio::spawn(async move {
            let permit = limiter.enter(ANYBODY).expect("there is room");
            permit.turn().await;
            let fetch = async {
                let (end, ended) = oneshot::channel();
                begun.send((number, end)).expect("the bench is there");
                ended.await.expect("the test ends it");
            };
            permit.run(fetch).await
        });
        settle().await;
        lookup
    }

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
async fn running_fetches_are_limited_and_start_in_order_of_arrival() {
    let mut bench = Bench::new(2);
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
async fn slow_fetches_leave_permits_for_others() {
    // A requester can have at most three of the four permits, and slow fetches can keep at most two.
    let mut bench = Bench::new(4);
    for number in 0..2 {
        drop(bench.ask(number).await);
    }
    pass(SLOW_AFTER * 2).await;
    for number in 2..7 {
        drop(bench.ask(number).await);
    }
    assert_eq!(
        bench.begun(),
        [0, 1, 2],
        "one permit is left, which the other fetches get one by one"
    );
    for number in 2..6 {
        bench.end(number).await;
        assert_eq!(bench.begun(), [number + 1]);
    }
    pass(GIVE_WAY_AFTER * 2).await;
    assert_eq!(bench.begun(), [0; 0], "the slow fetches keep their permits");
}

#[tokio::test(start_paused = true)]
async fn a_slow_fetch_continues_while_no_other_waits() {
    let mut bench = Bench::new(1);
    let first = bench.ask(1).await;
    pass(GIVE_WAY_AFTER * 10).await;
    assert_eq!(bench.begun(), [1]);
    bench.end(1).await;
    assert_eq!(first.await.expect("no panic"), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn slow_fetches_over_their_share_give_way() {
    let mut bench = Bench::new(2);
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
fn slow_fetches_get_at_most_half_of_the_permits() {
    for (max_fetches, slow) in [(0, 0), (1, 0), (2, 1), (5, 2), (1024, 512)] {
        let found = FetchLimiter::new(max_fetches).slow.available_permits();
        assert_eq!(found, slow, "{max_fetches}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_fetch_gives_back_its_permits() {
    let mut bench = Bench::new(2);
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
    assert_eq!(bench.limiter.slow.available_permits(), 1);
    drop(bench.ask(5).await);
    assert_eq!(bench.begun(), [5]);
}
