//! A run of the benchmark, from its options to its last line.

use std::time::Instant;

use tempfile::TempDir;

use super::{
    Outcome,
    cases::{self, Case, Measures},
    certificates, crowds, goals, machine,
    numbers::Goals,
    options::{Command, HELP, Options},
    origin::Origin,
    process,
    proxies::Kind,
    races, table,
};

pub fn run(arguments: &[String]) -> Outcome<()> {
    let command = Options::from_arguments(arguments)?;
    let options = match command {
        Command::Run(ref options) => Some(options),
        Command::List => None,
        Command::Help => {
            println!("{HELP}");
            return Ok(());
        }
        Command::Nothing => return Ok(()),
    };
    let folder = TempDir::new()?;
    // squid drops root privileges and must be able to enter the folder.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let files = process::raise_file_limit();
    certificates::make(folder.path())?;
    let origin = Origin::start(folder.path())?;
    let Some(options) = options else {
        for case in cases::all(&origin, 10_000) {
            println!("{:<12} {}", case.name, case.title);
        }
        return Ok(());
    };
    println!("{}.", machine::describe());
    let skipped = introduce(options);
    // A proxy needs two file descriptors for each tunnel, and some for itself.
    let room = usize::try_from(files.saturating_sub(OTHER_FILES) / 2)?;
    if room < options.connections {
        println!(
            "A process may open {files} files here, so the cases with {} connections have {room} instead.",
            options.connections
        );
    }
    let (rounds, seconds) = (options.rounds, options.time.as_secs_f64());
    println!("{rounds} rounds, with a turn of {seconds} s for each proxy. The numbers are medians.");
    println!(
        "CPU is a proxy's processor time for a request; without a proxy, that of the load generator and the origin."
    );
    println!("\"to squid\" is requests/s divided by those of squid and, in parentheses, the same for CPU.");

    let began = Instant::now();
    let mut goals = Goals::default();
    let mut any = false;
    for mut case in cases::all(&origin, room.min(options.connections)) {
        let contenders = |kind: &Kind, label: &str| options.wants_proxy(label) && !skipped.contains(kind);
        case.contenders
            .retain(|contender| contenders(&contender.kind, &contender.label));
        if options.wants_case(case.name) && !case.contenders.is_empty() {
            any = true;
            println!("\n{}: {}", case.name, case.title);
            for line in perform(&case, options, &folder, &origin, &mut goals) {
                println!("  {line}");
            }
        }
    }
    if !any {
        return Err("no case has such a name, or no proxy takes part; --list names the cases".into());
    }
    println!("\n{}", goals.summary());
    println!("It took {} s.", began.elapsed().as_secs());
    Ok(())
}

/// Prints which proxies take part, and returns those that cannot.
fn introduce(options: &Options) -> Vec<Kind> {
    let mut skipped = Vec::new();
    for kind in Kind::ALL {
        if !options.wants_proxy(&kind.to_string()) {
            continue;
        }
        match kind.version() {
            Ok(version) => println!("  {kind}: {version}"),
            Err(why) => {
                println!("  {kind}: skipped, it is not here ({why})");
                skipped.push(kind);
            }
        }
    }
    skipped
}

fn perform(case: &Case, options: &Options, folder: &TempDir, origin: &Origin, goals: &mut Goals) -> Vec<String> {
    match case.measures {
        Measures::Rate => {
            let rows = races::run(case, options, folder.path(), origin);
            print!("{}", table::race(&rows));
            goals::judge_race(goals, case.name, &rows)
        }
        Measures::Memory => {
            let rows = crowds::run(case, folder.path());
            print!("{}", table::crowd(&rows));
            goals::judge_crowd(goals, case.name, &rows).into_iter().collect()
        }
    }
}

/// A generous estimate of how many files a process has open in addition to connections.
const OTHER_FILES: u64 = 1000;
