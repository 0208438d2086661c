//! The cases: which requests are sent, and through which proxies.

use super::{
    load::{Host, Pattern, Plan, Protocol, Request},
    origin::{
        Origin,
        answers::{HUGE, LARGE, LARGE_BYTES, PRIVATE, SMALL, SMALL_BYTES},
    },
    proxies::{Audit, Https, Kind},
};

pub struct Case {
    pub name: &'static str,
    pub title: String,
    pub measures: Measures,
    pub contenders: Vec<Contender>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Measures {
    /// Measures requests per second; see [`races`](super::races).
    Rate,
    /// Measures the memory for each connection; see [`crowds`](super::crowds).
    Memory,
}

/// A proxy's part in a case.
pub struct Contender {
    pub kind: Kind,
    pub label: String,
    pub plan: Plan,
}

impl Contender {
    fn is_robotgate(&self) -> bool {
        matches!(self.kind, Kind::Robotgate(..))
    }
}

/// Returns every case. `crowd` is the number of connections in the cases `idle` and `tunnels`, and their maximum number
/// in the cases `many-4096` and `unread`.
pub fn all(origin: &Origin, crowd: usize) -> Vec<Case> {
    let small = Request {
        host: Host::One(origin.plain),
        path: SMALL,
        content: 0,
        status: 200,
        answer: SMALL_BYTES,
    };
    let plain = Plan {
        protocol: Protocol::Plain,
        pattern: Pattern::Kept,
        request: small,
        connections: 32,
        streams: 1,
    };
    let http1 = Plan {
        protocol: Protocol::Http1,
        request: Request {
            host: Host::One(origin.tls),
            ..small
        },
        ..plain
    };
    let http2 = Plan {
        protocol: Protocol::Http2,
        connections: 8,
        streams: 4,
        ..http1
    };
    let new = Plan {
        pattern: Pattern::New,
        connections: 16,
        ..http1
    };
    let posts = Plan {
        request: Request {
            content: 10 * 1024,
            ..small
        },
        ..plain
    };
    let cold = Plan {
        request: Request {
            host: Host::Each(origin.any_port),
            ..small
        },
        ..plain
    };
    let idle = Plan {
        pattern: Pattern::Idle,
        connections: crowd,
        ..plain
    };
    let tunnels = Plan {
        protocol: Protocol::Tunnel,
        pattern: Pattern::Idle,
        connections: crowd,
        ..http1
    };
    let unread = Plan {
        pattern: Pattern::Unread,
        request: Request { path: HUGE, ..small },
        connections: UNREAD.min(crowd),
        ..plain
    };
    vec![
        race(
            "kept",
            "1 KiB answers over plain HTTP, 32 kept connections",
            clear(plain),
        ),
        race(
            "https",
            "1 KiB answers over intercepted HTTP/1.1, 32 kept connections",
            tls(http1),
        ),
        race(
            "http2",
            "1 KiB answers over intercepted HTTP/2, 8 kept connections with 4 requests each",
            {
                let mut contenders = vec![contender(Kind::Nothing, http2), contender(Kind::ROBOTGATE, http2)];
                // squid does not support HTTP/2 from clients, so it uses HTTP/1.1.
                for kind in [Kind::SQUID, Kind::Squid { workers: 2 }] {
                    contenders.extend(
                        kind.intercepts()
                            .then(|| named(format!("{kind} (HTTP/1.1)"), kind, http1)),
                    );
                }
                contenders.push(contender(Kind::Mitmproxy, http2));
                contenders
            },
        ),
        race(
            "new",
            "an intercepted connection for each request, 16 at a time",
            tls(new),
        ),
        race(
            "large-http",
            "1 MiB answers over plain HTTP, 8 kept connections",
            quick(clear(large(plain))),
        ),
        race(
            "large-https",
            "1 MiB answers over intercepted HTTP/1.1, 8 kept connections",
            quick(tls(large(http1))),
        ),
        race(
            "posts",
            "POSTs of 10 KiB over plain HTTP, 32 kept connections",
            quick(clear(posts)),
        ),
        race("refusals", "requests that are refused, 32 kept connections", {
            let refused = Plan {
                request: Request {
                    path: PRIVATE,
                    status: 403,
                    ..small
                },
                ..plain
            };
            let kinds = [Kind::ROBOTGATE, Kind::SQUID, Kind::Squid { workers: 2 }, Kind::HaProxy];
            let mut contenders = vec![named(FORWARDED.to_owned(), Kind::ROBOTGATE, plain)];
            contenders.extend(kinds.map(|kind| contender(kind, refused)));
            contenders
        }),
        race(
            "cold",
            "each request to another origin, 32 kept connections to the proxy",
            intercepted(quick(clear(cold))),
        ),
        race(
            "many-512",
            "1 KiB answers over plain HTTP, 512 kept connections",
            intercepted(quick(clear(crowded(plain, 512)))),
        ),
        race("many-4096", "1 KiB answers over plain HTTP, 4,096 kept connections", {
            intercepted(quick(clear(crowded(plain, 4096.min(crowd)))))
        }),
        race("audit", "as kept, by where robotgate's audit log goes", {
            let contenders = [
                ("a file", Audit::File),
                ("a pipe", Audit::Pipe),
                ("/dev/null", Audit::Null),
            ];
            let contender = |(to, audit)| {
                named(
                    format!("robotgate, to {to}"),
                    Kind::Robotgate(audit, Https::Intercept),
                    plain,
                )
            };
            contenders.map(contender).into()
        }),
        crowd_of(
            "idle",
            "idle connections, plain HTTP, each after one request",
            clear(idle),
        ),
        crowd_of("tunnels", "idle tunnels with TLS in them, each after one request", {
            let tunnel = Kind::Robotgate(Audit::File, Https::Tunnel);
            vec![contender(tunnel, tunnels), contender(Kind::SQUID, tunnels)]
        }),
        crowd_of(
            "unread",
            "answers of 64 MiB over plain HTTP that the client does not read",
            clear(unread),
        ),
    ]
}

/// Every kind of proxy, and direct requests, over plain HTTP.
fn clear(plan: Plan) -> Vec<Contender> {
    Kind::ALL.map(|kind| contender(kind, plan)).into()
}

fn tls(plan: Plan) -> Vec<Contender> {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.intercepts());
    kinds.map(|kind| contender(kind, plan)).collect()
}

