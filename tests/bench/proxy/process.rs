//! The benchmark's processes, and the kernel's counters for them and their descendants.

use std::{
    fs::{self, File},
    io,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// A process. Dropping it ends the process and its descendants.
pub struct Process(Child);

// === impl Process ===

impl Process {
    /// Starts the process. Its standard error is appended to the file `log`. Its standard input is a pipe that closes
    /// when the benchmark ends.
    pub fn start(command: &mut Command, log: &Path) -> io::Result<Self> {
        let errors = File::options().create(true).append(true).open(log)?;
        let child = command.stdin(Stdio::piped()).stderr(errors).spawn()?;
        Ok(Self(child))
    }

    /// Takes the process's output, if the command made it a pipe.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    pub fn ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Returns the processor time of the process and its descendants so far, including those that have ended.
    pub fn cpu(&self) -> Duration {
        self.tree().into_iter().map(cpu).sum()
    }

    /// Returns the memory of the process and its descendants in bytes. Shared memory counts proportionally (PSS).
    pub fn memory(&self) -> u64 {
        self.tree().into_iter().map(memory).sum()
    }

    fn tree(&self) -> Vec<u32> {
        let mut parents = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            if let Some((id, parent)) = id.and_then(|id| Some((id, *stat(id)?.get(PARENT)?))) {
                parents.push((id, parent));
            }
        }
        let mut tree = vec![self.0.id()];
        let mut at = 0;
        while let Some(&parent) = tree.get(at) {
            let children = parents.iter().filter(|(_, of)| *of == u64::from(parent));
            tree.extend(children.map(|(id, _)| id));
            at += 1;
        }
        tree
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let tree = self.tree();
        // The benchmark's own processes end when their input closes, the others because of the signal. squid must end
        // by itself, or it leaves files in shared memory.
        drop(self.0.stdin.take());
        signal(self.0.id(), Signal::TERM);
        let patience = Instant::now() + Duration::from_secs(2);
        while !self.ended() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(5));
        }
        if !self.ended() {
            for id in tree {
                signal(id, Signal::KILL);
            }
            drop(self.0.wait());
        }
    }
}

fn signal(id: u32, signal: Signal) {
    // The process may have ended.
    if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(id, signal);
    }
}

/// Returns the processor time of the benchmark itself, which is the load generator.
pub fn self_cpu() -> Duration {
    cpu(std::process::id())
}

fn cpu(id: u32) -> Duration {
    let stat = stat(id).unwrap_or_default();
    let ticks: u64 = stat.get(CPU).map_or(0, |times| times.iter().sum());
    Duration::from_secs(ticks) / TICKS
}

fn memory(id: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Returns the numbers in `/proc/ID/stat`, from the parent's id on (proc(5)).
fn stat(id: u32) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses can contain any characters, even parentheses. The state comes after it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields = fields.split_whitespace().skip(1);
    Some(fields.map(|field| field.parse().unwrap_or(0)).collect())
}

const PARENT: usize = 0;
/// Positions of the user and system time of the process and of its children that have ended.
const CPU: std::ops::Range<usize> = 10..14;

/// Clock ticks per second (`USER_HZ`), the same on every machine that can run this benchmark.
const TICKS: u32 = 100;

/// Raises the limit of open files for this process and its children to the maximum, and returns the limit.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Raising the limit to the maximum is always allowed.
    let _ = setrlimit(Resource::Nofile, raised);
    limit.maximum.unwrap_or(1 << 20)
}

pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of threads of the load generator, and of the origin: a quarter of the cores each, but at least 1.
pub fn threads() -> usize {
    (cores() / 4).max(1)
}
