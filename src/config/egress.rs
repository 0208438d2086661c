//! `[egress]` and `[ftp]`: which destinations bots may reach, and which name servers resolve names.
//!
//! This module resolves no name, and checks no connection against the lists.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net};

use super::table::{NONE, Table};
use crate::egress::{Destinations, Guard, Ports};
use crate::origin::HostPattern;

/// The default port of a name server (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;

/// The `[egress]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Which destinations bots may reach.
    pub guard: Guard,
    /// The name servers that robotgate asks; if empty, those that the system is configured with.
    pub dns: Vec<SocketAddr>,
}

enum Destination {
    Network(IpNet),
    Host(HostPattern),
}

// === impl Egress ===

impl Egress {
    pub(super) fn read(table: &Table<'_>, ftp: bool) -> Self {
        let list = |key| {
            let list = table.list(key);
            table.has_default(key, NONE);
            list
        };
        let destinations = |key| table.checker.each(list(key), destination).into_iter().collect();
        Self {
            guard: Guard {
                allow: destinations("allow"),
                deny: destinations("deny"),
                ports: ports(table),
                ftp,
            },
            dns: table.checker.each(list("dns"), name_server),
        }
    }
}

impl FromIterator<Destination> for Destinations {
    fn from_iter<I: IntoIterator<Item = Destination>>(items: I) -> Self {
        let mut destinations = Self::default();
        for item in items {
            match item {
                Destination::Network(network) => destinations.networks.push(network),
                Destination::Host(host) => destinations.hosts.push(host),
            }
        }
        destinations
    }
}

fn destination(text: &str) -> Result<Destination, String> {
    let is_network = text.parse::<IpAddr>().is_ok() || text.contains('/') && !text.contains("//");
    if is_network {
        let or_host =
            r#"write a network like "10.0.0.0/8" or "fd00::/8", or a host like "intranet.example" or ".corp.example""#;
        return network_or(text, or_host).map(Destination::Network);
    }
    let host = text.parse::<HostPattern>().map_err(|error| error.to_string())?;
    match host.address() {
        Some(address) => Err(format!(
            r#""{text}" is an unusual spelling of an IP address; write "{address}" if you mean that one"#
        )),
        None => Ok(Destination::Host(host)),
    }
}

/// Parses a network or a single address. Rejects `10.0.0.1/8`, whose address is not the first of the network: either
/// the address or the prefix length is a mistake.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    network_or(text, r#"write one like "10.0.0.0/8" or "fd00::/8""#)
}

/// `advice` is the end of the error for a text that is not a network, and says what to write.
fn network_or(text: &str, advice: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    match text.parse::<IpNet>() {
        Ok(net) if net == net.trunc() => Ok(canonical(net)),
        Ok(net) => Err(format!(
            r#""{text}" is neither a whole network nor one address; write "{}" or "{}""#,
            net.trunc(),
            net.addr()
        )),
        Err(_) => Err(format!(r#""{text}" is not a network; {advice}"#)),
    }
}

/// Converts a network of IPv4-mapped addresses, such as `::ffff:10.0.0.0/104`, to IPv4, because robotgate compares such
/// addresses as IPv4.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let mapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    mapped
        .and_then(|(address, length)| Ipv4Net::new(address, length).ok())
        .map_or(network, IpNet::V4)
}

fn ports(table: &Table<'_>) -> Ports {
    let Some(raw) = table.ports("ports") else {
        return Ports::default();
    };
    if raw.get_ref().is_empty() {
        table.checker.complain(
            raw.span(),
            "an empty list would close every port; remove the key for the default",
        );
    }
    let items = raw.get_ref().iter();
    let ranges = items.filter_map(|item| table.checker.taken(item.span(), port_range(item.get_ref())));
    Ports::only(ranges.collect())
}

fn port_range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port != 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (Some(first), Some(last)) => Err(format!(r#""{text}" is an empty range; write "{last}-{first}""#)),
        _ => Err(format!(
            r#""{text}" is not a port; write a number from 1 to 65535, or a range like "8000-8999""#
        )),
    }
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, DNS_PORT));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        _ => Err(format!(
            r#""{text}" is not a name server; write an IP address, with a port if it is not 53, like "1.1.1.1" or "[::1]:5353""#
        )),
    }
}
