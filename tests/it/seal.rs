//! `robotgate seal`, and the seal of a running proxy. A verifier that shares no code with robotgate must agree.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{CliOutput, Gate, Origin, ROBOTS, programs::needs, refused, wait};

fn log_of(lines: std::ops::Range<u64>) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("audit.jsonl"), lines);
    let config =
        "[audit]\npath = \"audit.jsonl\"\n[evidence]\nseal-path = \"seal\"\nseal-origin = \"example.com/test\"\n";
    fs::write(folder.path().join("robotgate.toml"), config).expect("written");
    folder
}

fn write(path: &Path, lines: std::ops::Range<u64>) {
    let line =
        |n: u64| format!("{{\"event\":\"decision\",\"time\":\"2026-11-22T00:00:00.{n:06}Z\",\"id\":\"id-{n}\"}}\n");
    let before = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, before + &lines.map(line).collect::<String>()).expect("written");
}

async fn seal(folder: &Path, args: &[&str]) -> CliOutput {
    let config = folder.join("robotgate.toml").display().to_string();
    CliOutput::of(&[&["seal"], args, &["--config", &config]].concat(), "").await
}

fn vkey(seal: &Path) -> String {
    let key = fs::read_to_string(seal.join("vkey")).expect("the key");
    key.trim_end().to_owned()
}

/// Runs the independent verifier. Returns its output, or what it wrote to standard error if it failed.
fn independent(args: &[&str]) -> Result<String, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/verify-seal.py");
    let output = Command::new("/usr/bin/python3")
        .arg(script)
        .args(args)
        .output()
        .expect("python");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").trim().to_owned();
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr)),
    }
}

#[tokio::test]
async fn the_independent_verifier_names_what_is_damaged() {
    needs!("python3-cryptography");
    let folder = log_of(0..10);
    assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let key = vkey(&folder.path().join("seal"));
    let good = fs::read_to_string(path("seal/checkpoint")).expect("the checkpoint");
    let signature = good.trim_end().rsplit(' ').next().expect("a signature").to_owned();
    fs::write(path("two"), format!("{key}\n{key}\n")).expect("written");
    let (short, two) = (key[..key.len() - 1].to_owned(), path("two"));
    for (key, checkpoint, says) in [
        (&key, "x".to_owned(), "the file with the checkpoint contains none"),
        (
            &key,
            good.replace(&signature, "AAA"),
            "a signature of the checkpoint is damaged",
        ),
        (
            &key,
            good.replace(&signature, "AAA A"),
            "this line of the checkpoint is not a signature",
        ),
        (
            &key,
            good.replacen("\n10\n", "\n11\n", 1),
            "the signature of the checkpoint is not valid",
        ),
        (
            &key,
            good[..good.find('\u{2014}').expect("a dash")].to_owned(),
            "the checkpoint has no signature",
        ),
        (&two, good.clone(), "the file has more than one public key"),
        (&short, good.clone(), "the public key is damaged"),
    ] {
        fs::write(path("checkpoint"), checkpoint).expect("written");
        let error = independent(&["log", key, &path("checkpoint"), &path("audit.jsonl")]).expect_err(says);
        assert!(
            error.starts_with("not proven: ") && error.contains(says),
            "{says}: {error}"
        );
    }
    fs::write(path("proof"), "x").expect("written");
    let error = independent(&["proof", &key, &path("proof"), &path("audit.jsonl")]).expect_err("no proof");
    assert!(error.contains("this is not a proof of a line"), "{error}");
}

