//! A strict parser of HTTP/1 messages (RFC 9112), independent of the code under test. It splits what one side of a
//! connection sent into messages.
//!
//! It uses only the standard library, so that the fuzz targets can include this file.

/// The messages in one direction of a connection.
#[derive(Debug)]
pub struct Read {
    pub messages: Vec<Message>,
    /// Where the messages end and `rest` begins.
    pub end: usize,
    pub rest: Rest,
}

/// What comes after the last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    Nothing,
    PartOfHead,
    /// An invalid head or chunk, and what is wrong with it.
    Broken(&'static str),
    /// A response for which there was no request.
    TooMany,
    /// Another protocol, after a `101`.
    Upgraded,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// The request line or status line.
    pub start: String,
    /// Names as written, and values without the spaces around them.
    pub fields: Vec<(String, String)>,
    /// The content, without chunk framing.
    pub content: Vec<u8>,
    pub framing: Framing,
    pub trailers: Vec<String>,
    pub end: End,
    /// Offset in the bytes at which the message ends.
    pub until: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Nothing,
    Length(usize),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    /// The rest of the content has not arrived.
    Open,
    /// The chunks are invalid.
    Broken(&'static str),
}

pub fn requests(bytes: &[u8]) -> Read {
    read(bytes, |message| {
        let framing = framing_of_request(message)?;
        Ok((framing, false))
    })
}

/// Parses the responses to requests with these methods, including interim ones. `ended` is whether no more bytes will
/// arrive.
pub fn responses(bytes: &[u8], methods: &[String], ended: bool) -> Read {
    let mut methods = methods.iter();
    let mut read = read(bytes, |message| {
        let status = message.status().ok_or("no status line")?;
        if matches!(status, 100 | 102..=199) {
            return Ok((Framing::Nothing, false));
        }
        let Some(method) = methods.next() else {
            return Err(TOO_MANY);
        };
        Ok((framing_of_response(message, method, status)?, status == 101))
    });
    if ended {
        for message in &mut read.messages {
            if message.framing == Framing::UntilClose {
                message.end = End::Complete;
            }
        }
    }
    read
}

fn read(bytes: &[u8], mut framing_of: impl FnMut(&Message) -> Result<(Framing, bool), &'static str>) -> Read {
    let mut messages = Vec::new();
    let mut at = 0;
    let rest = loop {
        if at == bytes.len() {
            break Rest::Nothing;
        }
        let Some(length) = find(&bytes[at..], b"\r\n\r\n").map(|found| found + 4) else {
            break Rest::PartOfHead;
        };
        let framed =
            head(&bytes[at..at + length]).and_then(|message| framing_of(&message).map(|framing| (message, framing)));
        let (mut message, (framing, upgraded)) = match framed {
            Ok(framed) => framed,
            Err(TOO_MANY) => break Rest::TooMany,
            Err(why) => break Rest::Broken(why),
        };
        at += length;
        message.framing = framing;
        at += take_content(&mut message, &bytes[at..]);
        message.until = at;
        let end = message.end;
        messages.push(message);
        if upgraded {
            break Rest::Upgraded;
        }
        match end {
            End::Complete => {}
            End::Open => break Rest::Nothing,
            End::Broken(why) => break Rest::Broken(why),
        }
    };
    Read {
        messages,
        end: at,
        rest,
    }
}

/// Parses a head up to its empty line. Rejects folded lines, a space before a colon, and line ends other than CRLF.
fn head(bytes: &[u8]) -> Result<Message, &'static str> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    let text = text.strip_suffix("\r\n\r\n").ok_or("no end of the head")?;
    let mut lines = text.split("\r\n");
    let start = lines.next().unwrap_or_default();
    if start.is_empty() || start.contains(['\r', '\n', '\0']) {
        return Err("a bad first line");
    }
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a line without a colon")?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            return Err("a field name has an invalid character");
        }
        if value.chars().any(|c| c != '\t' && (c.is_ascii_control())) {
            return Err("a control character in a field value");
        }
        fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
    }
    Ok(Message {
        start: start.to_owned(),
        fields,
        content: Vec::new(),
        framing: Framing::Nothing,
        trailers: Vec::new(),
        end: End::Complete,
        until: 0,
    })
}

