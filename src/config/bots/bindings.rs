//! What proves that a client is a bot: `credentials`, `certificates` and `networks` of a `[[bot]]`.
//!
//! It verifies no client.

use toml::Spanned;

use crate::bot::{Bindings, CertificateName, is_name};
use crate::config::check::Checker;
use crate::config::egress::network;
use crate::config::identity::Named;

type List = Option<Spanned<Vec<Spanned<String>>>>;

/// The three lists as written.
pub(super) struct Written {
    pub credentials: List,
    pub certificates: List,
    pub networks: List,
}

// === impl Written ===

impl Written {
    /// What they mean for the bot of this name.
    pub(super) fn check(self, own: &str, named: &Named, checker: &mut Checker<'_>) -> Bindings {
        for list in [&self.certificates, &self.networks] {
            if let Some(list) = list.as_ref().filter(|list| list.get_ref().is_empty()) {
                checker.complain(
                    list.span(),
                    "nothing in this list; leave the key out where it proves nothing",
                );
            }
        }
        Bindings {
            credentials: match self.credentials {
                Some(list) => checker.each(Some(list), |text| credential(text, named)),
                None => Vec::from_iter(own_credential(own, named)),
            },
            certificates: checker.each(self.certificates, |text| {
                CertificateName::new(text).map_err(|error| format!("\"{text}\" {error}"))
            }),
            networks: checker.each(self.networks, network),
        }
    }
}

fn credential(text: &str, named: &Named) -> Result<Box<str>, String> {
    if !is_name(text) {
        return Err(format!(
            "{text:?} cannot be the name of a credential; write one word without a colon, like \"acme-prod\""
        ));
    }
    match named {
        Named::None => Err(format!(
            "\"{text}\" would have to be in the credentials file, and none is configured; write credentials = \
             \"credentials\" in [identity]"
        )),
        // Where the file lacks it, nobody can prove to be the bot: a credential that was taken away opens nothing.
        Named::File(_) | Named::Unread => Ok(text.into()),
    }
}

/// Without `credentials`, a bot is known by the one of its own name, whether or not it is there.
fn own_credential(own: &str, named: &Named) -> Option<Box<str>> {
    match named {
        Named::File(_) | Named::Unread => is_name(own).then(|| own.into()),
        Named::None => None,
    }
}
