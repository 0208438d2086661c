//! What the fields of a response say about use. They can withdraw what the robots.txt allows, and never allow more.

use std::{
    fs::File,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    intercept,
    support::{
        Alpn, Ask, BoxIo, Certificate, Connection, End, Field, Gate, NAME, Origin, Reply, Request, Response, Step,
        allowed, failed, refused, wait,
    },
};

const PAGE: &str = "our text";

const BOTS: &str = r#"
    [[bot]]
    name = "Trainer"
    user-agents = ["Trainer", "TestBot"]
    robots-agents = ["AcmeBot"]
    purposes = ["ai-train", "tdm"]

    [[bot]]
    name = "Finder"
    user-agents = ["Finder"]
    purposes = ["search"]

    [[bot]]
    name = "Watched"
    user-agents = ["Watched"]
    purposes = ["ai-train"]
    enforcement = "report"

    [[bot]]
    name = "Scanner"
    user-agents = ["Scanner"]
    purposes = ["ai-train"]
    enforcement = "exempt"

    [[bot]]
    name = "Plain"
    user-agents = ["Plain"]
"#;

/// How a request gets to its origin: the protocol in the CONNECT, or `None` for an http URL, and the protocols that the
/// origin speaks.
type Way = (Option<Alpn>, &'static [&'static str]);

const WAYS: [Way; 5] = [
    (None, &[]),
    (Some(Alpn::Http1), &["http/1.1"]),
    (Some(Alpn::Http2), &["http/1.1"]),
    (Some(Alpn::Http1), &["h2"]),
    (Some(Alpn::Http2), &["h2"]),
];

/// A field of a response, the bot that it is for, and what it says: the vocabulary, the key, the value and the purpose.
type Case = (&'static str, &'static str, &'static str, [&'static str; 4]);

const FORBIDDING: [Case; 10] = [
    (
        "Content-Usage",
        "train-ai=n",
        "Trainer",
        ["content-usage", "train-ai", "n", "ai-train"],
    ),
    (
        "content-usage",
        "search=y, train-ai=n",
        "Trainer",
        ["content-usage", "train-ai", "n", "ai-train"],
    ),
    (
        "Content-Usage",
        "search=n",
        "Finder",
        ["content-usage", "search", "n", "search"],
    ),
    (
        "TDM-Reservation",
        "1",
        "Trainer",
        ["tdmrep", "tdm-reservation", "1", "tdm"],
    ),
    (
        "X-Robots-Tag",
        "noindex, noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "NoImageAI",
        "Trainer",
        ["x-robots-tag", "noimageai", "noimageai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "acmebot: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "trainer: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "OtherBot: none, AcmeBot: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "*: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
];

/// Fields that forbid the bot nothing.
const HARMLESS: [(&str, &str, &str); 9] = [
    ("Content-Usage", "train-ai=y", "Trainer"),
    ("Content-Usage", "search=n", "Trainer"),
    ("Content-Usage", "train-ai=n,", "Trainer"),
    ("Content-Usage", "train-ai=n", "Finder"),
    ("TDM-Reservation", "0", "Trainer"),
    ("TDM-Reservation", "1", "Finder"),
    ("X-Robots-Tag", "noindex", "Trainer"),
    ("X-Robots-Tag", "OtherBot: noai", "Trainer"),
    ("X-Robots-Tag", "noai", "Finder"),
];

/// Returns a configuration with this policy for each vocabulary that a response can use.
fn config(policy: &str) -> String {
    format!("[usage]\ncontent-usage = '{policy}'\ntdmrep = '{policy}'\nx-robots-tag = '{policy}'\n{BOTS}")
}

/// Starts an origin that answers each request with the field in the request's `X-Reply` and the status in its
/// `X-Status`.
async fn origin(protocols: &[&str]) -> Origin {
    let origin = Origin::start().otherwise(answer);
    match protocols {
        [] => origin.spawn().await,
        _ => origin.alpn(protocols).spawn().await,
    }
}

/// Returns whether a request is for a page, and not for what the site says about bots.
fn is_page(request: &Request) -> bool {
    request.path() != "/robots.txt" && !request.path().starts_with("/.well-known/")
}

fn answer(request: &Request) -> Reply {
    if !is_page(request) {
        return Reply::status(404);
    }
    let status = request.field("X-Status").map_or(200, |status| status.parse().unwrap());
    let reply = Reply::status(status).header("Robots-Decision", "allow; reason=forged");
    let (name, value) = request
        .field("X-Reply")
        .and_then(|field| field.split_once(": "))
        .unwrap();
    reply.header(name, value).body(PAGE)
}

/// Opens a connection to the origin through the gate.
async fn open(gate: &Gate, origin: &Origin, way: Way) -> Connection {
    match way.0 {
        None => gate.dial().await,
        Some(alpn) => intercept::open(gate, &origin.authority(), alpn).await,
    }
}

/// Creates a request for `path` by `bot`, whose response gets this field.
fn ask<'c>(
    connection: &'c mut Connection,
    (method, path): (&str, &str),
    origin: &Origin,
    way: Way,
    (name, value, bot): (&str, &str, &str),
) -> Ask<'c> {
    let target = way.0.map_or_else(|| origin.url(path), |_| path.to_owned());
    let reply = format!("{name}: {value}");
    connection
        .ask(method, &target)
        .user_agent(bot)
        .header("X-Reply", &reply)
}

