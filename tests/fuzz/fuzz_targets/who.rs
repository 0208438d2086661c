//! Identifies the sender of a request. The product token must be part of the User-Agent and be the same in any letter
//! case, and only the exact secret may prove anything.
//!
//! An input has a credential's name in its first line, its secret in the second, a Proxy-Authorization field in the
//! third, and a User-Agent field in each following line.

#![no_main]

use std::sync::Arc;

use data_encoding::BASE64;
use libfuzzer_sys::{Corpus, fuzz_target};
use robotgate::bot::{
    AcceptedProofs, AgentPattern, Bot, Bots, Cause, Credentials, Enforcement, Identity, Presented, PresentedCredential,
    Proof, SALT, SecretHash, is_name, is_token,
};

#[path = "../seeds.rs"]
mod seeds;

fuzz_target!(init: seeds::write("who", SEEDS), |data: &[u8]| -> Corpus {
    let mut lines = data.split(|byte| *byte == b'\n');
    let (Some(name), Some(secret), Some(value)) = (lines.next(), lines.next(), lines.next()) else {
        return Corpus::Reject;
    };
    let agents: Vec<_> = lines.collect();
    let Ok(name) = str::from_utf8(name) else {
        return Corpus::Reject;
    };
    let file = is_name(name).then(|| SecretHash::new([7; SALT], secret).line(name));
    let bots = bots(name, &file.iter().cloned().collect::<String>());

    identity_matches_the_user_agent(&bots, &agents);
    if file.is_some() {
        the_secret_proves_the_bot(&bots, name, secret);
        other_secrets_prove_nothing(&bots, name, secret, value);
        debug_output_has_no_secret(name, secret);
    }
    Corpus::Keep
});

/// Returns three bots: one known by a name, one by a pattern, and one that requires `credential`. `file` is the text of
/// the credentials file.
fn bots(credential: &str, file: &str) -> Bots {
    let bot = |name: &str, user_agent: &str, credentials: &[&str]| Bot {
        name: name.into(),
        user_agents: vec![AgentPattern::new(user_agent).expect("a pattern")],
        robots_agents: vec![name.into()],
        enforcement: Enforcement::Enforce,
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: robotgate::usage::Purposes::default(),
        accepted_proofs: AcceptedProofs {
            credentials: credentials.iter().map(|name| (*name).into()).collect(),
            ..AcceptedProofs::default()
        },
    };
    let bots = [
        bot("named", "AcmeBot", &[]),
        bot("like", "acme*crawler*", &[]),
        bot("bound", "VeryOwn", &[credential]),
    ];
    let credentials = Credentials::parse(file).expect("a file as it is written");
    assert_eq!(credentials.names().len(), usize::from(!file.is_empty()));
    Bots::new(bots.map(Arc::new).into()).with_credentials(credentials)
}

fn identity_matches_the_user_agent(bots: &Bots, agents: &[&[u8]]) {
    let identity = bots.identify(agents.iter().copied());
    let [field] = agents else {
        let cause = if agents.is_empty() {
            Cause::Missing
        } else {
            Cause::Several
        };
        assert_eq!(identity, Identity::Unidentified(cause));
        return;
    };
    let trimmed = field.trim_ascii();
    match &identity {
        Identity::Token(token) => {
            assert!(
                is_token(token) && token.bytes().any(|byte| byte.is_ascii_alphabetic()),
                "{token}"
            );
            let (all, part) = (field.as_ptr_range(), token.as_bytes().as_ptr_range());
            assert!(
                all.start <= part.start && part.end <= all.end,
                "{token} is not of the field"
            );
            // A User-Agent that is only the token must identify the same bot, unless the pattern `acme*crawler*`
            // matches the token.
            match bots.identify([token.as_bytes()]) {
                Identity::Bot(bot) => assert_eq!(&*bot.name, "like"),
                alone => assert_eq!(alone, identity),
            }
        }
        Identity::Bot(bot) => {
            assert!(bot.user_agents.iter().any(|pattern| pattern.matches(trimmed)));
            assert!(!trimmed.is_empty());
        }
        Identity::Unidentified(Cause::Missing) => assert!(trimmed.is_empty()),
        Identity::Unidentified(Cause::Several) => panic!("there is one"),
        Identity::Unidentified(_) => assert!(!trimmed.is_empty()),
        Identity::Refused(_) => panic!("nobody is asked for a proof"),
    }
    // The User-Agent must identify the first bot in the list that has a matching pattern.
    let first = bots
        .iter()
        .find(|bot| bot.user_agents.iter().any(|pattern| pattern.matches(trimmed)));
    assert_eq!(named(&identity), first.map(|bot| &*bot.name));
    for spelt in [field.to_ascii_lowercase(), field.to_ascii_uppercase()] {
        let again = bots.identify([&*spelt]);
        match (&identity, &again) {
            (Identity::Token(token), Identity::Token(again)) => assert!(token.eq_ignore_ascii_case(again)),
            _ => assert_eq!(identity, again),
        }
    }
    let twice = bots.identify([*field, *field]);
    assert_eq!(twice, Identity::Unidentified(Cause::Several));
}

