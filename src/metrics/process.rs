//! Reads metrics of this process, most of them from `/proc`. Prometheus' own clients report the same metrics.

use std::fs;

/// Metrics of this process; `None` for values that the system does not provide.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    pub cpu_seconds: Option<f64>,
    pub resident_bytes: Option<u64>,
    pub virtual_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub max_files: Option<u64>,
    /// When the process started, in seconds since 1970.
    pub start_seconds: Option<f64>,
}

// === impl Process ===

impl Process {
    /// Reads the current values. This is slow if the process has many open files.
    pub fn read() -> Self {
        let read = |name: &str| fs::read_to_string(name).unwrap_or_default();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self {
            // The file descriptor that reads this list is not counted.
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64 - 1),
            max_files: limit.current,
            ..Self::parse(
                &read("/proc/self/stat"),
                &read("/proc/self/status"),
                &read("/proc/stat"),
            )
        }
    }

    fn parse(stat: &str, status: &str, system: &str) -> Self {
        // The second field is a name in parentheses that can itself contain parentheses and spaces.
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or_else(Vec::new, |(_, fields)| fields.split_whitespace().collect());
        // proc(5) numbers the fields from 1, and `fields` begins with field 3.
        let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / TICKS;
        let kib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
        };
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "));
        let boot = boot.and_then(|seconds| seconds.trim().parse::<u64>().ok());
        Self {
            cpu_seconds: ticks(14).zip(ticks(15)).map(|(user, system)| seconds(user + system)),
            resident_bytes: kib("VmRSS:"),
            virtual_bytes: kib("VmSize:"),
            start_seconds: boot.zip(ticks(22)).map(|(boot, since)| boot as f64 + seconds(since)),
            ..Self::default()
        }
    }
}

/// `USER_HZ`, which is always 100 for user programs on Linux.
const TICKS: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proc_files_are_parsed_as_documented() {
        let stat =
            "42 (a) b) S 1 42 42 0 -1 4194560 2417 0 12 0 250 50 0 0 20 0 9 0 12345 1024 300 18446744073709551615";
        let status = "Name:\ta\nVmSize:\t    2048 kB\nVmRSS:\t     512 kB\n";
        let process = Process::parse(stat, status, "cpu 1 2\nbtime 1700000000\n");
        assert_eq!(process.cpu_seconds, Some(3.0));
        assert_eq!(process.start_seconds, Some(1_700_000_123.45));
        assert_eq!(process.virtual_bytes, Some(2 << 20));
        assert_eq!(process.resident_bytes, Some(512 << 10));
        assert_eq!(Process::parse("", "", ""), Process::default());
    }

    #[test]
    fn the_values_of_this_process_are_plausible() {
        let process = Process::read();
        assert!(process.open_files > Some(0) && process.open_files < process.max_files);
        assert!(process.resident_bytes > Some(1 << 20));
        assert!(process.start_seconds > Some(1.7e9));
    }
}
