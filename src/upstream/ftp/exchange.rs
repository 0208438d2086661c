//! Chooses the FTP commands for a request, and converts the server's replies to an HTTP response.

use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use percent_encoding::{CONTROLS, percent_encode};
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::{io::AsyncReadExt as _, sync::mpsc};

use super::{
    Connected, Part, Progress,
    conditions::{Conditions, Selected},
    listing::{self, Listing},
    session::{Failed, NOT_LOGGED_IN, Reply, Session, Transfer},
};
use crate::{
    origin::{FtpPath, Target, asks_for_robots_txt},
    upstream::Fault,
};

pub(super) struct Request {
    is_head: bool,
    path: FtpPath,
    /// The URL of the request, for redirects and for the page of a folder.
    url: String,
    is_robots_txt: bool,
    conditions: Conditions,
}

/// Sends the parts of the response to [`Ftp`](super::Ftp).
pub(super) struct Output(pub(super) mpsc::Sender<Part>);

pub(super) async fn run(connected: Connected, request: Request, output: Output) -> Result<(), Fault> {
    match answer(connected, &request, &output).await {
        Ok(()) => Ok(()),
        Err(Failed::Fault(fault)) => Err(fault),
        Err(Failed::Refused(reply)) => output.refusal(&reply, request.is_robots_txt).await,
    }
}

async fn answer(connected: Connected, request: &Request, output: &Output) -> Result<(), Failed> {
    let mut session = Session::open(connected).await?;
    match request.path.is_folder() {
        true => answer_with_listing(&mut session, request, output).await,
        false => answer_with_file(&mut session, request, output).await,
    }
}

