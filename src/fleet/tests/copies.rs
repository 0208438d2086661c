//! Tests which robots.txt copies on the fleet's server a robotgate uses.

use super::*;

#[tokio::test]
async fn a_shared_copy_older_than_the_gates_own_copy_is_not_used() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let now = SystemTime::now();
    let old = fetched("User-agent: *\nAllow: /", now - Duration::from_secs(60));
    first.end(lease(&first).await, Some(Arc::new(old))).await;
    match ask(&second, &fetched("User-agent: *\nDisallow: /", now)).await {
        CopyOrLease::Fetch(task) => assert!(task.earlier.is_none() && task.lease.is_some()),
        CopyOrLease::Copy(_) => panic!("it takes the older one"),
    }
}

#[tokio::test]
async fn an_expired_copy_is_returned_with_the_lease() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let old = fetched("# old", SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60));
    first.end(lease(&first).await, Some(Arc::new(old))).await;
    match ask(&second, &OriginState::unknown()).await {
        CopyOrLease::Fetch(task) => {
            assert_eq!(text(&task.earlier.expect("it is newer than nothing")), b"# old");
            assert!(task.lease.is_some());
        }
        CopyOrLease::Copy(_) => panic!("it is past its time"),
    }
}

#[tokio::test]
async fn an_unusable_shared_copy_is_counted_and_fetched_again() {
    let Some(server) = RedisServer::start() else { return };
    let writer = server.gate().await;
    share(&writer, lease(&writer).await, "# a").await;
    let key = writer.keys(&SiteDocument::ROBOTS_TXT, &site()).copy;
    let redis::Value::BulkString(value) = server.command(&[b"GET", key.as_bytes()]).await else {
        panic!("a copy is there");
    };
    let other: Origin = "https://b.example".parse().expect("an origin");
    let reader = server.gate().await;
    for (wrong, rejection) in [
        (b"\x01garbage".to_vec(), Some(CopyRejection::Corrupt)),
        ([&b"\x02"[..], &value[1..]].concat(), Some(CopyRejection::Later)),
        (Vec::new(), None),
    ] {
        server.command(&[b"SET", key.as_bytes(), &wrong]).await;
        let held = lease(&reader).await;
        reader.end(held, None).await;
        if let Some(rejection) = rejection {
            assert_eq!(get(&reader.counts.rejected[rejection as usize]), 1, "{rejection}");
        }
    }
    server.command(&[b"DEL", key.as_bytes()]).await;
    server.command(&[b"RPUSH", key.as_bytes(), b"another type"]).await;
    let held = lease(&reader).await;
    share(&reader, held, "# b").await;
    assert_eq!(text(&copy(&reader).await), b"# b");

    server
        .command(&[
            b"SET",
            reader.keys(&SiteDocument::ROBOTS_TXT, &other).copy.as_bytes(),
            &value,
        ])
        .await;
    let asked = reader
        .copy_or_lease(
            &SiteDocument::ROBOTS_TXT,
            &other,
            &OriginState::unknown(),
            &Policy::default(),
        )
        .await;
    assert!(matches!(asked, CopyOrLease::Fetch(_)));
    assert_eq!(get(&reader.counts.rejected[CopyRejection::Misplaced as usize]), 1);
    assert_eq!(get(&reader.counts.errors), 0);
}

#[tokio::test]
async fn gates_with_a_key_reject_copies_of_gates_without_it() {
    let Some(server) = RedisServer::start() else { return };
    let open = server.gate().await;
    let mut settings = server.settings();
    settings.key = Some(Secret::new(b"a key that the gates share"));
    let closed = server.gate_with(&settings, |_| ()).await;
    open.end(
        lease(&open).await,
        Some(Arc::new(fetched("# forged", SystemTime::now()))),
    )
    .await;
    let held = lease(&closed).await;
    assert_eq!(get(&closed.counts.rejected[CopyRejection::Forged as usize]), 1);
    share(&closed, held, "# a").await;
    assert_eq!(text(&copy(&closed).await), b"# a");
}
