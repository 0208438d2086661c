use std::{
    pin::Pin,
    sync::atomic::AtomicU32,
    task::{Context, Poll, Waker},
};

use tokio::time::{Instant as Clock, advance};

use super::*;
use crate::pace::Cause;

fn origin(host: &str) -> Origin {
    format!("https://{host}").parse().expect("an origin")
}

fn limits(gap: u64) -> PaceLimits {
    PaceLimits {
        gap: Duration::from_secs(gap),
        max_wait: Duration::from_secs(10),
        ..PaceLimits::default()
    }
}

type TurnFuture = Pin<Box<dyn Future<Output = Result<Turn, TooEarly>> + Send>>;

fn ask(pacer: &Arc<Pacer>, bot: &'static str, limits: PaceLimits) -> TurnFuture {
    let pacer = pacer.clone();
    Box::pin(async move { pacer.turn(&origin("a.example"), bot, limits).await })
}

fn poll(turn: &mut TurnFuture) -> Option<Result<Turn, TooEarly>> {
    match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ended) => Some(ended),
        Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn turns_are_a_gap_apart_and_immediate_at_an_unvisited_origin() {
    let pacer = Arc::new(Pacer::new(100));
    let start = Clock::now();
    let turns: Vec<_> = (0..4).map(|_| tokio::spawn(ask(&pacer, "a", limits(3)))).collect();
    let mut when = Vec::new();
    for turn in turns {
        turn.await.expect("it ends").expect("it may wait").sent();
        when.push(start.elapsed().as_secs());
    }
    assert_eq!(when, [0, 3, 6, 9]);
    let elsewhere = pacer.turn(&origin("b.example"), "a", limits(3)).await;
    assert!(elsewhere.is_ok());
    assert_eq!((start.elapsed().as_secs(), pacer.waiting()), (9, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gives_its_turn_to_the_next() {
    let pacer = Arc::new(Pacer::new(100));
    let (mut gone, mut told) = (ask(&pacer, "a", limits(3)), ask(&pacer, "b", limits(3)));
    pacer.note_request(&origin("a.example"));
    assert!(poll(&mut gone).is_none() && poll(&mut told).is_none());
    let last = tokio::spawn(ask(&pacer, "c", limits(3)));
    tokio::task::yield_now().await;
    assert_eq!(pacer.waiting(), 3);
    drop(gone);
    assert_eq!(pacer.waiting(), 2);
    // The pacer grants request "b" its turn, but "b" is dropped before it learns of this.
    advance(Duration::from_secs(3)).await;
    while pacer.waiting() == 2 {
        tokio::task::yield_now().await;
    }
    let now = Clock::now();
    drop(told);
    let turn = last.await.expect("it ends").expect("it has its turn");
    assert_eq!(Clock::now(), now, "the turn was given back");
    assert_eq!(pacer.waiting(), 0);
    drop(turn);
}

#[tokio::test(start_paused = true)]
async fn an_unused_turn_does_not_delay_the_next_request() {
    let pacer = Arc::new(Pacer::new(100));
    let turn = ask(&pacer, "a", limits(3)).await.expect("its turn");
    let next = tokio::spawn(ask(&pacer, "a", limits(3)));
    tokio::task::yield_now().await;
    let now = Clock::now();
    drop(turn);
    next.await.expect("it ends").expect("its turn").sent();
    assert_eq!(Clock::now(), now);
    let early = ask(&pacer, "a", limits(11)).await.expect_err("it would wait too long");
    let expected = now.into_std() + Duration::from_secs(11);
    assert_eq!(early.later.at, expected);
    let asked = pacer.not_before(&origin("a.example"), "a", &limits(11));
    assert_eq!(asked.map(|later| later.at), Some(expected));
    assert_eq!(pacer.not_before(&origin("b.example"), "a", &limits(11)), None);
}

#[tokio::test(start_paused = true)]
async fn a_pause_immediately_refuses_requests_that_cannot_wait_for_its_end() {
    let pacer = Arc::new(Pacer::new(100));
    let mut turn = ask(&pacer, "a", limits(3)).await.expect("its turn");
    turn.sent();
    let waiting = tokio::spawn(ask(&pacer, "a", limits(3)));
    tokio::task::yield_now().await;
    let now = Clock::now();
    turn.note_busy(Some(Duration::from_secs(60)));
    let early = waiting.await.expect("it ends").expect_err("the site wants a pause");
    assert_eq!(Clock::now(), now);
    assert_eq!(early.later.at, now.into_std() + Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn when_a_turn_ends_the_next_request_starts_immediately() {
    let pacer = Arc::new(Pacer::new(100));
    let one = PaceLimits {
        concurrency: Some(1),
        ..limits(0)
    };
    let mut turn = ask(&pacer, "a", one).await.expect("its turn");
    turn.sent();
    let next = tokio::spawn(ask(&pacer, "a", one));
    tokio::task::yield_now().await;
    let now = Clock::now();
    drop(turn);
    assert!(next.await.expect("it ends").is_ok());
    assert_eq!(Clock::now(), now);
}

#[tokio::test(start_paused = true)]
async fn max_waiting_limits_the_waiting_requests_of_all_origins() {
    let pacer = Arc::new(Pacer::new(1));
    pacer.note_request(&origin("a.example"));
    let mut first = ask(&pacer, "a", limits(3));
    assert!(poll(&mut first).is_none());
    let early = ask(&pacer, "a", limits(3)).await.expect_err("another one waits");
    assert_eq!(early.later.at, now() + Duration::from_secs(6));
    assert_eq!(early.later.cause, Cause::Waiting);
    pacer.reconfigure(&Policy {
        delay: Duration::from_secs(3),
        max_waiting: 2,
        ..Policy::default()
    });
    assert!(poll(&mut ask(&pacer, "a", limits(3))).is_none());
}

#[tokio::test(start_paused = true)]
async fn lifting_the_pace_lets_all_waiting_requests_go_immediately() {
    let pacer = Arc::new(Pacer::new(100));
    pacer.note_request(&origin("a.example"));
    let waiting: Vec<_> = (0..3).map(|_| tokio::spawn(ask(&pacer, "a", limits(3)))).collect();
    tokio::task::yield_now().await;
    assert_eq!(pacer.waiting(), 3);
    let now = Clock::now();
    pacer.lift();
    for waiting in waiting {
        assert!(waiting.await.expect("it ends").is_ok());
    }
    assert!(ask(&pacer, "a", limits(3)).await.is_ok());
    assert_eq!((Clock::now(), pacer.waiting()), (now, 0));
}

#[tokio::test(start_paused = true)]
async fn idle_origins_are_forgotten() {
    let pacer = Pacer::new(100);
    let hosts = |from: u32| (from..from + 2000).map(|host| origin(&format!("{host}.example")));
    hosts(0).for_each(|origin| pacer.note_request(&origin));
    let paused = origin("paused.example");
    pacer.note_busy(&paused, now(), Some(2 * MAX_GAP));
    assert_eq!(pacer.origins(), 2001);
    advance(MAX_GAP).await;
    hosts(2000).for_each(|origin| pacer.note_request(&origin));
    hosts(4000).for_each(|origin| pacer.note_request(&origin));
    assert!(pacer.origins() < 4800, "{}", pacer.origins());
    assert!(
        pacer.not_before(&paused, "a", &limits(0)).is_some(),
        "a pause is not forgotten"
    );
}

#[test]
fn the_number_of_origins_in_memory_is_limited() {
    let mut shard = Shard::default();
    for host in 0..MAX_SHARD + 10 {
        shard.make_room();
        let busy = Arc::<OriginPacer>::default();
        busy.note_busy(now(), None);
        shard.pacers.insert(origin(&format!("{host}.example")), busy);
    }
    assert!(shard.pacers.len() <= MAX_SHARD);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_never_exceed_the_concurrency() {
    let pacer = Arc::new(Pacer::new(1000));
    let few = PaceLimits {
        gap: Duration::from_micros(50),
        concurrency: Some(3),
        max_wait: Duration::from_secs(60),
        ..PaceLimits::default()
    };
    let running = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let (pacer, running) = (pacer.clone(), running.clone());
            tokio::spawn(async move {
                let bot = ["a", "b", "c"][number % 3];
                if number % 7 == 0 {
                    // This client stops waiting at about the time when the request gets its turn.
                    let turn = ask(&pacer, bot, few);
                    return drop(tokio::time::timeout(Duration::from_micros(300), turn).await);
                }
                let mut turn = ask(&pacer, bot, few).await.expect("there is time");
                assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                turn.sent();
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("it ends");
    }
    assert_eq!(pacer.waiting(), 0);
}
