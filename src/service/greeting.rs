//! The greeting for a person who starts robotgate at a terminal.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stderr, stdout},
    net::SocketAddr,
    path::Path,
};

use crate::{
    admin::from_here,
    audit::LogFormat,
    colour::{Colour, Paint},
    config::{Config, HttpsMode, Output},
    proxy::Speaks,
    text::plain,
};

pub(super) fn show(config: &Config, file: Option<&Path>, addresses: &[(SocketAddr, Speaks)], log_format: LogFormat) {
    if !stderr().is_terminal() {
        return;
    }
    let log_is_here = config.audit.output == Output::Stdout && stdout().is_terminal();
    let log = log_is_here.then(|| {
        if log_format.is_text() {
            TEXT_FOLLOWS
        } else {
            JSON_FOLLOWS
        }
    });
    eprint!("{}", text(config, file, addresses, log, Paint::for_output(&stderr())));
}

fn text(
    config: &Config,
    file: Option<&Path>,
    addresses: &[(SocketAddr, Speaks)],
    log: Option<&str>,
    paint: Paint,
) -> String {
    let of = |speaks| addresses.iter().filter(move |(_, spoken)| *spoken == speaks);
    let at = |scheme: &str, (address, _): &(SocketAddr, Speaks)| format!("{scheme}://{}", from_here(*address));
    let (plain_ones, tls) = (of(Speaks::Http), of(Speaks::Tls));
    let proxies: Vec<_> = (plain_ones.map(|one| at("http", one)))
        .chain(tls.map(|one| at("https", one)))
        .collect();

    let title = format_args!("robotgate {} is ready", crate::VERSION);
    let mut out = format!("\n{}; Ctrl-C stops it.\n", paint.in_colour(Colour::Good, title));
    let mut say = |what: &str, value: &str| {
        let _ = writeln!(out, "  {what:20}{}", paint.in_colour(Colour::Strong, value));
    };
    say("Bots connect to", &proxies.join(" "));
    if let Some(page) = of(Speaks::Admin).next() {
        say("See what they do", &format!("{}/", at("http", page)));
    }
    if let Some(proxy) = proxies.first().filter(|_| !config.identity.required) {
        say(
            "Try it",
            &format!("curl -i -x {proxy} -A ExampleBot/1.0 http://example.com/"),
        );
    }
    let config_too = file.map_or_else(String::new, |file| {
        format!(" --config {}", plain(&file.to_string_lossy(), usize::MAX))
    });
    if config.https.mode == HttpsMode::Intercept {
        say("Set up a client", &format!("robotgate env curl{config_too}"));
    }
    out.extend(log);
    out.push('\n');
    out
}

const TEXT_FOLLOWS: &str =
    "Each decision follows as a line. --log-format=json shows the whole records; audit.path writes them to a file.\n";
const JSON_FOLLOWS: &str =
    "Each decision follows as a line of JSON; audit.path in the configuration writes them to a file.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_shows_the_addresses_and_a_first_command() {
        let addresses = [
            ("127.0.0.1:3180".parse().unwrap(), Speaks::Admin),
            ("0.0.0.0:3128".parse().unwrap(), Speaks::Http),
            ("[::1]:3129".parse().unwrap(), Speaks::Tls),
        ];
        let file = Some(Path::new("gate.toml"));
        assert_eq!(
            text(&Config::default(), file, &addresses, Some(JSON_FOLLOWS), Paint::none()),
            format!(
                "\nrobotgate {} is ready; Ctrl-C stops it.\n  \
                 Bots connect to     http://127.0.0.1:3128 https://[::1]:3129\n  \
                 See what they do    http://127.0.0.1:3180/\n  \
                 Try it              curl -i -x http://127.0.0.1:3128 -A ExampleBot/1.0 http://example.com/\n  \
                 Set up a client     robotgate env curl --config gate.toml\n\
                 Each decision follows as a line of JSON; audit.path in the configuration writes them to a file.\n\n",
                crate::VERSION
            )
        );
    }
}
