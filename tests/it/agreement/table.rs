//! The table: who asks for what, and the answers.

/// The name of the client in [`CLIENTS`], the URL, and the answers: in each `https.mode` (`intercept`, `tunnel`,
/// `tunnel` with `unverifiable = "allow"`, `refuse`), or one answer for all modes.
///
/// The URL is a whole URL, or a way, the name of a site in [`SITES`](super::sites::SITES), and a path. The ways `http`
/// and `https` go to [`NAME`](crate::support::NAME); `pinned` is https to a host of `[[https.tunnel]]`.
///
/// In an answer, the first character says what happens to the request: `+` allowed, `-` refused, `~` forwarded although
/// not allowed, `=` deferred. The other characters are the reason. The answer `own` means that the proxy itself
/// responds, without a decision.
pub type TableRow = (&'static str, &'static str, &'static [&'static str]);

/// The questions to a robotgate that waits 30 days before it uses an old robots.txt, and has no `[pace]`.
#[rustfmt::skip]
pub const ROWS: &[TableRow] = &[
    // Sites with different kinds of robots.txt, over http, where robotgate always sees the path, and over https.
    ("bot", "http mixed /open",        &["+no-rule"]),
    ("bot", "http mixed /private",     &["-rule"]),
    ("bot", "http mixed /robots.txt",  &["+robots-file"]),
    ("bot", "http open /x",            &["+rule"]),
    ("bot", "http shut /x",            &["-rule"]),
    ("bot", "http none /x",            &["+no-robots"]),
    ("bot", "http soft /x",            &["+soft-404"]),
    ("bot", "http loop /x",            &["+no-robots"]),
    ("bot", "http complex /x",         &["+no-rule"]),
    ("bot", "http complex {slow}",     &["-too-complex"]),
    ("bot", "http down /x",            &["-unreachable"]),
    ("bot", "http down /robots.txt",   &["+robots-file"]),
    ("bot", "https mixed /open",       &["+no-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https mixed /private",    &["-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https mixed /robots.txt", &["+robots-file", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https open /x",           &["+rule", "+rule", "+rule", "-connect-refused"]),
    ("bot", "https shut /x",           &["-rule", "-rule", "-rule", "-connect-refused"]),
    ("bot", "https none /x",           &["+no-robots", "+no-robots", "+no-robots", "-connect-refused"]),
    ("bot", "https soft /x",           &["+soft-404", "+soft-404", "+soft-404", "-connect-refused"]),
    ("bot", "https loop /x",           &["+no-robots", "+no-robots", "+no-robots", "-connect-refused"]),
    ("bot", "https complex {slow}",    &["-too-complex", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("bot", "https down /x",           &["-unreachable", "-unreachable", "-unreachable", "-connect-refused"]),
    // FTP.
    ("bot", "ftp://{ftp}/pub/a.txt",       &["+no-rule"]),
    ("bot", "ftp://{ftp}/private/b.txt",   &["-rule"]),
    ("bot", "ftp://{ftp}/robots.txt",      &["+robots-file"]),
    ("bot", "ftp://me@{ftp}/pub/a.txt",    &["-ftp-login"]),
    ("report", "ftp://{ftp}/private/b.txt", &["~rule"]),
    ("report", "ftp://me@{ftp}/pub/a.txt", &["-ftp-login"]),
    // Spellings of a path.
    ("bot", "http mixed /x/../private",  &["-rule"]),
    ("bot", "http mixed /%70rivate",     &["-rule"]),
    ("bot", "http mixed //private",      &["-rule"]),
    ("bot", "https shut /x/../y",        &["-rule", "-rule", "-rule", "-connect-refused"]),
    // An entry in `[[https.tunnel]]` makes a tunnel of an https URL in every mode, and has no effect on http.
    ("bot", "pinned mixed /open",      &["~unverifiable"]),
    ("bot", "pinned mixed /private",   &["~unverifiable"]),
    ("bot", "pinned open /x",          &["+rule"]),
    ("bot", "pinned shut /x",          &["-rule"]),
    ("bot", "pinned none /x",          &["+no-robots"]),
    ("bot", "pinned down /x",          &["-unreachable"]),
    ("bot", "http://other.example:{http}/private", &["-rule"]),
    // Other identities.
    ("token", "http mixed /private",     &["-rule"]),
    ("token", "https mixed /private",    &["-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("token", "pinned mixed /private",   &["~unverifiable"]),
    ("browser", "http mixed /open",      &["-unidentified", "-unidentified", "+no-rule", "+no-rule"]),
    ("browser", "http mixed /private",   &["-unidentified", "-unidentified", "-rule", "-rule"]),
    ("browser", "http mixed /robots.txt", &["+robots-file"]),
    ("browser", "https mixed /open",     &["-unidentified", "-unidentified", "~unverifiable", "-connect-refused"]),
    ("browser", "https open /x",         &["-unidentified", "-unidentified", "+rule", "-connect-refused"]),
    ("browser", "pinned mixed /open",    &["~unverifiable"]),
    ("browser", "pinned shut /x",        &["-rule"]),
    ("nobody", "http open /x",           &["-unidentified", "-unidentified", "+rule", "+rule"]),
    ("nobody", "pinned open /x",         &["+rule"]),
    ("proven", "http mixed /private",    &["-rule"]),
    ("proven", "https mixed /open",      &["+no-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("proven", "pinned mixed /open",     &["~unverifiable"]),
    ("proven report", "http mixed /private",   &["~rule"]),
    ("unproven", "http open /x",         &["-unauthenticated"]),
    ("unproven", "http open /robots.txt", &["-unauthenticated"]),
    ("unproven", "https open /x",        &["-unauthenticated"]),
    ("unproven", "pinned open /x",       &["-unauthenticated"]),
    ("unproven", "http://closed.example/", &["-unauthenticated"]),
    ("wrong secret", "http open /x",     &["-unauthenticated"]),
    ("wrong secret", "https open /x",    &["-unauthenticated"]),
    ("impostor", "http mixed /open",     &["-identity"]),
    ("impostor", "http mixed /robots.txt", &["-identity"]),
    ("impostor", "https mixed /open",    &["-identity", "-identity", "-identity", "-connect-refused"]),
    ("impostor", "pinned mixed /open",   &["-identity"]),
    ("impostor", "http://closed.example/", &["-egress"]),
    ("certified", "http mixed /open",    &["+no-rule"]),
    ("certified", "http mixed /private", &["-rule"]),
    ("certified impostor", "http mixed /open", &["-identity"]),
    ("uncertified", "http mixed /open",  &["-unauthenticated"]),
    ("in network", "http mixed /open",   &["+no-rule"]),
    ("in network", "http mixed /private", &["-rule"]),
    ("impostor in network", "http mixed /open", &["-identity"]),
    ("out of network", "http mixed /open", &["-unauthenticated"]),
    // If the site is the reason why a request is not allowed, `report` forwards the request; otherwise, it does not.
    // The site cannot cause a refusal of an exempt bot, but `[egress]` and `https.mode = "refuse"` still apply.
    ("report", "http mixed /open",       &["+no-rule"]),
    ("report", "http mixed /private",    &["~rule"]),
    ("report", "http down /x",           &["~unreachable"]),
    ("report", "https mixed /private",   &["~rule", "~unverifiable", "~unverifiable", "-connect-refused"]),
    ("report", "https shut /x",          &["~rule", "~rule", "~rule", "-connect-refused"]),
    ("report", "pinned shut /x",         &["~rule"]),
    ("report", "http://closed.example/", &["-egress"]),
    ("report", "http://inside.example/", &["-egress"]),
    ("report", "http://{admin}/",        &["-egress"]),
    ("unproven report", "http shut /x",  &["-unauthenticated"]),
    ("unproven report", "https shut /x", &["-unauthenticated"]),
    ("exempt", "http mixed /private",    &["+exempt"]),
    ("exempt", "http down /x",           &["+exempt"]),
    ("exempt", "https mixed /private",   &["+exempt", "+exempt", "+exempt", "-connect-refused"]),
    ("exempt", "pinned shut /x",         &["+exempt"]),
    ("exempt", "https://closed.example/", &["-egress"]),
    ("exempt", "http://{proxy}/",        &["-egress"]),
    // A bot with `exempt-hosts` is exempt only at those hosts.
    ("permitted", "http://other.example:{http}/private", &["+exempt"]),
    ("permitted", "http mixed /private", &["-rule"]),
    ("permitted", "pinned shut /x",      &["+exempt"]),
    ("permitted", "https mixed /private", &["-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    // Sites that forbid training, everywhere or for some paths.
    ("bot", "http train /x",             &["+no-rule"]),
    ("trainer", "http train /x",         &["-usage"]),
    ("trainer", "http part /art",        &["-usage"]),
    ("trainer", "http part /x",          &["+no-rule"]),
    ("trainer", "http none /x",          &["+no-robots"]),
    ("trainer", "http shut /x",          &["-rule"]),
    ("trainer", "https train /x",        &["-usage", "-usage", "-usage", "-connect-refused"]),
    ("trainer", "https part /art",       &["-usage", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("trainer", "https part /x",         &["+no-rule", "-unverifiable", "~unverifiable", "-connect-refused"]),
    ("trainer", "pinned train /x",       &["-usage"]),
    ("trainer", "pinned part /art",      &["~unverifiable"]),
    ("report trainer", "http train /x",  &["~usage"]),
    ("report trainer", "https train /x", &["~usage", "~usage", "~usage", "-connect-refused"]),
    // Sites that forbid text and data mining in their `tdmrep.json`.
    ("bot", "http mine /mine",           &["+no-robots"]),
    ("miner", "http mine /mine",         &["-usage"]),
    ("miner", "http mine /x",            &["+no-robots"]),
    ("miner", "http none /x",            &["+no-robots"]),
    ("miner", "http shut /x",            &["-rule"]),
    ("miner", "https mine /mine",        &["-usage", "-usage", "-usage", "-connect-refused"]),
    // Questions that name the purposes themselves.
    ("asked as miner", "http mine /mine", &["-usage"]),
    ("asked as miner", "http mine /x",   &["+no-robots"]),
    ("asked as miner", "https mine /mine", &["-usage", "-usage", "-usage", "-connect-refused"]),
    ("asked as trainer", "http train /x", &["-usage"]),
    ("asked as trainer", "http part /x", &["+no-rule"]),
    // Destinations that bots may not reach.
    ("bot", "http://closed.example/x",   &["-egress"]),
    ("bot", "https://closed.example/x",  &["-egress"]),
    ("bot", "https://shop.example:25/x", &["-egress"]),
    ("bot", "http://10.0.0.1/x",         &["-egress"]),
    ("bot", "http://inside.example/x",   &["-egress"]),
    ("bot", "https://inside.example/x",  &["-egress", "-egress", "-egress", "-connect-refused"]),
    ("bot", "http://{proxy}/",           &["-egress"]),
    ("bot", "https://{proxy}/",          &["-egress"]),
    ("bot", "http://{admin}/robots.txt", &["-egress"]),
    ("bot", "https://{admin}/",          &["-egress"]),
    // The name of the internal site, for which nothing is decided.
    ("bot", "http://robotgate.internal/", &["own"]),
    ("bot", "https://robotgate.internal/", &["own"]),
    ("unproven", "http://robotgate.internal/", &["own"]),
];

/// The questions to a robotgate that uses an old robots.txt from the first failure on, and enforces `[pace]`.
#[rustfmt::skip]
pub const LATE_ROWS: &[TableRow] = &[
    // Sites that fail: `lost`, whose robots.txt robotgate has, and `down`, which never served one.
    ("bot", "http lost /open",         &["+last-copy"]),
    ("bot", "http lost /private",      &["-last-copy"]),
    ("report", "http lost /private",   &["~last-copy"]),
    ("exempt", "http lost /private",   &["+exempt"]),
    ("bot", "https lost /private",     &["-last-copy"]),
    ("bot", "pinned lost /private",    &["~unverifiable"]),
    ("bot", "http down /x",            &["+unreachable-too-long"]),
    ("bot", "https down /x",           &["+unreachable-too-long"]),
    ("bot", "pinned down /x",          &["+unreachable-too-long"]),
    ("bot", "http down /robots.txt",   &["+robots-file"]),
    // A Crawl-delay that is too long, and requests that come too early.
    ("bot", "http lazy /x",            &["-pace"]),
    ("bot", "http lazy /private",      &["-rule"]),
    ("bot", "https lazy /x",           &["-pace"]),
    ("report", "http lazy /x",         &["+no-rule"]),
    ("exempt", "http lazy /x",         &["+exempt"]),
    ("slow", "http mixed /open",       &["=pace"]),
    ("slow", "http mixed /private",    &["-rule"]),
    ("slow", "https mixed /open",      &["=pace"]),
    ("slow", "http none /x",           &["=pace"]),
    ("slow", "http lost /open",        &["=pace"]),
];

/// A client, and what the API and the commands are asked about it.
pub struct Client {
    pub name: &'static str,
    /// Empty if the client sends no User-Agent.
    pub agent: &'static str,
    pub proof: Proof,
    /// False if the proof is invalid, or for another bot than the one that the User-Agent names.
    pub fits: bool,
    /// The purposes that a question names in place of the bot's own. A request cannot name any.
    pub purposes: &'static [&'static str],
}

/// How a client proves which bot it is.
#[derive(Clone, Copy, PartialEq)]
pub enum Proof {
    None,
    Credential(&'static str),
    /// The certificate that `certificates` of the bot `certified` names.
    Certificate,
    /// An address in `networks` of the bot `networked`.
    Network,
}

const fn client(name: &'static str, agent: &'static str, proof: Proof) -> Client {
    Client {
        name,
        agent,
        proof,
        fits: true,
        purposes: &[],
    }
}

const fn impostor(name: &'static str, agent: &'static str, proof: Proof) -> Client {
    Client {
        fits: false,
        ..client(name, agent, proof)
    }
}

const fn asked_as(name: &'static str, agent: &'static str, purposes: &'static [&'static str]) -> Client {
    Client {
        purposes,
        ..client(name, agent, Proof::None)
    }
}

#[rustfmt::skip]
pub const CLIENTS: &[Client] = &[
    client("bot",       "Shopper/1.0",   Proof::None),
    client("token",     "curl/8.5.0",    Proof::None),
    client("browser",   "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Proof::None),
    client("nobody",    "",              Proof::None),
    client("report",    "Reporter/1.0",  Proof::None),
    client("exempt",    "Scanner/1.0",   Proof::None),
    client("permitted", "Partner/1.0",   Proof::None),
    client("slow",      "Snail/1.0",     Proof::None),
    client("trainer",   "Trainer/1.0",   Proof::None),
    client("report trainer", "Learner/1.0", Proof::None),
    client("miner",     "Miner/1.0",     Proof::None),
    asked_as("asked as miner",   "Shopper/1.0", &["tdm"]),
    asked_as("asked as trainer", "curl/8.5.0",  &["search", "ai-train"]),
    client("proven",          "AcmeBot/1.0", Proof::Credential(ACME)),
    client("unproven",        "AcmeBot/1.0", Proof::None),
    impostor("wrong secret",    "AcmeBot/1.0", Proof::Credential("acme:a-guess")),
    impostor("impostor",        "Shopper/1.0", Proof::Credential(ACME)),
    client("proven report",   "Auditor/1.0", Proof::Credential(AUDITOR)),
    client("unproven report", "Auditor/1.0", Proof::None),
    client("certified",       "SealBot/1.0", Proof::Certificate),
    impostor("certified impostor", "Shopper/1.0", Proof::Certificate),
    client("uncertified",     "SealBot/1.0", Proof::None),
    client("in network",      "LanBot/1.0",  Proof::Network),
    impostor("impostor in network", "Shopper/1.0", Proof::Network),
    client("out of network",  "LanBot/1.0",  Proof::None),
];

pub const ACME: &str = "acme:a-Secret-of-acme";
pub const AUDITOR: &str = "auditor:a-Secret-of-auditor";

/// The configuration of all gates.
pub const CONFIG: &str = r#"
[[bot]]
name = "shopper"
user-agents = ["Shopper"]
credentials = []

[[bot]]
name = "reporter"
user-agents = ["Reporter"]
credentials = []
enforcement = "report"

[[bot]]
name = "scanner"
user-agents = ["Scanner"]
credentials = []
enforcement = "exempt"

[[bot]]
name = "partner"
user-agents = ["Partner"]
credentials = []
exempt-hosts = ["other.example"]

[[bot]]
name = "trainer"
user-agents = ["Trainer"]
credentials = []
purposes = ["ai-train"]

[[bot]]
name = "learner"
user-agents = ["Learner"]
credentials = []
purposes = ["ai-train"]
enforcement = "report"

[[bot]]
name = "acme"
user-agents = ["AcmeBot"]

[[bot]]
name = "auditor"
user-agents = ["Auditor"]
enforcement = "report"

[[bot]]
name = "miner"
user-agents = ["Miner"]
credentials = []
purposes = ["tdm"]

[[bot]]
name = "certified"
user-agents = ["SealBot"]
credentials = []
certificates = ["bot.example"]

[[bot]]
name = "networked"
user-agents = ["LanBot"]
credentials = []
networks = ["127.0.0.2"]

[[https.tunnel]]
host = "other.example"
reason = "pins its certificate"
until = 2999-01-01

[egress]
deny = ["closed.example"]

[usage]
content-signal = "enforce"
content-usage = "enforce"
tdmrep = "enforce"
"#;
