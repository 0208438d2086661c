//! Runs the examples in README.md and docs/*.md: the commands of `console` and `sh` blocks, page by page, in order,
//! with bash. Each page has its own folder, site and proxy, which are started as in the README's "Try it". The output
//! in a `console` block must be what its command prints, except for the parts that [`VOLATILE`] lists; a `sh` block
//! must succeed. A `python` block must succeed and print the block that follows it.
//!
//! A `toml` block becomes the page's `robotgate.toml`; `toml,proxy` also restarts the proxy with these settings added.
//! `DOCS=write` pastes the new output into the pages.

use std::{
    env,
    fmt::Write as _,
    fs,
    hash::{BuildHasher as _, RandomState},
    path::Path,
    process::Command,
    thread,
};

use regex::{Captures, Regex};
use tempfile::TempDir;
use tokio::net::TcpSocket;

use super::{Page, pages, root};
use crate::support::{programs::needs, wait::DEADLINE};

struct Example {
    /// For a `console` block, the line of the command. For a `python` block with output, the line of the output's
    /// fence. Otherwise, the line of the block's fence.
    line: usize,
    /// The output below the command; `None` if only the exit status is checked.
    output: Option<String>,
}

/// The environment in which a page runs. It has its own addresses and folders, in place of those in the pages.
struct Stage {
    folder: TempDir,
    /// Each documented port with the port that is used in its place. The socket reserves the port, but a program that
    /// sets SO_REUSEADDR, as servers do, can still listen on it.
    ports: Vec<(&'static str, String, TcpSocket)>,
}

#[test]
fn the_examples_do_what_the_pages_say() {
    needs!(
        "bash",
        "curl",
        "jq",
        "openssl",
        "python3",
        "python3-cryptography",
        "python3-requests",
        "timeout"
    );
    let pages: Vec<Page> = pages().into_iter().filter(is_run).collect();
    let results: Vec<(usize, String)> = thread::scope(|scope| {
        let running: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        running.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    let (counts, wrong): (Vec<usize>, Vec<String>) = results.into_iter().unzip();
    assert!(wrong.concat().is_empty(), "{}", wrong.concat());
    let count: usize = counts.iter().sum();
    println!("{count} examples of {} pages", pages.len());
    assert!(count > 50, "{count}");
}

fn is_run(page: &Page) -> bool {
    (page.path.starts_with("docs") || page.path == Path::new("README.md"))
        && page.blocks().any(|block| matches!(block.info, "console" | "sh"))
}

/// Runs a page. Returns the number of its examples, and a description of those that failed.
fn run(page: &Page) -> (usize, String) {
    let stage = Stage::new();
    let (script, examples) = script(page, &stage);
    let binary = Path::new(env!("CARGO_BIN_EXE_robotgate"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().expect("a folder").display());
    let ended = Command::new("/usr/bin/timeout")
        .arg(DEADLINE.as_secs().to_string())
        .args(["/bin/bash", "-e", "-c", &script])
        .current_dir(stage.path("etc"))
        .env_clear()
        .envs([("PATH", path), ("HOME", stage.path("home"))])
        .envs([("LANG", "C.UTF-8"), ("TZ", "UTC"), ("PYTHONUNBUFFERED", "1")])
        .output()
        .expect("bash runs");
    let printed = String::from_utf8_lossy(&ended.stdout).replace('\r', "");
    let parts = printed.split('\x1e').skip(1);
    let parts: Vec<String> = parts.map(|part| stage.as_documented(part)).collect();
    let name = page.path.display();
    let mut wrong = String::new();
    let mut pasted = Vec::new();
    for (Example { line, output }, part) in examples.iter().zip(&parts) {
        if let Some(shown) = output.as_ref().filter(|shown| !is_same(shown, part)) {
            let _ = writeln!(wrong, "{name}:{line}: shows\n{shown}but it is\n{part}");
            pasted.push((*line, shown.lines().count(), part.trim_end()));
        }
    }
    if env::var("DOCS").is_ok_and(|what| what == "write") {
        paste(page, &pasted);
    }
    if !ended.status.success() || parts.len() < examples.len() {
        let errors = stage.as_documented(&String::from_utf8_lossy(&ended.stderr));
        let last = parts.len().checked_sub(1).map_or(0, |last| examples[last].line);
        let _ = writeln!(wrong, "{name}:{last}: {} after this: {errors}", ended.status);
    }
    (examples.len(), wrong)
}

/// Returns the whole page as a script that prints a mark before the output of each example.
fn script(page: &Page, stage: &Stage) -> (String, Vec<Example>) {
    let readme = super::page("README.md");
    let try_it: Vec<String> = readme.blocks().map(|block| block.text).collect();
    let configuration = try_it[0].lines().next().expect("it writes the configuration");
    let site = try_it[1].replace("python3 -m", "exec python3 -m");
    let mut script = include_str!("page.sh")
        .replace("CONFIGURATION", configuration)
        .replace("SITE", site.trim_end());
    let starts_proxy = page.text.contains("\n$ robotgate run ");
    script.push_str(if starts_proxy { "configure" } else { "serve" });
    script.push_str(" < /dev/null\n");
    let mut examples: Vec<Example> = Vec::new();
    let mut follows_python = false;
    for block in page.blocks() {
        let line = block.line;
        match block.info {
            "toml" | "toml,part" | "toml,proxy" => {
                let file = format!("../{line}.toml");
                fs::write(stage.path("etc") + "/" + &file, stage.in_use(&block.text)).expect("a file");
                let _ = writeln!(script, "cp {file} robotgate.toml");
                if block.info == "toml,proxy" {
                    let _ = writeln!(script, "serve < {file}");
                }
            }
            "python" => {
                let file = format!("../{line}.py");
                fs::write(stage.path("etc") + "/" + &file, stage.in_use(&block.text)).expect("a file");
                let _ = write!(script, "{MARK}{{ python3 {file}\n}} 2>&1\n");
                examples.push(Example { line, output: None });
                follows_python = true;
                continue;
            }
            "" if follows_python => {
                examples.pop();
                examples.push(Example {
                    line,
                    output: Some(block.text),
                });
            }
            // Leave out the command that starts the site, because `page.sh` contains it, and commands that install
            // packages.
            "sh" if block.text != try_it[1] && !block.text.contains("apt-get install") => {
                let _ = write!(script, "{MARK}(\n{})\n", block.text);
                examples.push(Example { line, output: None });
            }
            "console" => {
                for (line, text) in (line + 1..).zip(block.text.lines()) {
                    if let Some(command) = text.strip_prefix("$ ") {
                        let _ = match command.ends_with('&') {
                            true => writeln!(script, "{MARK}{{ {command} }} 2>> ~/proxy.log\nready $!"),
                            false => writeln!(script, "{MARK}{{ {command}\n}} 2>&1 || true"),
                        };
                        let output = Some(String::new());
                        examples.push(Example { line, output });
                    } else if let Some(output) = examples.last_mut().and_then(|last| last.output.as_mut()) {
                        output.extend([text, "\n"]);
                    }
                }
            }
            _ => {}
        }
        follows_python = false;
    }
    (stage.in_use(&script), examples)
}

/// Returns whether the outputs differ only in [`VOLATILE`] parts. In `shown`, one line may be `…`, which matches any
/// lines.
fn is_same(shown: &str, printed: &str) -> bool {
    let [shown, printed] = [shown, printed].map(|text| {
        VOLATILE
            .iter()
            .fold(text.trim_end().to_owned(), |text, (pattern, stands_for)| {
                let pattern = Regex::new(pattern).expect("a pattern");
                pattern.replace_all(&text, *stands_for).into_owned()
            })
    });
    let parts: Vec<&str> = shown.split("\n…\n").collect();
    match parts[..] {
        [whole] => whole == printed,
        [start, end] => printed.starts_with(start) && printed.ends_with(end),
        _ => false,
    }
}

/// Pastes the new output below each command. `outputs` contains, for each, the line of the command, the number of lines
/// of its old output, and the new output.
fn paste(page: &Page, outputs: &[(usize, usize, &str)]) {
    let mut lines: Vec<&str> = page.text.lines().collect();
    for (line, count, output) in outputs.iter().rev() {
        lines.splice(*line..line + count, output.lines());
    }
    fs::write(root().join(&page.path), lines.join("\n") + "\n").expect("the page can be written");
}

/// Reserves a free port on which programs can still listen. It is below the range from which the system assigns ports:
/// in that range, the system could assign this port to another test.
fn reserve_port() -> TcpSocket {
    let port = || 10_000 + (RandomState::new().hash_one(()) % 20_000) as u16;
    let reserve = |port| {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], port).into()).ok()?;
        socket.set_reuseaddr(true).expect("an option");
        Some(socket)
    };
    std::iter::repeat_with(port).find_map(reserve).expect("a free port")
}

/// Returns `text` with each whole word `from` replaced by `to`.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let word = Regex::new(&format!(r"\b{from}\b")).expect("a pattern");
    word.replace_all(text, to).into_owned()
}

