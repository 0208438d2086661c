//! The reasons of decisions: one list for the refusal header, the audit log, the metrics and `explain`.

use crate::{bot::Enforcement, text::words};

/// What a decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// What the site says, in its robots.txt or elsewhere, or that it says nothing.
    Site,
    /// Only the request and the configuration.
    Configuration,
    /// The destination, or the client's proof. A replay takes such a decision from the log.
    Network,
    /// The time and the number of requests. A replay takes such a decision from the log, except a `deny`, which it
    /// decides again.
    Clock,
}

/// Which key of the configuration sets the HTTP status of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalStatus {
    /// `refusals.status`.
    Disallowed,
    /// `refusals.unreachable-status`.
    Unreachable,
    /// No key sets the status: it is 403, unless the request is deferred (429) or a credential could help (407).
    Forbidden,
}

/// Defines [`Reason`] from a table with the word, the basis, the status, the phrase and the texts for people.
macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident = $word:literal {
        basis: $basis:ident, status: $status:ident,
        phrase: $phrase:literal, sentence: $sentence:literal, what_to_do: $todo:literal,
    })+) => {
        words! {
            /// Why a decision has its verdict, in the order of the documentation. The words are valid tokens of a
            /// structured field (RFC 9651 §3.3.4).
            pub enum Reason {
                $($(#[$doc])+ $name = $word,)+
            }
        }

        impl Reason {
            /// Returns what a decision with this reason depends on.
            pub const fn basis(self) -> Basis {
                match self {
                    $(Reason::$name => Basis::$basis,)+
                }
            }

            /// Returns which key of the configuration sets the HTTP status of a refusal.
            pub const fn status(self) -> RefusalStatus {
                match self {
                    $(Reason::$name => RefusalStatus::$status,)+
                }
            }

            /// Returns the reason phrase of a refusal. Most clients show nothing else of a refused CONNECT, so the
            /// phrase has to give the cause in a few words.
            pub const fn phrase(self) -> &'static str {
                match self {
                    $(Reason::$name => $phrase,)+
                }
            }

            /// Returns one sentence for people, which does not quote the rule. If the reason can allow or refuse, the
            /// sentence is about the refusal; [`Decision::sentence`](super::Decision::sentence) returns the right one
            /// for a decision.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Reason::$name => $sentence,)+
                }
            }

            /// Returns what people can do about a refusal. Empty if the reason never refuses.
            pub const fn what_to_do(self) -> &'static str {
                match self {
                    $(Reason::$name => $todo,)+
                }
            }
        }
    };
}