async fn answer_with_listing(session: &mut Session, request: &Request, output: &Output) -> Result<(), Failed> {
    session.enter(request.path.for_server()).await?;
    let head = [
        ("Content-Type", listing::CONTENT_TYPE),
        // Forbid scripts, because the page contains names that anybody may have uploaded.
        ("Content-Security-Policy", listing::POLICY),
        ("X-Content-Type-Options", "nosniff"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    if request.is_head {
        return Ok(output.head(StatusCode::OK, head).await?);
    }
    let (mut transfer, is_mlsd) = session.list().await?;
    output.head(StatusCode::OK, head).await?;
    let mut page = Listing::new(&request.url, is_mlsd);
    let mut read = BytesMut::new();
    while read_some(&mut transfer, CHUNK, &mut read, &session.progress).await? > 0 {
        while let Some(line) = listing::next_line(&mut read)? {
            page.add(&line);
            if page.has_chunk() {
                output.content(page.take()).await;
            }
        }
    }
    if !read.is_empty() {
        page.add(&read);
    }
    finish(transfer).await?;
    output.content(page.end()).await;
    Ok(())
}

async fn answer_with_file(session: &mut Session, request: &Request, output: &Output) -> Result<(), Failed> {
    let path = request.path.for_server();
    if request.is_robots_txt && !request.is_head {
        let size = match session.size(path).await {
            Ok(size) => size,
            Err(Failed::Refused(_)) => 0,
            Err(failed) => return Err(failed),
        };
        let (transfer, _) = session.retrieve(path, 0).await?;
        output
            .head(StatusCode::OK, FileHead::new(path, None, None).fields)
            .await?;
        // Read a robots.txt to its end, because rules would be lost if the server reported too small a size.
        let expected = Expected {
            length: None,
            least: size,
            is_to_the_end: true,
        };
        return copy(transfer, expected, output, &session.progress).await;
    }
    let size = match session.size(path).await {
        Ok(size) => Ok(size),
        Err(Failed::Refused(reply)) if reply.is_permanent() => match (session.enter(path).await, request.is_robots_txt)
        {
            // If `/robots.txt` is a folder, the site has no robots.txt.
            (Ok(()), true) => {
                return Err(Failed::Refused(Reply {
                    code: NOT_FOUND,
                    ..reply
                }));
            }
            (Ok(()), false) => {
                let location = [
                    ("Location", format!("{}/", request.url)),
                    ("Content-Length", "0".to_owned()),
                ];
                return Ok(output.head(StatusCode::MOVED_PERMANENTLY, location).await?);
            }
            (Err(Failed::Refused(_)), _) => Err(reply),
            (Err(failed), _) => return Err(failed),
        },
        Err(failed) => return Err(failed),
    };
    let modified = session.modified(path).await?;
    let known_size = size.as_ref().ok().copied();
    let selected = request.conditions.select(known_size, modified);
    let mut head = FileHead::new(path, known_size, modified);
    if request.is_head || selected == Selected::NotModified {
        // If the server reports neither size nor time, the file may not exist. So forward the refusal of SIZE.
        return match (selected, size, modified) {
            (Selected::NotModified, ..) => Ok(output.head(StatusCode::NOT_MODIFIED, head.fields).await?),
            (_, Err(reply), None) => Err(Failed::Refused(reply)),
            (_, size, _) => Ok(output.head(StatusCode::OK, head.with_length(size.ok()).fields).await?),
        };
    }
    let (first, last) = match (selected, known_size) {
        (Selected::Part { first, last }, _) => (first, Some(last)),
        (Selected::Unsatisfiable, size) => {
            head.push("Content-Range", format!("bytes */{}", size.unwrap_or(0)));
            let head = head.with_length(Some(0)).fields;
            return Ok(output.head(StatusCode::RANGE_NOT_SATISFIABLE, head).await?);
        }
        (Selected::Whole | Selected::NotModified, _) => (0, None),
    };
    let (transfer, began) = session.retrieve(path, first).await?;
    let mut status = StatusCode::OK;
    let mut length = known_size;
    // If the server cannot begin in the middle, robotgate forwards the whole file.
    if let (Some(last), Some(size)) = (last, known_size)
        && began == first
    {
        status = StatusCode::PARTIAL_CONTENT;
        length = Some(last - first + 1);
        head.push("Content-Range", format!("bytes {first}-{last}/{size}"));
    }
    let is_to_the_end = length.is_none_or(|length| Some(began + length) == known_size);
    output.head(status, head.with_length(length).fields).await?;
    let expected = Expected {
        length,
        least: length.unwrap_or(0),
        is_to_the_end,
    };
    copy(transfer, expected, output, &session.progress).await
}

/// Which bytes of a file to pass on to the client.
struct Expected {
    /// `None` for all bytes.
    length: Option<u64>,
    /// Minimum number of bytes. If fewer arrive, the transfer is incomplete.
    least: u64,
    is_to_the_end: bool,
}

/// Passes the bytes of a file on to the client. Holds back the last ones until the content is complete, so that the
/// client never treats an incomplete file as complete.
async fn copy(mut transfer: Transfer, expected: Expected, output: &Output, progress: &Progress) -> Result<(), Failed> {
    let mut left = expected.length;
    let mut total = 0;
    let mut held = Bytes::new();
    let mut read = BytesMut::new();
    while left != Some(0) {
        let most = left.map_or(CHUNK, |left| {
            usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK))
        });
        let count = read_some(&mut transfer, most, &mut read, progress).await?;
        if count == 0 {
            break;
        }
        total += count as u64;
        left = left.map(|left| left - count as u64);
        output
            .content(std::mem::replace(&mut held, read.split().freeze()))
            .await;
    }
    if total < expected.least {
        return Err(Fault::ResponseIncomplete.into());
    }
    // The server sends its final reply only after the whole file. So do not wait for the reply if a part of the file is
    // left.
    if expected.is_to_the_end && (left.is_none() || read_some(&mut transfer, 1, &mut read, progress).await? == 0) {
        finish(transfer).await?;
    }
    output.content(held).await;
    Ok(())
}

/// Appends at most `most` bytes to `read`. Returns their number, which is 0 at the end of the transfer.
async fn read_some(
    transfer: &mut Transfer,
    most: usize,
    read: &mut BytesMut,
    progress: &Progress,
) -> Result<usize, Fault> {
    read.reserve(most);
    let mut part = transfer.take(most as u64);
    let count = part.read_buf(read).await.map_err(|_| Fault::ResponseIncomplete)?;
    progress.add(count);
    Ok(count)
}

