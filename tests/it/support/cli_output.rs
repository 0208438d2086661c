//! Runs a subcommand of the real program without a terminal, and captures its output.

use std::{ffi::OsString, process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command};

use super::{Origin, wait};

#[derive(Debug)]
pub struct CliOutput {
    pub code: Option<i32>,
    pub out: String,
    pub errors: String,
}

// === impl CliOutput ===

impl CliOutput {
    /// Runs the program with `input` on its standard input.
    pub async fn of(args: &[&str], input: &str) -> Self {
        Self::run(Command::new(binary()).args(args), input).await
    }

    /// Runs the program without input. Also returns the CPU time that the program used, which depends less than the
    /// elapsed time on what else runs on the machine.
    pub async fn timed(args: &[&str]) -> (Self, Duration) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\"; times", "sh"]).arg(binary()).args(args);
        let mut output = Self::run(&mut shell, "").await;
        // The shell prints two lines of times: its own, and those of the program that it ran (`0m1.23s 0m0.01s`).
        let mut lines: Vec<&str> = output.out.lines().collect();
        let children = lines.pop().expect("a line of times");
        lines.pop();
        let seconds = |time: &str| {
            let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
            Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
        };
        let times = children.split(' ').map(|time| seconds(time).expect("a time")).sum();
        output.out = lines.join("\n");
        (output, Duration::from_secs_f64(times))
    }

    async fn run(command: &mut Command, input: &str) -> Self {
        let mut child = command
            .env_remove("COLUMNS")
            .env_remove("no_proxy")
            .env_remove("NO_PROXY")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary is there");
        let mut stdin = child.stdin.take().expect("piped");
        // This fails if the program ends without reading its input, which does not matter.
        drop(stdin.write_all(input.as_bytes()).await);
        drop(stdin);
        let ended = wait::within("what the program says", child.wait_with_output()).await;
        let ended = ended.expect("the child is ours");
        Self {
            code: ended.status.code(),
            out: String::from_utf8(ended.stdout).expect("text"),
            errors: String::from_utf8(ended.stderr).expect("text"),
        }
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.errors, "");
        serde_json::from_str(&self.out).expect("one JSON object")
    }

    /// Returns the output without values that differ from run to run: masks the port and times, and removes `, until `
    /// and the rest of its line.
    pub fn masked(&self, origin: &Origin) -> String {
        let port = format!(":{}", origin.port());
        let text = self.out.replace(&port, ":PORT");
        let line = |line: &str| {
            let line = line.split(", until ").next().unwrap_or_default();
            let is_time = |word: &str| word.len() >= 5 && word.parse::<f64>().is_ok();
            let words = line.split(' ').map(|word| if is_time(word) { "TIME" } else { word });
            words.collect::<Vec<_>>().join(" ") + "\n"
        };
        text.lines().map(line).collect()
    }
}

fn binary() -> OsString {
    std::env::var_os("ROBOTGATE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_robotgate").into())
}
