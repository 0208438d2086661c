//! How a User-Agent identifies a bot: real fields, configured patterns, and arbitrary bytes.

use std::sync::Arc;

use proptest::prelude::*;
use robotgate::bot::{AcceptedProofs, AgentPattern, Bot, Bots, Cause, Enforcement, Identity};

/// User-Agent fields. Each has the product token that robotgate finds in it without configured bots, or the reason why
/// robotgate finds none.
const FIELDS: &[(&str, Result<&str, Cause>)] = &[
    // Libraries and tools.
    ("curl/8.5.0", Ok("curl")),
    ("Wget/1.21.4", Ok("Wget")),
    ("python-requests/2.32.3", Ok("python-requests")),
    ("Python-urllib/3.11", Ok("Python-urllib")),
    ("python-httpx/0.28.1", Ok("python-httpx")),
    ("Python/3.11 aiohttp/3.9.1", Ok("Python")),
    ("node", Ok("node")),
    ("undici", Ok("undici")),
    (
        "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)",
        Ok("node-fetch"),
    ),
    ("axios/1.6.2", Ok("axios")),
    ("got (https://github.com/sindresorhus/got)", Ok("got")),
    ("okhttp/4.12.0", Ok("okhttp")),
    ("Go-http-client/1.1", Ok("Go-http-client")),
    ("Java/17.0.9", Ok("Java")),
    ("Java-http-client/21.0.1", Ok("Java-http-client")),
    ("Apache-HttpClient/4.5.13 (Java/11.0.16)", Ok("Apache-HttpClient")),
    ("Scrapy/2.11.0 (+https://scrapy.org)", Ok("Scrapy")),
    ("Ruby", Ok("Ruby")),
    ("libwww-perl/6.72", Ok("libwww-perl")),
    ("GuzzleHttp/7", Ok("GuzzleHttp")),
    ("PostmanRuntime/7.36.0", Ok("PostmanRuntime")),
    ("WordPress/6.4.2; https://example.com", Ok("WordPress")),
    ("Lynx/2.9.0dev.12 libwww-FM/2.14 SSL-MM/1.4.1", Ok("Lynx")),
    (
        "Dalvik/2.1.0 (Linux; U; Android 13; Pixel 7 Build/TQ3A.230805.001)",
        Ok("Dalvik"),
    ),
    ("reqwest/0.12", Ok("reqwest")),
    // Crawlers with `compatible`.
    (
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/W.X.Y.Z Safari/537.36",
        Ok("Googlebot"),
    ),
    (
        "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/W.X.Y.Z Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        Ok("Googlebot"),
    ),
    (
        "Mozilla/5.0 (compatible; AcmeBot/2.1; +https://acme.example/bot)",
        Ok("AcmeBot"),
    ),
    (
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        Ok("bingbot"),
    ),
    (
        "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
        Ok("YandexBot"),
    ),
    (
        "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
        Ok("Baiduspider"),
    ),
    (
        "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
        Ok("AhrefsBot"),
    ),
    (
        "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)",
        Ok("SemrushBot"),
    ),
    (
        "Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)",
        Ok("MJ12bot"),
    ),
    (
        "Mozilla/5.0 (compatible; DotBot/1.2; +https://opensiteexplorer.org/dotbot; help@moz.com)",
        Ok("DotBot"),
    ),
    (
        "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)",
        Ok("archive.org_bot"),
    ),
    (
        "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        Ok("Slurp"),
    ),
    (
        "Mozilla/5.0 (compatible; Yahoo! Slurp China; http://misc.yahoo.com.cn/help.html)",
        Ok("Slurp"),
    ),
    (
        "Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)",
        Ok("Google-InspectionTool"),
    ),
    ("Mozilla/5.0 (compatible; GoogleOther)", Ok("GoogleOther")),
    (
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        Ok("GPTBot"),
    ),
    (
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
        Ok("ClaudeBot"),
    ),
    (
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)",
        Ok("PerplexityBot"),
    ),
    (
        "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com) AppleWebKit/537.36 (KHTML, like Gecko)",
        Ok("Bytespider"),
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 8_1 like Mac OS X) AppleWebKit/600.1.4 (KHTML, like Gecko) Version/8.0 Mobile/12B411 Safari/600.1.4 (compatible; YandexMobileBot/3.0; +http://yandex.com/bots)",
        Ok("YandexMobileBot"),
    ),
    (
        "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1; EvilBot/1.0)",
        Ok("EvilBot"),
    ),
    (
        "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
        Ok("LinkedInBot"),
    ),
    ("Mozilla/5.0 (COMPATIBLE;AcmeBot)", Ok("AcmeBot")),
    ("Mozilla/5.0 (X11 (compatible; AcmeBot/1.0) like x)", Ok("AcmeBot")),
    ("Mozilla/5.0 compatible; AcmeBot/1.0", Ok("AcmeBot")),
    // Crawlers without `compatible`.
    ("CCBot/2.0 (https://commoncrawl.org/faq/)", Ok("CCBot")),
    (
        "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)",
        Ok("DuckDuckBot"),
    ),
    (
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        Ok("facebookexternalhit"),
    ),
    ("facebookexternalhit/1.1;line-poker/1.0", Ok("facebookexternalhit")),
    ("Twitterbot/1.0", Ok("Twitterbot")),
    (
        "AdsBot-Google (+http://www.google.com/adsbot.html)",
        Ok("AdsBot-Google"),
    ),
    ("Mediapartners-Google", Ok("Mediapartners-Google")),
    ("Googlebot-Image/1.0", Ok("Googlebot-Image")),
    (
        "Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)",
        Ok("Sogou"),
    ),
    (
        "ia_archiver (+http://www.alexa.com/site/help/webmasters; crawler@alexa.com)",
        Ok("ia_archiver"),
    ),
    ("360Spider", Ok("360Spider")),
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/120 Safari/537.36 AcmeBot/1.0",
        Ok("AcmeBot"),
    ),
    (
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        Ok("Slackbot-LinkExpanding"),
    ),
    // Browsers.
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.6099.109 Safari/537.36",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Mobile/15E148 Safari/604.1",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/120.0.6099.119 Mobile/15E148 Safari/604.1",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Edg/120.0.2210.91",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Safari/537.36 OPR/105.0.0.0",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (Linux; Android 13; SAMSUNG SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Ubuntu Chromium/70.0.3538.77 Chrome/70.0.3538.77 Safari/537.36",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0)",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; WOW64; Trident/4.0; SLCC2; .NET CLR 2.0.50727; InfoPath.3)",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (compatible; MSIE 10.0; Windows Phone 8.0; Trident/6.0; IEMobile/10.0)",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko",
        Err(Cause::BrowserOnly),
    ),
    (
        "Opera/9.80 (Windows NT 6.1; U; en) Presto/2.12.388 Version/12.18",
        Err(Cause::BrowserOnly),
    ),
    (
        "Mozilla/5.0 (compatible; Konqueror/4.5; Linux) KHTML/4.5.4 (like Gecko)",
        Err(Cause::BrowserOnly),
    ),
    ("mozilla/5.0", Err(Cause::BrowserOnly)),
    ("Mozilla/5.0 (compatible)", Err(Cause::BrowserOnly)),
    ("Mozilla/5.0 (compatible;", Err(Cause::BrowserOnly)),
    // Fields without a possible name.
    ("-", Err(Cause::NoToken)),
    ("*", Err(Cause::NoToken)),
    ("1.0", Err(Cause::NoToken)),
    ("(just a comment)", Err(Cause::NoToken)),
    ("(never closed (twice", Err(Cause::NoToken)),
    ("https://example.com/", Err(Cause::NoToken)),
    ("Böt/1.0", Err(Cause::NoToken)),
    ("\"AcmeBot\"", Err(Cause::NoToken)),
    // Unusual fields that can be parsed, and empty ones.
    ("(comment first) AcmeBot/1.0", Ok("AcmeBot")),
    (r"(quoted \) parenthesis) AcmeBot/1.0", Ok("AcmeBot")),
    ("(a (nested (compatible) one) x) AcmeBot", Ok("AcmeBot")),
    ("  AcmeBot/1.0\t", Ok("AcmeBot")),
    ("AcmeBot/", Ok("AcmeBot")),
    (") AcmeBot", Ok("AcmeBot")),
    ("Mozilla/5.0 (compatible; ; AcmeBot)", Ok("AcmeBot")),
    ("", Err(Cause::Missing)),
    (" \t ", Err(Cause::Missing)),
];

