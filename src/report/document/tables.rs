//! Makes the tables of a report.

use std::collections::BTreeSet;

use super::{Cell, Column, Document, Row, Section};
use crate::{
    decision::Reason,
    report::{
        By, Report,
        top::{Largest, Top},
        waits::Waits,
    },
    text::grouped,
};

// === impl Document ===

impl Document {
    /// Creates the tables of a report: first the totals, then tables of at most `most` rows.
    pub fn of(report: &Report, by: &[By], most: usize) -> Self {
        let mut sections = vec![totals(report)];
        for by in by {
            sections.push(requests_by(report, *by, most));
        }
        sections.extend([
            refused(report, most),
            refused_bots(report, most),
            not_enforced(report, most),
            exemptions(report, most),
            outages(report, most),
            changes(report, most),
            waits(report, most),
            errors(report, most),
            events(report, most),
        ]);
        Self {
            title: "Report on the audit log",
            sections,
            timeline: report.timeline.intervals(MAX_INTERVALS),
        }
    }
}

fn totals(report: &Report) -> Section {
    let mut rows = Vec::new();
    let mut add = |name: &str, cell: Cell| {
        rows.push(Row {
            cells: vec![text(name), cell],
            counts: None,
        });
    };
    let Report { total, lines, .. } = report;
    for (name, time) in [("Since", report.period.since), ("Until", report.period.until)] {
        if let Some(time) = time {
            add(name, Cell::Time(time));
        }
    }
    if let Some((first, last)) = report.decided {
        add("First request", Cell::Time(first));
        add("Last request", Cell::Time(last));
    }
    add("Requests", Cell::Count(total.requests));
    add("Forwarded", Cell::Count(total.forwarded()));
    add("Refused", Cell::Count(total.refused));
    add("Not enforced", Cell::Count(total.not_enforced));
    add("Exempt", Cell::Count(total.exempt));
    // Requests without a bot have the name `-`.
    let named = report.bots.len() - usize::from(report.bots.has(["-", ""]));
    for (name, top, number) in [
        ("Sites", &report.sites, report.sites.len()),
        ("Bots", &report.bots, named),
    ] {
        let number = number as u64;
        add(
            name,
            match top.is_exact() {
                true => Cell::Count(number),
                false => text(format!("more than {}", grouped(number))),
            },
        );
    }
    add("Exchanges that ended", Cell::Count(report.completions));
    add("Bytes from clients", Cell::Count(report.bytes.0));
    add("Bytes to clients", Cell::Count(report.bytes.1));
    add("Fetches of a robots.txt", Cell::Count(report.fetches));
    add("Fetches that failed", Cell::Count(report.failed_fetches));
    add(
        "Times that a robots.txt was unreachable",
        Cell::Count(report.outages.total),
    );
    add("Changes of a robots.txt", Cell::Count(report.changes.total));
    let Waits { turn, robots, .. } = &report.waits;
    add("Requests that waited for their turn", Cell::Count(turn.0));
    add("Time that they waited for their turn", Cell::Length(turn.1));
    add("Requests that waited for a robots.txt", Cell::Count(robots.0));
    add("Time that they waited for a robots.txt", Cell::Length(robots.1));
    let events = &report.events;
    for (name, number) in [
        ("Starts", events.starts),
        ("Stops", events.stops),
        ("Reloads", events.reloads),
        ("Reloads that were rejected", events.rejected),
        ("Lines read", lines.read),
        ("Lines outside of the period", lines.outside),
        ("Lines that were erased", lines.erased),
        ("Lines that cannot be read", lines.unreadable),
    ] {
        add(name, Cell::Count(number));
    }
    let not_enforced = "Not enforced: robotgate forwarded the request although it was not allowed. Forwarded includes \
                        these requests.";
    let exempt = "Exempt: no robots.txt was applied, because the configuration exempts the bot, everywhere or at the \
                  site. Forwarded includes these requests.";
    let unreadable = "Some lines are not complete records of the log. The report leaves them out.";
    let incomplete = "At some point in the logs, more than 100,000 requests of bots with purposes had no completion \
                      yet. So some requests may count as forwarded although robotgate withheld the site's response \
                      from the bot.";
    Section {
        name: "total",
        title: "Totals",
        notes: [
            (total.not_enforced > 0, not_enforced),
            (total.exempt > 0, exempt),
            (lines.unreadable > 0, unreadable),
            (report.forwarded.is_incomplete, incomplete),
        ]
        .into_iter()
        .filter(|(is_true, _)| *is_true)
        .map(|(_, note)| note.to_owned())
        .collect(),
        columns: columns(&[("What", "name"), ("Value", "count")]),
        rows,
    }
}

