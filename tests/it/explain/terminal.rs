//! Output fits the terminal's width, and is coloured if the terminal supports it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use crate::support::terminal::terminal;

/// Returns the explanation of a URL with `robots`, as shown by a terminal with this many columns.
fn shown(robots: &str, columns: u16, variables: &[(&str, &str)]) -> String {
    let (ours, theirs) = terminal(columns);
    let mut child = Command::new(env!("CARGO_BIN_EXE_robotgate"))
        .args(["explain", "--robots", "-", "--agent", "ExampleBot"])
        .arg("https://shop.example/private/page")
        .env_remove("CI")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("TERM", "xterm")
        .env("COLUMNS", "200")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(theirs)
        .spawn()
        .expect("the binary is there");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(robots.as_bytes()).expect("it reads");
    drop(input);
    let mut shown = Vec::new();
    // Reading a terminal whose other end is closed fails.
    let _ = File::from(ours).read_to_end(&mut shown);
    child.wait().expect("the child is ours");
    String::from_utf8(shown).expect("text").replace("\r\n", "\n")
}

#[test]
fn rows_fit_the_width_of_the_terminal() {
    let robots = format!(
        "User-agent: *\n# {0}\nAllow: /private/page\nDisallow: /private/\nDisallow: /private/page$\nDisallow: {0}\n\
         Disallow: /private/{0}/*.css$\nDisallow: private/{0}\n",
        "long/".repeat(40)
    );
    for columns in [60, 80, 120] {
        let shown = shown(&robots, columns, &[("NO_COLOR", "1")]);
        // Terminals can wrap sentences, but wrapping would break the columns of a table.
        let rows = shown.lines().filter(|line| line.starts_with([' ', '>']));
        let widest = rows.map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{columns}:\n{shown}");
        for reason in [
            "matches, but is shorter: 9 against 14 bytes",
            "never matches: a pattern has to begin with / or *",
        ] {
            assert!(shown.contains(reason), "{columns}:\n{shown}");
        }
    }
}

#[test]
fn colour_is_used_only_on_terminals_that_support_it() {
    let robots = "User-agent: *\nDisallow: /\n";
    assert!(shown(robots, 80, &[]).starts_with("\u{1b}[1m\u{1b}[31mREFUSED\u{1b}[0m"));
    for plain in [("TERM", "dumb"), ("NO_COLOR", "1"), ("CLICOLOR", "0")] {
        let shown = shown(robots, 80, &[plain]);
        assert!(shown.starts_with("REFUSED") && !shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn a_pipe_gets_colour_only_if_it_is_forced() {
    for (variables, coloured) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_robotgate"))
            .args(["explain", "--robots", "/dev/null", "--agent", "ExampleBot"])
            .arg("https://shop.example/")
            .env_remove("CI")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .output()
            .expect("the binary is there");
        let shown = String::from_utf8(output.stdout).expect("text");
        assert!(shown.contains("ALLOWED"), "{shown}");
        assert_eq!(shown.contains('\u{1b}'), coloured, "{variables:?}:\n{shown}");
    }
}
