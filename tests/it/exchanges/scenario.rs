//! A hostile client and a hostile origin, derived from bytes. Fewer and smaller bytes make a simpler scenario.
//!
//! [`super::model`] defines the expected results.

/// What one client does on one connection, and how the origin responds to each request.
#[derive(Debug)]
pub struct Scenario {
    pub asks: Vec<Ask>,
    pub pipelined: bool,
    pub break_off: Option<BreakOff>,
    /// Size of the pieces in which bytes are sent; 0 sends them as a whole.
    pub piece: usize,
}

#[derive(Debug)]
pub struct Ask {
    pub method: &'static str,
    /// Whether the robots.txt disallows the request.
    pub refused: bool,
    pub version: &'static str,
    pub fields: &'static str,
    pub framing: Framing,
    pub content: Content,
    pub fault: Option<Fault>,
    pub answer: OriginAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Nothing,
    Length,
    /// Content in chunks of this size in bytes.
    Chunks(usize),
    UntilClose,
}

/// A fault in a request, because of which the request must not be forwarded, or not completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A fault in the head: nothing may be forwarded.
    Head(&'static str),
    /// A broken chunk with this text, after the content.
    Chunk(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct BreakOff {
    /// The index of the request in which the client breaks off.
    pub ask: usize,
    /// The client breaks off after this share of the request's bytes, in 256ths. If `None`, it breaks off after a part
    /// of the response.
    pub share: Option<u8>,
    pub how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Close,
    Reset,
    /// Closes the sending direction and waits.
    Finish,
}

#[derive(Debug)]
pub struct OriginAnswer {
    pub interim: usize,
    pub status: u16,
    pub framing: Framing,
    pub content: Content,
    /// Whether the response is sent before the request's content arrives.
    pub early: bool,
    pub says_close: bool,
    /// Whether the connection is closed after the response.
    pub closes: bool,
    /// Bytes sent after the response that belong to no response.
    pub extra: &'static str,
    /// If set, only this share of the response is sent, in 256ths, before the connection ends.
    pub cut: Option<u8>,
    pub reset: bool,
    /// One of [`ANSWER_FAULTS`], in place of the status line.
    pub fault: Option<&'static str>,
}

/// Its `Debug` shows only the beginning, as text.
#[derive(Default)]
pub struct Content(pub Vec<u8>);

struct Choices<'b>(std::slice::Iter<'b, u8>);

// === impl Choices ===

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// Chooses one of `all`; if no bytes are left, the first.
    fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// Returns true in one of `times` cases.
    fn seldom(&mut self, times: u8) -> bool {
        self.byte() % times == times - 1
    }
}

// === impl Scenario ===

impl Scenario {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut choices = Choices(bytes.iter());
        let number = choices.one(&[1, 2, 3, 5]);
        let pipelined = choices.seldom(6);
        let piece = choices.one(&[0, 0, 0, 1000, 100, 7, 1]);
        let break_off = choices.seldom(4).then(|| BreakOff {
            ask: usize::from(choices.byte()) % number,
            share: (!choices.seldom(3)).then(|| choices.byte()),
            how: choices.one(&[How::Close, How::Finish, How::Reset]),
        });
        Self {
            asks: (0..number).map(|_| ask(&mut choices)).collect(),
            pipelined,
            break_off,
            piece,
        }
    }
}

fn ask(choices: &mut Choices<'_>) -> Ask {
    let method = choices.one(&["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PURGE"]);
    let framing = match method {
        "POST" | "PUT" | "PURGE" => choices.one(&[
            Framing::Length,
            Framing::Chunks(1000),
            Framing::Chunks(3),
            Framing::Nothing,
        ]),
        _ => choices.one(&[
            Framing::Nothing,
            Framing::Nothing,
            Framing::Nothing,
            Framing::Length,
            Framing::Chunks(5),
        ]),
    };
    let version = match framing {
        Framing::Chunks(_) => "1.1",
        _ => choices.one(&["1.1", "1.1", "1.1", "1.1", "1.0"]),
    };
    let fault = choices.seldom(8).then(|| match framing {
        Framing::Chunks(_) if choices.seldom(2) => Fault::Chunk(choices.one(&CHUNK_FAULTS)),
        _ => Fault::Head(choices.one(&HEAD_FAULTS)),
    });
    Ask {
        method,
        refused: choices.seldom(8),
        version,
        fields: choices.one(&FIELDS),
        framing,
        content: if framing == Framing::Nothing {
            Content::default()
        } else {
            content(choices)
        },
        fault,
        answer: answer(choices),
    }
}

fn answer(choices: &mut Choices<'_>) -> OriginAnswer {
    let framing = choices.one(&[
        Framing::Length,
        Framing::Length,
        Framing::Chunks(1000),
        Framing::Chunks(3),
        Framing::UntilClose,
    ]);
    OriginAnswer {
        interim: choices.one(&[0, 0, 0, 1, 3, 40]),
        status: choices.one(&[200, 200, 200, 404, 204, 304, 500]),
        framing,
        content: content(choices),
        early: choices.seldom(4),
        says_close: choices.seldom(6),
        closes: choices.seldom(6),
        extra: choices.one(&["", "", "", "", "", FORGED, "junk"]),
        cut: choices.seldom(8).then(|| choices.byte()),
        reset: choices.seldom(12),
        // In a chunked response, a Content-Length is ignored (RFC 9112 §6.3), so it is not a fault there.
        fault: choices
            .seldom(12)
            .then(|| choices.one(&ANSWER_FAULTS))
            .filter(|fault| !(matches!(framing, Framing::Chunks(_)) && fault.contains("Content-Length"))),
    }
}