reasons! {
    /// A rule of the robots.txt allows or disallows the request.
    Rule = "rule" {
        basis: Site, status: Disallowed,
        phrase: "Disallowed by robots.txt",
        sentence: "A rule of the site's robots.txt disallows this URL.",
        what_to_do: "If you still need the page, ask the site's owner. `robotgate explain --config FILE --agent BOT URL`, with the \
            proxy's configuration file, shows this rule next to the others.",
    }
    /// No rule matched, so the request is allowed (RFC 9309 §2.2.2).
    NoRule = "no-rule" {
        basis: Site, status: Forbidden,
        phrase: "allow",
        sentence: "No rule of the site's robots.txt matches this request.",
        what_to_do: "",
    }
    /// The request is for `/robots.txt` itself.
    RobotsFile = "robots-file" {
        basis: Configuration, status: Forbidden,
        phrase: "allow",
        sentence: "The robots.txt itself may always be fetched.",
        what_to_do: "",
    }
    /// The origin has no robots.txt: 4xx (with the profile `google`, except 429), or too many redirects (RFC 9309
    /// §2.3.1.2, §2.3.1.3).
    NoRobots = "no-robots" {
        basis: Site, status: Forbidden,
        phrase: "allow",
        sentence: "The site has no robots.txt, so everything is allowed.",
        what_to_do: "",
    }
    /// The response was a 5xx whose page says that the file was not found.
    Soft404 = "soft-404" {
        basis: Site, status: Forbidden,
        phrase: "allow",
        sentence: "The site answered the request for its robots.txt with a server error, but the page says that the file was \
            not found, so everything is allowed.",
        what_to_do: "",
    }
    /// The robots.txt could not be fetched, or not in time, so everything is disallowed (RFC 9309 §2.3.1.4).
    Unreachable = "unreachable" {
        basis: Site, status: Unreachable,
        phrase: "Disallowed: robots.txt is unreachable",
        sentence: "The site's robots.txt could not be fetched, so everything there is disallowed until a later fetch \
            succeeds.",
        what_to_do: "Come back after the time in Retry-After: robotgate tries again with the first request after it. If the \
            site works again, the operator ends the wait with `robotgate cache forget --config FILE ORIGIN`. In \
            [robots.unreachable] the operator sets how long robotgate refuses a site that fails.",
    }
    /// The robots.txt has been unreachable for so long that the rules of its last good copy apply again.
    LastCopy = "last-copy" {
        basis: Site, status: Disallowed,
        phrase: "Disallowed by robots.txt",
        sentence: "The site's robots.txt has been unreachable for so long that its last good copy decides.",
        what_to_do: "A newer robots.txt decides as soon as the site gives one. In [robots.unreachable] the operator \
            sets what applies until then.",
    }
    /// The robots.txt has been unreachable for so long that everything is allowed: there never was a copy, or the
    /// configuration says so.
    UnreachableTooLong = "unreachable-too-long" {
        basis: Site, status: Forbidden,
        phrase: "allow",
        sentence: "The site's robots.txt has been unreachable for so long that everything is allowed.",
        what_to_do: "",
    }
    /// The configuration exempts the bot from robots.txt.
    Exempt = "exempt" {
        basis: Configuration, status: Forbidden,
        phrase: "allow",
        sentence: "This bot is exempt from the site's robots.txt by configuration.",
        what_to_do: "",
    }
    /// The request does not identify a bot.
    Unidentified = "unidentified" {
        basis: Configuration, status: Forbidden,
        phrase: "Disallowed: bot not identified by its User-Agent",
        sentence: "The request does not say which bot is asking: send one User-Agent field with the bot's name, such as \
            \"ExampleBot/1.0\".",
        what_to_do: "A browser's User-Agent alone names no bot. The operator can apply the rules for * to such requests \
            (identity.unidentified).",
    }
    /// The client's proof is for a different bot than its User-Agent names.
    Identity = "identity" {
        basis: Network, status: Forbidden,
        phrase: "Disallowed: the client's proof does not match its User-Agent",
        sentence: "The client's proof (a credential, a certificate or its address) is for a different bot than its \
            User-Agent names. Send the User-Agent of a bot that the proof belongs to.",
        what_to_do: "If the User-Agent is right, send a proof of that bot instead. A credential wins over a certificate, \
            and a certificate over the address.",
    }
    /// The client does not prove who it is: a required proof is missing, or the credential is invalid.
    Unauthenticated = "unauthenticated" {
        basis: Network, status: Forbidden,
        phrase: "Disallowed: bot does not prove who it is",
        sentence: "The client does not prove which bot it is: it lacks a required proof, or its credential is invalid.",
        what_to_do: "Give a proof that the bot's [[bot]] entry lists: a credential in the proxy's address \
            (http://NAME:SECRET@HOST:PORT; the operator creates one with `robotgate credential add NAME`), a client \
            certificate on the proxy's TLS listener, or an address in one of the bot's `networks`.",
    }
    /// The request is a tunnel, and what the site allows depends on the path.
    Unverifiable = "unverifiable" {
        basis: Site, status: Forbidden,
        phrase: "Disallowed: robotgate cannot see the path in a tunnel",
        sentence: "The site's robots.txt allows this bot only some paths, and robotgate cannot see inside a tunnel \
            which one the bot requests.",
        what_to_do: "Ask the operator to set https.mode = \"intercept\", so that robotgate can check each path (clients \
            then have to trust its certificate), or https.unverifiable = \"allow\", which opens such tunnels.",
    }
    /// `https.mode` refuses every CONNECT to a host without an `[[https.tunnel]]` entry.
    ConnectRefused = "connect-refused" {
        basis: Configuration, status: Forbidden,
        phrase: "Disallowed: CONNECT is refused here",
        sentence: "This proxy accepts no CONNECT to this host: its configuration says https.mode = \"refuse\".",
        what_to_do: "Send https:// URLs in absolute form, without a CONNECT.",
    }
    /// The URL names a user of an FTP site.
    FtpLogin = "ftp-login" {
        basis: Configuration, status: Forbidden,
        phrase: "Disallowed: only anonymous FTP",
        sentence: "The ftp:// URL has a user name, and robotgate logs in to FTP sites only anonymously.",
        what_to_do: "Write the URL without a user name and password, if the file is public.",
    }
    /// Bots must not reach the destination (`[egress]`), regardless of its robots.txt.
    Egress = "egress" {
        basis: Network, status: Forbidden,
        phrase: "Disallowed: bots must not go there",
        sentence: "This proxy does not let bots go there.",
        what_to_do: "The operator can open some addresses with egress.allow, ports with egress.ports (which closes \
            every port that it does not list), and FTP with ftp.enabled.",
    }
    /// Deciding takes more work than [`BUDGET`](super::BUDGET).
    TooComplex = "too-complex" {
        basis: Site, status: Forbidden,
        phrase: "Disallowed: robots.txt is too complex for this URL",
        sentence: "The site's robots.txt or tdmrep.json has so many patterns with wildcards, and the URL is so long, \
            that deciding would take too much work.",
        what_to_do: "Request a shorter URL. If the site itself links to such URLs, it may be a trap for bots.",
    }
    /// The pace does not let the request be sent yet (`[pace]`), or the site's `Crawl-delay` is too long.
    Pace = "pace" {
        basis: Clock, status: Forbidden,
        phrase: "Disallowed: too fast for this site",
        sentence: "This proxy limits how fast bots send requests to a site ([pace]), and these limits refuse this request.",
        what_to_do: "If the refusal has a Retry-After, send the request again after this time. If it has none, the \
            site's Crawl-delay is longer than pace.crawl-delay-max. A scheduler can ask the proxy's admin API when it \
            may send a request (/api/v1/decide, not_before). The operator sets the limits in [pace].",
    }
    /// The site forbids a purpose of the bot or, with `usage.unknown = "deny"`, does not allow it. Or the site's
    /// `tdmrep.json` has not been fetched yet.
    Usage = "usage" {
        basis: Site, status: Forbidden,
        phrase: "Disallowed: the site forbids this use",
        sentence: "The site does not allow what this bot uses content for ([[bot]] purposes, [usage]).",
        what_to_do: "Ask the site's owner for a licence. `robotgate explain` shows what the site says about each purpose. \
            The operator sets the bot's purposes in its [[bot]], and in [usage] which statements of sites are enforced.",
    }
}

impl Reason {
    /// Returns whether a refusal for this reason is only reported, so that the request is still forwarded.
    pub(super) fn is_only_reported(self, enforcement: Enforcement) -> bool {
        enforcement == Enforcement::Report && (self.basis() == Basis::Site || self == Reason::Unidentified)
    }
}
