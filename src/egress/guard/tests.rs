use super::*;

fn guard(allow: &[&str], deny: &[&str]) -> Guard {
    let destinations = |entries: &[&str]| {
        let mut destinations = Destinations::default();
        for text in entries {
            match text
                .parse::<IpNet>()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            {
                Ok(network) => destinations.networks.push(network),
                Err(_) => destinations.hosts.push(text.parse().expect("a host")),
            }
        }
        destinations
    };
    Guard {
        allow: destinations(allow),
        deny: destinations(deny),
        ports: Ports::default(),
        ftp: true,
    }
}

fn origin(url: &str) -> Origin {
    url.parse().expect("an origin")
}

fn name(name: &str) -> Host {
    Host::Name(name.into())
}

fn at(guard: &Guard, host: &str, address: &str) -> Result<(), Prohibited> {
    guard.check(&name(host), address.parse().expect("an address"))
}

fn kind(refusal: Result<(), Prohibited>) -> Option<Special> {
    match refusal {
        Ok(()) => None,
        Err(Prohibited::Special { special, .. }) => Some(special),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_special_address_is_refused_with_its_kind() {
    use Special as S;
    let guard = Guard::default();
    for (address, special) in [
        ("0.0.0.0", S::Unspecified),
        ("0.1.2.3", S::Unspecified),
        ("10.255.0.1", S::Private),
        ("100.64.0.1", S::Carrier),
        ("100.127.255.255", S::Carrier),
        ("100.100.100.200", S::Metadata),
        ("127.0.0.1", S::Loopback),
        ("127.255.255.254", S::Loopback),
        ("168.63.129.16", S::Metadata),
        ("169.254.169.254", S::LinkLocal),
        ("169.254.170.2", S::LinkLocal),
        ("172.16.0.1", S::Private),
        ("172.31.255.255", S::Private),
        ("192.0.0.9", S::Reserved),
        ("192.0.0.192", S::Metadata),
        ("192.0.2.1", S::Documentation),
        ("192.88.99.1", S::Reserved),
        ("192.168.0.1", S::Private),
        ("198.18.0.1", S::Benchmark),
        ("198.19.255.255", S::Benchmark),
        ("198.51.100.1", S::Documentation),
        ("203.0.113.1", S::Documentation),
        ("224.0.0.1", S::Multicast),
        ("239.255.255.255", S::Multicast),
        ("240.0.0.1", S::Reserved),
        ("255.255.255.255", S::Reserved),
        ("::", S::Unspecified),
        ("::1", S::Loopback),
        ("::2", S::Compatible),
        ("64:ff9b:2::1", S::Reserved),
        ("100::1", S::Reserved),
        ("100:0:0:1::1", S::Reserved),
        ("2001:1::1", S::Reserved),
        ("2001:2::1", S::Benchmark),
        ("2001:10::1", S::Reserved),
        ("2001:20::1", S::Reserved),
        ("2001:30::1", S::Reserved),
        ("2001:db8::1", S::Documentation),
        ("3fff:fff::1", S::Documentation),
        ("4000::1", S::Reserved),
        ("5f00::1", S::Reserved),
        ("fc00::1", S::Private),
        ("fd12:3456::1", S::Private),
        ("fd00:ec2::254", S::Metadata),
        ("fd20:ce::254", S::Metadata),
        ("fe80::1", S::LinkLocal),
        ("febf::a9fe:a9fe", S::LinkLocal),
        ("fec0::1", S::SiteLocal),
        ("ff02::1", S::Multicast),
        ("ff0e::1", S::Multicast),
    ] {
        assert_eq!(kind(at(&guard, "a.example", address)), Some(special), "{address}");
    }
}

#[test]
fn a_public_address_is_allowed() {
    for address in [
        "1.1.1.1",
        "93.184.215.14",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.17",
        "172.32.0.1",
        "191.255.255.255",
        "192.0.1.1",
        "198.20.0.1",
        "223.255.255.255",
        "2001:200::1",
        "2606:2800:21f::1",
        "2a00:1450::5efe",
        "3fff:1000::1",
        "::ffff:93.184.215.14",
        "64:ff9b::93.184.215.14",
    ] {
        assert_eq!(at(&Guard::default(), "a.example", address), Ok(()), "{address}");
    }
}

#[test]
fn an_ipv4_address_inside_an_ipv6_address_is_recognized() {
    use Special as S;
    let guard = Guard::default();
    for (address, special) in [
        ("::ffff:127.0.0.1", S::Loopback),
        ("::ffff:169.254.169.254", S::LinkLocal),
        ("::ffff:0.0.0.0", S::Unspecified),
        ("64:ff9b::10.0.0.1", S::Private),
        ("64:ff9b::a9fe:a9fe", S::LinkLocal),
        ("64:ff9b:1::10.0.0.1", S::LocalNat64),
        // Contains 169.254.169.254 where RFC 6052 §2.2 puts it after a prefix of 48 bits.
        ("64:ff9b:1:a9fe:a9:fe00::", S::LocalNat64),
        ("64:ff9b:1::93.184.215.14", S::LocalNat64),
        ("::127.0.0.1", S::Compatible),
        ("::169.254.169.254", S::Compatible),
        ("::93.184.215.14", S::Compatible),
        ("::ffff:0:127.0.0.1", S::Translated),
        ("::ffff:0:93.184.215.14", S::Translated),
        ("2002:7f00:1::1", S::SixToFour),
        ("2002:5db8:d70e::1", S::SixToFour),
        ("2001:0:53aa::1", S::Teredo),
        ("2a00:1450::5efe:10.0.0.1", S::Isatap),
        ("2a00:1450::200:5efe:93.184.215.14", S::Isatap),
        ("fe80::5efe:10.0.0.1", S::LinkLocal),
    ] {
        assert_eq!(kind(at(&guard, "a.example", address)), Some(special), "{address}");
    }
}

#[test]
fn deny_and_allow_recognize_every_form_of_an_address() {
    let denies = guard(
        &["::/0", "0.0.0.0/0"],
        &["10.0.0.0/8", "203.0.113.7/32", "64:ff9b:1:7::/64"],
    );
    for address in [
        "10.1.2.3",
        "::ffff:10.1.2.3",
        "64:ff9b::10.1.2.3",
        "64:ff9b:1::10.1.2.3",
        "64:ff9b:1:7::8.8.8.8",
        "::10.1.2.3",
        "::ffff:0:10.1.2.3",
        "2002:a01:203::1",
        "2001:0:53aa::f5fe:fdfc",
        "2a00::5efe:10.1.2.3",
        "::ffff:203.0.113.7",
    ] {
        let refusal = at(&denies, "a.example", address);
        assert!(matches!(refusal, Err(Prohibited::Address(_))), "{address}: {refusal:?}");
    }
    // The error names the address that an entry has.
    let form_denied = guard(&[], &["64:ff9b::/96"]);
    for (guard, address, named) in [
        (&form_denied, "64:ff9b::93.184.215.14", "64:ff9b::93.184.215.14"),
        (&denies, "64:ff9b::10.1.2.3", "10.1.2.3"),
        (&denies, "64:ff9b:1:7::8.8.8.8", "64:ff9b:1:7::8.8.8.8"),
    ] {
        let named = Prohibited::Address(named.parse().expect("an address"));
        assert_eq!(at(guard, "a.example", address), Err(named), "{address}");
    }
    assert_eq!(at(&form_denied, "a.example", "93.184.215.14"), Ok(()));

    let allows = guard(&["10.0.0.0/8"], &[]);
    for (address, special) in [
        ("10.1.2.3", None),
        ("::ffff:10.1.2.3", None),
        ("64:ff9b::10.1.2.3", None),
        ("64:ff9b:1::10.1.2.3", Some(Special::LocalNat64)),
        ("2002:a01:203::1", Some(Special::SixToFour)),
        ("::ffff:127.0.0.1", Some(Special::Loopback)),
    ] {
        assert_eq!(kind(at(&allows, "a.example", address)), special, "{address}");
    }
}

#[test]
fn allowing_all_of_ipv6_does_not_allow_embedded_private_ipv4() {
    let guard = guard(&["::/0"], &[]);
    for (address, special) in [
        ("::1", None),
        ("fe80::1", None),
        ("64:ff9b:1::93.184.215.14", None),
        ("2002:5db8:d70e::1", None),
        ("64:ff9b:1::169.254.169.254", Some(Special::LinkLocal)),
        ("64:ff9b::169.254.169.254", Some(Special::LinkLocal)),
        ("::ffff:127.0.0.1", Some(Special::Loopback)),
        ("2002:7f00:1::1", Some(Special::Loopback)),
        ("2a00:1450::5efe:10.0.0.1", Some(Special::Private)),
    ] {
        assert_eq!(kind(at(&guard, "a.example", address)), special, "{address}");
    }
}

#[test]
fn a_name_in_allow_permits_private_but_not_special_addresses() {
    use Special as S;
    let guard = guard(&["intranet.example", ".corp.example"], &[]);
    for host in [
        "intranet.example",
        "corp.example",
        "git.corp.example",
        "a.b.corp.example",
    ] {
        for (address, special) in [
            ("10.0.0.1", None),
            ("::ffff:10.0.0.1", None),
            ("100.64.0.1", None),
            ("127.0.0.1", None),
            ("::1", None),
            ("fd12:3456::1", None),
            ("93.184.215.14", None),
            ("169.254.169.254", Some(S::LinkLocal)),
            ("::ffff:169.254.169.254", Some(S::LinkLocal)),
            ("64:ff9b::169.254.169.254", Some(S::LinkLocal)),
            ("100.100.100.200", Some(S::Metadata)),
            ("fd00:ec2::254", Some(S::Metadata)),
            ("fe80::1", Some(S::LinkLocal)),
            ("224.0.0.1", Some(S::Multicast)),
            ("0.0.0.0", Some(S::Unspecified)),
            ("240.0.0.1", Some(S::Reserved)),
            ("192.0.2.1", Some(S::Documentation)),
        ] {
            assert_eq!(kind(at(&guard, host, address)), special, "{host}: {address}");
        }
    }
    for host in [
        "www.intranet.example",
        "notcorp.example",
        "corp.example.evil.example",
        "a.example",
    ] {
        assert_eq!(kind(at(&guard, host, "10.0.0.1")), Some(S::Private), "{host}");
    }
    // A URL with an address instead of a name matches no name in the lists.
    let address = IpAddr::from([10, 0, 0, 1]);
    assert_eq!(kind(guard.check(&Host::Ip(address), address)), Some(S::Private));
}

#[test]
fn deny_wins_over_allow_and_allow_over_the_default() {
    let guard = guard(
        &["169.254.0.0/16", ".corp.example", "10.0.0.0/8"],
        &["169.254.169.254", "10.9.0.0/16", "pay.corp.example", ".closed.example"],
    );
    assert_eq!(at(&guard, "a.example", "169.254.1.1"), Ok(()));
    for address in ["169.254.169.254", "::ffff:169.254.169.254", "10.9.1.1"] {
        let refusal = at(&guard, "git.corp.example", address).expect_err(address);
        assert!(matches!(refusal, Prohibited::Address(_)), "{address}: {refusal:?}");
    }
    for (host, denied) in [
        ("git.corp.example", false),
        ("pay.corp.example", true),
        ("www.pay.corp.example", false),
        ("closed.example", true),
        ("www.closed.example", true),
    ] {
        let refused = guard.screen(&origin(&format!("https://{host}")));
        let expected = if denied {
            Err(Prohibited::Name(host.into()))
        } else {
            Ok(())
        };
        assert_eq!(refused, expected, "{host}");
    }
}

#[test]
fn addresses_and_ports_are_screened_without_resolving() {
    let guard = Guard::default();
    for (url, refusal) in [
        ("https://a.example", None),
        ("http://localhost", None),
        ("http://93.184.215.14:8080", None),
        (
            "http://a.example:25",
            Some(
                "port 25 is closed to bots; to open it, the operator can set egress.ports = ['1-65535', 25] (a range \
                 alone does not open this port)",
            ),
        ),
        (
            "http://127.0.0.1",
            Some("127.0.0.1 is a loopback address, which bots cannot reach unless egress.allow lists it"),
        ),
        (
            "http://[::ffff:169.254.169.254]",
            Some(
                "169.254.169.254 is a link-local address, which bots cannot reach unless egress.allow lists its network",
            ),
        ),
    ] {
        let screened = guard.screen(&origin(url)).map_err(|prohibited| prohibited.to_string());
        assert_eq!(screened.err().as_deref(), refusal, "{url}");
    }
}

#[test]
fn port_21_is_open_only_to_ftp_urls() {
    let closed =
        |port| format!("port {port} is closed to bots; to open it, the operator can set egress.ports = [443, {port}]");
    let guard = Guard {
        ports: Ports::only(vec![443..=443]),
        ..Guard::default()
    };
    let no_ftp = Guard {
        ftp: false,
        ..Guard::default()
    };
    let disabled = "ftp URLs are closed to bots; ftp.enabled = true would open them".to_owned();
    for (guard, url, refusal) in [
        (&guard, "ftp://a.example", None),
        (&guard, "ftp://a.example:2121", Some(closed(2121))),
        (&guard, "http://a.example:21", Some(closed(21))),
        (&guard, "https://a.example:21", Some(closed(21))),
        (&no_ftp, "ftp://a.example", Some(disabled.clone())),
        (&no_ftp, "ftp://a.example:2121", Some(disabled)),
        (&no_ftp, "https://a.example", None),
    ] {
        let screened = guard.screen(&origin(url)).map_err(|prohibited| prohibited.to_string());
        assert_eq!(screened.err(), refusal, "{url}");
    }
}

#[test]
fn the_list_of_bad_ports_is_sorted() {
    assert!(BAD.is_sorted());
}

#[test]
fn a_bad_port_is_open_only_if_it_is_listed_on_its_own() {
    let only = |ranges: &[RangeInclusive<u16>]| Ports::only(ranges.to_vec());
    for (ports, open, closed) in [
        (
            Ports::default(),
            &[80, 443, 8080, 24, 65535][..],
            &[0, 22, 25, 6667, 10080][..],
        ),
        (only(&[80..=80, 443..=443]), &[80, 443], &[0, 22, 81, 8080]),
        (only(&[20..=90, 0..=10]), &[24, 80, 2], &[0, 1, 22, 25, 443]),
        (only(&[1..=65535, 22..=22]), &[22, 80, 65535], &[0, 21, 25, 6000]),
        (only(&[0..=0]), &[], &[0, 80]),
    ] {
        for port in open {
            assert!(ports.contains(*port), "{ports:?}: {port}");
        }
        for port in closed {
            assert!(!ports.contains(*port), "{ports:?}: {port}");
        }
    }
}

#[test]
fn the_suggested_value_opens_the_port_and_changes_no_other_port() {
    let only = |ranges: &[RangeInclusive<u16>]| Ports::only(ranges.to_vec());
    for (ports, port, value, opened) in [
        (
            Ports::default(),
            6000,
            "['1-65535', 6000] (a range alone does not open this port)",
            only(&[1..=65535, 6000..=6000]),
        ),
        (
            only(&[80..=80, 8000..=8999]),
            6667,
            "[80, '8000-8999', 6667]",
            only(&[80..=80, 8000..=8999, 6667..=6667]),
        ),
    ] {
        assert_eq!(ports.with(port), value);
        for other in 0..=u16::MAX {
            assert_eq!(
                opened.contains(other),
                ports.contains(other) || other == port,
                "{other}"
            );
        }
    }
}