fn parameters(decision: &Field) -> [String; 4] {
    ["vocabulary", "key", "value", "purpose"].map(|name| decision.param(name).unwrap_or_default())
}

/// Waits for the completion of the decision about a URL, and returns all records of the decision.
async fn records(gate: &Gate, url: &str) -> Vec<Value> {
    let decision = gate.decision_for(url).await;
    gate.completion_of(&decision).await;
    let mut records = gate.audit();
    records.retain(|record| record["id"] == decision["id"]);
    records
}

fn events(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["event"].as_str().unwrap()).collect()
}

/// Asserts that the response to a request for `url` was withdrawn, and says so with these parameters.
async fn withdrawn(gate: &Gate, url: &str, response: &Response, [vocabulary, key, value, purpose]: [&str; 4]) {
    let decision = refused(response, "usage");
    assert_eq!(
        parameters(&decision),
        [vocabulary, key, value, purpose],
        "{response:#?}"
    );
    let field = decision.param("field").unwrap();
    assert!(!response.text().contains(PAGE), "{response:#?}");
    let [decided, withdrawn, completed] = &records(gate, url).await[..] else {
        panic!("three records of {url}: {:#?}", records(gate, url).await);
    };
    let events = [decided, withdrawn, completed].map(|record| record["event"].as_str().unwrap());
    assert_eq!(events, ["decision", "withdrawn", "completion"]);
    assert_eq!(
        (&decided["verdict"], &decided["forwarded"]),
        (&json!("allow"), &json!(true))
    );
    assert_eq!(withdrawn["id"], decision.param("id").unwrap());
    let expected = json!({
        "event": "withdrawn", "time": withdrawn["time"], "id": decided["id"], "instance": decided["instance"],
        "bot": decided["bot"], "url": url, "purpose": purpose, "vocabulary": vocabulary, "key": key, "value": value,
        "field": field, "status": withdrawn["status"],
    });
    assert_eq!(*withdrawn, expected);
    assert_eq!((&completed["status"], &completed["error"]), (&json!(403), &Value::Null));
    let said = completed["usage"].as_array().unwrap();
    let mut deciding = json!({
        "purpose": purpose, "vocabulary": vocabulary, "key": key, "value": value, "field": field, "policy": "enforce",
    });
    assert!(said.contains(&deciding), "{completed:#?}");
    deciding["why"] = json!("forbidden");
    let recent = gate.admin("/api/v1/refusals").await.json();
    let recent = recent["refusals"].as_array().unwrap().iter();
    let shown: Vec<_> = recent.filter(|record| record["id"] == decided["id"]).collect();
    let [shown] = &shown[..] else {
        panic!("one recent refusal: {shown:#?}")
    };
    assert_eq!(
        [&shown["url"], &shown["verdict"], &shown["reason"], &shown["forwarded"]],
        [&json!(url), &json!("deny"), &json!("usage"), &json!(false)]
    );
    assert_eq!(shown["usage"]["refused"], deciding);
}

