//! Formats a played case as text, and masks values that differ between runs.

use serde_json::Value;

use super::peer::Got;
use crate::exchanges::{
    ledger::Entry,
    strict::{self, End, Framing, Message, Read, Rest},
};

/// Formats what an origin received on a connection.
pub fn requests(got: &Got) -> String {
    messages(&strict::requests(&got.bytes), &got.bytes)
}

/// Formats what a client received, after requests with these methods.
pub fn responses(got: &Got, methods: &[String]) -> String {
    messages(&strict::responses(&got.bytes, methods, got.ended), &got.bytes)
}

fn messages(read: &Read, bytes: &[u8]) -> String {
    let mut text = String::new();
    for message in &read.messages {
        text += &one(message);
    }
    let rest = bytes[read.end..].escape_ascii();
    match &read.rest {
        Rest::Nothing => {}
        Rest::PartOfHead => text += &format!("  [part of a head] {rest}\n"),
        Rest::Broken(why) => text += &format!("  [{why}] {rest}\n"),
        Rest::TooMany => text += &format!("  [a response to no request] {rest}\n"),
        Rest::Upgraded => text += &format!("  [another protocol] {rest}\n"),
    }
    text
}

fn one(message: &Message) -> String {
    let mut text = format!("  {}\n", message.start);
    for (name, value) in &message.fields {
        let value = match name.eq_ignore_ascii_case("date") {
            true => "{date}",
            false => value,
        };
        text += &format!("  {name}: {value}\n");
    }
    let framing = match message.framing {
        Framing::Nothing => "",
        Framing::Length(_) => "content",
        Framing::Chunked => "chunks",
        Framing::UntilClose => "until the end",
    };
    let end = match message.end {
        End::Complete => String::new(),
        End::Open => " (incomplete)".to_owned(),
        End::Broken(why) => format!(" ({why})"),
    };
    if framing.is_empty() {
        return text + "\n";
    }
    text += &format!("\n  [{framing}] {}{end}\n", content(&message.content));
    for trailer in &message.trailers {
        text += &format!("  [trailer] {trailer}\n");
    }
    text + "\n"
}

/// Formats content. Shows short content as it is; of long content, shows only the length, and the byte if all bytes are
/// the same.
pub fn content(bytes: &[u8]) -> String {
    if bytes.len() <= 2000 {
        return bytes.escape_ascii().to_string();
    }
    match bytes.iter().all(|byte| *byte == bytes[0]) {
        true => format!("{{{}*{}}}", char::from(bytes[0]), bytes.len()),
        false => format!("{} bytes, not all the same", bytes.len()),
    }
}

/// Formats a decision and its completion.
pub fn exchange(entry: &Entry) -> String {
    let decision = &entry.decision;
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut text = format!(
        "  {} {} {} {} forwarded={}",
        plain(&decision["method"]),
        plain(&decision["url"]),
        plain(&decision["verdict"]),
        plain(&decision["reason"]),
        decision["forwarded"],
    );
    text.push('\n');
    for end in &entry.completions {
        text += &format!(
            "    status={} error={} bytes_in={} bytes_out={}\n",
            end["status"],
            plain(&end["error"]),
            end["bytes_in"],
            end["bytes_out"]
        );
    }
    text
}

/// Masks the origin's host and port, and ids. The port alone is not masked: its digits can be part of an id.
pub fn masked(text: &str, authority: &str) -> String {
    let text = text.replace(authority, "{o}");
    let mut masked = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let id = rest.get(..36).filter(|id| is_uuid(id));
        let next = rest.chars().next().map_or(0, char::len_utf8);
        let taken = id.map_or(next, str::len);
        masked += id.map_or(&rest[..taken], |_| "{id}");
        rest = &rest[taken..];
    }
    masked
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}
