//! Guesses from the User-Agent which client sent a request. Does no I/O.

/// Returns the name of the client with this User-Agent, as `robotgate env` knows it.
pub fn guess(user_agent: &str) -> Option<&'static str> {
    let user_agent = user_agent.to_ascii_lowercase();
    SIGNS
        .iter()
        .find(|(sign, _)| user_agent.contains(sign))
        .map(|(_, name)| *name)
}

/// The first entry whose text is in the User-Agent decides. Libraries on which other clients are built come later,
/// because a User-Agent can name both.
const SIGNS: &[(&str, &str)] = &[
    ("scrapy", "scrapy"),
    ("headlesschrome", "chromium"),
    ("aiohttp", "python"),
    ("python-requests", "python"),
    ("python-httpx", "python"),
    ("python-urllib", "python"),
    ("apt-http", "apt"),
    ("libwww-perl", "perl"),
    ("http-tiny", "perl"),
    ("pip/", "pip"),
    ("npm/", "npm"),
    ("git/", "git"),
    ("cargo", "rust"),
    ("reqwest", "rust"),
    ("deno/", "deno"),
    ("bun/", "bun"),
    ("undici", "node"),
    ("node", "node"),
    ("axios", "node"),
    ("java/", "java"),
    ("java-http-client", "java"),
    ("apache-httpclient", "java"),
    ("okhttp", "java"),
    ("go-http-client", "go"),
    ("guzzle", "php"),
    ("php", "php"),
    ("ruby", "ruby"),
    ("faraday", "ruby"),
    (".net", "dotnet"),
    ("dotnet", "dotnet"),
    ("wget", "wget"),
    ("curl/", "curl"),
    ("chrome/", "chromium"),
    ("firefox/", "firefox"),
    ("python", "python"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_guessed_from_its_user_agent() {
        for (user_agent, name) in [
            ("curl/8.5.0", Some("curl")),
            ("Wget/1.21.3", Some("wget")),
            ("python-requests/2.32.0", Some("python")),
            ("Python/3.11 aiohttp/3.8.4", Some("python")),
            ("Scrapy/2.11 (+https://scrapy.org)", Some("scrapy")),
            ("Java/17.0.15", Some("java")),
            ("Go-http-client/1.1", Some("go")),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36",
                Some("chromium"),
            ),
            ("git/2.39.5", Some("git")),
            ("Debian APT-HTTP/1.3 (2.6.1)", Some("apt")),
            ("libwww-perl/6.68", Some("perl")),
            ("AcmeBot/1.0", None),
            ("", None),
        ] {
            assert_eq!(guess(user_agent), name, "{user_agent}");
            if let Some(name) = name {
                assert!(super::super::find(name).is_some(), "{name}");
            }
        }
        for (_, name) in SIGNS {
            assert!(super::super::find(name).is_some(), "{name}");
        }
    }
}
