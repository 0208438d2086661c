//! Decides which hosts, ports and addresses bots may reach.
//!
//! By default, bots may reach only the public addresses of the internet. `egress.allow` opens other destinations.
//! `egress.deny` closes destinations, even those that `egress.allow` opens.

use std::{
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    sync::Arc,
};

use ipnet::IpNet;

use super::special::{Special, carried, reached};
use crate::origin::{Host, HostPattern, Origin, Scheme};

/// The destination rules of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Destinations that bots may reach although they are not public.
    pub allow: Destinations,
    /// Destinations that bots may not reach although they are public or allowed.
    pub deny: Destinations,
    pub ports: Ports,
    /// Whether bots may reach FTP sites. If so, port 21 is open to `ftp` URLs, whatever `ports` says.
    pub ftp: bool,
}

/// Networks and host names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Destinations {
    pub networks: Vec<IpNet>,
    pub hosts: Vec<HostPattern>,
}

/// The ports that bots may reach: those in the configuration, or by default all except the bad ports of the Fetch
/// standard. Port 0 is never allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(Option<Vec<RangeInclusive<u16>>>);

/// Why bots may not reach a destination. The messages appear in headers and logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Prohibited {
    #[error("{address} is {special}, which bots cannot reach unless egress.allow lists {}", .special.opener())]
    Special { address: IpAddr, special: Special },
    #[error("{0} is closed to bots by egress.deny")]
    Address(IpAddr),
    #[error("{0} is closed to bots by egress.deny")]
    Name(Arc<str>),
    #[error("ftp URLs are closed to bots; ftp.enabled = true would open them")]
    Ftp,
    #[error("port 0 is closed to bots")]
    PortZero,
    #[error("port {port} is closed to bots; to open it, the operator can set egress.ports = {}", .ports.with(*port))]
    Port { port: u16, ports: Ports },
    #[error(
        "{0} is an address of this proxy itself, which bots cannot reach through it; ask it directly, not through the proxy"
    )]
    OwnListener(SocketAddr),
}

// === impl Guard ===

impl Default for Guard {
    fn default() -> Self {
        Self {
            allow: Destinations::default(),
            deny: Destinations::default(),
            ports: Ports::default(),
            ftp: true,
        }
    }
}

impl Guard {
    /// Checks a destination without resolving its name.
    ///
    /// # Errors
    /// Fails if the configuration refuses the scheme, the name or the port, or if the host is an IP address that bots
    /// must not reach.
    pub fn screen(&self, origin: &Origin) -> Result<(), Prohibited> {
        let (host, port) = (&origin.host, origin.port);
        if let Host::Name(name) = host
            && self.deny.names(host)
        {
            return Err(Prohibited::Name(name.clone()));
        }
        let has_usual_port = match origin.scheme {
            Scheme::Http | Scheme::Https => false,
            Scheme::Ftp if !self.ftp => return Err(Prohibited::Ftp),
            Scheme::Ftp => port == Scheme::Ftp.default_port(),
        };
        if port == 0 {
            return Err(Prohibited::PortZero);
        }
        if !has_usual_port && !self.ports.contains(port) {
            let ports = self.ports.clone();
            return Err(Prohibited::Port { port, ports });
        }
        match host {
            Host::Ip(address) => self.check(host, *address),
            Host::Name(_) => Ok(()),
        }
    }

    /// Checks whether bots may reach `host` at `address`.
    ///
    /// # Errors
    /// Fails if the configuration denies the address, or if the address is neither public nor allowed.
    pub fn check(&self, host: &Host, address: IpAddr) -> Result<(), Prohibited> {
        let there = reached(address);
        let inside = match address {
            IpAddr::V6(v6) => carried(v6).map(IpAddr::V4),
            IpAddr::V4(_) => None,
        };
        let mut destinations = std::iter::once(address).chain(inside);
        if let Some(denied) = destinations.find(|address| self.deny.has(*address)) {
            return Err(Prohibited::Address(denied));
        }
        self.check_default(host, there)?;
        // An IPv6 network in `egress.allow` does not allow the IPv4 addresses that its addresses contain.
        inside.map_or(Ok(()), |inside| self.check_default(host, inside))
    }

    fn check_default(&self, host: &Host, address: IpAddr) -> Result<(), Prohibited> {
        let Some(special) = Special::of(address) else {
            return Ok(());
        };
        if self.allow.has(address) || special.is_opened_by_name() && self.allow.names(host) {
            return Ok(());
        }
        Err(Prohibited::Special { address, special })
    }
}

// === impl Destinations ===

impl Destinations {
    fn has(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    fn names(&self, host: &Host) -> bool {
        match host {
            Host::Name(name) => self.hosts.iter().any(|pattern| pattern.covers(name)),
            Host::Ip(_) => false,
        }
    }
}

// === impl Ports ===

impl Ports {
    /// Allows only the ports in `ranges`. A bad port is allowed only if a range consists of this port alone.
    pub fn only(ranges: Vec<RangeInclusive<u16>>) -> Self {
        Self(Some(ranges))
    }

    pub fn contains(&self, port: u16) -> bool {
        let is_bad = port == 0 || BAD.binary_search(&port).is_ok();
        match &self.0 {
            None => !is_bad,
            Some(ranges) if is_bad => port != 0 && ranges.contains(&(port..=port)),
            Some(ranges) => ranges.iter().any(|range| range.contains(&port)),
        }
    }

    /// Returns a value for `egress.ports` that also allows `port`. It has single quotes, because headers and JSON would
    /// escape double ones.
    fn with(&self, port: u16) -> String {
        let as_text = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("'{first}-{last}'"),
        };
        // Like the default, this range does not allow the bad ports.
        let all = [1..=u16::MAX];
        let ranges = self.0.as_deref().unwrap_or(&all);
        let ports: Vec<String> = ranges.iter().chain([&(port..=port)]).map(as_text).collect();
        let note = match ranges.iter().any(|range| range.contains(&port)) {
            true => " (a range alone does not open this port)",
            false => "",
        };
        format!("[{}]{note}", ports.join(", "))
    }
}

/// The bad ports of the Fetch standard, sorted. Servers of other protocols use them, and can interpret an HTTP request
/// as a command (<https://fetch.spec.whatwg.org/#port-blocking>).
const BAD: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
    6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests;