#[tokio::test]
async fn a_response_that_forbids_an_enforced_purpose_is_withdrawn() {
    let gate = Gate::with(&config("enforce")).await;
    for way in WAYS {
        let origin = origin(way.1).await;
        let mut connection = open(&gate, &origin, way).await;
        for (number, (name, value, bot, says)) in FORBIDDING.into_iter().enumerate() {
            println!("{way:?}: {name}: {value}");
            let path = format!("/{number}");
            let response = ask(&mut connection, ("GET", &path), &origin, way, (name, value, bot)).await;
            withdrawn(&gate, &origin.url(&path), &response, says).await;
            let problem = response.json();
            assert_eq!(
                (&problem["reason"], &problem["usage"]["value"]),
                (&json!("usage"), &json!(says[2]))
            );
        }
        if way.1 != ["h2"] {
            let mut requests = origin.requests();
            requests.retain(is_page);
            let mut numbers: Vec<_> = requests.iter().map(|request| request.connection).collect();
            numbers.dedup();
            assert_eq!(numbers.len(), FORBIDDING.len(), "{way:?}: a connection was used again");
        }
    }
}

#[tokio::test]
async fn every_method_and_status_can_be_withdrawn() {
    let gate = Gate::with(&config("enforce")).await;
    let (name, value, bot, says) = FORBIDDING[0];
    for way in WAYS {
        let origin = origin(way.1).await;
        let mut connection = open(&gate, &origin, way).await;
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            for status in [200, 204, 206, 301, 304, 404, 503] {
                println!("{way:?}: {method} {status}");
                let path = format!("/{method}/{status}");
                let asked = ask(&mut connection, (method, &path), &origin, way, (name, value, bot));
                let asked = asked.header("X-Status", &status.to_string());
                let response = match method {
                    "POST" => asked.body(b"question").await,
                    _ => asked.await,
                };
                withdrawn(&gate, &origin.url(&path), &response, says).await;
                let records = records(&gate, &origin.url(&path)).await;
                assert_eq!(records[1]["status"], status, "the status of the origin");
                assert_eq!(response.body.is_empty(), method == "HEAD", "{response:#?}");
            }
        }
    }
}

