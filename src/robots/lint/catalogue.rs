//! The list of all findings, each with a name for programs and a severity.
//!
//! Never looks at a file.

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A part of the file has no effect, or the file is not a robots.txt.
    Error,
    /// Probably not what the author meant, or read differently by some crawlers.
    Warning,
    /// Harmless, but good to know.
    Note,
}

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+ $lint:ident = $name:literal, $severity:ident;)+) => {
        /// What a finding is about. A finding is true for [`Profile::Google`](crate::robots::Profile::Google).
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
        #[non_exhaustive]
        pub enum Lint {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $lint,)+
        }

        impl Lint {
            /// All kinds of findings, in the order in which they are reported for a line.
            pub const ALL: &'static [Self] = &[$(Self::$lint,)+];

            /// Returns the name for programs, which does not change.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$lint => $name,)+
                }
            }

            /// Returns the severity. It depends only on the kind of finding.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$lint => Severity::$severity,)+
                }
            }
        }
    };
}

catalogue! {
    // The file as a whole.

    /// A web page instead of rules.
    Html = "html", Error;
    /// UTF-16. A parser reads only the first character of each line.
    Utf16 = "utf-16", Error;
    /// Not text, or compressed text.
    Binary = "binary", Error;
    /// The file is empty.
    EmptyFile = "empty-file", Note;
    /// The file is not empty, but no rule applies to anybody.
    NoRules = "no-rules", Note;
    /// A crawler that the file does not name may fetch nothing.
    BlocksEverything = "blocks-everything", Note;
    /// The first line past [`LIMIT`](crate::robots::LIMIT), or cut by it.
    TooLarge = "too-large", Error;

    // The bytes of a line.

    /// A byte-order mark, or the start of one, that is skipped.
    ByteOrderMark = "byte-order-mark", Note;
    /// A byte-order mark that is not skipped, and spoils the line.
    MisplacedByteOrderMark = "misplaced-byte-order-mark", Error;
    /// A NUL, after which a parser ignores the rest of the line.
    Nul = "nul", Error;
    /// A line that is longer than the parser's limit.
    LongLine = "long-line", Error;
    /// Octets that are not UTF-8.
    NotUtf8 = "not-utf-8", Warning;
    /// A character that is invisible, or that looks like a space but is not one.
    InvisibleCharacter = "invisible-character", Warning;

    // What a line says.

    /// An unknown key that looks like a known one.
    MisspeltKey = "misspelt-key", Error;
    /// A line that begins with a key but has no colon, and is not just two words.
    LostRecord = "lost-record", Error;
    /// A record after another one on the same line, where it is part of the value.
    SwallowedRecord = "swallowed-record", Error;
    /// Neither a record nor a comment.
    NotARecord = "not-a-record", Warning;
    /// A key that no known crawler understands.
    UnknownKey = "unknown-key", Warning;
    /// A rule about indexing, which a robots.txt does not control.
    IndexKey = "index-key", Warning;
    /// A key that some crawlers understand, but not Google's.
    IgnoredKey = "ignored-key", Note;
    /// A crawl delay that is not a number of seconds, so that no crawler keeps to it.
    CrawlDelayValue = "crawl-delay-value", Warning;
    /// A typo that Google accepts, but other crawlers may not.
    AcceptedTypo = "accepted-typo", Warning;
    /// White space instead of the colon.
    MissingColon = "missing-colon", Warning;
    /// A `#` inside a value, which starts a comment.
    HashInValue = "hash-in-value", Warning;

    // User-agents and groups.

    /// A user-agent without a name.
    EmptyUserAgent = "empty-user-agent", Error;
    /// A group without a user-agent that can name an agent.
    UnreachableGroup = "unreachable-group", Error;
    /// A name that Google's parser cuts to nothing.
    UnnamedAgent = "unnamed-agent", Warning;
    /// Several names in one user-agent line. Only the first is used.
    SeveralAgents = "several-agents", Warning;
    /// A name that Google's parser cuts short.
    CutAgent = "cut-agent", Warning;
    /// A version after a name, which is ignored.
    AgentVersion = "agent-version", Note;
    /// The same name twice in a group.
    RepeatedAgent = "repeated-agent", Note;
    /// A name with several groups, which are merged.
    MergedGroups = "merged-groups", Note;
    /// User-agents that look like a separate group but share the next group's rules.
    JoinedGroups = "joined-groups", Warning;
    /// A last group without rules, whose agents may fetch everything.
    GroupWithoutRules = "group-without-rules", Warning;
    /// A group that allows only what is allowed anyway.
    OnlyAllows = "only-allows", Warning;

    // Rules, one by one.

    /// A rule before any user-agent, which applies to no agent.
    RuleBeforeUserAgent = "rule-before-user-agent", Error;
    /// A rule without a pattern, which has no effect.
    EmptyRule = "empty-rule", Note;
    /// A URL instead of a path, which never matches.
    UrlInRule = "url-in-rule", Error;
    /// A pattern that begins with neither `/` nor `*`, and never matches.
    NoLeadingSlash = "no-leading-slash", Error;
    /// A pattern that matches no path for a reason other than those above.
    NeverMatches = "never-matches", Error;
    /// White space or a control character in a pattern, which no URL has.
    SpaceInPattern = "space-in-pattern", Warning;
    /// A `$` that is not at the end.
    DollarInside = "dollar-inside", Warning;
    /// Syntax that has a meaning only in regular expressions.
    RegularExpression = "regular-expression", Warning;
    /// `/../` or `/./`, which clients resolve before sending.
    DotSegment = "dot-segment", Warning;
    /// An escape of a character that URLs do not escape. It is compared as written.
    NeedlessEscape = "needless-escape", Warning;
    /// A `%` that does not start an escape.
    BrokenEscape = "broken-escape", Warning;
    /// A `*` that does not change what matches.
    UselessWildcard = "useless-wildcard", Note;
    /// A rule against the robots.txt itself, which crawlers fetch anyway.
    RobotsTxtRule = "robots-txt-rule", Note;

    // Rules against each other.

    /// A rule that can never decide, because a rule that says the opposite always wins.
    ShadowedRule = "shadowed-rule", Warning;
    /// A rule that repeats another one.
    DuplicateRule = "duplicate-rule", Note;
    /// A rule whose removal changes no decision, as long as its group keeps another rule.
    RedundantRule = "redundant-rule", Note;

    // Sitemaps.

    /// A sitemap that is not an absolute URL.
    RelativeSitemap = "relative-sitemap", Warning;
    /// A sitemap that repeats another one.
    DuplicateSitemap = "duplicate-sitemap", Note;
}

// === impl Severity ===

impl Severity {
    /// Returns the name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Lint ===

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
