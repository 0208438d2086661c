//! How a question is written as bytes: the agent's line, the URL's line, and the file as it is.
//!
//! So a fuzzer's finding can be read, and written by hand; and what a dictionary puts in stands where it means
//! something. An agent or URL with a line feed is out of reach.

use std::borrow::Cow;

pub struct Input<'a> {
    pub agent: Cow<'a, str>,
    pub url: &'a [u8],
    pub body: &'a [u8],
}

// === impl Input ===

impl<'a> Input<'a> {
    pub fn read(data: &'a [u8]) -> Option<Self> {
        let mut parts = data.splitn(3, |byte| *byte == b'\n');
        Some(Self {
            agent: String::from_utf8_lossy(parts.next()?),
            url: parts.next()?,
            body: parts.next()?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        [self.agent.as_bytes(), b"\n", self.url, b"\n", self.body].concat()
    }
}
