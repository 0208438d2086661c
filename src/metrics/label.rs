//! The values of labels, which are closed lists, and a counter for each. What another module lists already is only
//! taken from there.

use std::{
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    bot::Enforcement,
    decision::{Reason, Verdict},
    trust::Kind,
    upstream::ProxyError,
};

/// The values of a label.
pub(super) trait Label: Copy + 'static {
    /// Each at the place of its [`index`](Self::index).
    const ALL: &'static [Self];
    const COUNT: usize = Self::ALL.len();

    fn as_str(self) -> &'static str;
    fn index(self) -> usize;
}

/// A counter for each value of a label.
#[derive(Debug)]
pub(super) struct Counters<L> {
    counts: Box<[AtomicU64]>,
    label: PhantomData<L>,
}

/// Makes a label of an enum that has `ALL` and `as_str` of its own.
macro_rules! take {
    ($($name:ty),+) => {$(
        impl Label for $name {
            const ALL: &'static [Self] = &<$name>::ALL;

            fn as_str(self) -> &'static str {
                <$name>::as_str(self)
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    )+};
}

/// Makes an enum and a label of it.
macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$value:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$value])* $variant),+
        }

        impl $crate::metrics::label::Label for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
pub(super) use label;

take!(Verdict, Reason, Enforcement, ProxyError, Kind);

label! {
    /// A request's method (RFC 9110 §9).
    Method {
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        Put = "PUT",
        Delete = "DELETE",
        Patch = "PATCH",
        Options = "OPTIONS",
        Connect = "CONNECT",
        Other = "other",
    }
}

label! {
    /// What became of a request.
    Outcome {
        /// It went to its origin and came back.
        Forwarded = "forwarded",
        /// The decision was against it.
        Refused = "refused",
        /// It was for a robots.txt, and was answered from the copy.
        Copy = "copy",
        /// It was for robotgate itself.
        Own = "own",
        /// It went wrong, before a decision or after it.
        Error = "error",
    }
}

label! {
    /// A response's status (RFC 9110 §15).
    Class {
        Informational = "1xx",
        Successful = "2xx",
        Redirection = "3xx",
        ClientError = "4xx",
        ServerError = "5xx",
    }
}

label! {
    /// What clients speak first where they come in.
    Listener {
        Http = "http",
        Tls = "tls",
    }
}

label! {
    /// What lasts beyond a request and its response.
    Tunnel {
        /// An intercepted CONNECT.
        Intercept = "intercept",
        /// A CONNECT whose bytes pass unseen.
        Blind = "blind",
        Websocket = "websocket",
    }
}

// === impl Method ===

impl From<&http::Method> for Method {
    fn from(method: &http::Method) -> Self {
        match *method {
            http::Method::GET => Self::Get,
            http::Method::HEAD => Self::Head,
            http::Method::POST => Self::Post,
            http::Method::PUT => Self::Put,
            http::Method::DELETE => Self::Delete,
            http::Method::PATCH => Self::Patch,
            http::Method::OPTIONS => Self::Options,
            http::Method::CONNECT => Self::Connect,
            _ => Self::Other,
        }
    }
}

// === impl Class ===

impl Class {
    pub(super) fn of(status: u16) -> Option<Self> {
        Self::ALL.get(usize::from(status / 100).checked_sub(1)?).copied()
    }
}

// === impl Counters ===

impl<L: Label> Default for Counters<L> {
    fn default() -> Self {
        Self {
            counts: (0..L::COUNT).map(|_| AtomicU64::new(0)).collect(),
            label: PhantomData,
        }
    }
}

impl<L: Label> Counters<L> {
    pub(super) fn add(&self, label: L) {
        self.counts[label.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (L, u64)> {
        std::iter::zip(L::ALL, &self.counts).map(|(label, count)| (*label, count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::FetchResult;

    fn check<L: Label>() {
        for (place, label) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), place, "{}", label.as_str());
            let same = L::ALL.iter().filter(|other| other.as_str() == label.as_str());
            assert_eq!(same.count(), 1, "{}", label.as_str());
        }
    }

    #[test]
    fn every_value_of_a_label_has_a_place_and_a_word_of_its_own() {
        check::<Verdict>();
        check::<Reason>();
        check::<Enforcement>();
        check::<ProxyError>();
        check::<Method>();
        check::<Outcome>();
        check::<Class>();
        check::<Listener>();
        check::<Tunnel>();
        check::<Kind>();
        check::<FetchResult>();
    }

    #[test]
    fn what_is_no_status_has_no_class() {
        let classes = [0, 99, 101, 204, 304, 407, 599, 600, 1000].map(|status| Class::of(status).map(Class::as_str));
        let [one, two, three, four, five] = ["1xx", "2xx", "3xx", "4xx", "5xx"].map(Some);
        assert_eq!(classes, [None, None, one, two, three, four, five, None, None]);
    }
}
