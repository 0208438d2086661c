//! The format of an input of the target `decide`: a line with the agent, a line with the URL, and the file unchanged.
//!
//! So a fuzzer's finding can be read and written by hand, and dictionary entries end up in meaningful places.
//! An agent or URL with a line feed cannot be expressed.

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
