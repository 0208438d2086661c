//! Describes where the robots.txt came from, a file or a fetch and its redirects, and the fetch of the `tdmrep.json`.

use std::fmt::{Result, Write as _};

use crate::{
    cli::{
        colour::{Colour, Paint},
        explain::source::Source,
        live::Live,
    },
    text::count,
};

pub(super) fn write(source: &Source, tdmrep: Option<&Live>, paint: Paint, out: &mut String) -> Result {
    match source {
        Source::Unasked => Ok(()),
        Source::File(file) => {
            writeln!(out, "\nRead from {}, {}.", file.name(), count(file.body.len(), "byte"))?;
            if file.cut {
                writeln!(out, "The file is longer, but robotgate uses only its first 500 KiB.")?;
            }
            Ok(())
        }
        Source::Live(live) => {
            writeln!(out, "\n{}", paint.in_colour(Colour::Strong, "Fetched:"))?;
            write!(out, "{}", live.way())?;
            tdmrep.map_or(Ok(()), |tdmrep| write!(out, "{}", tdmrep.way()))
        }
    }
}
