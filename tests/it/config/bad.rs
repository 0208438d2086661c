//! Invalid configurations and their error messages.

use robotgate::config::{Config, ConfigError, Sources};

use super::parse;

/// All messages are in one snapshot, so that they can be reviewed in one place.
const BAD: &[&str] = &[
    // Syntax.
    "[proxy\nlisten = 1",
    "[proxy]\nname = \"gate",
    "[proxy]\nname = gate",
    "[proxy]\nname = 'a'\nname = 'b'",
    "a = 1\r\nb = \r\n",
    "]\nthen = = 1",
    // Keys.
    "[robot]\nsoft-404 = true",
    "\"a\\u001b[31m\\n\" = 1",
    "[proxy]\nna\u{7}me = 'a'",
    "[proxy]\nlisten = '127.0.0.1:1'\nidle_timeout = '1s'",
    "[robots]\ncolour = 'red'",
    "[proxy]\nlsten = '127.0.0.1:1'\n[https]\nmod = 'tunnel'\nmode = 'off'",
    "robots.defaultttl = '1h'",
    "[[bot]]\nname = 'a'\nuser-agents = ['a']\n[[bot]]\nname = 'b'\nuser-agent = ['b']",
    // Types.
    "[robots]\nsoft-404 = 'yes'",
    "[proxy]\nthreads = 'four'",
    "[proxy]\nlisten = 3128",
    "[proxy]\nlisten = ['127.0.0.1:1', 3128]",
    "[https]\nmode = 'mitm'",
    "[https]\nca-key = true",
    "[bot]\nname = 'a'",
    "[[proxy]]\nname = 'a'",
    "proxy = []",
    "[https.tunnel]\nhost = 'a.example'",
    "[egress]\nallow = '10.0.0.0/8'",
    "[robots]\nwait = true",
    "[robots]\nwait = \"\\u001b[31m\\n5s\"",
    "[robots]\nprofile = 'bing'",
    "[robots.unreachable]\ndeny-from = '1h'\ncolour = 'red'",
    "[robots.unreachable]\nthen = 'ask'\nwithout-copy = 'last-copy'",
    "[[robots.unreachable]]\nthen = 'deny'",
    "[robots]\nunreachable = 'deny'\nmax-fetches = '8'",
    "[refusals]\nstatus = 503\nunreachable-status = 451",
    "[refusals]\nstatus = '451'",
    "[cache]\npersist = 'no'\npath = false",
    "[pace]\ndelay = '2h'\nconcurrency = 0\ncrawl-delay = 'on'\ncrawl-delay-max = 300\nbeyond-max = 'deny'",
    "[pace]\nmax-wait = '1h'\nmax-waiting = 0\nretry-after = true",
    "[[bot]]\nname = 'a'\nuser-agents = ['a']\ndelay = '1s'",
    // Addresses.
    "[proxy]\nlisten = ':3128'",
    "[proxy]\nlisten = '3128'",
    "[proxy]\nlisten = '127.0.0.1'",
    "[proxy]\nlisten = ['::1', 'localhost:3128', 'gate.example:3128', '127.0.0.1:99999']",
    "[proxy]\nlisten = []",
    "[proxy]\nlisten = ['127.0.0.1:1', '127.0.0.1:1']",
    "[egress]\nallow = ['10.0.0.1/8', 'a b', '10.0.0.0/33']\ndns = ['1.1.1.1:0', 'dns.example']",
    "[egress]\nallow = ['*.corp.example', '10.1', '[::1]', 'http://a.example/']\ndeny = ['.10.0.0.1', 'a.example:80', '']",
    "[egress]\nports = [0, 65536, -1, 'http', '90-80', '80:90', '']",
    "[egress]\nports = [80, 80.5]",
    "[egress]\nports = [80, 443",
    "[egress]\nports = []",
    "[egress]\nports = 80",
    // Numbers, times and sizes.
    "[proxy]\nthreads = 0",
    "[proxy]\nthreads = -1",
    "[proxy]\nmax-connections = 0",
    "[proxy]\nmax-http2-streams = 10001",
    "[proxy]\nmax-client-leaves = '6000'",
    "[proxy]\ntunnel-timeout = '400d'",
    "[proxy.tls]\nlisten = '127.0.0.1:0'",
    "[proxy.tls]\nlisten = 'localhost:3129'\ncertificate = 'a.pem'\nkey = 'a.pem'\nclient-roots = ['missing.pem']",
    "[proxy]\nlisten = '127.0.0.1:3129'\n[proxy.tls]\nlisten = '127.0.0.1:3129'\ncertificate = 'a.pem'\nkey = 'b.pem'",
    "[proxy.tls]\nlisten = []\ncertificate = 'a.pem'\nkey = 'b.pem'",
    "[proxy]\nmax-header-bytes = '512B'\nmax-header-fields = 257",
    "[proxy]\nmax-header-bytes = 1048576\nmax-header-fields = 0",
    "[robots]\ndefault-ttl = \"24 hurs\"",
    "[robots]\ndefault-ttl = 3600",
    "[proxy]\nidle-timeout = '0s'",
    "[proxy]\nread-timeout = '2w'",
    "[robots]\nmin-ttl = '30m 1h'",
    "[robots]\nmin-ttl = '99999999999w'",
    "[robots]\nmin-ttl = '2h'\nmax-ttl = '1h'",
    "[robots]\nmin-ttl = '2h'\ndefault-ttl = '1h'",
    "[robots]\ndefault-ttl = '48h'",
    "[audit]\npath = 'one'\n[cache]\npath = './one'",
    "[audit]\nredact-query = 'token'\nuser-agent = 'none'\nmask-client = { ipv4 = 33, ipv6 = '64', ip = 1 }",
    "[audit]\nredact-query = ['token', '', 1]\nmask-client = 24",
    "[audit]\nredact-query = ['']",
    "[robots]\nmax-fetches = 0",
    "[robots]\nmax-fetches = 10001",
    "[robots]\nfetch-idle-timeout = '0s'",
    "[robots.unreachable]\ndeny-for = '0'",
    "[robots.unreachable]\ndeny-for = '366d'",
    "[robots.unreachable]\nretry-first = '0s'\nretry-busy = '999ms'\nretry-longest = '25h'",
    "[robots.unreachable]\nretry-first = '2h'",
    "[robots.unreachable]\nretry-first = '2m'\nretry-busy = '3m'\nretry-longest = '1m'",
    "[cache]\nmax-disk-bytes = '1MiB'",
    "[cache]\nkeep = '23h'",
    "[cache]\nkeep = 90",
    "[cache]\nmax-bytes = '256M'",
    "[cache]\nmax-bytes = '64KiB'",
    "[cache]\nmax-bytes = -1",
    "[cache]\nmax-bytes = '99999999TiB'",
    // Texts.
    "[proxy]\nname = 'my gate'",
    "[robots]\nuser-agent = \"gate\\r\\nX: 1\"",
    "[robots]\nuser-agent = ''",
    "[https]\nca-key = ''",
    "[https]\nca-certificate = '~/ca.pem'",
    "[https]\nca-certificate = 'ca.pem'\nca-key = 'ca.pem'",
    "[https]\nextra-roots = ['/nowhere/root.pem']",
    // Keys without an effect.
    "[robots.unreachable]\nthen = 'allow'\nwithout-copy = 'allow'",
    "[robots.unreachable]\nwithout-copy = 'deny'\nthen = 'deny'",
    "[cache]\npersist = false\npath = 'robots.redb'",
    // Tunnels.
    "[[https.tunnel]]",
    "[[https.tunnel]]\nhost = '*.a.example'\nreason = ' '\nuntil = 2027-01-31T12:00:00",
    "[[https.tunnel]]\nhost = 'a.example:443'\nreason = 'r'\nuntil = 12:00:00",
    "[[https.tunnel]]\nhost = 'https://a.example'\nreason = 'r'\nuntil = '2027-01-31'",
    "[[https.tunnel]]\nhost = '.192.0.2.1'\nreason = 'r'\nuntil = 9999-12-31",
    "[[https.tunnel]]\nhost = ''\nreason = 'r'\nuntil = 2027-02-30",
    // Bots.
    "[[bot]]",
    "[[bot]]\nname = ' '\nuser-agents = []",
    "[[bot]]\nname = 'a'\nuser-agents = ['']\n[[bot]]\nname = \"b\\u0007\"\nuser-agents = ['*', 'x']",
    "[[bot]]\nname = 'a'\nuser-agents = ['x']\n[[bot]]\nname = 'A'\nuser-agents = ['X']\n[[bot]]\nname = 'a'\nuser-agents = ['x']",
    "[[bot]]\nname = 'the bot'\nuser-agents = ['x']",
    "[[bot]]\nname = 'a'\nuser-agents = ['x']\nrobots-agents = ['*', 'Acme/2', 'two words', 'ä', '']\nenforcement = 'warn'",
    "[[bot]]\nname = 'a'\nuser-agents = ['x']\nrobots-agents = []",
    // Admin API.
    "[admin]\nlisten = '0.0.0.0:3180'",
    "[admin]\nlisten = ['127.0.0.1:3180', '[2001:db8::1]:0']",
    "[admin]\nlisten = ['3180', '127.0.0.1:1', '127.0.0.1:1']",
    "[admin]\nlisten = '127.0.0.1:3128'",
    "[admin]\nlisten = '10.0.0.1'",
    "[admin]\ntoken-file = '/nowhere/admin-token'",
    "[admin]\ntoken-file = ''",
    "[admin]\ntoken-file = '/'\ntoken = 'a'",
    // Proofs.
    "[identity]\ncredentials = '/nowhere/credentials'\nrequired = 'yes'",
    "[identity]\ncredentials = ''",
    "[identity]\nrequired = true",
    "[[bot]]\nname = 'a'\nuser-agents = ['x']\ncredentials = ['a']\ncertificates = []",
    "[[bot]]\nname = 'a'\nuser-agents = ['x']\ncertificates = ['', 'sha256:12']\nnetworks = ['10.1.2.3/16', 'lan']",
    // Expectations.
    "[[expect]]",
    "[[expect]]\nagent = 'a'\nurl = '/page'\nrobots = ''\nverdict = 'denied'",
    "[[expect]]\nagent = 'a'\nurl = 'gopher://example.com/'\nrobots = ''\nverdict = 'deny'",
    // Several mistakes in one file, in the file's order.
    "[robots]\nwait = '0s' # none\n\tfetch-timeout = 'ä' # a tab before\n[proxy]\nname = 'ä ö'\nthread = 1\n[cache]\nmax-bytes = {}",
];