#[tokio::test]
async fn an_independent_verifier_agrees_about_logs_of_every_size() {
    needs!("python3-cryptography");
    for size in [1, 255, 256, 257, 70_000] {
        let folder = log_of(0..size);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let sealed = seal(folder.path(), &[]).await;
        assert_eq!((sealed.code, &*sealed.errors), (Some(0), ""), "{}", sealed.out);
        let key = vkey(&folder.path().join("seal"));
        assert!(
            sealed.out.contains(&key) && sealed.out.contains(&format!("; {size} line")),
            "{}",
            sealed.out
        );
        let check = || independent(&["tree", &key, &path("seal"), &path("audit.jsonl")]);
        assert_eq!(check(), Ok(format!("{size} entries are good")));
        for id in [0, size / 2, size - 1] {
            let name = format!("id-{id}");
            let out = folder.path().display().to_string();
            let proven = seal(folder.path(), &["prove", &name, "--out", &out]).await;
            assert_eq!(proven.code, Some(0), "{}", proven.errors);
            let (proof, line) = (
                path(&format!("{name}-decision.tlog-proof")),
                path(&format!("{name}-decision.json")),
            );
            assert_eq!(
                independent(&["proof", &key, &proof, &line]),
                Ok(format!("entry {id} is proven by the checkpoint of {size} lines"))
            );
            let text = fs::read(&line).expect("the line");
            fs::write(&line, [&text, &b" "[..]].concat()).expect("changed");
            assert!(
                independent(&["proof", &key, &proof, &line])
                    .unwrap_err()
                    .contains("not in the tree")
            );
        }
        let older = path("older");
        fs::write(&older, seal(folder.path(), &["checkpoint"]).await.out).expect("written");
        write(&folder.path().join("audit.jsonl"), size..size + 300);
        assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
        assert_eq!(check(), Ok(format!("{} entries are good", size + 300)));
        let log = || independent(&["log", &key, &older, &path("audit.jsonl")]);
        assert_eq!(log(), Ok(format!("{size} lines are good")));

        // The verifier can also read the key from a file, and accepts a proof for a checkpoint that was handed out
        // earlier.
        let (id, out) = (format!("id-{}", size - 1), folder.path().display().to_string());
        let proven = seal(folder.path(), &["prove", &id, "--checkpoint", &older, "--out", &out]).await;
        assert_eq!(proven.code, Some(0), "{}", proven.errors);
        let [proof, line] = ["tlog-proof", "json"].map(|end| path(&format!("{id}-decision.{end}")));
        assert_eq!(
            independent(&["proof", &path("seal/vkey"), &proof, &line]),
            Ok(format!(
                "entry {} is proven by the checkpoint of {size} lines",
                size - 1
            ))
        );

        // The last line of a rotated file can be incomplete. It is not sealed.
        let rotated = path("audit.jsonl.1");
        let text = fs::read_to_string(path("audit.jsonl")).expect("the log");
        fs::write(&rotated, format!("{text}{{\"cut")).expect("written");
        fs::write(path("next"), "later\n").expect("written");
        let both = independent(&["log", &key, &older, &rotated, &path("next")]);
        assert_eq!(both, Ok(format!("{size} lines are good")));
        fs::remove_file(&rotated).expect("removed");

        // Somebody changes a line and seals the log anew with the same key. Only the older checkpoint shows it.
        let text = fs::read_to_string(path("audit.jsonl")).expect("the log");
        fs::write(path("audit.jsonl"), text.replacen("id-0", "id-x", 1)).expect("changed");
        for name in ["checkpoint", "position"] {
            fs::remove_file(folder.path().join("seal").join(name)).expect("removed");
        }
        fs::remove_dir_all(folder.path().join("seal/tile")).expect("removed");
        assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
        assert_eq!(check(), Ok(format!("{} entries are good", size + 300)));
        assert!(log().unwrap_err().contains("the lines are not those of the checkpoint"));
    }
}

