//! Runs the `[[expect]]` cases of a configuration, without fetching anything. A configuration that does not meet its
//! own cases is rejected, both at the start and at a reload.

use std::{fmt, time::SystemTime};

use crate::{
    config::{Config, ConfigError, Expectation, Sources},
    copy::Lookup,
    decision::Decision,
    origin::Target,
    usage::Purposes,
};

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Unmet(Unmet),
}

/// The `[[expect]]` cases that a configuration does not meet: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The file's name, or words such as "the built-in configuration".
    source_name: String,
    /// The line number of each case, and how the decision differs from what the case expects.
    cases: Vec<(usize, String)>,
    /// Number of all `[[expect]]` cases.
    of: usize,
}

/// Reads a configuration and checks that it meets its `[[expect]]` cases. Fails if the file cannot be read, is invalid,
/// or does not meet its cases.
pub fn load(sources: &Sources) -> Result<Config, LoadError> {
    let config = Config::load(sources)?;
    let cases = unmet(&config);
    if cases.is_empty() {
        return Ok(config);
    }
    Err(LoadError::Unmet(Unmet {
        source_name: sources.name(),
        cases,
        of: config.expect.len(),
    }))
}

pub(crate) fn unmet(config: &Config) -> Vec<(usize, String)> {
    config
        .expect
        .iter()
        .filter_map(|expectation| Some((expectation.line, complaint(expectation, config)?)))
        .collect()
}

pub(crate) fn is_met(expectation: &Expectation, config: &Config) -> bool {
    complaint(expectation, config).is_none()
}

fn complaint(expectation: &Expectation, config: &Config) -> Option<String> {
    let target = match Target::parse(&expectation.url) {
        Ok(target) => target,
        Err(error) => return Some(format!("{}: {error}", expectation.url)),
    };
    let decision = decide(expectation, target, config);
    if decision.verdict == expectation.verdict {
        return None;
    }
    let purpose = expectation
        .purpose
        .map_or_else(String::new, |purpose| format!(" with the purpose \"{purpose}\""));
    let refused = decision.usage.as_deref().and_then(|report| report.refused.as_ref());
    let refused = refused.map_or_else(String::new, |refused| format!(": {refused}"));
    Some(format!(
        "expected \"{}\" for {} as \"{}\"{purpose}, but the verdict is \"{}\" (reason: {}{refused}); correct the case \
         or the configuration",
        expectation.verdict.as_str(),
        expectation.url,
        expectation.agent,
        decision.verdict.as_str(),
        decision.reason.as_str(),
    ))
}

fn decide(expectation: &Expectation, target: Target, config: &Config) -> Decision {
    let origin = &target.origin;
    let prohibited = config.screen(origin).err().map(|prohibited| prohibited.to_string());
    let question = config
        .question(&expectation.agent, false, target, config.terms(0), ALWAYS)
        .with_purposes(expectation.purpose.map(|purpose| Purposes::from_iter([purpose])));
    let robots = Lookup::given(expectation.robots.as_bytes(), SystemTime::now(), &config.robots.policy);
    question.decide_with(prohibited, robots)
}

/// The time for which cases are decided. It is before the `until` of any `[[https.tunnel]]`, so that results do not
/// change as time passes.
const ALWAYS: SystemTime = SystemTime::UNIX_EPOCH;

