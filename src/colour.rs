//! Writes text in colour on a terminal.

use std::fmt::{Display, from_fn};

use anstream::{AutoStream, ColorChoice, stream::RawStream};
use anstyle::{AnsiColor, Style};

/// Whether text is written in colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Good,
    Bad,
    Warning,
    Note,
    Strong,
    Faint,
}

// === impl Paint ===

impl Paint {
    /// Uses colour if `output` is a terminal that supports it. The environment variables `NO_COLOR`, `CLICOLOR` and
    /// `CLICOLOR_FORCE` can override this (no-color.org, bixense.com/clicolors).
    pub(crate) fn for_output(output: &impl RawStream) -> Self {
        Self(AutoStream::choice(output) != ColorChoice::Never)
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(false)
    }

    #[cfg(test)]
    pub(crate) fn always() -> Self {
        Self(true)
    }

    pub(crate) fn in_colour(self, colour: Colour, text: impl Display) -> impl Display {
        let style = match colour {
            _ if !self.0 => Style::new(),
            Colour::Good => AnsiColor::Green.on_default().bold(),
            Colour::Bad => AnsiColor::Red.on_default().bold(),
            Colour::Warning => AnsiColor::Yellow.on_default().bold(),
            Colour::Note => AnsiColor::Cyan.on_default().bold(),
            Colour::Strong => Style::new().bold(),
            Colour::Faint => Style::new().dimmed(),
        };
        from_fn(move |f| write!(f, "{style}{text}{style:#}"))
    }
}