fn requests_by(report: &Report, by: By, most: usize) -> Section {
    let (name, title, column, top) = match by {
        By::Bot => ("bot", "Bots", "Bot", &report.bots),
        By::Site => ("site", "Sites", "Site", &report.sites),
        By::Reason => ("reason", "Reasons", "Reason", &report.reasons),
        By::Rule => ("rule", "Rules that decided", "Rule", &report.rules),
    };
    let largest = top.largest(most, |counts| counts.requests);
    let is_rule = matches!(by, By::Rule);
    let mut titles = vec![(column, "name")];
    titles.extend(is_rule.then_some(("Site", "site")));
    titles.extend([
        ("Requests", "requests"),
        ("Forwarded", "forwarded"),
        ("Refused", "refused"),
        ("Not enforced", "not_enforced"),
        ("Exempt", "exempt"),
    ]);
    let rows = largest.rows.iter().map(|([name, site], counts)| {
        let mut cells = vec![long(name)];
        cells.extend(is_rule.then(|| long(site)));
        cells.extend(
            [
                counts.requests,
                counts.forwarded(),
                counts.refused,
                counts.not_enforced,
                counts.exempt,
            ]
            .map(Cell::Count),
        );
        Row {
            cells,
            counts: Some(*counts),
        }
    });
    let mut notes = left_out(&largest);
    if matches!(by, By::Bot) && report.bots.has(["-", ""]) {
        notes.push("-: requests without a bot".to_owned());
    }
    Section {
        name,
        title,
        notes,
        columns: columns(&titles),
        rows: rows.collect(),
    }
}

fn refused(report: &Report, most: usize) -> Section {
    let largest = report.refused.largest(most, |counts| counts.requests);
    let rows = largest
        .rows
        .iter()
        .map(|([site, reason], counts)| row([long(site), text(reason), Cell::Count(counts.requests)]));
    let reasons: BTreeSet<&str> = largest.rows.iter().map(|([_, reason], _)| &**reason).collect();
    let known = reasons.into_iter().filter_map(Reason::from_word);
    let mut notes = left_out(&largest);
    notes.extend(known.map(|reason| format!("{}: {}", reason.as_str(), reason.sentence())));
    Section {
        name: "refused",
        title: "Refused, by site and reason",
        notes,
        columns: columns(&[("Site", "site"), ("Reason", "name"), ("Requests", "requests")]),
        rows: rows.collect(),
    }
}

fn refused_bots(report: &Report, most: usize) -> Section {
    by_reason_and_bot("refused_bot", "Refused, by reason and bot", &report.refused_bots, most)
}

fn not_enforced(report: &Report, most: usize) -> Section {
    let title = "Not enforced (not allowed, but forwarded)";
    by_reason_and_bot("not_enforced", title, &report.not_enforced, most)
}

/// `top` counts requests by bot and reason.
fn by_reason_and_bot(name: &'static str, title: &'static str, top: &Top, most: usize) -> Section {
    let largest = top.largest(most, |counts| counts.requests);
    let rows = largest
        .rows
        .iter()
        .map(|([bot, reason], counts)| row([text(reason), long(bot), Cell::Count(counts.requests)]));
    Section {
        name,
        title,
        notes: left_out(&largest),
        columns: columns(&[("Reason", "name"), ("Bot", "bot"), ("Requests", "requests")]),
        rows: rows.collect(),
    }
}

fn exemptions(report: &Report, most: usize) -> Section {
    let largest = report.exemptions.largest(most, |counts| counts.requests);
    let rows = largest
        .rows
        .iter()
        .map(|([exemption, bot], counts)| row([long(exemption), long(bot), Cell::Count(counts.requests)]));
    Section {
        name: "exemption",
        title: "Exemptions used",
        notes: left_out(&largest),
        columns: columns(&[("Exemption", "name"), ("Bot", "bot"), ("Requests", "requests")]),
        rows: rows.collect(),
    }
}

fn outages(report: &Report, most: usize) -> Section {
    let all = report.outages.longest();
    let rows = all.iter().take(most).map(|outage| {
        row([
            long(&outage.site),
            Cell::Time(outage.from),
            outage.until.map_or_else(|| text("still"), Cell::Time),
            Cell::Length(outage.length()),
            Cell::Count(outage.failures),
            text(&outage.error),
        ])
    });
    let mut notes = unlisted(all.len(), most, "shorter ones");
    if report.outages.is_cut {
        notes.push("There were too many outages to keep in memory, so some are missing.".to_owned());
    }
    Section {
        name: "unreachable",
        title: "Sites whose robots.txt was unreachable",
        notes,
        columns: columns(&[
            ("Site", "site"),
            ("From", "time"),
            ("Until", "until"),
            ("For", "seconds"),
            ("Fetches", "count"),
            ("Last error", "name"),
        ]),
        rows: rows.collect(),
    }
}

