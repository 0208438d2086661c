//! The one list of what can be said of a robots.txt: a name for programs and a severity for each.
//!
//! Never looks at a file.

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something that stands in the file counts for nothing, or the file is no robots.txt.
    Error,
    /// It is probably not what was meant, or not what every crawler takes it for.
    Warning,
    /// Harmless, and good to know.
    Note,
}

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+ $lint:ident = $name:literal, $severity:ident;)+) => {
        /// What a finding is about. A finding is true in the reading of
        /// [`Profile::Google`](crate::robots::Profile::Google).
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
        #[non_exhaustive]
        pub enum Lint {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $lint,)+
        }

        impl Lint {
            /// All there are, in the order in which they are told of one line.
            pub const ALL: &'static [Self] = &[$(Self::$lint,)+];

            /// Its name for programs, which does not change.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$lint => $name,)+
                }
            }

            /// How much it matters, always the same.
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

    /// A web page in place of rules.
    Html = "html", Error;
    /// UTF-16, of which a parser sees one character a line.
    Utf16 = "utf-16", Error;
    /// No text at all, or a compressed one.
    Binary = "binary", Error;
    /// Nothing is in the file.
    EmptyFile = "empty-file", Note;
    /// Something is, but no rule that binds anybody.
    NoRules = "no-rules", Note;
    /// Whoever the file does not name may fetch nothing.
    BlocksEverything = "blocks-everything", Note;
    /// The first line past [`LIMIT`](crate::robots::LIMIT), or cut by it.
    TooLarge = "too-large", Error;

    // The bytes of a line.

    /// A byte-order mark, or the start of one, where it is skipped.
    ByteOrderMark = "byte-order-mark", Note;
    /// A byte-order mark where it is not skipped, and spoils the line.
    MisplacedByteOrderMark = "misplaced-byte-order-mark", Error;
    /// A NUL, which ends what is read of a line.
    Nul = "nul", Error;
    /// A line longer than what is read of one.
    LongLine = "long-line", Error;
    /// Octets that are not UTF-8.
    NotUtf8 = "not-utf-8", Warning;
    /// A character that shows as nothing, or as a space that it is not.
    InvisibleCharacter = "invisible-character", Warning;

    // What a line says.

    /// A key that none of the usual parsers knows, and that looks like one that they do.
    MisspeltKey = "misspelt-key", Error;
    /// No colon, and not the two words that do without.
    LostRecord = "lost-record", Error;
    /// A record behind another in one line, where it is a part of the value.
    SwallowedRecord = "swallowed-record", Error;
    /// Neither a record nor a comment.
    NotARecord = "not-a-record", Warning;
    /// A key that nobody is known to understand.
    UnknownKey = "unknown-key", Warning;
    /// A rule about the index, which a robots.txt has no say in.
    IndexKey = "index-key", Warning;
    /// A key that some crawlers understand, but not Google's.
    IgnoredKey = "ignored-key", Note;
    /// A spelling that Google accepts, and others may not.
    AcceptedTypo = "accepted-typo", Warning;
    /// White space in place of the colon.
    MissingColon = "missing-colon", Warning;
    /// A `#` within a value, which starts a comment there.
    HashInValue = "hash-in-value", Warning;

    // User-agents and groups.

    /// A user-agent without a name.
    EmptyUserAgent = "empty-user-agent", Error;
    /// A group whose user-agents name nobody.
    UnreachableGroup = "unreachable-group", Error;
    /// A name that Google's parser cuts to nothing.
    UnnamedAgent = "unnamed-agent", Warning;
    /// Several names in one user-agent line, of which the first counts.
    SeveralAgents = "several-agents", Warning;
    /// A name that is cut short.
    CutAgent = "cut-agent", Warning;
    /// A version behind a name, which counts for nothing.
    AgentVersion = "agent-version", Note;
    /// A name twice in one group.
    RepeatedAgent = "repeated-agent", Note;
    /// A name with several groups, which are merged.
    MergedGroups = "merged-groups", Note;
    /// User-agents that look like a group of their own, and share the next one's rules.
    JoinedGroups = "joined-groups", Warning;
    /// A group at the end without a rule, whose agents may fetch everything.
    GroupWithoutRules = "group-without-rules", Warning;
    /// A group that allows only what is allowed anyway.
    OnlyAllows = "only-allows", Warning;

    // Rules, one by one.

    /// A rule before any user-agent, which binds nobody.
    RuleBeforeUserAgent = "rule-before-user-agent", Error;
    /// A rule without a pattern that does nothing.
    EmptyRule = "empty-rule", Note;
    /// A URL in place of a path, which never matches.
    UrlInRule = "url-in-rule", Error;
    /// A pattern that begins with neither `/` nor `*`, and never matches.
    NoLeadingSlash = "no-leading-slash", Error;
    /// Another pattern that no path matches.
    NeverMatches = "never-matches", Error;
    /// White space or a control character in a pattern, which URLs never have.
    SpaceInPattern = "space-in-pattern", Warning;
    /// A `$` that is not at the end.
    DollarInside = "dollar-inside", Warning;
    /// What has a meaning in regular expressions alone.
    RegularExpression = "regular-expression", Warning;
    /// `/../` or `/./`, which clients resolve before they ask.
    DotSegment = "dot-segment", Warning;
    /// An escape of what URLs do not escape, compared as it is written.
    NeedlessEscape = "needless-escape", Warning;
    /// A `%` that starts no escape.
    BrokenEscape = "broken-escape", Warning;
    /// A `*` that changes nothing of what is matched.
    UselessWildcard = "useless-wildcard", Note;
    /// A rule against the robots.txt itself, which crawlers fetch nonetheless.
    RobotsTxtRule = "robots-txt-rule", Note;

    // Rules against each other.

    /// A rule that can never decide, as one that says the opposite always wins.
    ShadowedRule = "shadowed-rule", Warning;
    /// The same rule again.
    DuplicateRule = "duplicate-rule", Note;
    /// A rule without which every path is decided the same, as long as its group keeps another.
    RedundantRule = "redundant-rule", Note;

    // Sitemaps.

    /// A sitemap that is no absolute URL.
    RelativeSitemap = "relative-sitemap", Warning;
    /// The same sitemap again.
    DuplicateSitemap = "duplicate-sitemap", Note;
}

// === impl Severity ===

impl Severity {
    /// Its name, in lower case.
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
