//! How a build names its version. The tests compile the build script and run it as Cargo would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::CliOutput;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A compiled build script, and the folder of a project.
struct Script(tempfile::TempDir);

// === impl Script ===

impl Script {
    fn compile() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("project")).expect("the folder is ours");
        let compiled = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024", "-o"])
            .args([
                folder.path().join("script"),
                Path::new(ROOT).join("src/version/build.rs"),
            ])
            .status();
        assert!(
            compiled
                .expect("rustc is there, because it compiled this test")
                .success()
        );
        Self(folder)
    }

    fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }

    fn git(&self, arguments: &[&str]) {
        let done = Command::new("git")
            .current_dir(self.project())
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b.example",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .env("GIT_AUTHOR_DATE", "2026-11-20T12:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-11-20T12:00:00Z")
            .output();
        let done = done.expect("git is there");
        assert!(done.status.success(), "{done:?}");
    }

    /// Runs the script. Returns the version, and the files whose change makes Cargo run the script again, except for
    /// the script's own file.
    fn run(&self, variables: &[(&str, &str)]) -> (String, Vec<String>) {
        let output = Command::new(self.0.path().join("script"))
            .current_dir(self.project())
            .env_remove("ROBOTGATE_COMMIT")
            .env("CARGO_MANIFEST_DIR", self.project())
            .env("CARGO_PKG_VERSION", "0.1.0")
            .env("PROFILE", "release")
            .envs(variables.iter().copied())
            .output();
        let output = String::from_utf8(output.expect("it was compiled").stdout).expect("text");
        let all = |prefix: &str| -> Vec<String> {
            let found = output.lines().filter_map(|line| line.strip_prefix(prefix));
            found.map(str::to_owned).collect()
        };
        let files = all("cargo::rerun-if-changed=").split_off(1);
        let [version] = &*all("cargo::rustc-env=ROBOTGATE_VERSION=") else {
            panic!("{output}");
        };
        (version.clone(), files)
    }

    fn version(&self, variables: &[(&str, &str)]) -> String {
        self.run(variables).0
    }
}

#[test]
fn shipped_files_and_documents_name_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let named =
        regex::Regex::new(r"\brobotgate(?::|-|_|:\$\{ROBOTGATE_VERSION:-)(\d+\.\d+\.\d+)|newTag: (\d+\.\d+\.\d+)");
    let named = named.expect("a valid pattern");
    let mut others = Vec::new();
    let mut count = 0;
    for folder in ["conf", "conf/kubernetes", "docs"] {
        for entry in fs::read_dir(Path::new(ROOT).join(folder)).expect("the folder is there") {
            let path = entry.expect("readable").path();
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            for found in named.captures_iter(&text) {
                count += 1;
                let found = found.get(1).or(found.get(2)).expect("one of the two groups").as_str();
                if found != version {
                    others.push(format!("{}: {found}", path.display()));
                }
            }
        }
    }
    assert!(count > 5, "the pattern finds the places: {count}");
    assert!(others.is_empty(), "write {version} in these files: {others:#?}");
}

#[test]
fn a_release_build_names_its_commit_and_its_date() {
    let script = Script::compile();
    assert_eq!(
        script.run(&[]),
        ("0.1.0".to_owned(), Vec::new()),
        "a folder without git, as a tarball is"
    );
    script.git(&["init", "-q", "-b", "main"]);
    assert_eq!(script.version(&[]), "0.1.0", "a repository without a commit");
    script.git(&["commit", "-q", "--allow-empty", "-m", "a"]);

    let (version, files) = script.run(&[]);
    let hash = version
        .strip_prefix("0.1.0 (")
        .and_then(|rest| rest.strip_suffix(", 2026-11-20)"));
    let hash = hash.unwrap_or_else(|| panic!("{version}"));
    assert!(
        hash.len() == 7 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{version}"
    );
    assert_eq!(script.version(&[]), version, "the same commit has the same name");
    let ends: Vec<_> = files
        .iter()
        .map(|file| file.rsplit_once(".git/").expect("below .git").1)
        .collect();
    assert_eq!(ends, ["HEAD", "refs/heads/main"]);
    assert!(
        files.iter().all(|file| Path::new(file).exists()),
        "Cargo runs the script each time for a missing file"
    );

    script.git(&["commit", "-q", "--allow-empty", "-m", "b"]);
    assert_ne!(script.version(&[]), version);
    assert_eq!(
        script.version(&[("PROFILE", "debug")]),
        "0.1.0 +debug",
        "no build after every commit"
    );
}

#[test]
fn packagers_can_name_the_commit() {
    let script = Script::compile();
    for (variables, version) in [
        (
            &[("ROBOTGATE_COMMIT", "abc1234, 2026-11-20")][..],
            "0.1.0 (abc1234, 2026-11-20)",
        ),
        (
            &[("ROBOTGATE_COMMIT", "abc1234"), ("PROFILE", "debug")],
            "0.1.0 (abc1234) +debug",
        ),
        (&[("ROBOTGATE_COMMIT", "")], "0.1.0"),
        (&[("ROBOTGATE_COMMIT", "a\nb")], "0.1.0"),
        (&[("CARGO_CFG_TARGET_FEATURE", "fxsr,crt-static,sse")], "0.1.0 +static"),
    ] {
        assert_eq!(script.version(variables), version, "{variables:?}");
    }
}

#[test]
fn a_tarball_in_a_foreign_repository_does_not_name_its_commit() {
    let script = Script::compile();
    script.git(&["init", "-q", "-b", "main"]);
    script.git(&["commit", "-q", "--allow-empty", "-m", "packaging"]);
    let inner = script.project().join("robotgate-0.1.0");
    fs::create_dir(&inner).expect("the folder is ours");
    let folder = inner.to_str().expect("the tests' paths are text");
    assert_eq!(script.version(&[("CARGO_MANIFEST_DIR", folder)]), "0.1.0");
}

#[tokio::test]
async fn the_program_prints_the_version_that_the_log_and_the_metrics_have() {
    let output = CliOutput::of(&["--version"], "").await;
    assert_eq!(output.out, format!("robotgate {}\n", robotgate::VERSION));
    assert!(robotgate::VERSION.starts_with(env!("CARGO_PKG_VERSION")));
}
