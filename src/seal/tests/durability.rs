//! Tests the folder of a seal: kills, locks, backups and missing files.

use super::*;

#[test]
fn a_kill_at_any_step_of_sealing_leaves_a_consistent_tree() {
    let mut checkpoints = 0;
    for (before, after) in [(0, 2), (250, 600), (511, 513)] {
        for steps in 0.. {
            let bench = Bench::new();
            if before > 0 {
                bench.append(0..before);
                bench.seal().unwrap();
            }
            bench.append(before..after);
            let killed = crash::after(steps, || bench.seal());
            let size = match checkpoint(&bench.file("seal")) {
                Ok(_) => bench.checkpoint().size,
                Err(_) => 0,
            };
            assert!(size == before || size == after, "{size} after {steps} steps");
            if size > 0 {
                checkpoints += 1;
                assert_eq!(bench.checkpoint().root, root(size), "after {steps} steps");
                assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "after {steps} steps");
            }
            // A tile that was written before the kill is written again with other contents.
            bench.append(after..after + 2);
            bench.seal().unwrap();
            assert_eq!(bench.checkpoint().root, root(after + 2), "after {steps} steps");
            assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "after {steps} steps");
            if killed.is_ok() {
                assert!(steps > 15, "{steps} steps");
                break;
            }
        }
    }
    assert!(checkpoints > 50, "{checkpoints}");
}

#[test]
fn a_folder_belongs_to_one_log_and_one_sealer() {
    let bench = Bench::sealed(3);
    let other = SealOptions {
        origin: Some("example.com/other".to_owned()),
        ..bench.options()
    };
    let error = seal(&other, &[bench.file("audit.jsonl")], false, || false)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("belongs to the log example.com/log, but evidence.seal-origin names the log example.com/other"),
        "{error}"
    );
    let any = SealOptions {
        origin: None,
        ..bench.options()
    };
    assert_eq!(
        seal(&any, &[bench.file("audit.jsonl")], false, || false).unwrap().size,
        3
    );
    let mode = |name: &str| fs::metadata(bench.file(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("seal/key"), mode("seal/checkpoint")), (0o600, 0o640));
    fs::set_permissions(bench.file("seal/key"), fs::Permissions::from_mode(0o644)).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("every user can read it: run `chmod 640"), "{error}");
    fs::remove_file(bench.file("seal/key")).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("the private key with the id"), "{error}");
    let _lock = folder::Folder(bench.file("seal")).lock().unwrap();
    let error = bench.seal().unwrap_err();
    assert!(matches!(error, SealError::Locked(_)), "{error}");
}

#[test]
fn sealing_a_file_that_is_not_a_log_creates_no_folder() {
    let bench = Bench::new();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("audit.jsonl: there is no such file"), "{error}");
    fs::write(bench.file("audit.jsonl"), "hello\n").unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("it has no record of an audit log"), "{error}");
    assert!(!bench.file("seal").exists());
}

#[test]
fn sealing_into_a_restored_backup_rebuilds_the_same_tree() {
    let bench = Bench::sealed(5);
    let copy = |from: &str, to: &str| {
        let _ = fs::remove_dir_all(bench.file(to));
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(bench.file(from))
            .arg(bench.file(to))
            .status();
        assert!(copied.unwrap().success());
    };
    copy("seal", "backup");
    bench.append(5..300);
    bench.seal().unwrap();
    bench.rotate("audit.jsonl.1");
    bench.append(300..310);
    bench.seal().unwrap();
    let newest = bench.checkpoint();
    copy("backup", "seal");
    assert_eq!(bench.seal().unwrap().new, 305);
    assert_eq!(bench.checkpoint(), newest);
    copy("backup", "seal");
    fs::remove_file(bench.file("audit.jsonl.1")).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(
        error.contains("(then named audit.jsonl) is missing") && error.contains("--go-on"),
        "{error}"
    );
}

#[test]
fn a_removed_checkpoint_is_not_replaced_by_a_new_tree() {
    let bench = Bench::sealed(10);
    fs::remove_file(bench.file("seal/checkpoint")).unwrap();
    let folder = bench.file("seal");
    let errors = [
        bench.seal().unwrap_err(),
        super::checkpoint(&folder).unwrap_err(),
        super::prove(&folder, "id-7", &[bench.file("audit.jsonl")], None).unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(&error, SealError::Damaged(path) if path.ends_with("checkpoint")),
            "{error}"
        );
    }
}
