use super::*;
use crate::config::Config;

fn limits() -> ClientLimits {
    ClientLimits {
        connections: 5,
        client_connections: 2,
        client_requests: 2,
        client_fetches: 2,
        client_leaves: 2,
        ..Config::default().proxy.limits
    }
}

fn at(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), 4711)
}

fn known(clients: &Arc<Clients>) -> usize {
    clients.table.lock().clients.len()
}

#[test]
fn connections_are_limited_per_client_and_in_total() {
    let now = Instant::now();
    let clients = Arc::new(Clients::new(now, 1 << 20));
    let enter = |address| clients.enter(at(address), &limits(), now);

    let mut guards = vec![enter("192.0.2.1").unwrap(), enter("192.0.2.1").unwrap()];
    assert_eq!(enter("192.0.2.1").unwrap_err(), Limit::ClientConnections);
    for address in ["192.0.2.2", "192.0.2.3", "192.0.2.4"] {
        guards.push(enter(address).unwrap());
    }
    assert_eq!(enter("192.0.2.5").unwrap_err(), Limit::Connections);

    drop(guards.remove(0));
    let again = enter("192.0.2.1").unwrap();
    drop((guards, again));
    assert_eq!(known(&clients), 0, "clients without connections are forgotten");
}

#[test]
fn a_client_is_an_address_or_the_network_of_one_host() {
    let now = Instant::now();
    for (one, other, same) in [
        ("192.0.2.1", "192.0.2.2", false),
        ("192.0.2.1", "::ffff:192.0.2.1", true),
        ("2001:db8::1", "2001:db8::ffff:1", true),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
    ] {
        let clients = Arc::new(Clients::new(now, 1 << 20));
        let _guards = [one, other].map(|address| clients.enter(at(address), &limits(), now).unwrap());
        assert_eq!(known(&clients), if same { 1 } else { 2 }, "{one} {other}");
    }
}

#[test]
fn requests_of_all_connections_of_a_client_count_together() {
    let now = Instant::now();
    let clients = Arc::new(Clients::new(now, 1 << 20));
    let [one, other] = [(); 2].map(|()| clients.enter(at("192.0.2.1"), &limits(), now).unwrap());
    let stranger = clients.enter(at("192.0.2.2"), &limits(), now).unwrap();

    let first = one.begin_request(&limits()).unwrap();
    let _second = other.begin_request(&limits()).unwrap();
    assert_eq!(one.begin_request(&limits()).unwrap_err(), Limit::ClientRequests);
    assert_eq!(other.begin_request(&limits()).unwrap_err(), Limit::ClientRequests);
    assert!(stranger.begin_request(&limits()).is_ok());

    drop(first);
    assert!(
        other.begin_request(&limits()).is_ok(),
        "a refused request does not count"
    );
}

#[test]
fn reconnecting_does_not_refill_an_allowance() {
    let now = Instant::now();
    let clients = Arc::new(Clients::new(now, 1 << 20));
    let enter = |now| clients.enter(at("192.0.2.1"), &limits(), now).unwrap();

    let guard = enter(now);
    assert_eq!(guard.take_leaf(&limits(), now), Ok(()));
    assert_eq!(guard.take_leaf(&limits(), now), Ok(()));
    drop(guard);
    assert_eq!(enter(now).take_leaf(&limits(), now), Err(Limit::ClientLeaves));
    let later = now + MINUTE;
    assert_eq!(enter(later).take_leaf(&limits(), later), Ok(()));
}

#[test]
fn clients_that_left_are_forgotten_after_their_allowance_refills() {
    let now = Instant::now();
    let limits = ClientLimits {
        connections: usize::MAX,
        ..limits()
    };
    let clients = Arc::new(Clients::new(now, 1 << 20));
    let enter = |n: u32, now| {
        clients
            .enter(SocketAddr::new(IpAddr::from(n.to_be_bytes()), 1), &limits, now)
            .unwrap()
    };
    for n in 0..MANY as u32 {
        let guard = enter(n, now);
        guard.take_leaf(&limits, now).unwrap();
    }
    assert_eq!(known(&clients), MANY, "no allowance has refilled yet");
    let _one_more = enter(u32::MAX, now + MINUTE);
    assert_eq!(known(&clients), 1);
}

#[test]
fn with_few_open_files_a_client_gets_a_quarter_of_the_connections() {
    let now = Instant::now();
    let many = ClientLimits {
        connections: 1000,
        client_connections: 1000,
        client_requests: 1000,
        client_fetches: 1000,
        ..limits()
    };
    let clients = Arc::new(Clients::new(now, OTHER_FILES + 2 * 16 + 2 * 12));
    let enter = |address| clients.enter(at(address), &many, now);

    let guards = [(); 3].map(|()| enter("192.0.2.1").unwrap());
    assert_eq!(enter("192.0.2.1").unwrap_err(), Limit::ClientConnections);
    let _other = enter("192.0.2.2").expect("there is room for others");
    let [guard, ..] = guards;
    let _request_guard = [(); 3].map(|()| guard.begin_request(&many).unwrap());
    assert_eq!(guard.begin_request(&many).unwrap_err(), Limit::ClientRequests);
    assert_eq!(guard.requester(&many).max_fetches, 3);
    assert_eq!(guard.requester(&limits()).max_fetches, 2, "the limit is lower");
}

#[test]
fn the_limit_of_open_files_bounds_idle_and_client_connections() {
    let unbounded = ClientLimits {
        connections: usize::MAX,
        ..limits()
    };
    for (files, kept, room) in [
        (0, 16, 1),
        (128, 16, 16),
        (512, 16, 208),
        (1024, 32, 448),
        (4096, 128, 1888),
        (32_768, 1024, 15_328),
        (262_144, 1024, 130_016),
        (usize::MAX, 1024, (usize::MAX - 2112) / 2),
    ] {
        assert_eq!(kept_connections(files), kept, "{files} files");
        let clients = Clients::new(Instant::now(), files);
        assert_eq!(clients.room(&unbounded), room, "{files} files");
    }
}

#[test]
fn a_client_gets_its_configured_limits_or_a_quarter_of_the_connections() {
    let limits = ClientLimits {
        client_connections: 100,
        client_requests: 5000,
        client_fetches: 472,
        ..limits()
    };
    let clients = Clients::new(Instant::now(), 4096);
    assert_eq!(
        clients.client_limits(&limits),
        [
            ("max-client-connections", 100),
            ("max-client-requests", 472),
            ("max-client-fetches", 472),
        ]
    );
}

#[test]
fn the_limit_of_open_files_bounds_the_number_of_connections() {
    let now = Instant::now();
    let clients = Arc::new(Clients::new(now, OTHER_FILES + 2 * 16 + 4));
    let enter = |address| clients.enter(at(address), &limits(), now);
    let _guards = [enter("192.0.2.1").unwrap(), enter("192.0.2.2").unwrap()];
    assert_eq!(enter("192.0.2.3").unwrap_err(), Limit::Connections);
}
