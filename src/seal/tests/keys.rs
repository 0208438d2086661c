//! Tests the rotation of keys.

use super::*;

#[test]
fn keys_rotate_and_the_old_one_signs_nothing_new() {
    let bench = Bench::sealed(10);
    let (old_key, old_vkeys) = (
        fs::read(bench.file("seal/key")).unwrap(),
        fs::read_to_string(bench.file("seal/vkey")),
    );
    let old_vkey = VerifierKey::parse(&old_vkeys.unwrap()).unwrap();
    let older = bench.file("older");
    fs::write(&older, checkpoint(&bench.file("seal")).unwrap()).unwrap();
    let (new, announced_in) = rotate_key(&bench.options()).unwrap();
    let announced = checkpoint(&bench.file("seal")).unwrap();
    assert_eq!(fs::read_to_string(announced_in).unwrap(), announced);
    assert_eq!(announced.matches("\u{2014} example.com/log ").count(), 2, "{announced}");
    assert!(announced.contains(&format!("\nnext-key {new}\n\n")), "{announced}");
    let verify = |keys: &[&VerifierKey]| {
        bench.verify_with(Verify {
            logs: vec![bench.file("audit.jsonl")],
            keys: keys.iter().map(|key| (*key).clone()).collect(),
            ..Verify::default()
        })
    };
    let found = verify(&[]).unwrap();
    assert_eq!((found.key, found.findings), (new.id_text(), vec![]));
    bench.append(10..20);
    bench.seal().unwrap();
    let (newest, announced_in) = rotate_key(&bench.options()).unwrap();
    bench.append(20..21);
    bench.seal().unwrap();
    // The folder has a later checkpoint by now, but the file of the rotation still has the one that announces the key.
    let announced = fs::read_to_string(announced_in).unwrap();
    assert!(announced.contains(&format!("\nnext-key {newest}\n\n")), "{announced}");
    assert_eq!(files_in(&bench.file("seal/rotations")).len(), 2);
    for keys in [&[][..], &[&old_vkey], &[&new], &[&newest]] {
        let found = verify(keys).unwrap();
        assert_eq!(
            (found.key, found.checkpoints, found.findings),
            (newest.id_text(), 2, vec![]),
            "{keys:?}"
        );
    }
    let found = bench.verify_with(Verify {
        checkpoints: vec![older],
        keys: vec![newest.clone()],
        ..Verify::default()
    });
    let found = found.unwrap();
    assert_eq!((found.checkpoints, found.older_checkpoints), (2, 3));
    assert_eq!(
        found.findings[0].to_string(),
        "an older key than that of --key signed it; if you trust the older key too, put both into the --key file"
    );
    let error = verify(&[&VerifierKey::parse(STRANGER).unwrap()]).unwrap_err();
    assert!(matches!(error, SealError::Untrusted(_)), "{error}");

    // Somebody has stolen the first key, which was replaced, and signs a checkpoint with it.
    let key = note::SigningKey::of_seed("example.com/log", &old_key).unwrap();
    let forged = note::Note::sign(bench.checkpoint().to_string(), &[&key]);
    fs::write(bench.file("seal/checkpoint"), forged).unwrap();
    let error = verify(&[]).unwrap_err().to_string();
    assert!(error.contains("its key was replaced after 10 lines"), "{error}");
    let error = verify(&[&newest]).unwrap_err().to_string();
    assert!(error.contains("its key was replaced after 10 lines"), "{error}");
}

#[test]
fn a_kill_at_any_step_of_a_rotation_leaves_a_key_that_signs() {
    for steps in 0.. {
        let bench = Bench::sealed(3);
        let first = VerifierKey::parse(fs::read_to_string(bench.file("seal/vkey")).unwrap().trim()).unwrap();
        // The file has no line end, as if somebody had typed the key into an editor.
        let key = fs::read_to_string(bench.file("seal/key")).unwrap();
        fs::write(bench.file("seal/key"), key.trim_end()).unwrap();
        let killed = crash::after(steps, || rotate_key(&bench.options()));
        assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "after {steps} steps");
        bench.append(3..5);
        bench.seal().unwrap();
        let found = bench.verify_with(Verify {
            logs: vec![bench.file("audit.jsonl")],
            keys: vec![first],
            ..Verify::default()
        });
        let found = found.unwrap();
        assert_eq!((found.lines.same, found.findings), (5, vec![]), "after {steps} steps");
        if killed.is_ok() {
            assert!(steps > 15, "{steps} steps");
            break;
        }
    }
}

#[test]
fn verify_rejects_a_folder_without_the_announced_new_key() {
    let bench = Bench::sealed(10);
    let stolen = bench.file("stolen");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(bench.file("seal"))
        .arg(&stolen)
        .status();
    assert!(copied.unwrap().success());
    rotate_key(&bench.options()).unwrap();
    let announcement = bench.file("announcement");
    fs::write(&announcement, super::checkpoint(&bench.file("seal")).unwrap()).unwrap();
    for (folder, expected) in [(bench.file("seal"), 0), (stolen, 1)] {
        let found = verify(&Verify {
            folder,
            checkpoints: vec![announcement.clone()],
            ..Verify::default()
        });
        let findings = found.unwrap().findings;
        let announced = findings
            .iter()
            .filter(|finding| finding.to_string().contains("announces a new key"));
        assert_eq!(announced.count(), expected, "{findings:?}");
    }
}

/// A public key whose private key signs nothing in these tests.
const STRANGER: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
