//! The tables of heads. [`Scene::payload`](crate::smuggling::Scene) fills in `{x}` and the other placeholders.

/// A name, the bytes, and text that the details of the response's `Proxy-Status` must contain.
pub type Payload = (&'static str, &'static str, &'static str);

/// Fields that define the content's length, and content. Each is sent after the start of a head, and before another
/// request.
pub const FRAMING_FIELDS: &[Payload] = &[
    (
        "CL.TE",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "both a Content-Length",
    ),
    (
        "TE.CL",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "both a Content-Length",
    ),
    (
        "CL.TE in other letters",
        "CONTENT-LENGTH: 4\r\ntransfer-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n",
        "both a Content-Length",
    ),
    (
        "CL of 0 and TE",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "both a Content-Length",
    ),
    (
        "CL.TE with an underscore",
        "Content-Length: 4\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\"_\"",
    ),
    ("CL with an underscore", "Content_Length: 4\r\n\r\nbody", "\"_\""),
    (
        "CL.TE behind a blank",
        "Content-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "header line",
    ),
    (
        "CL.TE behind a tab",
        "Content-Length: 4\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
        "header line",
    ),
    (
        "CL.TE before a blank",
        "Content-Length: 4\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "header line",
    ),
    (
        "CL.TE in a folded line",
        "Content-Length: 4\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "header line",
    ),
    (
        "CL.TE with a folded value",
        "Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "header line",
    ),
    (
        "CL.TE behind a bare CR",
        "Content-Length: 4\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "control character",
    ),
    (
        "CL.TE behind a bare LF",
        "Content-Length: 4\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "CRLF",
    ),
    (
        "CL.TE with a NUL",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n",
        "control character",
    ),
    (
        "TE with a VT",
        "Content-Length: 4\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        "control character",
    ),
    (
        "TE with a FF",
        "Transfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n",
        "control character",
    ),
    (
        "TE with a non-ASCII blank",
        "Transfer-Encoding: \u{a0}chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "CL equal twice",
        "Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
        "several Content-Length",
    ),
    (
        "CL twice",
        "Content-Length: 4\r\nContent-Length: 40\r\n\r\nbody",
        "several Content-Length",
    ),
    ("CL as a list", "Content-Length: 4, 4\r\n\r\nbody", "not a number"),
    ("CL as an odd list", "Content-Length: 4, 40\r\n\r\nbody", "not a number"),
    ("CL with a sign", "Content-Length: +4\r\n\r\nbody", "not a number"),
    ("CL of -0", "Content-Length: -0\r\n\r\n", "not a number"),
    ("CL in hex", "Content-Length: 0x4\r\n\r\nbody", "not a number"),
    ("CL with a parameter", "Content-Length: 4;x\r\n\r\nbody", "not a number"),
    ("CL quoted", "Content-Length: \"4\"\r\n\r\nbody", "not a number"),
    ("CL of nothing", "Content-Length:\r\n\r\n", "not a number"),
    ("CL of a point", "Content-Length: 4.0\r\n\r\nbody", "not a number"),
    ("CL with an exponent", "Content-Length: 4e0\r\n\r\nbody", "not a number"),
    (
        "CL in octal",
        "Content-Length: 010\r\n\r\nbody",
        "a plain decimal number",
    ),
    (
        "CL of 2^64",
        "Content-Length: 18446744073709551616\r\n\r\nbody",
        "a plain decimal number",
    ),
    (
        "CL of 2^64 + 4",
        "Content-Length: 18446744073709551620\r\n\r\nbody",
        "a plain decimal number",
    ),
    (
        "CL with a tab",
        "Content-Length: 4\t\r\n\r\nbody",
        "unusual white space",
    ),
    (
        "CL behind two blanks",
        "Content-Length:  4\r\n\r\nbody",
        "unusual white space",
    ),
    (
        "TE with a tab",
        "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
        "unusual white space",
    ),
    (
        "TE behind a tab",
        "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
        "unusual white space",
    ),
    (
        "TE twice",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE and TE of identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE of identity",
        "Transfer-Encoding: identity\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE as a list",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE as another list",
        "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE of xchunked",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE quoted",
        "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE with a comma",
        "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    (
        "TE with a parameter",
        "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding",
    ),
    ("TE of nothing", "Transfer-Encoding:\r\n\r\n", "Transfer-Encoding"),
    (
        "TE nominated",
        "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "meant for the origin too",
    ),
    (
        "CL nominated",
        "Connection: close, Content-Length\r\nContent-Length: 4\r\n\r\nbody",
        "meant for the origin too",
    ),
];

/// Whole heads with a fault that is not in the framing fields.
pub const HEADS: &[Payload] = &[
    (
        "TE in HTTP/1.0",
        "POST {x} HTTP/1.0\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0",
    ),
    (
        "a folded Host",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\n .b.example\r\n\r\n",
        "header line",
    ),
    (
        "a blank before the first field",
        "GET {x} HTTP/1.1\r\n Host: {host}\r\n\r\n",
        "header line",
    ),
    (
        "a tab before the first field",
        "GET {x} HTTP/1.1\r\n\tX: a\r\nHost: {host}\r\n\r\n",
        "header line",
    ),
    (
        "a blank before the colon",
        "GET {x} HTTP/1.1\r\nHost : {host}\r\n\r\n",
        "header line",
    ),
    (
        "a field without a name",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\n: a\r\n\r\n",
        "header line",
    ),
    (
        "a field without a colon",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX\r\n\r\n",
        "header line",
    ),
    (
        "a control in a name",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX\x01: a\r\n\r\n",
        "header line",
    ),
    (
        "a quote in a name",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\n\"X\": a\r\n\r\n",
        "header line",
    ),
    (
        "a letter past ASCII in a name",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\n\u{e9}: a\r\n\r\n",
        "header line",
    ),
    (
        "a NUL in a value",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX: a\0b\r\n\r\n",
        "control character",
    ),
    (
        "a VT in a value",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX: a\x0bb\r\n\r\n",
        "control character",
    ),
    (
        "an ESC in a value",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX: \x1b[2J\r\n\r\n",
        "control character",
    ),
    (
        "a DEL in a value",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX: \x7f\r\n\r\n",
        "control character",
    ),
    (
        "a bare CR in a value",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nX: a\rb\r\n\r\n",
        "control character",
    ),
    (
        "a bare CR at a line's end",
        "GET {x} HTTP/1.1\rHost: {host}\r\n\r\n",
        "CRLF",
    ),
    (
        "two CR at a line's end",
        "GET {x} HTTP/1.1\r\r\nHost: {host}\r\n\r\n",
        "CRLF",
    ),
    (
        "a bare CR before the request",
        "\rGET {x} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "CRLF",
    ),
    (
        "a bare LF at the first line's end",
        "GET {x} HTTP/1.1\nHost: {host}\r\n\r\n",
        "CRLF",
    ),
    (
        "a bare LF at a field's end",
        "GET {x} HTTP/1.1\r\nHost: {host}\nX: a\r\n\r\n",
        "CRLF",
    ),
    ("bare LFs throughout", "GET {x} HTTP/1.1\nHost: {host}\n\n", "CRLF"),
    ("a bare LF at the end", "GET {x} HTTP/1.1\r\nHost: {host}\r\n\n", "CRLF"),
    (
        "a NUL in the target",
        "GET {x}\0 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    (
        "a VT in the target",
        "GET {x}\x0b HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    (
        "a DEL in the target",
        "GET {x}\x7f HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    (
        "a tab in the target",
        "GET {x}\ta HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    (
        "a bare CR in the target",
        "GET {x}\r HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    (
        "a blank in the target",
        "GET {x} a HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "the request target has a space",
    ),
    (
        "two blanks before the version",
        "GET {x}  HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "version",
    ),
    (
        "a tab for a blank",
        "GET\t{x}\tHTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    (
        "a request inside the first line",
        "GET {x} HTTP/1.1 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "CRLF",
    ),
    (
        "no Host",
        "GET {x} HTTP/1.1\r\nUser-Agent: TestBot/1.0\r\n\r\n",
        "no Host",
    ),
    (
        "two Hosts",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nHost: b.example\r\n\r\n",
        "several Host",
    ),
    (
        "one Host twice",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nhost: {host}\r\n\r\n",
        "several Host",
    ),
    (
        "an empty Host",
        "GET {x} HTTP/1.1\r\nHost:\r\n\r\n",
        "the host is missing",
    ),
    (
        "a Host that is a list",
        "GET {x} HTTP/1.1\r\nHost: {host}, b.example\r\n\r\n",
        "Host field",
    ),
    (
        "a Host with a user",
        "GET {x} HTTP/1.1\r\nHost: me@{host}\r\n\r\n",
        "Host field",
    ),
    (
        "a Host with a path",
        "GET {x} HTTP/1.1\r\nHost: {host}/x\r\n\r\n",
        "Host field",
    ),
    (
        "a Host with a blank",
        "GET {x} HTTP/1.1\r\nHost: {host} b.example\r\n\r\n",
        "Host field",
    ),
    (
        "another Host",
        "GET {x} HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "different host",
    ),
    (
        "another port in Host",
        "GET {x} HTTP/1.1\r\nHost: shop.example:1\r\n\r\n",
        "different host",
    ),
    (
        "a user in the target",
        "GET http://me@{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "remove the user name before the host",
    ),
    (
        "a password in the target",
        "GET http://me:pw@{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "remove the user name before the host",
    ),
    (
        "a backslash for a slash",
        "GET http:\\\\{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "two ways",
    ),
    (
        "one slash too few",
        "GET http:/{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "two ways",
    ),
    (
        "another host in absolute form",
        "GET http://b.example/x HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "different host",
    ),
    (
        "a method in small letters",
        "get {x} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "capital letters",
    ),
    (
        "a method in mixed letters",
        "Get {x} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "capital letters",
    ),
    (
        "a CONNECT in small letters",
        "connect {host} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "capital letters",
    ),
    (
        "an odd method",
        "G!T {x} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "capital letters",
    ),
    ("no method", " {x} HTTP/1.1\r\nHost: {host}\r\n\r\n", "request line"),
    (
        "a method with a NUL",
        "G\0T {x} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "request line",
    ),
    ("HTTP/0.9", "GET {x}\r\n\r\n", "request line"),
    ("HTTP/1.2", "GET {x} HTTP/1.2\r\nHost: {host}\r\n\r\n", "version"),
    ("HTTP/2.0", "GET {x} HTTP/2.0\r\nHost: {host}\r\n\r\n", "version"),
    ("http/1.1", "GET {x} http/1.1\r\nHost: {host}\r\n\r\n", "version"),
    ("HTTP/01.1", "GET {x} HTTP/01.1\r\nHost: {host}\r\n\r\n", "version"),
    ("HTTP/1.01", "GET {x} HTTP/1.01\r\nHost: {host}\r\n\r\n", "CRLF"),
    (
        "HTTP/1.1 and a blank",
        "GET {x} HTTP/1.1 \r\nHost: {host}\r\n\r\n",
        "CRLF",
    ),
    ("HTTP /1.1", "GET {x} HTTP /1.1\r\nHost: {host}\r\n\r\n", "version"),
    ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"),
    (
        "a TRACE with content",
        "TRACE {x} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\r\nbody",
        "TRACE",
    ),
    (
        "a path for OPTIONS that is none",
        "OPTIONS ** HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "",
    ),
    ("a star for a GET", "GET * HTTP/1.1\r\nHost: {host}\r\n\r\n", ""),
    (
        "Host nominated",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nConnection: close, host\r\n\r\n",
        "meant for the origin too",
    ),
    (
        "Cookie nominated",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nConnection: Cookie\r\nCookie: a=b\r\n\r\n",
        "meant for the origin too",
    ),
    (
        "Authorization nominated",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nConnection: authorization\r\n\r\n",
        "meant for the origin too",
    ),
    (
        "User-Agent nominated",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nConnection: user-agent\r\n\r\n",
        "meant for the origin too",
    ),
    (
        "a quoted nomination",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nConnection: \"host\"\r\n\r\n",
        "not a token",
    ),
    (
        "a pseudo field nominated",
        "GET {x} HTTP/1.1\r\nHost: {host}\r\nConnection: :path\r\n\r\n",
        "not a token",
    ),
];
