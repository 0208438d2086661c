//! Follows the redirects of a fetch of a robots.txt. Each hop must request exactly the http or https URL that is
//! logged. However an address is written, the egress guard must recognise it and refuse it if it does not belong to the
//! internet.
//!
//! An input has an origin in its first line, and a Location in each following line.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use robotgate::{
    egress::Guard,
    fuzzing::{Hop, SiteDocument, request_bytes},
    origin::{Host, Origin},
};
use url::Url;

#[path = "../global.rs"]
mod global;
#[path = "../seeds.rs"]
mod seeds;
#[path = "../whatwg.rs"]
mod whatwg;
#[path = "../wire.rs"]
mod wire;

fuzz_target!(init: seeds::write("redirects", SEEDS), |data: &[u8]| -> Corpus {
    let mut lines = data.split(|byte| *byte == b'\n');
    let first = lines.next().and_then(|line| str::from_utf8(line).ok()?.parse::<Origin>().ok());
    let Some(origin) = first else {
        return Corpus::Reject;
    };
    let mut hop = Hop::first(&SiteDocument::ROBOTS_TXT, &origin);
    the_request_matches_the_logged_url(&hop);
    for location in lines {
        hop = match hop.redirected(Some(location)) {
            Ok(to) => to,
            Err(error) => {
                let error = error.to_string();
                assert!(!error.contains(char::is_control), "{error:?}");
                break;
            }
        };
        the_request_matches_the_logged_url(&hop);
        only_internet_addresses_pass(hop.origin());
    }
    Corpus::Keep
});

fn the_request_matches_the_logged_url(hop: &Hop) {
    let url = Url::parse(&hop.url()).expect("a URL");
    whatwg::names(&url, hop.origin());
    assert_eq!(url.fragment(), None);

    let wire = request_bytes(hop).expect("a request");
    let request = wire::only_request(&wire, hop.origin());
    assert_eq!(request.method, "GET");
    let request = format!(
        "{}://{}{}",
        hop.origin().scheme,
        hop.origin().host_field(),
        String::from_utf8_lossy(&request.path)
    );
    assert_eq!(request, hop.url());
    assert_eq!(hop.redirected(Some(request.as_bytes())).as_ref(), Ok(hop));
}

fn only_internet_addresses_pass(origin: &Origin) {
    let origin = Origin {
        port: HTTPS,
        ..origin.clone()
    };
    let passes = Guard::default().screen(&origin).is_ok();
    match &origin.host {
        Host::Ip(address) => assert_eq!(passes, global::is_global(*address), "{address}"),
        Host::Name(name) => {
            assert!(passes);
            // A name that the C library's resolver takes for an address (inet_aton) must not count as a name.
            let last = name.rsplit('.').next().unwrap_or_default();
            let is_number = last.strip_prefix("0x").map_or_else(
                || !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
                |hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
            );
            assert!(!is_number, "{name}");
        }
    }
}

const HTTPS: u16 = 443;
const SEEDS: [(&str, &str); 6] = [
    (
        "across",
        "https://a.example\nhttp://b.example/robots.txt\n//c.example\nrobots.txt?x#y\n../z",
    ),
    (
        "odd",
        "http://a.example:8080\n\\\\b.example\\..\\x\n http:\tB.example.:80/\u{fc} \n?a b'\"`{}|^\nhttps:/x",
    ),
    (
        "names",
        "http://a.example\nhttp://b%C3%BCcher.example?a\nhttp://xn--bcher-kva.example\nhttp://foo_bar.example",
    ),
    (
        "spellings",
        "https://192.0.2.1\nhttp://0x7f.1/\nhttp://017700000001\nhttp://[::ffff:10.0.0.1]/\nhttp://127\u{3002}0.0.1",
    ),
    (
        "tunnelled",
        "http://[::1]\nhttp://[64:ff9b::a00:1]\nhttp://[2002:a00:1::]\nhttp://[2001::1]\nhttp://[::10.0.0.1]",
    ),
    ("nowhere", "http://a.example\nftp://user:secret@b.example/"),
];
