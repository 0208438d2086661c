use flate2::{Compression, write::GzEncoder};

use super::*;

fn decoder(codings: &[&str], limit: usize) -> Result<Decoder, FetchError> {
    let mut head = ResponseHeader::build(200, None).expect("a status");
    for coding in codings {
        let appended = head.append_header(http::header::CONTENT_ENCODING, *coding);
        appended.expect("a field value");
    }
    Decoder::new(&head, limit)
}

fn body<'c>(codings: &[&str], limit: usize, chunks: impl IntoIterator<Item = &'c [u8]>) -> Result<Vec<u8>, Failure> {
    let mut decoder = decoder(codings, limit)?;
    for chunk in chunks {
        if decoder.push(chunk)? == Room::Full {
            return Ok(decoder.into_body().counts);
        }
    }
    Ok(decoder.finish()?.counts)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

fn error(found: Result<Vec<u8>, Failure>) -> FetchError {
    found.expect_err("no body").error
}

const LINES: &[u8] = b"User-agent: *\nDisallow: /a\nDisallow: /b\n";

#[test]
fn a_body_below_the_limit_is_complete_for_any_chunks_and_coding() {
    let zipped = gzip(LINES);
    let two = [gzip(&LINES[..20]), gzip(&LINES[20..])].concat();
    for (codings, sent) in [
        (&[][..], LINES),
        (&["identity"], LINES),
        (&["", " , "], LINES),
        (&["gzip"], &zipped),
        (&["GZip"], &zipped),
        (&["x-gzip"], &zipped),
        (&["identity, gzip"], &zipped),
        (&["gzip"], &two),
    ] {
        for size in [1, 2, 7, 1000] {
            for limit in [LINES.len(), 1000] {
                let found = body(codings, limit, sent.chunks(size));
                assert_eq!(
                    found.as_deref(),
                    Ok(LINES),
                    "{codings:?}, chunks of {size}, at most {limit}"
                );
            }
        }
    }
}

#[test]
fn a_body_below_the_limit_keeps_an_unterminated_last_line() {
    let open = b"User-agent: *\nDisallow: /a";
    for limit in [open.len(), open.len() + 1] {
        assert_eq!(body(&[], limit, [&open[..]]).as_deref(), Ok(&open[..]));
        assert_eq!(body(&["gzip"], limit, [&*gzip(open)]).as_deref(), Ok(&open[..]));
    }
}

#[test]
fn a_line_that_the_limit_cuts_is_dropped() {
    for (sent, limit, kept) in [
        (&b"Allow: /a\nDisallow: /\n"[..], 21, &b"Allow: /a\nDisallow: /\n"[..]),
        (b"Allow: /a\nDisallow: /\n", 20, b"Allow: /a\n"),
        (b"Allow: /a\nDisallow: /\n", 11, b"Allow: /a\n"),
        (b"Allow: /a\nDisallow: /\n", 10, b"Allow: /a\n"),
        (b"Allow: /a\nDisallow: /\n", 9, b"Allow: /a\n"),
        (b"Allow: /a\nDisallow: /\n", 8, b""),
        (b"Allow: /a\r\nDisallow: /\r\n", 23, b"Allow: /a\r\nDisallow: /\r\n"),
        (b"Allow: /a\r\nDisallow: /\r\n", 11, b"Allow: /a\r\n"),
        (b"Allow: /a\r\nDisallow: /\r\n", 10, b"Allow: /a\r\n"),
        (b"Allow: /a\r\nDisallow: /\r\n", 9, b"Allow: /a\r\n"),
        (b"Allow: /a\rDisallow: /\r", 15, b"Allow: /a\r"),
        (b"Disallow: /and no line end at all", 12, b""),
    ] {
        let zipped = gzip(sent);
        for size in [1, 5, 1000] {
            let shown = sent.escape_ascii();
            let found = body(&[], limit, sent.chunks(size));
            assert_eq!(found.as_deref(), Ok(kept), "{shown}, at most {limit}, chunks of {size}");
            let found = body(&["gzip"], limit, zipped.chunks(size));
            assert_eq!(
                found.as_deref(),
                Ok(kept),
                "{shown}, zipped, at most {limit}, chunks of {size}"
            );
        }
    }
}

#[test]
fn the_body_reports_what_was_cut_off() {
    let sent = b"Allow: /a\nDisallow: /\nAllow: /b";
    for (limit, counts, cut_off) in [
        (31, &sent[..], &b""[..]),
        (30, &sent[..22], &sent[22..]),
        (22, &sent[..22], b"All"),
        (21, &sent[..22], b"Al"),
        (20, &sent[..10], b"Disallow: /\nA"),
        (5, b"", b"Allow: /"),
    ] {
        let complete = gzip(sent);
        for (codings, sent) in [(&[][..], &sent[..]), (&["gzip"], &complete)] {
            let mut decoder = decoder(codings, limit).expect("a known coding");
            let body = match decoder.push(sent).expect("no error") {
                Room::Full => decoder.into_body(),
                Room::Left => decoder.finish().expect("a whole body"),
            };
            assert_eq!(
                (&*body.counts, &*body.cut_off),
                (counts, cut_off),
                "{codings:?}, at most {limit}"
            );
        }
    }
}

#[test]
fn within_limit_cuts_a_body_like_a_fetch_does() {
    let line = b"Disallow: /abc\n";
    for over in 0..=2 * line.len() {
        let sent = [vec![b'\n'; robots::LIMIT - line.len()], line.repeat(3)].concat();
        let sent = &sent[..robots::LIMIT - line.len() + over];
        let fetched = body(&[], robots::LIMIT, [sent]);
        assert_eq!(fetched.as_deref(), Ok(&*within_limit(sent.to_vec())), "{over}");
    }
}

#[test]
fn a_compression_bomb_is_decoded_only_up_to_the_limit() {
    let line = b"Disallow: /x\n";
    let bomb = gzip(&line.repeat(64 * 1024 * 1024 / line.len()));
    assert!(bomb.len() < 1024 * 1024);
    for size in [1, 1000, bomb.len()] {
        let mut decoder = decoder(&["gzip"], robots::LIMIT).expect("gzip was asked for");
        let mut chunks = bomb.chunks(size);
        let full = chunks.find(|chunk| decoder.push(chunk).expect("no error before the limit") == Room::Full);
        assert!(full.is_some(), "chunks of {size}");
        assert!(
            decoder.bounded().bytes.len() <= robots::LIMIT + robots::BEYOND,
            "chunks of {size}"
        );
        assert!(
            decoder.bounded().bytes.capacity() <= 2 * robots::LIMIT,
            "chunks of {size}"
        );
        let left: usize = chunks.map(<[u8]>::len).sum();
        assert!(
            size == bomb.len() || left > bomb.len() / 2,
            "{left} bytes are never looked at"
        );
        let kept = decoder.into_body().counts;
        assert_eq!(kept, line.repeat(robots::LIMIT / line.len()), "chunks of {size}");
    }
}

#[test]
fn bytes_after_the_limit_are_ignored() {
    let mut sent = gzip(&b"Disallow: /x\n".repeat(1000));
    let end = sent.len();
    sent[end - 8..].fill(0xFF);
    let found = body(&["gzip"], 20, [&*sent]);
    assert_eq!(
        found.as_deref(),
        Ok(&b"Disallow: /x\n"[..]),
        "its check sum is never reached"
    );
}

#[test]
fn a_truncated_gzip_body_is_an_error() {
    let sent = gzip(LINES);
    for len in 1..sent.len() {
        for size in [1, 1000] {
            let found = body(&["gzip"], 1000, sent[..len].chunks(size));
            assert!(
                matches!(
                    found,
                    Err(Failure {
                        error: FetchError::Coding(_),
                        ..
                    })
                ),
                "{len} of {} bytes: {found:?}",
                sent.len()
            );
        }
    }
}

#[test]
fn an_invalid_or_damaged_gzip_body_is_an_error() {
    let mut damaged = gzip(LINES);
    let sum = damaged.len() - 8;
    damaged[sum] ^= 1;
    for sent in [&damaged[..], LINES, b"\x1f\x8b\x07", &[0; 100]] {
        let found = error(body(&["gzip"], 1000, [sent]));
        assert!(matches!(found, FetchError::Coding(_)), "{}", sent.escape_ascii());
    }
}

#[test]
fn an_unrequested_coding_is_an_error_that_names_it() {
    for (codings, named) in [
        (&["br"][..], "\"br\""),
        (&["deflate"], "\"deflate\""),
        (&["zstd"], "\"zstd\""),
        (&["identity, br"], "\"br\""),
        (&[&*"x".repeat(100_000)], &*format!("\"{}…\"", "x".repeat(64))),
    ] {
        let found = error(body(codings, 1000, [LINES]));
        assert_eq!(
            found,
            FetchError::Coding(format!(
                "the site encoded it with {named}, although robotgate accepts only gzip"
            )),
            "{codings:?}"
        );
    }
}

#[test]
fn several_codings_are_refused_and_named() {
    for (codings, named) in [
        (&["gzip, gzip"][..], "gzip, gzip"),
        (&["gzip", "gzip"], "gzip, gzip"),
        (&["gzip, br"], "gzip, br"),
        (&["br, identity,gzip"], "br, gzip"),
    ] {
        let found = error(body(codings, 1000, [LINES])).to_string();
        assert!(found.contains(&format!("\"{named}\"")), "{codings:?}: {found}");
    }
}
