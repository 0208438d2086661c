use super::*;

/// Returns a requester with a limit that no test reaches.
fn client(number: u8) -> Requester {
    Requester {
        name: Name::Client(IpAddr::from([192, 0, 2, number])),
        max_fetches: 10_000,
    }
}

/// Creates a queue. Each entry of `counts` is a client, and the number of fetches that it queues.
fn queue(permits: usize, counts: &[(u8, usize)]) -> Queue<u8> {
    let mut queue = Queue::new(permits);
    for (number, count) in counts {
        for _ in 0..*count {
            queue.enter(client(*number), *number).expect("there is room");
        }
    }
    queue
}

/// Starts as many fetches as possible, and returns their clients in order.
fn started(queue: &mut Queue<u8>) -> Vec<u8> {
    std::iter::from_fn(|| queue.start()).collect()
}

#[test]
fn requesters_take_turns_in_any_order_of_arrival() {
    let mut queue = queue(100, &[(1, 5), (2, 2), (3, 1)]);
    assert_eq!(started(&mut queue), [1, 2, 3, 1, 2, 1, 1, 1]);
}

#[test]
fn the_fetches_of_one_requester_start_in_their_order() {
    let mut queue = Queue::new(2);
    for fetch in 1..=4 {
        queue.enter(client(1), fetch).expect("there is room");
    }
    assert_eq!(started(&mut queue), [1, 2]);
    queue.leave(client(1).name, 1);
    assert_eq!(started(&mut queue), [3]);
    queue.leave(client(1).name, 4);
    queue.leave(client(1).name, 2);
    assert_eq!(started(&mut queue), [0; 0], "the fourth has left before its turn");
}

#[test]
fn one_requester_leaves_a_quarter_of_the_permits_to_others() {
    for (permits, most) in [(1, 1), (2, 2), (4, 3), (16, 12), (1024, 768)] {
        let mut queue = queue(permits, &[(1, 2 * permits)]);
        assert_eq!(started(&mut queue).len(), most, "of {permits}");
    }
    let mut queue = queue(1024, &[(1, 5000)]);
    started(&mut queue);
    for other in 2..=100 {
        queue.enter(client(other), other).expect("there is room");
        assert_eq!(started(&mut queue), [other], "it starts at once");
    }
}

#[test]
fn greedy_requesters_end_up_with_equal_shares() {
    let mut queue = queue(1024, &[(1, 5000)]);
    started(&mut queue);
    for _ in 0..5000 {
        queue.enter(client(2), 2).expect("there is room");
    }
    started(&mut queue);
    let share = |queue: &Queue<u8>, number| queue.running_of(client(number).name);
    assert!(share(&queue, 2) < share(&queue, 1), "the first has what it took");
    // Fetches end in the order in which they started.
    for number in 1..=768 {
        queue.leave(client(1).name, number);
        started(&mut queue);
    }
    let shares = [share(&queue, 1), share(&queue, 2)];
    assert!(shares.iter().all(|share| (430..=445).contains(share)), "{shares:?}");
}

#[test]
fn a_requester_over_its_limit_is_refused_until_a_fetch_ends() {
    let few = |number| Requester {
        max_fetches: 3,
        ..client(number)
    };
    let mut queue = Queue::new(2);
    for _ in 0..3 {
        queue.enter(few(1), 1).expect("there is room");
    }
    assert_eq!(started(&mut queue), [1, 1], "one of the three waits, and counts");
    assert_eq!(queue.enter(few(1), 1), Err(LookupError::TooManyFetches));
    assert_eq!(queue.enter(few(2), 2), Ok(4), "others have bounds of their own");
    queue.leave(few(1).name, 1);
    assert!(queue.enter(few(1), 1).is_ok());
    assert_eq!(queue.enter(few(1), 1), Err(LookupError::TooManyFetches));
}

#[test]
fn the_queue_forgets_requesters_that_left() {
    let none = Requester {
        max_fetches: 0,
        ..client(9)
    };
    let mut queue = queue(2, &[(1, 2), (2, 2)]);
    assert_eq!(queue.enter(none, 9), Err(LookupError::TooManyFetches));
    started(&mut queue);
    for (number, requester) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        queue.leave(client(requester).name, number);
    }
    assert_eq!((queue.running, queue.shares.len(), queue.round.len()), (0, 0, 0));
}

#[test]
fn a_slow_fetch_hinders_requesters_that_have_fewer_permits() {
    // The first requester takes both permits. Only then does the second one wait.
    let mut queue = queue(2, &[(1, 2)]);
    started(&mut queue);
    assert!(!queue.should_give_way(client(1).name), "nobody waits");
    queue.enter(client(2), 2).expect("there is room");
    assert!(queue.should_give_way(client(1).name), "the second has none");
    queue.leave(client(1).name, 1);
    assert_eq!(started(&mut queue), [2]);

    for _ in 0..5 {
        queue.enter(client(1), 1).expect("there is room");
    }
    assert!(queue.should_give_way(client(1).name), "its own wait");
    assert!(
        !queue.should_give_way(client(2).name),
        "the first has as many as the second"
    );
}
