//! Shows progress at a terminal if a command takes longer than a second. Prints nothing if stderr is not a terminal.

use std::{
    io::{IsTerminal as _, Write as _, stderr, stdin},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::columns::{columns_of, cut};

/// Shows progress on stderr until this value is dropped, and then erases it if the terminal allows that.
#[derive(Debug)]
pub(super) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

/// Whether the terminal can move its cursor, and so overwrite and erase a line. If not, progress is printed only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terminal {
    Plain,
    Moves,
}

// === impl Progress ===

impl Progress {
    pub(super) fn begin(text: impl Fn() -> String + Send + 'static) -> Self {
        if !stderr().is_terminal() {
            return Self(None);
        }
        let terminal = Terminal::named(std::env::var("TERM").ok().as_deref());
        let (end, ended) = mpsc::channel();
        let telling = move || {
            let mut shown = false;
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                terminal.show(&text(), shown);
                shown = true;
            }
            if shown && terminal == Terminal::Moves {
                print("\r\x1b[K");
            }
        };
        // If the thread cannot be started, the command runs without progress.
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(telling);
        Self(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // Wait until the thread has erased its line. Otherwise, the thread could erase the output that follows.
            let _ = thread.join();
        }
    }
}

// === impl Terminal ===

impl Terminal {
    fn named(term: Option<&str>) -> Self {
        match term {
            None | Some("" | "dumb") => Self::Plain,
            Some(_) => Self::Moves,
        }
    }

    fn show(self, text: &str, again: bool) {
        let line = cut(&format!("robotgate: {text} …"), columns_of(stderr()).saturating_sub(1));
        match self {
            Self::Moves => print(&format!("\r{line}\x1b[K")),
            Self::Plain if !again => print(&format!("{line}\n")),
            Self::Plain => {}
        }
    }
}

/// Tells a person at a terminal that the program waits for them to type `what`.
pub(super) fn prompt_for(what: &str) {
    if stdin().is_terminal() && stderr().is_terminal() {
        eprintln!("robotgate: type {what}; Ctrl-D in an empty line ends it, Ctrl-C gives up");
    }
}

fn print(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}

/// How long to wait before progress is first shown, and between updates.
const PERIOD: Duration = Duration::from_secs(1);
