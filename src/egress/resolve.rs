//! Resolves names with the hosts file, and with the configured name servers or those of the system. Never appends a
//! search domain to a name.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use hickory_resolver::{
    Hosts, TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig},
    lookup::Lookup,
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::Query,
        rr::{Name, RecordType},
    },
};
use quick_cache::sync::Cache;

/// A resolver with its own cache.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    resolver: TokioResolver,
    /// The hosts file. The inner resolver does not read this file, because it would ask name servers for the IPv6
    /// address of a name that has only an IPv4 address in the file.
    hosts: Hosts,
    /// Addresses, until their DNS records expire. Looking in the inner resolver's cache takes longer than a decision.
    found: Cache<Arc<str>, Resolved>,
}

#[derive(Clone)]
struct Resolved {
    addresses: Arc<[IpAddr]>,
    until: Instant,
}

/// Why a resolver cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up name resolution: {0}; name a server in egress.dns or in /etc/resolv.conf")]
pub struct ResolverError(#[from] NetError);

/// Why robotgate found no address for a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("the host name does not exist (NXDOMAIN)")]
    NotFound,
    #[error("the host name has no address")]
    NoAddress,
    #[error("the name servers did not answer in time")]
    Timeout,
    #[error("the name servers reported an error: {0}")]
    Code(String),
    #[error("{0}")]
    Other(String),
}

// === impl Resolver ===

impl Resolver {
    /// Creates a resolver that reads the hosts file, and queries `servers` or, if the list is empty, the system's name
    /// servers.
    ///
    /// # Errors
    /// Fails if `servers` is empty and the system's configuration cannot be read.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, ResolverError> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio()?
        } else {
            let servers = servers.iter().map(|server| name_server(*server)).collect();
            TokioResolver::builder_with_config(
                ResolverConfig::from_name_servers(servers),
                TokioRuntimeProvider::default(),
            )
        };
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Never;
        options.cache_size = CACHE_SIZE;
        options.timeout = QUERY_TIMEOUT;
        options.negative_max_ttl = Some(NEGATIVE_MAX_TTL);
        Ok(Self(Arc::new(Inner {
            resolver: builder.build()?,
            // The machine may have no hosts file.
            hosts: Hosts::from_system().unwrap_or_default(),
            found: Cache::new(CACHE_SIZE as usize),
        })))
    }

    /// Returns the addresses of `name`, IPv4 first.
    ///
    /// # Errors
    /// Fails if the name does not exist or has no address, or if no server gives a usable answer.
    pub async fn lookup(&self, name: &Arc<str>) -> Result<Arc<[IpAddr]>, ResolveError> {
        let found = self.0.found.get(name);
        if let Some(found) = found.filter(|found| found.until > Instant::now()) {
            return Ok(found.addresses);
        }
        let mut name_to_resolve = Name::from_ascii(&**name)
            .map_err(|error| ResolveError::Other(format!("the name cannot be looked up: {error}")))?;
        name_to_resolve.set_fqdn(true);
        let found = match in_hosts_file(&self.0.hosts, &name_to_resolve) {
            Some(found) => found,
            None => {
                let answer = self.0.resolver.lookup_ip(name_to_resolve).await?;
                let mut addresses: Vec<IpAddr> = answer.iter().collect();
                addresses.sort_by_key(IpAddr::is_ipv6);
                Resolved {
                    addresses: addresses.into(),
                    until: answer.valid_until(),
                }
            }
        };
        // If none of the addresses is IPv4, do not cache them: the query for IPv4 addresses may have failed, so the
        // next lookup should ask again.
        if found.addresses.iter().any(IpAddr::is_ipv4) {
            self.0.found.insert(name.clone(), found.clone());
        }
        Ok(found.addresses)
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolver")
    }
}

// === impl ResolveError ===

impl From<NetError> for ResolveError {
    fn from(error: NetError) -> Self {
        if error.is_nx_domain() {
            return Self::NotFound;
        }
        match &error {
            NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code.to_str() {
                "No Error" => Self::NoAddress,
                code => Self::Code(code.to_owned()),
            },
            NetError::Dns(DnsError::ResponseCode(code)) => Self::Code(code.to_str().to_owned()),
            NetError::Timeout => Self::Timeout,
            NetError::NoConnections => Self::Other("no name server could be reached".to_owned()),
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Returns the addresses that the hosts file has for a name, IPv4 first. `None` if it has none.
fn in_hosts_file(hosts: &Hosts, name: &Name) -> Option<Resolved> {
    let lookups =
        [RecordType::A, RecordType::AAAA].map(|kind| hosts.lookup_static_host(&Query::query(name.clone(), kind)));
    let until = lookups.iter().flatten().map(Lookup::valid_until).min()?;
    let records = lookups.iter().flatten().flat_map(Lookup::answers);
    Some(Resolved {
        addresses: records.filter_map(|record| record.data.ip_addr()).collect(),
        until,
    })
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

/// Maximum number of names in `found`, and of responses in the inner resolver's cache.
const CACHE_SIZE: u64 = 16 * 1024;
/// Timeout of one query to one server.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for which a missing name is cached. People expect a new name to work soon.
const NEGATIVE_MAX_TTL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_hosts_file_needs_no_name_server() {
        let mut hosts = Hosts::default();
        let file = "192.0.2.1 four.example\n2001:db8::1 six.example both.example\n192.0.2.2 both.example\n";
        hosts.read_hosts_conf(file.as_bytes()).expect("a hosts file");
        let addresses = |name: &str| {
            let mut name = Name::from_ascii(name).expect("a name");
            name.set_fqdn(true);
            let found = in_hosts_file(&hosts, &name)?;
            Some(found.addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>())
        };
        for (name, expected) in [
            ("four.example", Some(&["192.0.2.1"][..])),
            ("FOUR.example", Some(&["192.0.2.1"])),
            ("six.example", Some(&["2001:db8::1"])),
            ("both.example", Some(&["192.0.2.2", "2001:db8::1"])),
            ("other.example", None),
        ] {
            let expected = expected.map(|addresses| addresses.iter().map(ToString::to_string).collect());
            assert_eq!(addresses(name), expected, "{name}");
        }
    }
}
