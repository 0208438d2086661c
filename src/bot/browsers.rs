//! The names in a User-Agent that say "a browser" and not who is asking.
//!
//! A list and nothing else: it never looks at a whole field.

use std::cmp::Ordering;

/// Browsers, their engines, and the platforms and marks that stand beside them. In lower case and in order, for the
/// binary search. Left out on purpose: text browsers and HTTP libraries, whose name is all that a bot built on them
/// may ever say.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "android", "applewebkit", "avastsecurebrowser", "brave", "ccleaner", "centos", "chrome", "chromeframe",
    "chromium", "compatible", "cordova", "cos", "crios", "cros", "cyberfox", "ddg", "debian", "duckduckgo", "edg",
    "edga", "edge", "edgios", "edgw", "electron", "epiphany", "fedora", "firefox", "floorp", "focus", "fxios",
    "galeon", "gecko", "gnuzilla", "gsa", "headlesschrome", "huaweibrowser", "i", "icecat", "iceweasel", "iemobile",
    "ipad", "iphone", "ipod", "khtml", "konqueror", "librewolf", "like", "linux", "macintosh", "maxthon", "midori",
    "mint", "miuibrowser", "mobile", "mozilla", "msie", "n", "netscape", "openbsd", "opera", "opios", "opr", "oprgx",
    "opt", "opx", "palemoon", "presto", "puffin", "qqbrowser", "qtwebengine", "raspbian", "safari", "samsungbrowser",
    "seamonkey", "silk", "sogoumobilebrowser", "suse", "tizen", "trident", "u", "ubuntu", "ucbrowser", "version",
    "vivaldi", "waterfox", "wayland", "webkit", "whale", "windows", "wow64", "x11", "yabrowser", "yowser",
];

/// Whether a product is a browser's, ignoring ASCII case.
pub(super) fn is_browser(product: &str) -> bool {
    NAMES
        .binary_search_by(|name| compare(name.as_bytes(), product.as_bytes()))
        .is_ok()
}

/// Orders a lower-case name against a product of any case.
fn compare(name: &[u8], product: &[u8]) -> Ordering {
    name.iter().copied().cmp(product.iter().map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_in_lower_case() {
        for pair in NAMES.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
        }
        for name in NAMES {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(is_browser(&name.to_ascii_uppercase()));
        }
    }
}