fn named<'a>(identity: &'a Identity<'_>) -> Option<&'a str> {
    match identity {
        Identity::Bot(bot) => Some(&bot.name),
        _ => None,
    }
}

fn by_field<'a>(value: &'a [u8]) -> Presented<'a> {
    Presented {
        credential: PresentedCredential::Field(value),
        ..Presented::default()
    }
}

fn basic(name: &str, secret: &[u8]) -> String {
    format!("Basic {}", BASE64.encode(&[name.as_bytes(), b":", secret].concat()))
}

/// Maximum length of name, colon and secret together that robotgate reads.
const MAX_CREDENTIAL: usize = 1024;

fn the_secret_proves_the_bot(bots: &Bots, name: &str, secret: &[u8]) {
    let value = basic(name, secret);
    let lower = value.replacen("Basic", "bAsIc  ", 1);
    let bare = value.trim_end_matches('=');
    let fits = name.len() + 1 + secret.len() <= MAX_CREDENTIAL;
    for value in [&*value, &lower, bare] {
        let shown = by_field(value.as_bytes());
        let proof = bots.prove(&shown);
        assert_eq!(proof.name(bots, None).as_deref(), fits.then_some(name));
        assert!(proof.credential_record().is_none_or(|credential_record| {
            let inside = Presented {
                credential: PresentedCredential::Inherited(&credential_record),
                ..Presented::default()
            };
            matches!(bots.prove(&inside), Proof::Credential(_))
        }));
        let asks = bots.identify_by([&b"VeryOwn/1.0"[..]], &proof, true);
        assert_eq!(named(&asks), fits.then_some("bound"));
        assert_eq!(named(&bots.identify_by([&b"AcmeBot/1.0"[..]], &proof, false)), None);
    }
}

fn other_secrets_prove_nothing(bots: &Bots, name: &str, secret: &[u8], value: &[u8]) {
    for other in [
        &secret[..secret.len().saturating_sub(1)],
        &[secret, b"\0"].concat(),
        &secret.to_ascii_uppercase(),
    ] {
        let value = basic(name, other);
        let shown = by_field(value.as_bytes());
        let holds = matches!(bots.prove(&shown), Proof::Credential(_));
        assert_eq!(
            holds,
            other == secret && name.len() + 1 + secret.len() <= MAX_CREDENTIAL
        );
    }
    let several = Presented {
        credential: PresentedCredential::Several,
        ..Presented::default()
    };
    for shown in [several, by_field(value)] {
        let proof = bots.prove(&shown);
        match proof {
            Proof::Failed => assert_eq!(named(&bots.identify_by([&b"VeryOwn"[..]], &proof, false)), None),
            // Only a field with the right name and secret proves the bot.
            Proof::Credential(_) => assert_eq!(decoded(value), Some([name.as_bytes(), b":", secret].concat())),
            _ => panic!("{proof:?}"),
        }
    }
}

fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    let value = value.trim_ascii();
    let (scheme, rest) = value.split_at_checked(6)?;
    assert!(scheme.eq_ignore_ascii_case(b"basic "));
    let mut encoded = rest.trim_ascii().to_vec();
    while encoded.len() % 4 != 0 {
        encoded.push(b'=');
    }
    BASE64.decode(&encoded).ok()
}

fn debug_output_has_no_secret(name: &str, secret: &[u8]) {
    let printed = |secret: &[u8]| {
        let bots = bots(name, &SecretHash::new([7; SALT], secret).line(name));
        let value = basic(name, secret);
        let shown = by_field(value.as_bytes());
        let proof = bots.prove(&shown);
        format!(
            "{bots:?} {:?} {shown:?} {proof:?} {:?}",
            bots.credentials(),
            proof.credential_record()
        )
    };
    let other: Vec<u8> = secret.iter().map(|byte| byte ^ 1).collect();
    assert_eq!(printed(secret), printed(&other));
}

const SEEDS: [(&str, &str); 9] = [
    (
        "basic",
        "acme\nopen sesame\nBasic YWNtZTpvcGVuIHNlc2FtZQ==\nVeryOwn/1.0",
    ),
    (
        "colons",
        "a\nb:c:\nBasic YTpiOmM6\nAcmeBot/2.1 (+https://acme.example/bot)",
    ),
    ("empty", "a\n\nBasic YTo=\n"),
    ("bearer", "acme\nx\nBearer x\ncurl/8.5.0"),
    (
        "compatible",
        "\n\n\nMozilla/5.0 (compatible; OtherBot/2.1; +http://o.example) Chrome/140.0",
    ),
    (
        "nested",
        "\n\n\nMozilla/5.0 (X11; (compatible; MSIE 9.0; x/1)) Yahoo! Slurp",
    ),
    (
        "browser",
        "\n\n\nMozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Safari/537.36",
    ),
    ("like", "\n\n\nAcme Old Crawler/1"),
    ("several", "\n\n\nAcmeBot\nAcmeBot"),
];