// === impl Stage ===

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["tmp", "etc", "home"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        // curl shows its progress if the output goes to a pipe, as it does here.
        fs::write(folder.path().join("home/.curlrc"), "silent\nshow-error\n").expect("a file");
        for name in ["docs", "conf"] {
            std::os::unix::fs::symlink(root().join(name), folder.path().join("etc").join(name)).expect("a link");
        }
        let mut sockets: Vec<TcpSocket> = (0..4).map(|_| reserve_port()).collect();
        // The ports have the same order as the documented ones, because some tables are sorted by port.
        let port = |socket: &TcpSocket| socket.local_addr().expect("an address").port();
        sockets.sort_by_key(port);
        let ports = std::iter::zip(["3128", "3180", "8000", "8001"], sockets)
            .map(|(documented, socket)| (documented, port(&socket).to_string(), socket))
            .collect();
        Self { folder, ports }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Replaces the ports and folders in a page's text by those in use here.
    fn in_use(&self, text: &str) -> String {
        let text = text.replace("/tmp/", &(self.path("tmp") + "/"));
        let ports = self.ports.iter();
        ports.fold(text, |text, (documented, ours, _)| replaced(&text, documented, ours))
    }

    /// Replaces the ports and folders in an output by those that the pages name, and adjusts the length of content that
    /// contains them.
    fn as_documented(&self, output: &str) -> String {
        let documented = self.renamed(output);
        let shorter = |(_, before): (&str, &str)| {
            before
                .len()
                .saturating_sub(documented.split_once("\n\n").map_or(0, |(_, after)| after.len()))
        };
        let shorter = output.split_once("\n\n").map_or(0, shorter);
        let length = Regex::new(r"(?m)^Content-Length: (\d+)$").expect("a pattern");
        let corrected = |found: &Captures<'_>| {
            let length: usize = found[1].parse().expect("digits");
            format!("Content-Length: {}", length.saturating_sub(shorter))
        };
        length.replace(&documented, corrected).into_owned()
    }

    fn renamed(&self, output: &str) -> String {
        let folders = [("tmp", "/tmp"), ("etc", "/etc/robotgate"), ("home", "/home/you")];
        let output = folders.iter().fold(output.to_owned(), |output, (ours, documented)| {
            output.replace(&self.path(ours), documented)
        });
        let ports = self.ports.iter();
        ports.fold(output, |output, (documented, ours, _)| {
            replaced(&output, ours, documented)
        })
    }
}

