//! Tests how a client is identified from its proof and its User-Agent.

use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;

const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36";

pub(super) fn bot(name: &str, accepted_proofs: AcceptedProofs) -> Bot {
    Bot {
        name: name.into(),
        user_agents: vec![AgentPattern::new(&format!("{name}-fetch")).expect("a pattern")],
        robots_agents: vec![format!("{name}-robot").into()],
        enforcement: Enforcement::Enforce,
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: crate::usage::Purposes::default(),
        accepted_proofs,
    }
}

fn accepted_proofs(credentials: &[&str], certificates: &[&str], networks: &[&str]) -> AcceptedProofs {
    AcceptedProofs {
        credentials: credentials.iter().map(|name| (*name).into()).collect(),
        certificates: certificates
            .iter()
            .map(|name| CertificateName::new(name).expect("a name"))
            .collect(),
        networks: networks
            .iter()
            .map(|network| network.parse().expect("a network"))
            .collect(),
    }
}

/// `free` requires no proof. `a` and `b` share a credential, a certificate and a network. `a` also has one of each for
/// itself, and `b` has another network. `net` accepts only a network. No bot has the credential `idle`.
fn bots() -> Bots {
    let exclusive = accepted_proofs(
        &["own", "shared"],
        &["own.example", "shared.example"],
        &["10.1.0.0/16", "10.9.0.0/16"],
    );
    let shared = accepted_proofs(&["shared"], &["shared.example"], &["10.9.0.0/16", "fd00::/8"]);
    let net_only = accepted_proofs(&[], &[], &["192.0.2.0/24"]);
    let bots = vec![
        bot("free", AcceptedProofs::default()),
        bot("a", exclusive),
        bot("b", shared),
        bot("net", net_only),
    ];
    let file = [line("own", "s1"), line("shared", "s2"), line("idle", "s3")].join("\n");
    Bots::new(bots.into_iter().map(Arc::new).collect()).with_credentials(Credentials::parse(&file).expect("a file"))
}

fn certificate(name: &str) -> ClientCertificate {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, "someone");
    let certificate = params
        .self_signed(&KeyPair::generate().expect("a key"))
        .expect("a certificate");
    ClientCertificate::from_der(certificate.der()).expect("it can be read")
}

/// `misfit` means that the proof is for another bot. `ask` and `unproven` mean that there is no valid proof: `ask` if a
/// credential would be accepted, `unproven` if not.
fn describe(identity: &Identity<'_>) -> String {
    match identity {
        Identity::Bot(bot) => bot.name.to_string(),
        Identity::Token(token) => format!("token {token}"),
        Identity::Unidentified(cause) => format!("{cause:?}"),
        Identity::Refused(IdentityMismatch::Agent) => "misfit".to_owned(),
        Identity::Refused(mismatch) if mismatch.asks_for_credential() => "ask".to_owned(),
        Identity::Refused(IdentityMismatch::Unproven { .. }) => "unproven".to_owned(),
    }
}

fn identify(bots: &Bots, proof: &Proof<'_>, user_agent: &str, required: bool) -> String {
    let fields = user_agent
        .split('|')
        .filter(|field| *field != "none")
        .map(str::as_bytes);
    describe(&bots.identify_by(fields, proof, required))
}

/// A User-Agent, and how [`describe`] describes a client that sends it: with a proof for `a`, with a proof for both `a`
/// and `b`, and without a proof.
#[rustfmt::skip]
const AGENTS: &[(&str, &str, &str, &str)] = &[
    // The field matches the `user-agents` of a configured bot.
    ("a-fetch/1.0",          "a",       "a",           "ask"),
    ("x (b-fetch)",          "misfit",  "b",           "ask"),
    ("free-fetch",           "misfit",  "misfit",      "free"),
    ("net-fetch/1",          "misfit",  "misfit",      "unproven"),
    // The field names two bots, and the proof is not for the one that comes first in the configuration.
    ("free-fetch b-fetch",   "misfit",  "b",           "free"),
    ("free-fetch a-fetch",   "a",       "a",           "free"),
    // There is no field (`none`), or it names nothing or only a browser.
    ("none",                 "a",       "Missing",     "Missing"),
    ("",                     "a",       "Missing",     "Missing"),
    (CHROME,                 "a",       "BrowserOnly", "BrowserOnly"),
    ("- 1.0",                "a",       "NoToken",     "NoToken"),
    // The field has the name of a bot, one of its robots-agents, or an unknown product token.
    ("A-Robot/1",            "a",       "a",           "ask"),
    ("A/1",                  "a",       "a",           "ask"),
    ("Mozilla/5.0 (compatible; b-robot/1)", "misfit", "b", "ask"),
    ("b/2",                  "misfit",  "b",           "ask"),
    ("net-robot",            "misfit",  "misfit",      "unproven"),
    ("free-robot",           "misfit",  "misfit",      "token free-robot"),
    ("curl/8.5.0",           "misfit",  "misfit",      "token curl"),
    ("a-fetch-images/1",     "misfit",  "misfit",      "token a-fetch-images"),
    ("a-fetch|a-fetch",      "Several", "Several",     "Several"),
    ("curl/8.5.0|a-fetch",   "Several", "Several",     "Several"),
];

