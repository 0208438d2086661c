//! The admin listener itself: its addresses, its connections, the fields of its responses, and its health checks.

use tokio::{io::AsyncReadExt as _, net::TcpStream};

use crate::support::{CliOutput, Connection, Gate, Latch, Origin, Reply, Signal, refused, wait};

#[tokio::test]
async fn a_running_gate_is_alive_and_ready() {
    let gate = Gate::start().await;
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let response = gate.admin(path).await;
        assert_eq!((response.status, &*response.text()), (200, text));
        assert_eq!(response.field("Cache-Control"), Some("no-store"));
    }
}

#[tokio::test]
async fn a_draining_gate_is_alive_and_not_ready() {
    let latch = Latch::new();
    let slow = Reply::ok("text/plain", "").after(&latch);
    let origin = Origin::start().robots("").reply("/slow", slow).spawn().await;
    let gate = Gate::start().await;
    let bot = tokio::spawn(gate.get(&origin.url("/slow")).into_future());
    wait::until("the request", || (origin.count("/slow") == 1).then_some(())).await;
    gate.signal(Signal::TERM);
    gate.wait_for_log("stopping", |line| line.message() == "stopping").await;
    let ready = gate.admin("/readyz").await;
    assert_eq!((ready.status, &*ready.text()), (503, "draining\n"));
    assert_eq!(gate.admin("/healthz").await.status, 200);
    let address = gate.admin_address().to_string();
    let health = CliOutput::of(&["health", "--address", &address], "").await;
    assert_eq!((health.code, &*health.out), (Some(1), "not ready: draining\n"));
    let health = CliOutput::of(&["health", "--alive", "--address", &address], "").await;
    assert_eq!((health.code, &*health.out), (Some(0), "alive\n"));
    latch.open();
    assert_eq!(bot.await.unwrap().status, 200);
}

#[tokio::test]
async fn a_gate_with_a_failing_audit_log_is_not_ready() {
    let origin = Origin::start().robots("").spawn().await;
    // Every write to `/dev/full` fails with "no space left".
    let gate = Gate::with("[audit]\npath = \"/dev/full\"").await;
    assert_eq!(gate.admin("/readyz").await.status, 200);
    let bot = tokio::spawn(gate.get(&origin.url("/x")).into_future());

    let ready = wait::until_async("it to be not ready", async || {
        let ready = gate.admin("/readyz").await;
        (ready.status == 503).then_some(ready)
    })
    .await;
    assert_eq!(
        ready.text(),
        "the audit log cannot be written; the operational log says why\n"
    );
    assert_eq!(gate.admin("/healthz").await.status, 200);
    let cannot = "the audit log cannot be written";
    let line = gate
        .wait_for_log(cannot, |line| line.message().starts_with(cannot))
        .await;
    assert_eq!(line.field("output"), Some("/dev/full"), "{line:?}");
    bot.abort();

    gate.reconfigure("[audit]\npath = \"audit.jsonl\"");
    gate.reloaded(1).await;
    assert_eq!(gate.admin("/readyz").await.status, 200);
    assert_eq!(origin.count("/x"), 0);
}

#[tokio::test]
async fn the_page_is_served_with_its_security_headers() {
    let gate = Gate::start().await;
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
    ] {
        let response = gate.admin(path).await;
        assert_eq!((response.status, response.field("Content-Type")), (200, Some(kind)));
        assert_eq!(response.field("X-Content-Type-Options"), Some("nosniff"));
        let policy = response.field("Content-Security-Policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(response.field("Access-Control-Allow-Origin"), None);
    }
}

#[tokio::test]
async fn an_unknown_path_or_method_gets_a_problem() {
    let gate = Gate::start().await;
    let response = gate.admin("/nowhere").await;
    assert_eq!(response.status, 404);
    assert_eq!(response.field("Content-Type"), Some("application/problem+json"));
    assert_eq!(response.json()["title"], "Not Found");
    for (method, path, allow) in [("DELETE", "/healthz", "GET,HEAD"), ("PUT", "/", "GET,HEAD")] {
        let response = gate.ask_admin(method, path).await;
        assert_eq!((response.status, response.field("Allow")), (405, Some(allow)), "{path}");
        assert_eq!(response.json()["status"], 405);
    }
}

#[tokio::test]
async fn head_gets_the_same_fields_as_get() {
    let gate = Gate::start().await;
    for path in ["/", "/healthz", "/nowhere", "/api/v1/openapi.json"] {
        let (get, head) = (gate.admin(path).await, gate.ask_admin("HEAD", path).await);
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for field in ["Content-Type", "Content-Length", "Content-Security-Policy"] {
            assert_eq!(head.field(field), get.field(field), "{path} {field}");
        }
    }
}

#[tokio::test]
async fn bots_cannot_reach_the_admin_listener_through_the_proxy() {
    for (listen, hosts) in [
        ("127.0.0.1:0", &["127.0.0.1", "0.0.0.0", "gate.example"][..]),
        ("[::1]:0", &["[::1]"]),
    ] {
        let everything = "allow = ['0.0.0.0/0', '::/0', '.example']";
        let gate = Gate::with(&format!("[admin]\nlisten = '{listen}'\n[egress]\n{everything}")).await;
        let port = gate.admin_address().port();
        for host in hosts {
            let response = gate.get(&format!("http://{host}:{port}/healthz")).await;
            refused(&response, "egress");
        }
        let connect = gate.connect(&format!("{}:{port}", hosts[0]));
        refused(&connect.await.opened().plain().get("/healthz").await, "egress");
    }
}

#[tokio::test]
async fn the_error_for_an_occupied_port_names_the_key() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let failed = Gate::builder()
        .config(&format!("[admin]\nlisten = '{address}'"))
        .fail()
        .await;
    assert!(failed.errors.contains("change admin.listen"), "{}", failed.errors);
}

#[tokio::test]
async fn an_empty_admin_listen_opens_no_listener() {
    let gate = Gate::with("[admin]\nlisten = []").await;
    let listening = gate.log().into_iter().filter(|line| line.message() == "listening");
    assert_eq!(listening.count(), 1);
}

#[tokio::test]
async fn many_idle_connections_do_not_block_new_ones() {
    let gate = Gate::start().await;
    let mut crowd = Vec::new();
    for _ in 0..200 {
        let mut connection = TcpStream::connect(gate.admin_address()).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut connection, b"GET / HT")
            .await
            .unwrap();
        crowd.push(connection);
    }
    assert_eq!(gate.admin("/healthz").await.status, 200);
    let mut bytes = Vec::new();
    let read = wait::within("the end of the first", crowd[0].read_to_end(&mut bytes));
    assert!(matches!(read.await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn an_admin_connection_serves_several_requests() {
    let gate = Gate::start().await;
    let mut kept = Connection::to(gate.admin_address()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(kept.get("/healthz").await.status, 200);
    }
}
