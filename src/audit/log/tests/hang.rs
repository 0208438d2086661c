//! Tests that a disk that hangs blocks only the thread of the request that is writing.

use std::{io::Read as _, net::TcpStream};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::sleep,
};

use super::*;

/// Starts a write that blocks one of the runtime's threads on a disk that hangs.
async fn hanging() -> (Sink, Arc<AuditLog>, tokio::task::JoinHandle<Result<(), AuditError>>) {
    let sink = Sink::default();
    let log = Arc::new(sink.log_as_file());
    // After these lines, the log writes without waiting for more lines.
    for _ in 0..5 {
        log.write(b"before\n").await.expect("it is written");
    }
    sink.lock().shut = true;
    let write = tokio::spawn({
        let log = log.clone();
        async move {
            // The timer wakes this task on the thread that drives timers and sockets. The write below blocks that
            // thread.
            sleep(Duration::from_millis(20)).await;
            log.write(b"first\n").await
        }
    });
    // This blocks only the test's own thread, on which no tasks run.
    sink.wait_until(|state| state.blocked);
    assert!(!sink.is_written_by_thread());
    (sink, log, write)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_and_timers_work_while_a_write_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        while let Ok(byte) = stream.read_u8().await {
            sleep(Duration::from_millis(1)).await;
            stream.write_u8(byte).await.expect("it is open");
        }
    });
    let (sink, _log, write) = hanging().await;
    // The client is not a task: a new task could wake another thread of the runtime, and here the log has to do that.
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        (0..20).try_for_each(|byte| {
            stream.write_all(&[byte])?;
            stream.read_exact(&mut [0])
        })
    });
    while !client.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(sink.lock().blocked, "all that while");
    sink.open();
    client.join().expect("no panic").expect("the runtime was held up");
    write.await.expect("no panic").expect("it is written");
    echo.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_wait_for_a_hanging_write_without_blocking_a_thread() {
    let (sink, log, write) = hanging().await;
    log.append_now(b"second\n");
    let others: Vec<_> = (0..8)
        .map(|_| {
            let log = log.clone();
            tokio::spawn(async move { log.write(b"other\n").await })
        })
        .collect();
    while log.waiting_bytes() < "first\nsecond\n".len() + 8 * "other\n".len() {
        sleep(Duration::from_millis(1)).await;
    }
    while !log.is_stalled() {
        sleep(Duration::from_millis(5)).await;
    }
    assert!(others.iter().all(|other| !other.is_finished()));
    assert!(!sink.is_written_by_thread(), "nobody else tries to write");

    sink.open();
    for other in others {
        other.await.expect("no panic").expect("it is written");
    }
    write.await.expect("no panic").expect("it is written");
    assert!(sink.is_written_by_thread(), "until the disk has shown that it is fast");
    let expected = "before\n".repeat(5) + "first\nsecond\n" + &"other\n".repeat(8);
    assert_eq!(sink.text(), expected);
    assert!(!log.is_stalled());
}
