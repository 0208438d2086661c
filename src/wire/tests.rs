use tokio::io::{AsyncWriteExt as _, duplex};

use super::*;

#[tokio::test]
async fn writes_never_wait_and_lose_nothing() {
    let (near, mut far) = duplex(64);
    let wire = Wire::new(Box::new(near));
    let mut writer = wire.clone();
    let sent: Vec<u8> = (0..100_000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
    for part in [&sent[..10], &sent[10..50_000], &sent[50_000..]] {
        at_once(writer.write_all(part))
            .expect("it does not wait")
            .expect("it is open");
    }
    at_once(writer.flush()).expect("it does not wait").expect("it is open");
    assert!(wire.unsent() > 0, "the other side takes 64 bytes at a time");
    let mut received = vec![0; sent.len()];
    let (flushed, read) = tokio::join!(wire.sent(), far.read_exact(&mut received));
    flushed.expect("it is open");
    read.expect("all of it");
    assert_eq!(received, sent);
    assert_eq!(wire.unsent(), 0);
}

#[tokio::test]
async fn watching_for_the_end_consumes_no_bytes() {
    let (near, mut far) = duplex(64);
    let mut wire = Wire::new(Box::new(near));
    far.write_all(b"next").await.expect("it is open");
    let closed = std::future::poll_fn(|cx| Poll::Ready(wire.poll_closed(cx))).await;
    assert!(closed.is_pending());
    drop(far);
    std::future::poll_fn(|cx| wire.poll_closed(cx)).await;
    let mut read = String::new();
    wire.read_to_string(&mut read).await.expect("it ends well");
    assert_eq!(read, "next");
}

#[tokio::test]
async fn unread_bytes_are_read_first() {
    let (near, mut far) = duplex(64);
    let mut wire = Wire::new(Box::new(near));
    far.write_all(b"second first").await.expect("it is open");
    let read = wire.read_some().await.expect("it is open");
    let mut rest = read.clone();
    wire.unread(rest.split_off(6));
    wire.unread(rest);
    drop(far);
    let mut again = Vec::new();
    wire.read_to_end(&mut again).await.expect("it ends well");
    assert_eq!(again, read);
}

#[tokio::test]
async fn a_complete_head_is_read_without_the_bytes_after_it() {
    for (sent, head) in [
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n\r\ncontent",
            "HTTP/1.1 200 OK\r\nA: b\r\n\r\n",
        ),
        ("HTTP/1.1 200 OK\n\ncontent\n\n", "HTTP/1.1 200 OK\n\n"),
        ("A\n\r\n", "A\n\r\n"),
    ] {
        let (near, mut far) = duplex(1);
        let mut wire = Wire::new(Box::new(near));
        let (mut seen, mut read) = (0, vec![0; 100]);
        let sending = async {
            far.write_all(sent.as_bytes()).await.expect("it is open");
            std::future::pending::<()>().await;
        };
        let reading = std::future::poll_fn(|cx| wire.poll_head(&mut seen, 100, cx));
        let complete = tokio::select! {
            complete = reading => complete.expect("a head"),
            () = sending => unreachable!("it does not end"),
        };
        assert_eq!(complete, HeadRead::Head, "{sent:?}");
        let length = at_once(wire.read(&mut read)).expect("it is there").expect("it is open");
        assert_eq!(&read[..length], head.as_bytes());
        assert!(at_once(wire.read(&mut read)).is_none(), "the head has ended: {sent:?}");
    }
}

#[tokio::test]
async fn an_endless_head_is_too_long() {
    let (near, mut far) = duplex(1024);
    let wire = Wire::new(Box::new(near));
    far.write_all(&[b'x'; 101]).await.expect("it is open");
    let mut seen = 0;
    let head = std::future::poll_fn(|cx| wire.poll_head(&mut seen, 100, cx)).await;
    assert_eq!(head.expect("it is open"), HeadRead::TooLong);
    drop(far);
}

#[tokio::test]
async fn into_stream_needs_the_only_handle_and_no_unsent_bytes() {
    let (near, _far) = duplex(64);
    let wire = Wire::new(Box::new(near));
    let other = wire.clone();
    assert!(wire.into_stream().is_none(), "there is another handle");
    let mut writer = other.clone();
    at_once(writer.write_all(&[0; 100]))
        .expect("it does not wait")
        .expect("it is open");
    drop(writer);
    assert!(other.into_stream().is_none(), "there is something left to send");
}

#[tokio::test]
async fn a_broken_connection_keeps_failing() {
    let (near, far) = duplex(64);
    let mut wire = Wire::new(Box::new(near));
    drop(far);
    at_once(wire.write_all(b"x"))
        .expect("it does not wait")
        .expect("the write is only buffered");
    assert!(wire.sent().await.is_err());
    assert!(at_once(wire.write_all(b"x")).expect("it does not wait").is_err());
}