#[tokio::test]
async fn the_body_of_a_withdrawn_response_is_not_read_to_its_end() {
    let gate = Gate::with(&config("enforce")).await;
    for way in WAYS {
        println!("{way:?}");
        let endless = |request: &Request| match is_page(request) {
            false => Reply::status(404),
            true => Reply::status(200)
                .header("Content-Usage", "train-ai=n")
                .without_length()
                .then(Step::Endless(PAGE.repeat(1000).into())),
        };
        let origin = Origin::start().otherwise(endless);
        let origin = match way.1 {
            [] => origin.spawn().await,
            protocols => origin.alpn(protocols).spawn().await,
        };
        let mut connection = open(&gate, &origin, way).await;
        for count in 1..=3 {
            let path = format!("/{count}");
            let response = ask(&mut connection, ("GET", &path), &origin, way, ("X", "y", "Trainer")).await;
            withdrawn(&gate, &origin.url(&path), &response, FORBIDDING[0].3).await;
            wait::until("the end of the origin's response", || {
                (origin.cut() == count).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_reported_purpose_is_in_the_header_and_in_the_log() {
    let reporting = Gate::with(&config("report")).await;
    let enforcing = Gate::with(&config("enforce")).await;
    for (gate, policy, bot) in [(&reporting, "report", "Trainer"), (&enforcing, "enforce", "Watched")] {
        for way in WAYS {
            let origin = origin(way.1).await;
            let mut connection = open(gate, &origin, way).await;
            for (number, (name, value, of, says)) in FORBIDDING.into_iter().enumerate() {
                if bot == "Watched"
                    && (of == "Finder"
                        || says[3] == "tdm"
                        || value.to_lowercase().contains("bot:")
                        || value.starts_with("trainer"))
                {
                    continue;
                }
                let bot = if bot == "Watched" { bot } else { of };
                println!("{way:?}: {bot}: {name}: {value}");
                let path = format!("/{number}");
                let response = ask(&mut connection, ("GET", &path), &origin, way, (name, value, bot)).await;
                let decision = allowed(&response, "no-robots");
                assert_eq!(parameters(&decision), says.map(str::to_owned), "{response:#?}");
                assert_eq!(
                    (response.text(), response.end),
                    (PAGE.to_owned(), End::Length),
                    "{response:#?}"
                );
                let records = records(gate, &origin.url(&path)).await;
                assert_eq!(events(&records), ["decision", "completion"]);
                let said = records[1]["usage"].as_array().unwrap();
                let [vocabulary, key, value, purpose] = says;
                let deciding = json!({
                    "purpose": purpose, "vocabulary": vocabulary, "key": key, "value": value,
                    "field": name.to_lowercase(), "policy": policy,
                });
                assert!(said.contains(&deciding), "{said:#?}");
            }
        }
        let line =
            format!(r#"robotgate_usage_total{{vocabulary="x-robots-tag",purpose="ai-train",policy="{policy}"}}"#);
        let metrics = gate.admin("/metrics").await.text();
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn a_response_that_forbids_nothing_is_passed_on() {
    let gate = Gate::with(&config("enforce")).await;
    let off = Gate::with(&config("off")).await;
    let of_others = FORBIDDING.into_iter().flat_map(|(name, value, ..)| {
        let bots = ["Plain", "Scanner", "Unknown"];
        bots.map(|bot| (&gate, (name, value, bot)))
    });
    let when_off = FORBIDDING
        .into_iter()
        .map(|(name, value, bot, _)| (&off, (name, value, bot)));
    let harmless = HARMLESS.into_iter().map(|case| (&gate, case));
    let cases: Vec<_> = harmless.chain(of_others).chain(when_off).collect();
    for way in WAYS {
        let origin = origin(way.1).await;
        for (number, (gate, case)) in cases.iter().enumerate() {
            println!("{way:?}: {case:?}");
            let path = format!("/{number}");
            let mut connection = open(gate, &origin, way).await;
            let response = ask(&mut connection, ("GET", &path), &origin, way, *case).await;
            assert_eq!(
                (response.status, response.text()),
                (200, PAGE.to_owned()),
                "{response:#?}"
            );
            let decision = response.decision();
            assert_eq!(decision.value(), "allow", "{response:#?}");
            assert_eq!(decision.param("purpose"), None, "{response:#?}");
            let records = records(gate, &origin.url(&path)).await;
            assert_eq!(events(&records), ["decision", "completion"]);
            let says_yes = case.1.ends_with("=y") || case.1 == "0";
            assert_eq!(records[1]["usage"].is_array(), says_yes, "{records:#?}");
        }
    }
}

/// RFC 9309 §2.2.2: the robots.txt itself may always be fetched.
#[tokio::test]
async fn the_robots_txt_itself_is_never_withdrawn() {
    let robots = Reply::ok("text/plain", "User-agent: *\n").header("Content-Usage", "train-ai=n");
    let origin = Origin::start().reply("/robots.txt", robots).spawn().await;
    let gate = Gate::with(&config("enforce")).await;

    let response = gate.get(&origin.url("/robots.txt")).user_agent("Trainer").await;

    allowed(&response, "robots-file");
}

/// Over HTTP/1.1, some servers and parsers differ in what a field is.
#[tokio::test]
async fn a_field_counts_in_any_form_and_only_in_the_final_head() {
    let fields = |text: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n{text}\r\n\r\nour text");
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n";
    let trailer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Usage\r\n\r\n\
                   8\r\nour text\r\n0\r\nContent-Usage: train-ai=n\r\n\r\n";
    let gate = Gate::with(&config("enforce")).await;
    for (what, bytes, is_withdrawn) in [
        (
            "on two lines",
            fields("Content-Usage: search=y\r\nContent-Usage: train-ai=n"),
            true,
        ),
        (
            "nominated",
            fields("Connection: Content-Usage\r\nContent-Usage: train-ai=n"),
            true,
        ),
        ("a blank before the colon", fields("Content-Usage : train-ai=n"), true),
        ("folded", fields("Content-Usage: search=y,\r\n train-ai=n"), true),
        (
            "in a later field",
            fields("X-Robots-Tag: OtherBot: noai\r\nX-Robots-Tag: noai"),
            true,
        ),
        (
            "after early hints",
            format!("{hints}\r\n{}", fields("Content-Usage: train-ai=n")),
            true,
        ),
        (
            "in early hints",
            format!("{hints}Content-Usage: train-ai=n\r\n\r\n{}", fields("X: y")),
            false,
        ),
        ("in a trailer", trailer.to_owned(), false),
    ] {
        println!("{what}");
        let origin = Origin::start().reply("/x", Reply::raw(bytes)).spawn().await;

        let response = gate.get(&origin.url("/x")).user_agent("Trainer").await;

        if is_withdrawn {
            refused(&response, "usage");
            assert!(!response.text().contains(PAGE), "{response:#?}");
        } else {
            allowed(&response, "no-robots");
            assert_eq!(response.text(), PAGE);
        }
    }
}

/// A line for each repetition would fill the log.
#[tokio::test]
async fn a_label_that_is_repeated_is_logged_once() {
    let origin = origin(&[]).await;
    let gate = Gate::with(&config("report")).await;
    let mut connection = gate.dial().await;
    let many = vec!["noai"; 1000].join(", ");

    ask(
        &mut connection,
        ("GET", "/x"),
        &origin,
        WAYS[0],
        ("X-Robots-Tag", &many, "Trainer"),
    )
    .await;

    let records = records(&gate, &origin.url("/x")).await;
    assert_eq!(records[1]["usage"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_websocket_can_be_withdrawn() {
    let upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nContent-Usage: train-ai=n\r\n\r\n";
    let gate = Gate::with(&config("enforce")).await;
    for way in [WAYS[0], WAYS[1]] {
        let greeting = Step::Endless(PAGE.into());
        let origin = Origin::start().otherwise(move |request| match is_page(request) {
            false => Reply::status(404),
            true => Reply::script([Step::send(upgraded), greeting.clone()]),
        });
        let origin = if way.1.is_empty() { origin } else { origin.tls() }.spawn().await;
        let mut connection = open(&gate, &origin, way).await;

        let response = ask(&mut connection, ("GET", "/chat"), &origin, way, ("X", "y", "Trainer"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
            .await;

        withdrawn(&gate, &origin.url("/chat"), &response, FORBIDDING[0].3).await;
        assert_eq!(records(&gate, &origin.url("/chat")).await[1]["status"], 101);
        wait::until("the end of the WebSocket", || (origin.cut() == 1).then_some(())).await;
    }
}

/// An origin that answers before it has read the content of the request, and then reads until the end.
struct EarlyOrigin {
    port: u16,
    is_closed: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl EarlyOrigin {
    async fn start(tls: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = tls.then(|| TlsAcceptor::from(Certificate::of(&[NAME]).server_config()));
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = is_closed.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, closed) = (acceptor.clone(), closed.clone());
                tokio::spawn(async move {
                    let stream: BoxIo = match acceptor {
                        Some(acceptor) => Box::new(acceptor.accept(stream).await?),
                        None => Box::new(stream),
                    };
                    Self::answer(stream, &closed).await
                });
            }
        });
        Self {
            port,
            is_closed,
            accepting,
        }
    }

    async fn answer(mut stream: BoxIo, closed: &AtomicBool) -> io::Result<()> {
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            stream.read_buf(&mut bytes).await?;
        }
        if !bytes.starts_with(b"POST ") {
            let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(none).await?;
            return stream.shutdown().await;
        }
        let early = format!("HTTP/1.1 200 OK\r\nContent-Usage: train-ai=n\r\n\r\n{PAGE}");
        stream.write_all(early.as_bytes()).await?;
        stream.flush().await?;
        while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        closed.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn authority(&self) -> String {
        format!("{NAME}:{}", self.port)
    }

    async fn closed(&self) {
        let is_closed = || self.is_closed.load(Ordering::SeqCst).then_some(());
        wait::until("the end of the connection", is_closed).await;
    }
}

impl Drop for EarlyOrigin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_is_withdrawn() {
    let origin = EarlyOrigin::start(false).await;
    let gate = Gate::with(&config("enforce")).await;
    let url = format!("http://{}/x", origin.authority());
    let mut connection = gate.dial().await;
    let head = format!(
        "POST {url} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Trainer\r\nContent-Length: 1000000\r\n\r\npart",
        origin.authority()
    );

    connection.send(head).await;
    let response = connection.response_to("POST").await;
    // The gate reads the rest of the request for a while, so that the client gets the response.
    connection.finish().await;

    withdrawn(&gate, &url, &response, FORBIDDING[0].3).await;
    origin.closed().await;

    let origin = EarlyOrigin::start(true).await;
    let mut inside = intercept::open(&gate, &origin.authority(), Alpn::Http2).await;

    let response = inside.post_without_end("/x", b"part").await;

    let url = format!("https://{}/x", origin.authority());
    withdrawn(&gate, &url, &response, FORBIDDING[0].3).await;
    origin.closed().await;
}

#[tokio::test]
async fn without_a_line_in_the_log_the_bot_gets_neither_the_response_nor_the_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("audit.pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
    let reading = rustix::fs::open(
        &pipe,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .unwrap();
    let reader = Arc::new(Mutex::new(Some(File::from(reading))));
    let origin = Origin::start().otherwise({
        let reader = reader.clone();
        move |request| match is_page(request) {
            false => Reply::status(404),
            // From now on, every write to the log fails.
            true => {
                reader.lock().unwrap().take();
                Reply::ok("text/plain", PAGE).header("Content-Usage", "train-ai=n")
            }
        }
    });
    let origin = origin.spawn().await;
    let gate = Gate::with(&format!(
        "[audit]\npath = {:?}\n{}",
        pipe.display().to_string(),
        config("enforce")
    ))
    .await;

    let response = gate.get(&origin.url("/x")).user_agent("Trainer").await;

    failed(&response, 503, &["proxy_internal_error"]);
    assert!(!response.text().contains(PAGE), "{response:#?}");
    assert!(response.field("Robots-Decision").is_none(), "{response:#?}");
    assert_eq!(origin.count("/x"), 1);
}

#[tokio::test]
async fn withdrawn_responses_are_counted_as_refused() {
    let origin = origin(&[]).await;
    let gate = Gate::with(&config("enforce")).await;
    for (number, (name, value, bot, _)) in FORBIDDING.into_iter().enumerate() {
        let mut connection = gate.dial().await;
        let path = format!("/{number}");
        ask(&mut connection, ("GET", &path), &origin, WAYS[0], (name, value, bot)).await;
        records(&gate, &origin.url(&path)).await;
    }
    for line in [
        r#"robotgate_withdrawn_total{vocabulary="content-usage",purpose="search"} 1"#,
        r#"robotgate_withdrawn_total{vocabulary="content-usage",purpose="ai-train"} 2"#,
        r#"robotgate_withdrawn_total{vocabulary="tdmrep",purpose="tdm"} 1"#,
        r#"robotgate_withdrawn_total{vocabulary="x-robots-tag",purpose="ai-train"} 6"#,
        r#"robotgate_usage_total{vocabulary="x-robots-tag",purpose="ai-train",policy="enforce"} 6"#,
        r#"robotgate_decisions_total{verdict="deny",reason="usage",bot="Trainer",enforcement="enforce",forwarded="false"} 9"#,
        r#"robotgate_requests_total{method="GET",outcome="refused"} 10"#,
        r#"robotgate_requests_total{method="GET",outcome="forwarded"} 0"#,
        r#"robotgate_responses_total{class="4xx"} 10"#,
        r#"robotgate_responses_total{class="2xx"} 0"#,
    ] {
        wait::until_async(line, async || {
            let text = gate.admin("/metrics").await.text();
            text.lines().any(|found| found == line).then_some(())
        })
        .await;
    }
    let history = wait::until_async("the history", async || {
        let history = gate.admin("/api/v1/history?from=1h").await.json();
        let sites = history["refused_sites"].as_array().expect("sites").len();
        (sites > 0 && history["refusals"] != json!([])).then_some(history)
    })
    .await;
    let refusals = history["refusals"].as_array().unwrap().iter();
    let refused: u64 = refusals.map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(refused, 10);
    let series = history["series"].as_array().unwrap().iter();
    let series: Vec<_> = series.map(|series| (&series["name"], &series["total"])).collect();
    assert_eq!(series, [(&json!("deny"), &json!(10))]);
    let site = &history["refused_sites"][0];
    assert_eq!((&site["requests"], &site["refused"]), (&json!(10), &json!(10)));
    let decisions = gate.admin("/api/v1/status").await.json()["decisions"].clone();
    assert_eq!((&decisions["allow"], &decisions["deny"]), (&json!(0), &json!(10)));
}

#[tokio::test]
async fn the_url_of_a_withdrawn_response_is_redacted() {
    let origin = origin(&[]).await;
    let gate = Gate::with(&format!("[audit]\nredact-query = ['token']\n{}", config("enforce"))).await;
    let (name, value, bot, _) = FORBIDDING[0];
    let mut connection = gate.dial().await;

    ask(
        &mut connection,
        ("GET", "/x?token=hunter2"),
        &origin,
        WAYS[0],
        (name, value, bot),
    )
    .await;

    let records = records(&gate, &origin.url("/x?token=redacted")).await;
    assert_eq!(records[1]["url"], origin.url("/x?token=redacted"));
}