fn changes(report: &Report, most: usize) -> Section {
    let all = report.changes.newest();
    let sum = |sum: &Option<String>| sum.clone().map_or(Cell::None, Cell::Digest);
    let rows = all.iter().take(most).map(|change| {
        let rules = change.rules.map(|(added, removed)| {
            let rules = if added == 1 { "rule" } else { "rules" };
            text(format!(
                "{} {rules} added, {} removed",
                grouped(added),
                grouped(removed)
            ))
        });
        row([
            Cell::Time(change.time),
            long(&change.site),
            rules.unwrap_or(Cell::None),
            sum(&change.before),
            sum(&change.after),
        ])
    });
    let total = usize::try_from(report.changes.total).unwrap_or(usize::MAX);
    let mut notes = unlisted(total, most.min(all.len()), "older ones");
    if report.events.has_forgotten() {
        notes.push(
            "Changes that robotgate found after `robotgate cache forget` are not listed. `robotgate cache history` shows \
             them."
                .to_owned(),
        );
    }
    Section {
        name: "changed",
        title: "Changes of robots.txt files",
        notes,
        columns: columns(&[
            ("Time", "time"),
            ("Site", "site"),
            ("Rules", "name"),
            ("SHA-256 before", "before"),
            ("SHA-256 after", "after"),
        ]),
        rows: rows.collect(),
    }
}

fn waits(report: &Report, most: usize) -> Section {
    let rows = report.waits.longest().iter().take(most).map(|wait| {
        let (bot, url) = match &wait.request {
            Some((bot, url)) => (long(bot), long(url)),
            None => (Cell::None, long(format!("the request {}", wait.id))),
        };
        row([
            Cell::Length(wait.waited),
            text(wait.what.as_str()),
            Cell::Time(wait.time),
            bot,
            url,
        ])
    });
    Section {
        name: "wait",
        title: "Longest waits",
        notes: Vec::new(),
        columns: columns(&[
            ("Waited", "seconds"),
            ("For", "name"),
            ("Ended", "time"),
            ("Bot", "bot"),
            ("URL", "site"),
        ]),
        rows: rows.collect(),
    }
}

fn errors(report: &Report, most: usize) -> Section {
    let largest = report.errors.largest(most, |counts| counts.requests);
    let rows = largest
        .rows
        .iter()
        .map(|([error, _], counts)| row([text(error), Cell::Count(counts.requests)]));
    Section {
        name: "error",
        title: "Exchanges that failed",
        notes: left_out(&largest),
        columns: columns(&[("Error", "name"), ("Exchanges", "count")]),
        rows: rows.collect(),
    }
}

fn events(report: &Report, most: usize) -> Section {
    let mut all: Vec<_> = report.events.kept.iter().collect();
    all.sort_by_key(|event| std::cmp::Reverse(event.time));
    let rows = all.iter().take(most).map(|event| {
        row([
            Cell::Time(event.time),
            text(event.what),
            text(&event.instance),
            text(&event.detail),
        ])
    });
    Section {
        name: "event",
        title: "Starts, stops and reloads",
        notes: unlisted(all.len(), most, "older ones"),
        columns: columns(&[
            ("Time", "time"),
            ("What", "name"),
            ("Instance", "before"),
            ("Details", "after"),
        ]),
        rows: rows.collect(),
    }
}

fn left_out(largest: &Largest) -> Vec<String> {
    let Largest {
        others,
        other_keys,
        missed,
        ..
    } = largest;
    let others = (others.requests > 0).then(|| match missed {
        0 => format!(
            "Rows that are left out: {}. Their requests add up to {}.",
            grouped(*other_keys as u64),
            grouped(others.requests)
        ),
        _ => format!(
            "Many more rows are left out. Their requests add up to {}.",
            grouped(others.requests)
        ),
    });
    let missed = (*missed > 0).then(|| {
        format!(
            "There are more rows than fit in memory, so each number may be too small by up to {}.",
            grouped(*missed)
        )
    });
    others.into_iter().chain(missed).collect()
}

fn unlisted(all: usize, most: usize, which: &str) -> Vec<String> {
    let rest = all.saturating_sub(most);
    let note = (rest > 0).then(|| format!("{} {which} are left out.", grouped(rest as u64)));
    note.into_iter().collect()
}

fn columns(columns: &[(&'static str, &'static str)]) -> Vec<Column> {
    columns.iter().map(|(title, name)| Column { title, name }).collect()
}

fn row(cells: impl Into<Vec<Cell>>) -> Row {
    Row {
        cells: cells.into(),
        counts: None,
    }
}

fn text(text: impl AsRef<str>) -> Cell {
    Cell::Text(text.as_ref().to_owned())
}

fn long(text: impl AsRef<str>) -> Cell {
    Cell::Long(text.as_ref().to_owned())
}

const MAX_INTERVALS: u64 = 60;
