//! `robotgate man`: writes a manual page for each command, from its `--help`, and one for the configuration file, from
//! the example configuration.

use std::{fs, io, path::PathBuf, process::ExitCode};

use clap::CommandFactory as _;
use clap_mangen::roff::{Roff, bold, roman};

use super::{Cli, fail};

/// Write the manual pages into a folder
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The folder, which is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
enum ExampleLine<'a> {
    Section(&'a str),
    /// A line of a paragraph, without the `#` at its beginning.
    Text(&'a str),
    /// A line that the page does not join with other lines: a key, a header such as `[[bot]]`, an example or a list.
    Verbatim(&'a str),
    Blank,
}

pub fn run(args: &ManArgs) -> ExitCode {
    match write(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format_args!(
            "cannot write manual pages into {}: {error}",
            args.folder.display()
        )),
    }
}

fn write(ManArgs { folder }: &ManArgs) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)?;
    fs::write(folder.join("robotgate.toml.5"), render(EXAMPLE))
}

fn render(example: &str) -> String {
    let mut page = Roff::new();
    let version = concat!("robotgate ", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["robotgate.toml", "5", "", version, "File formats"]);
    page.control("SH", ["NAME"]);
    page.text([roman("robotgate.toml - the configuration of robotgate")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold("/etc/robotgate/robotgate.toml")]);
    page.control("SH", ["DESCRIPTION"]);
    let mut verbatim = false;
    for line in example.lines().map(ExampleLine::read) {
        let is_verbatim = matches!(line, ExampleLine::Verbatim(_));
        if is_verbatim != verbatim {
            page.control(if is_verbatim { "nf" } else { "fi" }, []);
            if !is_verbatim {
                page.control("PP", []);
            }
            verbatim = is_verbatim;
        }
        match line {
            ExampleLine::Section(name) => page.control("SH", [name]),
            ExampleLine::Text(text) => page.text([roman(text)]),
            ExampleLine::Verbatim(text) => page.text([bold(text)]),
            ExampleLine::Blank => page.control("PP", []),
        };
    }
    if verbatim {
        page.control("fi", []);
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("robotgate"), roman("(1), "), bold("robotgate-check"), roman("(1)")]);
    page.render()
}

// === impl ExampleLine ===

impl<'a> ExampleLine<'a> {
    fn read(line: &'a str) -> Self {
        let Some(comment) = line.strip_prefix('#') else {
            return match line {
                "" => ExampleLine::Blank,
                // A `[[bot]]` gets no heading: a file can have several, and their headings would all be the same.
                _ if line.starts_with('[') && !line.starts_with("[[") => ExampleLine::Section(line),
                _ => ExampleLine::Verbatim(line),
            };
        };
        match comment.strip_prefix(' ') {
            None if comment.is_empty() => ExampleLine::Blank,
            // No space after `#`: a key with its default, such as `#threads = 4`.
            None => ExampleLine::Verbatim(comment),
            // Text that is indented is an example or a list. Text of the form `key = value` is a key without a default.
            Some(text) if text.starts_with("  ") || is_key(text) => ExampleLine::Verbatim(text),
            Some(text) => ExampleLine::Text(text),
        }
    }
}

fn is_key(text: &str) -> bool {
    let key = text.split_once(" = ").map(|(key, _)| key);
    key.is_some_and(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
}

const EXAMPLE: &str = include_str!("../../conf/robotgate.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_configuration_line_is_recognized() {
        for (line, read) in [
            ("", ExampleLine::Blank),
            ("#", ExampleLine::Blank),
            ("[proxy]", ExampleLine::Section("[proxy]")),
            ("[[bot]]", ExampleLine::Verbatim("[[bot]]")),
            (
                "#listen = \"127.0.0.1:3128\"",
                ExampleLine::Verbatim("listen = \"127.0.0.1:3128\""),
            ),
            ("# path = \"/x\"", ExampleLine::Verbatim("path = \"/x\"")),
            ("name = \"AcmeBot\"", ExampleLine::Verbatim("name = \"AcmeBot\"")),
            ("#     [proxy.tls]", ExampleLine::Verbatim("    [proxy.tls]")),
            (
                "# Where bots connect, unless a = b.",
                ExampleLine::Text("Where bots connect, unless a = b."),
            ),
        ] {
            assert_eq!(ExampleLine::read(line), read, "{line}");
        }
    }

    #[test]
    fn a_line_that_begins_with_a_dot_is_text() {
        assert!(render("# .corp.example is all below it\n").contains("\\&.corp.example"));
    }
}