/// Leaves out mitmproxy, whose speed other cases show.
fn quick(mut contenders: Vec<Contender>) -> Vec<Contender> {
    contenders.retain(|contender| contender.kind != Kind::Mitmproxy);
    contenders
}

fn intercepted(mut contenders: Vec<Contender>) -> Vec<Contender> {
    contenders.retain(|contender| contender.kind != Kind::Nothing);
    contenders
}

fn large(plan: Plan) -> Plan {
    Plan {
        connections: 8,
        request: Request {
            path: LARGE,
            answer: LARGE_BYTES,
            ..plan.request
        },
        ..plan
    }
}

fn crowded(plan: Plan, connections: usize) -> Plan {
    Plan { connections, ..plan }
}

fn contender(kind: Kind, plan: Plan) -> Contender {
    named(kind.to_string(), kind, plan)
}

fn named(label: String, kind: Kind, plan: Plan) -> Contender {
    Contender { kind, label, plan }
}

fn race(name: &'static str, title: &str, contenders: Vec<Contender>) -> Case {
    Case {
        name,
        title: title.to_owned(),
        measures: Measures::Rate,
        contenders,
    }
}

fn crowd_of(name: &'static str, title: &str, mut contenders: Vec<Contender>) -> Case {
    contenders.retain(|contender| {
        [Kind::Bare, Kind::SQUID, Kind::HaProxy].contains(&contender.kind) || contender.is_robotgate()
    });
    let connections = contenders.first().map_or(0, |contender| contender.plan.connections);
    Case {
        name,
        title: format!("{connections} {title}"),
        measures: Measures::Memory,
        contenders,
    }
}

pub const FORWARDED: &str = "robotgate, forwarded";
/// Number of connections whose responses are not read. In addition to the proxy's memory, each can take some megabytes
/// of the kernel's.
const UNREAD: usize = 200;
