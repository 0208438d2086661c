//! The socket with a store behind it, and clients that take what they may and more.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::PathBuf,
};

use async_trait::async_trait;
use tempfile::TempDir;

use super::*;
use crate::{
    admin::protocol::line,
    copy::{FetchError, Fetched},
    fetch::{Fetch, Landed, Lanes, LookupError, Name, Place, Requester, Traced},
    origin::Origin,
    store::{Disk, DiskOptions, Query},
};

/// A fetcher that always fails, at once.
struct Fails;

/// A store on disk with a socket beside it.
struct Bench {
    store: Arc<Store>,
    serving: Serving,
    socket: PathBuf,
    _folder: TempDir,
}

/// Longer than any test, however busy the machine is.
const HOUR: Duration = Duration::from_secs(60 * 60);
const PATIENT: Bounds = Bounds {
    clients: 1,
    request: HOUR,
    write: HOUR,
    whole: HOUR,
};
const QUICK: Bounds = Bounds {
    request: Duration::from_millis(300),
    write: Duration::from_millis(300),
    ..PATIENT
};

#[async_trait]
impl Fetch for Fails {
    type Room = ();

    fn enter(&self, requester: Requester) -> Result<Place, LookupError> {
        Arc::new(Lanes::new(1)).enter(requester)
    }

    async fn room(&self) -> Result<(), LookupError> {
        Ok(())
    }

    async fn fetch(&self, _place: &Place, _origin: &Origin, _etag: Option<&str>) -> Traced {
        Traced {
            fetched: Fetched::Failed(FetchError::Status(503).into()),
            hops: Vec::new(),
            took: Duration::ZERO,
        }
    }

    fn landed(&self, _landed: &Landed<'_>, _room: ()) {}
}

impl Bench {
    /// With so many origins of which it is known that they fail.
    async fn with(origins: usize) -> Self {
        Self::within(PATIENT, origins).await
    }

    async fn within(bounds: Bounds, origins: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("robots.redb");
        let options = DiskOptions {
            max_bytes: 1 << 30,
            keep: Duration::from_secs(1_000_000),
        };
        let store = Arc::new(Store::new(64 << 20, Some(Disk::open(&file, options, 1 << 20).unwrap())));
        let fails = Arc::new(Fails);
        for number in 0..origins {
            let origin = format!("https://site-{number}.example").parse().unwrap();
            let query = Query {
                origin: &origin,
                fetcher: &fails,
                policy: &Policy::default(),
                requester: Requester {
                    name: Name::Operators,
                    max_fetches: 1,
                },
            };
            store.lookup(&query, Duration::from_secs(20)).await.unwrap();
        }
        let serving = Serving::start_within(&store, Policy::default, bounds).unwrap();
        Self {
            store,
            serving,
            socket: path_beside(&file),
            _folder: folder,
        }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).unwrap()
    }

    /// Sends bytes, and returns the lines that come back.
    async fn ask(&self, bytes: impl Into<Vec<u8>>) -> Vec<String> {
        let (mut stream, bytes) = (self.connect(), bytes.into());
        let asking = tokio::task::spawn_blocking(move || {
            // It may be closed before all is sent.
            let _ = stream.write_all(&bytes);
            let mut lines = Vec::new();
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { break };
                lines.push(line);
            }
            lines
        });
        asking.await.unwrap()
    }
}

fn list(filter: &str) -> Vec<u8> {
    line(&Request::List {
        filter: filter.to_owned(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_longer_than_a_chunk_is_whole_and_in_order() {
    let bench = Bench::with(1_234).await;
    let told = bench.ask(list("")).await;
    assert_eq!(told.len(), 1_235);
    assert_eq!(told.last().map(String::as_str), Some("\"end\""));
    let names: Vec<_> = told[..1_234].iter().map(|row| row.split('"').nth(5)).collect();
    assert!(names.is_sorted());
    assert_eq!(names[0], Some("https://site-0.example"));
    assert_eq!(bench.ask(list("site-123")).await.len(), 6);
    let stats = bench.ask(line(&Request::Stats {})).await;
    assert!(
        stats[0].contains(r#""origins":1234,"holds":{"unreachable":1234},"failing":1234"#),
        "{stats:?}"
    );
    bench.serving.stop().await;
    assert!(!bench.socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_an_error_or_ends() {
    let bench = Bench::with(1).await;
    for (sent, told) in [
        ("\n", "{\"error\":\"this is no request"),
        ("nonsense\n", "{\"error\":\"this is no request"),
        ("{\"ask\":\"list\"}\n", "{\"error\":\"this is no request"),
        (
            "{\"ask\":\"show\",\"origin\":\"https://a/b\"}\n",
            "{\"error\":\"this is no origin",
        ),
        ("{\"ask\":\"show\",\"origin\":\"https://a.example\"}\n", "\"end\""),
    ] {
        let lines = bench.ask(sent).await;
        assert!(lines.len() == 1 && lines[0].starts_with(told), "{sent}: {lines:?}");
    }
    // No line at all, within the bound.
    for sent in ["x".repeat(MAX_REQUEST), "x".repeat(100 * MAX_REQUEST)] {
        assert_eq!(bench.ask(sent).await, [""; 0]);
    }
    assert_eq!(bench.ask(list("")).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_say_or_read_nothing_make_room_for_others() {
    let bench = Bench::within(QUICK, 4_000).await;
    let silent = bench.connect();
    let mut slow = bench.connect();
    slow.write_all(b"{").unwrap();
    let mut deaf = bench.connect();
    deaf.write_all(&list("")).unwrap();
    // There is one place, so this is answered when theirs are over.
    assert_eq!(bench.ask(list("site-77.")).await.len(), 2);
    // What did not fit into the system's buffers was never sent.
    let mut rest = Vec::new();
    let reading = tokio::task::spawn_blocking(move || {
        let _ = deaf.read_to_end(&mut rest);
        rest
    });
    assert!(!reading.await.unwrap().ends_with(b"\"end\"\n"));
    drop((silent, slow));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_no_client() {
    let bench = Bench::with(1).await;
    let silent = bench.connect();
    let stopped = tokio::time::timeout(HOUR / 60, bench.serving.stop()).await;
    assert!(stopped.is_ok() && !bench.socket.exists());
    silent.shutdown(Shutdown::Both).unwrap();
    drop(bench.store);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_is_known_no_more() {
    let bench = Bench::with(2).await;
    let forget = line(&Request::Forget {
        origin: "https://site-0.example".to_owned(),
    });
    let told = bench.ask(forget.clone()).await;
    let expected = r#"{"forgot":{"origin":"https://site-0.example","forgotten":true}}"#;
    assert_eq!(told, [expected, "\"end\""]);
    let told = bench.ask(forget).await;
    assert!(told[0].ends_with("\"forgotten\":false}}"), "{told:?}");
    assert_eq!(bench.ask(list("")).await.len(), 2);
}
