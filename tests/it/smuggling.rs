//! Requests that two parsers would interpret differently are refused with a cause, or forwarded in an unambiguous form.
//! Every request that is forwarded is in the audit log.

mod chunks;
mod connect;
mod heads;
mod http2;
mod limits;
mod methods;
mod unread;
mod upgrades;

use crate::support::{Alpn, Connection, Gate, NAME, Origin, Response, allowed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To the proxy port, in absolute form.
    Plain,
    /// Inside the TLS of an intercepted CONNECT.
    Tls,
    /// Inside a CONNECT, without TLS.
    PlainInside,
}

struct Scene {
    gate: Gate,
    plain: Origin,
    tls: Origin,
}

const WAYS: [Way; 3] = [Way::Plain, Way::Tls, Way::PlainInside];

impl Scene {
    /// Starts a scene. The gate has already fetched the robots.txt of both origins, and got a 404.
    async fn start() -> Self {
        Self::with("").await
    }

    async fn with(overrides: &str) -> Self {
        let scene = Self {
            gate: Gate::with(overrides).await,
            plain: Origin::start().anything("page").spawn().await,
            tls: Origin::start().anything("page").tls().spawn().await,
        };
        for way in [Way::Plain, Way::Tls] {
            scene.still_serves(way).await;
        }
        scene
    }

    fn origin(&self, way: Way) -> &Origin {
        match way {
            Way::Tls => &self.tls,
            Way::Plain | Way::PlainInside => &self.plain,
        }
    }

    async fn open(&self, way: Way) -> Connection {
        let tunnel = async |origin: &Origin| self.gate.connect(&origin.authority()).await.opened();
        match way {
            Way::Plain => self.gate.dial().await,
            Way::Tls => tunnel(&self.tls).await.tls(NAME, Alpn::Http1).await,
            Way::PlainInside => tunnel(&self.plain).await.plain(),
        }
    }

    /// Fills in the placeholders of a request that takes the way `way`: `{x}` is the request target for `/x`,
    /// `{prefix}` what comes before the path in a target (nothing inside a CONNECT), `{host}` the host and port,
    /// `{abs}` the URL of the root without its last slash.
    fn payload(&self, way: Way, template: &str) -> Vec<u8> {
        let origin = self.origin(way);
        let prefix = if way == Way::Plain {
            origin.url("")
        } else {
            String::new()
        };
        template
            .replace("{x}", &format!("{prefix}/x"))
            .replace("{prefix}", &prefix)
            .replace("{abs}", &origin.url(""))
            .replace("{host}", &origin.authority())
            .into_bytes()
    }

    async fn send(&self, way: Way, payload: &[u8]) -> Vec<u8> {
        let mut connection = self.open(way).await;
        // The gate may close the connection before it has read everything.
        connection.try_send(payload).await;
        connection.read_to_end().await
    }

    async fn still_serves(&self, way: Way) {
        allowed(&self.gate.get(&self.origin(way).url("/other")).await, "no-robots");
    }

    /// Asserts that the origins received exactly the requests about which the audit log has a decision, and that the
    /// gate did not panic.
    async fn every_forwarded_request_is_logged(&self) {
        for origin in [&self.plain, &self.tls] {
            let seen: Vec<String> = origin
                .requests()
                .iter()
                .filter(|request| request.path() != "/robots.txt")
                .map(|request| format!("{} {}", request.method, origin.url(&request.target)))
                .collect();
            let logged: Vec<String> = self
                .gate
                .audit()
                .iter()
                .filter(|record| record["event"] == "decision" && record["origin"] == origin.url("").as_str())
                .map(|record| {
                    let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
                    format!("{} {}", text("method"), text("url"))
                })
                .collect();
            assert_eq!(seen, logged);
        }
        let panic = self.gate.log().into_iter().find(|line| line.says("panicked"));
        assert!(panic.is_none(), "{panic:#?}");
    }
}

/// Parses the responses in the bytes that a client received on a connection. None of the requests may have been a HEAD.
async fn responses(bytes: Vec<u8>) -> Vec<Response> {
    let (near, far) = tokio::io::duplex(bytes.len().max(1));
    let mut sender = Connection::over_io(far);
    sender.send(bytes).await;
    drop(sender);
    let mut reader = Connection::over_io(near);
    let mut found = Vec::new();
    while let Ok(response) = reader.try_response_to("GET").await {
        let last = !response.stays_open;
        found.push(response);
        if last {
            break;
        }
    }
    found
}

/// Asserts that there is only one response, with this status and with `cause` in the details of its `Proxy-Status`, and
/// that the connection ends.
#[track_caller]
fn is_refused(responses: &[Response], status: u16, cause: &str, what: &str) {
    let [response] = responses else {
        panic!("{what}: {} responses: {responses:#?}", responses.len());
    };
    assert_eq!(response.status, status, "{what}: {response:#?}");
    assert!(!response.stays_open, "{what}: {response:#?}");
    assert!(response.headers.has("Proxy-Status"), "{what}: {response:#?}");
    let proxy_status = response.proxy_status();
    assert_eq!(proxy_status.value(), "robotgate", "{what}");
    assert_eq!(
        proxy_status.param("error").as_deref(),
        Some("http_request_error"),
        "{what}"
    );
    let details = proxy_status.param("details").unwrap_or_default();
    assert!(details.contains(cause), "{what}: {details}");
}
