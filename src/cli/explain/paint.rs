//! Colour for a terminal, and none for anything else (no-color.org).

use std::fmt::{self, Display};

/// Whether there is colour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    on: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Colour {
    Good,
    Bad,
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
    pub(super) fn new(is_terminal: bool) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            on: is_terminal && !unwanted,
        }
    }

    pub(super) fn in_colour<T: Display>(self, colour: Colour, text: T) -> impl Display {
        let codes = match colour {
            Colour::Good => "1;32",
            Colour::Bad => "1;31",
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