fn content(choices: &mut Choices<'_>) -> Content {
    let length = choices.one(&[5, 0, 1, 2, 40, 300, 5000, 70_000]);
    let with = choices.one(&[
        &b"content"[..],
        SMUGGLED,
        b"\r\n\r\n",
        b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\0\xff",
    ]);
    Content(with.iter().copied().cycle().take(length).collect())
}

// === impl Ask ===

impl Ask {
    /// Returns the bytes of the request for a target.
    pub fn bytes(&self, authority: &str, path: &str) -> Vec<u8> {
        let Self {
            method,
            version,
            fields,
            ..
        } = self;
        let mut bytes = format!(
            "{method} http://{authority}{path} HTTP/{version}\r\nHost: {authority}\r\nUser-Agent: TestBot/1.0\r\n{fields}"
        );
        if let Some(Fault::Head(line)) = self.fault {
            bytes += line;
        }
        let mut bytes = bytes.into_bytes();
        frame(&mut bytes, self.framing, &self.content.0, self.fault);
        bytes
    }
}

// === impl OriginAnswer ===

impl OriginAnswer {
    /// Returns the bytes of the response to the request with this id, without `extra`; where its final head ends; and
    /// its content, if it has any.
    pub fn bytes(&self, method: &str, id: &str) -> (Vec<u8>, usize, Vec<u8>) {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(self.interim);
        let is_bare = method == "HEAD" || matches!(self.status, 204 | 304);
        let start = match self.fault {
            Some(fault) => fault.to_owned(),
            None => format!("HTTP/1.1 {} Reason\r\n", self.status),
        };
        let close = if self.says_close { "Connection: close\r\n" } else { "" };
        bytes.extend(format!("{start}X-Id: {id}\r\n{close}").as_bytes());
        let content = if is_bare { &[][..] } else { &self.content.0[..] };
        let framing = match (is_bare, self.framing) {
            (true, _) => Framing::Nothing,
            (false, framing) => framing,
        };
        let head = frame(&mut bytes, framing, content, None);
        (bytes, head, content.to_vec())
    }

    /// Returns whether the end of the connection ends the content.
    pub fn ends_by_close(&self, method: &str) -> bool {
        self.framing == Framing::UntilClose && method != "HEAD" && !matches!(self.status, 204 | 304)
    }
}

/// Writes the end of a head and the content. Returns where the head ends.
fn frame(bytes: &mut Vec<u8>, framing: Framing, content: &[u8], fault: Option<Fault>) -> usize {
    match framing {
        Framing::Nothing | Framing::UntilClose => bytes.extend(b"\r\n"),
        Framing::Length => bytes.extend(format!("Content-Length: {}\r\n\r\n", content.len()).as_bytes()),
        Framing::Chunks(size) => {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let head = bytes.len();
            for chunk in content.chunks(size) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            match fault {
                Some(Fault::Chunk(text)) => bytes.extend(text.as_bytes()),
                _ => bytes.extend(b"0\r\n\r\n"),
            }
            return head;
        }
    }
    let head = bytes.len();
    bytes.extend(content);
    head
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.0[..self.0.len().min(40)].escape_ascii();
        write!(f, "{} bytes: {shown}", self.0.len())
    }
}

const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
const FORGED: &str = "HTTP/1.1 200 OK\r\nX-Id: forged\r\nContent-Length: 6\r\n\r\nforged";
const FIELDS: [&str; 7] = [
    "",
    "",
    "",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    "X-A: b\r\nConnection: X-A\r\n",
];
/// Fields that two parsers could interpret in different ways.
const HEAD_FAULTS: [&str; 10] = [
    "Content-Length: 3\r\nContent-Length: 4\r\n",
    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Content-Length: -1\r\n",
    "Content-Length : 3\r\n",
    "X-A: b\r\n folded\r\n",
    "X-A: b\nX-B: c\r\n",
    "no colon\r\n",
    "Host: other.example\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
];
const CHUNK_FAULTS: [&str; 6] = [
    "x\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "-1\r\n\r\n",
    "3\r\nabcd\r\n0\r\n\r\n",
    "FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n",
    "0x3\r\nabc\r\n0\r\n\r\n",
    "g\r\n",
];
/// Beginnings of responses that the gate must not forward: a status line, and sometimes a few fields.
const ANSWER_FAULTS: [&str; 8] = [
    "HELLO\r\n",
    "HTTP/1.1 abc OK\r\n",
    "HTTP/9.9 200 OK\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
    "HTTP/1.1 200 OK\r\nX: \0\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: upgrade\r\n",
    "HTTP/1.1 407 Proxy Authentication Required\r\n",
];
