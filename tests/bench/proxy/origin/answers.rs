//! The origin's responses.

use bytes::Bytes;

/// The origin's paths, named by the size of their responses.
pub const SMALL: &str = "/small";
pub const LARGE: &str = "/large";
pub const HUGE: &str = "/huge";
/// A path that the origin's robots.txt disallows.
pub const PRIVATE: &str = "/private/page";

pub const SMALL_BYTES: usize = 1024;
pub const LARGE_BYTES: usize = 1024 * 1024;
const HUGE_BYTES: usize = 64 * LARGE_BYTES;

/// Every response, with its head for HTTP/1.1.
#[derive(Clone)]
pub struct Answers {
    small: Page,
    large: Page,
    huge: Page,
    robots: Page,
}

#[derive(Clone)]
pub struct Page {
    pub kind: &'static str,
    pub content: Bytes,
    /// How many times the content is sent.
    pub times: usize,
    /// What HTTP/1.1 sends first: the head, and the content once.
    pub response: Bytes,
}

// === impl Answers ===

impl Answers {
    pub fn new() -> Self {
        let html = "text/html; charset=utf-8";
        Self {
            small: Page::new(html, vec![b'x'; SMALL_BYTES]),
            large: Page::new("application/octet-stream", vec![b'x'; LARGE_BYTES]),
            huge: Page::repeated(
                "application/octet-stream",
                vec![b'x'; LARGE_BYTES],
                HUGE_BYTES / LARGE_BYTES,
            ),
            robots: Page::new("text/plain", robots().into_bytes()),
        }
    }

    /// Returns the response for a target, with or without scheme and host.
    pub fn of(&self, target: &str) -> &Page {
        if target.ends_with("/robots.txt") {
            &self.robots
        } else if target.ends_with(LARGE) {
            &self.large
        } else if target.ends_with(HUGE) {
            &self.huge
        } else {
            &self.small
        }
    }
}

// === impl Page ===

impl Page {
    fn new(kind: &'static str, content: Vec<u8>) -> Self {
        Self::repeated(kind, content, 1)
    }

    fn repeated(kind: &'static str, content: Vec<u8>, times: usize) -> Self {
        let length = content.len() * times;
        let mut response = format!(
            "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\nCache-Control: max-age=3600\r\nETag: \"5f-7\"\r\nVary: Accept-Encoding\r\n\r\n"
        )
        .into_bytes();
        response.extend(&content);
        Self {
            kind,
            content: content.into(),
            times,
            response: response.into(),
        }
    }
}

fn robots() -> String {
    let mut text = String::new();
    for agent in ["*", "OtherBot", super::super::AGENT] {
        text += &format!("User-agent: {agent}\nDisallow: /private\nAllow: /private/press\n");
        for number in 0..20 {
            text += &format!("Disallow: /section-{number}/*/print\n");
        }
        text += "\n";
    }
    text
}
