//! The page of a folder: what the server lists becomes HTML, a line at a time, so that a folder of any size needs the same
//! memory. Pure. All text of the server is escaped, and links lead only to names in the folder.

use std::{fmt::Write as _, time::SystemTime};

use bytes::{Bytes, BytesMut};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use suppaftp::list::ListParser;

use super::session::text;
use crate::{
    text::{Second, plain_message},
    trust::escaped,
    upstream::Fault,
};

/// A page that is being written.
pub(super) struct Listing {
    /// The part of the page that has not been taken.
    page: String,
    is_mlsd: bool,
}

/// A file or folder.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    name: Vec<u8>,
    is_folder: bool,
    size: Option<u64>,
    modified: Option<SystemTime>,
}

/// What a line of a list contains.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Entry(Entry),
    /// The folder itself or the one above, or how many blocks the files take.
    Nothing,
    /// robotgate cannot parse the line.
    Unknown,
}

/// Takes the next line off the front of what was read, without its end. `None` if it is not complete.
///
/// # Errors
/// Fails if the line is longer than any name can be.
pub(super) fn next_line(read: &mut BytesMut) -> Result<Option<BytesMut>, Fault> {
    let Some(end) = memchr::memchr(b'\n', read) else {
        return match read.len() > MAX_LINE {
            true => Err(Fault::ResponseIncomplete),
            false => Ok(None),
        };
    };
    Ok(Some(read.split_to(end + 1)))
}

// === impl Listing ===

impl Listing {
    /// Begins the page of the folder with this URL. `is_mlsd` says whether the lines are those of an MLSD (RFC 3659 §7)
    /// or of a LIST, which has no standard form.
    pub(super) fn new(url: &str, is_mlsd: bool) -> Self {
        let mut page = String::with_capacity(2 * CHUNK);
        let name = String::from_utf8_lossy(&percent_encoding::percent_decode_str(url).collect::<Vec<_>>()).into_owned();
        let name = escaped(&plain_message(&name, usize::MAX));
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Index of {name}</title>{STYLE}\
             <h1>Index of {name}</h1>\n<pre>"
        );
        let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        if path.is_some_and(|(_, path)| !path.is_empty()) {
            page.push_str("<a href=\"../\">../</a>\n");
        }
        Self { page, is_mlsd }
    }

    /// Adds what a line of the list says.
    pub(super) fn add(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parsed = match self.is_mlsd {
            true => of_mlsd(line),
            false => of_list(line),
        };
        match parsed {
            Line::Entry(entry) => self.add_entry(&entry),
            Line::Nothing => {}
            Line::Unknown => {
                let _ = writeln!(self.page, "{}", shown(line));
            }
        }
    }

    fn add_entry(&mut self, entry: &Entry) {
        let slash = if entry.is_folder { "/" } else { "" };
        let name = shown(&entry.name);
        let width = entry.name.len() + slash.len();
        let _ = write!(
            self.page,
            "<a href=\"{}{slash}\">{name}{slash}</a>{:pad$}",
            percent_encode(&entry.name, IN_LINK),
            "",
            pad = COLUMN.saturating_sub(width).max(2),
        );
        match entry.modified {
            Some(modified) => {
                let _ = write!(self.page, "{}", Second(modified));
            }
            None => {
                let _ = write!(self.page, "{:20}", "");
            }
        }
        if let Some(size) = entry.size {
            let _ = write!(self.page, "{size:>16}");
        }
        self.page.push('\n');
    }

    /// Returns whether there is enough to send.
    pub(super) fn has_chunk(&self) -> bool {
        self.page.len() >= CHUNK
    }

    /// Takes what was written.
    pub(super) fn take(&mut self) -> Bytes {
        let taken = Bytes::copy_from_slice(self.page.as_bytes());
        self.page.clear();
        taken
    }

    /// Ends the page, and takes the rest.
    pub(super) fn end(mut self) -> Bytes {
        self.page.push_str("</pre>\n</html>\n");
        self.page.into()
    }
}

/// Parses a line of an MLSD: `type=file;size=12;modify=20261101120000; name`.
fn of_mlsd(line: &[u8]) -> Line {
    let Some(space) = memchr::memchr(b' ', line) else {
        return Line::Unknown;
    };
    let (facts, name) = (String::from_utf8_lossy(&line[..space]), &line[space + 1..]);
    let fact = |wanted: &str| {
        let mut facts = facts.split(';').filter_map(|fact| fact.split_once('='));
        facts.find_map(|(name, value)| name.eq_ignore_ascii_case(wanted).then_some(value))
    };
    let kind = fact("type").unwrap_or("file").to_ascii_lowercase();
    match &*kind {
        "cdir" | "pdir" => Line::Nothing,
        _ if matches!(name, b"." | b"..") => Line::Nothing,
        _ if name.is_empty() => Line::Unknown,
        _ => Line::Entry(Entry {
            name: name.to_vec(),
            is_folder: kind == "dir",
            size: fact("size").and_then(|size| size.parse().ok()),
            modified: ListParser::parse_mlsd(&format!("modify={}; x", fact("modify").unwrap_or_default()))
                .ok()
                .map(|file| file.modified()),
        }),
    }
}

/// Parses a line of a LIST: that of `ls -l`, or that of DOS.
fn of_list(line: &[u8]) -> Line {
    if line.is_empty() || line.starts_with(b"total ") {
        return Line::Nothing;
    }
    // One character for each byte, so that a name of any encoding survives.
    let line = text(line);
    let Ok(file) = ListParser::parse_posix(&line).or_else(|_| ListParser::parse_dos(&line)) else {
        return Line::Unknown;
    };
    let name: Option<Vec<u8>> = file
        .name()
        .chars()
        .map(|character| u8::try_from(character).ok())
        .collect();
    match name {
        Some(name) if matches!(&*name, b"." | b"..") => Line::Nothing,
        Some(name) if !name.is_empty() => Line::Entry(Entry {
            name,
            is_folder: file.is_directory(),
            size: (file.is_file()).then_some(file.size() as u64),
            modified: Some(file.modified()),
        }),
        _ => Line::Unknown,
    }
}

/// Returns text of the server in a form that is safe to show.
fn shown(bytes: &[u8]) -> String {
    escaped(&plain_message(&String::from_utf8_lossy(bytes), usize::MAX))
}

pub(super) const CONTENT_TYPE: &str = "text/html; charset=utf-8";
/// Allows the page only to have a style.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = "<meta name=\"viewport\" content=\"width=device-width\"><style>\
    :root{color-scheme:light dark}body{margin:1.5rem;font:16px/1.5 system-ui,sans-serif}\
    h1{font-size:1.3rem;overflow-wrap:anywhere}pre{font:.9rem/1.6 ui-monospace,monospace}</style>";
/// The characters that are escaped in a link: all but the unreserved ones (RFC 3986 §2.3). So a name is never a path.
const IN_LINK: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Names have at most 255 bytes on most systems, and a LIST adds some hundred.
const MAX_LINE: usize = 8 * 1024;
/// A part of the page that is sent as one, in bytes.
const CHUNK: usize = 16 * 1024;
/// Width of the column with the names.
const COLUMN: usize = 50;
