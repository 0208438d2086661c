//! One user-agent line: whom it names, and what is cut off.
//!
//! Never knows other lines.

use super::{
    super::{
        names::Named,
        record::{is_space, trim},
    },
    Findings, Lint,
    quote::quoted,
    swallowed,
};

/// A user-agent line.
pub(super) struct UserAgent {
    pub(super) line: u32,
    /// By which an agent can find it: nothing, a token, or a token and a whole word.
    pub(super) ids: Vec<Id>,
    /// The one that a person would call it by, if it names anybody.
    pub(super) id: Option<Id>,
    /// As written, in backticks.
    pub(super) shown: String,
    /// Whether nothing is written.
    empty: bool,
}

/// What an agent's name is compared with, in lower case.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Id {
    /// Not named themselves.
    Everyone,
    /// All that Google's parser looks at.
    Token(String),
    /// For names that Google's parser cuts short, all of it.
    Word(String),
}

// === impl UserAgent ===

impl UserAgent {
    /// Reads the value of line `line`, and says what is odd about it.
    pub(super) fn read(line: u32, value: &[u8], findings: &mut Findings) -> Self {
        let named = Named::read(value);
        let (token, word) = match named {
            Named::Everyone => {
                check_everyone(line, value, findings);
                return Self {
                    line,
                    ids: vec![Id::Everyone],
                    id: Some(Id::Everyone),
                    shown: "`*`".to_owned(),
                    empty: false,
                };
            }
            Named::Agent { token, word } => (token, word),
        };
        let token_id = Id::Token(token.to_ascii_lowercase());
        let word_id = word.map(|word| Id::Word(word.to_ascii_lowercase()));
        let name = word.filter(|word| could_be_name(word));
        check(line, value, token, name, findings);
        Self {
            line,
            id: match name {
                Some(_) => word_id.clone(),
                None => Some(&token_id).filter(|_| !token.is_empty()).cloned(),
            },
            ids: [Some(token_id), word_id].into_iter().flatten().collect(),
            shown: quoted(name.unwrap_or(token).as_bytes()),
            empty: value.is_empty(),
        }
    }

    /// Whether Google's parser finds nobody here, but others may. Of a line without any value that
    /// has been said.
    pub(super) fn is_a_word_alone(&self) -> bool {
        !self.empty && matches!(&*self.ids, [Id::Token(token), ..] if token.is_empty())
    }
}

/// `name` is the whole word where that is one and longer than `token`.
fn check(line: u32, value: &[u8], token: &str, name: Option<&str>, findings: &mut Findings) {
    let rest = &value[token.len()..];
    if value.is_empty() {
        let message = "The user-agent has no name, and names nobody: write `*` for everyone.";
        findings.add(line, Lint::EmptyUserAgent, message);
        return;
    }
    if rest.is_empty() || token.is_empty() {
        // All there is to say of one that is cut to nothing is said where its group is known.
        return;
    }
    if let [b',' | b';' | b'|' | b'&', ..] = trim(rest) {
        let message = format!(
            "Google reads only the first name, `{}`: give each agent a User-agent line of its own.",
            shown_token(token)
        );
        findings.add(line, Lint::SeveralAgents, message);
    } else if rest[0] == b'/' && !token.eq_ignore_ascii_case("mozilla") {
        let message = format!(
            "The version is no part of a name, and this is read as `{}`: leave it out.",
            shown_token(token)
        );
        findings.add(line, Lint::AgentVersion, message);
    } else if swallowed::find(value).is_none() {
        let why = match (rest[0], name) {
            (b'*', _) => "A `*` stands for everyone only by itself".to_owned(),
            (first, _) if is_space(first) => "A name is one word".to_owned(),
            (_, Some(name)) => format!(
                "Names are of letters, `-` and `_` for Google (robotgate finds {} for an agent of that name, too)",
                quoted(name.as_bytes())
            ),
            _ => "Names are of letters, `-` and `_`".to_owned(),
        };
        let message = format!("{why}: this is read as `{}`.", shown_token(token));
        findings.add(line, Lint::CutAgent, message);
    }
}

fn check_everyone(line: u32, value: &[u8], findings: &mut Findings) {
    if value != b"*" && swallowed::find(value).is_none() {
        let message = "What follows the `*` is not read: the group is for everyone without one of their own.";
        findings.add(line, Lint::CutAgent, message);
    }
}

/// Whether an agent may be called so.
fn could_be_name(word: &str) -> bool {
    let of_name = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
    word.starts_with(char::is_alphanumeric) && word.chars().all(of_name)
}

/// A token's bytes are harmless; it may only be long.
fn shown_token(token: &str) -> &str {
    &token[..token.len().min(60)]
}