/// Shell command that marks the beginning of an example's output.
const MARK: &str = "printf '\\x1e'; ";

/// Patterns of text that differs from run to run, and their replacements in a comparison.
const VOLATILE: [(&str, &str); 20] = [
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?(Z| UTC)?", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", "TIME"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\b(in|,) [\d.]+ (s|min|h)( \d+ (s|min))?( ago)?", "DURATION"),
    (r"(Age: |ttl=|Retry-After: |not-before=@)\d+", "${1}NUMBER"),
    (r#""(retry_after|(memory_|file_|disk_)bytes)": ?\d+"#, "$1 NUMBER"),
    // The compressed size of a configuration depends on the ports and folders in it.
    (r#"("texts": 2,\s+"bytes": )\d+"#, "${1}NUMBER"),
    (r#""client": ?"127.0.0.1:\d+""#, "CLIENT"),
    (r"([0-9A-F]{2}:){31}[0-9A-F]{2}", "FINGERPRINT"),
    (r"(authority|key) [0-9a-f]{8}", "$1 ID"),
    (r"AcmeBot:[\w-]{43}@", "SECRET"),
    (r#""version": ?"[^"]+""#, "VERSION"),
    (r#""instance": ?"[0-9a-f]{8}""#, "INSTANCE"),
    (r#""config_sha256": ?"[0-9a-f]{64}""#, "CONFIG"),
    (r"(/home/you/.local/state|/var/lib)/robotgate", "STATE"),
    // The proxy in the README listens on the default ports, so its configuration does not name the ports. The
    // configuration in this test does.
    (r#""(proxy|admin)\.listen":"(\\.|[^"\\])*",?"#, ""),
    (r#",\}"#, "}"),
    // The width of a table depends on the ports in it, and that of a mark (`^^^`) on the path.
    ("  +", "  "),
    (r"\^+", "^"),
    (r"(?m)[ \t]+$", ""),
];