/// Copies the content at the start of `bytes` into `message`. Returns how many bytes it takes up, with chunk framing.
fn take_content(message: &mut Message, bytes: &[u8]) -> usize {
    match message.framing {
        Framing::Nothing => 0,
        Framing::Length(length) => {
            let taken = length.min(bytes.len());
            message.content.extend(&bytes[..taken]);
            if taken < length {
                message.end = End::Open;
            }
            taken
        }
        Framing::UntilClose => {
            message.content.extend(bytes);
            message.end = End::Open;
            bytes.len()
        }
        Framing::Chunked => take_chunks(message, bytes),
    }
}

fn take_chunks(message: &mut Message, bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut ended = false;
    loop {
        let Some(length) = find(&bytes[at..], b"\r\n") else {
            message.end = End::Open;
            return at;
        };
        let line: String = bytes[at..at + length].iter().map(|&byte| char::from(byte)).collect();
        if ended {
            at += length + 2;
            if line.is_empty() {
                message.end = End::Complete;
                return at;
            }
            message.trailers.push(line);
            continue;
        }
        let digits = line.split(';').next().unwrap_or_default();
        let is_size = !digits.is_empty() && digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(size) = usize::from_str_radix(digits, 16).ok().filter(|_| is_size) else {
            message.end = End::Broken("a bad chunk size");
            return at;
        };
        if line.contains(['\r', '\n', '\0']) {
            message.end = End::Broken("a bad chunk line");
            return at;
        }
        let start = at + length + 2;
        if size == 0 {
            at = start;
            ended = true;
            continue;
        }
        let there = &bytes[start..bytes.len().min(start + size)];
        message.content.extend(there);
        let after = start + size;
        match bytes.get(after..after + 2) {
            Some(b"\r\n") => at = after + 2,
            None if bytes.len() <= after || bytes[after..] == *b"\r" => {
                message.end = End::Open;
                return bytes.len();
            }
            _ => {
                message.end = End::Broken("a chunk does not end where it says");
                return after;
            }
        }
    }
}

// === impl Message ===

impl Message {
    /// Returns the values of a field.
    pub fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m str> {
        let named = self
            .fields
            .iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Returns the status of a status line; `None` for any other line.
    pub fn status(&self) -> Option<u16> {
        let rest = self
            .start
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.strip_prefix(['0', '1']))?;
        let code = rest.strip_prefix(' ')?;
        let (code, reason) = code.split_at_checked(3)?;
        let is_status =
            code.bytes().all(|byte| byte.is_ascii_digit()) && (reason.is_empty() || reason.starts_with(' '));
        code.parse().ok().filter(|_| is_status)
    }

    /// Returns whether this is a final response, not an interim one.
    pub fn is_final(&self) -> bool {
        self.status().is_some_and(|status| !matches!(status, 100 | 102..=199))
    }

    /// Returns method, target and version of a request line.
    pub fn request_line(&self) -> Option<(&str, &str, &str)> {
        let mut words = self.start.split(' ');
        let line = (words.next()?, words.next()?, words.next()?);
        (words.next().is_none()).then_some(line)
    }
}

fn framing_of_request(message: &Message) -> Result<Framing, &'static str> {
    let (method, target, version) = message.request_line().ok_or("no request line")?;
    if method.is_empty() || target.is_empty() || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err("no request line");
    }
    let lengths: Vec<&str> = message.all("content-length").collect();
    let codings: Vec<&str> = message.all("transfer-encoding").collect();
    match (lengths[..].len(), codings[..].len()) {
        (0, 0) => Ok(Framing::Nothing),
        (1, 0) => length(lengths[0]).map(Framing::Length),
        (0, 1) if codings[0].eq_ignore_ascii_case("chunked") && version == "HTTP/1.1" => Ok(Framing::Chunked),
        _ => Err("framed in two ways"),
    }
}

fn framing_of_response(message: &Message, method: &str, status: u16) -> Result<Framing, &'static str> {
    if method == "HEAD" || matches!(status, 101 | 204 | 304) {
        return Ok(Framing::Nothing);
    }
    let lengths: Vec<&str> = message.all("content-length").collect();
    let codings: Vec<&str> = message.all("transfer-encoding").collect();
    match (lengths.len(), codings.len()) {
        (0, 0) => Ok(Framing::UntilClose),
        (1, 0) => length(lengths[0]).map(Framing::Length),
        (0, 1) if codings[0].eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
        _ => Err("framed in two ways"),
    }
}

fn length(digits: &str) -> Result<usize, &'static str> {
    let is_number = (1..=12).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or("a bad length")
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

const TOO_MANY: &str = "a response to no request";