#[test]
fn a_user_agent_selects_only_among_the_bots_of_the_proof() {
    let bots = bots();
    let (exclusive, shared) = (certificate("own.example"), certificate("shared.example"));
    let (own_secret, shared_secret) = (basic("own:s1"), basic("shared:s2"));
    let by_credential = |value| Presented {
        credential: PresentedCredential::Field(value),
        ..Presented::default()
    };
    let by_certificate = |certificate| Presented {
        certificate: Some(certificate),
        ..Presented::default()
    };
    let from = |address: &str| Presented {
        address: Some(address.parse().expect("an address")),
        ..Presented::default()
    };
    let cases = [
        (
            "credential",
            by_credential(own_secret.as_bytes()),
            by_credential(shared_secret.as_bytes()),
        ),
        ("certificate", by_certificate(&exclusive), by_certificate(&shared)),
        ("network", from("10.1.2.3"), from("::ffff:10.9.0.1")),
    ];
    for (kind, of_a, of_both) in cases {
        let (of_a, of_both) = (bots.prove(&of_a), bots.prove(&of_both));
        assert_eq!((of_a.kind(), of_both.kind()), (Some(kind), Some(kind)));
        for (user_agent, a, both, _) in AGENTS {
            for required in [false, true] {
                assert_eq!(
                    identify(&bots, &of_a, user_agent, required),
                    *a,
                    "{kind} of a: {user_agent}"
                );
                assert_eq!(
                    identify(&bots, &of_both, user_agent, required),
                    *both,
                    "{kind} of both: {user_agent}"
                );
            }
        }
    }
}

#[test]
fn without_proof_a_user_agent_is_believed_unless_the_bot_needs_one() {
    let bots = bots();
    let nothing = bots.prove(&Presented {
        address: Some([198, 51, 100, 1].into()),
        ..Presented::default()
    });
    for (user_agent, _, _, none) in AGENTS {
        assert_eq!(identify(&bots, &nothing, user_agent, false), *none, "{user_agent}");
        // No credential proves `net`, so the client is not asked for one.
        let wanted = if *none == "unproven" { "unproven" } else { "ask" };
        assert_eq!(identify(&bots, &nothing, user_agent, true), wanted, "{user_agent}");
    }
    let by_network = Bots::new(vec![Arc::new(bot("net", accepted_proofs(&[], &[], &["192.0.2.0/24"])))]);
    assert_eq!(identify(&by_network, &Proof::None, "curl/8", true), "unproven");
    assert_eq!(identify(&by_network, &Proof::None, "curl/8", false), "token curl");
}

#[test]
fn a_wrong_credential_is_refused_even_if_another_proof_is_valid() {
    let bots = bots();
    let certificate = certificate("own.example");
    for value in [
        basic("own:s2"),
        basic("own:"),
        basic("s1:own"),
        basic("nobody:s1"),
        basic("idle:s3"),
        basic("own"),
        "Bearer s1".to_owned(),
        "Basic s1".to_owned(),
        "s1".to_owned(),
        String::new(),
    ] {
        let proof = bots.prove(&Presented {
            credential: PresentedCredential::Field(value.as_bytes()),
            certificate: Some(&certificate),
            address: Some([10, 1, 0, 1].into()),
        });
        assert_eq!(identify(&bots, &proof, "a-fetch", false), "ask", "{value}");
        assert_eq!(identify(&bots, &proof, "free-fetch", false), "ask", "{value}");
        assert_eq!((proof.kind(), proof.name(&bots, None)), (Some("failed"), None));
    }
    let several = Presented {
        credential: PresentedCredential::Several,
        ..Presented::default()
    };
    assert_eq!(identify(&bots, &bots.prove(&several), "free-fetch", false), "ask");
    assert_eq!(bots.prove(&several).kind(), Some("failed"));
    assert_eq!(bots.prove(&Presented::default()).kind(), None);
}

#[test]
fn the_strongest_proof_is_used_and_named() {
    let bots = bots();
    let (exclusive, shared, unknown) = (
        certificate("own.example"),
        certificate("shared.example"),
        certificate("unknown.example"),
    );
    let shared_secret = basic("shared:s2");
    let field = PresentedCredential::Field(shared_secret.as_bytes());
    let address = |text: &str| Some(text.parse().expect("an address"));
    for (credential, certificate, address, kind, name, bot_b) in [
        (
            field,
            Some(&exclusive),
            address("10.1.0.1"),
            "credential",
            "shared",
            "shared",
        ),
        (
            PresentedCredential::Nothing,
            Some(&shared),
            address("10.1.0.1"),
            "certificate",
            "shared.example",
            "shared.example",
        ),
        (
            PresentedCredential::Nothing,
            Some(&unknown),
            address("10.1.0.1"),
            "network",
            "10.1.0.0/16",
            "",
        ),
        (
            PresentedCredential::Nothing,
            None,
            address("10.9.0.1"),
            "network",
            "10.9.0.0/16",
            "10.9.0.0/16",
        ),
        (
            PresentedCredential::Nothing,
            None,
            address("fd00::1"),
            "network",
            "fd00::/8",
            "fd00::/8",
        ),
    ] {
        let proof = bots.prove(&Presented {
            credential,
            certificate,
            address,
        });
        assert_eq!(proof.kind(), Some(kind));
        assert_eq!(proof.name(&bots, None).as_deref(), Some(name));
        let b = bots.named("b");
        assert_eq!(proof.name(&bots, b).unwrap_or_default(), bot_b);
    }
}

