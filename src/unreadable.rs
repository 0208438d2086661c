//! Why a file cannot be read, for a person: what the system says, without its number, and what to do.

use std::{
    fmt::{self, Display},
    io::{self, ErrorKind},
};

/// Its `Display` stands behind the name of the file.
pub(crate) struct Unreadable<'a>(pub(crate) &'a io::Error);

// === impl Unreadable ===

impl Display for Unreadable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.0.to_string();
        let said = said.split(" (os error ").next().unwrap_or(&said);
        let hint = match self.0.kind() {
            ErrorKind::NotFound => "; look whether its name is right",
            ErrorKind::PermissionDenied => {
                "; let the user that robotgate runs as read it (and enter the folders above it)"
            }
            ErrorKind::IsADirectory => "; name a file in it",
            _ => "",
        };
        write!(f, "{said}{hint}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_behind_the_cause_and_no_number() {
        for (number, said) in [
            (2, "No such file or directory; look whether its name is right"),
            (
                13,
                "Permission denied; let the user that robotgate runs as read it (and enter the folders above it)",
            ),
            (21, "Is a directory; name a file in it"),
            (5, "Input/output error"),
        ] {
            assert_eq!(Unreadable(&io::Error::from_raw_os_error(number)).to_string(), said);
        }
    }
}
