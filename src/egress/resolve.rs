//! Names to addresses, asynchronously, by the system's name servers or the configured ones. Names
//! are taken as complete: no search domain is ever added to what a bot asked for.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig},
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::rr::Name,
};
use quick_cache::sync::Cache;

/// A resolver with a cache of its own.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    resolver: TokioResolver,
    /// What was found, for its time to live. The resolver has a cache, too; but to ask that takes longer than to decide on a
    /// request.
    found: Cache<Arc<str>, Resolved>,
}

/// The addresses of a name.
#[derive(Clone)]
struct Resolved {
    addresses: Arc<[IpAddr]>,
    until: Instant,
}

/// The name servers cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the system's name servers cannot be read: {0}; name some in egress.dns")]
pub struct ResolverError(#[from] NetError);

/// Why a name has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("the name does not exist (NXDOMAIN)")]
    NotFound,
    #[error("the name has no address")]
    NoAddress,
    #[error("the name servers did not answer in time")]
    Timeout,
    #[error("the name servers answered {0}")]
    Code(String),
    #[error("{0}")]
    Other(String),
}

// === impl Resolver ===

impl Resolver {
    /// A resolver that asks `servers`, or the system's where none is given. The hosts file of the
    /// system counts either way.
    ///
    /// # Errors
    /// No server is given and the system's configuration cannot be read.
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
        options.use_hosts_file = ResolveHosts::Always;
        options.cache_size = CACHE_SIZE;
        options.timeout = QUERY_TIMEOUT;
        options.negative_max_ttl = Some(NEGATIVE_MAX_TTL);
        Ok(Self(Arc::new(Inner {
            resolver: builder.build()?,
            found: Cache::new(CACHE_SIZE as usize),
        })))
    }

    /// The addresses of `name`, IPv4 ones first.
    ///
    /// # Errors
    /// The name does not exist, has no address, or nobody answered.
    pub async fn lookup(&self, name: &Arc<str>) -> Result<Arc<[IpAddr]>, ResolveError> {
        let found = self.0.found.get(name);
        if let Some(found) = found.filter(|found| found.until > Instant::now()) {
            return Ok(found.addresses);
        }
        let mut name_to_resolve = Name::from_ascii(&**name)
            .map_err(|error| ResolveError::Other(format!("the name cannot be asked for: {error}")))?;
        name_to_resolve.set_fqdn(true);
        let answer = self.0.resolver.lookup_ip(name_to_resolve).await?;
        let mut addresses: Vec<IpAddr> = answer.iter().collect();
        addresses.sort_by_key(IpAddr::is_ipv6);
        let found = Resolved {
            addresses: addresses.into(),
            until: answer.valid_until(),
        };
        // Where one of the two lookups failed, hickory tells of the other's addresses alone, which are most often IPv6 ones,
        // and asks again the next time.
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

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

/// Answers that the resolver keeps, each for its time to live.
const CACHE_SIZE: u64 = 16 * 1024;
/// For one query to one server.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// A name that was missing is asked for again after this time, whatever its zone says: people
/// who add a record expect it to be there soon.
const NEGATIVE_MAX_TTL: Duration = Duration::from_secs(60);
