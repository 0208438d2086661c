//! The goals for robotgate.

use super::{
    cases::FORWARDED,
    crowds,
    numbers::{Goals, digits},
    races::{Row, Sample},
};

/// A limit for the ratio of robotgate's result (`of`) to the result of the contender `than` in the same case.
struct Share {
    case: &'static str,
    of: Of,
    than: &'static str,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Of {
    Rate,
    Cpu,
    P99,
}

enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

const SHARES: [Share; 12] = [
    share("kept", Of::Rate, "squid", Bound::AtLeast(2.0)),
    share("kept", Of::Cpu, "bare HttpProxy", Bound::AtMost(1.0)),
    share("kept", Of::Cpu, "HAProxy", Bound::AtMost(1.7)),
    share("kept", Of::P99, "squid", Bound::AtMost(1.0)),
    share("https", Of::Rate, "squid", Bound::AtLeast(2.0)),
    share("https", Of::P99, "squid", Bound::AtMost(1.0)),
    share("http2", Of::Rate, "squid (HTTP/1.1)", Bound::AtLeast(2.0)),
    share("http2", Of::P99, "squid (HTTP/1.1)", Bound::AtMost(1.0)),
    share("new", Of::Rate, "squid", Bound::AtLeast(5.0)),
    share("large-http", Of::Rate, "squid", Bound::AtLeast(2.5)),
    share("large-https", Of::Rate, "squid", Bound::AtLeast(2.5)),
    share("refusals", Of::Rate, FORWARDED, Bound::AtLeast(3.0)),
];

/// Maximum KiB of memory for each connection, by case.
const MEMORY: [(&str, f64); 3] = [("idle", 24.0), ("tunnels", 40.0), ("unread", 128.0)];

const fn share(case: &'static str, of: Of, than: &'static str, bound: Bound) -> Share {
    Share { case, of, than, bound }
}

/// Compares the results of a case with the goals in `SHARES`.
pub fn judge_race(goals: &mut Goals, case: &str, rows: &[Row]) -> Vec<String> {
    let find = |label: &str| rows.iter().find(|row| row.label == label);
    let mut lines = Vec::new();
    for share in SHARES.iter().filter(|share| share.case == case) {
        let (Some(ours), Some(other)) = (find("robotgate"), find(share.than)) else {
            continue;
        };
        let number = |sample: &Sample| match share.of {
            Of::Rate => sample.rate,
            Of::Cpu => sample.cpu.as_secs_f64(),
            Of::P99 => sample.p99.as_secs_f64(),
        };
        let Some(ratio) = ours.ratio(other, number) else {
            continue;
        };
        let what = match share.of {
            Of::Rate => "requests/s",
            Of::Cpu => "CPU",
            Of::P99 => "p99",
        };
        let (goal, met) = match share.bound {
            Bound::AtLeast(bound) => (format!("at least {bound:.1}"), ratio >= bound),
            Bound::AtMost(bound) => (format!("at most {bound:.1}"), ratio <= bound),
        };
        let number = format!("{ratio:.2} × {}", share.than);
        let verdict = goals.judge(&format!("{case}, {what}"), &number, &goal, met);
        lines.push(format!("{what} {number}, goal {verdict}"));
    }
    lines
}

/// Compares robotgate's memory for each connection in a case with the goal in `MEMORY`.
pub fn judge_crowd(goals: &mut Goals, case: &str, rows: &[crowds::Row]) -> Option<String> {
    let (_, bound) = MEMORY.into_iter().find(|(of, _)| *of == case)?;
    let ours = rows.iter().find(|row| row.label == "robotgate")?;
    let each = ours.memory.as_ref().ok()?.each() as f64 / 1024.0;
    let number = format!("{} KiB", digits(each));
    let verdict = goals.judge(
        &format!("{case}, memory each"),
        &number,
        &format!("at most {bound} KiB"),
        each <= bound,
    );
    Some(format!("memory each {number}, goal {verdict}"))
}
