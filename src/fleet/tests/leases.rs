//! Tests that at most one robotgate fetches a robots.txt, and that the fleet's server keeps the newest result.

use super::*;

#[tokio::test]
async fn one_gate_fetches_and_the_others_wait_for_its_copy() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let held = lease(&first).await;
    let waiting = ask_in_background(&second);
    until(|| get(&second.counts.calls) > 0).await;
    share(&first, held, "# a").await;
    match waiting.await.expect("no panic") {
        CopyOrLease::Copy(state) => assert_eq!(text(&state), b"# a"),
        CopyOrLease::Fetch(task) => panic!("it fetches too: {task:?}"),
    }
    assert_eq!(get(&second.counts.copies_used), 1);
}

#[tokio::test]
async fn after_a_fetch_without_a_result_another_gate_gets_the_lease() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let held = lease(&first).await;
    let waiting = ask_in_background(&second);
    first.end(held, None).await;
    assert!(matches!(waiting.await.expect("no panic"), CopyOrLease::Fetch(task) if task.lease.is_some()));
}

#[tokio::test]
async fn an_expired_lease_goes_to_another_gate_and_its_result_is_ignored() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let stale = lease(&first).await;
    // Nobody renews the first lease, so this call waits until that lease has expired.
    let held = lease(&second).await;
    assert!(held.token() > stale.token());
    share(&first, stale, "# late").await;
    share(&second, held, "# new").await;
    let third = server.gate().await;
    assert_eq!(text(&copy(&third).await), b"# new");
}

#[tokio::test]
async fn a_late_result_does_not_replace_a_newer_one() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let stale = lease(&first).await;
    let held = lease(&second).await;
    share(&second, held, "# new").await;
    share(&first, stale, "# late").await;
    assert_eq!(text(&copy(&first).await), b"# new");
}

#[tokio::test]
async fn a_stale_token_stays_stale_when_the_server_loses_its_memory() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let stale = lease(&first).await;
    server.command(&[b"FLUSHALL"]).await;
    let held = lease(&second).await;
    assert!(held.token() > stale.token());
    share(&first, stale, "# late").await;
    share(&second, held, "# new").await;
    assert_eq!(text(&copy(&first).await), b"# new");
}

#[tokio::test]
async fn lease_tokens_increase_whatever_value_the_server_has_stored() {
    let Some(server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    let key = gate.keys(&SiteDocument::ROBOTS_TXT, &site()).token;
    let mut last = lease(&gate).await.token();
    for garbage in ["-1", "9007199254740993", "1e300", "inf", "nan", "token", ""] {
        server.command(&[b"SET", key.as_bytes(), garbage.as_bytes()]).await;
        let token = lease(&gate).await.token();
        assert!(token > last, "{garbage:?}: {token:?} after {last:?}");
        last = token;
    }
    // Act as if the fleet server's clock had been set back by an hour.
    let ahead = last.expect("it is granted") + 3_600_000_000;
    server
        .command(&[b"SET", key.as_bytes(), ahead.to_string().as_bytes()])
        .await;
    assert_eq!(lease(&gate).await.token(), Some(ahead + 1));
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_released_after_the_fetch() {
    let Some(server) = RedisServer::start() else { return };
    let mut settings = server.settings();
    settings.call_timeout = Duration::from_millis(100);
    let (first, second) = (server.gate_with(&settings, |_| ()).await, server.gate().await);
    // Make the fleet's server load the scripts before it is paused below.
    second.end(lease(&second).await, None).await;
    for is_granted in [true, false] {
        server.command(&[b"FLUSHALL"]).await;
        let other = match is_granted {
            true => None,
            false => Some(lease(&second).await),
        };
        server.command(&[b"CLIENT", b"PAUSE", b"1000000", b"WRITE"]).await;
        let held = ask_in_vain(&first).await.expect("it may be granted");
        server.command(&[b"CLIENT", b"UNPAUSE"]).await;
        share(&first, held, "# first").await;
        let expected: &[u8] = match other {
            None => b"# first",
            Some(other) => {
                share(&second, other, "# second").await;
                b"# second"
            }
        };
        assert_eq!(text(&copy(&second).await), expected);
        let lease = second.keys(&SiteDocument::ROBOTS_TXT, &site()).lease;
        let left = server.command(&[b"EXISTS", lease.as_bytes()]).await;
        assert_eq!(left, redis::Value::Int(0), "no gate has to wait for it");
    }
}

#[tokio::test]
async fn a_forged_lease_does_not_block_a_gate() {
    let Some(server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    let key = gate.keys(&SiteDocument::ROBOTS_TXT, &site()).lease;
    for forged in [
        &[&b"SET"[..], key.as_bytes(), b"forged"][..],
        &[b"SET", key.as_bytes(), b"forged", b"PX", b"60000"],
        &[b"RPUSH", key.as_bytes(), b"forged"],
    ] {
        server.command(&[b"DEL", key.as_bytes()]).await;
        server.command(forged).await;
        let lease = lease(&gate).await;
        assert!(lease.token().is_some(), "{forged:?}");
        gate.end(lease, None).await;
    }
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_holder_works() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let held = lease(&first).await;
    let waiting = ask_in_background(&second);
    // The second robotgate's 20 calls take longer than a lease lasts without renewal.
    let work = until(|| get(&second.counts.calls) > 20);
    first.while_leased(&held, work).await;
    assert!(!waiting.is_finished());
    share(&first, held, "# a").await;
    assert!(matches!(waiting.await.expect("no panic"), CopyOrLease::Copy(_)));
}
