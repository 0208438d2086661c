use super::*;

/// Each pair in `counts` is a key and the number of its tasks.
fn queue(permits: usize, counts: &[(u8, usize)]) -> Queue<u8, u8> {
    let mut queue = Queue::new(permits);
    for (number, count) in counts {
        for _ in 0..*count {
            queue.enter(*number, MOST, *number).expect("there is room");
        }
    }
    queue
}

fn started(queue: &mut Queue<u8, u8>) -> Vec<u8> {
    std::iter::from_fn(|| queue.start()).collect()
}

#[test]
fn keys_take_turns_in_any_order_of_arrival() {
    let mut queue = queue(100, &[(1, 5), (2, 2), (3, 1)]);
    assert_eq!(started(&mut queue), [1, 2, 3, 1, 2, 1, 1, 1]);
}

#[test]
fn the_tasks_of_one_key_start_in_their_order() {
    let mut queue = Queue::new(2);
    for task in 1..=4 {
        queue.enter(1, MOST, task).expect("there is room");
    }
    assert_eq!(started(&mut queue), [1, 2]);
    queue.leave(1, 1);
    assert_eq!(started(&mut queue), [3]);
    queue.leave(1, 4);
    queue.leave(1, 2);
    assert_eq!(started(&mut queue), [0; 0], "the fourth has left before its turn");
}

#[test]
fn one_key_leaves_a_quarter_of_the_permits_to_others() {
    for (permits, most) in [(1, 1), (2, 2), (4, 3), (16, 12), (1024, 768)] {
        let mut queue = queue(permits, &[(1, 2 * permits)]);
        assert_eq!(started(&mut queue).len(), most, "of {permits}");
    }
    let mut queue = queue(1024, &[(1, 5000)]);
    started(&mut queue);
    for other in 2..=100 {
        queue.enter(other, MOST, other).expect("there is room");
        assert_eq!(started(&mut queue), [other], "it starts at once");
    }
}

#[test]
fn greedy_keys_end_up_with_equal_shares() {
    let mut queue = queue(1024, &[(1, 5000)]);
    started(&mut queue);
    for _ in 0..5000 {
        queue.enter(2, MOST, 2).expect("there is room");
    }
    started(&mut queue);
    let share = |queue: &Queue<u8, u8>, number| queue.running_of(number);
    assert!(share(&queue, 2) < share(&queue, 1), "the first has what it took");
    // Tasks end in the order in which they started.
    for number in 1..=768 {
        queue.leave(1, number);
        started(&mut queue);
    }
    let shares = [share(&queue, 1), share(&queue, 2)];
    assert!(shares.iter().all(|share| (430..=445).contains(share)), "{shares:?}");
}

#[test]
fn a_key_over_its_limit_is_refused_until_a_task_ends() {
    let mut queue = Queue::new(2);
    for _ in 0..3 {
        queue.enter(1, 3, 1).expect("there is room");
    }
    assert_eq!(started(&mut queue), [1, 1], "one of the three waits, and counts");
    assert_eq!(queue.enter(1, 3, 1), None);
    assert_eq!(queue.enter(2, 3, 2), Some(4), "others have bounds of their own");
    queue.leave(1, 1);
    assert!(queue.enter(1, 3, 1).is_some());
    assert_eq!(queue.enter(1, 3, 1), None);
}

#[test]
fn the_queue_forgets_keys_without_tasks() {
    let mut queue = queue(2, &[(1, 2), (2, 2)]);
    assert_eq!(queue.enter(9, 0, 9), None);
    started(&mut queue);
    for (number, key) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        queue.leave(key, number);
    }
    assert_eq!((queue.running, queue.shares.len(), queue.round.len()), (0, 0, 0));
}

#[test]
fn a_long_task_should_give_way_to_waiting_keys_with_fewer_permits() {
    let mut queue = queue(2, &[(1, 2)]);
    started(&mut queue);
    assert!(!queue.should_give_way(1), "nobody waits");
    queue.enter(2, MOST, 2).expect("there is room");
    assert!(queue.should_give_way(1), "the second has none");
    queue.leave(1, 1);
    assert_eq!(started(&mut queue), [2]);

    for _ in 0..5 {
        queue.enter(1, MOST, 1).expect("there is room");
    }
    assert!(queue.should_give_way(1), "its own wait");
    assert!(!queue.should_give_way(2), "the first has as many as the second");
}

const MOST: usize = 10_000;
