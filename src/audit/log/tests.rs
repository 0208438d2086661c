mod end;
mod hang;
mod inline;
mod order;
mod pipe;
mod reserve;
mod rotate;
mod stall;
mod trouble;

use std::{
    collections::VecDeque,
    future::Future,
    io::Write,
    pin::{Pin, pin},
    task::Poll,
    thread::current,
};

use parking_lot::Condvar;

use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// Whether writes block, as on a disk that hangs.
    shut: bool,
    /// What happens to the next writes. Later writes succeed.
    troubles: VecDeque<Trouble>,
    blocked: bool,
    /// The name of the thread of each write.
    writers: Vec<Option<String>>,
}

#[derive(Debug, Clone, Copy)]
enum Trouble {
    Error(io::ErrorKind),
    /// The write accepts only this many bytes.
    Short(usize),
    Panic,
}

impl Sink {
    fn shut() -> Self {
        let sink = Self::default();
        sink.lock().shut = true;
        sink
    }

    fn with_troubles(troubles: impl IntoIterator<Item = Trouble>) -> Self {
        let sink = Self::default();
        sink.lock().troubles = troubles.into_iter().collect();
        sink
    }

    fn open(&self) {
        self.lock().shut = false;
        self.0.changed.notify_all();
    }

    fn log(&self) -> AuditLog {
        AuditLog::to_sink(self.output(false), None).expect("a thread")
    }

    /// Creates a log whose output counts as a regular file, so that requests may write to it on their own threads.
    fn log_as_file(&self) -> AuditLog {
        AuditLog::to_sink(self.output(true), None).expect("a thread")
    }

    fn output(&self, is_file: bool) -> state::Sink {
        state::Sink {
            name: "test".into(),
            writer: Box::new(self.clone()),
            is_file,
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.lock().bytes.clone()).expect("UTF-8")
    }

    fn is_written_by_thread(&self) -> bool {
        let state = self.lock();
        let last = state.writers.last().expect("something is written");
        last.as_deref() == Some("audit")
    }

    fn wait_until(&self, done: impl Fn(&State) -> bool) {
        let waited = (self.0.changed).wait_while_for(&mut self.lock(), |state| !done(state), DEADLINE);
        assert!(!waited.timed_out(), "the writer never came so far");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        state.writers.push(current().name().map(str::to_owned));
        while state.shut {
            state.blocked = true;
            self.0.changed.notify_all();
            self.0.changed.wait(&mut state);
        }
        state.blocked = false;
        // Notify before the early returns below. The waiting test continues when this write releases the lock.
        self.0.changed.notify_all();
        let taken = match state.troubles.pop_front() {
            Some(Trouble::Error(kind)) => return Err(kind.into()),
            Some(Trouble::Short(most)) => bytes.len().min(most),
            Some(Trouble::Panic) => {
                drop(state);
                panic!("a sink that panics");
            }
            None => bytes.len(),
        };
        state.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn ask_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

fn wait_until(done: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !done() {
        assert!(started.elapsed() < DEADLINE, "it never happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const DEADLINE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn write_returns_after_the_output_has_the_line() {
    let sink = Sink::default();
    let log = sink.log();
    for number in 0..100 {
        let line = format!("{number}\n");
        log.write(line.as_bytes()).await.expect("it is written");
        assert!(sink.text().ends_with(&line), "{line}");
    }
}

#[tokio::test]
async fn write_waits_until_the_output_has_the_line() {
    let sink = Sink::shut();
    let log = sink.log();
    let mut write = pin!(log.write(b"line\n"));
    assert!(ask_once(write.as_mut()).await.is_pending());
    sink.wait_until(|state| state.blocked);
    assert!(
        ask_once(write.as_mut()).await.is_pending(),
        "the output has been asked, no more"
    );
    assert_eq!(sink.text(), "");
    sink.open();
    write.await.expect("it is written");
    assert_eq!(sink.text(), "line\n");
}

#[tokio::test]
async fn append_does_not_wait_for_the_output() {
    let sink = Sink::shut();
    let log = sink.log();
    let mut expected = String::new();
    for number in 0..1000 {
        let line = format!("{number}\n");
        let appended = ask_once(pin!(log.append(line.as_bytes()))).await;
        assert!(matches!(appended, Poll::Ready(Ok(()))), "{number}");
        expected.push_str(&line);
    }
    sink.open();
    log.close();
    assert_eq!(sink.text(), expected);
}

#[tokio::test]
async fn an_appended_line_is_written_without_a_further_call() {
    let sink = Sink::default();
    let log = sink.log();
    log.append(b"line\n").await.expect("there is room");
    sink.wait_until(|state| state.bytes == b"line\n");
}
