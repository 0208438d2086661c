//! Tests the messages between robotgates, and failures of the fleet's server.

use super::*;

#[tokio::test]
async fn an_origin_that_one_gate_forgets_is_forgotten_by_all_gates() {
    let Some(server) = RedisServer::start() else { return };
    let first = server.gate().await;
    let (forget, forgotten) = mpsc::channel();
    let second = server
        .gate_with(&server.settings(), move |notice| drop(forget.send(notice)))
        .await;
    share(&first, lease(&first).await, "# a").await;
    let running = match ask(&second, &fetched("# newer", SystemTime::now())).await {
        CopyOrLease::Fetch(task) => granted(task.lease),
        CopyOrLease::Copy(_) => panic!("it is older"),
    };
    assert!(first.forget(&site()).await);
    until(|| forgotten.try_recv() == Ok(Notice::Forgotten(site()))).await;
    share(&second, running, "# of before").await;
    let held = lease(&first).await;
    first.end(held, None).await;
}

#[tokio::test]
async fn a_replayed_message_is_ignored() {
    let Some(server) = RedisServer::start() else { return };
    let mut settings = server.settings();
    settings.key = Some(Secret::new(b"a key that the gates share"));
    let first = server.gate_with(&settings, |_| ()).await;
    let (tell, told) = mpsc::channel();
    let second = server.gate_with(&settings, move |notice| drop(tell.send(notice))).await;
    let mut eavesdropper = server.messages("test:messages").await;
    assert!(first.forget(&site()).await);
    let message = eavesdropper.recv().await.expect("it is published");
    until(|| told.try_recv() == Ok(Notice::Forgotten(site()))).await;
    let (tell, told_later) = mpsc::channel();
    let _joins_later = server.gate_with(&settings, move |notice| drop(tell.send(notice))).await;
    // The second robotgate calls the server once for each message, so one more call shows that it has read the message.
    let calls = get(&second.counts.calls);
    server
        .command(&[b"PUBLISH", b"test:messages", message.as_bytes()])
        .await;
    until(|| get(&second.counts.calls) > calls).await;
    let other: Origin = "https://b.example".parse().expect("an origin");
    assert!(first.forget(&other).await);
    for told in [told, told_later] {
        let mut notice = None;
        until(|| {
            notice = told.try_recv().ok();
            notice.is_some()
        })
        .await;
        assert_eq!(notice, Some(Notice::Forgotten(other.clone())));
    }
}

#[tokio::test]
async fn a_failed_subscription_is_reported_and_retried() {
    let Some(server) = RedisServer::start() else { return };
    let acl = |rule: &'static str| [&b"ACL"[..], b"SETUSER", b"default", rule.as_bytes()];
    let other = server.gate().await;
    server.command(&acl("-subscribe")).await;
    let (tell, told) = mpsc::channel();
    let gate = server
        .gate_with(&server.settings(), move |notice| drop(tell.send(notice)))
        .await;
    let error = gate.subscription_error().expect("it is told");
    assert!(error.contains("permission"), "{error}");
    server.command(&acl("+subscribe")).await;
    until(|| gate.subscription_error().is_none()).await;
    assert!(other.forget(&site()).await);
    until(|| told.try_recv() == Ok(Notice::Forgotten(site()))).await;
}

#[tokio::test]
async fn a_lost_connection_is_restored_without_a_call() {
    let Some(server) = RedisServer::start() else { return };
    let (tell, told) = mpsc::channel();
    let gate = server
        .gate_with(&server.settings(), move |notice| drop(tell.send(notice)))
        .await;
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"pubsub"]).await;
    until(|| gate.error().is_some()).await;
    until(|| gate.error().is_none()).await;
    assert_eq!(get(&gate.counts.calls), 0);
    let other = server.gate().await;
    assert!(other.forget(&site()).await);
    until(|| told.try_recv() == Ok(Notice::Forgotten(site()))).await;
}

#[tokio::test]
async fn no_request_waits_for_a_killed_server_and_a_restarted_one_is_used() {
    let Some(mut server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    server.kill();
    for _ in 0..3 {
        ask_in_vain(&gate).await;
    }
    until(|| gate.error().is_some()).await;
    let calls = get(&gate.counts.calls);
    assert!(ask_in_vain(&gate).await.is_none());
    assert_eq!(get(&gate.counts.calls), calls, "none is made");
    let again = Command::new("/usr/bin/redis-server")
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(server.folder.path().join("redis.sock"))
        .current_dir(server.folder.path())
        .stdout(Stdio::null())
        .spawn();
    server.child = again.expect("it starts");
    until(|| gate.error().is_none()).await;
    let held = lease(&gate).await;
    gate.end(held, None).await;
}