#[test]
fn the_credential_field_is_ignored_if_no_bot_has_credentials() {
    let bots = Bots::new(vec![Arc::new(bot("a", accepted_proofs(&[], &["own.example"], &[])))]);
    let exclusive = certificate("own.example");
    for credential in [
        PresentedCredential::Field(b"Basic nonsense"),
        PresentedCredential::Several,
        PresentedCredential::Nothing,
    ] {
        let proof = bots.prove(&Presented {
            credential,
            certificate: Some(&exclusive),
            address: None,
        });
        assert_eq!(identify(&bots, &proof, "none", false), "a");
        assert_eq!(proof.kind(), Some("certificate"));
    }
}

#[test]
fn intercepted_requests_inherit_the_proof_until_it_is_revoked() {
    let before = bots();
    let value = basic("own:s1");
    let shown = Presented {
        credential: PresentedCredential::Field(value.as_bytes()),
        ..Presented::default()
    };
    let credential_record = before.prove(&shown).credential_record().expect("it holds");
    let inside = Presented {
        credential: PresentedCredential::Inherited(&credential_record),
        ..Presented::default()
    };
    assert_eq!(identify(&before, &before.prove(&inside), "none", true), "a");

    let reloaded = |file: &str| bots().with_credentials(Credentials::parse(file).expect("a file"));
    let revoked = reloaded(&line("shared", "s2"));
    assert_eq!(identify(&revoked, &revoked.prove(&inside), "a-fetch", false), "ask");
    assert_eq!(identify(&revoked, &revoked.prove(&inside), "curl/8", false), "ask");
    let switched_off = Bots::new(vec![Arc::new(bot("a", AcceptedProofs::default()))]);
    assert_eq!(
        identify(&switched_off, &switched_off.prove(&inside), "curl/8", false),
        "token curl"
    );
}

#[test]
fn a_user_agent_that_matches_the_robots_agent_of_a_bot_needs_its_proof() {
    let mut one = bot("MJ12bot", accepted_proofs(&["own"], &[], &[]));
    one.robots_agents = vec!["MJ12bot".into()];
    let bots = Bots::new(vec![Arc::new(one)]);
    for (field, wanted) in [
        ("MJ12bot/1.0", "unproven"),
        ("mj12BOT", "unproven"),
        ("MJ/1.0", "unproven"),
        ("MJ1/1.0", "token MJ1"),
        ("M/1.0", "token M"),
    ] {
        let identity = bots.identify_by([field.as_bytes()], &Proof::None, false);
        let found = match &identity {
            Identity::Refused(IdentityMismatch::Unproven { .. }) => "unproven".to_owned(),
            other => describe(other),
        };
        assert_eq!(found, wanted, "{field}");
    }
}

#[test]
fn an_assumed_proof_works_like_a_real_one() {
    let bots = bots();
    for (field, required, wanted) in [
        ("free-fetch/1.0", false, "free"),
        // This bot accepts no proof, so no client can be this bot if every client needs one.
        ("free-fetch/1.0", true, "misfit"),
        ("curl/8", false, "token curl"),
        ("curl/8", true, "misfit"),
        ("a-fetch/1.0", false, "a"),
        ("a-fetch/1.0", true, "a"),
        // The field has a product token of a bot that requires a proof.
        ("a-robot/1.0", false, "a"),
        ("net-robot", true, "net"),
    ] {
        let identity = bots.identify_by([field.as_bytes()], &Proof::Assumed, required);
        let found = match &identity {
            Identity::Refused(IdentityMismatch::Agent) => "misfit".to_owned(),
            other => describe(other),
        };
        assert_eq!(found, wanted, "{field} {required}");
    }
}

#[test]
fn a_refusal_says_which_proofs_the_bot_accepts() {
    let bots = bots();
    for (user_agent, required, kinds) in [
        ("net-fetch/1", false, "its network"),
        ("net-fetch/1", true, "its network"),
        ("a-fetch/1", false, "a credential or a certificate or its network"),
        ("curl/8", true, "a credential or a certificate or its network"),
    ] {
        let identity = bots.identify_by([user_agent.as_bytes()], &Proof::None, required);
        let Identity::Refused(IdentityMismatch::Unproven { by }) = identity else {
            panic!("{identity:?}");
        };
        assert_eq!(by.to_string(), kinds, "{user_agent} {required}");
        assert_eq!(by.what_to_do().contains("NAME:SECRET@"), by.credential, "{user_agent}");
        assert!(by.what_to_do().contains("`networks`"), "{user_agent}");
    }
}
