//! `robotgate explain`: what it tells people and programs, and that it never tells anything else
//! than the proxy does.

mod agreement;
mod bounds;
mod live;
mod terminal;
mod text;

use std::{path::Path, process::Stdio};

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::support::wait;

/// What came of a run.
struct Explained {
    code: Option<i32>,
    out: String,
    errors: String,
}

impl Explained {
    fn json(&self) -> Value {
        assert_eq!(self.errors, "");
        serde_json::from_str(&self.out).expect("one JSON object")
    }
}

/// Runs the program without a terminal.
async fn explain(args: &[&str]) -> Explained {
    explain_input(args, "").await
}

/// As [`explain`], with a text on standard input.
async fn explain_input(args: &[&str], input: &str) -> Explained {
    let binary = std::env::var_os("ROBOTGATE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_robotgate").into());
    let mut child = Command::new(binary)
        .arg("explain")
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
    let ended = wait::within("the explanation", child.wait_with_output()).await;
    let ended = ended.expect("the child is ours");
    Explained {
        code: ended.status.code(),
        out: String::from_utf8(ended.stdout).expect("text"),
        errors: String::from_utf8(ended.stderr).expect("text"),
    }
}

/// The explanation of a URL by the rules in `robots`.
async fn of_file(robots: &str, agent: &str, url: &str) -> Explained {
    explain_input(&["--robots", "-", "--agent", agent, url], robots).await
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a folder of ours")
}
