//! `robotgate health`: asks a running robotgate whether it is ready, for probes of containers.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use super::{Overrides, print};
use crate::{
    admin::{Endpoint, Probe},
    config::{Config, ConfigError},
    text::plain,
};

/// Say whether the running proxy is ready
///
/// Prints one line. Asks the proxy at the addresses of admin.listen, until one answers. If none does, and --address is
/// not given, asks at the socket next to the file of cache.path, which only the proxy's own user and root can open.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct HealthArgs {
    /// The configuration that the proxy runs with. Its admin.listen says at which address the proxy answers. Without
    /// this option, ROBOTGATE_CONFIG names the file
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// The address of the proxy's admin listener. With this option, the command reads no configuration
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["config", "set"], value_parser = address)]
    address: Option<SocketAddr>,
    /// Ask only whether the process answers. A proxy that is stopping or cannot write its log is alive, but not ready
    #[arg(long)]
    alive: bool,
}

/// Prints the proxy's answer. Fails if the proxy is not ready (with `--alive`, not alive), or does not answer.
pub fn run(args: &HealthArgs) -> ExitCode {
    let (probe, word) = match args.alive {
        true => (Probe::Alive, "alive"),
        false => (Probe::Ready, "ready"),
    };
    let (is_good, text) = match args.endpoints().map(|endpoints| probe.run(&endpoints)) {
        Ok(Ok(answer)) if answer.is_yes && args.alive => (true, word.to_owned()),
        Ok(Ok(answer)) if answer.is_yes => (true, answer.text),
        Ok(Ok(answer)) => (false, format!("not {word}: {}", answer.text)),
        Ok(Err(error)) => (false, format!("not {word}: {error}")),
        Err(error) => (false, format!("not {word}: {error}")),
    };
    let printed = print(format!("{}\n", plain(&text, usize::MAX)));
    if is_good { printed } else { ExitCode::FAILURE }
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "write an IP address and a port, like 127.0.0.1:3180")
}

// === impl HealthArgs ===

impl HealthArgs {
    fn endpoints(&self) -> Result<Vec<Endpoint>, ConfigError> {
        if let Some(address) = self.address {
            return Ok(vec![Endpoint::Listener(address)]);
        }
        // Ignore mistakes in the file, which may have changed since the proxy loaded it.
        let config = Config::load_in_part(&self.overrides.sources(self.config.as_deref())?)?;
        Ok(Endpoint::of(&config))
    }
}

const AFTER_HELP: &str = "\
Exit status: 0 if the proxy is ready (with --alive: alive), 1 if it is not or gives no answer, 2 for a usage error. \
The command waits at most 3 seconds for an answer at each address.

Try it:
  robotgate health
  robotgate health --config robotgate.toml
  robotgate health --alive --address 127.0.0.1:3180";
