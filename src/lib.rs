//! robotgate: a forward proxy between a company's bots and the internet. It checks requests against the robots.txt of
//! the origin that they go to.
//!
//! This page and CONTRIBUTING.md are for people who work on robotgate. README.md and `docs` are for its users.
//!
//! # Bird's-eye view
//!
//! ```text
//! bot ──http──▶ gate ──▶ identify ──▶ decide ──allow──▶ forward ──▶ origin
//!       CONNECT   │                     │  ▲
//!                 └ intercept (TLS)     │  └── robots cache ◀── fetch ◀── origin/robots.txt
//!                                       ├─ refuse: 403 + why
//!                                       └─ audit: one JSON line, before a byte goes upstream
//! ```
//!
//! A pure core decides, and a thin shell does the I/O. The core is functions that take values, such as the time or a
//! response from the network, and return values.
//!
//! # Code map
//!
//! The core, which uses no socket, no file and no clock:
//!
//! - [`robots`]: parses a robots.txt once, and compares it with many paths. [`robots::Agent::decide_within`] returns
//!   the rule that decides. Also explains, lints and compares robots.txt files.
//! - [`origin`]: scheme, host and port; the target of a request ([`origin::Target`]); and the readings of its path
//!   ([`origin::readings`]), with which rules are compared.
//! - [`bot`]: finds out which configured bot sends a request, from the client's proof ([`bot::Proof`]) and its
//!   User-Agent. For any other bot, finds the name to look for in a robots.txt.
//! - [`copy`]: what robotgate knows of an origin's robots.txt, as a state machine: the current copy, when to fetch
//!   again, and what a failure means.
//! - [`usage`]: what bots use content for, and what sites say about it in several vocabularies.
//! - [`pace`]: how fast requests to an origin may follow each other, as a state machine.
//! - [`decision`]: takes one [`decision::Question`] and returns one [`decision::Decision`], which the response, the
//!   log, the metrics, the API and `explain` show.
//!
//! The shell:
//!
//! - [`store`]: keeps robots.txt copies in memory and on disk (`store::disk`).
//! - [`fetch`]: fetches a robots.txt or a `tdmrep.json`.
//! - [`fleet`]: shares robots.txt copies and the pace with other robotgates through a Redis or Valkey server.
//! - [`evidence`]: keeps the texts that decisions are based on, by their SHA-256.
//! - `database`: opens files of the database redb, and handles damaged ones.
//! - [`egress`]: resolves names to checked addresses.
//! - [`upstream`]: connects to origins, and sends requests to them with HTTP/1.1, HTTP/2 and FTP.
//! - `wire`: a connection that keeps written bytes in memory, so that a write never waits.
//! - `pacer`: keeps a limiter ([`pace`]) for each origin, and wakes requests when they may be sent.
//! - [`proxy`]: accepts connections, serves CONNECTs, forwards requests and refuses them. Its documentation follows one
//!   request.
//! - [`authority`]: the local certificate authority, and the certificates that it issues for the hosts of intercepted
//!   connections.
//! - [`trust`]: how to make each kind of client trust the proxy, and which clients do not trust it.
//! - [`audit`]: the audit log: decisions, completions, fetches, and what happens to robotgate itself, such as a reload.
//! - [`metrics`]: counts events, and writes the counts when Prometheus requests them.
//! - [`history`]: what happened in the last days by time, site, bot, reason and rule, in bounded memory.
//! - [`admin`]: answers operators over HTTP ([`admin::http`]). Also contains the clients for the commands `cache` and
//!   `health`.
//! - [`config`]: parses the configuration file, environment variables and `--set` ([`config::Sources`]) into a checked
//!   [`config::Config`], and watches the file. A module that has options defines their type, such as
//!   [`copy::Policy`].
//! - `explanation`: why a URL would be allowed or refused, with the rules that won and lost.
//! - [`replay`]: decides the requests in an audit log again, also with another configuration, robots.txt or User-Agent.
//! - [`report`]: summarises audit logs for people.
//! - [`mod@seal`]: signs a Merkle tree of the audit log's lines, so that anybody can find out if they were changed.
//! - [`expect`]: checks a configuration against its own `[[expect]]` cases.
//! - `files`: reads files. It refuses pipes, which could block forever, and files with secrets that other users can
//!   read.
//! - `fair_semaphore`: limits how many tasks do the same work at the same time, fairly between clients.
//! - `parallel`: runs a function on several cores, for commands that read large logs.
//! - `pem`: reads and writes certificates as PEM.
//! - `ratelimited`: log lines that are written at most once a second.
//! - `colour`, `columns`: write colours on a terminal, and fit text to its width.
//! - [`text`]: makes text from outside safe to show, and formats times and numbers.
//! - `version`: the version with the commit, from `src/version/build.rs`.
//! - [`service`]: the daemon around all this: starts, reloads and stops, and talks to systemd.
//! - [`cli`]: one file for each subcommand, and what the subcommands share.
//!
//! The tests in addition to the unit tests:
//!
//! - `tests/it`: runs the program between an origin that can misbehave and real clients. It also checks [`robots`]
//!   against a simple implementation of the specification and against the cases in `tests/cases`.
//! - `tests/bench`: measures speed, and compares the proxy with others. `cost` counts allocations, instructions and
//!   system calls, and fails if there are more than the recorded numbers.
//! - `tests/fuzz`: fuzzes the code that reads data from outside. It reaches private code through the module `fuzzing`,
//!   which ordinary builds do not have.
//!
//! # Invariants
//!
//! - robotgate connects to an origin only at an address that [`egress`] checked, and never to itself.
//! - Every request inside an intercepted CONNECT is decided on its own. Of the CONNECT, the decision uses only the host
//!   and port, and the credential.
//! - No byte of a request is sent upstream, and no refusal to the client, before the decision is in the audit log. The
//!   fetch that the decision is based on is in the log before the decision.
//! - [`usage`], [`robots`], [`origin`], [`bot`], [`copy`], [`pace`] and [`decision`] read no clock and open no socket.
//!   The imports of modules have no cycles. `tests/it/modules.rs` checks both rules.
//! - Only [`decision`] can make a [`decision::Decision`], and only from a [`decision::Question`].
//! - While robotgate runs, every decision takes the result of the last fetch of the origin's robots.txt into account,
//!   even if that fetch failed.
//! - The credential in a CONNECT says only which bot sends the requests in it. What the bot may do depends on the
//!   configuration that is current at each request.
//! - No secret of robotgate, and no secret by which a bot proves who it is, reaches a log, an error or an origin.
//! - A message with a known ambiguity, such as two different lengths, is refused before robotgate interprets it.
//!   robotgate does not forward the head of a message as received, but writes a new head.
//! - If systemd keeps the listening sockets, no connection is refused during a restart. A stop closes no connection in
//!   the middle of a request, unless that request takes too long.
//! - Over HTTP/1.1, robotgate reuses a connection to an origin only for requests that it can send again on another
//!   connection. It closes a connection after a request with content.
//! - Over HTTP/1.1, the request for a robots.txt is the first on its connection. So the response to another request
//!   cannot be mistaken for the robots.txt.
//! - Limits bound how many connections and requests a client can have at the same time, and how much robotgate
//!   remembers of clients.
//! - A request to the admin listener changes nothing, except that it can make robotgate fetch a robots.txt. Changes go
//!   through the socket next to the cache file, which only the proxy's own user and root can open.
//! - There is one list of reasons, [`decision::Reason`], and one list of errors, [`upstream::ProxyError`].
//! - Counting takes no lock and formats nothing while a request is served.
//! - `robotgate.internal` is a site of the proxy itself (`proxy::internal_site`). Requests for it are never resolved,
//!   forwarded or decided on.
//! - Errors become HTTP responses in one place for bots, `proxy::respond`, and in one place for operators,
//!   `admin::http::problem`.
//! - A reload that fails changes nothing. Each decision uses all or nothing of a reload that succeeds, except that new
//!   limits of `[pace]` also apply to requests that already wait.
//! - [`proxy`] never decides, and [`decision`] never acts.

pub mod admin;
pub mod audit;
pub mod authority;
pub mod bot;
pub mod cli;
mod colour;
mod columns;
pub mod config;
pub mod copy;
mod database;
pub mod decision;
pub mod egress;
pub mod evidence;
pub mod expect;
mod explanation;
mod fair_semaphore;
pub mod fetch;
mod files;
pub mod fleet;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod history;
pub mod metrics;
pub mod origin;
pub mod pace;
mod pacer;
mod parallel;
mod pem;
pub mod proxy;
mod ratelimited;
pub mod replay;
pub mod report;
pub mod robots;
pub mod seal;
pub mod service;
pub mod store;
pub mod text;
pub mod trust;
pub mod upstream;
pub mod usage;
mod version;
mod wire;

pub use version::VERSION;