/// Closes the data connection, and reads the reply that says whether everything was sent.
async fn finish(transfer: Transfer) -> Result<(), Fault> {
    transfer.finish().await.map_err(|_| Fault::ResponseIncomplete)
}

// === impl Request ===

impl Request {
    /// Errors are internal: the proxy has already refused invalid paths and methods other than GET and HEAD.
    pub(super) fn new(head: &RequestHeader, target: &Target) -> Result<Self, Fault> {
        let internal = |error: &dyn std::fmt::Display| Fault::Internal(error.to_string());
        let is_head = match head.method {
            Method::GET => false,
            Method::HEAD => true,
            ref method => return Err(internal(method)),
        };
        let path = FtpPath::parse(&target.path).map_err(|error| internal(&error))?;
        Ok(Self {
            is_head,
            url: format!("{}{}", target.origin, percent_encode(&target.path, CONTROLS)),
            is_robots_txt: asks_for_robots_txt(&target.path),
            conditions: Conditions::new(&head.method, &head.headers),
            path,
        })
    }
}

struct FileHead {
    fields: Vec<(&'static str, String)>,
}

// === impl FileHead ===

impl FileHead {
    fn new(path: &[u8], size: Option<u64>, modified: Option<SystemTime>) -> Self {
        let kind = mime_guess::from_path(&*String::from_utf8_lossy(path)).first_or_octet_stream();
        let mut head = Self {
            fields: vec![("Content-Type", kind.essence_str().to_owned())],
        };
        if size.is_some() {
            head.push("Accept-Ranges", "bytes".to_owned());
        }
        if let Some(modified) = modified {
            head.push("Last-Modified", httpdate::fmt_http_date(modified));
        }
        head
    }

    fn push(&mut self, name: &'static str, value: String) {
        self.fields.push((name, value));
    }

    fn with_length(mut self, length: Option<u64>) -> Self {
        if let Some(length) = length {
            self.push("Content-Length", length.to_string());
        }
        self
    }
}

// === impl Output ===

impl Output {
    async fn head(
        &self,
        status: StatusCode,
        fields: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<(), Fault> {
        let head = || {
            let mut head = ResponseHeader::build(status, Some(8))?;
            for (name, value) in fields {
                head.insert_header(name, value)?;
            }
            Ok(Box::new(head))
        };
        let head = head().map_err(|error: Box<pingora::Error>| Fault::from_pingora(&error))?;
        self.part(Part::Head(head)).await;
        Ok(())
    }

    async fn content(&self, content: Bytes) {
        if !content.is_empty() {
            self.part(Part::Content(content)).await;
        }
    }

    async fn part(&self, part: Part) {
        // This cannot fail: `super::Ftp`, which polls this future, has the receiver.
        let _ = self.0.send(part).await;
    }

    /// Converts the refusal of a command to an HTTP response. For a robots.txt, an unclear reply is a fault: a 404
    /// would allow everything.
    async fn refusal(&self, reply: &Reply, is_robots_txt: bool) -> Result<(), Fault> {
        let status = match reply.code {
            TRY_LATER => StatusCode::SERVICE_UNAVAILABLE,
            _ if reply.is_temporary() => StatusCode::SERVICE_UNAVAILABLE,
            _ if is_robots_txt && reply.says_busy() => StatusCode::SERVICE_UNAVAILABLE,
            NOT_LOGGED_IN => StatusCode::FORBIDDEN,
            NOT_FOUND => StatusCode::NOT_FOUND,
            532 if !is_robots_txt => StatusCode::FORBIDDEN,
            551 | 553 if !is_robots_txt => StatusCode::NOT_FOUND,
            _ => return Err(reply.fault()),
        };
        let text = Bytes::from(format!("The FTP server answered: {}\n", reply.text));
        let head = [
            ("Content-Type", "text/plain; charset=utf-8".to_owned()),
            ("Content-Length", text.len().to_string()),
        ];
        self.head(status, head).await?;
        self.content(text).await;
        Ok(())
    }
}

/// The reply code in the greeting of a server that is not ready yet.
const TRY_LATER: u16 = 120;
const NOT_FOUND: u16 = 550;
const CHUNK: usize = 64 * 1024;
