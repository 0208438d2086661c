//! Tests which Proxy-Authorization fields robotgate can read.

use data_encoding::BASE64;

use super::super::basic::Basic;

fn read(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let basic = Basic::parse(value)?;
    Some((
        String::from_utf8_lossy(basic.name()).into_owned(),
        basic.secret().to_vec(),
    ))
}

#[test]
fn a_name_and_a_secret_are_read_as_rfc_7617_says() {
    for (value, name, secret) in [
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"),
        ("basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"),
        ("BASIC   QWxhZGRpbjpvcGVuIHNlc2FtZQ==  ", "Aladdin", "open sesame"),
        // The base64 padding can be missing (RFC 9110 §11.2).
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", "Aladdin", "open sesame"),
        // The example of RFC 7617 §2.1, in UTF-8.
        ("Basic dGVzdDoxMjPCow==", "test", "123\u{a3}"),
        ("Basic YTpiOmM6", "a", "b:c:"),
        ("Basic YTo=", "a", ""),
        ("Basic YSBiOmMgZA==", "a b", "c d"),
    ] {
        assert_eq!(
            read(value.as_bytes()),
            Some((name.to_owned(), secret.as_bytes().to_vec())),
            "{value}"
        );
    }
}

#[test]
fn a_malformed_basic_field_is_not_parsed() {
    let long = format!("Basic {}", BASE64.encode(&[b'a'; 4096]));
    for value in [
        "",
        "Basic",
        "Basic ",
        "BasicYTpi",
        "Basic\tYTpi",
        "Basic, YTpi",
        "Bearer YTpi",
        "Digest username=\"a\"",
        "Negotiate YTpi",
        "YTpi",
        "a:b",
        "Basic a:b",
        "Basic YWI=",      // no colon
        "Basic OmI=",      // no name
        "Basic Og==",      // neither a name nor a secret
        "Basic YTpi===",   // too much padding
        "Basic YT pi",     // a space inside
        "Basic YTpi YTpi", // two values
        "Basic YTpi,",
        "Basic Y",     // no whole byte
        "Basic YTo_-", // the alphabet of base64url
        "Basic =",
        &long,
    ] {
        assert_eq!(read(value.as_bytes()), None, "{value}");
    }
    assert_eq!(read(b"Basic \xff\xff\xff"), None);
    // Not UTF-8: no credential has this name, but the syntax is valid.
    assert!(read(format!("Basic {}", BASE64.encode(b"\xff:\xfe")).as_bytes()).is_some());
}

#[test]
fn debug_output_hides_the_name_and_the_secret() {
    let basic = Basic::parse(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").expect("well formed");
    assert_eq!(format!("{basic:?}"), "Basic(..)");
}
