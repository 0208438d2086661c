//! Runs the real program at a terminal: its standard input and standard error are a terminal, and its standard output
//! can be.

use std::{
    fs::File,
    io::{ErrorKind, Read as _, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::wait;

pub struct AtTerminal {
    child: Child,
    keyboard: Option<File>,
    screen: Option<JoinHandle<()>>,
    open: Arc<AtomicBool>,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// Opens a terminal that is `columns` wide. Returns the end for the test, and the end for the program.
pub fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&ours).expect("ours");
    unlockpt(&ours).expect("ours");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(path, flags, Mode::empty()).expect("its other end");
    let size = Winsize {
        ws_row: 25,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size).expect("a terminal");
    (ours, theirs)
}

// === impl AtTerminal ===

impl AtTerminal {
    /// Runs the program with these arguments and environment variables. Its standard output goes to `output`, or to the
    /// terminal if that is `None`.
    pub fn run(args: &[&str], variables: &[(&str, &str)], output: Option<Stdio>) -> Self {
        let (ours, theirs) = terminal(100);
        let end = || Stdio::from(theirs.try_clone().expect("another"));
        let child = Command::new(env!("CARGO_BIN_EXE_robotgate"))
            .args(args)
            .env_remove("CI")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(output.unwrap_or_else(end))
            .stderr(end())
            .spawn()
            .expect("the binary is there");
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK).expect("ours");
        let mut screen = File::from(ours);
        let keyboard = screen.try_clone().expect("another");
        let (open, showing) = (Arc::new(AtomicBool::new(true)), shown.clone());
        let is_open = open.clone();
        let screen = thread::spawn(move || {
            let mut some = [0; 4096];
            while is_open.load(Ordering::Relaxed) {
                match screen.read(&mut some) {
                    Ok(length @ 1..) => {
                        let mut shown = showing.lock();
                        shown.extend_from_slice(&some[..length]);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(2)),
                    // Reading fails when the program has closed its end of the terminal.
                    _ => break,
                }
            }
        });
        Self {
            child,
            keyboard: Some(keyboard),
            screen: Some(screen),
            open,
            shown,
        }
    }

    /// Returns the text that was shown so far. Line ends become `\n`; all other control characters are kept.
    pub fn shown(&self) -> String {
        let shown = self.shown.lock();
        String::from_utf8_lossy(&shown).replace("\r\n", "\n")
    }

    /// Waits until `text` has been shown, and returns all text that was shown.
    pub async fn until(&self, text: &str) -> String {
        let what = format!("{text:?} at the terminal");
        wait::until(&what, || Some(self.shown()).filter(|shown| shown.contains(text))).await
    }

    pub fn types(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("a terminal that is not closed");
        keyboard.write_all(keys.as_bytes()).expect("a terminal");
    }

    pub async fn close(&mut self) {
        self.keyboard = None;
        self.open.store(false, Ordering::Relaxed);
        let screen = self.screen.take().expect("a terminal that is not closed");
        wait::until("the terminal's end", || screen.is_finished().then_some(())).await;
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the child is ours");
    }

    pub async fn ended(&mut self) -> ExitStatus {
        wait::until("the program's end", || {
            self.child.try_wait().expect("the child is ours")
        })
        .await
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
