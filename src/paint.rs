//! Colour for a terminal, and none for anything else (no-color.org).

use std::{
    ffi::OsStr,
    fmt::{self, Display},
};

/// Whether there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Good,
    Bad,
    Warning,
    Note,
    Strong,
    Faint,
}

/// A text in its colour.
struct Painted<T> {
    text: T,
    codes: Option<&'static str>,
}

// === impl Paint ===

impl Paint {
    /// Colours at a terminal that shows them, where nobody forbids it.
    pub(crate) fn for_output(is_terminal: bool) -> Self {
        let variable = |name| std::env::var_os(name);
        Self::new(
            is_terminal,
            variable("NO_COLOR").as_deref(),
            variable("TERM").as_deref(),
        )
    }

    /// None for anything that is no terminal.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    fn new(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> Self {
        let forbidden = no_color.is_some_and(|value| !value.is_empty());
        let dumb = term.is_none_or(|term| term == "dumb");
        Self {
            on: is_terminal && !forbidden && !dumb,
        }
    }

    pub(crate) fn in_colour<T: Display>(self, colour: Colour, text: T) -> impl Display {
        let codes = match colour {
            Colour::Good => "1;32",
            Colour::Bad => "1;31",
            Colour::Warning => "1;33",
            Colour::Note => "1;36",
            Colour::Strong => "1",
            Colour::Faint => "2",
        };
        Painted {
            text,
            codes: self.on.then_some(codes),
        }
    }
}

// === impl Painted ===

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.codes {
            Some(codes) => write!(f, "\x1b[{codes}m{}\x1b[0m", self.text),
            None => self.text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_that_show_it() {
        let paints = |is_terminal, no_color: Option<&str>, term: Option<&str>| {
            Paint::new(is_terminal, no_color.map(OsStr::new), term.map(OsStr::new)).on
        };
        for (is_terminal, no_color, term, on) in [
            (true, None, Some("xterm"), true),
            (true, Some(""), Some("xterm"), true),
            (true, Some("1"), Some("xterm"), false),
            (true, None, Some("dumb"), false),
            (true, None, None, false),
            (false, None, Some("xterm"), false),
        ] {
            assert_eq!(
                paints(is_terminal, no_color, term),
                on,
                "{is_terminal} {no_color:?} {term:?}"
            );
        }
    }
}
