//! The measured proxies, each with the smallest configuration that does the same work.

mod bare;
mod haproxy;
mod mitmproxy;
mod robotgate;
mod squid;

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

pub use self::robotgate::{Audit, Https};
use super::{Outcome, load::Protocol, process::Process};

/// A proxy, or no proxy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No proxy: the load generator connects directly to the origin.
    Nothing,
    Robotgate(Audit, Https),
    /// Only pingora's `HttpProxy`.
    Bare,
    Squid {
        workers: u8,
    },
    HaProxy,
    Mitmproxy,
}

pub struct Running {
    process: Process,
    /// The address for plain requests, and for CONNECTs that are not intercepted.
    plain: SocketAddr,
    /// The address for CONNECTs that are intercepted.
    intercepting: SocketAddr,
}

// === impl Kind ===

impl Kind {
    pub const ROBOTGATE: Self = Self::Robotgate(Audit::File, Https::Intercept);
    pub const SQUID: Self = Self::Squid { workers: 1 };
    pub const ALL: [Self; 7] = [
        Self::Nothing,
        Self::ROBOTGATE,
        Self::Bare,
        Self::SQUID,
        Self::Squid { workers: 2 },
        Self::HaProxy,
        Self::Mitmproxy,
    ];

    /// Returns the proxy's version, or why the proxy cannot be measured.
    pub fn version(self) -> Result<String, String> {
        match self {
            Self::Nothing => Ok("the load generator sends its requests to the origin itself".to_owned()),
            Self::Robotgate(..) => robotgate::version(),
            Self::Bare => Ok("pingora's HttpProxy, nothing else; plain HTTP only".to_owned()),
            Self::Squid { .. } => squid::version(),
            Self::HaProxy => first_line("haproxy", &["-v"]),
            Self::Mitmproxy => first_line("mitmdump", &["--version"]),
        }
    }

    /// Returns whether the proxy can intercept a CONNECT. True without a proxy, which needs no CONNECT.
    pub fn intercepts(self) -> bool {
        match self {
            Self::Squid { .. } => squid::intercepts(),
            Self::Bare | Self::HaProxy => false,
            Self::Nothing | Self::Robotgate(..) | Self::Mitmproxy => true,
        }
    }

    /// Starts the proxy in its own folder below `folder`, which contains the files of
    /// [`certificates`](super::certificates), and waits until it listens. Returns `None` for [`Kind::Nothing`].
    pub fn start(self, folder: &Path) -> Outcome<Option<Running>> {
        let proxy_folder = tempfile::Builder::new().prefix("proxy-").tempdir_in(folder)?.keep();
        // squid drops root privileges, so the folder must be open to all users.
        std::fs::set_permissions(&proxy_folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let setup = Setup {
            shared: folder.to_owned(),
            folder: proxy_folder,
            plain: free_address()?,
            intercepting: free_address()?,
        };
        let (process, intercepting) = match self {
            Self::Nothing => return Ok(None),
            Self::Robotgate(audit, https) => (robotgate::start(&setup, audit, https)?, setup.plain),
            Self::Bare => (bare::start(&setup)?, setup.plain),
            Self::Squid { workers } if squid::intercepts() => (squid::start(&setup, workers)?, setup.intercepting),
            Self::Squid { workers } => (squid::start(&setup, workers)?, setup.plain),
            Self::HaProxy => (haproxy::start(&setup)?, setup.plain),
            Self::Mitmproxy => (mitmproxy::start(&setup)?, setup.plain),
        };
        let mut running = Running {
            process,
            plain: setup.plain,
            intercepting,
        };
        running.wait(self, &setup)?;
        Ok(Some(running))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none (straight to the origin)",
            Self::Robotgate(..) => "robotgate",
            Self::Bare => "bare HttpProxy",
            Self::Squid { workers: 1 } => "squid",
            Self::Squid { .. } => "squid, 2 workers",
            Self::HaProxy => "HAProxy",
            Self::Mitmproxy => "mitmproxy",
        })
    }
}

// === impl Running ===

impl Running {
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the address for a protocol.
    pub fn address(&self, protocol: Protocol) -> SocketAddr {
        match protocol {
            Protocol::Plain | Protocol::Tunnel => self.plain,
            Protocol::Http1 | Protocol::Http2 => self.intercepting,
        }
    }

    fn wait(&mut self, kind: Kind, setup: &Setup) -> Outcome<()> {
        let patience = Instant::now() + PATIENCE;
        for address in [self.plain, self.intercepting] {
            while TcpStream::connect(address).is_err() {
                if self.process.ended() || Instant::now() > patience {
                    let log = std::fs::read_to_string(setup.log()).unwrap_or_default();
                    return Err(format!("{kind} did not start:\n{log}").into());
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }
}

struct Setup {
    /// The folder with the certificates.
    shared: PathBuf,
    folder: PathBuf,
    plain: SocketAddr,
    intercepting: SocketAddr,
}

// === impl Setup ===

impl Setup {
    fn log(&self) -> PathBuf {
        self.folder.join("errors.log")
    }

    fn write(&self, name: &str, text: &str) -> Outcome<PathBuf> {
        let path = self.folder.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn first_line(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

const PATIENCE: Duration = Duration::from_secs(15);