#[tokio::test]
async fn verify_names_the_file_the_line_and_the_reason() {
    let folder = log_of(0..300);
    assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
    let log = folder.path().join("audit.jsonl").display().to_string();
    let good = seal(folder.path(), &["verify", &log]).await;
    assert_eq!(good.code, Some(0), "{}", good.out);
    for part in [
        "example.com/test: 300 lines sealed",
        "300 lines match the seal",
        "nothing is wrong",
    ] {
        assert!(good.out.contains(part), "{part}: {}", good.out);
    }
    let old = folder.path().join("old").display().to_string();
    fs::write(&old, seal(folder.path(), &["checkpoint"]).await.out).expect("written");
    let text = fs::read_to_string(&log).expect("the log");
    fs::write(&log, text.replace("\"id-41\"", "\"id-999\"")).expect("changed");
    let bad = seal(folder.path(), &["verify", "--checkpoint", &old, &log]).await;
    let expected = format!("{log}:42: this line was changed after sealing (entry 41)\n");
    assert_eq!((bad.code, bad.out.lines().next()), (Some(1), Some(expected.trim())));
    assert!(
        bad.out.contains("1 older checkpoint matches the sealed lines"),
        "{}",
        bad.out
    );
    let args = ["verify", "--checkpoint", &old, "--checkpoint", &log, &log];
    let bad = seal(folder.path(), &args).await;
    assert!(
        bad.out
            .contains("1 of 2 older checkpoints (named, and of replaced keys) matches the sealed lines"),
        "{}",
        bad.out
    );
    let rotated = format!("{log}.1");
    for (file, range) in [(&rotated, 0..100), (&log, 100..300)] {
        fs::write(file, "").expect("emptied");
        write(Path::new(file), range);
    }
    for args in [
        &["verify"][..],
        &["verify", &log, &rotated],
        &["verify", &rotated, &log],
    ] {
        let good = seal(folder.path(), args).await;
        let expected = "300 lines match the seal\nnothing is wrong\n";
        assert!(good.out.ends_with(expected), "{args:?}: {}", good.out);
    }
    let proven = seal(
        folder.path(),
        &["prove", "id-7", "--out", &folder.path().display().to_string()],
    )
    .await;
    assert!(proven.out.contains("is entry 7 of the tree"), "{}", proven.errors);
    let empty = folder.path().join("empty");
    fs::write(&empty, "\n").expect("written");
    for key in ["", &*empty.display().to_string()] {
        let bad = seal(folder.path(), &["verify", "--key", key]).await;
        assert_eq!((bad.code, &*bad.out), (Some(1), ""), "{key:?}");
        assert!(bad.errors.contains("has no public key"), "{}", bad.errors);
    }
    let comment = folder.path().join("comment");
    fs::write(&comment, "\n# a comment\n").expect("written");
    for (key, why) in [
        ("missing.vkey", "--key is neither a public key nor the path of a file"),
        (&*folder.path().display().to_string(), "is a folder; name a file in it"),
        (
            &*comment.display().to_string(),
            &*format!("line 2 of {comment:?} is not a public key"),
        ),
    ] {
        let bad = seal(folder.path(), &["verify", "--key", key]).await;
        assert!(bad.errors.contains(why), "{key}: {}", bad.errors);
    }
    let stranger = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    let bad = seal(folder.path(), &["verify", "--key", stranger]).await;
    assert!(
        bad.errors
            .contains("this seal folder has none of the public keys that --key names"),
        "{}",
        bad.errors
    );
}

#[tokio::test]
async fn the_proxy_seals_its_log_while_it_is_rotated_and_to_its_end() {
    needs!("python3-cryptography");
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::with("[evidence]\nseal = true\nseal-origin = \"example.com/proxy\"").await;
    for number in 0..20 {
        refused(&gate.get(&origin.url(&format!("/private/{number}"))).await, "rule");
    }
    let log = gate.file("audit.jsonl");
    fs::rename(&log, gate.file("audit.jsonl.1")).expect("rotated");
    gate.signal(Signal::USR1);
    wait::until("the log is reopened", || log.exists().then_some(())).await;
    refused(&gate.get(&origin.url("/private/last")).await, "rule");
    let status = gate.admin("/api/v1/status").await.json();
    assert_eq!(status["seal"]["fails"], json!(false), "{status}");
    gate.stop().await;
    let folder = log.parent().expect("a folder");
    let logs = [folder.join("audit.jsonl.1"), log.clone()].map(|path| path.display().to_string());
    let found = seal(folder, &["verify", &logs[0], &logs[1]]).await.out;
    assert!(found.contains("\nnothing is wrong\n"), "{found}");
    assert!(!found.contains("not sealed yet"), "{found}");
    let lines: usize = logs
        .iter()
        .map(|log| fs::read_to_string(log).expect("a log").lines().count())
        .sum();
    let sealed = folder.join("seal");
    let checked = independent(&[
        "tree",
        &vkey(&sealed),
        &sealed.display().to_string(),
        &logs[0],
        &logs[1],
    ]);
    assert_eq!(checked, Ok(format!("{lines} entries are good")));
}

#[tokio::test]
async fn a_log_that_cannot_be_sealed_is_reported_and_the_proxy_continues() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let folder = tempfile::tempdir().expect("a folder");
    let seal = folder.path().join("seal");
    fs::write(&seal, "a file, no folder").expect("written");
    let gate = Gate::with(&format!("[evidence]\nseal = true\nseal-path = {seal:?}")).await;
    wait::until_async("the sealing fails", async || {
        let metrics = gate.admin("/metrics").await.text();
        metrics.contains("\nrobotgate_seal_fails 1\n").then_some(())
    })
    .await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    let ready = gate.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(
        ready.text().contains("the audit log cannot be sealed"),
        "{}",
        ready.text()
    );
}

