//! The list of all findings of `lint`, each with a name for programs and a severity.

use crate::text::words;

words! {
    /// How much a finding matters.
    #[derive(Ord, PartialOrd)]
    pub enum Severity {
        /// A part of the file has no effect, or the file is not a robots.txt.
        Error = "error",
        /// Probably not what the author meant, or some crawlers understand it differently.
        Warning = "warning",
        /// Harmless, but good to know.
        Note = "note",
    }
}

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+ $lint:ident = $name:literal, $severity:ident;)+) => {
        words! {
            /// What a finding is about, in the order in which findings about the same line are reported. Programs read
            /// the names, such as `misspelt-key`, so these do not change in later versions.
            #[derive(Ord, PartialOrd)]
            #[non_exhaustive]
            pub enum Lint {
                $($(#[doc = $doc])+ $lint = $name,)+
            }
        }

        impl Lint {
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
    // Findings about the file as a whole.

    /// The file is a web page and not a robots.txt.
    Html = "html", Error;
    /// The file is UTF-16, which a parser does not understand.
    Utf16 = "utf-16", Error;
    /// The file is not text, or is compressed.
    Binary = "binary", Error;
    /// The file is empty.
    EmptyFile = "empty-file", Note;
    /// The file is not empty, but no rule applies to any agent.
    NoRules = "no-rules", Note;
    /// A crawler that the file does not name may fetch nothing from the site.
    BlocksEverything = "blocks-everything", Note;
    /// The first line that is ignored because the file is longer than [`LIMIT`](crate::robots::LIMIT).
    TooLarge = "too-large", Error;

    // Findings about the bytes of a line.

    /// A byte-order mark, or a part of one, at the start of the file. It is skipped.
    ByteOrderMark = "byte-order-mark", Note;
    /// A byte-order mark that begins a line but not the file. It is not skipped, and makes the line invalid.
    MisplacedByteOrderMark = "misplaced-byte-order-mark", Error;
    /// A NUL. A parser ignores the line from the NUL on.
    Nul = "nul", Error;
    /// A line that is longer than the parser's limit.
    LongLine = "long-line", Error;
    /// Octets that are not UTF-8.
    NotUtf8 = "not-utf-8", Warning;
    /// A character that is invisible, or that looks like a space but is not one.
    InvisibleCharacter = "invisible-character", Warning;

    // Findings about the content of a line.

    /// An unknown key that looks like a known one.
    MisspeltKey = "misspelt-key", Error;
    /// A line that begins with a key but has no colon and is not just two words, such as `Disallow /a /b`. It is
    /// ignored.
    LostRecord = "lost-record", Error;
    /// A second record (`key: value`) on the same line. It becomes part of the value of the first one.
    SwallowedRecord = "swallowed-record", Error;
    /// A line that is neither a record nor a comment.
    NotARecord = "not-a-record", Warning;
    /// A key that no known crawler understands.
    UnknownKey = "unknown-key", Warning;
    /// A rule about indexing, which a robots.txt does not control.
    IndexKey = "index-key", Warning;
    /// A key that some crawlers understand, but not Google's.
    IgnoredKey = "ignored-key", Note;
    /// A crawl delay that is not a number of seconds.
    CrawlDelayValue = "crawl-delay-value", Warning;
    /// A `Content-Signal` or `Content-Usage` line with an invalid value, so that the line or a part of it has no
    /// effect.
    UsageValue = "usage-value", Warning;
    /// A label that robotgate does not know, in a line about the use of content.
    UsageLabel = "usage-label", Note;
    /// A typo that Google accepts, but other crawlers may not.
    AcceptedTypo = "accepted-typo", Warning;
    /// White space in place of the colon.
    MissingColon = "missing-colon", Warning;
    /// A `#` inside a value, which starts a comment.
    HashInValue = "hash-in-value", Warning;

    // Findings about user-agents and groups.

    /// A user-agent without a name.
    EmptyUserAgent = "empty-user-agent", Error;
    /// A group that applies to no agent, because none of its user-agent lines names one.
    UnreachableGroup = "unreachable-group", Error;
    /// A name that has no meaning for Google's parser, because it begins with another character than a letter, `-` or
    /// `_`.
    UnnamedAgent = "unnamed-agent", Warning;
    /// Several names in one user-agent line. Only the first is used.
    SeveralAgents = "several-agents", Warning;
    /// A name that Google's parser reads only in part: in `MJ12bot`, it reads only `MJ`.
    CutAgent = "cut-agent", Warning;
    /// A version after a name, which is ignored.
    AgentVersion = "agent-version", Note;
    /// The same name twice in a group.
    RepeatedAgent = "repeated-agent", Note;
    /// A name with several groups, which are merged.
    MergedGroups = "merged-groups", Note;
    /// User-agents that look like a group of their own but share the rules of the next group.
    JoinedGroups = "joined-groups", Warning;
    /// A group without rules at the end of the file, whose agents may fetch everything.
    GroupWithoutRules = "group-without-rules", Warning;
    /// A group that only allows paths, although nothing disallows them.
    OnlyAllows = "only-allows", Warning;

    // Findings about single rules.

    /// A rule or a line about the use of content before any user-agent. It applies to no agent.
    RuleBeforeUserAgent = "rule-before-user-agent", Error;
    /// A rule without a pattern, which has no effect.
    EmptyRule = "empty-rule", Note;
    /// A URL in place of a path. It never matches.
    UrlInRule = "url-in-rule", Error;
    /// A pattern that begins with neither `/` nor `*`, and so never matches.
    NoLeadingSlash = "no-leading-slash", Error;
    /// The pattern `$`, which never matches, because no path is empty.
    NeverMatches = "never-matches", Error;
    /// White space or a control character in a pattern. No URL contains such a character.
    SpaceInPattern = "space-in-pattern", Warning;
    /// A `$` that is not at the end of the pattern, so it does not mean the end of the path.
    DollarInside = "dollar-inside", Warning;
    /// Syntax that has a meaning only in regular expressions.
    RegularExpression = "regular-expression", Warning;
    /// `/../` or `/./` in a pattern. Clients hardly ever send such a path: they resolve it first.
    DotSegment = "dot-segment", Warning;
    /// An escape of a character that URLs do not escape, such as `%62` for `b`. Google compares it as written.
    NeedlessEscape = "needless-escape", Warning;
    /// A `%` without two hex digits after it.
    BrokenEscape = "broken-escape", Warning;
    /// A `*`, or a `*$` at the end, that does not change what the pattern matches.
    UselessWildcard = "useless-wildcard", Note;
    /// A rule against the robots.txt itself, which crawlers fetch anyway.
    RobotsTxtRule = "robots-txt-rule", Note;

    // Findings about rules that affect each other.

    /// A rule that can never decide, because a rule of the opposite kind always wins.
    ShadowedRule = "shadowed-rule", Warning;
    /// A rule that repeats another one.
    DuplicateRule = "duplicate-rule", Note;
    /// A rule that could be removed without changing any decision. One rule has to stay in each group even if all are
    /// redundant, because a group without rules shares the rules of the next group.
    RedundantRule = "redundant-rule", Note;

    // Findings about sitemaps.

    /// A sitemap that is not an absolute URL.
    RelativeSitemap = "relative-sitemap", Warning;
    /// A sitemap that repeats another one.
    DuplicateSitemap = "duplicate-sitemap", Note;
}
