//! With few open files, kept connections to origins leave some for clients.

use crate::support::{Certificate, Connection, Gate, Origin, allowed, refused};

/// 64 files are reserved for other uses and 32 for idle connections. The rest is for 16 exchanges of two files each.
const FILES: usize = 128;
const CONNECTIONS: usize = 16;
/// One client may have a quarter of the connections.
const CLIENTS: u8 = 4;

#[tokio::test]
async fn a_crawl_of_many_sites_leaves_open_files_for_clients() {
    for protocol in ["http/1.1", "h2"] {
        println!("{protocol}");
        let origin = Origin::start()
            .alpn(&[protocol])
            .certificate(Certificate::of(&["*.shop.example"]))
            .robots("User-agent: *\nDisallow: /private\n")
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