#[test]
fn real_user_agents_give_the_expected_bot() {
    let bots = Bots::default();
    for (field, expected) in FIELDS {
        let expected = expected.map_or_else(Identity::Unidentified, |token: &str| Identity::Token(token.into()));
        assert_eq!(bots.identify([field.as_bytes()]), expected, "{field}");
    }
    assert!(FIELDS.len() > 60);
}

#[test]
fn a_missing_or_repeated_user_agent_is_unidentified() {
    let bots = Bots::new(vec![bot("a", &["AcmeBot"])]);
    assert_eq!(bots.identify([]), Identity::Unidentified(Cause::Missing));
    let twice = [&b"AcmeBot/1.0"[..], b"AcmeBot/1.0"];
    assert_eq!(bots.identify(twice), Identity::Unidentified(Cause::Several));
    assert_eq!(bots.identify([&b""[..], b""]), Identity::Unidentified(Cause::Several));
}

#[test]
fn each_cause_of_a_missing_identity_has_its_own_sentence() {
    let causes = [Cause::Missing, Cause::Several, Cause::BrowserOnly, Cause::NoToken];
    for (at, cause) in causes.iter().enumerate() {
        assert!(cause.to_string().contains("User-Agent"), "{cause}");
        assert!(causes[at + 1..].iter().all(|other| other.as_str() != cause.as_str()));
    }
}

