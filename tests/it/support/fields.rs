//! Parses structured fields (RFC 9651) into values that tests can compare.

use sfv::{BareItem, Item, List, ListEntry, Parser};

/// An item and its parameters, such as `deny; reason=rule; line=3`.
#[derive(Debug, PartialEq)]
pub struct Field(Item);

impl Field {
    /// Parses an item, as in `Robots-Decision`.
    ///
    /// # Panics
    /// If the text is not an item.
    pub fn item(text: &str) -> Self {
        match Parser::new(text).parse::<Item>() {
            Ok(item) => Self(item),
            Err(error) => panic!("not a structured item: {text:?}: {error}"),
        }
    }

    /// Parses a list and returns its last member, as in `Proxy-Status`: the proxy nearest to the client adds the last
    /// one.
    ///
    /// # Panics
    /// If the text is not a list of items.
    pub fn last_of(text: &str) -> Self {
        match Parser::new(text).parse::<List>().map(|mut list| list.pop()) {
            Ok(Some(ListEntry::Item(item))) => Self(item),
            other => panic!("not a structured list: {text:?}: {other:?}"),
        }
    }

    /// Returns the item without its parameters.
    pub fn value(&self) -> String {
        plain(&self.0.bare_item)
    }

    pub fn param(&self, name: &str) -> Option<String> {
        self.0
            .params
            .iter()
            .find(|(key, _)| key.as_str() == name)
            .map(|(_, value)| plain(value))
    }

    /// Returns the type of a parameter, such as `token` or `string`. [`param`](Self::param) returns the same text for
    /// both.
    pub fn kind(&self, name: &str) -> Option<&'static str> {
        let (_, value) = self.0.params.iter().find(|(key, _)| key.as_str() == name)?;
        Some(match value {
            BareItem::Token(_) => "token",
            BareItem::Integer(_) => "integer",
            BareItem::String(_) => "string",
            BareItem::Date(_) => "date",
            _ => "other",
        })
    }
}

fn plain(item: &BareItem) -> String {
    match item {
        BareItem::Token(token) => token.as_str().to_owned(),
        BareItem::String(string) => string.as_str().to_owned(),
        BareItem::Integer(number) => i64::from(*number).to_string(),
        BareItem::Date(date) => format!("@{}", i64::from(date.unix_seconds())),
        other => format!("{other:?}"),
    }
}
