//! robotgate with robots.txt, its audit log and metrics. The environment variable `ROBOTGATE_BIN` can name another
//! build of it.

use std::{
    env,
    ffi::OsString,
    fs, io,
    process::{Command, Stdio},
    thread,
};

use super::{Setup, first_line};
use crate::proxy::{AGENT, Outcome, certificates::AUTHORITY, process::Process};

/// Where the audit log is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audit {
    File,
    /// Standard output, which the benchmark reads.
    Pipe,
    /// Standard output, which is `/dev/null`.
    Null,
}

/// How a CONNECT is handled.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Https {
    Intercept,
    Tunnel,
}

pub fn version() -> Result<String, String> {
    let program = program().to_string_lossy().into_owned();
    first_line(&program, &["--version"])
}

pub fn start(setup: &Setup, audit: Audit, https: Https) -> Outcome<Process> {
    let listen = setup.plain;
    let roots = setup.shared.join(AUTHORITY);
    let roots = roots.display();
    let path = match audit {
        // As in an installation, the log is not in the folder of the configuration, which is watched.
        Audit::File => "path = \"log/audit.jsonl\"",
        Audit::Pipe | Audit::Null => "stdout = true",
    };
    let mode = match https {
        Https::Intercept => "intercept",
        Https::Tunnel => "tunnel",
    };
    let path = setup.write(
        "robotgate.toml",
        &format!(
            r#"
[proxy]
listen = "{listen}"

[admin]
listen = "127.0.0.1:0"

[audit]
{path}

[https]
mode = "{mode}"
unverifiable = "allow"
ca-certificate = "ca.pem"
ca-key = "ca-key.pem"
extra-roots = ["{roots}"]

[cache]
path = "robots.redb"

[egress]
allow = ["127.0.0.0/8"]

[[bot]]
name = "{AGENT}"
user-agents = ["{AGENT}"]
robots-agents = ["{AGENT}"]
"#
        ),
    )?;
    fs::create_dir(setup.folder.join("log"))?;
    let mut command = Command::new(program());
    command.args(["run", "--config"]).arg(path);
    command.stdout(match audit {
        Audit::Pipe => Stdio::piped(),
        Audit::File | Audit::Null => Stdio::null(),
    });
    let mut process = Process::start(&mut command, &setup.log())?;
    if let Some(mut output) = process.take_output() {
        thread::spawn(move || io::copy(&mut output, &mut io::sink()));
    }
    Ok(process)
}

fn program() -> OsString {
    env::var_os("ROBOTGATE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_robotgate").into())
}
