//! What a subcommand of the real binary says, run without a terminal.

use std::process::Stdio;

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command};

use super::{Origin, wait};

/// What came of a run.
#[derive(Debug)]
pub struct Told {
    pub code: Option<i32>,
    pub out: String,
    pub errors: String,
}

// === impl Told ===

impl Told {
    /// Runs the program with `input` on its standard input.
    pub async fn by(args: &[&str], input: &str) -> Self {
        let binary = std::env::var_os("ROBOTGATE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_robotgate").into());
        let mut child = Command::new(binary)
            .args(args)
            .env_remove("COLUMNS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary is there");
        let mut stdin = child.stdin.take().expect("piped");
        // Who reads no input closes it.
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

    /// The text with what differs from run to run masked.
    pub fn masked(&self, origin: &Origin) -> String {
        let text = self.out.replace(&origin.port().to_string(), "PORT");
        let line = |line: &str| {
            let line = line.split(", until ").next().unwrap_or_default();
            let is_time = |word: &str| word.len() >= 5 && word.parse::<f64>().is_ok();
            let words = line.split(' ').map(|word| if is_time(word) { "TIME" } else { word });
            words.collect::<Vec<_>>().join(" ") + "\n"
        };
        text.lines().map(line).collect()
    }
}
