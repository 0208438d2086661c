//! Where the robots.txt came from: a file, or a fetch and its way.

use std::fmt::{Result, Write as _};

use super::{MAX_URL, count};
use crate::{
    audit::plain,
    cli::explain::{
        paint::{Colour, Paint},
        report::Report,
        source::Source,
    },
};

pub(super) fn write(report: &Report<'_>, paint: Paint, out: &mut String) -> Result {
    match report.source {
        Source::Unasked => Ok(()),
        Source::File(file) => {
            let path = match file.is_input() {
                true => "standard input".to_owned(),
                false => file.path.display().to_string(),
            };
            writeln!(
                out,
                "\nRead from {}, {}.",
                plain(&path, MAX_URL),
                count(file.body.len(), "byte")
            )?;
            if file.cut {
                writeln!(out, "The file is longer, but only its first 500 KiB count.")?;
            }
            Ok(())
        }
        Source::Live(live) => {
            writeln!(out, "\n{}", paint.in_colour(Colour::Strong, "Fetched:"))?;
            write!(out, "{}", live.way())
        }
    }
}
