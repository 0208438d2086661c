//! The one list of causes that the refusal header, the audit log, the metrics and `explain`
//! share. There is no second one.

use super::Verdict;

/// Why a verdict is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A rule of the robots.txt decided, either way.
    Rule,
    /// No rule matched, so the request is allowed (RFC 9309 §2.2.2).
    NoRule,
    /// The request is for `/robots.txt` itself.
    RobotsFile,
    /// The origin has no robots.txt: 4xx, or too many redirects (RFC 9309 §2.3.1.2, §2.3.1.3).
    NoRobots,
    /// A 5xx whose page says that the file was not found.
    Soft404,
    /// The robots.txt cannot be had, so everything is disallowed (RFC 9309 §2.3.1.4).
    Unreachable,
    /// It cannot be had for so long that the last good copy decides again.
    LastCopy,
    /// It could not be had for so long that everything is allowed: there never was a copy, or the
    /// configuration has it so.
    UnreachableTooLong,
    /// The bot is one that robots.txt does not speak to.
    Exempt,
    /// Nobody can say which bot is asking.
    Unidentified,
    /// What the client proves is of other bots than the one that it names.
    Identity,
    /// The client does not prove who it is: no proof where one is needed, or a credential that does not hold.
    Unauthenticated,
    /// A tunnel to an origin that allows only some paths.
    Unverifiable,
    /// `https.mode` allows no CONNECT.
    ConnectRefused,
    /// It is somewhere that bots may not go (`[egress]`), whatever a robots.txt there says.
    Egress,
    /// Deciding takes more work than [`BUDGET`](super::BUDGET).
    TooComplex,
}

// === impl Reason ===

impl Reason {
    /// Every reason, in the order of the documentation.
    pub const ALL: [Reason; 16] = [
        Reason::Rule,
        Reason::NoRule,
        Reason::RobotsFile,
        Reason::NoRobots,
        Reason::Soft404,
        Reason::Unreachable,
        Reason::LastCopy,
        Reason::UnreachableTooLong,
        Reason::Exempt,
        Reason::Unidentified,
        Reason::Identity,
        Reason::Unauthenticated,
        Reason::Unverifiable,
        Reason::ConnectRefused,
        Reason::Egress,
        Reason::TooComplex,
    ];

    /// The reason as the header, the log and the metrics name it: a structured field's token
    /// (RFC 9651 §3.3.4).
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Rule => "rule",
            Reason::NoRule => "no-rule",
            Reason::RobotsFile => "robots-file",
            Reason::NoRobots => "no-robots",
            Reason::Soft404 => "soft-404",
            Reason::Unreachable => "unreachable",
            Reason::LastCopy => "last-copy",
            Reason::UnreachableTooLong => "unreachable-too-long",
            Reason::Exempt => "exempt",
            Reason::Unidentified => "unidentified",
            Reason::Identity => "identity",
            Reason::Unauthenticated => "unauthenticated",
            Reason::Unverifiable => "unverifiable",
            Reason::ConnectRefused => "connect-refused",
            Reason::Egress => "egress",
            Reason::TooComplex => "too-complex",
        }
    }

    /// The reason phrase of a refusal. For a refused CONNECT it is all that most clients show,
    /// so it has to say the cause in a few words.
    pub fn phrase(self) -> &'static str {
        match self {
            Reason::Rule | Reason::LastCopy => "Disallowed by robots.txt",
            Reason::Unreachable => "Disallowed: robots.txt is unreachable",
            Reason::Unidentified => "Disallowed: bot not identified by its User-Agent",
            Reason::Identity => "Disallowed: what the client proves does not fit the User-Agent",
            Reason::Unauthenticated => "Disallowed: bot does not prove who it is",
            Reason::Unverifiable => "Disallowed: robots.txt cannot be verified through a tunnel",
            Reason::ConnectRefused => "Disallowed: CONNECT is refused here",
            Reason::Egress => "Disallowed: bots may not go there",
            Reason::TooComplex => "Disallowed: robots.txt is too complex for this URL",
            Reason::NoRule
            | Reason::RobotsFile
            | Reason::NoRobots
            | Reason::Soft404
            | Reason::UnreachableTooLong
            | Reason::Exempt => Verdict::Allow.as_str(),
        }
    }

    /// One sentence for a person, without the rule: that is said beside it.
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::Rule => "A rule of the site's robots.txt decides this.",
            Reason::NoRule => "No rule of the site's robots.txt matches this.",
            Reason::RobotsFile => "The robots.txt itself may always be fetched.",
            Reason::NoRobots => "The site has no robots.txt, so everything is allowed.",
            Reason::Soft404 => {
                "The site answered its robots.txt with a server error whose page says that it was \
                 not found, so everything is allowed."
            }
            Reason::Unreachable => {
                "The site's robots.txt could not be fetched yet, so everything is disallowed until it \
                 is. robotgate tries again by itself."
            }
            Reason::LastCopy => {
                "The site's robots.txt has been unreachable for so long that its last good copy \
                 decides."
            }
            Reason::UnreachableTooLong => {
                "The site's robots.txt has been unreachable for so long that everything is allowed."
            }
            Reason::Exempt => "This bot is exempt from robots.txt by configuration.",
            Reason::Unidentified => {
                "The request does not say which bot is asking: send one User-Agent field with the \
                 bot's name, such as \"ExampleBot/1.0\"."
            }
            Reason::Identity => {
                "What the client proves itself by (a credential, a certificate or its address) stands for other bots \
                 than the one that its User-Agent names: send the User-Agent of a bot that it stands for."
            }
            Reason::Unauthenticated => {
                "The client does not prove which bot it is, and has to, by a proof that the bot is configured with. \
                 Inside a CONNECT, what the CONNECT proved is what counts."
            }
            Reason::Unverifiable => {
                "The site's robots.txt allows this bot only some paths, and through a tunnel \
                 nobody can see which one is asked for."
            }
            Reason::ConnectRefused => "This proxy takes no CONNECT: its configuration says https.mode = \"refuse\".",
            Reason::Egress => "This proxy's configuration does not let bots go there ([egress]).",
            Reason::TooComplex => {
                "The site's robots.txt has so many rules with wildcards, and the URL is so long, that deciding would take \
                 too much work."
            }
        }
    }
}
