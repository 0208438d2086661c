//! robotgate: a forward proxy between a company's bots and the internet that checks every request
//! against the robots.txt of the origin it goes to.
//!
//! This page is for those who work on it, and CONTRIBUTING.md says how; README.md and `docs` are for those who use it.
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
//! A pure core decides; a thin shell does the I/O. The core takes values and returns values: the
//! time and what the network said are among the values.
//!
//! # Code map
//!
//! The core, which touches no socket, no file and no clock:
//!
//! - [`robots`]: a robots.txt, parsed once and matched many times; which rule and line decided. For
//!   people it reads the text anew: [`robots::explain()`], why each rule won or lost;
//!   [`robots::statements`], what else the file says; [`robots::lint()`], what is amiss in it.
//! - [`origin`]: scheme, host and port; what a request is for ([`origin::Target`]), and the readings of its path.
//! - [`bot`]: from what a client proves and its User-Agent to a configured bot or a product token.
//! - [`copy`]: what is known of an origin: which copy holds, when to ask again, what a failure means. A state machine.
//! - [`decision`]: one [`decision::Question`] in, one [`decision::Decision`] out, for the proxy, a CONNECT, the API, `explain`
//!   and `[[expect]]`. The header, the log, the metrics, the API, `explain` and the page are views of it.
//! - [`trust`]: what makes clients trust the proxy, for each of them; a table of those that do not.
//!
//! The shell:
//!
//! - [`store`]: the copies in memory, and all of them on disk (`store::disk`). [`fetch`]: gets one from the network.
//! - [`egress`]: names to checked addresses. [`upstream`]: the connections to origins, made, kept and shared; a request and
//!   its response on one, over HTTP/1.1 and HTTP/2; what goes wrong then. `wire`: a connection whose writes never wait.
//! - [`proxy`]: listeners, CONNECT, interception, forwarding, refusing. Its text tells the way of
//!   a request.
//! - [`authority`]: the local certificate authority and its leaves.
//! - [`audit`]: the log of decisions, and of the fetches that they rest on.
//! - [`metrics`]: how much of everything, counted as it happens and written out when Prometheus asks. Its labels are
//!   closed lists or names of bots, never a host.
//! - [`admin`]: what an operator asks over HTTP ([`admin::http`]), at the admin listener and on a socket beside the
//!   copies on disk; and the client of that socket for the command `cache`, which reads the file itself where no proxy
//!   runs.
//! - [`config`]: the file as written → a checked [`config::Config`]; watching the file. Each value is used as it stands in
//!   its section: what a lower module works by, such as [`copy::Policy`], that module defines, and the section holds it.
//! - `explanation`: why a URL would be allowed or refused, of the rules that won and lost.
//! - [`expect`]: whether a configuration meets its own `[[expect]]` cases.
//! - `files`: reading files: no pipe, which could take for ever, and no secret that others can read.
//! - `fair_semaphore`: permits for work that only a few may do at once, fair between clients. `ratelimited`: log lines
//!   that are written once a second at most. `colour`: colour, where a terminal shows it. `columns`: a terminal's width,
//!   and texts that fit into it. [`text`]: text from outside made fit to show, and times as text.
//! - [`service`]: the daemon around all this: start, reload, stop; what came of the last reload; what systemd is told of
//!   it, and the sockets that come from there.
//! - [`cli`]: one file a subcommand; [`cli::live`], `cli::source`, `cli::complaint` and `cli::progress` are shared parts: a
//!   robots.txt fetched for a person, or read; errors on stderr; that something goes on.
//!
//! The tests beside the unit tests:
//!
//! - `tests/it`: the program as it runs, between an origin that can misbehave and real clients; the
//!   engine against a plain model and the stated cases in `tests/cases`.
//! - `tests/bench`: how long the engine takes to read and decide, and what the proxy costs, beside others; `cost` counts
//!   what an exchange and a decision take, and holds that to recorded numbers.
//! - `tests/fuzz`: the engine, a request's target and who sends it, a robots.txt's redirects, the configuration and whole
//!   exchanges, on what a fuzzer makes up; a package of its own. What is private otherwise it asks through `fuzzing`, a
//!   module that ordinary builds do not have.
//!
//! # Invariants
//!
//! - The address that was checked is the address that is dialled: [`egress`] hands out socket
//!   addresses, and nothing else resolves a name. None of them is one that robotgate listens on.
//! - Every request inside a tunnel is decided on its own. Nothing that a CONNECT was told is kept
//!   for later, but for who it is proven to be from.
//! - Nothing goes upstream, and no refusal goes down, before its decision is in the audit log, behind
//!   the fetch that it rests on.
//! - [`robots`], [`origin`], [`bot`], [`copy`] and [`decision`] read no clock and open no socket, no module imports one that
//!   imports it, and there is no way to a [`decision::Decision`] but through [`decision::Question::begin`] and
//!   [`decision::Question::before_interception`]. `tests/it/modules.rs` checks the first two.
//! - Nothing older than the last fetch is taken for it while robotgate runs. After a restart, a copy within its life may
//!   be older than a fetch that could not be written. What cannot be read back is not known, and so is fetched.
//! - What a CONNECT proves says who is inside, and nothing of what they may; it is looked up anew in the
//!   configuration in force for each request. No secret is kept, and none reaches a log, an error, an origin.
//! - What two parsers could read in two ways is refused before it is read in one; what goes on is written anew.
//! - A restart refuses no connection where systemd holds the sockets, and a stop closes none under a request.
//! - A connection to an origin that another request may have used carries none that could not be put twice, and content
//!   goes on one that is closed behind it. What was begun on a connection and has not ended leaves it to nobody else.
//! - Over HTTP/1.1, a robots.txt is the first thing that is asked for on its connection. So no answer to another request
//!   passes for one.
//! - What a client may have at once is bounded, and so is what is remembered of clients.
//! - Nobody changes anything at the admin listener, and no bot waits for it or gets there. What changes something is asked
//!   on the socket beside the copies, which only the proxy's own user and root can open.
//! - There is one list of reasons: [`decision::Reason`] feeds the header, the log, the metrics and the
//!   refusal's text; and one of errors, [`upstream::ProxyError`].
//! - Counting locks, allocates and formats nothing on the way of a request.
//! - `robotgate.internal` is the proxy itself (`proxy::internal_site`): no origin, never looked up, never sent on, never
//!   decided on.
//! - Errors become HTTP in one place, `proxy::respond`.
//! - A reload that fails leaves everything as it was; one that succeeds is seen whole by each
//!   request.
//! - [`proxy`] never decides, [`decision`] never does anything.

pub mod admin;
pub mod audit;
pub mod authority;
pub mod bot;
pub mod cli;
mod colour;
mod columns;
pub mod config;
pub mod copy;
pub mod decision;
pub mod egress;
pub mod expect;
mod explanation;
mod fair_semaphore;
pub mod fetch;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod metrics;
pub mod origin;
mod pem;
pub mod proxy;
mod ratelimited;
pub mod robots;
pub mod service;
pub mod store;
pub mod text;
pub mod trust;
pub mod upstream;
mod wire;