// === impl Unmet ===

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.source_name;
        for (line, complaint) in &self.cases {
            writeln!(f, "{file}:{line}: expect: {complaint}")?;
        }
        match (self.cases.len(), self.of) {
            (1, 1) => write!(f, "the expectation in {file} is not met"),
            (1, of) => write!(f, "1 of {of} expectations in {file} is not met"),
            (unmet, of) => write!(f, "{unmet} of {of} expectations in {file} are not met"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Config, LoadError> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("robotgate.toml");
        std::fs::write(&file, text).expect("written");
        load(&Sources::from(&*file))
    }

    fn case(agent: &str, url: &str, verdict: &str) -> String {
        format!(
            "[[expect]]\nagent = \"{agent}\"\nurl = \"{url}\"\nverdict = \"{verdict}\"\n\
             robots = \"User-agent: *\\nDisallow: /private\\n\"\n"
        )
    }

    #[test]
    fn a_correct_expectation_passes() {
        for (agent, path, verdict) in [
            ("Bot/1", "/private", "deny"),
            ("Bot/1", "/public", "allow"),
            ("Bot/1", "/public/../private", "deny"),
            ("Bot/1", "/private/../public", "deny"),
            ("Bot/1", "//private", "deny"),
            ("Bot/1", "", "allow"),
            ("Mozilla/5.0", "/public", "deny"),
        ] {
            let url = format!("https://a.example{path}");
            assert!(loaded(&case(agent, &url, verdict)).is_ok(), "{agent} {path} {verdict}");
        }
    }

    #[test]
    fn an_expectation_is_decided_like_a_real_request() {
        for (config, url, verdict) in [
            ("", "https://a.example/private", "deny"),
            ("https.mode = \"tunnel\"\n", "https://a.example/private", "unverifiable"),
            ("https.mode = \"tunnel\"\n", "https://a.example/public", "unverifiable"),
            ("https.mode = \"tunnel\"\n", "http://a.example/public", "allow"),
            ("https.mode = \"refuse\"\n", "https://a.example/public", "deny"),
            ("egress.deny = [\"a.example\"]\n", "http://a.example/public", "deny"),
            // A case ignores `until`. Otherwise, robotgate would reject this configuration from that day on.
            (
                "https.tunnel = [{ host = \"a.example\", reason = \"pinned\", until = 2020-01-01 }]\n",
                "https://a.example/private",
                "unverifiable",
            ),
        ] {
            let loaded = loaded(&format!("{config}{}", case("Bot/1", url, verdict)));
            assert!(loaded.is_ok(), "{config}{url}: {loaded:?}");
        }
        let unseen = loaded(&case("Bot/1", "https://a.example/private", "unverifiable"));
        assert!(unseen.is_err(), "inside an interception each path is seen");
        let error = loaded(&case("Bot/1", "http://robotgate.internal/", "allow"));
        let error = error.expect_err("nothing is decided there").to_string();
        assert!(error.contains("robotgate.internal is the proxy itself"), "{error}");
    }

    #[test]
    fn a_case_can_have_a_purpose() {
        const BOT: &str = "[[bot]]\nname = \"TestBot\"\nuser-agents = [\"TestBot\"]\npurposes = [\"search\"]\n";
        let load = |usage: &str, purpose: &str, verdict: &str| {
            loaded(&format!(
                "[usage]\n{usage}\n{BOT}[[expect]]\nagent = \"TestBot\"\nurl = \"https://a.example/p\"\n\
                 verdict = \"{verdict}\"\nrobots = \"User-agent: *\\nContent-Signal: search=yes, ai-train=no\"\n{purpose}\n"
            ))
        };
        let enforce = "content-signal = \"enforce\"";
        for (usage, purpose, verdict) in [
            (enforce, "", "allow"),
            (enforce, "purpose = \"search\"", "allow"),
            (enforce, "purpose = \"ai-train\"", "deny"),
            ("", "purpose = \"ai-train\"", "allow"),
            ("", "purpose = \"tdm\"", "allow"),
            ("unknown = \"deny\"", "purpose = \"search\"", "allow"),
            ("unknown = \"deny\"", "purpose = \"tdm\"", "deny"),
        ] {
            let loaded = load(usage, purpose, verdict);
            assert!(loaded.is_ok(), "{usage} {purpose}: {loaded:?}");
        }
        let error = load(enforce, "purpose = \"ai-train\"", "allow").expect_err("it is refused");
        let error = error.to_string();
        for part in [
            "as \"TestBot\" with the purpose \"ai-train\", but the verdict is \"deny\" (reason: usage: line 2 of the",
            "says Content-Signal: ai-train=no, which forbids the purpose ai-train)",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let error = load("", "purpose = \"train\"", "allow")
            .expect_err("not a purpose")
            .to_string();
        assert!(
            error.contains("expect[0].purpose: \"train\" is not a purpose; write one of search"),
            "{error}"
        );
    }

    #[test]
    fn a_failed_expectation_is_reported_with_its_line_and_verdict() {
        let text = format!(
            "{}{}",
            case("Bot/1", "https://a.example/public", "allow"),
            case("Bot/1", "https://a.example/private", "allow")
        );
        let error = loaded(&text).expect_err("one case does not hold").to_string();
        assert!(
            error.contains("robotgate.toml:6: expect: expected \"allow\""),
            "{error}"
        );
        assert!(error.contains("the verdict is \"deny\" (reason: rule)"), "{error}");
        assert!(
            error.ends_with("is not met") && error.contains("1 of 2 expectations"),
            "{error}"
        );
    }
}