#[test]
fn the_first_configured_bot_that_matches_is_used() {
    let bots = Bots::new(vec![
        bot("images", &["AcmeBot-Images", "thumbs *"]),
        bot("acme", &["AcmeBot", "Acme Crawler"]),
        bot("any-acme", &["*acme*"]),
        bot("library", &["aiohttp", "Chrome/120.0.0.0"]),
    ]);
    let cases = [
        (
            "Mozilla/5.0 (compatible; AcmeBot/2.1; +https://acme.example/bot)",
            Some("acme"),
        ),
        ("acmebot", Some("acme")),
        ("AcmeBot-Images/1.0", Some("images")),
        ("AcmeBot/1.0 AcmeBot-Images/1.0", Some("images")),
        ("AcmeBot/1.0 aiohttp/3.9", Some("acme")),
        ("THUMBS 3", Some("images")),
        ("my thumbs 3", None),
        ("AcmeBotty/1.0", Some("any-acme")),
        ("the acme crawler, version 3", Some("acme")),
        ("Python/3.11 aiohttp/3.9.1", Some("library")),
        (
            "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
            Some("library"),
        ),
        (
            "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.01 Safari/537.36",
            None,
        ),
        ("curl/8.5.0", None),
    ];
    for (field, expected) in cases {
        let found = match bots.identify([field.as_bytes()]) {
            Identity::Bot(bot) => Some(bot.name.to_string()),
            _ => None,
        };
        assert_eq!(found.as_deref(), expected, "{field}");
    }
}

#[test]
fn patterns_match_only_complete_names() {
    let cases = [
        ("AcmeBot", "AcmeBot", true),
        ("AcmeBot", "x AcmeBot/1", true),
        ("AcmeBot", "xAcmeBot/1", false),
        ("AcmeBot", "AcmeBot-x", false),
        ("AcmeBot", "AcmeBot.x", false),
        ("AcmeBot", "AcmeBots AcmeBot", true),
        ("AcmeBot", "(ACMEBOT)", true),
        ("AcmeBot/2", "AcmeBot/2", true),
        ("AcmeBot/2", "AcmeBot/2.1", false),
        ("AcmeBot/", "AcmeBot/2.1", true),
        ("Acme Bot", "an Acme Bot", true),
        ("AcmeBot", "", false),
        ("acme*", "AcmeBot/2.1 more", true),
        ("acme*", "an AcmeBot", false),
        ("*bot/2.*", "AcmeBot/2.1", true),
        ("*bot/2.*", "AcmeBot/3.1", false),
        ("a*b*c", "abc", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("*", "anything", true),
        ("**a**", "cat", true),
    ];
    for (pattern, field, expected) in cases {
        let pattern = AgentPattern::new(pattern).unwrap();
        assert_eq!(pattern.matches(field.as_bytes()), expected, "{pattern} in {field}");
    }
    assert!(AgentPattern::new(" ").is_err());
}

proptest! {
    #[test]
    fn no_user_agent_makes_identify_panic(field: Vec<u8>) {
        let bots = Bots::new(vec![bot("a", &["a", "()", "é", "*\u{0}*"])]);
        let _ = bots.identify([&field[..]]);
    }

    #[test]
    fn no_user_agent_near_the_grammar_makes_identify_panic(field in r"((compatible|Mozilla|AcmeBot|MSIE|[/;(),\\ \t]|[0-9.]{1,3}|é)){0,20}") {
        if let Identity::Token(token) = Bots::default().identify([field.as_bytes()]) {
            prop_assert!(field.contains(&*token));
            prop_assert!(robotgate::bot::is_token(&token));
        }
    }

    #[test]
    fn the_index_finds_the_same_bot_as_the_patterns(
        field in "[abAB/ (*é-]{0,24}",
        patterns in proptest::collection::vec("[abAB/ é-]{0,3}[ab*]", 1..6),
    ) {
        let list: Vec<_> = patterns.iter().enumerate().map(|(at, p)| bot(&at.to_string(), &[p])).collect();
        let trimmed = field.as_bytes().trim_ascii();
        let expected = list.iter().find(|bot| bot.user_agents[0].matches(trimmed)).cloned();
        let found = match Bots::new(list).identify([field.as_bytes()]) {
            Identity::Bot(bot) => Some(bot),
            _ => None,
        };
        if !trimmed.is_empty() {
            prop_assert_eq!(found, expected);
        }
    }
}

fn bot(name: &str, user_agents: &[&str]) -> Arc<Bot> {
    Arc::new(Bot {
        name: name.into(),
        user_agents: user_agents
            .iter()
            .map(|text| AgentPattern::new(text).unwrap())
            .collect(),
        robots_agents: vec![name.into()],
        enforcement: Enforcement::default(),
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: robotgate::usage::Purposes::default(),
        accepted_proofs: AcceptedProofs::default(),
    })
}
