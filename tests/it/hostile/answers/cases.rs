//! The table of invalid responses.

use crate::support::{Reply, Step};

/// An invalid reply, which an origin sends for a page and for its robots.txt.
pub struct Case {
    pub name: &'static str,
    pub reply: Reply,
    /// The status of the response for a page, and its possible error types. If the status is 200 and there is an error
    /// type, the response breaks off.
    pub page: (u16, &'static [&'static str]),
    /// A part of the error that says why the robots.txt is unreachable; `None` if the response is usable.
    pub robots: Option<&'static str>,
}

impl Case {
    pub fn is_silent(&self) -> bool {
        self.page.1 == SILENT
    }
}

const BROKEN_OFF: &[&str] = &["connection_terminated", "http_response_incomplete"];
const NO_HTTP: &[&str] = &["http_protocol_error"];
const SILENT: &[&str] = &["connection_read_timeout"];

/// Returns all cases. Those that stop sending come last, because the tests shorten the time-outs before them.
pub fn cases() -> Vec<Case> {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let send = |bytes: &str| Step::send(bytes.to_owned());
    let case = |name, steps: Vec<Step>, page, robots| Case {
        name,
        reply: Reply::script(steps),
        page,
        robots,
    };
    let raw = |name, bytes: &str, page, robots| Case {
        name,
        reply: Reply::raw(bytes),
        page,
        robots,
    };
    let mut cases = vec![
        case(
            "reset at once",
            vec![Step::Reset],
            (502, BROKEN_OFF),
            Some("closed or reset"),
        ),
        case("close at once", vec![Step::Close], (502, BROKEN_OFF), Some("")),
        case(
            "reset in the head",
            vec![send("HTTP/1.1 200 OK\r\nX: "), Step::Reset],
            (502, BROKEN_OFF),
            Some(""),
        ),
        case(
            "half a field",
            vec![send("HTTP/1.1 200 OK\r\nCont"), Step::Close],
            (502, BROKEN_OFF),
            Some(""),
        ),
        case(
            "half a status line",
            vec![send("HTTP/1."), Step::Close],
            (502, BROKEN_OFF),
            Some(""),
        ),
        case(
            "reset in the body",
            vec![send(head), send("part"), Step::Reset],
            (200, BROKEN_OFF),
            Some("ended early"),
        ),
        case(
            "close in the body",
            vec![send(head), send("part"), Step::Close],
            (200, BROKEN_OFF),
            Some("ended early"),
        ),
        case(
            "stall before the head",
            vec![Step::Stall],
            (504, SILENT),
            Some("silent for too long"),
        ),
        case(
            "stall in the head",
            vec![send("HTTP/1.1 200 OK\r\nX:"), Step::Stall],
            (504, SILENT),
            Some("silent for too long"),
        ),
        case(
            "stall in the body",
            vec![send(head), send("part"), Step::Stall],
            (200, SILENT),
            Some("silent for too long"),
        ),
        case(
            "interim responses without end",
            vec![Step::Endless("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".into())],
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        case(
            "fields without end",
            vec![send("HTTP/1.1 200 OK\r\n"), Step::Endless("X-A: b\r\n".into())],
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        case(
            "a field without end",
            vec![send("HTTP/1.1 200 OK\r\nX: "), Step::Endless("x".repeat(10_000).into())],
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        case(
            "ten thousand cookies",
            vec![
                send("HTTP/1.1 200 OK\r\n"),
                send(&"Set-Cookie: a=b\r\n".repeat(10_000)),
                send("\r\n"),
                Step::Close,
            ],
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "both framings",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n",
            (200, &[]),
            None,
        ),
        raw(
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\npages",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a list of lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 4, 5\r\n\r\npages",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a length that is none",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\npage",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a negative length",
            "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\npage",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "an unknown coding",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n\r\npage",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "chunks that are none",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\npage\r\n0\r\n\r\n",
            (200, &["http_response_transfer_coding"]),
            Some("its chunks are malformed"),
        ),
        raw(
            "no last chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n",
            (200, BROKEN_OFF),
            Some("ended early"),
        ),
        raw(
            "no status line",
            "220 mail.example ESMTP\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "no status",
            "HTTP/1.1 OK\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a status of four digits",
            "HTTP/1.1 2000 OK\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a status of 99",
            "HTTP/1.1 099 OK\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "another version",
            "HTTP/3.1 200 OK\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "HTTP/0.9",
            "<html>page</html>\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a NUL in a value",
            "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a CR in a value",
            "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a blank in a name",
            "HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 0\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "a blank before the colon",
            "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
            (200, &[]),
            None,
        ),
        raw(
            "a folded field",
            "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
            (200, &[]),
            None,
        ),
        raw(
            "no colon",
            "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 0\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
        raw(
            "another protocol, unasked",
            "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
            (502, NO_HTTP),
            Some("not valid HTTP"),
        ),
    ];
    cases.sort_by_key(Case::is_silent);
    cases
}
