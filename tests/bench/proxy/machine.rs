//! Describes the machine on which the benchmark runs.

use std::fs;

use super::process;

pub fn describe() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|line| line.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let gigabytes = kilobytes.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0) / (1024 * 1024);
    let system = rustix::system::uname();
    let kernel = system.release().to_string_lossy();
    let kernel = kernel.split('-').next().unwrap_or_default();
    let cores = process::cores();
    format!("{cores} cores of {model}, {gigabytes} GiB of memory, Linux {kernel}; client, origin and proxy share them")
}
