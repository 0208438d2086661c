use super::*;
use crate::copy::RobotsCopy;

/// Returns a state whose robots.txt takes at least `bytes` of memory.
fn state(bytes: usize) -> Arc<OriginState> {
    use crate::{
        copy::{Freshness, Meaning, Policy},
        robots::Profile,
    };
    use std::time::SystemTime;

    let text = format!("#{}\n", "x".repeat(bytes));
    let copy = RobotsCopy::new(Profile::Google, text.as_bytes(), SystemTime::UNIX_EPOCH);
    let meaning = Meaning::Rules(Arc::new(copy));
    Arc::new(OriginState::unknown().after(
        meaning,
        200,
        Freshness::default(),
        SystemTime::UNIX_EPOCH,
        0.0,
        &Policy::default(),
    ))
}

fn keep(state: &Arc<OriginState>) -> StoreChange {
    StoreChange::Keep {
        state: state.clone(),
        complete: true,
    }
}

fn known(queue: &Queue, origin: &str) -> Option<Arc<OriginState>> {
    match queue.find(origin) {
        Some(StoreChange::Keep { state, complete: true }) => Some(state.clone()),
        _ => None,
    }
}

#[test]
fn the_latest_state_is_found_until_it_is_written() {
    let mut queue = Queue::default();
    let (first, second) = (state(10), state(20));
    queue.put("a".to_owned(), keep(&first));
    let batch = queue.take();
    assert!(known(&queue, "a").is_some_and(|found| Arc::ptr_eq(&found, &first)));
    queue.put("a".to_owned(), keep(&second));
    assert!(known(&queue, "a").is_some_and(|found| Arc::ptr_eq(&found, &second)));
    assert_eq!(batch.changes.len(), 1);
    queue.mark_written();
    assert!(known(&queue, "a").is_some_and(|found| Arc::ptr_eq(&found, &second)));
    queue.take();
    queue.mark_written();
    assert!(queue.find("a").is_none(), "the file has it");
}

#[test]
fn unwritten_changes_wait_again_and_do_not_replace_later_ones() {
    let mut queue = Queue::default();
    let (first, second) = (state(10), state(20));
    queue.put("a".to_owned(), keep(&first));
    queue.put("b".to_owned(), keep(&first));
    let batch = queue.take();
    queue.put("a".to_owned(), keep(&second));
    queue.give_back(batch);
    assert!(known(&queue, "a").is_some_and(|found| Arc::ptr_eq(&found, &second)));
    assert!(known(&queue, "b").is_some_and(|found| Arc::ptr_eq(&found, &first)));
    assert_eq!(queue.take().changes.len(), 2);
}

#[test]
fn a_full_queue_drops_states_but_returns_no_outdated_one() {
    let mut queue = Queue::default();
    let large = state(1024 * 1024);
    let mut complaints = 0;
    for number in 0..200 {
        let has_room = queue.put(format!("site-{number}"), keep(&large));
        complaints += usize::from(!has_room);
    }
    assert_eq!(complaints, 1, "it is said once");
    assert!(queue.bytes <= MAX_BYTES + 200 * 1024, "{}", queue.bytes);
    let kept = (0..200).filter(|number| known(&queue, &format!("site-{number}")).is_some());
    assert!((1..200).contains(&kept.count()));
    let forgotten =
        (0..200).filter(|number| matches!(queue.find(&format!("site-{number}")), Some(StoreChange::Forget)));
    assert!(forgotten.count() > 100, "the file's older record must not count");

    // After the write, the queue has room for a state that did not fit before.
    let batch = queue.take();
    assert_eq!(batch.changes.len(), 200);
    queue.mark_written();
    assert!(queue.put("site-199".to_owned(), keep(&state(10))));
    assert!(known(&queue, "site-199").is_some());
}

#[test]
fn an_incomplete_state_is_not_returned_as_a_complete_one() {
    let part = |state: &Arc<OriginState>| StoreChange::Keep {
        state: state.clone(),
        complete: false,
    };
    let mut queue = Queue::default();
    queue.put("a".to_owned(), part(&state(10)));
    assert!(known(&queue, "a").is_none());
    queue.put("a".to_owned(), part(&state(20)));
    assert!(known(&queue, "a").is_none(), "two parts are no whole");
    let batch = queue.take();
    queue.give_back(batch);
    assert!(known(&queue, "a").is_none());

    queue.put("a".to_owned(), StoreChange::Forget);
    queue.put("a".to_owned(), part(&state(10)));
    assert!(
        known(&queue, "a").is_some(),
        "there is nothing that it could be a part of"
    );
}

#[test]
fn the_size_of_the_queue_is_counted_correctly() {
    let mut queue = Queue::default();
    for round in 0..3 {
        for number in 0..10 {
            queue.put(format!("site-{number}"), keep(&state(100 * (round + 1))));
        }
        let batch = queue.take();
        assert_eq!(queue.bytes, 0);
        queue.give_back(batch);
    }
    let complete: usize = queue
        .waiting
        .iter()
        .map(|(origin, change)| weight(origin, change))
        .sum();
    assert_eq!(queue.bytes, complete);
    queue.clear();
    assert_eq!((queue.bytes, queue.len()), (0, 0));
}
