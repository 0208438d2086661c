//! Converts the server's list of a folder to an HTML page, one line at a time. Escapes all text of the server, and
//! links only to the names in the folder and to the folder above it. Does no I/O.

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

pub(super) struct Listing {
    /// The part of the page that [`Listing::take`] has not returned yet.
    page: String,
    is_mlsd: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct ListingEntry {
    name: Vec<u8>,
    is_folder: bool,
    size: Option<u64>,
    modified: Option<SystemTime>,
}

#[derive(Debug, PartialEq, Eq)]
enum ListingLine {
    Entry(ListingEntry),
    /// A line such as `total 8`, which names no entry of the folder.
    Nothing,
    Unknown,
}

/// Removes and returns the next line, or `None` if it is incomplete. Fails if an incomplete line exceeds [`MAX_LINE`].
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
    /// `is_mlsd` says whether the lines are in the format of MLSD (RFC 3659 §7), and not of LIST, which has no
    /// standard.
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

    pub(super) fn add(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parsed = match self.is_mlsd {
            true => of_mlsd(line),
            false => of_list(line),
        };
        match parsed {
            ListingLine::Entry(entry) => self.add_entry(&entry),
            ListingLine::Nothing => {}
            ListingLine::Unknown => {
                let _ = writeln!(self.page, "{}", shown(line));
            }
        }
    }

    fn add_entry(&mut self, entry: &ListingEntry) {
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

    pub(super) fn has_chunk(&self) -> bool {
        self.page.len() >= CHUNK
    }

    pub(super) fn take(&mut self) -> Bytes {
        let taken = Bytes::copy_from_slice(self.page.as_bytes());
        self.page.clear();
        taken
    }

    pub(super) fn end(mut self) -> Bytes {
        self.page.push_str("</pre>\n</html>\n");
        self.page.into()
    }
}

/// Parses a line such as `type=file;size=12;modify=20261101120000; name`.
fn of_mlsd(line: &[u8]) -> ListingLine {
    let Some(space) = memchr::memchr(b' ', line) else {
        return ListingLine::Unknown;
    };
    let (facts, name) = (String::from_utf8_lossy(&line[..space]), &line[space + 1..]);
    let fact = |wanted: &str| {
        let mut facts = facts.split(';').filter_map(|fact| fact.split_once('='));
        facts.find_map(|(name, value)| name.eq_ignore_ascii_case(wanted).then_some(value))
    };
    let kind = fact("type").unwrap_or("file").to_ascii_lowercase();
    match &*kind {
        "cdir" | "pdir" => ListingLine::Nothing,
        _ if matches!(name, b"." | b"..") => ListingLine::Nothing,
        _ if name.is_empty() => ListingLine::Unknown,
        _ => ListingLine::Entry(ListingEntry {
            name: name.to_vec(),
            is_folder: kind == "dir",
            size: fact("size").and_then(|size| size.parse().ok()),
            modified: ListParser::parse_mlsd(&format!("modify={}; x", fact("modify").unwrap_or_default()))
                .ok()
                .map(|file| file.modified()),
        }),
    }
}

/// Parses a line in the format of `ls -l` or of the DOS command `dir`.
fn of_list(line: &[u8]) -> ListingLine {
    if line.is_empty() || line.starts_with(b"total ") {
        return ListingLine::Nothing;
    }
    // With one character for each byte, a name in any encoding stays unchanged.
    let line = text(line);
    let Ok(file) = ListParser::parse_posix(&line).or_else(|_| ListParser::parse_dos(&line)) else {
        return ListingLine::Unknown;
    };
    let name: Option<Vec<u8>> = file
        .name()
        .chars()
        .map(|character| u8::try_from(character).ok())
        .collect();
    match name {
        Some(name) if matches!(&*name, b"." | b"..") => ListingLine::Nothing,
        Some(name) if !name.is_empty() => ListingLine::Entry(ListingEntry {
            name,
            is_folder: file.is_directory(),
            size: (file.is_file()).then_some(file.size() as u64),
            modified: Some(file.modified()),
        }),
        _ => ListingLine::Unknown,
    }
}

fn shown(bytes: &[u8]) -> String {
    escaped(&plain_message(&String::from_utf8_lossy(bytes), usize::MAX))
}

pub(super) const CONTENT_TYPE: &str = "text/html; charset=utf-8";
/// A content security policy that allows only styles.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = "<meta name=\"viewport\" content=\"width=device-width\"><style>\
    :root{color-scheme:light dark}body{margin:1.5rem;font:16px/1.5 system-ui,sans-serif}\
    h1{font-size:1.3rem;overflow-wrap:anywhere}pre{font:.9rem/1.6 ui-monospace,monospace}</style>";
/// Escapes all but the unreserved characters (RFC 3986 §2.3). So a slash in a name does not lead to another folder.
const IN_LINK: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Maximum length of an incomplete line, in bytes. Most systems limit names to 255 bytes, and LIST adds about 100.
const MAX_LINE: usize = 8 * 1024;
const CHUNK: usize = 16 * 1024;
/// Width of the column with the names. Each byte of a name counts as one character.
const COLUMN: usize = 50;
