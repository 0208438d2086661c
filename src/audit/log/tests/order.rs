//! Tests that lines are written whole and in order, even if many tasks write at the same time.

use super::*;

const WRITERS: usize = 64;
const LINES: usize = 50;

/// Returns a line like `<3 7 xxx>`, which is no longer valid if it was cut or mixed with another one.
fn line(writer: usize, number: usize) -> String {
    format!(
        "<{writer} {number} {}>\n",
        "x".repeat((writer * 31 + number * 17) % 300)
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lines_of_many_writers_stay_complete_and_in_order() {
    let sink = Sink::with_troubles((0..10_000).map(|n| Trouble::Short(1 + n * 7 % 97)));
    let log = Arc::new(sink.log());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                for number in 0..LINES {
                    let line = line(writer, number);
                    if (writer + number) % 3 == 0 {
                        log.write(line.as_bytes()).await.expect("it is written");
                    } else {
                        log.append(line.as_bytes()).await.expect("there is room");
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    log.close();

    let text = sink.text();
    let mut next = [0; WRITERS];
    for found in text.split_inclusive('\n') {
        let writer = found.strip_prefix('<').and_then(|rest| rest.split(' ').next());
        let writer: usize = writer.and_then(|writer| writer.parse().ok()).expect("a whole line");
        assert_eq!(found, line(writer, next[writer]));
        next[writer] += 1;
    }
    assert_eq!(next, [LINES; WRITERS], "nothing is lost");
}

#[tokio::test]
async fn a_write_is_placed_after_earlier_appends() {
    let sink = Sink::default();
    let log = sink.log();
    for round in 0..50 {
        log.append(format!("a{round}\n").as_bytes())
            .await
            .expect("there is room");
        log.append(format!("b{round}\n").as_bytes())
            .await
            .expect("there is room");
        log.write(format!("c{round}\n").as_bytes())
            .await
            .expect("it is written");
        let text = sink.text();
        assert!(text.ends_with(&format!("a{round}\nb{round}\nc{round}\n")), "{text}");
    }
}

#[tokio::test]
async fn the_line_of_a_cancelled_writer_is_written() {
    let sink = Sink::shut();
    let log = sink.log();
    {
        let mut write = pin!(log.write(b"gone\n"));
        assert!(ask_once(write.as_mut()).await.is_pending());
    }
    sink.open();
    log.write(b"stays\n").await.expect("it is written");
    assert_eq!(sink.text(), "gone\nstays\n");
}

#[tokio::test]
async fn the_text_log_does_not_count_records_that_it_leaves_out() {
    let counts = Arc::new(AuditCounts::default());
    let log = Sink::default()
        .log()
        .in_format(LogFormat::Text)
        .counting(counts.clone());
    let left_out = br#"{"event":"completion","id":"1","status":200,"error":null}"#;
    log.append_now(left_out);
    log.append(left_out).await.expect("there is room");
    assert_eq!(counts.totals(), (0, 0));
}
