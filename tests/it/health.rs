//! `robotgate health` against running and stopped gates. Also tests that environment variables and `--set` still apply
//! after a reload, and that the configuration for containers is valid.

use crate::support::{CliOutput, Gate, Signal, wait};

async fn health(gate: &Gate, args: &[&str]) -> CliOutput {
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    CliOutput::of(&[&["health", "--config", config], args].concat(), "").await
}

fn answer(output: &CliOutput) -> (Option<i32>, &str) {
    assert_eq!(output.errors, "", "everything is on standard output");
    (output.code, output.out.trim_end())
}

#[tokio::test]
async fn a_running_gate_is_alive_and_ready_at_its_listener_and_its_socket() {
    let gate = Gate::start().await;
    let address = gate.admin_address().to_string();
    let at = async |args: &[&str]| CliOutput::of(&[&["health", "--address", &*address], args].concat(), "").await;
    assert_eq!(answer(&at(&[]).await), (Some(0), "ready"));
    assert_eq!(answer(&at(&["--alive"]).await), (Some(0), "alive"));
    // In the configuration, the port of the admin listener is 0, so the command uses the socket.
    assert_eq!(answer(&health(&gate, &[]).await), (Some(0), "ready"));
    assert_eq!(
        answer(&health(&gate, &["--set", "admin.listen=[]", "--alive"]).await),
        (Some(0), "alive")
    );
}

#[tokio::test]
async fn a_mistake_in_the_file_does_not_make_a_gate_unhealthy() {
    let gate = Gate::start().await;
    let text = std::fs::read_to_string(gate.file("robotgate.toml")).expect("its file");
    gate.rewrite_config(&format!("{text}\n[robots]\nwait = 'soon'\n"));
    wait::until("the gate to reject the file", || {
        (gate.logged("the new configuration was rejected; robotgate keeps the current one") > 0).then_some(())
    })
    .await;
    let expected = "ready; the new configuration was rejected, and the old one applies; the operational log says why";
    wait::until_async("health to name the mistake", async || {
        (answer(&health(&gate, &[]).await) == (Some(0), expected)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn health_reports_a_stopped_gate_as_not_alive_and_not_ready() {
    let mut gate = Gate::start().await;
    let address = gate.admin_address().to_string();
    gate.signal(Signal::TERM);
    wait::until("the gate to end", || (!gate.runs()).then_some(())).await;
    let output = CliOutput::of(&["health", "--alive", "--address", &address], "").await;
    assert_eq!(
        answer(&output),
        (
            Some(1),
            &*format!("not alive: no robotgate answered: {address}: Connection refused (os error 111){ELSEWHERE}")
        )
    );
    let output = health(&gate, &[]).await;
    assert_eq!(output.code, Some(1));
    assert!(
        output.out.starts_with("not ready: ") && output.out.contains(".sock: No such file"),
        "{output:?}"
    );
}

#[tokio::test]
async fn health_reports_an_answer_of_another_service_as_not_ready() {
    let gate = Gate::start().await;
    // The listener for bots answers, too, but not as the admin listener does.
    let address = gate.address().to_string();
    let output = CliOutput::of(&["health", "--address", &address], "").await;
    let expected = format!(
        "not ready: no robotgate answered: {address}: the answer (400 Bad Request) is not that of an admin listener{ELSEWHERE}"
    );
    assert_eq!(answer(&output), (Some(1), &*expected));
}

#[tokio::test]
async fn health_says_if_the_configuration_has_no_endpoint() {
    let args = ["health", "--set", "admin.listen=[]", "--set", "cache.persist=false"];
    let output = CliOutput::of(&args, "").await;
    assert_eq!(
        answer(&output),
        (
            Some(1),
            "not ready: admin.listen is empty or has only port 0, and cache.persist is false, so this command has \
             nothing to ask; set admin.listen to an address such as 127.0.0.1:3180"
        )
    );
}

#[tokio::test]
async fn variables_and_options_still_apply_after_a_reload() {
    let gate = Gate::builder()
        .config("[proxy]\nname = 'file'\n[robots]\nwait = '1s'\n")
        .env("ROBOTGATE_SET_ROBOTS__WAIT", "2s")
        .set("proxy.name=option")
        .start()
        .await;
    let settings = async || gate.admin("/api/v1/config").await.json()["settings"].clone();
    let before = settings().await;
    assert_eq!(
        (&before["proxy.name"], &before["robots.wait"]),
        (&"\"option\"".into(), &"\"2s\"".into())
    );

    gate.reconfigure("[proxy]\nname = 'other'\nidle-timeout = '9s'\n[robots]\nwait = '3s'\n");
    gate.reloaded(1).await;
    let after = settings().await;
    assert_eq!(
        (&after["proxy.name"], &after["robots.wait"]),
        (&"\"option\"".into(), &"\"2s\"".into())
    );
    assert_eq!(after["proxy.idle-timeout"], "\"9s\"");
}

#[tokio::test]
async fn the_configuration_for_a_container_is_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = CliOutput::of(&["config", "container"], "").await;
    assert_eq!((printed.code, &*printed.errors), (Some(0), ""));
    let state = folder.path().to_str().expect("the tests' paths are text");
    let file = folder.path().join("robotgate.toml");
    std::fs::write(&file, printed.out.replace("/var/lib/robotgate", state)).expect("the folder is ours");
    let file = file.to_str().expect("the tests' paths are text");
    let output = CliOutput::of(&["check", file], "").await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.out, format!("{file} is fine: 0 bots, no [[expect]] cases\n"));
}

const ELSEWHERE: &str =
    "; if robotgate listens elsewhere, name its configuration with --config, or its admin.listen with --address";
