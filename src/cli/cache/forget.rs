//! `robotgate cache forget`: has the next request fetch the robots.txt again.

use super::{CacheArgs, CacheError, origin_of, print, print_json, unknown};

/// Forget all that is known of a site: its robots.txt is fetched when a bot next needs it
///
/// The last copy goes, too, and since when the site fails. Where a fetch runs, what it brings counts.
#[derive(Debug, clap::Args)]
pub struct ForgetArgs {
    /// An origin (scheme, host and port), any URL of it, or just a host, of which https is meant
    #[arg(value_name = "ORIGIN")]
    origin: String,
}

// === impl ForgetArgs ===

impl ForgetArgs {
    pub(super) fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let origin = origin_of(&self.origin)?;
        let forgot = args.ask(|copies| copies.forget(&origin))?;
        if args.json {
            print_json(&forgot)?;
        }
        match (forgot.forgotten, args.json) {
            (false, _) => Err(unknown(&origin, &self.origin)),
            (true, true) => Ok(()),
            (true, false) => {
                let said = format!("{origin} is forgotten; its robots.txt is fetched when a bot next needs it\n");
                print(said.as_bytes())
            }
        }
    }
}
