//! Valid configurations and their meaning. Each submodule tests one other subject, such as invalid configurations,
//! warnings, or the watcher.

use std::path::Path;
use std::time::{Duration, SystemTime};

use robotgate::audit::{ClientMask, LoggedUserAgent, Privacy, RedactQuery};
use robotgate::bot::{Enforcement, Identity, Unidentified};
use robotgate::config::{Config, ConfigError, Environment, HttpsMode, Output, Sources, Unverifiable};
use robotgate::decision::Verdict;
use robotgate::egress::{Destinations, Ports};
use robotgate::origin::HostPattern;
use robotgate::pace::{BeyondMax, CrawlDelay, Policy as Pace};

mod bad;
mod credentials;
mod example;
mod schema;
mod sources;
mod unreachable;
mod warnings;
mod watch;

fn environment() -> Environment {
    Environment {
        state_dir: "/var/lib/robotgate".into(),
        cores: 4,
    }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse_in(&environment(), "robotgate.toml", text, Path::new("/etc/robotgate"))
}

fn good(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_empty_file_means_the_defaults() {
    let config = good("");
    assert_eq!(config, Config::built_in(&environment()));
    assert_eq!(config.proxy.listen, ["127.0.0.1:3128".parse().unwrap()]);
    assert_eq!(config.proxy.threads, 4);
    assert_eq!(config.https.mode, HttpsMode::Intercept);
    assert_eq!(config.https.ca_key, Path::new("/var/lib/robotgate/ca-key.pem"));
    assert!(config.https.upstream_http2);
    assert_eq!(config.robots.policy.default_ttl, Duration::from_secs(86_400));
    assert_eq!(
        config.robots.fetch.user_agent,
        concat!("robotgate/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(config.robots.max_fetches, 1024);
    assert_eq!(config.robots.wait, Duration::from_secs(5));
    assert_eq!(config.robots.fetch.idle_timeout, Duration::from_secs(10));
    assert_eq!(config.cache.max_bytes, 268_435_456);
    assert_eq!(config.cache.disk.max_bytes, 2 << 30);
    assert_eq!(
        config.cache.path.as_deref(),
        Some(Path::new("/var/lib/robotgate/robots.redb"))
    );
    assert_eq!(config.cache.disk.keep, Duration::from_secs(90 * 86_400));
    assert_eq!(config.audit.output, Output::Stdout);
    assert_eq!(config.identity.unidentified, Unidentified::Deny);
    assert!(config.bots.is_empty() && config.expect.is_empty());
    assert!(good("[proxy]\n[https]\n[robots]\n") == config);
    assert_eq!(Config::default(), Config::built_in(&Environment::of_process()));
}

#[test]
fn a_byte_order_mark_and_crlf_line_ends_are_ignored() {
    assert_eq!(good("\u{feff}[proxy]\r\nthreads = 2\r\n").proxy.threads, 2);
}

#[test]
fn keys_of_every_section_are_read() {
    let config = good(
        r#"
        [proxy]
        listen = ["127.0.0.1:8080", "[::1]:0", "[::1]:0"]
        threads = 2
        name = "gate-1"
        annotate-allowed = false
        via = false
        max-header-bytes = "16KiB"
        max-header-fields = 256
        header-timeout = "1s 500ms"
        shutdown-timeout = "0s"
        [https]
        mode = "tunnel"
        unverifiable = "allow"
        ca-certificate = "ca/cert.pem"
        ca-key = "/secret/key.pem"
        upstream-http2 = false
        [robots]
        profile = "google"
        user-agent = "robotgate/9 (+https://acme.example)"
        soft-404 = false
        no-robots-ttl = "10m"
        fetch-idle-timeout = "250ms"
        max-fetches = 10_000
        [cache]
        path = "state/robots.redb"
        persist = true
        keep = "3650d"
        max-bytes = 1048576
        max-disk-bytes = "1024TiB"
        [egress]
        allow = ["10.0.0.0/8", "192.0.2.7", "fd00::/8", "::ffff:10.9.0.0/112", "Intranet.example.", ".corp.example"]
        deny = ["10.1.0.0/16", "::ffff:10.2.0.1", "bücher.example"]
        ports = [80, "443", 22, "8000-8999"]
        dns = ["1.1.1.1", "127.0.0.1:5353", "::1", "[::1]:5353"]
        [audit]
        path = "log/audit.jsonl"
        redact-query = ["token", "a key"]
        mask-client = { ipv6 = 48 }
        user-agent = "product"
        [identity]
        unidentified = "wildcard"
        [pace]
        delay = "1s 500ms"
        concurrency = 3
        crawl-delay = "enforce"
        crawl-delay-max = "1h"
        beyond-max = "refuse"
        max-wait = "0s"
        max-waiting = 20
        [[bot]]
        name = "slow"
        user-agents = ["SlowBot"]
        delay = "1h"
        "#,
    );
    assert_eq!(config.proxy.listen.len(), 3);
    assert_eq!(
        (
            config.proxy.threads,
            &*config.proxy.name,
            config.proxy.annotate_allowed,
            config.proxy.via
        ),
        (2, "gate-1", false, false)
    );
    assert_eq!((config.proxy.head.bytes, config.proxy.head.fields), (16 << 10, 256));
    let pace = Pace {
        delay: Duration::from_millis(1500),
        concurrency: Some(3),
        crawl_delay: CrawlDelay::Enforce,
        crawl_delay_max: Duration::from_secs(3600),
        beyond_max: BeyondMax::Refuse,
        max_wait: Duration::ZERO,
        max_waiting: 20,
    };
    assert_eq!(config.pace, Some(pace));
    let delays: Vec<_> = config.bots.iter().map(|bot| bot.delay).collect();
    assert_eq!(delays, [Some(Duration::from_secs(3600))]);
    assert_eq!(config.proxy.header_timeout, Duration::from_millis(1500));
    assert_eq!(config.proxy.shutdown_timeout, Duration::ZERO);
    assert_eq!(
        (config.https.mode, config.https.unverifiable),
        (HttpsMode::Tunnel, Unverifiable::Allow)
    );
    assert_eq!(config.https.ca_certificate, Path::new("/etc/robotgate/ca/cert.pem"));
    assert_eq!(config.https.ca_key, Path::new("/secret/key.pem"));
    assert!(!config.https.upstream_http2);
    assert_eq!(config.robots.fetch.user_agent, "robotgate/9 (+https://acme.example)");
    assert_eq!(
        (config.robots.policy.soft_404, config.robots.policy.no_robots_ttl),
        (false, Duration::from_secs(600))
    );
    assert_eq!(
        (config.robots.max_fetches, config.robots.fetch.idle_timeout),
        (10_000, Duration::from_millis(250))
    );
    assert_eq!(
        config.cache.path.as_deref(),
        Some(Path::new("/etc/robotgate/state/robots.redb"))
    );
    assert_eq!(config.cache.disk.keep, Duration::from_secs(3650 * 86_400));
    assert_eq!(config.cache.max_bytes, 1 << 20);
    assert_eq!(config.cache.disk.max_bytes, 1 << 50);
    let networks = |destinations: &Destinations| {
        destinations
            .networks
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        networks(&config.egress.guard.allow),
        ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8", "10.9.0.0/16"]
    );
    assert_eq!(networks(&config.egress.guard.deny), ["10.1.0.0/16", "10.2.0.1/32"]);
    let hosts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<HostPattern>>()
    };
    assert_eq!(
        config.egress.guard.allow.hosts,
        hosts(&["intranet.example", ".corp.example"])
    );
    assert_eq!(config.egress.guard.deny.hosts, hosts(&["xn--bcher-kva.example"]));
    assert_eq!(
        config.egress.guard.ports,
        Ports::only(vec![80..=80, 443..=443, 22..=22, 8000..=8999])
    );
    let dns: Vec<_> = config.egress.dns.iter().map(ToString::to_string).collect();
    assert_eq!(dns, ["1.1.1.1:53", "127.0.0.1:5353", "[::1]:53", "[::1]:5353"]);
    assert_eq!(
        config.audit.output,
        Output::File("/etc/robotgate/log/audit.jsonl".into())
    );
    assert_eq!(
        config.audit.privacy,
        Privacy {
            mask_client: Some(ClientMask { ipv4: 24, ipv6: 48 }),
            redact_query: RedactQuery::Values(["token", "a key"].map(str::to_owned).into()),
            user_agent: LoggedUserAgent::Product,
        }
    );
    assert_eq!(config.identity.unidentified, Unidentified::Wildcard);
}

#[test]
fn soft_404_is_on_by_default_only_in_the_google_profile() {
    for (robots, counts) in [
        ("", true),
        ("profile = 'google'", true),
        ("profile = 'rfc9309'", false),
        ("profile = 'rfc9309'\nsoft-404 = true", true),
        ("profile = 'google'\nsoft-404 = false", false),
    ] {
        let config = good(&format!("[robots]\n{robots}"));
        assert_eq!(config.robots.policy.soft_404, counts, "{robots}");
    }
}

#[test]
fn default_ttls_adapt_to_the_configured_ones() {
    let times = |text: &str| {
        let robots = good(&format!("[robots]\n{text}")).robots.policy;
        [robots.min_ttl, robots.default_ttl, robots.max_ttl].map(|time| time.as_secs())
    };
    assert_eq!(times(""), [300, 86_400, 86_400]);
    assert_eq!(times("max-ttl = '1h'"), [300, 3600, 3600]);
    assert_eq!(times("max-ttl = '1m'"), [60, 60, 60]);
    assert_eq!(times("default-ttl = '1m'"), [60, 60, 86_400]);
    assert_eq!(times("min-ttl = '2h'"), [7200, 86_400, 86_400]);
    assert_eq!(times("max-ttl = '48h'"), [300, 86_400, 172_800]);
}

#[test]
fn the_log_is_sealed_next_to_the_evidence_unless_the_file_says_otherwise() {
    let none = good("[cache]\npath = '/var/lib/a/robots.redb'");
    assert_eq!((none.seals, none.seal.origin), (false, None));
    assert_eq!(none.seal.path, Path::new("/var/lib/a/seal"));
    let all = good(
        "[audit]\npath = '/log'\n[evidence]\nenabled = false\nseal = true\nseal-path = '/s'\nseal-origin = 'a.example/1'",
    );
    assert_eq!((all.seals, &*all.seal.path), (true, Path::new("/s")));
    assert_eq!(all.seal.origin.as_deref(), Some("a.example/1"));
    for (bad, why) in [
        (
            "[evidence]\nseal = true",
            "the log is on standard output, and only a file can be sealed",
        ),
        (
            "[evidence]\nseal-origin = 'a b'",
            "the name is empty, or has a space or a +",
        ),
    ] {
        let error = parse(bad).expect_err(bad).to_string();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn the_store_of_evidence_is_next_to_the_cache_file() {
    let path = |text: &str| good(text).evidence.map(|evidence| evidence.path);
    let cache = "[cache]\npath = '/var/lib/a/robots.redb'\n";
    assert_eq!(path(cache).as_deref(), Some(Path::new("/var/lib/a/evidence.redb")));
    let evidence_path = "[cache]\npersist = false\n[evidence]\npath = '/data/evidence'";
    assert_eq!(path(evidence_path).as_deref(), Some(Path::new("/data/evidence")));
    for none in ["[cache]\npersist = false", "[evidence]\nenabled = false"] {
        assert_eq!(path(none), None, "{none}");
    }
    let options = good("[evidence]\nkeep = '2d'\nmax-bytes = '16MiB'\nrequired = true").evidence;
    let options = options.expect("it is on");
    assert_eq!(
        (options.keep, options.max_bytes, options.required),
        (Duration::from_secs(2 * 86_400), 16 << 20, true)
    );
    for (bad, why) in [
        (
            "[evidence]\nenabled = false\npath = '/a'",
            "remove this key, or remove `enabled = false`",
        ),
        (
            "[evidence]\npath = '/a'\n[audit]\npath = '/a'",
            "audit.path names the same file",
        ),
        (
            "[evidence]\npath = '/a'\n[cache]\npath = '/a'",
            "cache.path names the same file",
        ),
    ] {
        let error = parse(bad).expect_err(bad).to_string();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn a_cache_without_persist_has_no_file() {
    let cache = good("[cache]\npersist = false\nkeep = '1d'").cache;
    assert_eq!((cache.path, cache.disk.keep), (None, Duration::from_secs(86_400)));
}

#[test]
fn bots_are_identified_by_the_configured_user_agents() {
    let config = good(
        r#"
        [[bot]]
        name = "AcmeBot"
        user-agents = ["AcmeBot"]
        [[bot]]
        name = "the scanner"
        user-agents = ["scan/*", "Scanner"]
        robots-agents = ["Scanner", "MJ12bot"]
        enforcement = "exempt"
        "#,
    );
    let Identity::Bot(bot) = config.bots.identify([&b"scan/1.0"[..]]) else {
        panic!("no bot")
    };
    assert_eq!((&*bot.name, bot.enforcement), ("the scanner", Enforcement::Exempt));
    assert_eq!(bot.robots_agents, ["Scanner", "MJ12bot"].map(Box::<str>::from));
    assert_eq!(
        config.bots.named("AcmeBot").unwrap().robots_agents,
        [Box::<str>::from("AcmeBot")]
    );
    assert_eq!(config.bots.len(), 2);
}

#[test]
fn expectations_have_their_line_number() {
    let config = good(
        "# a comment\n\n[[expect]]\nagent = 'AcmeBot'\nurl = 'https://example.com/a'\nrobots = ''\nverdict = 'allow'\n\
         [[expect]]\nverdict = 'unverifiable'\nagent = ''\nurl = 'http://example.com'\nrobots = '''\nDisallow: /'''\n",
    );
    let lines: Vec<_> = config
        .expect
        .iter()
        .map(|expect| (expect.line, expect.verdict))
        .collect();
    assert_eq!(lines, [(3, Verdict::Allow), (8, Verdict::Unverifiable)]);
    assert_eq!(config.expect[1].robots, "Disallow: /");
}

#[test]
fn a_tunnel_exception_applies_to_its_host_until_its_date() {
    let entry = |host: &str, until: &str| {
        good(&format!(
            "[[https.tunnel]]\nhost = '{host}'\nreason = 'pinned'\nuntil = {until}\n"
        ))
        .https
    };
    let january_31 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_801_353_600);
    let day = Duration::from_secs(86_400);

    let covered = [
        ("bank.example", "bank.example", true),
        ("Bank.Example", "BANK.example.", true),
        ("bank.example", "www.bank.example", false),
        ("bank.example", "mybank.example", false),
        (".bank.example", "bank.example", true),
        (".bank.example", "www.BANK.example", true),
        (".bank.example", "a.b.bank.example", true),
        (".bank.example", "mybank.example", false),
        (".bank.example", ".bank.example", false),
        ("bücher.example", "xn--bcher-kva.example", true),
        ("192.0.2.1", "192.0.2.1", true),
        ("2001:DB8::1", "[2001:db8::1]", true),
        ("[2001:db8::1]", "2001:db8::1", true),
        (".bank.example", "ük.example", false),
    ];
    for (host, named, expected) in covered {
        let https = entry(host, "2027-01-31");
        assert_eq!(
            https.tunnel_exception(named, january_31).is_some(),
            expected,
            "{host} {named}"
        );
    }

    let second = Duration::from_secs(1);
    let https = entry("bank.example", "2027-01-31");
    assert!(
        https
            .tunnel_exception("bank.example", january_31 + day - second)
            .is_some()
    );
    assert!(https.tunnel_exception("bank.example", january_31 + day).is_none());
    let https = entry("bank.example", "2027-01-31T12:00:00+01:00");
    let eleven = january_31 + Duration::from_secs(11 * 3600);
    assert!(https.tunnel_exception("bank.example", eleven - second).is_some());
    assert!(https.tunnel_exception("bank.example", eleven).is_none());
    assert_eq!(&*https.tunnels[0].reason, "pinned");
}

#[test]
fn a_later_tunnel_exception_applies_if_the_earlier_one_expired() {
    let https = good(
        "[[https.tunnel]]\nhost = 'a.example'\nreason = 'old'\nuntil = 2020-01-01\n\
         [[https.tunnel]]\nhost = 'a.example'\nreason = 'new'\nuntil = 9000-01-01\n",
    )
    .https;
    let found = https.tunnel_exception("a.example", SystemTime::now());
    assert_eq!(found.map(|tunnel| &*tunnel.reason), Some("new"));
}

#[test]
fn extra_roots_are_relative_to_the_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("root.pem"), ROOT).unwrap();
    let file = folder.path().join("robotgate.toml");
    std::fs::write(&file, "[https]\nextra-roots = ['root.pem']").unwrap();
    assert_eq!(Config::load(&Sources::from(&*file)).unwrap().https.extra_roots.len(), 1);
}

#[test]
fn the_error_names_a_file_that_cannot_be_read() {
    let error = Config::load(&Sources::from(Path::new("/nowhere/robotgate.toml"))).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read /nowhere/robotgate.toml: there is no such file; check the path"),
        "{error}"
    );
}

const ROOT: &str = include_str!("config/root.pem");
