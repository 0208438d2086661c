//! The limit of open files, which include connections: kept connections to origins leave room for clients, and
//! robotgate warns of configured limits that need more open files.

use crate::support::{Certificate, Connection, Gate, Origin, ROBOTS, allowed, refused};

/// Maximum number of open files: 64 are reserved for other uses, 32 are for idle connections, and the rest is for 16
/// client connections with two files each.
const FILES: usize = 128;
const CONNECTIONS: usize = 16;
/// Number of clients. Each may have a quarter of the connections.
const CLIENTS: u8 = 4;

#[tokio::test]
async fn a_crawl_of_many_sites_leaves_open_files_for_clients() {
    for protocol in ["http/1.1", "h2"] {
        println!("{protocol}");
        let origin = Origin::start()
            .alpn(&[protocol])
            .certificate(Certificate::of(&["*.shop.example"]))
            .robots(ROBOTS)
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::builder().open_files(FILES).start().await;
        let url = |site: usize, path: &str| origin.url_at(&format!("site-{site}.shop.example"), path);

        for site in 0..FILES + 32 {
            refused(&gate.get(&url(site, "/private")).await, "rule");
        }
        assert_eq!(origin.connections(), FILES + 32, "one for each site");

        let mut clients = Vec::new();
        for number in 0..CONNECTIONS {
            let address = [127, 0, 0, 2 + number as u8 % CLIENTS];
            let mut client = Connection::from(address, gate.address())
                .await
                .expect("the gate listens");
            allowed(&client.get(&url(number, "/x")).await, "no-rule");
            clients.push(client);
        }
    }
}

#[tokio::test]
async fn start_and_reload_warn_of_a_limit_that_needs_too_many_open_files() {
    // 64 files are reserved and 2 * 128 are for idle connections, so there is room for (4096 - 64 - 2 * 128) / 2 client
    // connections.
    let at = |files: usize, config: &str| Gate::builder().open_files(files).config(config).start();
    let warned = |gate: &Gate| -> Vec<String> {
        let log = gate.log();
        let warnings = log.iter().filter(|line| line.says("this process may open"));
        warnings.map(|line| line.message().to_owned()).collect()
    };
    let gate = at(
        4096,
        "[proxy]\nmax-client-connections = 8000\nmax-client-requests = 472",
    )
    .await;
    let warning = "this process may open 4096 files, so one client gets at most 472 connections, not 8000 \
                   (proxy.max-client-connections); 8000 need 66112 open files (LimitNOFILE of the unit, ulimit -n)";
    assert_eq!(warned(&gate), [warning]);
    gate.reconfigure("[proxy]\nmax-connections = 1889");
    gate.reloaded(1).await;
    let warning = "this process may open 4096 files, so all clients together get at most 1888 connections, not 1889 \
                   (proxy.max-connections); 1889 need 4098 open files (LimitNOFILE of the unit, ulimit -n)";
    crate::support::wait::until("the warning", || {
        warned(&gate).iter().any(|line| line == warning).then_some(())
    })
    .await;
    // The operator did not choose the defaults, so there is no warning about them.
    assert!(warned(&at(FILES, "").await).is_empty());
}