#[tokio::test]
async fn a_kill_while_sealing_leaves_a_consistent_tree() {
    needs!("python3-cryptography");
    let rounds = std::env::var("ROBOTGATE_SEAL_KILLS").map_or(10, |rounds| rounds.parse().expect("a number"));
    let folder = log_of(0..1);
    let path = |name: &str| folder.path().join(name);
    let text = |path: PathBuf| path.display().to_string();
    let started = Instant::now();
    assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
    let took = started.elapsed();
    let key = vkey(&path("seal"));
    let (mut lines, mut killed) = (1, 0);
    let mut checkpoints = Vec::new();
    for round in 0..rounds {
        let new = 1 + round * 37 % 700;
        write(&path("audit.jsonl"), lines..lines + new);
        lines += new;
        let mut sealing = Command::new(env!("CARGO_BIN_EXE_robotgate"))
            .args(["seal", "--config", &text(path("robotgate.toml"))])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary");
        // Kill the command at a different moment in each round, from before its first write to after its last one.
        std::thread::sleep(took * u32::try_from(round * 7919 % 300).expect("small") / 100);
        drop(sealing.kill());
        killed += u64::from(!sealing.wait().expect("ours").success());
        fs::copy(path("seal/checkpoint"), path(&format!("checkpoint-{round}"))).expect("copied");
        checkpoints.push(text(path(&format!("checkpoint-{round}"))));
        assert!(independent(&["tree", &key, &text(path("seal")), &text(path("audit.jsonl"))]).is_ok());
    }
    assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
    let mut args = vec!["verify".to_owned(), text(path("audit.jsonl"))];
    for checkpoint in &checkpoints {
        args.extend(["--checkpoint".to_owned(), checkpoint.clone()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let found = seal(folder.path(), &args).await;
    assert_eq!(found.code, Some(0), "{}", found.out);
    assert!(
        found.out.contains(&format!("{lines} lines match the seal")),
        "{}",
        found.out
    );
    eprintln!("{killed} of {rounds} sealings were killed before their end");
}

#[tokio::test]
async fn root_does_not_seal_into_the_folder_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: needs root");
        return;
    }
    const OWNER: u32 = 12_345;
    let folder = log_of(0..300);
    let sealed = folder.path().join("seal");
    fs::create_dir(&sealed).expect("a folder");
    std::os::unix::fs::chown(&sealed, Some(OWNER), Some(OWNER)).expect("root may");
    let real = folder.path().join("real");
    for is_link in [false, true] {
        if is_link {
            fs::rename(&sealed, &real).expect("renamed");
            std::os::unix::fs::symlink(&real, &sealed).expect("a link of root");
        }
        for args in [&[][..], &["rotate-key"]] {
            let output = seal(folder.path(), args).await;
            assert!(output.errors.contains("sudo -u '#12345' robotgate seal"), "{output:?}");
            assert_eq!(output.code, Some(1));
        }
    }
    assert_eq!(fs::read_dir(&real).expect("a folder").count(), 0);
}

#[tokio::test]
async fn verify_reads_every_file_of_the_log_and_orders_them_by_the_tree() {
    let folder = log_of(0..100);
    assert_eq!(seal(folder.path(), &[]).await.code, Some(0));
    let path = |end: &str| folder.path().join(format!("audit.jsonl{end}"));
    // The files' names, and the numbers in the names, do not show the order of the files.
    for (end, lines) in [("-20261122-000000", 0..30), (".202609", 30..60), ("", 60..100)] {
        fs::write(path(end), "").expect("emptied");
        write(&path(end), lines);
    }
    let good = seal(folder.path(), &["verify"]).await;
    assert!(
        good.out.contains("100 lines match the seal\nnothing is wrong\n"),
        "{}",
        good.out
    );

    // The folder also gets a copy of the original, which begins with the same line as the altered file.
    let text = fs::read_to_string(path("-20261122-000000")).expect("a file");
    fs::write(path("-20261122-000000"), text.replace("\"id-7\"", "\"id-999\"")).expect("altered");
    fs::write(path("-20261122-999999"), &text).expect("a copy");
    let bad = seal(folder.path(), &["verify"]).await;
    assert!(bad.out.contains("this line was"), "{}", bad.out);
    assert_eq!(bad.code, Some(1));

    fs::write(path("-20261122-000000"), &text).expect("restored");
    fs::write(path("-20261122-999999"), "no record\n").expect("text");
    assert_eq!(seal(folder.path(), &["verify", "--skip-older"]).await.code, Some(1));
    fs::rename(path("-20261122-999999"), path("-20261122-999999.gz")).expect("renamed");
    let unreadable = seal(folder.path(), &["verify", "--skip-older"]).await;
    assert!(unreadable.errors.contains("999999.gz"), "{unreadable:?}");
}