#[test]
fn every_mistake_is_reported_with_its_position() {
    let mut errors = String::new();
    for text in BAD {
        let error = parse(text).expect_err(text);
        let ConfigError::Invalid(problems) = &error else {
            panic!("{error}")
        };
        for problem in problems.iter() {
            assert!(
                problem.line >= 1 && problem.column >= 1 && problem.width >= 1,
                "{problem:?}"
            );
            let line = text.lines().nth(problem.line - 1).unwrap_or_default();
            // The control character BEL is shown as a placeholder.
            assert_eq!(line.replace('\u{7}', "\u{fffd}"), problem.source_line, "{problem:?}");
        }
        errors.push_str(&format!("{error}\n\n"));
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn a_mistyped_address_with_a_password_is_never_quoted() {
    for line in [
        "url = \"redis://gate:hidden@redis.example\"",
        "url = \"redis://:hid den@redis.example\"",
        "url = \"redis//:hidden@redis.example\"",
        "url = \"http://gate:hidden@redis.example\"",
        "url = \"redis://gate:hidden:redis.example\"",
        "url = redis://gate:hidden@redis.example",
        "url = redis://gate:hidden",
        "url = \"redis://gate:hidden@redis.example",
        "url = [\"redis://gate:hidden@redis.example\"]",
        "ulr = \"redis://gate:hidden@redis.example\"",
        "url == \"redis://gate:hidden@redis.example\"",
    ] {
        let error = parse(&format!("[fleet]\n{line}")).expect_err(line);
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(!shown.contains("hid") && !shown.contains("den"), "{line}: {shown}");
        }
        let ConfigError::Invalid(problems) = &error else {
            panic!("{error}")
        };
        assert!(
            problems.iter().all(|problem| problem.source_line.starts_with("u")),
            "{error}"
        );
    }
}

#[test]
fn the_error_for_a_value_without_quotes_shows_the_quotes() {
    for (text, expected) in [
        (
            "[https]\nmode = intercept",
            r#"https.mode: put it in quotes: "intercept""#,
        ),
        (
            "[https]\nmode = tunnel # all",
            r#"https.mode: put it in quotes: "tunnel""#,
        ),
        ("[https]\nmode = nan", r#"https.mode: put it in quotes: "nan""#),
        ("[https]\nmode = true", r#"https.mode: put it in quotes: "true""#),
        ("[https]\nmode = []", "https.mode: expected a string in quotes"),
        (
            "[proxy]\nname = incoming\n",
            r#"proxy.name: put it in quotes: "incoming""#,
        ),
        ("[proxy]\nname = inf", r#"proxy.name: put it in quotes: "inf""#),
        ("[proxy]\nname = my gate", r#"proxy.name: put it in quotes: "my gate""#),
        (
            "[proxy]\nlisten = 127.0.0.1:3128\r\n",
            r#"proxy.listen: put it in quotes: "127.0.0.1:3128""#,
        ),
        (
            "[proxy]\nlisten = [127.0.0.1:3128]",
            r#"proxy.listen[0]: put it in quotes: "127.0.0.1:3128""#,
        ),
        (
            "[egress]\nallow = [\n  'a',\n  10.0.0.0/8,\n]",
            r#"egress.allow[1]: put it in quotes: "10.0.0.0/8""#,
        ),
        (
            "[egress]\nallow = internal",
            r#"egress.allow: put it in quotes: "internal""#,
        ),
        (
            "[proxy]\nread-timeout = 60s",
            r#"proxy.read-timeout: put it in quotes: "60s""#,
        ),
        ("[proxy]\nvia = False", "proxy.via: write true or false"),
        ("[proxy]\nvia = True", "proxy.via: write true or false"),
        ("[proxy]\nvia = yes", "proxy.via: write true or false"),
        (
            "[audit]\nredact-query = off # or on",
            "audit.redact-query: write true, false, or a list of names of parameters",
        ),
        ("[proxy]\nvia = no\nvia = on", "proxy.via: write true or false"),
        (
            "[nothing]\nx = 1\n[identity]\nrequired = on",
            "identity.required: write true or false",
        ),
        ("[proxy]\nthreads = four", "proxy.threads: write a whole number"),
        (
            "[[https.tunnel]]\nuntil = 2027-02-30",
            "https.tunnel[0].until: this is not TOML: invalid date",
        ),
        ("[proxy]\nname =", "proxy.name: the value is missing"),
        ("[proxy]\nname = # none", "proxy.name: the value is missing"),
        ("[proxy]\nname = 'a' b", "this is not TOML"),
        ("[proxy, a]", "this is not TOML"),
        ("[proxy]\nthreads = 1 name = 'a'", "this is not TOML"),
        ("[egress]\nallow = ['a']\nports, 80", "this is not TOML"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(&format!(": {expected}")), "{text:?}: {error}");
    }
}

#[test]
fn the_error_names_the_type_that_was_found() {
    for (text, expected) in [
        (
            "[proxy]\nname = 2027-01-31",
            "proxy.name: found a date, but expected a string in quotes",
        ),
        (
            "[[bot]]\nuser-agents = {}",
            "bot[0].user-agents: found a table, but expected a list in brackets",
        ),
        (
            "[https]\nmode = 'a`b`'",
            r#"https.mode: "a`b`" is not one of the choices; write "intercept", "tunnel" or "refuse""#,
        ),
        (
            "[robots]\nmax-fetches = 18446744073709551616",
            "robots.max-fetches: 18446744073709551616 fetches at once is out of range; write a number from 1 to 10000",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(&format!(": {expected}")), "{text:?}: {error}");
    }
}

#[test]
fn an_error_shows_the_line_and_underlines_the_value() {
    let text = format!("{}[robots]\ndefault-ttl = \"24 hurs\"\n", "\n".repeat(10));
    let expected = r#"
robotgate.toml:12:15: robots.default-ttl: "24 hurs" is not a duration; write a number and a unit, like "24h" or "5m 30s"
   12 | default-ttl = "24 hurs"
      |               ^^^^^^^^^"#;
    assert_eq!(parse(&text).unwrap_err().to_string(), expected.trim_start());
}

#[test]
fn invalid_utf_8_is_reported_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robotgate.toml");
    std::fs::write(&file, b"[proxy]\nname = '\xff'").unwrap();
    let ConfigError::Invalid(problems) = Config::load(&Sources::from(&*file)).unwrap_err() else {
        panic!("read")
    };
    let problem = problems.iter().next().unwrap();
    assert_eq!((problem.line, problem.column), (2, 9));
}

#[test]
fn roots_without_a_certificate_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |content: &str| {
        std::fs::write(folder.path().join("root.pem"), content).unwrap();
        Config::parse("f", "[https]\nextra-roots = ['root.pem']", folder.path())
            .unwrap_err()
            .to_string()
    };
    assert!(refused("").contains("contains no certificate"));
    let good = include_str!("root.pem");
    let block =
        |content: &str| format!("{good}# more\n-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n");
    let line = good.lines().count() + 2;
    for (bad, why) in [
        (block("!"), format!("cannot be read: line {} is not base64", line + 1)),
        (
            block("AAAA\nAA.A"),
            format!("cannot be read: line {} is not base64", line + 2),
        ),
        (
            good.replace("END", "ND"),
            "cannot be read: the block at line 1 does not end with a matching -----END line".to_owned(),
        ),
        (
            block("AAAA"),
            format!("cannot be used: the certificate at line {line} is damaged"),
        ),
    ] {
        let error = refused(&bad);
        assert!(error.contains(&why), "{why:?} is not in {error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(\\[\\[?(proxy|bot|https.tunnel|robots|robots.unreachable)\\]?\\]|\n|[a-z-]{1,8}|=|'|\"|[0-9:é.T-]{1,12}|\\{|\\}| ){0,30}") {
        let _ = parse(&text).map_err(|error| error.to_string());
    }
}
