//! Checks the documentation: for example that links have a target, examples work, and `docs/cli.md` names every command
//! and option. Only a reader can check whether the text is true.

mod examples;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};
use robotgate::cli::Cli;
use serde_json::Value;

struct Page {
    /// Path relative to the root of the repository.
    path: PathBuf,
    text: String,
}

struct Block<'a> {
    /// The text after the opening fence, such as `toml,part` or `sh`. Empty if there is none.
    info: &'a str,
    /// The line of the opening fence.
    line: usize,
    text: String,
}

/// Returns why a link to a page, or to a heading of a page, is broken; `None` if it is not. The link is relative to the
/// root of the repository.
pub fn broken(link: &str) -> Option<String> {
    let root = Page {
        path: "README.md".into(),
        text: String::new(),
    };
    root.broken(link)
}

#[test]
fn the_readme_is_short() {
    let size = page("README.md").text.len();
    assert!(size <= 12 * 1024, "README.md has {size} bytes");
}

#[test]
fn every_link_has_an_existing_target() {
    let mut broken = String::new();
    for page in pages() {
        for (line, link) in page.links() {
            if let Some(why) = page.broken(&link) {
                let _ = writeln!(broken, "{}:{line}: {link}: {why}", page.path.display());
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn the_index_has_every_page() {
    let index: BTreeSet<String> = page("docs/README.md").links().map(|(_, link)| link).collect();
    for page in pages().iter().filter(|page| page.path.starts_with("docs")) {
        let name = page.path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(
            name == "README.md" || index.contains(name),
            "docs/README.md has no {name}"
        );
    }
}

#[test]
fn every_configuration_in_the_pages_is_valid() {
    let mut bad = String::new();
    let mut checked = 0;
    for page in pages() {
        for block in page
            .blocks()
            .filter(|block| matches!(block.info, "toml" | "toml,proxy"))
        {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("robotgate.toml"), &block.text).expect("a file");
            let output = Command::new(env!("CARGO_BIN_EXE_robotgate"))
                .args(["check", "robotgate.toml"])
                .current_dir(&folder)
                .env("STATE_DIRECTORY", folder.path())
                .output()
                .expect("the binary is there");
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr);
                let _ = writeln!(bad, "{}:{}: {why}", page.path.display(), block.line);
            }
            checked += 1;
        }
    }
    assert!(bad.is_empty(), "{bad}");
    assert!(checked > 3, "{checked}");
}

#[test]
fn all_json_in_the_pages_can_be_parsed() {
    let mut checked = 0;
    for page in pages() {
        for block in page.blocks().filter(|block| block.info == "json") {
            let is_complete = serde_json::from_str::<Value>(&block.text).is_ok();
            let mut lines = block.text.lines().filter(|line| !line.is_empty());
            let (path, line) = (page.path.display(), block.line);
            assert!(
                is_complete || lines.all(|line| serde_json::from_str::<Value>(line).is_ok()),
                "{path}:{line}: neither one value nor one a line"
            );
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn every_command_in_the_pages_is_valid() {
    let mut bad = String::new();
    let mut checked = 0;
    for page in pages() {
        for block in page.blocks() {
            let prompt = match block.info.split(',').next() {
                Some("sh") => "",
                Some("console") => "$ ",
                _ => continue,
            };
            for line in block
                .text
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix(prompt))
            {
                let Some(arguments) = arguments(line) else { continue };
                if let Err(error) = Cli::try_parse_from(arguments)
                    && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
                {
                    let _ = writeln!(bad, "{}:{}: {line}: {error}", page.path.display(), block.line);
                }
                checked += 1;
            }
        }
    }
    assert!(bad.is_empty(), "{bad}");
    assert!(checked > 10, "{checked}");
}

#[test]
fn cli_md_names_every_command_and_option() {
    let text = page("docs/cli.md").text;
    let mut missing = Vec::new();
    for command in Cli::command().get_subcommands() {
        let heading = format!("## robotgate {}\n", command.get_name());
        let Some((_, rest)) = text.split_once(&heading) else {
            missing.push(heading);
            continue;
        };
        let row = format!("| [`robotgate {0}`](#robotgate-{0}) |", command.get_name());
        if !text.contains(&row) {
            missing.push(row);
        }
        let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
        name_all(
            command,
            &format!("robotgate {}", command.get_name()),
            section,
            &mut missing,
        );
    }
    assert!(missing.is_empty(), "docs/cli.md lacks {missing:?}");
}

/// Adds to `missing` the options, arguments and subcommands of the command `path` that `section` does not name.
fn name_all(command: &clap::Command, path: &str, section: &str, missing: &mut Vec<String>) {
    // The rules for all commands, at the start of the page, describe `--set`.
    let is_shared = |argument: &clap::Arg| argument.get_long() == Some("set");
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    for argument in arguments.filter(|argument| !is_shared(argument)) {
        let mut names = Vec::new();
        names.extend(argument.get_long().map(|long| format!("--{long}")));
        names.extend(argument.get_short().map(|short| format!("`-{short}`")));
        if argument.is_positional() {
            let values = argument.get_value_names().unwrap_or_default();
            names.extend(values.iter().flat_map(|name| name.split('|')).map(str::to_owned));
        }
        let lacks = names.into_iter().filter(|name| !section.contains(name.as_str()));
        missing.extend(lacks.map(|name| format!("{path} {name}")));
    }
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        if !section.contains(&path) {
            missing.push(path.clone());
        }
        name_all(below, &path, section, missing);
    }
}

/// Returns the words of the `robotgate` command at the start of a shell line, or after `sudo`, `runuser`, `env` and
/// variables. Knows no shell syntax except quoting and comments; the command ends at other syntax.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.replace("$(command -v sudo)", "sudo");
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let start = words.iter().position(|word| word == "robotgate")?;
    let leads = |word: &String| ["sudo", "runuser", "--", "env"].contains(&&**word) || word.contains('=');
    words[..start].iter().all(leads).then(|| words.split_off(start))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(path: impl Into<PathBuf>) -> Page {
    let path = path.into();
    let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Page { path, text }
}

fn pages() -> Vec<Page> {
    let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(PathBuf::from);
    let docs = fs::read_dir(root().join("docs")).expect("there are docs");
    let docs = docs.map(|entry| Path::new("docs").join(entry.expect("a name").file_name()));
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    top.into_iter().chain(docs).map(page).collect()
}

// === impl Page ===

impl Page {
    /// Returns the lines outside of fenced blocks, with their numbers.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut inside = false;
        (1..).zip(self.text.lines()).filter(move |(_, line)| {
            let is_fence = line.trim_start().starts_with("```");
            inside ^= is_fence;
            !inside && !is_fence
        })
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let mut lines = (1..).zip(self.text.lines());
        std::iter::from_fn(move || {
            let (line, info) = lines.find_map(|(line, text)| Some((line, text.trim_start().strip_prefix("```")?)))?;
            let inside = lines.by_ref().map(|(_, text)| text);
            let text: Vec<&str> = inside
                .take_while(|text| !text.trim_start().starts_with("```"))
                .collect();
            let text = text.join("\n") + "\n";
            Some(Block { info, line, text })
        })
    }

    /// Returns the targets of links and images (`[text](target)`), with their line numbers.
    fn links(&self) -> impl Iterator<Item = (usize, String)> {
        self.prose().flat_map(|(number, line)| {
            // Skip code between backticks.
            let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            let targets: Vec<_> = targets.map(|(target, _)| (number, target.to_owned())).collect();
            targets
        })
    }

    /// Returns why a link is broken; `None` if it is not. Does not follow links to other hosts.
    fn broken(&self, link: &str) -> Option<String> {
        if link.starts_with("http://") || link.starts_with("https://") {
            return None;
        }
        let (file, heading) = match link.split_once('#') {
            Some((file, heading)) => (file, Some(heading)),
            None => (link, None),
        };
        let folder = self.path.parent().expect("a page is a file");
        let path = match file {
            "" => root().join(&self.path),
            _ => root().join(folder).join(file),
        };
        let Some(heading) = heading else {
            return (!path.exists()).then(|| "there is no such file".to_owned());
        };
        let Ok(text) = fs::read_to_string(&path) else {
            return Some("there is no such file".to_owned());
        };
        let anchors = Page { path, text }.anchors();
        (!anchors.contains(heading)).then(|| format!("there is no such heading, of {anchors:?}"))
    }

    /// Returns the anchors that GitHub generates from the headings.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.prose().filter_map(|(_, line)| line.strip_prefix('#'));
        let mut anchors = BTreeSet::new();
        for heading in headings {
            let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
            let text: String = heading.trim_start_matches('#').trim().chars().filter(kept).collect();
            let plain = text.to_lowercase().replace(' ', "-");
            let numbered = (1..).map(|number| format!("{plain}-{number}"));
            let anchor = std::iter::once(plain.clone())
                .chain(numbered)
                .find(|one| !anchors.contains(one));
            anchors.extend(anchor);
        }
        anchors
    }
}
